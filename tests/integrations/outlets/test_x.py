"""X: accounts, posts sent once whatever fails, their price and their numbers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from pytest_django import Settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import x as outlet
from integrations.outlets import x_account as provider
from integrations.outlets.base import Approved, Piece, Price, Published, Sent
from integrations.outlets.x_account import LOST, NO_CREDIT, OPERATORS_FAULT
from integrations.standins import x as standin
from integrations.standins.server import Fault, StandIns
from integrations.standins.x import COMPANY, PERSON, Post, X
from integrations.tables import Connection
from slothpost_site.moments import to_ms
from tests.builders import reread

pytestmark = pytest.mark.usefixtures("store")

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TEXT = "Tides & <waves> 🌊 now work offline → acme.dev/a?b=1&c=2 #sailing"
POSTS, LOOKS = "/x/api/2/tweets", "/x/api/2/users/.*/tweets"
TOKENS = "/x/api/2/oauth2/token"
DUPLICATE = (
    '{"detail":"You are not allowed to create a Tweet with duplicate content.",'
    '"type":"about:blank","title":"Forbidden","status":403}'
)


@dataclass
class World:
    """X with a clock that stands still, and the way there and back of a person's browser."""

    standins: StandIns
    x: X
    now: datetime = field(default=NOW)

    @property
    def callback(self) -> str:
        return self.x.callback_url()

    def consent(self, answer: str = "allow", account: str = PERSON) -> dict[str, str]:
        """What the browser comes back with, and what its session kept."""
        begun = provider.start("a-state", self.callback, {}, self.now)
        shown = requests.get(begun.url, timeout=5)
        shown.raise_for_status()
        asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
        form = {**asked, "account": account, "answer": answer}
        back = requests.post(begun.url, data=form, timeout=5, allow_redirects=False)
        came = parse_qs(urlsplit(back.headers["Location"]).query)
        assert came.pop("state") == ["a-state"]
        return {**{name: values[0] for name, values in came.items()}, **begun.kept}

    def finish(self, came: dict[str, str], user: str = "1") -> Connection:
        kept = {"verifier": came.get("verifier", ""), "callback_url": self.callback}
        answer = {name: value for name, value in came.items() if name != "verifier"}
        return provider.finish(user, answer, kept, self.now).connection

    def connect(self, account: str = PERSON) -> Connection:
        return self.finish(self.consent(account=account))

    def fail(self, path: str, **fault: object) -> None:
        self.standins.faults.append(Fault(path=path, **fault))  # type: ignore[arg-type]


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    standins = StandIns(site_url="http://127.0.0.1:9").start()
    found = World(standins, standin.add_to(standins, settings.DATA_DIR))
    found.x.clock = lambda: found.now
    for name, value in standin.settings_for(standins).items():
        setattr(settings, name, value)
    yield found
    standins.stop()


def approved(account: Connection, text: str = TEXT, **more: object) -> Approved:
    return Approved(
        user_id="1",
        product_id="p",
        product_name="Tidewater",
        product_link="",
        slug="",
        text=text,
        slot_at=NOW,
        key="a-key",
        account=account,
        approved_at=NOW,
        claimed_at=NOW,
        **more,  # type: ignore[arg-type]
    )


def link_of(world: World, post: Post) -> str:
    return f"{world.standins.url}/x/{post.account}/status/{post.id}"


def texts(world: World) -> list[str]:
    return [post.text for post in world.x.posts]


def until_settled(world: World, post: Approved, looks: int = 6) -> Published | Failure:
    """What the publisher does: send again what was not sent, and look for what may have been."""
    outcome: Published | Failure = Unknown("never tried")
    for _ in range(looks):
        post = replace(post, account=reread(post.account) if post.account else None)
        try:
            return outlet.publish(post, world.now)
        except (Refused, NeedsReconnect) as failure:
            return failure
        except TryLater as failure:
            outcome = failure
        except Unknown as failure:
            outcome, post = failure, replace(post, is_repeat=True)
        world.now += timedelta(minutes=2)
    return outcome


# -- accounts --------------------------------------------------------------------------------------


def test_an_account_is_connected_once_it_was_read(world: World) -> None:
    account = world.connect()
    assert (account.key, account.account_name) == ("x#44001", "@slothpost_demo")
    assert account.expires_at == to_ms(NOW + timedelta(hours=2))
    assert account.refresh_at == to_ms(NOW + timedelta(days=120))
    assert account.scopes == ["tweet.read", "tweet.write", "users.read", "offline.access"]
    assert world.standins.count("GET", "/x/api/2/users/me") == 1


def test_a_no_connects_nothing(world: World) -> None:
    with pytest.raises(Cancelled):
        world.finish(world.consent("deny"))
    assert connections.of_provider("1", "x") == []


@pytest.mark.parametrize("answer", [{}, {"code": ""}, {"error": "invalid_scope"}])
def test_coming_back_without_a_code_begins_again(world: World, answer: dict[str, str]) -> None:
    with pytest.raises(ExpiredLink):
        world.finish(answer)


def test_a_code_is_good_once_for_half_a_minute_and_for_who_began(world: World) -> None:
    used, foreign, late = world.consent(), world.consent(), world.consent()
    world.finish(used)
    foreign["verifier"] = "another browser's"
    for came in (used, foreign, {"code": "made-up"}):
        with pytest.raises(ExpiredLink):
            world.finish(came)
    world.now += timedelta(seconds=31)
    with pytest.raises(ExpiredLink):
        world.finish(late)


def test_an_operators_wrong_secret_is_nobody_elses_fault(world: World, settings: Settings) -> None:
    account = world.connect()
    settings.X_CLIENT_SECRET = "wrong"
    for call in (lambda: world.connect(), lambda: provider.renew(account, world.now)):
        with pytest.raises(TryLater, match="whoever runs this SlothPost"):
            call()
    assert reread(account).works


@pytest.mark.parametrize(
    "fault", [{"status": 503}, {"hang_up": True}, {"status": 200, "body": "<html>"}]
)
@pytest.mark.parametrize("path", [TOKENS, "/x/api/2/users/me"])
def test_what_cannot_be_read_is_not_connected(
    world: World, path: str, fault: dict[str, object]
) -> None:
    came = world.consent()
    world.fail(path, **fault)
    with pytest.raises(TryLater):
        world.finish(came)
    assert connections.of_provider("1", "x") == []


def test_it_is_offered_where_the_operator_has_set_it_up(settings: Settings) -> None:
    settings.X_CLIENT_ID, settings.X_CLIENT_SECRET = "id", "secret"
    assert provider.is_configured()
    settings.X_CLIENT_SECRET = ""
    assert not provider.is_configured()


def test_a_consent_page_refuses_what_x_would(world: World) -> None:
    good = urlsplit(provider.start("a-state", world.callback, {}, world.now).url)
    query = {name: values[0] for name, values in parse_qs(good.query).items()}
    for wrong in (
        {"redirect_uri": "https://evil.example/"},
        {"client_id": "another"},
        {"code_challenge_method": "plain"},
        {"scope": "tweet.read everything"},
        {"state": "s" * 501},
    ):
        url = good._replace(query=urlencode({**query, **wrong})).geturl()
        assert requests.get(url, timeout=5).status_code == 400


def test_a_lapsed_token_is_renewed_once_for_two_workers(world: World) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)
    both = [approved(reread(account), text) for text in ("One.", "Two.")]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda post: outlet.publish(post, world.now), both))
    assert sorted(texts(world)) == ["One.", "Two."]
    assert len({published.external_id for published in done}) == 2
    assert world.standins.count("POST", TOKENS) == 2  # to connect, and to renew


def test_a_token_that_is_refused_early_is_renewed_and_the_post_goes_out(world: World) -> None:
    account = world.connect()
    world.x.tokens[connections.secrets_of(account)["token"]].until = NOW
    assert outlet.publish(approved(account), NOW).permalink == link_of(world, world.x.posts[0])
    assert texts(world) == [TEXT]


def test_a_revoked_account_is_broken_and_nothing_is_sent(world: World) -> None:
    account = world.connect()
    world.x.take_back(PERSON)
    with pytest.raises(NeedsReconnect) as refused:
        outlet.publish(approved(account), NOW)
    assert (refused.value.reason, reread(account).broken) == (LOST, LOST)
    assert texts(world) == []
    mended = world.connect()
    assert mended.works
    outlet.publish(approved(mended), NOW)
    assert texts(world) == [TEXT]


def test_a_token_that_is_refused_twice_breaks_the_account(world: World) -> None:
    account = world.connect()
    world.fail(POSTS, status=401, times=2)
    with pytest.raises(NeedsReconnect):
        outlet.publish(approved(account), NOW)
    assert (reread(account).broken, texts(world)) == (LOST, [])


@pytest.mark.parametrize("fault", [{"status": 503}, {"hang_up": True}, {"status": 429}])
def test_a_fault_while_renewing_is_no_dead_account(world: World, fault: dict[str, object]) -> None:
    account = world.connect()
    world.now += timedelta(hours=3)
    world.fail(TOKENS, **fault)
    with pytest.raises(TryLater):
        outlet.publish(approved(account), world.now)
    assert reread(account).works
    outlet.publish(approved(reread(account)), world.now)
    assert texts(world) == [TEXT]


def test_renewing_ahead_of_time_keeps_the_account_alive(world: World) -> None:
    account = world.connect()
    before = connections.secrets_of(account)
    world.now += timedelta(days=120)
    provider.renew(account, world.now)
    after = connections.secrets_of(reread(account))
    assert not set(before.values()) & set(after.values())
    assert reread(account).refresh_at == to_ms(world.now + timedelta(days=120))
    provider.check(reread(account), world.now)


def test_a_check_tells_health(world: World) -> None:
    account = world.connect()
    world.fail("/x/api/2/users/me", status=503)
    with pytest.raises(TryLater):
        provider.check(account, NOW)
    assert reread(account).trouble == "X has a fault of its own (503)."
    provider.check(account, NOW)
    assert reread(account).trouble is None
    world.x.take_back(PERSON)
    with pytest.raises(NeedsReconnect):
        provider.check(account, NOW)
    assert reread(account).broken == LOST


def test_disconnecting_takes_the_tokens_back(world: World) -> None:
    account = world.connect()
    assert provider.disconnect(account, NOW) == ""
    assert (world.x.tokens, world.x.refresh_tokens) == ({}, {})
    assert connections.of_provider("1", "x") == []


def test_disconnecting_says_what_is_left_where_x_does_not_answer(world: World) -> None:
    account = world.connect()
    world.fail("/x/api/2/oauth2/revoke", status=503)
    assert "/settings/connected_apps" in provider.disconnect(account, NOW)
    assert connections.of_provider("1", "x") == []


# -- publishing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "a" * 256 + " https://acme.dev/" + "b" * 200,
        "🇬🇧" * 140,
        "שלום \u202eאבג\u202c \\n \\u0041 \"quoted\" 'x' {%s}\n\n\tend",
        "cafe\u0301 &amp; &#38; </script><b>",
    ],
)
def test_the_text_goes_out_as_approved_to_the_byte(world: World, text: str) -> None:
    published = outlet.publish(approved(world.connect(COMPANY), text), NOW)
    (post,) = world.x.posts
    assert (post.text, post.account) == (text, COMPANY)
    assert published == Published(post.id, link_of(world, post))
    assert requests.get(published.permalink, timeout=5).status_code == 200


SENDING = {
    "refused by a proxy": {"status": 503},
    "a fault after the work": {"status": 500, "does_the_work": True},
    "gone without an answer": {"hang_up": True},
    "answer lost": {"hang_up": True, "does_the_work": True},
    "half an answer": {"status": 201, "body": '{"data":{"id":"19', "does_the_work": True},
    "no id": {"status": 201, "body": '{"data":{}}', "does_the_work": True},
    "no answer": {"status": 200, "body": "", "does_the_work": True},
    "errors only": {"status": 200, "body": '{"errors":[{"message":"?"}]}', "does_the_work": True},
    "limited": {"status": 429, "headers": {"x-rate-limit-remaining": "0"}},
    "a token refused": {"status": 401},
    "no credit": {"status": 402, "body": '{"title":"CreditsDepleted"}'},
}
LOOKING = {
    "seen": {"times": 0},
    "refused by a proxy": {"status": 503},
    "gone": {"hang_up": True},
    "limited": {"status": 429},
    "a token refused": {"status": 401},
    "forbidden": {"status": 403, "body": '{"detail":"No."}'},
    "not there": {"status": 404},
    "half an answer": {"body": '{"data":[{"id"', "status": 200},
    "errors only": {"body": '{"errors":[{"title":"Not Found Error"}]}', "status": 200},
    "another shape": {"body": '{"data":[{"id":5}],"meta":{}}', "status": 200},
}


@pytest.mark.parametrize(
    ("sending", "looking"),
    [
        *product(SENDING, ["seen"]),
        *product(["answer lost", "gone without an answer"], LOOKING),
    ],
)
def test_whatever_fails_the_post_is_out_once(world: World, sending: str, looking: str) -> None:
    account = world.connect()
    world.fail(POSTS, method="POST", **SENDING[sending])
    world.fail(LOOKS, **LOOKING[looking])
    outcome = until_settled(world, approved(account))
    (post,) = world.x.posts
    assert outcome == Published(post.id, link_of(world, post))
    assert post.text == TEXT


def test_what_was_sent_is_found_and_not_sent_again(world: World) -> None:
    account = world.connect()
    world.x.accept(PERSON, "Another post.")
    world.fail(POSTS, method="POST", **SENDING["answer lost"])
    with pytest.raises(Unknown):
        outlet.publish(approved(account), NOW)
    mine = world.x.posts[0]
    found = outlet.publish(approved(account, is_repeat=True), NOW + timedelta(minutes=1))
    assert found == Published(mine.id, link_of(world, mine))
    assert world.standins.count("POST", POSTS) == 1


def test_posts_that_differ_in_their_link_are_told_apart(world: World) -> None:
    account = world.connect()
    world.x.accept(PERSON, "New: https://acme.dev/1")
    outlet.publish(approved(account, "New: https://acme.dev/2", is_repeat=True), NOW)
    assert texts(world) == ["New: https://acme.dev/2", "New: https://acme.dev/1"]


def test_what_x_shows_late_is_looked_for_until_it_is_there(world: World) -> None:
    account = world.connect()
    world.x.late = timedelta(minutes=5)
    world.fail(POSTS, method="POST", **SENDING["answer lost"])
    outcome = until_settled(world, approved(account))
    (post,) = world.x.posts
    assert outcome == Published(post.id, link_of(world, post))


def test_what_x_has_and_never_shows_is_for_a_person_to_decide(world: World) -> None:
    account = world.connect()
    world.x.late = timedelta(days=1)
    world.fail(POSTS, method="POST", **SENDING["answer lost"])
    assert isinstance(until_settled(world, approved(account)), Unknown)
    assert len(world.x.accepted) == 1


def test_an_older_post_of_the_same_text_is_not_taken_for_this_one(world: World) -> None:
    account = world.connect()
    world.now -= timedelta(minutes=2)
    world.x.accept(PERSON, TEXT)
    world.now = NOW
    with pytest.raises(Unknown):
        outlet.publish(approved(account, is_repeat=True), NOW)
    assert texts(world) == [TEXT]


def test_links_that_x_writes_in_another_way_are_known_by_the_words_around_them(
    world: World,
) -> None:
    account = world.connect()
    text = "Tides: https://acme.dev/ÖL"
    mine = world.x.accept(PERSON, text)
    shown = (
        f'{{"data":[{{"id":"{mine.id}","text":"Tides: https://t.co/abc","entities":{{"urls":'
        '[{"url":"https://t.co/abc","expanded_url":"https://acme.dev/%C3%96L"}]}}]}'
    )
    world.fail(LOOKS, status=200, body=shown, times=2)
    found = outlet.publish(approved(account, text, is_repeat=True), NOW)
    assert (found.external_id, len(world.x.posts)) == (mine.id, 1)


def test_a_text_that_was_posted_by_hand_is_refused_and_said_so(world: World) -> None:
    account = world.connect()
    world.x.accept(PERSON, TEXT)
    with pytest.raises(Refused) as refused:
        outlet.publish(approved(account), NOW)
    assert refused.value.reason == outlet.MET_BEFORE
    assert texts(world) == [TEXT]


def test_a_refusal_is_in_xs_own_words(world: World) -> None:
    account = world.connect()
    world.x.suspend(PERSON)
    with pytest.raises(Refused) as refused:
        outlet.publish(approved(account), NOW)
    assert refused.value.reason == (
        "X refused: “Your account is suspended and is not permitted to access this feature.”"
        " Change the text, or post it by hand."
    )
    for body in ('{"errors":[{"message":"Too  long"}]}', '{"detail":["odd"]}', "<p>", "[1]"):
        world.fail(POSTS, method="POST", status=400, body=body)
        with pytest.raises(Refused):
            outlet.publish(approved(account), NOW)
    assert reread(account).works


@pytest.mark.parametrize("text", ["a" * 281, "🌊" * 141, ""])
def test_the_stand_in_takes_no_more_than_x(world: World, text: str) -> None:
    with pytest.raises(Refused, match="You are not permitted to perform this action"):
        outlet.publish(approved(world.connect(), text), NOW)
    assert texts(world) == []


def test_an_account_that_posts_too_often_waits_as_long_as_x_says(world: World) -> None:
    account = world.connect()
    world.x.limit = 1
    outlet.publish(approved(account, "One."), NOW)
    world.now += timedelta(minutes=5)
    with pytest.raises(TryLater) as limited:
        outlet.publish(approved(account, "Two."), world.now)
    assert (limited.value.after, texts(world)) == (timedelta(minutes=10), ["One."])


def test_a_day_that_is_used_up_counts_too(world: World) -> None:
    account = world.connect()
    world.x.day_limit = 0
    with pytest.raises(TryLater) as limited:
        outlet.publish(approved(account), NOW)
    assert limited.value.after == timedelta(days=1)


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({}, None),
        ({"Retry-After": "30"}, timedelta(seconds=30)),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "junk"}, timedelta(minutes=1)),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "1"}, timedelta(seconds=1)),
    ],
)
def test_a_limit_without_a_time_is_waited_for_as_well(
    world: World, headers: dict[str, str], after: timedelta | None
) -> None:
    world.fail(POSTS, method="POST", status=429, headers=headers)
    with pytest.raises(TryLater) as limited:
        outlet.publish(approved(world.connect()), NOW)
    assert limited.value.after == after


def test_without_credit_nothing_is_tried_for_an_hour(world: World) -> None:
    account = world.connect()
    world.x.use_up("")
    with pytest.raises(TryLater) as poor:
        outlet.publish(approved(account), NOW)
    assert (poor.value.reason, poor.value.after) == (NO_CREDIT, timedelta(hours=1))


@pytest.mark.parametrize(
    ("problem", "kind", "reason"),
    [
        ("usage-capped", TryLater, NO_CREDIT),
        ("client-forbidden", TryLater, OPERATORS_FAULT),
        (
            "unsupported-authentication",
            NeedsReconnect,
            "X says that this authorisation is not enough: connect it again.",
        ),
    ],
)
def test_what_a_problem_means_is_said(
    world: World, problem: str, kind: type[Failure], reason: str
) -> None:
    body = f'{{"type":"https://api.twitter.com/2/problems/{problem}","detail":"No."}}'
    world.fail(POSTS, method="POST", status=403, body=body)
    with pytest.raises(kind) as failed:
        outlet.publish(approved(world.connect()), NOW)
    assert failed.value.reason == reason


def test_a_post_without_an_account_is_refused(world: World) -> None:
    with pytest.raises(Refused, match="Connect an X account first"):
        outlet.publish(replace(approved(world.connect()), account=None), NOW)


# -- its text --------------------------------------------------------------------------------------


def test_links_tags_and_mentions_are_shown_as_x_shows_them() -> None:
    text = "Hi @sam, acme.dev/a and https://acme.dev! #sailing #1 me@acme.dev C#7 a&#x27; #ÖL_2"
    found = outlet.OUTLET.pieces(text)
    assert "".join(piece.text for piece in found) == text
    assert [piece for piece in found if piece.kind != "text"] == [
        Piece("@sam", "mention"),
        Piece("acme.dev/a", "link", "https://acme.dev/a"),
        Piece("https://acme.dev", "link", "https://acme.dev"),
        Piece("#sailing", "tag"),
        Piece("#ÖL_2", "tag"),
    ]


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("$ACME is up", ""),
        ("$5 and $10, US$ACME", ""),
        ("$ACME, $boat.x", "X takes one cashtag such as $ACME in a post: this has 2."),
        ("$A\n$B $C", "X takes one cashtag such as $ACME in a post: this has 3."),
    ],
)
def test_one_cashtag_is_taken(text: str, objection: str) -> None:
    assert outlet.OUTLET.objection(text) == objection


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("No link.", "0.015"),
        ("node.js and v1.2.0", "0.015"),
        ("See acme.dev", "0.20"),
        ("See https://acme.dev/x", "0.20"),
        ("e\u0301" * 50 + " acme.dev", "0.20"),
    ],
)
def test_a_link_costs_more_also_a_bare_one(text: str, amount: str) -> None:
    assert outlet.OUTLET.price
    assert outlet.OUTLET.price(text) == Price(Decimal(amount), Decimal("0.015"), "2026-08-22")


def test_what_it_costs_is_what_x_takes(world: World) -> None:
    account, price = world.connect(), outlet.OUTLET.price
    assert price
    before = world.x.credit
    outlet.publish(approved(account), NOW)
    assert before - world.x.credit == price(TEXT).amount


# -- its numbers -----------------------------------------------------------------------------------


def test_numbers_are_read_in_one_call_for_each_account(world: World) -> None:
    accounts = [world.connect(), world.connect(COMPANY)]
    out = [
        outlet.publish(approved(account, f"Post {n}."), NOW)
        for account in accounts
        for n in range(2)
    ]
    mine = world.x.accepted[0]
    mine.metrics |= {"like_count": 3, "impression_count": 120}
    gone = out[3].external_id
    world.x.remove(gone)
    sent = [
        Sent(published.external_id, published.permalink, account)
        for published, account in zip(out, [a for a in accounts for _ in range(2)], strict=True)
    ]
    found = outlet.numbers([*sent, Sent("1", "", None)], NOW)
    nothing = dict.fromkeys(("likes", "replies", "reposts", "quotes", "bookmarks", "views"), 0)
    assert found == {
        mine.id: {**nothing, "likes": 3, "views": 120},
        out[1].external_id: nothing,
        out[2].external_id: nothing,
    }
    assert world.standins.count("GET", POSTS) == 2


def test_more_than_a_hundred_are_read_in_several_calls(world: World) -> None:
    account = world.connect()
    posts = [world.x.accept(PERSON, f"Post {n}.") for n in range(101)]
    found = outlet.numbers([Sent(post.id, "", account) for post in posts], NOW)
    assert (len(found), world.standins.count("GET", POSTS)) == (101, 2)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"data":[{"id":"1"}]}', {"1": {}}),
        ('{"data":[{"id":"1","public_metrics":{"like_count":"7","reply_count":-1}}]}', {"1": {}}),
        ('{"data":[{"id":"1","public_metrics":[1]}]}', {"1": {}}),
        ("{}", {}),
    ],
)
def test_only_numbers_are_taken_for_numbers(
    world: World, body: str, found: dict[str, dict[str, int]]
) -> None:
    account = world.connect()
    world.fail(POSTS, method="GET", status=200, body=body)
    assert outlet.numbers([Sent("1", "", account)], NOW) == found


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 200, "body": '{"data":[1]}'}])
def test_numbers_that_cannot_be_read_are_a_failure(world: World, fault: dict[str, object]) -> None:
    account = world.connect()
    world.fail(POSTS, method="GET", **fault)
    with pytest.raises(TryLater):
        outlet.numbers([Sent("1", "", account)], NOW)


def test_the_stand_ins_own_page_shows_what_people_see(world: World) -> None:
    world.x.accept(PERSON, "<b>Tides</b>")
    page = requests.get(f"{world.standins.url}/x/", timeout=5).text
    assert "&lt;b&gt;Tides&lt;/b&gt;" in page
    (post,) = world.x.posts
    form = {"number": post.id, "what": "like"}
    requests.post(f"{world.standins.url}/x/do", data=form, timeout=5)
    assert post.metrics["like_count"] == 1
