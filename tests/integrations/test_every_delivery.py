"""Every delivery that was recorded, signed and sent through the real door, twice: none is a fault
of ours, and what matters is one activity."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from integrations import connections
from integrations import deliveries as logged
from integrations.sources import SOURCES, app_store
from integrations.sources.base import Choice
from integrations.tables import Connection
from products import activity, following
from products.tables import Product
from tests.builders import make_product, reread
from tests.integrations.recorded import deliveries

FIXTURES = Path(__file__).parent.parent / "fixtures"
Sent = tuple[str, str, dict[str, Any]]  # the source, GitHub's event, the payload

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]


def recorded(source: str) -> dict[str, Sent]:
    """The files of a source, one for each event, by their names."""
    return {
        path.stem: (source, path.stem.partition(".")[0], json.loads(path.read_text()))
        for path in sorted((FIXTURES / source).glob("*.json"))
    }


FILES = {f"{source}/{name}": sent for source in SOURCES for name, sent in recorded(source).items()}


@pytest.fixture
def follower(settings: Settings) -> Iterator[Product]:
    """A product that follows what the files are about, where everybody may see everything."""
    cache.clear()
    settings.GITHUB_WEBHOOK_SECRET = settings.VERCEL_CLIENT_SECRET = "new, old"
    settings.APP_STORE_WEBHOOK_SECRET = "new, old"
    settings.FOLLOW_PRIVATE_REPOSITORIES = True
    product = make_product(now=timezone.now())
    now = timezone.now()
    following.follow(product, "github", Choice("912345678", "slothpost-demo/slowtide"), now)
    following.follow(product, "vercel", Choice("prj_1", "app"), now)
    following.follow(product, "app_store", Choice("6441234567", "Slowtide"), now)
    yield product
    cache.clear()


def send(sent: Sent, number: int, signed_by: str = "old") -> HttpResponse:
    source, event, payload = sent
    body = json.dumps(payload).encode()
    module = SOURCES[source]
    headers = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": f"guid-{number}",
        module.SIGNATURE_HEADER: module.signature(body, signed_by),
    }
    address = f"/webhooks/{module.PATH}/"
    return Client().post(address, body, "application/json", headers=headers)


def recorded_of(product: Product) -> dict[str, str | None]:
    """What was recorded, by the fact, with why it is ignored."""
    found = activity.window(product.product_id, timezone.now())
    return {item.key.partition("#")[2]: item.ignored for item in found}


def test_there_is_a_file_for_every_event_that_is_read() -> None:
    assert {name.partition("/")[0] for name in FILES} == set(SOURCES)
    assert len(FILES) > 50


@pytest.mark.parametrize("name", FILES)
def test_a_recorded_delivery_is_taken_once_by_either_secret(name: str, follower: Product) -> None:
    first = send(FILES[name], 1, "new")
    assert first.status_code == 200, first.content
    once = recorded_of(follower)
    assert len(once) <= 2  # a push brought two commits
    again = send(FILES[name], 1, "old")
    assert (again.status_code, again.json()["note"]) == (200, "seen before")
    assert send(FILES[name], 2).status_code == 200  # by another hook
    assert recorded_of(follower) == once
    assert send(FILES[name], 3, "another").status_code == 401


def test_all_of_them_in_any_order_are_one_activity_for_each_fact(follower: Product) -> None:
    told = [name for name in FILES if not name.startswith(("github/inst", "github/repository"))]
    told = [name for name in told if "removed" not in name]
    for number, name in enumerate(sorted(told, reverse=True)):
        assert send(FILES[name], number).status_code == 200
    backwards = recorded_of(follower)
    for number, name in enumerate(sorted(told)):
        assert send(FILES[name], 1000 + number).status_code == 200
    assert recorded_of(follower) == backwards
    pull, bot = 105, 106
    assert {key: ignored for key, ignored in backwards.items() if "commit" not in key} == {
        f"github#pr:{pull}": "labelled “nopost”",
        f"github#pr:{bot}": "made by a bot (dependabot)",
        "github#release:91234567801": None,
        "github#tag:v3.0.0": None,
        "vercel#deployment:dpl_1": None,
        "vercel#preview:dpl_2": "a preview deployment",
    }
    assert len(backwards) == 8


@pytest.mark.parametrize("number", range(0, len(deliveries()), 12))
def test_every_payload_of_githubs_own_examples_is_answered(number: int, follower: Product) -> None:
    for at, (event, payload) in enumerate(deliveries()[number : number + 12]):
        sent = ("github", event, payload)
        for guid in (number + at, number + at, 10_000 + number + at):
            answer = send(sent, guid)
            assert answer.status_code in {200, 400}, (event, answer.content)
    assert recorded_of(follower) == {}  # none is about what this product follows


def test_what_githubs_own_examples_tell_is_one_activity_for_each_fact(follower: Product) -> None:
    now = timezone.now()
    following.follow(follower, "github", Choice("186853002", "Codertocat/Hello-World"), now)
    told = [(e, p) for e, p in deliveries() if e in ("create", "push", "release", "pull_request")]
    for number, (event, payload) in enumerate([*told, *reversed(told)]):
        assert send(("github", event, payload), number).status_code == 200
    found = activity.list_for(follower.product_id).items
    assert sorted(item.key.partition("#")[2] for item in found) == [
        "github#commit:6113728f27ae82c7b1a177c8d03f9e96e0adf246@186853002",
        "github#release:17372790@186853002",
        "github#tag:simple-tag@186853002",
    ]


# -- whom it reaches -------------------------------------------------------------------------------


def account_of(user: str, number: str, key: str) -> Connection:
    account = connections.Account(number, "slothpost-demo", key)
    grant = connections.Grant({"token": "t"})
    return connections.connect(user, key.partition("#")[0], account, grant, now=timezone.now())


def made_private(name: str) -> Sent:
    source, event, payload = copy.deepcopy(FILES[name])
    if source == "github":
        payload["repository"]["private"] = True
    return source, event, payload


@pytest.mark.parametrize("name", ["github/pull_request.merged", "vercel/deployment.promoted"])
def test_a_private_delivery_reaches_and_is_shown_to_who_may_see_it_alone(
    name: str, follower: Product, settings: Settings
) -> None:
    settings.FOLLOW_PRIVATE_REPOSITORIES = False
    sent = made_private(name)
    via = account_of("2", "1", f"{sent[0]}#1")
    insider, thief = make_product("2", now=timezone.now()), make_product("3", now=timezone.now())
    number = "912345678" if sent[0] == "github" else "prj_1"
    for product in (insider, thief):  # a connection's key is no secret, and another's is no use
        following.follow(product, sent[0], Choice(number, "x", via.key, True), timezone.now())
    assert send(sent, 1).json()["taken"] == 1
    reached = {
        product.user_id: (
            len(recorded_of(product)),
            len(logged.list_for_product(product.product_id).items),
        )
        for product in (follower, insider, thief)
    }
    assert reached == {"1": (0, 0), "2": (1, 1), "3": (0, 0)}
    connections.mark_broken(via, "It was revoked.", timezone.now())
    sent[2]["id"] = "another"
    assert send(sent, 2).json()["taken"] == 0


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("installation.deleted", "installation:50001", "SlothPost was uninstalled from"),
        ("installation.suspend", "installation:50001", "SlothPost was suspended at"),
        ("github_app_authorization.revoked", "user:7001", "You took SlothPost's authorisation"),
    ],
)
def test_an_end_at_github_breaks_everybodys_connection_of_it_and_no_other(
    name: str, key: str, reason: str, follower: Product
) -> None:
    hers, his = account_of("1", key, f"github#{key}"), account_of("2", key, f"github#{key}")
    other = account_of("1", "installation:50002", "github#installation:50002")
    assert send(FILES[f"github/{name}"], 1).status_code == 200
    assert [str(reread(each).broken).startswith(reason) for each in (hers, his)] == [True, True]
    assert reread(other).broken is None


def test_an_installation_whose_suspension_is_lifted_works_again(follower: Product) -> None:
    account = account_of("1", "installation:50001", "github#installation:50001")
    for number, (action, works) in enumerate([("suspend", False), ("unsuspend", True)]):
        assert send(FILES[f"github/installation.{action}"], number).status_code == 200
        assert reread(account).works is works


def test_a_suspension_lifted_does_not_bring_back_what_was_uninstalled(follower: Product) -> None:
    account = account_of("1", "installation:50001", "github#installation:50001")
    for number, action in enumerate(("deleted", "unsuspend")):
        assert send(FILES[f"github/installation.{action}"], number).status_code == 200
    assert str(reread(account).broken).startswith("SlothPost was uninstalled")


def test_an_apps_own_hook_takes_what_its_own_secret_signed(
    follower: Product, settings: Settings
) -> None:
    settings.TOKEN_KEYS = ["n" * 32, "o" * 32]
    hook = app_store.hook_of("1", "6441234567")
    body = json.dumps(FILES["app_store/state.in-the-store"][2]).encode()
    fetch = reread(follower)
    following.end_fetch(fetch, {}, timezone.now())

    def post(secret: str, address: str = hook) -> int:
        headers = {app_store.SIGNATURE_HEADER: app_store.signature(body, secret)}
        path = f"/webhooks/app-store/{address}/"
        return Client().post(path, body, "application/json", headers=headers).status_code

    other = app_store.hook_of("2", "6441234567")
    assert post(app_store.hook_secrets(other)[0]) == 401
    assert post("new") == 401
    assert post(app_store.hook_secrets(hook)[0], "bm8") == 401
    assert reread(follower).fetch_at is None
    assert [post(secret) for secret in app_store.hook_secrets(hook)] == [200, 200]
    assert reread(follower).fetch_at is not None  # what it is about is asked for
