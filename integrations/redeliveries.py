"""Deliveries of GitHub's that did not get through, asked for again: it does not do so by itself.

https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from integrations.errors import NeedsReconnect, TryLater
from integrations.sources import github
from integrations.sources.base import Fields
from integrations.sources.github.calls import (
    OPERATORS_FAULT,
    app_token,
    each_page,
    items_of,
    rest,
    understood,
)

logger = logging.getLogger(__name__)

LOOKED_BACK = timedelta(days=3)  # GitHub promises no more
MOST_PAGES = 5
MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Attempt:
    """One time that GitHub tried to deliver something."""

    id: int
    guid: str  # the same for all attempts to deliver one thing
    at: datetime
    succeeded: bool


def redeliver(now: datetime) -> int:
    """Ask for what was never delivered in the last days, at most MOST_ATTEMPTS times each; how
    many that were. Raises a Failure."""
    if not github.is_configured():
        return 0
    try:
        api = rest(app_token(now))
        missed = to_redeliver(_attempts(now), now)
        for number in missed:
            api.ask("POST", f"/app/hook/deliveries/{number}/attempts", now=now)
    except NeedsReconnect as failure:
        raise TryLater(OPERATORS_FAULT) from failure
    return len(missed)


def to_redeliver(attempts: Iterable[Attempt], now: datetime) -> list[int]:
    """Which attempt to repeat of everything that has none that succeeded, the oldest first."""
    of_one: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.at > now - LOOKED_BACK:
            of_one.setdefault(attempt.guid, []).append(attempt)
    last = [
        max(found, key=lambda attempt: attempt.at)
        for found in of_one.values()
        if len(found) < MOST_ATTEMPTS and not any(attempt.succeeded for attempt in found)
    ]
    return [attempt.id for attempt in sorted(last, key=lambda attempt: attempt.at)]


@understood()
def _attempts(now: datetime) -> list[Attempt]:
    """The newest attempts, from now back to LOOKED_BACK."""
    found: list[Attempt] = []
    for page in islice(each_page(rest(app_token(now)), "/app/hook/deliveries", now), MOST_PAGES):
        found += [_attempt(item) for item in items_of(page)]
        if found and found[-1].at < now - LOOKED_BACK:
            break
    return found


def _attempt(item: Fields) -> Attempt:
    # GitHub writes 0 where it got no answer at all, which is no number above 0.
    succeeded = item.text("status", "") == "OK"
    return Attempt(
        item.number("id"), item.identifier("guid"), item.moment("delivered_at"), succeeded
    )
