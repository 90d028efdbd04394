"""Mastodon: any instance, registered once; accounts; posts sent once whatever fails; numbers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from pytest_django import Settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Start
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import OUTLETS
from integrations.outlets import mastodon as outlet
from integrations.outlets import mastodon_account as provider
from integrations.outlets.base import Approved, Published, Sent
from integrations.outlets.mastodon_account import CHECKED_AFTER
from integrations.standins import mastodon as standin
from integrations.standins.mastodon import HOST, PERSON, Mastodon
from integrations.standins.server import Fault, Response, StandIns
from integrations.tables import Connection, Instance
from slothpost_site.dynamo import get
from slothpost_site.moments import to_ms
from tests.builders import reread
from tests.pages import fields

pytestmark = pytest.mark.usefixtures("store")

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TEXT = (
    "Tides & <waves> 🌊 by @slow_boats@other.example\n\n→ https://acme.example/a?b=1&c=2 #sailing"
)
KEY = f"mastodon#109001@{HOST}"
CREATE = "/mastodon/api/v1/statuses"
LIST = "/mastodon/api/v1/accounts/[0-9]+/statuses"
TOKEN = "/mastodon/oauth/token"
REGISTER = "/mastodon/api/v1/apps"


@dataclass
class World:
    """An instance with a clock that stands still."""

    standins: StandIns
    mastodon: Mastodon
    now: datetime = field(default=NOW)

    @property
    def callback(self) -> str:
        return f"{self.standins.site_url}/connections/mastodon/callback/"

    def start(self, instance: str = HOST) -> Start:
        return provider.start("a-state", self.callback, {"instance": instance}, self.now)

    def consent(self, begun: Start, answer: str = "allow") -> dict[str, str]:
        """What the browser comes back with."""
        shown = fields(requests.get(begun.url, timeout=5))
        form = {name: values[0] for name, values in shown.items()} | {"answer": answer}
        back = requests.post(begun.url, data=form, timeout=5, allow_redirects=False)
        came = parse_qs(urlsplit(back.headers["Location"]).query)
        assert came.pop("state") == ["a-state"]
        return {name: values[0] for name, values in came.items()}

    def finish(self, begun: Start, came: dict[str, str]) -> Connection:
        kept = {**begun.kept, "callback_url": self.callback}
        return provider.finish("1", came, kept, self.now).connection

    def connect(self) -> Connection:
        begun = self.start()
        return self.finish(begun, self.consent(begun))

    def fail(self, path: str, **fault: object) -> None:
        self.standins.faults.append(Fault(path=path, **fault))  # type: ignore[arg-type]

    def texts(self) -> list[str]:
        return [post.text for post in self.mastodon.posts]


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    standins = StandIns(site_url="http://127.0.0.1:9").start()
    found = World(standins, standin.add_to(standins, settings.DATA_DIR))
    found.mastodon.clock = lambda: found.now
    settings.OPERATOR_HOSTS = json.loads(standin.settings_for(standins)["OPERATOR_HOSTS"])
    yield found
    standins.stop()


def approved(account: Connection, text: str = TEXT, key: str = "a-key", **more: object) -> Approved:
    return Approved(
        user_id="1",
        product_id="p",
        product_name="Tidewater",
        product_link="",
        slug="",
        text=text,
        slot_at=NOW,
        key=key,
        account=account,
        approved_at=NOW,
        claimed_at=NOW,
        **more,  # type: ignore[arg-type]
    )


# -- accounts --------------------------------------------------------------------------------------


def test_an_account_is_connected_once_it_and_its_instances_limit_were_read(world: World) -> None:
    world.mastodon.limit = 1_000
    account = world.connect()
    assert (account.key, account.account_name) == (KEY, f"@{PERSON}@{HOST}")
    assert account.scopes == ["profile", "read:statuses", "write:statuses"]
    assert (account.expires_at, account.refresh_at) == (None, to_ms(NOW + CHECKED_AFTER))
    assert OUTLETS["mastodon"].limit_of is not None
    assert OUTLETS["mastodon"].limit_of(account) == 1_000


def test_slothpost_registers_once_with_an_instance(world: World) -> None:
    world.connect()
    world.connect()
    assert world.standins.count("POST", REGISTER) == 1
    known = get(Instance, HOST)
    assert known is not None
    assert not any(app.secret in str(known.secrets) for app in world.mastodon.apps.values())


def test_two_who_are_the_first_at_an_instance_are_both_connected(world: World) -> None:
    meanwhile: list[Start] = []

    def another_first(response: Response) -> Response:
        if isinstance(response.body, dict) and "client_secret" in response.body:
            world.standins.alter = lambda response: response
            meanwhile.append(world.start())
        return response

    world.standins.alter = another_first
    begun = world.start()
    for each in (begun, *meanwhile):
        assert world.finish(each, world.consent(each)).works
    assert (len(meanwhile), world.standins.count("POST", REGISTER)) == (1, 2)


@pytest.mark.parametrize("value", ["x" * 500_000, "", 5, None])
def test_what_is_no_token_connects_nothing(world: World, value: object) -> None:
    world.fail(REGISTER, status=200, body=json.dumps({"client_id": value, "client_secret": "b"}))
    with pytest.raises(TryLater):
        world.start()
    begun = world.start()
    came = world.consent(begun)
    world.fail(TOKEN, status=200, body=json.dumps({"access_token": value}))
    with pytest.raises(TryLater):
        world.finish(begun, came)
    assert connections.of_provider("1", "mastodon") == []


def test_what_no_key_opens_any_more_is_registered_anew(world: World, settings: Settings) -> None:
    world.connect()
    settings.TOKEN_KEYS = ["another key of thirty-two letters"]
    world.connect()
    assert world.standins.count("POST", REGISTER) == 2


def test_an_instance_that_forgot_the_registration_gets_another(world: World) -> None:
    begun = world.start()
    came = world.consent(begun)
    world.mastodon.apps.clear()
    with pytest.raises(ExpiredLink):
        world.finish(begun, came)
    assert world.connect().key == KEY


@pytest.mark.parametrize("version", [(4, 2), (3, 4)])
def test_older_instances_are_asked_in_their_own_words(
    world: World, version: tuple[int, int]
) -> None:
    world.mastodon.version = version
    account = world.connect()
    assert account.scopes == ["read:accounts", "read:statuses", "write:statuses"]
    assert account.details["limit"] == 500


def test_accounts_at_two_instances_are_two_whatever_their_numbers(
    world: World, settings: Settings
) -> None:
    here = settings.OPERATOR_HOSTS[HOST]
    settings.OPERATOR_HOSTS = {HOST: here, "other.example": here}
    world.connect()
    begun = world.start("@me@other.example")
    world.finish(begun, world.consent(begun))
    found = {account.key for account in connections.of_provider("1", "mastodon")}
    assert found == {KEY, "mastodon#109001@other.example"}


@pytest.mark.parametrize(
    ("instance", "reason"),
    [
        ("", "is no public host"),
        ("127.0.0.1", "is no public host"),
        ("mastodon.social:8080", "is no public host"),
        ("localtest.me", "did not answer|not at a public address"),
        ("nothing.example", "nothing.example is no Mastodon instance"),
    ],
)
def test_what_is_no_instance_is_refused_with_a_sentence(
    world: World, settings: Settings, instance: str, reason: str
) -> None:
    settings.OPERATOR_HOSTS = {"nothing.example": f"{world.standins.url}/nothing"}
    with pytest.raises(Failure, match=reason):
        world.start(instance)
    assert world.mastodon.apps == {}


def test_a_no_connects_nothing(world: World) -> None:
    begun = world.start()
    with pytest.raises(Cancelled):
        world.finish(begun, world.consent(begun, "deny"))
    assert connections.of_provider("1", "mastodon") == []


def test_a_code_that_was_used_or_is_too_old_begins_again(world: World) -> None:
    begun = world.start()
    came = world.consent(begun)
    world.finish(begun, came)
    with pytest.raises(ExpiredLink):
        world.finish(begun, came)
    late = world.consent(begun)
    world.now += timedelta(minutes=11)
    with pytest.raises(ExpiredLink):
        world.finish(begun, late)


def test_a_code_that_somebody_else_fetched_is_worth_nothing(world: World) -> None:
    begun, other = world.start(), world.start()
    with pytest.raises(ExpiredLink):
        world.finish(other, world.consent(begun))


def test_an_account_that_cannot_be_read_is_not_connected(world: World) -> None:
    begun = world.start()
    world.fail(".*verify_credentials", status=500)
    with pytest.raises(TryLater):
        world.finish(begun, world.consent(begun))
    assert connections.of_provider("1", "mastodon") == []


def test_an_instance_that_names_no_limit_has_the_usual(world: World) -> None:
    world.fail(".*/instance", status=200, body='{"configuration": []}', times=2)
    account = world.connect()
    assert OUTLETS["mastodon"].limit_of is not None
    assert OUTLETS["mastodon"].limit_of(account) == 500


def test_a_limit_that_changed_is_read_by_and_by(world: World) -> None:
    account = world.connect()
    world.mastodon.limit = 5_000
    world.now += CHECKED_AFTER
    provider.renew(account, world.now)
    found = reread(account)
    assert found.details["limit"] == 5_000
    assert found.refresh_at == to_ms(world.now + CHECKED_AFTER)
    assert found.checked_at == to_ms(world.now)


def test_access_that_was_taken_back_is_noticed(world: World) -> None:
    account = world.connect()
    world.mastodon.take_back(PERSON)
    with pytest.raises(NeedsReconnect):
        provider.check(account, NOW)
    said = f"{HOST} no longer accepts this account's authorisation: connect it again."
    assert reread(account).broken == said


def test_a_login_that_is_disabled_is_told_in_the_instances_words(world: World) -> None:
    account = world.connect()
    world.mastodon.disable(PERSON)
    with pytest.raises(NeedsReconnect):
        outlet.publish(approved(account), NOW)
    assert "“Your login is currently disabled”" in str(reread(account).broken)


def test_disconnecting_gives_the_token_back(world: World) -> None:
    assert provider.disconnect(world.connect(), NOW) == ""
    assert (world.mastodon.tokens, connections.of_provider("1", "mastodon")) == ({}, [])


def test_disconnecting_from_an_instance_that_is_down_says_what_is_left(world: World) -> None:
    account = world.connect()
    world.fail(".*/oauth/revoke", status=502)
    assert "revoke SlothPost's access there too" in provider.disconnect(account, NOW)
    assert connections.of_provider("1", "mastodon") == []


# -- publishing ------------------------------------------------------------------------------------


def test_a_post_is_out_as_approved_with_its_link(world: World) -> None:
    published = outlet.publish(approved(world.connect()), NOW)
    (post,) = world.mastodon.posts
    assert post.text == TEXT
    link = f"{world.standins.url}/mastodon/@{PERSON}/{post.id}"
    assert published == Published(post.id, link)


def test_the_same_post_sent_twice_within_the_hour_is_one(world: World) -> None:
    post = approved(world.connect())
    first = outlet.publish(post, NOW)
    world.now += timedelta(minutes=50)
    assert outlet.publish(post, world.now) == first
    assert world.texts() == [TEXT]


@pytest.mark.parametrize("version", [(4, 5), (3, 4)])
@pytest.mark.parametrize("knows_keys", [True, False])
def test_a_lost_answer_is_found_out_also_where_no_keys_are_known(
    world: World, version: tuple[int, int], knows_keys: bool
) -> None:
    world.mastodon.version, world.mastodon.knows_keys = version, knows_keys
    post = approved(world.connect())
    world.fail(CREATE, does_the_work=True, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(post, NOW)
    found = outlet.publish(replace(post, is_repeat=True), NOW + timedelta(hours=2))
    assert found.external_id == world.mastodon.posts[0].id
    assert world.texts() == [TEXT]


def test_a_text_that_the_instance_composed_is_found_again(world: World) -> None:
    account = world.connect()
    world.mastodon.accept(PERSON, "Café is open")
    post = approved(account, "Cafe\u0301 is open", is_repeat=True)
    assert outlet.publish(post, NOW).external_id == world.mastodon.posts[0].id
    assert len(world.texts()) == 1


def test_a_repeat_of_what_never_arrived_sends_it(world: World) -> None:
    post = approved(world.connect())
    world.fail(CREATE, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(post, NOW)
    outlet.publish(replace(post, is_repeat=True), NOW)
    assert world.texts() == [TEXT]


def test_the_same_text_of_another_day_is_another_post(world: World) -> None:
    account = world.connect()
    world.mastodon.accept(PERSON, TEXT)
    world.now += timedelta(days=1)
    post = approved(account, is_repeat=True, key="later")
    outlet.publish(replace(post, claimed_at=world.now), world.now)
    assert world.texts() == [TEXT, TEXT]


def test_what_cannot_be_looked_up_is_not_sent_again(world: World) -> None:
    post = approved(world.connect(), is_repeat=True)
    for fault in ({"status": 503}, {"status": 404}, {"status": 200, "body": '{"a": 1}'}):
        world.fail(LIST, **fault)
        with pytest.raises(TryLater):
            outlet.publish(post, NOW)
    assert world.texts() == []


def test_a_status_that_is_seen_late_is_one_all_the_same(world: World) -> None:
    world.mastodon.late = timedelta(minutes=5)
    post = approved(world.connect())
    world.fail(CREATE, does_the_work=True, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(post, NOW)
    outlet.publish(replace(post, is_repeat=True), NOW + timedelta(minutes=1))
    world.now += timedelta(minutes=10)
    assert world.texts() == [TEXT]


@pytest.mark.parametrize(
    ("fault", "kind", "reason"),
    [
        ({"status": 503, "body": "<html>"}, Unknown, None),
        ({"status": 200, "body": "<html>"}, Unknown, None),
        ({"status": 200, "body": '{"id": 5}'}, Unknown, None),
        (
            {"status": 422, "body": '{"error": "Validation failed: Text is too long"}'},
            Refused,
            f"{HOST} refused: “Validation failed: Text is too long” Change the text, or post it by"
            " hand.",
        ),
        (
            {"status": 401, "body": '{"error": "The access token is invalid"}'},
            NeedsReconnect,
            f"{HOST} no longer accepts this account's authorisation: connect it again.",
        ),
        (
            {"status": 403, "body": '{"error": "This action is outside the authorized scopes"}'},
            NeedsReconnect,
            f"{HOST} says “This action is outside the authorized scopes”: settle that there, and"
            " connect it again.",
        ),
    ],
)
def test_what_an_answer_means(
    world: World, fault: dict[str, object], kind: type[Failure], reason: str | None
) -> None:
    account = world.connect()
    world.fail(CREATE, **fault)
    with pytest.raises(Failure) as failed:
        outlet.publish(approved(account), NOW)
    assert type(failed.value) is kind
    assert reason is None or failed.value.reason == reason
    assert bool(reread(account).broken) == (kind is NeedsReconnect)


def test_a_used_up_allowance_says_when_it_is_whole_again(world: World) -> None:
    account = world.connect()
    world.mastodon.allowance = 1
    outlet.publish(approved(account), NOW)
    world.now += timedelta(minutes=1)
    with pytest.raises(TryLater) as later:
        outlet.publish(approved(account, key="b"), world.now)
    assert later.value.after == timedelta(minutes=4)


def test_an_address_that_is_none_is_not_shown_as_one(world: World) -> None:
    account = world.connect()
    body = '{"id": "7", "url": "javascript:alert(1)", "uri": null}'
    world.fail(CREATE, status=200, body=body)
    assert outlet.publish(approved(account), NOW) == Published("7", f"https://{HOST}/@{PERSON}/7")


# -- numbers ---------------------------------------------------------------------------------------


def test_numbers_of_a_post_and_none_of_one_that_was_deleted(world: World) -> None:
    account = world.connect()
    first = outlet.publish(approved(account), NOW)
    second = outlet.publish(approved(account, text="Other", key="b"), NOW)
    world.mastodon.like(first.external_id)
    world.mastodon.remove(second.external_id)
    sent = [Sent(one.external_id, one.permalink, account) for one in (first, second)]
    assert outlet.numbers(sent, NOW) == {
        first.external_id: {"likes": 1, "replies": 0, "reposts": 0}
    }


@pytest.mark.parametrize("given", ["many", -1, 1.5, True, [3], {"a": 1}, 10**400, None])
def test_only_what_is_a_number_counts(world: World, given: object) -> None:
    account = world.connect()
    body = {"id": "1", "favourites_count": given, "replies_count": 2}
    world.fail(f"{CREATE}/1", status=200, body=json.dumps(body))
    assert outlet.numbers([Sent("1", "", account)], NOW) == {"1": {"replies": 2}}


# -- the text --------------------------------------------------------------------------------------


def test_the_pieces_of_a_text_are_the_text_and_say_what_links() -> None:
    found = outlet.OUTLET.pieces(f"{TEXT} me@host.example #1 #v2 https://ä.example/ü.")
    assert "".join(piece.text for piece in found).startswith(TEXT)
    assert [(piece.kind, piece.text) for piece in found if piece.kind != "text"] == [
        ("mention", "@slow_boats@other.example"),
        ("link", "https://acme.example/a?b=1&c=2"),
        ("tag", "#sailing"),
        ("tag", "#v2"),
        ("link", "https://ä.example/ü"),
    ]
