"""Every way to connect an account, walked in a real browser against the stand-ins; after each step
the page tells the truth."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from integrations import connections
from integrations.standins.app_store import ISSUER, KEY_ID
from integrations.standins.github import SLOWTIDE
from integrations.standins.server import Fault
from products.tables import Product
from scheduling.tick import run_tick
from tests.conftest import Outside

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db(transaction=True)]


@pytest.fixture
def here(page: Page, site: str, outside: Outside, settings: Settings) -> str:
    """Somebody who has just signed up, on a site that the stand-ins know."""
    outside.standins.site_url = settings.SITE_URL = site
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    leads_to = {**directives, "form-action": ["'self'", outside.standins.url]}
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": leads_to}
    page.goto(f"{site}/accounts/signup/")
    page.get_by_label("Email").fill("dev@example.com")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Make my account").click()
    expect(page).to_have_url(f"{site}/")
    return site


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def says(page: Page, *texts: str) -> None:
    expect(page.locator(".messages")).to_contain_text(list(texts))


def card(page: Page, source: str) -> str:
    """What the page of connections says of a source."""
    return page.locator("section", has=page.get_by_role("heading", name=source)).inner_text()


def user_id() -> str:
    return str(User.objects.get(email="dev@example.com").pk)


def test_github_denied_connected_reloaded_expired_reconnected_and_disconnected(
    page: Page, here: str, outside: Outside
) -> None:
    page.goto(f"{here}/connections/")
    press(page, "Connect GitHub")
    press(page, "Cancel")
    says(page, "You did not allow it at GitHub: nothing was connected.")
    assert connections.of_provider(user_id(), "github") == []

    press(page, "Connect GitHub")
    press(page, "Authorise")
    expect(page).to_have_url(re.compile("/installations/new"))
    with page.expect_request(re.compile("/connections/github/callback/")) as back:
        press(page, "Install")
    expect(page).to_have_url(f"{here}/connections/")
    assert card(page, "GitHub").count("Works") == 2

    answer = page.goto(back.value.url)
    assert answer is not None
    assert answer.status == 400
    expect(page.get_by_role("heading", name="This link has expired")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("slothpost-demo is connected to GitHub")
    assert outside.standins.count("POST", "/github/login/oauth/access_token") == 2

    account = connections.of_provider(user_id(), "github")[0]
    connections.mark_broken(account, "GitHub no longer accepts this authorisation.", timezone.now())
    page.goto(f"{here}/connections/")
    expect(page.get_by_role("main")).to_contain_text("GitHub no longer accepts this authorisation.")
    page.get_by_role("button", name="Connect again").click()
    press(page, "Authorise")
    says(page, "GitHub is connected: slothpost-demo.")
    assert card(page, "GitHub").count("Works") == 2

    page.get_by_role("link", name="Disconnect slothpost-demo").first.click()
    expect(page.get_by_role("heading", name="Disconnect GitHub (slothpost-demo)?")).to_be_visible()
    press(page, "Disconnect")
    says(page, "GitHub (slothpost-demo) is disconnected.")
    assert connections.of_provider(user_id(), "github") == []
    expect(page.get_by_role("button", name="Connect GitHub")).to_be_visible()


def test_a_code_that_lapsed_on_the_way_is_told_with_a_button_to_start_again(
    page: Page, here: str, outside: Outside
) -> None:
    outside.standins.faults.append(
        Fault(
            path="/github/login/oauth/access_token",
            status=200,
            body='{"error": "bad_verification_code"}',
        )
    )
    page.goto(f"{here}/connections/")
    press(page, "Connect GitHub")
    press(page, "Authorise")
    expect(page.get_by_role("heading", name="This link has expired")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("too old, or used before")
    assert connections.of_provider(user_id(), "github") == []
    press(page, "Start again with GitHub")
    expect(page.get_by_role("button", name="Authorise")).to_be_visible()


def test_a_service_that_fails_is_told_apart_from_a_no(
    page: Page, here: str, outside: Outside
) -> None:
    outside.standins.faults.append(Fault(path="/github/api/v3/user", status=503))
    page.goto(f"{here}/connections/")
    press(page, "Connect GitHub")
    press(page, "Authorise")
    expect(page.get_by_role("heading", name="GitHub was not connected")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("GitHub has a fault of its own (503).")
    assert connections.of_provider(user_id(), "github") == []
    press(page, "Try again")
    press(page, "Authorise")
    expect(page).to_have_url(re.compile("/installations/new"))


def test_an_organisations_owner_has_to_approve_it_first(
    page: Page, here: str, outside: Outside
) -> None:
    page.goto(f"{here}/connections/")
    press(page, "Connect GitHub")
    press(page, "Authorise")
    page.get_by_label("slow-boats").check()
    press(page, "Install")
    expect(page.locator(".messages")).to_contain_text("An owner of the organisation has to approve")
    assert card(page, "GitHub").count("No repositories yet") == 1


def test_vercel_cancelled_connected_for_a_team_paused_removed_and_connected_again(
    page: Page, here: str, outside: Outside
) -> None:
    page.goto(f"{here}/connections/")
    press(page, "Connect Vercel")
    press(page, "Cancel")
    says(page, "You did not install it at Vercel: nothing was connected.")

    press(page, "Connect Vercel")
    page.get_by_label("Slow Boats").check()
    with page.expect_request(re.compile("/connections/vercel/callback/")) as back:
        press(page, "Install")
    expect(page.get_by_role("heading", name="Installed")).to_be_visible()  # Vercel's own page
    page.get_by_role("link", name="Go on at SlothPost").click()
    says(page, "Vercel is connected: Slow Boats.")
    answer = page.goto(back.value.url)
    assert answer is not None
    assert answer.status == 400

    installed = next(iter(outside.vercel.configurations.values()))
    outside.vercel.pause(installed)
    page.goto(f"{here}/connections/")
    page.get_by_role("button", name=re.compile("^Check now")).click()
    expect(page.get_by_role("main")).to_contain_text("Vercel has paused this installation")
    outside.vercel.pause(installed)
    page.get_by_role("button", name=re.compile("^Check now")).click()
    says(page, "Vercel (Slow Boats) works.")

    outside.vercel.remove(installed)
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("SlothPost was removed at Vercel")
    page.get_by_role("button", name="Connect again Slow Boats").click()
    page.get_by_label("Slow Boats").check()
    press(page, "Install")
    page.goto(f"{here}/connections/")
    expect(page.get_by_role("main")).to_contain_text("Works")

    works = next(c for c in connections.of_provider(user_id(), "vercel") if c.works)
    page.goto(f"{here}/connections/disconnect/?key={works.key.replace('#', '%23')}")
    press(page, "Disconnect")
    says(page, "Vercel (Slow Boats) is disconnected.")
    assert outside.vercel.configurations == {}


def test_whoever_installs_from_vercels_marketplace_is_asked_first(
    page: Page, here: str, outside: Outside
) -> None:
    page.context.clear_cookies()
    page.goto(f"{outside.standins.url}/vercel/integrations/slothpost-standin/new")
    press(page, "Install")
    page.get_by_label("Email").fill("dev@example.com")
    page.get_by_label("Password").fill("correct horse battery")
    press(page, "Sign in")
    expect(page.get_by_role("heading", name="Connect Vercel?")).to_be_visible()
    assert "code" not in page.url
    assert connections.of_provider(user_id(), "vercel") == []
    press(page, "Connect it")
    expect(page.get_by_role("heading", name="Installed")).to_be_visible()
    assert [c.account_name for c in connections.of_provider(user_id(), "vercel")] == [
        "slothpost-demo"
    ]


def test_the_app_stores_key_is_refused_connected_and_never_shown_again(
    page: Page, here: str, outside: Outside
) -> None:
    pem = outside.app_store.demo_pem
    page.goto(f"{here}/connections/")
    press(page, "Connect App Store")
    page.get_by_label("Issuer ID").fill(ISSUER)
    page.get_by_label("Key ID").fill("ABCDE12345")
    page.get_by_label("Private key").fill(pem)
    press(page, "Connect")
    expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
    expect(page.get_by_label("Private key")).to_have_value("")
    assert pem[40:80] not in page.content()

    page.get_by_label("Key ID").fill(KEY_ID)
    page.get_by_label("Private key").fill(pem)
    press(page, "Connect")
    says(page, f"App Store is connected: Key {KEY_ID}.")
    assert pem[40:80] not in page.content()
    page.get_by_role("link", name=f"Disconnect Key {KEY_ID}").click()
    press(page, "Disconnect")
    says(page, f"App Store (Key {KEY_ID}) is disconnected.")


def test_a_product_follows_what_was_chosen_and_hears_of_it_once(
    page: Page, here: str, outside: Outside
) -> None:
    page.goto(f"{here}/products/new/")
    page.get_by_role("textbox", name="Name", exact=True).fill("Slowtide")
    press(page, "Add it")
    page.get_by_role("link", name="Choose a repository").click()
    press(page, "Connect GitHub")
    press(page, "Authorise")
    press(page, "Install")
    page.get_by_label("Find by name").fill("harbour")
    press(page, "Find")
    page.get_by_label("slothpost-demo/secret-harbour").check()
    press(page, "Follow it")
    says(page, "Slowtide follows slothpost-demo/secret-harbour.")
    main = page.get_by_role("main")
    expect(main).to_contain_text("No post is written from it until you say so: it is private.")
    press(page, "Posts may be written from it")
    expect(main).to_contain_text("Posts may be written from it.")

    page.get_by_role("link", name="Change", exact=True).first.click()
    page.get_by_label("slothpost-demo/slowtide").check()
    press(page, "Follow it")
    outside.github.release(outside.github.repositories[SLOWTIDE], "v3.0.0", name="Slowtide 3")
    run_tick(timezone.now() + timedelta(minutes=1))
    page.get_by_role("link", name="Activity").click()
    release = page.locator("li", has_text=re.compile("^.*Release v3.0.0", re.DOTALL))
    expect(release).to_have_count(1)
    expect(release).to_contain_text("Story, released")
    product = next(iter(Product.query(user_id())))
    assert product.github_via == "github#installation:50001"
