"""The public page and its feed: fast, cacheable, valid, and safe to show to anybody."""

from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.test import Client

from products import changelog
from products.tables import Product
from scheduling.publishing import run_due_posts
from tests.builders import NOW, approved_post, at, make_product

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = '<script>alert(1)</script> & \u202e "quoted" https://tide.example/a?b=1&c=2'


def published(product: Product, *texts: str) -> None:
    for day, text in enumerate(texts):
        approved_post(product, slot_at=NOW + timedelta(days=day), text=text)
        run_due_posts(NOW + timedelta(days=day))


def test_the_page_shows_the_newest_entry_first_and_links_to_each() -> None:
    product = make_product(link="https://tide.example")
    published(product, "First light\n\nIt began.", "Second wind\n\n- faster\n- lighter")
    page = Client().get(f"/c/{product.slug}/")
    text = page.content.decode()
    assert text.index("Second wind") < text.index("First light")
    assert "<li>faster</li><li>lighter</li>" in text
    entry = Client().get(
        next(part for part in text.split('"') if part.startswith(f"/c/{product.slug}/2026"))
    )
    assert entry.status_code == 200
    assert "Second wind" in entry.content.decode()


def test_the_page_can_be_cached_by_anybody_and_reads_no_session(
    django_assert_num_queries: object,
) -> None:
    product = make_product()
    published(product, "First light")
    with django_assert_num_queries(0):  # type: ignore[operator]
        answer = Client().get(f"/c/{product.slug}/")
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert "Cookie" not in answer.headers.get("Vary", "")
    assert answer.cookies == {}


def test_an_entry_has_open_graph_tags_of_its_own() -> None:
    product = make_product()
    published(product, "First light\n\nIt began at sea.")
    entry = next(iter(changelog.changelog.entries(product.slug).items))
    text = Client().get(f"/c/{product.slug}/{entry.entry_id}/").content.decode()
    for tag, value in (("og:title", "First light"), ("og:type", "article")):
        assert f'<meta property="{tag}" content="{value}"' in text
    assert f"/c/{product.slug}/{entry.entry_id}/" in text


def test_the_feed_is_atom_as_rfc_4287_asks() -> None:
    product = make_product(pitch="Tides & winds")
    published(product, "First light", HOSTILE)
    answer = Client().get(f"/c/{product.slug}/feed.atom")
    assert answer.headers["Content-Type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(answer.content)  # noqa: S314  our own feed
    assert feed.tag == f"{ATOM}feed"
    for element in ("id", "title", "updated", "author"):
        assert feed.find(f"{ATOM}{element}") is not None, element
    links = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    assert links["self"] == f"http://localhost:8000/c/{product.slug}/feed.atom"
    entries = feed.findall(f"{ATOM}entry")
    assert len(entries) == 2
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == 2
    for entry in entries:
        for element in ("id", "title", "updated"):
            assert entry.findtext(f"{ATOM}{element}"), element


def test_hostile_text_is_text() -> None:
    product = make_product(name="<b>Tide</b>")
    published(product, f"{HOSTILE}\n\n- {HOSTILE}\n{'x' * 300}")
    page = Client().get(f"/c/{product.slug}/").content.decode()
    assert "<script>alert" not in page
    assert "<b>Tide" not in page
    assert 'href="https://tide.example/a?b=1&amp;c=2"' in page


@pytest.mark.parametrize("path", ["/c/nobody/", "/c/nobody/feed.atom", "/c/nobody/20260105-x/"])
def test_what_is_not_there_is_a_404(path: str) -> None:
    assert Client().get(path).status_code == 404


def test_an_empty_changelog_is_a_page_and_a_valid_feed() -> None:
    product = make_product()
    assert Client().get(f"/c/{product.slug}/").status_code == 200
    feed = ElementTree.fromstring(  # noqa: S314  our own feed
        Client().get(f"/c/{product.slug}/feed.atom").content
    )
    assert feed.findtext(f"{ATOM}updated")


def test_unapproved_text_is_not_on_the_page() -> None:
    product = make_product()
    approved_post(product, slot_at=at("2026-02-01 09:00"), text="Not yet")
    run_due_posts(NOW)
    assert "Not yet" not in Client().get(f"/c/{product.slug}/").content.decode()
