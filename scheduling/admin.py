"""Staff see what the clock found, and which products are late or set aside, and mend them.

The page of products is here and not in products/admin.py, because its verbs are the plan's, and
products cannot import those. Its doorway is where the noun is: products.models.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.template.defaultfilters import urlize
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from products import catalogue
from products import models as products_models
from products.tables import Product
from scheduling import models, plans
from scheduling.tables import Tick
from scheduling.tick import STEPS
from scheduling.ticks import JOB
from scheduling.views import LABELS
from scheduling.weekly import InvalidPlan, describe
from slothpost_site.dynamo import shards
from slothpost_site.moments import from_ms, to_ms
from slothpost_site.paging import read_page
from slothpost_site.staff import Listing, TableAdmin, Verb, late, owner, when


@admin.register(products_models.Product)
class ProductAdmin(TableAdmin):
    table = Product
    keys = ("user_id", "product_id")
    refusals = (*TableAdmin.refusals, InvalidPlan)
    searches_users = True
    verbs = (
        Verb(
            "pause",
            "Pause the plan",
            "No new drafts until somebody resumes the plan. Approved posts still go out.",
            "The plan is paused.",
            lambda product, now, by: plans.pause(product, now=now),
            lambda product, now: not plans.is_paused(product, now) and product.plan is not None,
        ),
        Verb(
            "resume",
            "Resume the plan",
            "The plan goes on with its next slot. A product that was set aside gets a new start.",
            "The plan goes on with its next slot.",
            lambda product, now, by: plans.resume(product, now=now),
            lambda product, now: _stands_still(product, now),
        ),
    )

    def listings(self, wanted: str, now: datetime) -> list[Listing]:
        set_aside = Listing(
            "aside",
            "Set aside",
            partial(read_page, Product.in_trouble, "open"),
            {
                "Product": lambda product: product.name or product.product_id,
                "User": lambda product: product.user_id,
                "Since": lambda product: when(product.trouble_at),
                "What is wrong": lambda product: product.schedule_error,
            },
        )
        return [set_aside, *(_due(partition, now) for partition in shards("active"))]

    def of_user(self, user_id: str) -> Listing:
        return Listing(
            "user",
            f"Of user {user_id}",
            partial(catalogue.list_for, user_id),
            {
                "Product": lambda product: product.name,
                "Next drafts": lambda product: when(product.next_run_at),
                "What is wrong": lambda product: product.schedule_error,
            },
        )

    def title(self, item: Any) -> str:
        return str(item.name)

    def details(self, item: Any, now: datetime) -> list[tuple[str, object]]:
        return [
            ("What is wrong", _trouble(item, now)),
            ("Set aside", when(item.trouble_at)),
            ("Failed tries", item.schedule_attempts and int(item.schedule_attempts)),
            ("Owner", owner(item.user_id, "products.product")),
            ("Plan", _plan(item)),
            ("Paused", when(item.paused_at)),
            ("Paused until", when(item.paused_until)),
            ("Next drafts", when(item.next_run_at)),
            ("For the slot", when(item.next_slot_at)),
            ("Lead time", f"{int(item.lead_minutes)} minutes"),
            ("Link", urlize(item.link or "")),
            ("Pitch", item.pitch),
            ("Audience", item.audience),
            ("Voice", item.voice),
            ("GitHub", item.github_repo_name or item.github_repo_id),
            ("Vercel", item.vercel_project_name or item.vercel_project_id),
            ("Public page", _public_page(item)),
            ("Time zone rules", item.tzdata_version),
            ("Created", when(item.created_at)),
        ]


def _due(partition: str, now: datetime) -> Listing:
    """The products of a shard that should have been drafted by now, the oldest first."""
    _, _, shard = partition.partition("#")
    due = Product.next_run_at <= to_ms(now)
    return Listing(
        f"due{shard}",
        f"Due, shard {shard}" if shard else "Due",
        partial(read_page, Product.due, partition, newest_first=False, condition=due),
        {
            "Product": lambda product: product.product_id,
            "User": lambda product: product.user_id,
            "Due": lambda product: when(product.next_run_at),
            "Late by": lambda product: late(product.next_run_at, now),
            "Failed tries": lambda product: int(product.schedule_attempts or 0),
        },
    )


def _public_page(product: Product) -> SafeString:
    url = reverse("changelog", args=[product.slug])
    return format_html('<a href="{}">{}</a>', url, url)


def _plan(product: Product) -> str:
    try:
        return describe(plans.plan_of(product), LABELS)
    except InvalidPlan as error:
        return f"Cannot run. {error}"


def _trouble(product: Product, now: datetime) -> str | None:
    if plans.is_lost(product, now):
        return "Its plan is on and it is not due at any time: resume the plan."
    return product.schedule_error


def _stands_still(product: Product, now: datetime) -> bool:
    return bool(
        plans.is_paused(product, now) or product.schedule_error or plans.is_lost(product, now)
    )


@admin.register(models.Tick)
class TickAdmin(TableAdmin):
    table = Tick
    keys = ("job", "key")

    def listings(self, wanted: str, now: datetime) -> list[Listing]:
        columns: dict[str, Callable[[Any], object]] = {
            "Started": _started,
            "Seconds": _seconds,
            **{step.capitalize(): partial(_step, step) for step in STEPS},
        }
        return [Listing("newest", "Newest first", partial(read_page, Tick, JOB), columns)]

    def title(self, item: Any) -> str:
        return _started(item)

    def details(self, item: Any, now: datetime) -> list[tuple[str, object]]:
        steps = [(step.capitalize(), _step(step, item)) for step in item.reports]
        return [("Started", _started(item)), ("Seconds", _seconds(item)), *steps]


def _started(tick: Tick) -> str:
    return f"{from_ms(tick.started_at):%-d %b %Y, %-H:%M:%S} (UTC)"


def _seconds(tick: Tick) -> str:
    return f"{tick.seconds:.3f}"


def _step(step: str, tick: Tick) -> str:
    """What a step found and what it cost, or why it failed."""
    report = tick.reports.get(step)
    if report is None:
        return "did not run"
    if report["error"]:
        return str(report["error"])
    return (
        "found {found}, done {done}, failed {failed}"
        " ({requests} requests, {capacity_units:g} units, {seconds:.3f} s)".format(**report)
    )
