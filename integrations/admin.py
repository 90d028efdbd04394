"""Staff see what arrived from GitHub and Vercel, day by day, and what became of it."""

from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from django.contrib import admin

from integrations import deliveries, models
from integrations.tables import Delivery
from slothpost_site.moments import to_ms
from slothpost_site.staff import Listing, TableAdmin, when

ONE_DAY = timedelta(days=1)


@admin.register(models.Delivery)
class DeliveryAdmin(TableAdmin):
    table = Delivery
    keys = ("delivery_id",)

    def listings(self, wanted: str, now: datetime) -> list[Listing]:
        """Today, and the day that is asked for with the days before and after it."""
        today = now.date()
        days = {today}
        with suppress(ValueError, OverflowError):
            asked = date.fromisoformat(wanted) if wanted else today
            days |= {asked + step * ONE_DAY for step in (-1, 0, 1)}
        kept = [day for day in days if today - deliveries.KEPT <= day <= today]
        return [_of_day(day) for day in sorted(kept, reverse=True)]

    def title(self, item: Any) -> str:
        return str(item.delivery_id)

    def details(self, item: Any, now: datetime) -> list[tuple[str, object]]:
        return [
            ("Source", item.source),
            ("Event", item.event),
            ("Received", when(item.received_at)),
            ("What became of it", item.outcome or "Not settled yet"),
            ("User", item.user_id),
            ("Product", item.product_id),
            ("Kept until", when(to_ms(item.expires_at))),
        ]


def _of_day(day: date) -> Listing:
    return Listing(
        day.isoformat(),
        f"{day:%a %-d %B %Y}",
        partial(deliveries.list_for_day, day),
        {
            "Delivery": lambda item: item.delivery_id,
            "Event": lambda item: item.event,
            "Received": lambda item: when(item.received_at),
            "What became of it": lambda item: item.outcome or "Not settled yet",
        },
    )
