"""Verbs on a product's plan: set it, pause it, resume it, and when it is due next.

The attributes that put a product into the due index are decided here and nowhere else: `due_at`
gives them all or none.
"""

import zlib
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import version
from typing import Any

from products.tables import Product
from scheduling.weekly import InvalidPlan, WeeklyPlan
from slothpost_site.dynamo import change, shard_of
from slothpost_site.moments import from_ms, to_ms

# 9:00 is everybody's hour: drafting is spread over a minute, by product and always alike.
JITTER = timedelta(minutes=1)


def plan_of(product: Product) -> WeeklyPlan:
    """The product's plan; an empty one in UTC where there is none. Raises InvalidPlan."""
    if product.plan is None:
        return WeeklyPlan("UTC", ())
    return WeeklyPlan.from_json(product.plan)


def set_plan(
    product: Product,
    plan: WeeklyPlan,
    *,
    lead: timedelta,
    version_seen: int,
    now: datetime,
) -> None:
    """Replace the plan that was seen. Raises Conflict when it was replaced meanwhile.

    Also mends a product that was set aside: its error and its attempts are gone.
    """
    lead_minutes = int(lead / timedelta(minutes=1))
    when = _due_while(product, plan, lead_minutes, now)
    change(
        product,
        Product.plan_version == version_seen,
        plan=plan.to_json(),
        plan_version=version_seen + 1,
        lead_minutes=lead_minutes,
        **when,
        **HEALTHY,
    )


def pause(product: Product, *, now: datetime, until: datetime | None = None) -> None:
    """No new drafts until a moment, or until the plan is resumed."""
    plan = plan_of(product)
    when = due_at(product.product_id, plan, int(product.lead_minutes), until) if until else NOT_DUE
    change(
        product,
        Product.plan_version == product.plan_version,
        plan_version=int(product.plan_version) + 1,
        paused_at=to_ms(now),
        paused_until=to_ms(until) if until else None,
        **when,
    )


def resume(product: Product, *, now: datetime) -> None:
    """Go on with the plan from its next slot; also for a product that was set aside."""
    plan = plan_of(product)
    change(
        product,
        Product.plan_version == product.plan_version,
        plan_version=int(product.plan_version) + 1,
        paused_at=None,
        paused_until=None,
        **due_at(product.product_id, plan, int(product.lead_minutes), now),
        **HEALTHY,
    )


def is_paused(product: Product, now: datetime) -> bool:
    if product.paused_at is None:
        return False
    return product.paused_until is None or product.paused_until > to_ms(now)


def is_lost(product: Product, now: datetime) -> bool:
    """Whether the plan is on and yet nothing will ever run it: silence that is a fault."""
    if product.next_run_at is not None or product.schedule_error or is_paused(product, now):
        return False
    try:
        return plan_of(product).is_on
    except InvalidPlan:
        return True


def _first_open(product: Product, now: datetime) -> datetime:
    """The moment after which slots count: one that is overdue is not lost by saving a plan."""
    if product.next_run_at is None or product.next_run_at > to_ms(now):
        return now
    return min(now, from_ms(product.next_slot_at) - timedelta(milliseconds=1))


NOT_DUE: dict[str, Any] = {"schedule_status": None, "next_run_at": None, "next_slot_at": None}
HEALTHY: dict[str, Any] = {
    "schedule_attempts": None,
    "schedule_error": None,
    "trouble_status": None,
    "trouble_at": None,
}


def due_at(product_id: str, plan: WeeklyPlan, lead_minutes: int, after: datetime) -> dict[str, Any]:
    """The attributes of the due index for the first slot strictly after a moment; all None when
    no slot is on."""
    slot_at = plan.next_slot_at(after)
    if slot_at is None:
        return NOT_DUE
    run_at = slot_at - timedelta(minutes=lead_minutes) + jitter(product_id)
    return {
        "schedule_status": shard_of("active", product_id),
        "next_run_at": to_ms(run_at),
        "next_slot_at": to_ms(slot_at),
        "tzdata_version": _tzdata_version(),
    }


@cache
def _tzdata_version() -> str:
    """The rules that a slot was worked out by; reading it from the package's files is slow."""
    return version("tzdata")


def jitter(product_id: str) -> timedelta:
    """This product's share of JITTER."""
    return JITTER * (zlib.crc32(product_id.encode()) % 60_000) / 60_000


def _due_while(
    product: Product, plan: WeeklyPlan, lead_minutes: int, now: datetime
) -> dict[str, Any]:
    """`due_at`, with a running pause kept."""
    if not is_paused(product, now):
        return due_at(product.product_id, plan, lead_minutes, _first_open(product, now))
    if product.paused_until is None:
        return NOT_DUE
    return due_at(product.product_id, plan, lead_minutes, from_ms(product.paused_until))
