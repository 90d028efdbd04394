"""Webhooks: what is delivered and how it is signed, and what every answer means."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from integrations import connections
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import webhook as outlet
from integrations.outlets.base import Approved, Published
from integrations.standins import webhook as standin
from integrations.standins.server import Fault, StandIns
from integrations.standins.webhook import HOST, TOKEN, URL, Delivery, Receiver
from integrations.tables import Connection
from tests.builders import reread

pytestmark = pytest.mark.usefixtures("store")

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TEXT = 'Tides & <waves> 🌊 "quoted" → https://acme.example/a?b=1&c=2'
SLACK = "https://hooks.slack.com/services/T0/B0/s3cr3t"


@dataclass
class World:
    standins: StandIns
    receiver: Receiver

    def connect(self, url: str = URL, name: str = "") -> Connection:
        return outlet.finish("1", {"url": url, "name": name}, {}, NOW).connection

    def fail(self, **fault: object) -> None:
        self.standins.faults.append(Fault(method="POST", **fault))  # type: ignore[arg-type]

    @property
    def last(self) -> Delivery:
        return self.receiver.deliveries[-1]


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    standins = StandIns().start()
    found = World(standins, standin.add_to(standins, settings.DATA_DIR))
    here = json.loads(standin.settings_for(standins)["OPERATOR_HOSTS"])
    settings.OPERATOR_HOSTS = {**here, "hooks.slack.com": f"{standins.url}/webhook"}
    found.receiver.clock = lambda: NOW
    yield found
    standins.stop()


def approved(account: Connection) -> Approved:
    return Approved(
        user_id="1",
        product_id="p",
        product_name="Tidewater",
        product_link="https://tidewater.example",
        slug="",
        text=TEXT,
        slot_at=NOW - timedelta(minutes=1),
        key="a-key",
        account=account,
        approved_at=NOW,
        claimed_at=NOW,
    )


def secret_of(account: Connection) -> str:
    return connections.secrets_of(account)["secret"]


# -- connecting ------------------------------------------------------------------------------------


def test_an_address_is_connected_once_it_took_a_ping(world: World) -> None:
    account = world.connect()
    assert (account.account_name, account.details) == (HOST, {"host": HOST})
    assert (world.last.body["type"], world.receiver.posts) == ("ping", [])


def test_its_name_is_the_persons_and_its_address_is_nowhere_in_the_open(world: World) -> None:
    account = world.connect(name="  Our team\n")
    assert account.account_name == "Our team"
    assert TOKEN not in json.dumps(account.serialize(), default=str)


def test_whoever_connects_it_again_keeps_its_secret(world: World) -> None:
    first = secret_of(world.connect())
    done = outlet.finish("1", {"url": URL}, {}, NOW)
    assert secret_of(done.connection) == first
    assert first in done.note


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "Write the whole address, beginning with https://."),
        ("http://hooks.example/x", "Write the whole address, beginning with https://."),
        (
            "https://127.0.0.1/x",
            "“127.0.0.1” is no public host: write its name, as in its address.",
        ),
        (
            f"https://{HOST}/nobody",
            f"{HOST} refused it (404): “No such hook”. Is its address still right?",
        ),
    ],
)
def test_an_address_that_cannot_be_posted_to_is_refused(
    world: World, url: str, reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        world.connect(url)
    assert refused.value.reason == reason
    assert connections.of_provider("1", "webhook") == []


def test_a_name_that_leads_inside_is_called_nowhere(world: World) -> None:
    with pytest.raises(Failure, match=r"did not answer|not at a public address"):
        world.connect("https://localtest.me/hook")
    assert world.standins.calls == []


def test_an_address_that_is_gone_is_noticed_by_the_check(world: World) -> None:
    account = world.connect()
    world.receiver.gone.add(TOKEN)
    with pytest.raises(NeedsReconnect):
        outlet.check(account, NOW)
    assert reread(account).broken == f"{HOST} says that this address is gone: connect another."


def test_disconnecting_forgets_it(world: World) -> None:
    assert outlet.disconnect(world.connect(), NOW) == ""
    assert connections.of_provider("1", "webhook") == []


# -- delivering ------------------------------------------------------------------------------------


def test_a_delivery_holds_the_approved_text_and_is_signed(world: World) -> None:
    account = world.connect()
    published = outlet.publish(approved(account), NOW)
    number = world.last.body["id"]
    assert published == Published(number, "")
    assert world.last.body == {
        "id": number,
        "type": "post.published",
        "product": {"name": "Tidewater", "link": "https://tidewater.example"},
        "text": TEXT,
        "content": TEXT,
        "slotAt": "2026-12-01T08:59:00Z",
        "sentAt": "2026-12-01T09:00:00Z",
    }
    signed = hmac.new(secret_of(account).encode(), world.last.raw, hashlib.sha256).hexdigest()
    headers = world.last.headers
    assert headers["x-slothpost-signature"] == f"sha256={signed}"
    assert headers["x-slothpost-delivery"] == number
    assert headers["content-type"] == "application/json"


def test_a_post_has_the_same_id_for_ever_and_no_other_has_it(world: World) -> None:
    post = approved(world.connect())
    numbers = [
        outlet.publish(one, at).external_id
        for one, at in ((post, NOW), (post, NOW + timedelta(days=1)), (replace(post, key="b"), NOW))
    ]
    assert numbers[0] == numbers[1] != numbers[2]


def test_slack_shows_the_text_and_no_marks_of_its_own(world: World) -> None:
    world.receiver.tokens.add("services/T0/B0/s3cr3t")
    world.receiver.routes = (("POST", "/(services/.+)", "receive"),)
    outlet.publish(approved(world.connect(SLACK)), NOW)
    assert world.last.body["text"] == TEXT.replace("&", "&amp;").replace("<", "&lt;").replace(
        ">", "&gt;"
    )
    assert world.last.body["mrkdwn"] is False
    assert "content" not in world.last.body


@pytest.mark.parametrize(
    ("fault", "kind", "reason"),
    [
        ({"status": 503}, TryLater, f"{HOST} takes nothing just now (503)."),
        ({"status": 429}, TryLater, None),
        (
            {"status": 500},
            Unknown,
            f"{HOST} says that it failed (500), and may have it all the same.",
        ),
        (
            {"status": 504},
            Unknown,
            f"{HOST} says that it failed (504), and may have it all the same.",
        ),
        (
            {"status": 408},
            Unknown,
            f"{HOST} says that it failed (408), and may have it all the same.",
        ),
        ({"hang_up": True}, Unknown, f"{HOST} did not answer: it may have done it."),
        (
            {"status": 410},
            NeedsReconnect,
            f"{HOST} says that this address is gone: connect another.",
        ),
        (
            {"status": 302, "headers": {"Location": "https://elsewhere.example/"}},
            Refused,
            f"{HOST} points elsewhere: connect the address that it leads to.",
        ),
        (
            {"status": 400, "body": "invalid_payload"},
            Refused,
            f"{HOST} refused it (400): “invalid_payload”. Is its address still right?",
        ),
        (
            {"status": 400, "body": f"no hook called {TOKEN}"},
            Refused,
            f"{HOST} refused it (400). Is its address still right?",
        ),
        (
            {"status": 403, "body": "<html>Forbidden</html>"},
            Refused,
            f"{HOST} refused it (403). Is its address still right?",
        ),
    ],
)
def test_what_an_answer_means(
    world: World, fault: dict[str, object], kind: type[Failure], reason: str | None
) -> None:
    account = world.connect()
    world.fail(**fault)
    with pytest.raises(Failure) as failed:
        outlet.publish(approved(account), NOW)
    assert type(failed.value) is kind
    assert reason is None or failed.value.reason == reason
    assert bool(reread(account).broken) == (kind is NeedsReconnect)
    assert world.receiver.posts == []


def test_any_body_of_a_good_answer_is_a_receipt(world: World) -> None:
    account = world.connect()
    for body in ("", "ok", '{"half": ', "<html>"):
        world.fail(status=200, body=body)
        assert outlet.publish(approved(account), NOW).permalink == ""


def test_what_may_have_arrived_is_never_delivered_again(world: World) -> None:
    account = world.connect()
    world.fail(does_the_work=True, hang_up=True)
    with pytest.raises(Unknown):
        outlet.publish(approved(account), NOW)
    with pytest.raises(Unknown):
        outlet.publish(replace(approved(account), is_repeat=True), NOW)
    assert [post.text for post in world.receiver.posts] == [TEXT]
