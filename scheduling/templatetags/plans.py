"""What the pages of products say of their plans."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django import template

from integrations.outlets import OUTLETS
from products.tables import Product
from scheduling import plans
from scheduling.weekly import InvalidPlan, describe
from slothpost_site.moments import from_ms

LABELS = {name: outlet.label for name, outlet in OUTLETS.items()}

register = template.Library()


@dataclass(frozen=True)
class Standing:
    """How a product's plan stands: `state` is off, on, paused, aside (set aside) or lost."""

    state: str
    sentence: str


@register.simple_tag
def standing(product: Product, now: datetime) -> Standing:
    """How the product's plan stands, and the plan as one sentence ("" where none is on)."""
    try:
        plan = plans.plan_of(product)
    except InvalidPlan:
        return Standing("aside", "")
    sentence = describe(plan, LABELS) if plan.is_on else ""
    if product.trouble_status:
        return Standing("aside", sentence)
    if plans.is_paused(product, now):
        return Standing("paused", sentence)
    if plans.is_lost(product, now):
        return Standing("lost", sentence)
    return Standing("on" if plan.is_on else "off", sentence)


@register.simple_tag
def next_draft(products: Iterable[Product]) -> Product | None:
    """The product whose next draft comes first, if any is planned."""
    planned = [product for product in products if product.next_run_at is not None]
    return min(planned, key=lambda product: product.next_run_at, default=None)


@register.filter
def is_past(ms: float, now: datetime) -> bool:
    """Whether a planned moment has come, so that the next tick acts on it."""
    return from_ms(ms) <= now
