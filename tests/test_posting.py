"""Every outlet connected and posted to in a real browser: from the product to the permalink."""

import re
from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from integrations.outlets import OUTLETS
from products import catalogue, posting
from products.states import State
from products.tables import Product
from scheduling.publishing import run_due_posts
from tests.builders import make_post, reread
from tests.conftest import TYPED, Outside
from tests.test_connecting import here, press, says, user_id

__all__ = ["here"]  # a fixture

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db(transaction=True)]

EVERY = [name for name, outlet in OUTLETS.items() if outlet.needs_account]
TEXT = "Dark theme 🦥 is here → https://acme.example/dark #indie"


def made(page: Page, here: str) -> Product:
    page.goto(f"{here}/products/new/")
    page.get_by_role("textbox", name="Name", exact=True).fill("Slowtide")
    press(page, "Add it")
    (product,) = catalogue.every_one_of(user_id())
    return product


ALLOW: dict[str, str] = {
    "x": "Authorise app",
    "threads": "Allow",
    "mastodon": "Authorise",
    "linkedin": "Allow",
}
DENY = "Cancel"


def connect(page: Page, outlet: str) -> None:
    """From the product's page to the account and back."""
    press(page, f"Connect {OUTLETS[outlet].label}")
    TYPE.get(outlet, lambda page: None)(page)
    if outlet in ALLOW:
        press(page, ALLOW[outlet])


def type_in(outlet: str) -> Callable[[Page], None]:
    def fill(page: Page) -> None:
        for name, value in TYPED[outlet].items():
            page.locator(f"[name={name}]").fill(value)
        press(page, "Connect")

    return fill


TYPE: dict[str, Callable[[Page], None]] = {name: type_in(name) for name in TYPED}


@pytest.mark.parametrize("outlet", EVERY)
def test_an_outlet_is_connected_and_posted_to_and_its_link_shown(
    page: Page, here: str, outside: Outside, settings: Settings, outlet: str
) -> None:
    product = made(page, here)
    label = OUTLETS[outlet].label
    connect(page, outlet)
    expect(page).to_have_url(re.compile(f"/products/{product.product_id}/"))
    says(page, "Slowtide posts there from now on.")
    expect(page.get_by_text("Posts as", exact=False)).to_be_visible()

    now = timezone.now()
    post = make_post(reread(product), slot_at=now, outlet=outlet, text=TEXT, now=now)
    posting.bind(post, posting.account_of(reread(product), outlet))
    page.goto(here)
    page.get_by_text(f"As {label} shows it").click()
    press(page, "Approve and send now")
    expect(page.get_by_text("Goes out within a couple of minutes.")).to_be_visible()
    run_due_posts(timezone.now())
    assert reread(post).state == State.PUBLISHED
    assert [shown.text for shown in outside.outlets[outlet].posts] == [TEXT]

    page.goto(f"{here}/history/")
    if link := reread(post).permalink:
        page.get_by_role("link", name="See it there").click()
        expect(page).to_have_url(link)
        expect(page.locator("body")).to_contain_text("Dark theme")


@pytest.mark.parametrize("outlet", [name for name in EVERY if name in ALLOW])
def test_a_no_at_the_outlet_connects_nothing(
    page: Page, here: str, outside: Outside, outlet: str
) -> None:
    product = made(page, here)
    press(page, f"Connect {OUTLETS[outlet].label}")
    TYPE.get(outlet, lambda page: None)(page)
    press(page, DENY)
    expect(page).to_have_url(re.compile(f"/products/{product.product_id}/"))
    expect(page.locator(".messages")).to_contain_text("nothing was connected")
    assert posting.key_of(reread(product), outlet) == ""


def test_no_account_name_is_too_long_for_a_phone(page: Page, here: str, outside: Outside) -> None:
    product = made(page, here)
    press(page, "Connect Webhook")
    page.locator("[name=url]").fill(TYPED["webhook"]["url"])
    page.locator("[name=name]").fill(f"<script> שלום {'W' * 80}")
    press(page, "Connect")
    for path in (f"products/{product.product_id}/", "connections/", "history/results/"):
        page.goto(f"{here}/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
