"""One plain function per noun: what a test does not name is unremarkable."""

from datetime import UTC, datetime, timedelta
from typing import Any

from integrations.sources.base import Event
from products import activity, catalogue, posts
from products.tables import Activity, Post, Product
from scheduling import plans
from scheduling.weekly import Slot, WeeklyPlan
from slothpost_site import dynamo
from slothpost_site.moments import to_ms

# A Monday. Nothing in the tests asks the clock.
NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def at(text: str) -> datetime:
    """ "2026-01-06 09:00" in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def make_product(user_id: str = "1", *, now: datetime = NOW, **details: Any) -> Product:
    return catalogue.create(user_id, name=details.pop("name", "Tidewater"), now=now, **details)


def make_plan(*slots: tuple[int, str, str], timezone: str = "UTC") -> WeeklyPlan:
    return WeeklyPlan(timezone, tuple(Slot(*slot) for slot in slots))


def planned_product(
    *slots: tuple[int, str, str],
    user_id: str = "1",
    timezone: str = "UTC",
    lead: timedelta = timedelta(),
    now: datetime = NOW,
    **details: Any,
) -> Product:
    """A product whose plan runs; Tuesday 9:00 on the changelog unless slots are given."""
    product = make_product(user_id, now=now, **details)
    plan = make_plan(*(slots or [(1, "09:00", "changelog")]), timezone=timezone)
    plans.set_plan(product, plan, lead=lead, version_seen=0, now=now)
    return product


def make_event(**fields: Any) -> Event:
    return Event(
        **{
            "source": "github",
            "kind": "merge",
            "id": "pr:7",
            "occurred_at": NOW,
            "title": "Add a dark theme",
            "link": "https://github.com/acme/app/pull/7",
            "refs": ("pr:7",),
            **fields,
        }
    )


def make_story(product: Product, *, now: datetime = NOW, **fields: Any) -> Activity:
    activity.record(product.product_id, make_event(occurred_at=now, **fields), now)
    return next(iter(activity.list_for(product.product_id).items))


def make_post(
    product: Product,
    *,
    slot_at: datetime = NOW,
    outlet: str = "changelog",
    text: str | None = "Tidewater has a dark theme.",
    now: datetime = NOW,
) -> Post:
    """A post of this product that waits for review, or is drafting when `text` is None."""
    posts.begin(
        product.user_id,
        product.product_id,
        outlet,
        to_ms(slot_at),
        work_at=to_ms(now),
        previous_slot_at=None,
        missed_slots=[],
        now=now,
    )
    post = posts.find(product.user_id, to_ms(slot_at), product.product_id, outlet)
    assert post is not None
    if text is not None:
        posts.fill(
            post,
            now=now,
            text=text,
            evidence=[],
            product_name=product.name,
            timezone="UTC",
        )
    return post


def approved_post(product: Product, *, now: datetime = NOW, **fields: Any) -> Post:
    post = make_post(product, now=now, **fields)
    slot_at = fields.get("slot_at", NOW)
    posts.approve(post, seen=posts.text_hash(post), send_at=max(slot_at, now), now=now, by="1")
    return post


def reread(item: Any) -> Any:
    """The item as the store holds it now."""
    keys = [a for a in type(item).get_attributes().values() if a.is_hash_key or a.is_range_key]
    keys.sort(key=lambda attribute: not attribute.is_hash_key)
    names = {attribute.attr_name: name for name, attribute in type(item).get_attributes().items()}
    return dynamo.get(type(item), *(getattr(item, names[key.attr_name]) for key in keys))
