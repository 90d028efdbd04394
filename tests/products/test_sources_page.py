"""What a product follows: chosen from one's own, or openly; private only as its owner allows."""

from dataclasses import replace
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from integrations import connections
from integrations.sources import SOURCES, app_store
from integrations.sources.base import Choice, OutOfReach
from integrations.standins.app_store import APP_ID, ISSUER, KEY_ID, App
from integrations.standins.github import PERSON, SLOWTIDE
from integrations.standins.server import Fault
from integrations.tables import Connection
from products import following
from products.tables import Product
from slothpost_site import dynamo
from tests.builders import NOW, make_product, reread
from tests.conftest import Outside, signed_in
from tests.pages import words

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]

HARBOUR = "912345679"


@pytest.fixture
def client(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def product(alice: User, outside: Outside) -> Product:
    return make_product(str(alice.pk), name="Slowtide")


def connect_github(outside: Outside, user: User) -> None:
    outside.github.install_for(PERSON)
    callback = f"{outside.standins.site_url}/connections/github/callback/"
    answer = {"code": outside.github.code(callback)}
    SOURCES["github"].finish(str(user.pk), answer, {"callback_url": callback}, timezone.now())


def connect_app_store(outside: Outside, user: User) -> Connection:
    key = {"issuer_id": ISSUER, "key_id": KEY_ID, "private_key": outside.app_store.demo_pem}
    return SOURCES["app_store"].finish(str(user.pk), key, {}, timezone.now()).connection


def page_of(product: Product, source: str = "github") -> str:
    return reverse("source", args=[product.product_id, source])


def do(client: Client, product: Product, action: str, source: str = "github", **more: str) -> str:
    """Press a button; the words of the page after it."""
    posted = {"action": action, **more}
    answer: HttpResponse = client.post(page_of(product, source), posted, follow=True)
    assert answer.status_code in {200, 422}
    return words(answer)


# -- choosing --------------------------------------------------------------------------------------


def test_what_is_chosen_is_followed_by_the_account_that_shows_it(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    assert "Slowtide follows slothpost-demo/slowtide." in do(
        client, product, "choose", choice=str(SLOWTIDE)
    )
    fresh = reread(product)
    assert (fresh.github_repo_id, fresh.github_via) == (
        str(SLOWTIDE),
        "github#installation:50001",
    )
    assert fresh.fetch_status == "active"


@pytest.mark.parametrize("choice", ["912345680", "1", "", "x" * 5000, "\x00", "912345678 "])
def test_what_is_not_in_ones_own_list_is_not_followed(
    client: Client, product: Product, outside: Outside, alice: User, choice: str
) -> None:
    connect_github(outside, alice)
    assert "Nothing was changed. Choose one of the list." in do(
        client, product, "choose", choice=choice
    )
    assert reread(product).github_repo_id is None


def test_a_list_is_searched_without_scripts(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    page = words(client.get(page_of(product), {"q": "HARBOUR"}))
    assert page.count('type="radio"') == 1
    assert "slothpost-demo/secret-harbour" in page
    page = words(client.get(page_of(product), {"q": "<nothing>"}))
    assert "Nothing is called “&lt;nothing&gt;”." in page


def test_a_long_list_is_cut_and_says_so(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    page = words(client.get(page_of(product)))
    assert page.count('type="radio"') == 100
    assert "And 12 more: find it by its name." in page


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=503, times=9), "GitHub has a fault of its own (503)."),
        (Fault(status=429, times=9), "GitHub asks us to wait."),
        (Fault(hang_up=True, times=9), "GitHub did not answer."),
        (Fault(status=200, body="<html>", times=9), "GitHub answered with something"),
        (Fault(status=401, times=9), "Connect GitHub again"),
        (Fault(status=403, times=9), "GitHub refused (403)."),
    ],
)
def test_a_source_that_fails_is_said_on_the_page(
    client: Client, product: Product, outside: Outside, alice: User, fault: Fault, said: str
) -> None:
    connect_github(outside, alice)
    outside.standins.faults.append(Fault(**vars(fault)))
    answer = client.get(page_of(product))
    assert answer.status_code == 200
    assert said in words(answer)
    outside.standins.faults.append(Fault(**vars(fault)))
    assert "Nothing was changed." in do(client, product, "choose", choice=str(SLOWTIDE))


# -- what is private -------------------------------------------------------------------------------


@pytest.mark.parametrize("ticked", [True, False])
def test_private_work_is_written_from_only_where_its_owner_ticked_it(
    client: Client, product: Product, outside: Outside, alice: User, ticked: bool
) -> None:
    connect_github(outside, alice)
    tick = {"allow": "on"} if ticked else {}
    page = do(client, product, "choose", choice=HARBOUR, **tick)
    fresh = reread(product)
    assert following.is_private(fresh, "github")
    assert following.is_allowed(fresh, "github") is ticked
    assert ("No post is written from it until you say so" in page) is not ticked


def test_it_can_be_allowed_and_forbidden_later(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    do(client, product, "choose", choice=HARBOUR)
    assert "Write no posts from it</button>" in do(client, product, "allow", follow=HARBOUR)
    assert following.is_allowed(reread(product), "github")
    page = do(client, product, "forbid", follow=HARBOUR)
    assert "Posts may be written from it</button>" in page
    assert not following.is_allowed(reread(product), "github")


def test_a_consent_is_for_what_its_page_has_shown_alone(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    do(client, product, "choose", choice=HARBOUR)  # in another tab
    for shown in (str(SLOWTIDE), "", "x" * 3000):
        said = "Nothing was changed. Slowtide follows something else there by now."
        assert said in do(client, product, "allow", follow=shown)
        assert not following.is_allowed(reread(product), "github")


def test_nothing_is_promised_where_nothing_is_followed(client: Client, product: Product) -> None:
    assert "Slowtide follows nothing yet: choose what, first." in do(client, product, "ask")
    for action in ("allow", "forbid"):
        assert "Nothing was changed." in do(client, product, action)
    assert reread(product).private_allowed is None


def test_choosing_the_same_again_goes_on_where_it_was(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    do(client, product, "choose", choice=HARBOUR, allow="on")
    read = {"since": 1_767_000_000_000, "at": 1_767_000_000_001, "seen": {"releases": "etag"}}
    dynamo.change(reread(product), None, fetched={"github": {**read, "error": "It failed."}})
    assert "checked" in words(client.get(page_of(product))).split('name="allow"')[1].split(">")[0]
    do(client, product, "choose", choice=HARBOUR, allow="on")
    assert following.state_of(reread(product), "github") == read
    assert following.is_allowed(reread(product), "github")
    do(client, product, "choose", choice=HARBOUR)
    assert not following.is_allowed(reread(product), "github")


# -- openly ----------------------------------------------------------------------------------------


def test_a_public_repository_and_an_app_are_followed_without_an_account(
    client: Client, product: Product
) -> None:
    do(client, product, "public", repository="https://github.com/slothpost-demo/slowtide")
    do(client, product, "public", "app-store", app=f"https://apps.apple.com/de/app/id{APP_ID}")
    fresh = reread(product)
    assert (fresh.github_repo_id, fresh.github_via) == (str(SLOWTIDE), None)
    assert (fresh.app_store_id, fresh.app_store_name) == (APP_ID, "Slowtide")
    assert fresh.fetched["app_store"]["seen"] == {"country": "de"}


@pytest.mark.parametrize(
    ("source", "form", "said"),
    [
        ("github", {"repository": "slothpost-demo/secret-harbour"}, "shows no public repository"),
        ("github", {"repository": HARBOUR}, "Write it as owner/name"),
        ("app-store", {"app": "999"}, "has no app with the id 999"),
        ("app-store", {"app": "not an app"}, "Paste the link to your app"),
        ("vercel", {"project_id": "prj_SlowtideDemo"}, "Connect Vercel first."),
        ("github", {}, "This field is required."),
    ],
)
def test_what_is_not_open_is_not_followed_openly(
    client: Client, product: Product, source: str, form: dict[str, str], said: str
) -> None:
    assert said in do(client, product, "public", source, **form)
    assert following.followed(reread(product)) == []


# -- the App Store's webhook -----------------------------------------------------------------------


def test_an_app_followed_by_key_tells_by_webhook_until_the_last_product_leaves_it(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_app_store(outside, alice)
    other = make_product(str(alice.pk), name="Slowtide for boats")
    for each in (product, other):
        do(client, each, "choose", "app-store", choice=APP_ID)
    (hook,) = outside.app_store.hooks.values()
    assert hook.url.endswith(f"/webhooks/app-store/{app_store.hook_of(str(alice.pk), APP_ID)}/")
    do(client, product, "unfollow", "app-store")
    assert len(outside.app_store.hooks) == 1
    do(client, other, "unfollow", "app-store")
    assert outside.app_store.hooks == {}
    assert following.followed(reread(other)) == []


def test_an_app_that_is_left_for_another_or_followed_openly_tells_no_more(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_app_store(outside, alice)
    other = App("6449999999", "Slowboat", "com.example.slowboat")
    outside.app_store.apps[other.id] = other
    for app_id in (other.id, APP_ID):
        do(client, product, "choose", "app-store", choice=app_id)
        assert [hook.app_id for hook in outside.app_store.hooks.values()] == [app_id]
    do(client, product, "public", "app-store", app=APP_ID)
    assert outside.app_store.hooks == {}
    assert (reread(product).app_store_id, reread(product).app_store_via) == (APP_ID, None)


def test_another_persons_product_does_not_keep_a_webhook(
    client: Client, product: Product, outside: Outside, alice: User, bob: User
) -> None:
    connect_app_store(outside, alice)
    hers = make_product(str(alice.pk), name="Followed openly")
    his = make_product(str(bob.pk), name="Bob's")
    following.follow(hers, "app_store", Choice(APP_ID, "Slowtide"), NOW)
    following.follow(his, "app_store", Choice(APP_ID, "Slowtide", via="app_store#K"), NOW)
    do(client, product, "choose", "app-store", choice=APP_ID)
    assert len(outside.app_store.hooks) == 1
    do(client, product, "unfollow", "app-store")
    assert outside.app_store.hooks == {}


def test_a_key_that_is_disconnected_takes_its_apps_webhooks_along(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    key = connect_app_store(outside, alice).key
    do(client, product, "choose", "app-store", choice=APP_ID)
    client.post(reverse("disconnect"), {"key": key})
    assert outside.app_store.hooks == {}


def test_an_app_whose_key_is_gone_is_asked_for_as_anybody_can(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    key = connect_app_store(outside, alice).key
    do(client, product, "choose", "app-store", choice=APP_ID)
    client.post(reverse("disconnect"), {"key": key})
    assert (reread(product).app_store_id, reread(product).app_store_via) == (APP_ID, None)
    page = words(client.get(reverse("product", args=[product.product_id])))
    assert "Asked before each draft" in page
    assert "not connected any more" not in page


def test_a_webhook_that_was_taken_away_at_apple_is_there_again_after_a_check(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    key = connect_app_store(outside, alice).key
    do(client, product, "choose", "app-store", choice=APP_ID)
    outside.app_store.hooks.clear()
    client.post(reverse("connection_check"), {"key": key})
    assert [hook.app_id for hook in outside.app_store.hooks.values()] == [APP_ID]


def test_an_apps_webhook_reaches_nobody_who_follows_it_openly(
    client: Client, product: Product, outside: Outside, alice: User, bob: User
) -> None:
    connect_app_store(outside, alice)
    do(client, product, "choose", "app-store", choice=APP_ID)
    his = make_product(str(bob.pk))
    following.follow(his, "app_store", Choice(APP_ID, "Slowtide"), NOW)
    following.end_fetch(his, {}, NOW)
    told = app_store.parse({"data": {"type": "webhookPings", "id": "1"}}, {})
    taken = following.take("app_store", replace(told, follow_id=APP_ID), NOW)
    assert [what.product_id for what in taken] == [product.product_id]


def test_a_webhook_is_signed_with_the_newest_of_rotated_keys(
    client: Client, product: Product, outside: Outside, alice: User, settings: Settings
) -> None:
    settings.TOKEN_KEYS = ["o" * 32]
    connect_app_store(outside, alice)
    do(client, product, "choose", "app-store", choice=APP_ID)
    settings.TOKEN_KEYS = ["n" * 32, "o" * 32]
    call_command("rotate_token_keys", stdout=StringIO())
    (hook,) = outside.app_store.hooks.values()
    name = app_store.hook_of(str(alice.pk), APP_ID)
    settings.TOKEN_KEYS = ["n" * 32]
    assert (hook.secret,) == app_store.hook_secrets(name)


def test_a_webhook_that_cannot_be_taken_away_is_said_and_in_nobodys_way(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_app_store(outside, alice)
    do(client, product, "choose", "app-store", choice=APP_ID)
    outside.standins.faults.append(Fault(path="/app-store-connect/.*", status=503, times=9))
    page = do(client, product, "unfollow", "app-store")
    assert "Its webhook may still be there." in page
    assert "hears nothing from App Store any more" in page
    assert following.followed(reread(product)) == []


def test_a_key_that_may_not_manage_webhooks_follows_all_the_same(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_app_store(outside, alice)
    outside.app_store.keys[KEY_ID].may_manage_webhooks = False
    page = do(client, product, "choose", "app-store", choice=APP_ID)
    assert "Slowtide follows Slowtide." in page
    assert "webhooks" in page
    assert reread(product).app_store_id == APP_ID
    do(client, product, "unfollow", "app-store")
    assert reread(product).app_store_id is None


# -- the product's page ----------------------------------------------------------------------------


def test_asking_now_and_leaving(client: Client, product: Product) -> None:
    following.follow(product, "github", Choice(str(SLOWTIDE), "slothpost-demo/slowtide"), NOW)
    assert "Being asked" in do(client, product, "ask")
    assert "hears nothing from GitHub any more" in do(client, product, "unfollow")
    assert following.followed(reread(product)) == []


def test_the_page_says_how_each_is_heard(
    client: Client, product: Product, outside: Outside, alice: User
) -> None:
    connect_github(outside, alice)
    do(client, product, "choose", choice=HARBOUR)
    address = reverse("product", args=[product.product_id])
    assert "Told within seconds" in words(client.get(address))
    account = connections.of_provider(str(alice.pk), "github")[0]
    connections.mark_broken(account, "It was revoked.", NOW)
    page = words(client.get(address))
    assert "Not told" in page
    assert "See Connections" in page
    gone = OutOfReach("GitHub no longer shows it to your account.")
    following.keep_up(reread(product), "github", HARBOUR, gone, NOW)
    assert "GitHub no longer shows it to your account." in words(client.get(address))


def test_the_page_says_what_is_followed_openly_and_how_it_was_read(
    client: Client, product: Product
) -> None:
    following.follow(product, "github", Choice(str(SLOWTIDE), "acme/<i>app</i>"), NOW)
    address = reverse("product", args=[product.product_id])
    page = words(client.get(address))
    assert "Asked before each draft" in page
    assert "acme/&lt;i&gt;app&lt;/i&gt;" in page
    state = {"since": 1, "error": "GitHub did not answer.", "note": "Only the newest 100."}
    dynamo.change(reread(product), None, fetched={"github": state})
    page = words(client.get(address))
    assert "GitHub did not answer." in page
    assert "Only the newest 100." in page


def test_an_unknown_source_or_button_changes_nothing(client: Client, product: Product) -> None:
    assert client.get(page_of(product, "gitlab")).status_code == 404
    before = reread(product).serialize()
    for action in ("", "explode", "\x00"):
        do(client, product, action)
    assert reread(product).serialize() == before


def test_words_never_to_mention_are_kept_with_the_product(client: Client, product: Product) -> None:
    form = {
        "name": "Slowtide",
        "never_mention": "Project Kraken\nacme",
        "private_detail": "full",
        "quiet_week": "skip",
        "late_approval": "hold",
        "late_limit_minutes": "120",
    }
    client.post(reverse("product_edit", args=[product.product_id]), form)
    fresh = reread(product)
    assert (fresh.never_mention.splitlines(), fresh.private_detail) == (
        ["Project Kraken", "acme"],
        "full",
    )
