"""LinkedIn: accounts of members, posts sent once whatever fails, and its little text."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import linkedin as outlet
from integrations.outlets.base import Approved, Piece, Published
from integrations.outlets.linkedin_text import commentary, pieces
from integrations.standins import linkedin as standin
from integrations.standins.linkedin import PERSON, LinkedIn, read_little_text
from integrations.standins.server import Fault, StandIns
from integrations.tables import Connection
from slothpost_site.moments import to_ms
from tests.builders import reread

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TEXT = "Tides 🌊 (now offline) → https://acme.dev/a_(b)?c=1#d_e\n\n#sailing {for} <all> *of* us"
POSTS, TOKENS = "/linkedin/api/rest/posts", "/linkedin/oauth/v2/accessToken"
ME = "/linkedin/api/v2/userinfo"
REFUSED = "Change the text, or post it by hand."


@dataclass
class World:
    """LinkedIn with a clock that stands still, and the way there and back of a browser."""

    standins: StandIns
    linkedin: LinkedIn
    now: datetime = field(default=NOW)

    @property
    def callback(self) -> str:
        return self.linkedin.callback_url()

    def consent(self, answer: str = "allow", member: str = PERSON) -> dict[str, str]:
        """What the browser comes back with."""
        begun = outlet.start("a-state", self.callback, {}, self.now)
        requests.get(begun.url, timeout=5).raise_for_status()
        asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
        form = {**asked, "member": member, "answer": answer}
        back = requests.post(begun.url, data=form, timeout=5, allow_redirects=False)
        came = parse_qs(urlsplit(back.headers["Location"]).query)
        assert came.pop("state") == ["a-state"]
        return {name: values[0] for name, values in came.items()}

    def finish(self, came: dict[str, str]) -> Connection:
        return outlet.finish("1", came, {"callback_url": self.callback}, self.now).connection

    def connect(self) -> Connection:
        return self.finish(self.consent())

    def fail(self, path: str, **fault: object) -> None:
        self.standins.faults.append(Fault(path=path, **fault))  # type: ignore[arg-type]

    def texts(self) -> list[str]:
        return [post.text for post in self.linkedin.posts]

    def link_of(self, urn: str) -> str:
        return f"{self.standins.url}/linkedin/feed/update/{urn}/"


@pytest.fixture
def world(store: str, settings: Settings) -> Iterator[World]:
    standins = StandIns(site_url="http://127.0.0.1:9").start()
    found = World(standins, standin.add_to(standins, settings.DATA_DIR))
    found.linkedin.clock = lambda: found.now
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


def until_settled(world: World, post: Approved) -> Published | Failure:
    """What the publisher does: send again what was not sent, and ask what may have been."""
    outcome: Published | Failure = Unknown("never tried")
    for _ in range(6):
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


def test_a_member_is_connected_once_they_were_read(world: World) -> None:
    account = world.connect()
    assert (account.key, account.account_name) == (f"linkedin#{PERSON}", "Sam Sloth")
    assert account.expires_at == to_ms(NOW + timedelta(days=60))
    assert account.refresh_at == account.expires_at  # its owner is told then
    assert account.scopes == ["openid", "profile", "w_member_social"]
    assert world.standins.count("GET", ME) == 1


def test_a_no_connects_nothing(world: World) -> None:
    with pytest.raises(Cancelled):
        world.finish(world.consent("deny"))
    with pytest.raises(Cancelled):
        world.finish({"error": "user_cancelled_login"})
    assert connections.of_provider("1", "linkedin") == []


def test_an_app_that_may_not_post_is_its_operators_to_mend(world: World) -> None:
    with pytest.raises(Refused, match="whoever runs this SlothPost"):
        world.finish({"error": "unauthorized_scope_error"})


@pytest.mark.parametrize("answer", [{}, {"code": ""}, {"error": "server_error"}])
def test_coming_back_without_a_code_begins_again(world: World, answer: dict[str, str]) -> None:
    with pytest.raises(ExpiredLink):
        world.finish(answer)


def test_a_code_is_good_once_and_for_half_an_hour(world: World) -> None:
    used, late = world.consent(), world.consent()
    world.finish(used)
    world.now += timedelta(minutes=31)
    for came in (used, late, {"code": "made-up"}):
        with pytest.raises(ExpiredLink):
            world.finish(came)


def test_an_operators_wrong_secret_is_nobody_elses_fault(world: World, settings: Settings) -> None:
    settings.LINKEDIN_CLIENT_SECRET = "wrong"
    with pytest.raises(TryLater, match="whoever runs this SlothPost"):
        world.connect()


@pytest.mark.parametrize(
    "fault", [{"status": 503}, {"hang_up": True}, {"status": 200, "body": "<html>"}]
)
@pytest.mark.parametrize("path", [TOKENS, ME])
def test_what_cannot_be_read_is_not_connected(
    world: World, path: str, fault: dict[str, object]
) -> None:
    came = world.consent()
    world.fail(path, **fault)
    with pytest.raises(TryLater):
        world.finish(came)
    assert connections.of_provider("1", "linkedin") == []


def test_it_is_offered_where_the_operator_has_set_it_up(settings: Settings) -> None:
    settings.LINKEDIN_CLIENT_ID, settings.LINKEDIN_CLIENT_SECRET = "id", "secret"
    assert outlet.is_configured()
    settings.LINKEDIN_CLIENT_SECRET = ""
    assert not outlet.is_configured()


def test_a_consent_page_refuses_what_linkedin_would(world: World) -> None:
    good = urlsplit(outlet.start("a-state", world.callback, {}, world.now).url)
    query = {name: values[0] for name, values in parse_qs(good.query).items()}
    for wrong in ({"redirect_uri": "https://evil.example/"}, {"client_id": "another"}):
        url = good._replace(query=urlencode({**query, **wrong})).geturl()
        assert requests.get(url, timeout=5).status_code == 400
    pages = good._replace(query=urlencode({**query, "scope": "w_organization_social"})).geturl()
    back = requests.get(pages, timeout=5, allow_redirects=False)
    assert "error=unauthorized_scope_error" in back.headers["Location"]


def test_after_sixty_days_only_its_member_can_renew_it(world: World) -> None:
    account = world.connect()
    world.now += timedelta(days=60)
    with pytest.raises(NeedsReconnect):
        outlet.publish(approved(account), world.now)
    assert (reread(account).broken, world.texts()) == (outlet.LAPSED, [])
    mended = world.connect()
    assert (mended.key, mended.works) == (account.key, True)
    outlet.publish(approved(mended), world.now)
    assert world.texts() == [TEXT]


def test_the_tick_notices_when_a_token_lapses_that_nothing_renews(world: World) -> None:
    account = world.connect()
    with pytest.raises(NeedsReconnect):
        outlet.renew(account, NOW + timedelta(days=60))
    assert reread(account).broken == outlet.LAPSED


def test_an_app_that_gets_refresh_tokens_renews_ahead_and_once(world: World) -> None:
    world.linkedin.gives_refresh_tokens = True
    account = world.connect()
    assert account.refresh_at == to_ms(NOW + timedelta(days=53))
    world.now += timedelta(days=53)
    outlet.renew(reread(account), world.now)
    assert reread(account).expires_at == to_ms(world.now + timedelta(days=60))
    world.now += timedelta(days=60)
    both = [approved(reread(account), text) for text in ("One.", "Two.")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda post: outlet.publish(post, world.now), both))
    assert sorted(world.texts()) == ["One.", "Two."]
    assert world.standins.count("POST", TOKENS) == 3  # to connect, ahead of time, and once late
    world.now = NOW + timedelta(days=366)
    with pytest.raises(NeedsReconnect):
        outlet.publish(approved(reread(account)), world.now)


def test_a_token_that_is_refused_early_is_renewed_where_it_can_be(world: World) -> None:
    world.linkedin.gives_refresh_tokens = True
    account = world.connect()
    world.linkedin.tokens.clear()
    outlet.publish(approved(account), NOW)
    assert world.texts() == [TEXT]
    world.fail(POSTS, status=401, times=2)
    with pytest.raises(NeedsReconnect):
        outlet.publish(approved(reread(account), "Two."), NOW)
    assert reread(account).broken == outlet.LAPSED


def test_a_member_who_removes_slothpost_there_is_asked_to_connect_again(world: World) -> None:
    account = world.connect()
    world.linkedin.take_back(PERSON)
    with pytest.raises(NeedsReconnect):
        outlet.publish(approved(account), NOW)
    assert (reread(account).broken, world.texts()) == (outlet.LAPSED, [])


def test_a_check_tells_health(world: World) -> None:
    account = world.connect()
    world.fail(ME, status=503)
    with pytest.raises(TryLater):
        outlet.check(account, NOW)
    assert reread(account).trouble == "LinkedIn has a fault of its own (503)."
    outlet.check(account, NOW)
    assert reread(account).trouble is None
    world.linkedin.take_back(PERSON)
    with pytest.raises(NeedsReconnect):
        outlet.check(account, NOW)
    assert reread(account).broken == outlet.LAPSED


def test_disconnecting_says_what_only_its_member_can_do(world: World) -> None:
    assert "/psettings/permitted-services" in outlet.disconnect(world.connect(), NOW)
    assert connections.of_provider("1", "linkedin") == []


# -- publishing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        r"\ | { } @ [ ] ( ) < > # * _ ~ and \# \\ {hashtag|\#|no} @[Sam](urn:li:person:1)",
        'שלום \u202eאבג\u202c\n\n\t👨‍👩‍👧‍👦 é e\u0301 &amp; "quoted"',
        "a" * 3000,
        "(" * 3000,
    ],
)
def test_readers_see_the_text_as_approved_to_the_byte(world: World, text: str) -> None:
    published = outlet.publish(approved(world.connect(), text), NOW)
    (post,) = world.linkedin.posts
    assert (post.text, post.member) == (text, PERSON)
    assert published == Published(post.urn, world.link_of(post.urn))
    assert requests.get(published.permalink, timeout=5).status_code == 200


def test_its_tags_are_tags(world: World) -> None:
    outlet.publish(approved(world.connect(), "#sailing (#tides) #ÖL2 https://a.example/#b"), NOW)
    assert world.linkedin.posts[0].tags == ["sailing", "tides", "ÖL2"]


SENDING = {
    "refused by a proxy": {"status": 503},
    "a fault after the work": {"status": 500, "does_the_work": True},
    "gone without an answer": {"hang_up": True},
    "answer lost": {"hang_up": True, "does_the_work": True},
    "no name": {"status": 201, "does_the_work": True},
    "a name that is none": {
        "status": 201,
        "headers": {"x-restli-id": "urn:li:person:1"},
        "does_the_work": True,
    },
    "half an answer": {"status": 201, "body": '{"id":"urn:li', "does_the_work": True},
    "a conflict": {"status": 409, "does_the_work": True},
    "limited": {"status": 429},
    "forbidden at random": {"status": 403, "body": '{"message":"resource is forbidden"}'},
    "an old version": {"status": 426},
    "nothing": {"times": 0},
}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *product(SENDING, ["nothing"]),
        *product(["answer lost", "gone without an answer"], SENDING),
    ],
)
def test_whatever_fails_the_post_is_out_once(world: World, first: str, second: str) -> None:
    account = world.connect()
    for name in (first, second):
        world.fail(POSTS, **SENDING[name])
    outcome = until_settled(world, approved(account))
    (post,) = world.linkedin.posts
    assert outcome == Published(post.urn, world.link_of(post.urn))
    assert post.text == TEXT


def test_what_was_sent_is_named_by_linkedin_and_not_doubled(world: World) -> None:
    account = world.connect()
    world.linkedin.late = timedelta(hours=1)
    world.fail(POSTS, **SENDING["answer lost"])
    with pytest.raises(Unknown):
        outlet.publish(approved(account), NOW)
    found = outlet.publish(approved(account, is_repeat=True), NOW + timedelta(minutes=1))
    (post,) = world.linkedin.accepted
    assert found == Published(post.urn, world.link_of(post.urn))


def test_a_duplicate_of_what_is_no_post_leaves_it_open(world: World) -> None:
    account = world.connect()
    for message in ("Content is a duplicate of urn:li:person:abc", "Hm. DUPLICATE_POST"):
        world.fail(POSTS, status=422, body=f'{{"message":"{message}"}}', times=2)
        with pytest.raises(Unknown):
            outlet.publish(approved(account, is_repeat=True), NOW)
        with pytest.raises(Refused, match="already, and takes none twice"):
            outlet.publish(approved(account), NOW)


def test_a_repeat_that_is_forbidden_says_nothing_of_the_first_attempt(world: World) -> None:
    account = world.connect()
    world.fail(POSTS, status=403, times=2)
    with pytest.raises(Unknown):
        outlet.publish(approved(account, is_repeat=True), NOW)
    world.fail(POSTS, status=422, body='{"message":"ERROR :: /commentary"}')
    with pytest.raises(Refused):
        outlet.publish(approved(account, is_repeat=True), NOW)


def test_a_text_that_was_posted_by_hand_is_refused_with_its_link(world: World) -> None:
    account = world.connect()
    there = world.linkedin.accept(PERSON, TEXT)
    with pytest.raises(Refused) as refused:
        outlet.publish(approved(account), NOW)
    assert f"already ({world.link_of(there.urn)})" in refused.value.reason
    assert world.texts() == [TEXT]


def test_a_refusal_is_in_linkedins_own_words(world: World) -> None:
    account = world.connect()
    with pytest.raises(Refused) as refused:
        outlet.publish(approved(account, "a" * 3001), NOW)
    said = "ERROR :: /commentary :: exceeds 3000 characters"
    assert refused.value.reason == f"LinkedIn refused: “{said}” {REFUSED}"
    for body, reason in (
        ('{"message":7}', f"LinkedIn refused (400). {REFUSED}"),
        ("[1]", f"LinkedIn refused (400). {REFUSED}"),
        ("<p>", f"LinkedIn refused (400). {REFUSED}"),
    ):
        world.fail(POSTS, status=400, body=body)
        with pytest.raises(Refused) as refused:
            outlet.publish(approved(account), NOW)
        assert refused.value.reason == reason


def test_an_authorisation_that_is_not_enough_is_asked_for_again(world: World) -> None:
    code = world.linkedin.code(PERSON, "openid", "profile")
    account = world.finish({"code": code})
    with pytest.raises(NeedsReconnect, match="is not enough"):
        outlet.publish(approved(account), NOW)


def test_a_version_that_has_ended_is_its_operators_to_mend(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    account = world.connect()
    world.linkedin.versions = {"209901"}
    with pytest.raises(TryLater) as ended:
        outlet.publish(approved(account), NOW)
    assert (ended.value.reason, ended.value.after) == (outlet.OLD_VERSION, timedelta(hours=1))
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["the version has ended: set LINKEDIN_VERSION"]


@pytest.mark.parametrize(
    ("headers", "after"),
    [({}, timedelta(hours=15)), ({"Retry-After": "60"}, timedelta(minutes=1))],
)
def test_a_day_that_is_used_up_is_waited_for(
    world: World, headers: dict[str, str], after: timedelta
) -> None:
    account = world.connect()
    world.linkedin.day_limit = 0
    if headers:
        world.fail(POSTS, status=429, headers=headers)
    with pytest.raises(TryLater) as limited:
        outlet.publish(approved(account), NOW)
    assert limited.value.after == after


def test_a_post_without_an_account_is_refused(world: World) -> None:
    with pytest.raises(Refused, match="Connect a LinkedIn account first"):
        outlet.publish(replace(approved(world.connect()), account=None), NOW)


# -- its text --------------------------------------------------------------------------------------


def test_what_means_something_in_little_text_is_escaped() -> None:
    assert commentary(r"a_b (c) #tag #1 \ https://a.example/(x)_y") == (
        r"a\_b \(c\) {hashtag|\#|tag} \#1 \\ https://a.example/\(x\)\_y"
    )


def test_links_and_tags_are_shown_as_linkedin_shows_them() -> None:
    text = "(See https://acme.dev/a.) #Sailing, #2026goals #1 C#major https://a.example/#top"
    found = pieces(text)
    assert "".join(piece.text for piece in found) == text
    assert [piece for piece in found if piece.kind != "text"] == [
        Piece("https://acme.dev/a", "link", "https://acme.dev/a"),
        Piece("#Sailing", "tag"),
        Piece("#2026goals", "tag"),
        Piece("https://a.example/#top", "link", "https://a.example/#top"),
    ]


@given(st.text(st.one_of(st.sampled_from("\\|{}@[]()<>#*_~ ab1&/:\n"), st.characters())))
def test_no_text_is_cut_off_or_changed(text: str) -> None:
    assert read_little_text(commentary(text))[0] == text


@pytest.mark.parametrize(
    ("raw", "seen"), [("Now (free)", "Now "), ("a_b", "a"), ("x {y}", "x "), (r"a \q", "a ")]
)
def test_the_stand_in_cuts_off_what_is_not_escaped(raw: str, seen: str) -> None:
    assert read_little_text(raw) == (seen, [])
    assert read_little_text("plain #tag") == ("plain #tag", ["tag"])


def test_the_stand_ins_own_page_shows_what_people_see(world: World) -> None:
    there = world.linkedin.accept(PERSON, "<b>Tides</b>")
    page = requests.get(f"{world.standins.url}/linkedin/", timeout=5).text
    assert "&lt;b&gt;Tides&lt;/b&gt;" in page
    form = {"number": there.urn, "what": "remove"}
    requests.post(f"{world.standins.url}/linkedin/do", data=form, timeout=5)
    assert world.linkedin.posts == []
