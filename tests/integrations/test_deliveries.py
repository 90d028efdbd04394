"""The delivery log."""

from datetime import UTC, date, datetime, timedelta

import pytest

from integrations import deliveries
from integrations.deliveries import Taken
from integrations.sources.base import Received
from integrations.tables import Delivery
from slothpost_site.dynamo import Conflict, get
from slothpost_site.moments import to_ms

NOW = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
PUSH = Received(delivery_id="guid-1", event="push", follow_id="1")

pytestmark = pytest.mark.usefixtures("either_store")


def test_a_delivery_is_noted_when_it_arrives() -> None:
    assert deliveries.take_in(PUSH, "github", NOW)
    noted = get(Delivery, "github:guid-1")
    assert noted is not None
    assert noted.attribute_values == {
        "delivery_id": "github:guid-1",
        "source": "github",
        "event": "push",
        "received_at": to_ms(NOW),
        "received_on": "2026-11-30",
        "expires_at": NOW + timedelta(days=30),
    }


def test_a_settled_delivery_is_a_repeat() -> None:
    assert deliveries.take_in(PUSH, "github", NOW)
    deliveries.settle(PUSH, "github", [], NOW)
    assert not deliveries.take_in(PUSH, "github", NOW + timedelta(hours=1))


def test_an_interrupted_delivery_is_taken_in_again() -> None:
    assert deliveries.take_in(PUSH, "github", NOW)
    assert deliveries.take_in(PUSH, "github", NOW + timedelta(hours=1))
    noted = get(Delivery, "github:guid-1")
    assert noted is not None
    assert noted.received_at == to_ms(NOW)


def test_two_sources_may_use_the_same_id() -> None:
    assert deliveries.take_in(PUSH, "github", NOW)
    deliveries.settle(PUSH, "github", [], NOW)
    assert deliveries.take_in(PUSH, "vercel", NOW)


def test_each_product_has_a_line_of_its_own_and_staff_have_the_whole() -> None:
    deliveries.take_in(PUSH, "github", NOW)
    taken = [Taken("alice", "p1", "1 story"), Taken("bob", "p2", "known already")]
    deliveries.settle(PUSH, "github", taken, NOW)
    (for_alice,) = deliveries.list_for_product("p1").items
    (for_bob,) = deliveries.list_for_product("p2").items
    (for_staff,) = deliveries.list_for_day(date(2026, 11, 30)).items
    assert (for_alice.user_id, for_alice.event, for_alice.outcome) == ("alice", "push", "1 story")
    assert (for_bob.user_id, for_bob.event, for_bob.outcome) == ("bob", "push", "known already")
    assert (for_staff.product_id, for_staff.outcome) == (None, "Products reached: 2")
    assert deliveries.list_for_day(date(2026, 12, 1)).items == []


def test_what_an_interrupted_delivery_did_first_stays_in_the_log() -> None:
    deliveries.take_in(PUSH, "github", NOW)
    deliveries.settle(PUSH, "github", [Taken("alice", "p1", "1 story")], NOW)
    deliveries.settle(PUSH, "github", [Taken("alice", "p1", "known already")], NOW)
    assert [line.outcome for line in deliveries.list_for_product("p1").items] == ["1 story"]


@pytest.mark.parametrize(
    ("note", "outcome"), [("", "No product follows this"), ("A ping", "A ping")]
)
def test_a_delivery_that_reaches_nobody_says_why(note: str, outcome: str) -> None:
    received = Received(delivery_id="guid-2", event="ping", note=note)
    deliveries.take_in(received, "github", NOW)
    deliveries.settle(received, "github", [], NOW)
    assert [line.outcome for line in deliveries.list_for_day(NOW.date()).items] == [outcome]


def test_a_delivery_that_never_came_cannot_be_settled() -> None:
    with pytest.raises(Conflict):
        deliveries.settle(PUSH, "github", [], NOW)
    assert get(Delivery, "github:guid-1") is None


def test_the_log_is_paged_newest_first() -> None:
    for minute in range(30):
        received = Received(delivery_id=f"guid-{minute}", event="push")
        deliveries.take_in(received, "github", NOW - timedelta(minutes=minute))
    first = deliveries.list_for_day(NOW.date())
    second = deliveries.list_for_day(NOW.date(), first.next_cursor)
    found = [line.delivery_id for line in [*first.items, *second.items]]
    assert found == [f"github:guid-{minute}" for minute in range(30)]
    assert second.next_cursor == ""
