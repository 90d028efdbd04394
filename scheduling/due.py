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
    drafted_slots: dict[str, list[str]]


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
        drafted = {
            outlet: _begin_posts(product, outlet, slots, now)
            for outlet, slots in _slots_due(product, now).items()
        }
        _advance(product, drafted, now)
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
        drafted_slots=json.loads(entry["draftedSlots"]["S"]) if "draftedSlots" in entry else {},
    )


def _slots_due(product: DueProduct, now: datetime) -> dict[str, list[int]]:
    """For each outlet its slots (epoch ms, in order) whose drafts are due and not begun."""
    due: dict[str, list[int]] = {}
    start = max(_first_slot(product), now - LONGEST_LOOK_BACK)
    for slot_at, slots in product.plan.slots_between(start, _drafted_until(product, now)):
        for outlet in (slot.outlet for slot in slots):
            if as_key(to_ms(slot_at)) not in product.drafted_slots.get(outlet, []):
                due.setdefault(outlet, []).append(to_ms(slot_at))
    return due


def _first_slot(product: DueProduct) -> datetime:
    """The moment after which slots are looked for."""
    before = from_ms(product.slot_at) - timedelta(milliseconds=1)
    if product.plan.next_slot_at(before) == from_ms(product.slot_at):
        return before
    # The zone's rules changed since the slot was worked out: it may have moved to an earlier hour.
    return before - timedelta(hours=3)


def _drafted_until(product: DueProduct, now: datetime) -> datetime:
    """The last moment whose slots have their drafts due now."""
    return now + product.lead - plans.jitter(product.product_id)


def _begin_posts(product: DueProduct, outlet: str, slots: list[int], now: datetime) -> list[str]:
    """Begin the posts of an outlet's due slots. Returns its drafted slots as they are to be kept.

    A slot to come gets its post. Of those that passed while nobody looked, the latest alone does,
    and none if one is to come: after an outage there is one post, which says what it stands for.
    """
    to_come = [slot_at for slot_at in slots if slot_at > to_ms(now)]
    passed = slots[: len(slots) - len(to_come)]
    chosen = to_come or passed[-1:]
    missed = [slot_at for slot_at in passed if slot_at not in chosen]
    drafted = list(product.drafted_slots.get(outlet, []))
    for place, slot_at in enumerate(chosen):
        posts.begin(
            product.user_id,
            product.product_id,
            outlet,
            slot_at,
            work_at=product.run_at + place,  # in their order, since each begins where one ended
            previous_slot_at=parse_key(drafted[-1]) if drafted else None,
            missed_slots=missed if place == 0 else [],
            now=now,
        )
        drafted.append(as_key(slot_at))
    return [slot for slot in drafted[:-1] if slot > as_key(to_ms(now))] + drafted[-1:]


def _advance(product: DueProduct, drafted: dict[str, list[str]], now: datetime) -> None:
    """Move to the first slot that is not yet due, in one step however late this is."""
    lead_minutes = int(product.lead / timedelta(minutes=1))
    after = max(_drafted_until(product, now), from_ms(product.slot_at))
    change_unread(
        Product(product.user_id, product.product_id),
        (Product.next_run_at == product.run_at) & (Product.plan_version == product.plan_version),
        drafted_slots={**product.drafted_slots, **drafted},
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
            Product.next_run_at == json.loads(entry["nextRunAt"]["N"]),
            **values,
        )
    except (Conflict, StoreError):
        logger.exception("not counted", extra={"product_id": entry["productId"]["S"]})


def explain(error: Exception) -> str:
    """Why a plan cannot run, for its owner."""
    if isinstance(error, InvalidPlan):
        return f"The plan cannot run. {error}"
    return "The plan cannot be read: open it, check it and save it again."
