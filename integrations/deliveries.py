"""Webhook deliveries: what arrived and what became of it, for its owner and for staff."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from integrations.sources.base import Received
from integrations.tables import Delivery
from slothpost_site.dynamo import change, get, put_new
from slothpost_site.moments import to_ms
from slothpost_site.paging import Page, read_page

KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Taken:
    """What became of a delivery for one product, in words for its owner."""

    user_id: str
    product_id: str
    what: str


def take_in(received: Received, source: str, now: datetime) -> bool:
    """Note that a delivery arrived; False if it was seen before and is settled.

    One that was seen and never settled was interrupted. It is taken in again, because everything
    that follows can be repeated without a second effect.
    """
    key = _key(received, source)
    item = Delivery(
        key,
        source=source,
        event=received.event,
        received_at=to_ms(now),
        received_on=now.date().isoformat(),
        expires_at=now + KEPT,
    )
    if put_new(item):
        return True
    seen = get(Delivery, key)
    return seen is None or seen.outcome is None


def settle(received: Received, source: str, taken: Sequence[Taken], now: datetime) -> None:
    """Write what became of a delivery: a line for each product it reached, then its own outcome.

    The outcome comes last, because it is what makes the next delivery of the same a repeat.
    Raises Conflict if the delivery was never taken in.
    """
    key = _key(received, source)
    for product in taken:
        put_new(
            Delivery(
                f"{key}#{product.product_id}",
                source=source,
                event=received.event,
                received_at=to_ms(now),
                product_id=product.product_id,
                user_id=product.user_id,
                outcome=product.what,
                expires_at=now + KEPT,
            )
        )
    change(Delivery(key), None, outcome=_outcome(received, len(taken)))


def list_for_product(product_id: str, cursor: str = "") -> Page[Delivery]:
    """What reached a product, newest first. The caller has made sure whose product it is."""
    return read_page(Delivery.by_product, product_id, cursor=cursor)


def list_for_day(day: date, cursor: str = "") -> Page[Delivery]:
    """Every delivery of a day (UTC), newest first, whether it reached a product or not."""
    return read_page(Delivery.by_day, day.isoformat(), cursor=cursor)


def _outcome(received: Received, products: int) -> str:
    if received.note:
        return received.note
    return f"Products reached: {products}" if products else "No product follows this"


def _key(received: Received, source: str) -> str:
    return f"{source}:{received.delivery_id}"
