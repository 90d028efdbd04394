"""A step of the tick: whose sources are to be asked now?

Webhooks tell most of what happens, and tell it soon. What they missed, and what has no webhook, is
found by asking, before each draft. Both give the same facts under the same keys.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from integrations import connections, redeliveries
from integrations.errors import Failure, NeedsReconnect, TryLater
from integrations.sources import SOURCES
from integrations.sources.base import Fetched, Follow, Hidden, Opened
from products import catalogue, following
from products.tables import FetchIndex, Product
from scheduling import ticks
from scheduling.ticks import TickReport
from slothpost_site.dynamo import Conflict, StoreError
from slothpost_site.moments import from_ms, to_ms

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=5)
MOST_ATTEMPTS = 5
# What is listed late, and a clock that is off, are covered by reading so much twice.
OVERLAP = timedelta(days=1)
LONGEST_WAIT = timedelta(hours=1)  # that one source can have the others of a product wait for
STILL_GOOD = timedelta(days=1)  # a check of an account that succeeded so lately is not noted again

CUT_OFF = "The account that shows it has to be connected again."


def run_due_fetches(now: datetime) -> TickReport:
    """Ask the sources of every product that waits for it, and record what they say."""
    with ticks.measured() as report:
        ticks.hand_out(
            report,
            Product,
            FetchIndex.Meta.index_name,
            Product.fetch_at <= to_ms(now),
            lambda entry: _run_one(entry, now),
            *([partial(_redeliver, now)] if now.minute % 15 == 0 else []),
        )
    logger.info("due fetches", extra={"report": vars(report)})
    return report


def _run_one(entry: dict[str, Any], now: datetime) -> bool:
    """One product's sources; whatever is wrong with them stays with it."""
    ids = {"user_id": entry["userId"]["S"], "product_id": entry["productId"]["S"]}
    try:
        product = catalogue.find(ids["user_id"], ids["product_id"])
        if product is None or product.fetch_at is None or product.fetch_at > to_ms(now):
            return True
        following.claim_fetch(product, until=now + LEASE)
        return _fetch(product, now)
    except Conflict:
        logger.info("another tick was quicker, or what is followed changed", extra=ids)
        return True
    except StoreError:
        logger.exception("the store failed", extra=ids)
        return False
    except Exception:  # whatever it is, the other products go on; the lease brings this one back
        logger.exception("a fetch failed", extra=ids)
        return False


def _fetch(product: Product, now: datetime) -> bool:
    """Ask each source that need not wait; False if one of them has to be asked again.

    The others of a product wait for one of them no longer than LONGEST_WAIT: what it has to wait
    beyond that, it waits for the next draft, while its error is shown.
    """
    before = {source: following.state_of(product, source) for source in following.followed(product)}
    asked = {
        source: _state_after(product, source, now)
        for source, state in before.items()
        if not _waits_until(state, now)
    }
    again = [at for state in {**before, **asked}.values() if (at := _waits_until(state, now))]
    if again and min(again) <= to_ms(now + LONGEST_WAIT):
        following.put_off_fetch(product, asked, from_ms(min(again)))
    else:
        following.end_fetch(product, asked, now)
    return not any(_waits_until(state, now) for state in asked.values())


def _state_after(product: Product, source: str, now: datetime) -> dict[str, Any]:
    """What is known of a source once it was asked, whatever came of that."""
    if following.is_cut_off(product, source):
        return {**_calm(product, source), "error": CUT_OFF}
    follow = following.follow_of(product, source, now)
    try:
        return _take(product, source, follow, SOURCES[source].fetch(follow, now), now)
    except Conflict:
        raise
    except TryLater as failure:
        _note_failure(follow, failure, now)
        return _put_off(product, source, failure, now)
    except Failure as failure:
        _note_failure(follow, failure, now)
        return {**_calm(product, source), "error": failure.reason}
    except Exception:  # whatever it is, it is this source's alone, and the others go on
        ids = {"product_id": product.product_id, "source": source}
        logger.exception("a source could not be read", extra=ids)
        ours = f"{SOURCES[source].LABEL} could not be read, by a fault of ours: it is tried again."
        return _put_off(product, source, TryLater(ours), now)


def _put_off(product: Product, source: str, failure: TryLater, now: datetime) -> dict[str, Any]:
    """Have it asked again: what the source asks for comes first, else from a minute on, doubling.
    After MOST_ATTEMPTS it is left in peace until the next draft."""
    failed = {**_calm(product, source), "error": failure.reason}
    attempts = int(following.state_of(product, source).get("attempts", 0))
    if attempts >= MOST_ATTEMPTS:
        return failed
    wait = max(failure.after or timedelta(minutes=2**attempts), timedelta(minutes=1))
    return {**failed, "attempts": attempts + 1, "not_before": to_ms(now + wait)}


def _calm(product: Product, source: str) -> dict[str, Any]:
    """The source's state without any wait."""
    state = following.state_of(product, source)
    return {name: kept for name, kept in state.items() if name not in ("attempts", "not_before")}


def _waits_until(state: dict[str, Any], now: datetime) -> int | None:
    """Until when (epoch ms) a source that failed is not to be asked; None if it need not wait."""
    not_before = int(state.get("not_before", 0))
    return not_before if "error" in state and not_before > to_ms(now) else None


def _take(
    product: Product, source: str, follow: Follow, fetched: Fetched, now: datetime
) -> dict[str, Any]:
    """Record what a source said; the state that the next fetch begins from."""
    if fetched.private is not None and fetched.private != following.is_private(product, source):
        hidden = Hidden(f"{follow.name or 'It'} is not open to everybody.")
        following.keep_up(product, source, follow.id, hidden if fetched.private else Opened(), now)
    what = following.record(product, source, follow.id, fetched.events, now)
    logger.info(
        "source read",
        extra={"product_id": product.product_id, "source": source, "recorded": what},
    )
    state = {"since": to_ms(now - OVERLAP), "seen": dict(fetched.seen), "at": to_ms(now)}
    if fetched.note:
        state["note"] = fetched.note
    for upkeep in fetched.upkeep:
        following.keep_up(product, source, follow.id, upkeep, now)
        state = {**state, **_said_by_upkeep(product, source)}
    if getattr(product, following.LINKS[source].id) not in (None, follow.id):
        raise Conflict("Something else is followed there by now.")
    _note_success(follow, now)
    return state


def _said_by_upkeep(product: Product, source: str) -> dict[str, Any]:
    error = following.state_of(product, source).get("error")
    return {"error": error} if error else {}


def _note_failure(follow: Follow, failure: Failure, now: datetime) -> None:
    """The account's page tells its owner what was so."""
    if follow.connection is None:
        return
    if isinstance(failure, NeedsReconnect):
        connections.mark_broken(follow.connection, failure.reason, now)
    else:
        connections.mark_trouble(follow.connection, failure.reason, now)


def _note_success(follow: Follow, now: datetime) -> None:
    account = follow.connection
    if account is None:
        return
    if account.trouble or to_ms(now - STILL_GOOD) > (account.checked_at or 0):
        connections.mark_working(account, now)


def _redeliver(now: datetime) -> None:
    """Have GitHub send again what did not get through: it does not do so by itself."""
    try:
        count = redeliveries.redeliver(now)
    except Failure as failure:
        logger.warning("redeliveries not asked for", extra={"reason": failure.reason})
    else:
        logger.info("redeliveries asked for", extra={"deliveries": count})
