"""The first half of the tick: which products need drafts now?

For each due product the slot's posts are put if they do not exist, under a key made of the slot
that was due; then its next run is moved on, on condition of the value that was read. Anybody can
repeat both at any time: nothing doubles, and a crash in between is finished by the next tick.
"""

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from products import posts
from products.tables import Product, ScheduleIndex
from scheduling import plans, ticks
from scheduling.ticks import TickReport
from scheduling.weekly import InvalidPlan, WeeklyPlan
from slothpost_site.dynamo import Conflict, StoreError, change_unread
from slothpost_site.moments import as_key, from_ms, parse_key, to_ms

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 3
LONGEST_LOOK_BACK = timedelta(days=31)


@dataclass(frozen=True)
class DueProduct:
    """What the index says of a product whose time has come."""

    user_id: str
    product_id: str
    run_at: int
    slot_at: int
    plan: WeeklyPlan
    plan_version: int
    lead: timedelta
    last_slots: dict[str, str]


def run_due_products(now: datetime) -> TickReport:
    """Put the posts of every product that is due and move each to its next run."""
    with ticks.measured() as report:
        ticks.work_through(
            report,
            Product,
            ScheduleIndex.Meta.index_name,
            Product.next_run_at <= to_ms(now),
            lambda entry: _run_one(entry, now),
        )
    logger.info("due products", extra={"report": vars(report)})
    return report


def _run_one(entry: dict[str, Any], now: datetime) -> bool:
    """One due product; whatever is wrong with it stays with it."""
    ids = {"user_id": entry["userId"]["S"], "product_id": entry["productId"]["S"]}
    try:
        product = _read(entry)
        latest, missed = _slots_due(product, now)
        for outlet, slot_at in latest.items():
            _begin_post(product, outlet, slot_at, missed.get(outlet, []), now)
        _advance(product, latest, now)
    except Conflict:
        logger.info("another tick was quicker, or the plan changed", extra=ids)
    except StoreError:
        # Nothing is wrong with the product: the next minute tries again.
        logger.exception("the store failed", extra=ids)
        return False
    except Exception as error:  # whatever it is, the other products go on and its owner sees it
        logger.exception("a due product failed", extra=ids)
        _count_failure(entry, error, now)
        return False
    return True


def _read(entry: dict[str, Any]) -> DueProduct:
    """The typed form of an index entry. Raises InvalidPlan, KeyError and the like."""
    return DueProduct(
        user_id=entry["userId"]["S"],
        product_id=entry["productId"]["S"],
        run_at=int(entry["nextRunAt"]["N"]),
        slot_at=int(entry["nextSlotAt"]["N"]),
        plan=WeeklyPlan.from_json(entry["plan"]["S"]),
        plan_version=int(entry["planVersion"]["N"]),
        lead=timedelta(minutes=int(entry["leadMinutes"]["N"])),
        last_slots=json.loads(entry["lastSlots"]["S"]) if "lastSlots" in entry else {},
    )


def _slots_due(product: DueProduct, now: datetime) -> tuple[dict[str, int], dict[str, list[int]]]:
    """For each outlet the latest slot whose drafts are due, and the slots before it that an
    outage missed (epoch ms)."""
    latest: dict[str, int] = {}
    missed: dict[str, list[int]] = {}
    start = max(_first_undrafted(product), now - LONGEST_LOOK_BACK)
    for instant, slots in product.plan.slots_between(start, _drafted_until(product, now)):
        slot_at = to_ms(instant)
        for outlet in (slot.outlet for slot in slots):
            if as_key(slot_at) <= product.last_slots.get(outlet, ""):
                continue
            if outlet in latest:
                missed.setdefault(outlet, []).append(latest[outlet])
            latest[outlet] = slot_at
    return latest, missed


def _first_undrafted(product: DueProduct) -> datetime:
    """The moment after which slots have no draft yet."""
    before = from_ms(product.slot_at) - timedelta(milliseconds=1)
    if product.plan.next_slot_at(before) == from_ms(product.slot_at):
        return before
    # The zone's rules changed since the slot was worked out: it may have moved to an earlier hour.
    return before - timedelta(hours=3)


def _drafted_until(product: DueProduct, now: datetime) -> datetime:
    """The last moment whose slots have their drafts due now."""
    return now + product.lead - plans.jitter(product.product_id)


def _begin_post(
    product: DueProduct, outlet: str, slot_at: int, missed: list[int], now: datetime
) -> None:
    previous = product.last_slots.get(outlet)
    posts.begin(
        product.user_id,
        product.product_id,
        outlet,
        slot_at,
        work_at=product.run_at,
        previous_slot_at=parse_key(previous) if previous else None,
        missed_slots=missed,
        now=now,
    )


def _advance(product: DueProduct, latest: dict[str, int], now: datetime) -> None:
    """Move to the first slot that is not yet due, in one step however late this is."""
    drafted = {outlet: as_key(slot_at) for outlet, slot_at in latest.items()}
    lead_minutes = int(product.lead / timedelta(minutes=1))
    after = max(_drafted_until(product, now), from_ms(product.slot_at))
    change_unread(
        Product(product.user_id, product.product_id),
        (Product.next_run_at == product.run_at) & (Product.plan_version == product.plan_version),
        last_slots={**product.last_slots, **drafted},
        paused_at=None,
        paused_until=None,
        **plans.HEALTHY,
        **plans.due_at(product.product_id, product.plan, lead_minutes, after),
    )


def _count_failure(entry: dict[str, Any], error: Exception, now: datetime) -> None:
    """One more failed try; the third takes the product out of the index with its error kept."""
    attempts = int(entry.get("scheduleAttempts", {}).get("N", 0)) + 1
    set_aside = attempts >= MOST_ATTEMPTS
    values = {"schedule_attempts": attempts, "schedule_error": explain(error)}
    if set_aside:
        values |= plans.NOT_DUE | {"trouble_status": "open", "trouble_at": to_ms(now)}
    try:
        change_unread(
            Product(entry["userId"]["S"], entry["productId"]["S"]),
            Product.next_run_at == int(entry["nextRunAt"]["N"]),
            **values,
        )
    except Conflict:
        logger.info("changed meanwhile", extra={"product_id": entry["productId"]["S"]})


def explain(error: Exception) -> str:
    """Why a plan cannot run, for its owner."""
    if isinstance(error, InvalidPlan):
        return f"The plan cannot run. {error}"
    return "The plan cannot be read: open it, check it and save it again."
