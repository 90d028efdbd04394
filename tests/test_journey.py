"""The whole way, over HTTP and through a real browser: what was shipped stands on the changelog."""

import json
import re
from datetime import datetime, timedelta
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest
import requests
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from integrations.sources import SOURCES
from products.tables import Post, Product
from scheduling.tick import run_tick
from slothpost_site.moments import from_ms
from tests.integrations.recorded import delivery, vercel

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db(transaction=True)]

ZONE = "Europe/Berlin"


def deliver(site: str, name: str, payload: dict[str, object], event: str = "") -> dict[str, object]:
    """Send a payload as its source would, signed."""
    source, body = SOURCES[name], json.dumps(payload).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": f"{event}-{payload.get('action', '')}",
        source.SIGNATURE_HEADER: source.signature(body, source.secrets()[0]),
    }
    answer = requests.post(f"{site}/webhooks/{name}/", data=body, headers=headers, timeout=10)
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


def sign_up(page: Page, site: str) -> None:
    page.goto(f"{site}/accounts/signup/")
    page.get_by_label("Email").fill("dev@example.com")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Make my account").click()
    expect(page).to_have_url(f"{site}/")


def add_product(page: Page, site: str, repo_id: int, project_id: str) -> Product:
    page.goto(f"{site}/products/new/")
    page.get_by_role("textbox", name="Name", exact=True).fill("Tidewater")
    page.get_by_role("textbox", name="Link").fill("https://tidewater.example")
    page.get_by_role("button", name="Add it").click()
    for choose, label, value, follow in (
        ("Choose a repository", "Public GitHub repository", str(repo_id), "this repository"),
        ("Choose a project", "Vercel project id", project_id, "this project"),
    ):
        page.get_by_role("link", name=choose).click()
        page.get_by_label(label).fill(value)
        page.get_by_role("button", name=f"Follow {follow}").click()
    product = next(iter(Product.query(str(User.objects.get(email="dev@example.com").pk))))
    assert (product.github_repo_id, product.vercel_project_id) == (str(repo_id), project_id)
    return product


def plan(page: Page, site: str, product: Product, slot: datetime) -> None:
    """The changelog at the slot's weekday and time, drafts two days before; seen, then saved."""
    page.goto(f"{site}/products/{product.product_id}/plan/")
    expect(page.get_by_label("Time zone")).to_have_value(ZONE)  # preset from the browser
    page.get_by_label("Show me the draft").select_option("2880")
    outlet = page.locator("details.outlet", has_text="Changelog")
    if outlet.get_attribute("open") is None:
        outlet.locator("summary").click()
    outlet.locator(f"input[name=changelog-{slot.weekday()}]").first.fill(f"{slot:%H:%M}")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text(f"{slot:%A} at 9:00 on Changelog")
    page.get_by_role("button", name="Save this plan").click()
    expect(page.get_by_role("status")).to_contain_text(["Saved."])


def test_what_was_shipped_is_drafted_edited_approved_and_published(
    page: Page, site: str, settings: Settings
) -> None:
    release = delivery("release", action="published")
    release["release"]["published_at"] = timezone.now().isoformat()
    deployment = vercel("deployment.promoted")
    project_id = deployment["payload"]["project"]["id"]
    slot = (timezone.now().astimezone(ZoneInfo(ZONE)) + timedelta(days=1)).replace(
        hour=9, minute=0, second=0, microsecond=0
    )

    settings.FOLLOW_PRIVATE_REPOSITORIES = True  # by number, as nobody shows them here
    sign_up(page, site)
    product = add_product(page, site, release["repository"]["id"], project_id)
    plan(page, site, product, slot)

    assert deliver(site, "github", release, "release")["taken"] == 1
    assert deliver(site, "vercel", deployment)["taken"] == 1
    assert deliver(site, "github", release, "release") == {
        "delivery": "release-published", "taken": 0, "note": "seen before",
    }  # fmt: skip
    page.goto(f"{site}/products/{product.product_id}/activity/")
    expect(page.get_by_role("main")).to_contain_text(release["release"]["tag_name"])

    run_tick(timezone.now() + timedelta(minutes=1))
    run_tick(timezone.now() + timedelta(minutes=20))  # it waited for sources that do not answer
    page.goto(site)
    draft = page.locator("article.draft")
    expect(draft).to_have_count(1)
    words = draft.get_by_role("textbox", name="Text for Changelog")
    expect(words).to_have_value(re.compile("https://tidewater.example"))
    mine = "Tidewater is out\n\n- read by a person 🦥\n\nhttps://tidewater.example"
    words.fill(mine)
    expect(page.locator(".counter")).to_contain_text(f"{len(mine)} / 5000")
    page.get_by_role("button", name="Save and approve").click()
    expect(draft).to_contain_text("Approved")

    run_tick(slot - timedelta(minutes=1))
    assert requests.get(f"{site}/c/{product.slug}/", timeout=10).text.count("read by a person") == 0
    run_tick(slot)
    run_tick(slot + timedelta(minutes=1))

    page.goto(f"{site}/c/{product.slug}/")
    expect(page.get_by_role("main")).to_contain_text("read by a person 🦥")
    expect(page.locator("article")).to_have_count(1)
    feed = ElementTree.fromstring(  # noqa: S314  our own feed
        requests.get(f"{site}/c/{product.slug}/feed.atom", timeout=10).content
    )
    titles = [title.text for title in feed.iter("{http://www.w3.org/2005/Atom}title")]
    assert titles == ["Tidewater: what is new", "Tidewater is out"]
    post = next(post for post in Post.query(product.user_id) if post.published_at)
    assert (post.text, post.state, from_ms(post.published_at)) == (mine, "published", slot)
    page.goto(f"{site}/history/")
    expect(page.get_by_role("main")).to_contain_text("Tidewater is out")
