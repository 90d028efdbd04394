"""Another user's anything is a 404. The URL table is walked, so a new route is covered too."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from integrations import connections
from integrations.connections import Account, Grant
from integrations.outlets import changelog
from products import activity
from products.tables import Activity, Post, Product
from scheduling.publishing import run_due_posts
from slothpost_site.dynamo import all_tables, client
from slothpost_site.moments import as_key
from slothpost_site.paging import read_page
from tests.builders import NOW, approved_post, at, make_event, make_post, planned_product
from tests.conftest import signed_in

pytestmark = pytest.mark.usefixtures("store")

# Open to everybody; what they show is public, or proved by a signature or a token.
PUBLIC = {
    *("changelog", "changelog_entry", "changelog_feed"),
    *("webhook_github", "webhook_vercel", "webhook_app_store", "webhook_app_store_hook"),
    "connect_callback",  # good for whoever began: tests/products/test_connections.py
    *("healthz", "readyz", "metrics"),
}
SECRET = "The secret of Alice"
NAMES_AN_ACCOUNT = {"disconnect", "connection_check", "held", "sent"}  # by a key beside the address


def routes(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    """Every route of our own: the accounts' and staff's are Django's and allauth's."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLPattern):
            yield pattern
        elif str(pattern.pattern) not in {"accounts/", "admin/"}:
            yield from routes(pattern)


OURS = sorted({str(route.name) for route in routes()} - PUBLIC)


@pytest.fixture
def hers(alice: User) -> dict[str, str]:
    """Alice's product, posts, activity and changelog entry, as the parts of an address."""
    user_id = str(alice.pk)
    product = planned_product(user_id=user_id, name=SECRET)
    activity.record(product.product_id, make_event(title=SECRET), NOW)
    activity.record(product.product_id, make_event(id="pr:8", title=SECRET), NOW)
    approved_post(product, slot_at=at("2026-01-05 09:00"), text=SECRET)
    run_due_posts(NOW)
    make_post(product, slot_at=at("2026-01-06 09:00"), text=SECRET)
    make_post(product, slot_at=at("2026-01-07 09:00"), text=SECRET)
    account = connections.connect(user_id, "vercel", Account("icfg_1", SECRET), Grant({}), now=NOW)
    return {
        "account": account.key,
        "source": "github",
        "provider": "app-store",
        "product_id": product.product_id,
        "slot": as_key(at("2026-01-06 09:00").timestamp() * 1000),
        "outlet": "changelog",
        "service": "x",
        "slug": product.slug,
        "entry_id": changelog.entries(product.slug).items[0].entry_id,
    }


def address(name: str, parts: dict[str, str]) -> tuple[str, bool]:
    """A route's path for these parts, and whether it names one of Alice's things."""
    route = next(route for route in routes() if route.name == name)
    wanted = route.pattern.converters
    unknown = set(wanted) - set(parts)
    assert not unknown, f"teach this test what {unknown} of the route {name} is"
    is_hers = bool(set(wanted) - {"source", "provider"}) or name in NAMES_AN_ACCOUNT
    return reverse(name, kwargs={part: parts[part] for part in wanted}), is_hers


def everything() -> dict[str, list[object]]:
    found = {}
    for table in all_tables():
        items = client().scan(TableName=table.Meta.table_name)["Items"]
        found[table.Meta.table_name] = sorted(items, key=str)
    return found


@pytest.mark.parametrize("name", OURS)
def test_another_users_thing_is_a_404_and_stays_as_it_is(
    name: str, hers: dict[str, str], bob: User
) -> None:
    path, is_hers = address(name, hers)
    before = everything()
    visitor = signed_in(bob)
    posted = {"action": "approve", "save": "1", "key": hers["account"]}
    answers = [visitor.get(path, {"key": hers["account"]}), visitor.post(path, posted)]
    allowed = [answer for answer in answers if answer.status_code != 405]
    if is_hers:
        assert {answer.status_code for answer in allowed} == {404}
    assert [SECRET.encode() in answer.content for answer in answers] == [False, False]
    assert everything() == before


@pytest.mark.parametrize("name", OURS)
def test_the_owner_reaches_the_same_address(name: str, hers: dict[str, str], alice: User) -> None:
    path, _ = address(name, hers)
    visitor = signed_in(alice)
    key = next(iter(Activity.query(hers["product_id"]))).key
    key = hers["account"] if name in NAMES_AN_ACCOUNT else key
    answers = [visitor.get(path, {"key": key}), visitor.post(path, {"key": key})]
    assert all(answer.status_code < 500 for answer in answers)
    assert 404 not in {answer.status_code for answer in answers if answer.status_code != 405}


@pytest.mark.parametrize("name", OURS)
def test_a_stranger_is_sent_to_sign_in(name: str, hers: dict[str, str], db: None) -> None:
    path, _ = address(name, hers)
    for answer in (Client().get(path), Client().post(path)):
        if answer.status_code != 405:
            assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (
                302,
                "/accounts/login/",
            )


def test_the_public_pages_show_only_what_was_published(hers: dict[str, str]) -> None:
    for name in ("changelog", "changelog_entry", "changelog_feed"):
        answer = Client().get(address(name, hers)[0])
        assert answer.status_code == 200
        assert answer.content.count(b"github.com/acme") == 0


def test_another_users_activity_cannot_be_judged_through_ones_own_product(
    hers: dict[str, str], bob: User
) -> None:
    own = planned_product(user_id=str(bob.pk))
    key = next(iter(Activity.query(hers["product_id"]))).key
    before = everything()
    answer = signed_in(bob).post(reverse("judge", args=[own.product_id]), {"key": key})
    assert (answer.status_code, everything()) == (404, before)


@pytest.mark.parametrize(
    ("name", "source"), [("review", Post.open_for), ("history", Post), ("products", Product)]
)
def test_another_users_cursor_is_a_404(
    name: str, source: object, hers: dict[str, str], alice: User, bob: User
) -> None:
    planned_product(user_id=str(alice.pk))
    cursor = read_page(source, str(alice.pk), size=1, newest_first=name == "history").next_cursor  # type: ignore[type-var]
    assert cursor
    path = reverse(name)
    assert signed_in(alice).get(path, {"cursor": cursor}).status_code == 200
    assert signed_in(bob).get(path, {"cursor": cursor}).status_code == 404
    assert signed_in(alice).get(path, {"cursor": cursor[:-2]}).status_code == 404


def test_a_products_activity_and_deliveries_page_by_their_own_cursors(
    hers: dict[str, str], alice: User, bob: User
) -> None:
    cursor = read_page(Activity, hers["product_id"], size=1).next_cursor
    own = planned_product(user_id=str(bob.pk))
    visitor = signed_in(bob)
    for name in ("activity", "product"):
        path = reverse(name, args=[own.product_id])
        assert visitor.get(path, {"cursor": cursor}).status_code == 404
    path = reverse("activity", args=[hers["product_id"]])
    assert signed_in(alice).get(path, {"cursor": cursor}).status_code == 200


@pytest.mark.parametrize("slot", ["x", "20260106T090000", "99999999T999999Z", "2026"])
def test_a_garbled_slot_is_a_404(slot: str, hers: dict[str, str], alice: User) -> None:
    path = reverse("post", args=[slot, hers["product_id"], "changelog"])
    assert signed_in(alice).get(path).status_code == 404
