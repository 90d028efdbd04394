"""Bluesky: accounts and their sessions, posts sent once whatever fails, cards and numbers."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread
from typing import Any

import pytest
import requests
from pytest_django import Settings

from integrations import connections
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import bluesky as outlet
from integrations.outlets import bluesky_account as provider
from integrations.outlets.base import Approved, Published, Sent
from integrations.outlets.bluesky_account import LAPSED, SECOND_FACTOR, STOPPED
from integrations.outlets.bluesky_card import card
from integrations.standins import bluesky as standin
from integrations.standins.bluesky import (
    APP_PASSWORD,
    DID,
    HANDLE,
    LINKED,
    OTHER_DID,
    OTHER_HANDLE,
    PASSWORD,
    Account,
    Bluesky,
)
from integrations.standins.server import Fault, StandIns
from integrations.tables import Connection
from slothpost_site.moments import to_ms
from tests.builders import reread

pytestmark = pytest.mark.usefixtures("store")

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TEXT = f"Tides & <waves> 🌊 by @{OTHER_HANDLE} → https://{LINKED}/a?b=1&c=2 #sailing"
XRPC = "/bluesky/xrpc/"
PUT, GET = f"{XRPC}com.atproto.repo.putRecord", f"{XRPC}com.atproto.repo.getRecord"
SIGN_IN = f"{XRPC}com.atproto.server.createSession"
REFRESH = f"{XRPC}com.atproto.server.refreshSession"
LOOK_UP = f"{XRPC}com.atproto.identity.resolveHandle"
CARD = "/bluesky/linked/.*"


class OwnServer(Bluesky):
    """A person's own server, at another host."""

    prefix = "/own"


@dataclass
class World:
    """Bluesky with a clock that stands still."""

    standins: StandIns
    bluesky: Bluesky
    own: OwnServer
    now: datetime = field(default=NOW)

    @property
    def account(self) -> Account:
        return self.bluesky.accounts[DID]

    def connect(self, user: str = "1", **typed: str) -> Connection:
        answer = {"handle": HANDLE, "password": APP_PASSWORD, "server": "", **typed}
        return provider.finish(user, answer, {}, self.now).connection

    def fail(self, path: str, **fault: Any) -> None:
        self.standins.faults.append(Fault(path=path, **fault))

    def refuse(self, path: str, error: str, status: int = 400, **fault: Any) -> None:
        body = json.dumps({"error": error, "message": f"It says {error}"})
        self.fail(path, status=status, body=body, **fault)

    def count(self, path: str) -> int:
        return sum(self.standins.count(method, path) for method in ("GET", "POST"))


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    standins = StandIns(site_url="http://127.0.0.1:9").start()
    own = OwnServer(standins, host="pds.example.com")
    found = World(standins, standin.add_to(standins, settings.DATA_DIR), own)
    standins.services.append(own)
    found.bluesky.clock = own.clock = lambda: found.now
    values = standin.settings_for(standins)
    hosts = json.loads(values.pop("OPERATOR_HOSTS"))
    settings.OPERATOR_HOSTS = {**hosts, "pds.example.com": own.url}
    for name, value in values.items():
        setattr(settings, name, value)
    yield found
    standins.stop()


def approved(account: Connection | None, text: str = TEXT, **more: Any) -> Approved:
    given: dict[str, Any] = {
        "user_id": "1",
        "product_id": "p",
        "product_name": "Tidewater",
        "product_link": "",
        "slug": "",
        "text": text,
        "slot_at": NOW,
        "key": "a-key",
        "account": account,
        "approved_at": NOW,
        "claimed_at": NOW,
    }
    return Approved(**{**given, **more})


def texts(world: World) -> list[str]:
    return [post.text for post in world.bluesky.posts]


def until_settled(world: World, post: Approved, looks: int = 6) -> Published | Failure:
    """What the publisher does: send again what was not sent, and look for what may have been."""
    outcome: Published | Failure = Unknown("never tried")
    kept: dict[str, Any] = {}
    for _ in range(looks):
        account = reread(post.account) if post.account else None
        post = replace(post, account=account, kept=dict(kept), keep=kept.update)
        try:
            return outlet.publish(post, world.now)
        except (Refused, NeedsReconnect) as failure:
            return failure
        except (TryLater, Unknown) as failure:
            outcome = failure
            repeat = post.is_repeat or isinstance(failure, Unknown)
        world.now += timedelta(minutes=2)
        post = replace(post, is_repeat=repeat, claimed_at=post.claimed_at if repeat else world.now)
    return outcome


# -- accounts --------------------------------------------------------------------------------------


def test_an_account_is_connected_once_it_was_read(world: World) -> None:
    account = world.connect()
    assert (account.key, account.account_name) == (f"bluesky#{DID}", f"@{HANDLE}")
    assert account.details == {"host": "bluesky.standin", "server": "bluesky.standin"}
    assert account.expires_at == to_ms(NOW + timedelta(hours=2))
    assert account.refresh_at == to_ms(NOW + timedelta(days=45))
    assert world.count(f"{XRPC}com.atproto.server.getSession") == 1


def test_the_password_is_not_kept(world: World) -> None:
    kept = connections.secrets_of(world.connect())
    assert sorted(kept) == ["refresh_token", "token"]
    assert not any(APP_PASSWORD in value for value in kept.values())


@pytest.mark.parametrize(
    "handle",
    [
        f"@{HANDLE}",
        f" {HANDLE.upper()} ",
        f"https://bsky.app/profile/{HANDLE}",
        f"\u2068{HANDLE}\u2069",
    ],
)
def test_a_handle_may_be_pasted_in_any_way(world: World, handle: str) -> None:
    assert world.connect(handle=handle).account_id == DID


@pytest.mark.parametrize(
    "handle",
    ["", "@", "slothpost-demo", "sam@example.com", "a b.example.com", "127.0.0.1", "ä.com"],
)
def test_what_is_no_handle_is_not_asked_for(world: World, handle: str) -> None:
    with pytest.raises(Refused, match=r"^Write the whole handle, such as name\.bsky\.social\.$"):
        world.connect(handle=handle)
    assert world.standins.calls == []


@pytest.mark.parametrize(
    "typed", [{"password": "wrong"}, {"handle": "nobody.example.com"}, {"handle": OTHER_HANDLE}]
)
def test_a_wrong_handle_or_password_connects_nothing(world: World, typed: dict[str, str]) -> None:
    with pytest.raises(Refused) as raised:
        world.connect(**typed)
    assert raised.value.reason == (
        "Bluesky does not know this handle with this password. If it is at a server of its own,"
        " name that too."
    )
    assert connections.of_provider("1", "bluesky") == []


def test_no_password_is_not_sent(world: World) -> None:
    with pytest.raises(Refused, match="Write an app password too"):
        world.connect(password=" ")
    assert world.standins.calls == []


def test_the_accounts_own_password_with_a_code_by_mail_is_told_from_an_app_password(
    world: World,
) -> None:
    with pytest.raises(Refused) as raised:
        world.connect(password=PASSWORD)
    assert raised.value.reason == SECOND_FACTOR


def test_an_account_that_was_taken_down_is_not_connected(world: World) -> None:
    world.account.status = "takendown"
    with pytest.raises(Refused) as raised:
        world.connect()
    assert raised.value.reason == STOPPED["AccountTakedown"]


def test_a_deactivated_account_is_not_connected(world: World) -> None:
    world.account.status = "deactivated"
    with pytest.raises(NeedsReconnect) as raised:
        world.connect()
    assert raised.value.reason == STOPPED["AccountDeactivated"]
    assert connections.of_provider("1", "bluesky") == []


def test_whoever_may_sign_in_no_more_is_told_how_long(world: World) -> None:
    world.bluesky.sign_in_limit = 1
    world.connect()
    with pytest.raises(TryLater) as raised:
        world.connect()
    assert raised.value.reason == (
        "Bluesky lets this account sign in no more for now: try again in 5 minutes."
    )


def test_a_server_of_ones_own_is_named(world: World) -> None:
    account = world.connect(server=" https://PDS.example.com/ ")
    assert account.details == {"host": "pds.example.com", "server": "pds.example.com"}
    outlet.publish(approved(account), NOW)
    assert ([post.text for post in world.own.posts], world.bluesky.posts) == ([TEXT], [])


def test_records_go_to_the_host_that_the_sign_in_names(world: World) -> None:
    world.bluesky.host = "pds.example.com"
    with pytest.raises(Refused):  # that host's sessions are its own here
        world.connect()
    assert world.standins.calls[-1].path == "/own/xrpc/com.atproto.server.getSession"


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("127.0.0.1", "is no public host"),
        ("pds.example.com:3000", "is no public host"),
        ("localhost", "is no public host"),
        ("localtest.me\n", "did not answer|not at a public address"),
        (LINKED, "acme.example answered with something that is no answer."),
        ("bsky.app", "bsky.app is no Bluesky server: leave that field empty"),
    ],
)
def test_a_server_that_is_none_gives_one_sentence(
    world: World, settings: Settings, server: str, reason: str
) -> None:
    nowhere = f"{world.standins.url}/nowhere"
    settings.OPERATOR_HOSTS = {**settings.OPERATOR_HOSTS, "bsky.app": nowhere}
    if server == LINKED:
        world.fail("/bluesky/linked/.*", status=200, body="<html>Hello</html>")
    with pytest.raises((Refused, TryLater), match=reason):
        world.connect(server=server)
    assert connections.of_provider("1", "bluesky") == []


BAD_SESSIONS: list[Any] = [
    *("", "null", "[]", "{}", '{"accessJwt": 1}', '{"accessJwt": "a", "refreshJwt": "b"}'),
    '{"accessJwt": "e30.e30.e30", "refreshJwt": "e30.e30.e30"}',
]


@pytest.mark.parametrize("body", BAD_SESSIONS)
@pytest.mark.parametrize("path", [SIGN_IN, f"{XRPC}com.atproto.server.getSession"])
def test_an_unreadable_session_connects_nothing(world: World, path: str, body: str) -> None:
    world.fail(path, status=200, body=body)
    with pytest.raises(TryLater):
        world.connect()
    assert connections.of_provider("1", "bluesky") == []


def test_connecting_again_replaces_the_session(world: World) -> None:
    first = world.connect()
    connections.mark_broken(first, "gone", NOW)
    again = world.connect()
    assert (again.works, len(connections.of_provider("1", "bluesky"))) == (True, 1)
    assert connections.secrets_of(again) != connections.secrets_of(first)


# -- sessions --------------------------------------------------------------------------------------


def test_in_the_third_hour_a_post_goes_out_with_a_renewed_session(world: World) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)
    outlet.publish(approved(account), world.now)
    assert (texts(world), world.count(REFRESH), world.count(SIGN_IN)) == ([TEXT], 1, 1)
    assert reread(account).expires_at == to_ms(world.now + timedelta(hours=2))


def test_fifty_posts_use_one_session(world: World) -> None:
    account = world.connect()
    for number in range(50):
        outlet.publish(approved(account, f"Number {number}", key=f"key {number}"), NOW)
    assert (len(texts(world)), world.count(SIGN_IN), world.count(REFRESH)) == (50, 1, 0)


def test_two_workers_renew_once_and_both_post(world: World) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)
    world.fail(REFRESH, times=1, delay=0.3, does_the_work=True, status=500)
    world.standins.faults.clear()

    def send(number: int) -> Published:
        return outlet.publish(approved(reread(account), f"N {number}", key=str(number)), world.now)

    with ThreadPoolExecutor(2) as workers:
        list(workers.map(send, range(2)))
    assert (sorted(texts(world)), world.count(REFRESH)) == (["N 0", "N 1"], 1)


@pytest.mark.parametrize("error", ["ExpiredToken", "InvalidToken"])
def test_a_token_refused_in_the_middle_is_renewed_once(world: World, error: str) -> None:
    account = world.connect()
    world.refuse(PUT, error)
    outlet.publish(approved(account), NOW)
    assert (texts(world), world.count(REFRESH), world.count(PUT)) == ([TEXT], 1, 2)


def test_a_renewal_whose_answer_was_lost_is_made_again(world: World) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)
    world.fail(REFRESH, hang_up=True, does_the_work=True)
    with pytest.raises(TryLater):
        outlet.publish(approved(account), world.now)
    world.now += timedelta(minutes=90)
    outlet.publish(approved(reread(account)), world.now)
    assert (texts(world), reread(account).works) == ([TEXT], True)


@pytest.mark.parametrize(("status", "times"), [(503, 1), (429, 1), (500, 1)])
def test_a_fault_while_renewing_is_no_dead_session(world: World, status: int, times: int) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)
    world.fail(REFRESH, status=status, times=times)
    with pytest.raises(TryLater):
        outlet.publish(approved(account), world.now)
    assert (texts(world), reread(account).works) == ([], True)


def test_a_revoked_app_password_ends_it_with_the_next_renewal(world: World) -> None:
    account = world.connect()
    world.bluesky.revoke(world.account)
    world.now += timedelta(hours=3)
    with pytest.raises(NeedsReconnect) as raised:
        outlet.publish(approved(account), world.now)
    assert (raised.value.reason, texts(world)) == (LAPSED, [])
    assert reread(account).broken == LAPSED


def test_an_account_taken_down_says_so(world: World) -> None:
    account = world.connect()
    world.bluesky.suspend(world.account)
    with pytest.raises(NeedsReconnect) as raised:
        outlet.publish(approved(account), NOW)
    assert raised.value.reason == STOPPED["AccountTakedown"]
    assert world.count(REFRESH) == 0


def test_renewing_ahead_of_time_needs_no_post(world: World) -> None:
    account = world.connect()
    world.now += timedelta(days=45)
    provider.renew(account, world.now)
    assert reread(account).refresh_at == to_ms(world.now + timedelta(days=45))
    world.now += timedelta(days=89)
    provider.renew(reread(account), world.now)
    assert reread(account).works


def test_after_ninety_days_of_silence_it_has_to_be_connected_again(world: World) -> None:
    account = world.connect()
    world.now += timedelta(days=91)
    with pytest.raises(NeedsReconnect):
        provider.renew(account, world.now)
    assert reread(account).broken == LAPSED


def test_a_check_notes_what_it_finds(world: World) -> None:
    account = world.connect()
    world.fail(f"{XRPC}com.atproto.server.getSession")
    with pytest.raises(TryLater):
        provider.check(account, NOW)
    assert reread(account).trouble == "Bluesky has a fault of its own (503)."
    provider.check(reread(account), NOW)
    assert reread(account).trouble is None
    world.bluesky.suspend(world.account)
    with pytest.raises(NeedsReconnect):
        provider.check(reread(account), NOW)
    assert reread(account).broken == STOPPED["AccountTakedown"]


@pytest.mark.parametrize("fails", [False, True])
def test_disconnecting_ends_the_session_and_names_what_is_left(world: World, fails: bool) -> None:
    account = world.connect()
    if fails:
        world.fail(f"{XRPC}com.atproto.server.deleteSession")
    left = provider.disconnect(account, NOW)
    assert left == (
        "The app password is not needed any more: delete it at bsky.app/settings/app-passwords."
    )
    assert connections.of_provider("1", "bluesky") == []
    assert len(world.bluesky.sessions) == int(fails)


# -- publishing ------------------------------------------------------------------------------------


def test_a_post_is_out_to_the_byte_with_its_links_and_its_card(world: World) -> None:
    published = outlet.publish(approved(world.connect()), NOW)
    (post,) = world.bluesky.posts
    assert (post.text, post.uri) == (TEXT, published.external_id)
    assert post.marks == [
        (f"@{OTHER_HANDLE}", OTHER_DID),
        (f"https://{LINKED}/a?b=1&c=2", f"https://{LINKED}/a?b=1&c=2"),
        ("#sailing", "#sailing"),
    ]
    assert post.card == {
        "uri": f"https://{LINKED}/a?b=1&c=2",
        "title": "Acme & its dark theme",
        "description": "Easy on the eyes.",
    }
    shown = requests.get(published.permalink, timeout=5)
    assert (shown.status_code, "by @slowboats.example.com" in shown.text) == (200, True)


def test_at_bluesky_itself_people_read_it_at_bsky_app(world: World, settings: Settings) -> None:
    account = world.connect()
    settings.OPERATOR_HOSTS = {"bluesky.standin": settings.OPERATOR_HOSTS["bluesky.standin"]}
    published = outlet.publish(approved(account, "Hello"), NOW)
    key = published.external_id.rpartition("/")[2]
    assert published.permalink == f"https://bsky.app/profile/{DID}/post/{key}"


def test_a_key_is_as_bluesky_makes_them() -> None:
    assert outlet.tid(1796040000000000, 7) == "3n3jon5bo222b"


def test_a_key_is_of_its_post_alone() -> None:
    posts = [
        approved(None, key=key, slot_at=NOW + timedelta(minutes=minutes))
        for key, minutes in product(map(str, range(20)), range(5))
    ]
    keys = [outlet.record_key(post) for post in posts]
    assert len(set(keys)) == 100
    assert keys == [outlet.record_key(replace(post, text="another")) for post in posts]


def test_hostile_text_arrives_as_it_is(world: World) -> None:
    text = '\u202eRTL\u202c שלום \\n "quotes" </script> 👨‍👩‍👧‍👦 e\u0301 \u2066x\u2069\n\n#שלום'
    outlet.publish(approved(world.connect(), text), NOW)
    assert texts(world) == [text]
    assert until_settled(world, approved(world.connect(), text, is_repeat=True))
    assert texts(world) == [text]


def test_what_is_too_long_is_refused_in_blueskys_words(world: World) -> None:
    with pytest.raises(Refused) as raised:
        outlet.publish(approved(world.connect(), "a" * 301), NOW)
    assert raised.value.reason == (
        "Bluesky refused: “Invalid app.bsky.feed.post record: Record/text must not be longer than"
        " 300 graphemes”"
    )


def test_three_hundred_graphemes_are_taken(world: World) -> None:
    outlet.publish(approved(world.connect(), "é" * 300), NOW)
    assert texts(world) == ["é" * 300]


def test_without_an_account_nothing_is_sent(world: World) -> None:
    with pytest.raises(Refused, match="Connect a Bluesky account first"):
        outlet.publish(approved(None), NOW)


def test_what_was_kept_is_kept_before_the_call(world: World) -> None:
    kept: list[int] = []
    outlet.publish(approved(world.connect(), keep=lambda _: kept.append(world.count(PUT))), NOW)
    assert kept == [0]


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"ratelimit-reset": str(int(NOW.timestamp()) + 90)}, timedelta(seconds=90)),
        ({"Retry-After": "30"}, timedelta(seconds=30)),
        ({"ratelimit-reset": "1"}, timedelta(seconds=1)),
        ({"ratelimit-reset": "9" * 11}, timedelta(days=1)),
        ({"ratelimit-reset": "soon"}, timedelta(minutes=5)),
        ({}, timedelta(minutes=5)),
    ],
)
def test_a_limit_says_how_long(world: World, headers: dict[str, str], after: timedelta) -> None:
    account = world.connect()
    world.fail(PUT, status=429, headers=headers)
    with pytest.raises(TryLater) as raised:
        outlet.publish(approved(account), NOW)
    assert (raised.value.after, texts(world)) == (after, [])


def test_the_hours_points_are_waited_for(world: World) -> None:
    account = world.connect()
    world.bluesky.points_per_hour = 3
    outlet.publish(approved(account), NOW)
    world.now += timedelta(minutes=15)
    with pytest.raises(TryLater) as raised:
        outlet.publish(approved(account, key="another"), world.now)
    assert raised.value.after == timedelta(minutes=45)


FAULTS: dict[str, dict[str, Any]] = {
    "hung up before": {"hang_up": True},
    "answer lost": {"hang_up": True, "does_the_work": True},
    "limited": {"status": 429, "headers": {"Retry-After": "60"}},
    "down": {"status": 503},
    "down after the work": {"status": 500, "does_the_work": True},
    "half an answer": {"status": 200, "body": '{"uri": "at://', "does_the_work": True},
    "another answer": {"status": 200, "body": '{"uri": "at://x"}', "does_the_work": True},
    "an empty answer": {"status": 200, "body": "", "does_the_work": True},
    "a page": {"status": 502, "body": "<html>Bad gateway</html>"},
    "no such thing": {"status": 404, "body": "<html>Not found</html>"},
    "expired": {"status": 400, "body": '{"error": "ExpiredToken", "message": "Token has expired"}'},
    "unauthorised": {"status": 401},
}
PLACES = {
    "put": [PUT],
    "put and get": [PUT, GET],
    "renewal": [REFRESH],
    "put and renewal": [PUT, REFRESH],
    "look-up": [LOOK_UP],
    "card": [CARD],
}


@pytest.mark.parametrize(("where", "fault"), list(product(PLACES, FAULTS)))
def test_whatever_fails_the_post_is_out_once(world: World, where: str, fault: str) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)  # so that the session is renewed first
    for path in PLACES[where]:
        world.fail(path, **FAULTS[fault])
    outcome = until_settled(world, approved(account, claimed_at=world.now))
    if "renewal" in where and fault in ("expired", "unauthorised"):
        assert isinstance(outcome, NeedsReconnect)
        assert texts(world) == []
    else:
        assert isinstance(outcome, Published)
        assert [post.uri for post in world.bluesky.posts] == [outcome.external_id]
        assert texts(world) == [TEXT]


def test_a_repeat_sees_a_post_that_is_out_without_a_token(world: World) -> None:
    account = world.connect()
    published = outlet.publish(approved(account), NOW)
    connections.mark_broken(account, "gone", NOW)
    assert outlet.publish(approved(reread(account), is_repeat=True), NOW) == published
    assert world.count(PUT) == 1


def test_a_post_accepted_late_is_sent_again_as_the_very_same(world: World) -> None:
    account = world.connect()
    world.bluesky.late = timedelta(minutes=5)
    world.fail(PUT, hang_up=True, does_the_work=True)
    outcome = until_settled(world, approved(account))
    world.now += timedelta(minutes=5)
    assert isinstance(outcome, Published)
    assert (texts(world), world.count(PUT)) == ([TEXT], 2)
    points = world.account.points
    assert len(points) == 2
    (record,) = world.account.records.values()
    assert (record.at, record.value["createdAt"]) == (NOW, "2026-12-01T09:00:00.000Z")


def test_a_repeat_sends_what_was_kept_though_the_page_changed(world: World) -> None:
    account = world.connect()
    world.fail(PUT, hang_up=True)
    world.fail(CARD, status=200, body="<title>As it was</title>")
    outcome = until_settled(world, approved(account))
    assert isinstance(outcome, Published)
    assert (world.bluesky.posts[0].card["title"], world.count(CARD)) == ("As it was", 1)


def test_what_an_earlier_attempt_kept_is_not_sent_in_a_later_one(world: World) -> None:
    account = world.connect()
    old: dict[str, Any] = {}
    world.fail(PUT, status=429)
    with pytest.raises(TryLater):
        outlet.publish(approved(account, "https://a.acme.example", keep=old.update), NOW)
    again = approved(
        reread(account), "Short", kept=old, is_repeat=True, claimed_at=NOW + timedelta(hours=1)
    )
    outlet.publish(again, NOW)
    (post,) = world.bluesky.posts
    assert (post.text, post.marks, post.card) == ("Short", [], {})


def test_an_attempt_that_broke_off_early_waits_for_no_page_again(world: World) -> None:
    outlet.publish(approved(world.connect(), is_repeat=True), NOW)
    (post,) = world.bluesky.posts
    assert (post.card["title"], world.count(CARD), world.count(LOOK_UP)) == (LINKED, 0, 0)


def test_the_same_key_with_another_text_is_still_one_post(world: World) -> None:
    account = world.connect()
    outlet.publish(approved(account, "First"), NOW)
    outlet.publish(approved(account, "Second", is_repeat=True), NOW)
    assert texts(world) == ["Second"]


def test_whether_it_is_out_may_be_unsaid_for_now(world: World) -> None:
    account = world.connect()
    world.refuse(GET, "RepoTakendown")
    with pytest.raises(TryLater) as raised:
        outlet.publish(approved(account, is_repeat=True), NOW)
    assert raised.value.reason == (
        "Whether it is out cannot be said now: Bluesky refused: “It says RepoTakendown”"
    )


def test_what_is_refused_is_said_in_blueskys_words(world: World) -> None:
    account = world.connect()
    world.refuse(PUT, "InvalidRequest")
    with pytest.raises(Refused) as raised:
        outlet.publish(approved(account), NOW)
    assert raised.value.reason == "Bluesky refused: “It says InvalidRequest”"


def test_no_more_than_ten_mentions_are_looked_up(world: World) -> None:
    text = " ".join(f"@a{number}.example.com" for number in range(12))
    outlet.publish(approved(world.connect(), text), NOW)
    assert world.count(LOOK_UP) == 10


# -- cards -----------------------------------------------------------------------------------------

PLAIN = {"uri": f"https://{LINKED}/", "title": LINKED, "description": ""}


@pytest.mark.parametrize(
    ("body", "title", "description"),
    [
        ("<title>Plain &amp; simple</title>", "Plain & simple", ""),
        ("<title>\n Two\n lines </title>", "Two lines", ""),
        ("<TITLE>Loud</TITLE><META NAME=Description CONTENT=word>", "Loud", "word"),
        ("<meta content='Its \"name\"' property='og:title'/>", 'Its "name"', ""),
        ('<meta property="og:title" content="1 > 0">', "1 > 0", ""),
        ('<meta property="og:title" content="">' + "<title>T</title>", "T", ""),
        ('<meta name="og:title" content="A"><meta name="og:title" content="B">', "A", ""),
        ("<title>" + "a" * 500 + "</title>", "a" * 299 + "…", ""),
        ("<title>\u202eturned</title>", "turned", ""),
        ("", LINKED, ""),
        ('{"json": true}', LINKED, ""),
        ("<title", LINKED, ""),
        (" " * 200_000 + "<title>Far down</title>", LINKED, ""),
    ],
)
def test_a_card_says_what_the_page_says(
    world: World, body: str, title: str, description: str
) -> None:
    world.fail(CARD, status=200, body=body)
    found = card(f"https://{LINKED}/", NOW)
    assert found["external"] == {**PLAIN, "title": title, "description": description}


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://169.254.169.254/latest/",
        "https://localhost/",
        "http://acme.example/",
        "https://acme.example:8000/",
        "https://nowhere.invalid/",
    ],
)
def test_what_is_not_looked_at_has_its_host_for_a_title(world: World, url: str) -> None:
    host = url.split("/")[2]
    assert card(url, NOW)["external"] == {"uri": url, "title": host, "description": ""}
    assert world.standins.calls == []


def test_a_slow_page_is_not_waited_for(world: World) -> None:
    world.fail(CARD, delay=4.0, status=200, body="<title>Late</title>")
    started = time.monotonic()
    assert card(f"https://{LINKED}/", NOW)["external"] == PLAIN
    assert time.monotonic() - started < 4


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<meta ",
        "<meta a='",
        '<meta a="',
        "<meta a=",
        "<title>",
        "<title ",
        "a ",
        "<meta a a=b ",
    ],
)
def test_a_hostile_page_takes_no_time(world: World, unit: str) -> None:
    world.fail(CARD, status=200, body=(unit * 200_000)[:200_000])
    started = time.process_time()
    card(f"https://{LINKED}/", NOW)
    assert time.process_time() - started < 10


# -- numbers ---------------------------------------------------------------------------------------


def sent(uri: str) -> Sent:
    return Sent(uri, "", None)


def test_numbers_are_those_that_bluesky_gives(world: World) -> None:
    published = outlet.publish(approved(world.connect()), NOW)
    world.bluesky.like(world.account)
    world.bluesky.like(world.account)
    assert outlet.numbers([sent(published.external_id)], NOW) == {
        published.external_id: {"likes": 2, "replies": 0, "reposts": 0, "quotes": 0}
    }
    world.account.records.clear()
    assert outlet.numbers([sent(published.external_id)], NOW) == {}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"posts": [{"uri": "at://a", "likeCount": -1, "replyCount": "2"}]}', {"at://a": {}}),
        ('{"posts": null}', {}),
        ('{"posts": [{"uri": "at://a", "likeCount": true}]}', {"at://a": {}}),
    ],
)
def test_what_is_no_number_is_left_out(world: World, body: str, found: dict[str, Any]) -> None:
    world.fail(f"{XRPC}app.bsky.feed.getPosts", status=200, body=body)
    assert outlet.numbers([sent("at://a")], NOW) == found


@pytest.mark.parametrize("body", ["[]", '{"posts": [1]}', '{"posts": {}}', "<html>"])
def test_unreadable_numbers_are_asked_for_later(world: World, body: str) -> None:
    world.fail(f"{XRPC}app.bsky.feed.getPosts", status=200, body=body)
    with pytest.raises(TryLater):
        outlet.numbers([sent("at://a")], NOW)


class Counting(BaseHTTPRequestHandler):
    asked: list[int] = []

    def do_GET(self) -> None:
        self.asked.append(self.path.count("uris="))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"posts": []}')

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 -- http.server's


def test_numbers_are_asked_for_twenty_five_posts_at_once(settings: Settings) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    settings.OPERATOR_HOSTS = {settings.BLUESKY_PUBLIC_HOST: here}
    Counting.asked = []
    outlet.numbers([sent(f"at://{number}") for number in range(60)], NOW)
    server.shutdown()
    server.server_close()
    assert Counting.asked == [25, 25, 10]


# -- the stand-in itself ---------------------------------------------------------------------------


def test_its_front_page_shows_posts_and_its_buttons_work(world: World) -> None:
    outlet.publish(approved(world.connect()), NOW)
    shown = requests.get(f"{world.bluesky.url}/", timeout=5).text
    assert "Tides &amp; &lt;waves&gt; 🌊" in shown
    for what in ("suspend", "revoke"):
        requests.post(
            f"{world.bluesky.url}/do", data={"number": DID, "what": what}, timeout=5
        ).raise_for_status()
    assert (world.account.status, world.bluesky.sessions) == ("takendown", {})
    assert world.bluesky.posts == []


def test_it_is_as_strict_as_bluesky_with_records(world: World) -> None:
    token = connections.secrets_of(world.connect())["token"]
    good = {"$type": standin.COLLECTION, "text": "Hi", "createdAt": "2026-12-01T09:00:00.000Z"}

    def put(rkey: str = "3n3jon5bo222b", **record: Any) -> tuple[int, dict[str, Any]]:
        body = {"repo": DID, "collection": standin.COLLECTION, "rkey": rkey}
        answer = requests.post(
            f"{world.standins.url}{PUT}",
            json={**body, "record": {**good, **record}},
            headers={"Authorization": f"Bearer {token}"},
            timeout=5,
        )
        return answer.status_code, answer.json()

    first, again = put(), put()
    assert (first[0], again[0]) == (200, 200)
    assert ("commit" in first[1], "commit" in again[1]) == (True, False)
    assert first[1]["cid"] == again[1]["cid"]
    wrong: list[dict[str, Any]] = [
        {"rkey": "self"},
        {"text": "a" * 301},
        {"text": None},
        {"createdAt": "2026-12-01"},
        {"embed": {"$type": "app.bsky.embed.external", "external": {"uri": "https://a.b"}}},
    ]
    assert [put(**each)[1].get("error") for each in wrong] == ["InvalidRequest"] * 5


def test_an_unknown_token_and_an_old_one_are_told_apart(world: World) -> None:
    token = connections.secrets_of(world.connect())["token"]
    world.now += timedelta(hours=2)
    url = f"{world.standins.url}{XRPC}com.atproto.server.getSession"
    answers = [
        requests.get(url, headers={"Authorization": f"Bearer {each}"}, timeout=5)
        for each in (token, "made-up")
    ]
    assert [(a.status_code, a.json()["error"]) for a in answers] == [
        (400, "ExpiredToken"),
        (400, "InvalidToken"),
    ]
