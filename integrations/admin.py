"""Staff see what arrived from the sources, day by day, and which accounts need something."""

from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from django.contrib import admin

from integrations import connections, deliveries, models
from integrations.tables import Connection, Delivery
from slothpost_site.dynamo import shards
from slothpost_site.moments import to_ms
from slothpost_site.paging import read_page
from slothpost_site.staff import Listing, TableAdmin, owner, when

ONE_DAY = timedelta(days=1)


@admin.register(models.Connection)
class ConnectionAdmin(TableAdmin):
    """Accounts, without anything that is secret in them."""

    table = Connection
    keys = ("user_id", "key")
    searches_users = True

    def listings(self, wanted: str, now: datetime) -> list[Listing]:
        """What is coming up: accounts to renew, and owners to tell."""
        return [_coming_up(partition) for partition in shards("active")]

    def of_user(self, user_id: str) -> Listing:
        return Listing(
            "user",
            f"Of user {user_id}",
            partial(connections.list_for, user_id),
            {
                "Account": _name,
                "What is wrong": lambda item: item.broken or item.trouble or "",
                "Last read": lambda item: when(item.checked_at),
            },
        )

    def title(self, item: Any) -> str:
        return _name(item)

    def details(self, item: Any, now: datetime) -> list[tuple[str, object]]:
        return [
            ("Owner", owner(item.user_id, "integrations.connection")),
            ("Connected", when(item.connected_at)),
            ("Last read", when(item.checked_at)),
            ("Broken", item.broken),
            ("Its owner was told", when(item.told_at)),
            ("Trouble", item.trouble),
            ("Something is due", when(item.refresh_at)),
            ("Failed tries", item.refresh_attempts and int(item.refresh_attempts)),
        ]


def _name(item: Connection) -> str:
    return f"{item.provider}: {item.account_name or item.account_id}"


def _coming_up(partition: str) -> Listing:
    _, _, shard = partition.partition("#")
    return Listing(
        f"due{shard}",
        f"To renew or to tell, shard {shard}" if shard else "To renew or to tell",
        partial(read_page, Connection.to_refresh, partition, newest_first=False),
        {
            "Account": lambda item: item.key,
            "User": lambda item: item.user_id,
            "Due": lambda item: when(item.refresh_at),
        },
    )


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
