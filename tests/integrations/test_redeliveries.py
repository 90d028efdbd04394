"""What never got through is asked for again: not too often, and not for ever."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from integrations.errors import TryLater
from integrations.redeliveries import Attempt, redeliver, to_redeliver
from integrations.standins.github import SLOWTIDE
from tests.conftest import Outside

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def attempt(number: int, guid: str, hours_ago: float, succeeded: bool = False) -> Attempt:
    return Attempt(number, guid, NOW - timedelta(hours=hours_ago), succeeded)


def test_the_last_attempt_of_what_never_arrived_is_repeated_the_oldest_first() -> None:
    attempts = [
        attempt(1, "late", 1),
        attempt(2, "early", 5),
        attempt(3, "twice", 4),
        attempt(4, "twice", 3),
        attempt(5, "arrived", 4),
        attempt(6, "arrived", 2, succeeded=True),
        *(attempt(7 + n, "never", n + 1) for n in range(3)),
        attempt(10, "old", 73),
    ]
    assert to_redeliver(attempts, NOW) == [2, 4, 1]
    assert to_redeliver(reversed(attempts), NOW) == [2, 4, 1]


@pytest.mark.usefixtures("store")
def test_a_failed_delivery_is_asked_for_three_times_and_then_left(outside: Outside) -> None:
    now = timezone.now()
    outside.github.clock = lambda: now
    outside.github.merge(outside.github.repositories[SLOWTIDE])  # nobody listens
    assert [redeliver(now) for _ in range(4)] == [1, 1, 0, 0]
    assert len({delivery["guid"] for delivery in outside.github.deliveries}) == 1
    assert len(outside.github.deliveries) == 3


def test_without_an_app_nothing_is_asked(settings: Settings) -> None:
    settings.GITHUB_APP_ID = ""
    assert redeliver(NOW) == 0


def test_an_app_that_is_not_known_is_the_operators_to_mend(
    outside: Outside, settings: Settings
) -> None:
    settings.GITHUB_APP_ID = "another"
    with pytest.raises(TryLater):
        redeliver(timezone.now())
