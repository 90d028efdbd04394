"""Threads: posts sent once whatever fails, in two steps, and what people make of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import threads as outlet
from integrations.outlets import threads_account as provider
from integrations.outlets.base import Approved, Piece, Published, Sent
from integrations.outlets.threads_account import NOT_ENOUGH
from integrations.outlets.threads_text import objection, pieces
from integrations.standins import threads as standin
from integrations.standins.server import Fault, StandIns
from integrations.standins.threads import PERSON, Container, Threads
from integrations.tables import Connection
from slothpost_site.dynamo import Conflict
from tests.builders import reread

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TEXT = (
    "Tides 🌊 (now offline) → https://acme.dev/a_(b)?c=1&d=e%20f\n\n#sailing \\n {for} <all> مرحبا"
)
API = "/threads/graph/v1.0"
BEGIN, PUT_OUT, SHOW = f"{API}/[0-9]+/threads", f"{API}/[0-9]+/threads_publish", f"{API}/[0-9]+"


@dataclass
class World:
    """Threads with a clock that stands still, and a post that is to go there."""

    standins: StandIns
    threads: Threads
    now: datetime = field(default=NOW)
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def callback(self) -> str:
        return self.threads.callback_url()

    def consent(self, answer: str = "allow", username: str = PERSON) -> dict[str, str]:
        """What the browser comes back with."""
        begun = provider.start("a-state", self.callback, {}, self.now)
        requests.get(begun.url, timeout=5).raise_for_status()
        asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
        form = {**asked, "username": username, "answer": answer}
        back = requests.post(begun.url, data=form, timeout=5, allow_redirects=False)
        came = parse_qs(urlsplit(back.headers["Location"]).query)
        assert came.pop("state") == ["a-state"]
        return {name: values[0] for name, values in came.items()}

    def finish(self, came: dict[str, str]) -> Connection:
        return provider.finish("1", came, {"callback_url": self.callback}, self.now).connection

    def connect(self) -> Connection:
        return self.finish(self.consent())

    def fail(self, path: str, **fault: Any) -> None:
        self.standins.faults.append(Fault(path=path, **fault))

    def approved(self, account: Connection, text: str = TEXT, **more: Any) -> Approved:
        return Approved(
            user_id="1",
            product_id="p",
            product_name="Tidewater",
            product_link="",
            slug="",
            text=text,
            slot_at=NOW,
            key="a-key",
            account=reread(account),
            approved_at=NOW,
            claimed_at=NOW,
            kept=dict(self.kept),
            keep=self.kept.update,
            **more,
        )

    def until_settled(self, account: Connection, text: str = TEXT) -> Published | Failure:
        """What the publisher does: send again what was not sent, and ask what may have been."""
        outcome: Published | Failure = Unknown("never tried")
        is_repeat = False
        for _ in range(6):
            try:
                return outlet.publish(self.approved(account, text, is_repeat=is_repeat), self.now)
            except (Refused, NeedsReconnect) as failure:
                return failure
            except TryLater as failure:
                outcome = failure
            except Unknown as failure:
                outcome, is_repeat = failure, True
            self.now += timedelta(minutes=2)
        return outcome

    def texts(self) -> list[str]:
        return [post.text for post in self.threads.posts]

    @property
    def where(self) -> Published:
        """The newest post, as it should have been told."""
        post = self.threads.posts[0]
        link = f"{self.standins.url}/threads/@{PERSON}/post/{post.shortcode}"
        return Published(post.id, link)

    @property
    def container(self) -> Container:
        return self.threads.containers[self.kept["container"]]


@pytest.fixture
def world(store: str, settings: Settings) -> Iterator[World]:
    standins = StandIns(site_url="http://127.0.0.1:9").start()
    found = World(standins, standin.add_to(standins, settings.DATA_DIR))
    found.threads.clock = lambda: found.now
    for name, value in standin.settings_for(standins).items():
        setattr(settings, name, value)
    yield found
    standins.stop()


@pytest.fixture
def account(world: World) -> Connection:
    return world.connect()


# -- publishing ------------------------------------------------------------------------------------

HOSTILE = [
    TEXT,
    "a",
    "  edges  ",
    "👩‍👩‍👧‍👦" * 20,
    "é e\u0301 \u200fمرحبا\u200e \u202eabc",  # noqa: RUF001
    "\"quotes\" 'and' <b>tags</b> &amp; &lt; \\ % + = ? #1 # ##",
    "access_token=x&text=y",
    "line\nline\n\n\nline",
    "a" * 500,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_text_is_out_once_to_the_byte_with_its_link(
    world: World, account: Connection, text: str
) -> None:
    assert outlet.publish(world.approved(account, text), world.now) == world.where
    assert world.texts() == [text]
    page = requests.get(world.where.permalink, timeout=5)
    assert page.status_code == 200


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_text_whose_answer_was_lost_is_found_again(
    world: World, account: Connection, text: str
) -> None:
    world.fail(PUT_OUT, does_the_work=True, hang_up=True)
    assert world.until_settled(account, text) == world.where
    assert world.texts() == [text]


FAULTS: dict[str, dict[str, Any]] = {
    "hung up before": {"hang_up": True},
    "answer lost": {"does_the_work": True, "hang_up": True},
    "limited": {"status": 429, "headers": {"Retry-After": "60"}},
    "limited by a code": {"status": 400, "body": '{"error": {"code": 4, "message": "Limit"}}'},
    "a hiccup": {"status": 400, "body": '{"error": {"code": 2, "message": "Oops"}}'},
    "a hiccup after it did": {
        "status": 400,
        "body": '{"error": {"code": 100, "is_transient": true, "message": "Oops"}}',
        "does_the_work": True,
    },
    "down": {"status": 503, "body": "<html>Down</html>"},
    "a fault after it did": {"status": 500, "does_the_work": True},
    "half an answer": {"status": 200, "body": '{"id": "18', "does_the_work": True},
    "an answer of another shape": {"status": 200, "body": '["18"]', "does_the_work": True},
    "an empty answer": {"status": 200, "body": "", "does_the_work": True},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("path", [BEGIN, SHOW, PUT_OUT])
def test_whatever_fails_at_whatever_call_it_is_out_once(
    world: World, account: Connection, path: str, fault: str
) -> None:
    world.fail(path, **FAULTS[fault])
    assert world.until_settled(account) == world.where
    assert world.texts() == [TEXT]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_link_that_was_not_told_is_looked_up_again(
    world: World, account: Connection, fault: str
) -> None:
    world.fail(SHOW, after=1, **FAULTS[fault])
    with pytest.raises(Unknown):
        outlet.publish(world.approved(account), world.now)
    assert outlet.publish(world.approved(account, is_repeat=True), world.now) == world.where
    assert world.texts() == [TEXT]


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_while_it_is_looked_up_it_stays_one(
    world: World, account: Connection, fault: str
) -> None:
    world.fail(PUT_OUT, does_the_work=True, hang_up=True)
    world.fail(BEGIN, method="GET", **FAULTS[fault])
    assert world.until_settled(account) == world.where
    assert world.texts() == [TEXT]


def test_a_post_that_was_accepted_and_is_seen_late_is_waited_for(
    world: World, account: Connection
) -> None:
    world.threads.late = timedelta(minutes=5)
    world.fail(PUT_OUT, does_the_work=True, hang_up=True)
    assert world.until_settled(account) == world.where
    assert world.texts() == [TEXT]


def test_an_older_post_of_the_same_words_is_not_taken_for_it(
    world: World, account: Connection
) -> None:
    world.now = NOW - timedelta(days=1)
    world.threads.accept(PERSON, TEXT)
    world.now = NOW
    world.fail(PUT_OUT, does_the_work=True, hang_up=True)
    assert world.until_settled(account) == world.where
    assert world.texts() == [TEXT, TEXT]


def test_a_container_is_kept_before_it_is_published(world: World, account: Connection) -> None:
    post = world.approved(account)

    def keep(kept: Any) -> None:
        raise Conflict("somebody else has it")

    with pytest.raises(Conflict):
        outlet.publish(replace(post, keep=keep), world.now)
    assert world.texts() == []
    assert world.standins.count("POST", PUT_OUT) == 0


def test_a_container_that_is_not_ready_is_waited_for(world: World, account: Connection) -> None:
    world.threads.takes = timedelta(seconds=90)
    with pytest.raises(TryLater) as waiting:
        outlet.publish(world.approved(account), world.now)
    assert waiting.value.after is None  # the account's other posts need not wait
    assert world.standins.count("POST", PUT_OUT) == 0
    world.now += timedelta(minutes=2)
    assert outlet.publish(world.approved(account), world.now) == world.where
    assert (world.texts(), len(world.threads.containers)) == ([TEXT], 1)


def test_a_finished_container_that_is_not_there_yet_is_tried_again(
    world: World, account: Connection
) -> None:
    world.threads.not_there = 2
    assert world.until_settled(account) == world.where
    assert (world.texts(), len(world.threads.containers)) == ([TEXT], 1)


def test_a_container_that_stays_away_is_replaced(world: World, account: Connection) -> None:
    world.threads.not_there = 6 + 1  # six attempts, and another
    assert isinstance(world.until_settled(account), TryLater)
    assert world.now - NOW == timedelta(minutes=12)
    assert outlet.publish(world.approved(account), world.now) == world.where
    assert (world.texts(), len(world.threads.containers)) == ([TEXT], 2)


def test_a_container_that_cannot_be_seen_is_waited_for(world: World, account: Connection) -> None:
    missing = '{"error": {"code": 24, "message": "The requested resource does not exist"}}'
    world.fail(SHOW, status=400, body=missing)
    assert world.until_settled(account) == world.where
    assert world.texts() == [TEXT]


@pytest.mark.parametrize("is_repeat", [True, False])
def test_a_container_that_lapsed_is_made_again(
    world: World, account: Connection, is_repeat: bool
) -> None:
    world.fail(PUT_OUT, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(world.approved(account), world.now)
    world.now += timedelta(days=1, minutes=1)
    post = world.approved(account, is_repeat=is_repeat)
    assert outlet.publish(post, world.now) == world.where
    assert (world.texts(), len(world.threads.containers)) == ([TEXT], 2)


def test_a_container_that_failed_is_made_again_once(world: World, account: Connection) -> None:
    world.fail(PUT_OUT, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(world.approved(account), world.now)
    world.container.error = "UNKNOWN"
    assert outlet.publish(world.approved(account), world.now) == world.where
    world.threads.spoils = "UNKNOWN"
    with pytest.raises(Refused, match="could not make a post of it: “UNKNOWN”"):
        outlet.publish(world.approved(account, "Another"), world.now)
    assert world.texts() == [TEXT]


def test_a_container_of_another_text_is_left_aside(world: World, account: Connection) -> None:
    """The owner said that it is not out, changed it, and approved it anew."""
    world.fail(PUT_OUT, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(world.approved(account), world.now)
    outlet.publish(world.approved(account, "Changed"), world.now)
    assert world.texts() == ["Changed"]


def test_what_its_owner_takes_for_lost_is_not_sent_again(world: World, account: Connection) -> None:
    world.fail(PUT_OUT, does_the_work=True, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(world.approved(account), world.now)
    assert outlet.publish(world.approved(account), world.now) == world.where
    assert world.texts() == [TEXT]


# -- what Threads refuses --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a" * 501, "Param text must be at most 500 characters long."),
        ("🌊" * 126, "Param text must be at most 500 characters long."),
        (" ".join(f"https://acme.dev/{n}" for n in range(6)), "THREADS_API__LINK_LIMIT_EXCEEDED"),
    ],
)
def test_a_refusal_is_in_its_own_words(
    world: World, account: Connection, text: str, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        outlet.publish(world.approved(account, text), world.now)
    advice = "Change the text, or post it by hand."
    assert refused.value.reason == f"Threads refused: “{words}” {advice}"
    assert world.texts() == []


def test_an_account_that_is_restricted_is_told_so(world: World, account: Connection) -> None:
    world.threads.restrict(PERSON)
    with pytest.raises(Refused, match="We restrict certain activity") as refused:
        outlet.publish(world.approved(account), world.now)
    assert refused.value.reason.endswith("Look at your account there first.")
    assert world.texts() == []


def test_the_251st_post_of_a_day_waits(world: World, account: Connection) -> None:
    for _ in range(250):
        world.threads.accept(PERSON, "again")
    with pytest.raises(TryLater) as waiting:
        outlet.publish(world.approved(account), world.now)
    assert waiting.value.after == timedelta(minutes=10)
    assert len(world.texts()) == 250


def test_a_revoked_account_has_to_be_connected_again(world: World, account: Connection) -> None:
    world.threads.take_back(PERSON)
    with pytest.raises(NeedsReconnect, match="connect it again"):
        outlet.publish(world.approved(account), world.now)
    assert not reread(account).works
    assert world.texts() == []


@pytest.mark.parametrize("path", [BEGIN, SHOW, PUT_OUT])
def test_a_token_that_is_refused_in_the_middle_is_renewed_once(
    world: World, account: Connection, path: str
) -> None:
    world.now += timedelta(days=2)
    world.fail(path, status=401, body='{"error": {"code": 190, "message": "Session expired"}}')
    assert outlet.publish(world.approved(account), world.now) == world.where
    assert world.texts() == [TEXT]
    assert world.standins.count("GET", "/threads/graph/refresh_access_token") == 1


def test_an_account_of_which_nothing_is_there_has_lapsed(world: World, account: Connection) -> None:
    missing = '{"error": {"code": 24, "message": "The requested resource does not exist"}}'
    world.fail(BEGIN, status=400, body=missing)
    with pytest.raises(NeedsReconnect):
        outlet.publish(world.approved(account), world.now)
    assert not reread(account).works


def test_a_missing_permission_needs_another_consent(world: World, account: Connection) -> None:
    for token in world.threads.tokens.values():
        token.scopes = ("threads_basic",)
    with pytest.raises(NeedsReconnect) as failure:
        outlet.publish(world.approved(account), world.now)
    assert failure.value.reason == NOT_ENOUGH
    assert world.standins.count("GET", "/threads/graph/refresh_access_token") == 0


def test_a_post_without_an_account_is_not_sent(world: World, account: Connection) -> None:
    with pytest.raises(Refused, match="Connect a Threads account first"):
        outlet.publish(replace(world.approved(account), account=None), world.now)


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "wrong"),
    [
        ([f"https://acme.dev/{n}" for n in range(5)], ""),
        (["https://acme.dev/a"] * 9, ""),
        (
            [f"http://acme.dev/{n}" for n in range(7)],
            "Threads takes 5 different links in a post: this has 7.",
        ),
    ],
)
def test_five_different_links_are_taken(links: list[str], wrong: str) -> None:
    assert objection(" and ".join(links)) == wrong


def test_a_text_is_shown_as_threads_links_it() -> None:
    link = "https://acme.dev/a_(b)"
    assert pieces(f"Hi @slow.boats. See ({link}), #tides and #boats me@acme.dev") == [
        Piece("Hi "),
        Piece("@slow.boats", "mention"),
        Piece(". See ("),
        Piece(link, "link", link),
        Piece("), "),
        Piece("#tides", "tag"),
        Piece(" and #boats me@acme.dev"),
    ]


SNIPPETS = ["https://", "acme.dev/", "(a)", "@a", "@a.", "#", "#a", "#1", " ", "\n", "🌊", ".", "&"]


@given(st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=3), max_size=20).map("".join))
def test_the_pieces_of_any_text_are_the_text(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text


# -- numbers ---------------------------------------------------------------------------------------


def test_the_numbers_of_posts_are_read(world: World, account: Connection) -> None:
    first, second, gone = (world.threads.accept(PERSON, text) for text in "abc")
    first.numbers = {"views": 120, "likes": 7, "replies": 2, "reposts": 1, "shares": 3}
    world.threads.remove(gone.id)
    sent = [Sent(post.id, "", account) for post in (first, second, gone)]
    nothing = dict.fromkeys(("views", "likes", "replies", "reposts", "quotes", "shares"), 0)
    assert outlet.OUTLET.numbers is not None
    assert outlet.OUTLET.numbers(sent, world.now) == {
        first.id: {**nothing, **first.numbers},
        second.id: nothing,
    }


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ('{"data": [{"name": "likes", "total_value": {"value": 4}}]}', {"likes": 4}),
        ('{"data": [{"name": "likes", "values": [{"value": "4"}]}]}', {}),
        ('{"data": [{"name": "likes", "values": [4]}, {"values": [{"value": -1}]}]}', {}),
        ('{"data": []}', {}),
    ],
)
def test_only_what_is_a_number_counts(
    world: World, account: Connection, body: str, numbers: dict[str, int]
) -> None:
    post = world.threads.accept(PERSON, "a")
    world.fail(f"{SHOW}/insights", status=200, body=body)
    found = outlet.numbers([Sent(post.id, "", account)], world.now)
    assert found == ({post.id: numbers} if numbers else {})


@pytest.mark.parametrize("body", ["<html>", "[]", '{"data": 1}', '{"data": [1]}'])
def test_numbers_that_are_none_are_asked_for_later(
    world: World, account: Connection, body: str
) -> None:
    world.fail(f"{SHOW}/insights", status=200, body=body)
    with pytest.raises(TryLater):
        outlet.numbers([Sent("1", "", account)], world.now)


def test_whoever_may_not_read_numbers_may_still_post(world: World, account: Connection) -> None:
    world.fail(f"{SHOW}/insights", status=403, body='{"error": {"code": 10, "message": "No"}}')
    with pytest.raises(NeedsReconnect):
        outlet.numbers([Sent("1", "", account)], world.now)
    assert reread(account).works
