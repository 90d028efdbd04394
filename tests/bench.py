"""`make bench`: what the clock, the weekly plan, the door for machines and publishing cost, each
beside the usual way to do the same. Ratios hold on other machines, times do not.

A made-up production site, with a dynalite of the benchmark's own that keeps all in memory.
"""

# ruff: noqa: E402  what is imported last needs a Django that was set up

import json
import logging
import os
import platform
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from io import StringIO
from itertools import islice
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import django
import requests
from croniter import croniter
from dateutil.rrule import rrulestr

FOLDER = TemporaryDirectory(prefix="slothpost-bench-")
HOST = "slothpost.example"
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "slothpost_site.settings",
    "DEBUG": "false",
    "SECRET_KEY": "made up for the benchmark, where nobody can sign in",
    "SITE_URL": f"https://{HOST}",
    "ALLOWED_HOSTS": HOST,
    "DATA_DIR": FOLDER.name,
    "DATABASE_URL": f"sqlite:///{FOLDER.name}/django.sqlite3",
    "GITHUB_WEBHOOK_SECRET": "made up",
    "TOKEN_KEYS": "made up for the benchmark, whose accounts are made up too",
    "SCHEDULE_SHARDS": "1",
    "LOG_LEVEL": "INFO",
}
django.setup()

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from integrations import connections
from integrations.connections import Account, Grant
from integrations.sources import github
from integrations.sources.base import Choice
from products import following, posting, posts
from products.tables import Product, ScheduleIndex
from scheduling.due import run_due_products
from scheduling.publishing import run_due_posts
from scheduling.weekly import WeeklyPlan
from slothpost_site import dynamo, urls
from slothpost_site.moments import to_ms
from tests.builders import NOW, make_plan, make_post, make_product
from tests.conftest import free_port, serving
from tests.integrations.recorded import delivery
from tests.scheduling.test_tick_cost import FAR_OFF, TUESDAY, load, roomy_server, users

Row = tuple[str, ...]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def progress(text: str) -> None:
    """What is being done: on a terminal one line that is written over, else a line each."""
    sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else f"{text}\n" if text else "")
    sys.stderr.flush()


def table(title: str, head: Row, rows: list[Row]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    progress("")
    say(f"\n{title}\n")
    for first, *others in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        say("  ".join([f"  {first.ljust(widths[0])}", *cells]))


def ratio(more: float, less: float) -> str:
    times = more / less
    return f"{times:.2f} x" if times < 10 else f"{times:,.0f} x"


@dataclass
class Cost:
    """What a piece of work asked of DynamoDB, and how long it took."""

    requests: float = 0
    capacity_units: float = 0
    seconds: float = 0

    def row(self, title: str) -> Row:
        return (
            title,
            f"{self.requests:,.0f}",
            f"{self.capacity_units:,.1f}",
            f"{self.seconds * 1000:,.1f}",
        )

    def beside(self, title: str, less: "Cost") -> Row:
        return (
            title,
            ratio(self.requests, less.requests),
            ratio(self.capacity_units, less.capacity_units),
            ratio(self.seconds, less.seconds),
        )


@contextmanager
def measured() -> Iterator[Cost]:
    """A cost that is filled in at the end."""
    cost, started = Cost(), time.perf_counter()
    with dynamo.metered() as meter:
        yield cost
    cost.seconds = time.perf_counter() - started
    cost.requests, cost.capacity_units = meter.requests, meter.capacity_units


def middle(costs: Sequence[Cost]) -> Cost:
    return Cost(
        median(cost.requests for cost in costs),
        median(cost.capacity_units for cost in costs),
        median(cost.seconds for cost in costs),
    )


# -- ticks -----------------------------------------------------------------------------------------

DUE = 200
FEW, MANY = 1_000, 20_000
TICKS = 5
LIFELIKE: dict[str, Any] = {
    "link": "https://tidewater.example/",
    "pitch": "Tide tables that load before the tide turns, for people who sail and paddle. " * 3,
    "audience": "sailors, paddlers and everybody who has to be off the sandbank in time",
    "voice": "plain and warm, in the first person, no emoji and no exclamation marks. " * 5,
    "github_repo_name": "tidewater/tidewater",
    "vercel_project_name": "tidewater-site",
    "plan": make_plan((1, "09:00", "changelog"), (1, "09:00", "bluesky")).to_json(),
}


def ticks() -> None:
    """A tick with the same number due among few and among many, beside a scan for the due ones."""
    rows, whole = [], []
    for among in (FEW, MANY):
        with roomy_server():
            progress(f"loading {among:,} products")
            load(users("idles", among - DUE), FAR_OFF, **LIFELIKE)
            load(users("other", DUE), TUESDAY, **LIFELIKE)
            index, scan, tick = (middle(costs) for costs in zip(*ticked(among), strict=True))
            size = item_size()
        rows += [
            index.row(f"found by the index, among {among:,}"),
            scan.row(f"found by a scan, among {among:,}"),
            scan.beside("    scan / index", index),
        ]
        whole.append(tick)
    few, many = whole
    rows += [
        few.row(f"the whole tick, among {FEW:,}"),
        many.row(f"the whole tick, among {MANY:,}"),
        many.beside(f"    {MANY:,} / {FEW:,}", few),
    ]
    table(
        f"Ticks that find {DUE} due products, of {size:,} bytes each. The whole tick also begins"
        f" two drafts for\neach and moves it to its next run. Median of {TICKS} runs.",
        ("", "requests", "capacity units", "ms"),
        rows,
    )


def ticked(among: int) -> Iterator[tuple[Cost, Cost, Cost]]:
    """What it takes to find the due products by the index and by a scan, and to do the tick. A
    week after each run the same products are due again."""
    for run in range(TICKS):
        progress(f"tick {run + 1} of {TICKS} among {among:,} products")
        now = TUESDAY + timedelta(weeks=run, minutes=1)
        until = Product.next_run_at <= to_ms(now)
        with measured() as index:
            indexed = list(
                dynamo.query_raw(Product, ScheduleIndex.Meta.index_name, "active", until)
            )
        with measured() as scan:
            scanned = list(scan_for_due(now))
        assert owners(indexed) == owners(scanned) == users("other", DUE)
        with measured() as tick:
            assert run_due_products(now).done == DUE
        yield index, scan, tick


def scan_for_due(now: datetime) -> Iterator[dict[str, Any]]:
    """What SlothPost never does: read every product to find the few that are due."""
    scan = dynamo.client().get_paginator("scan")
    pages = scan.paginate(
        TableName=Product.Meta.table_name,
        FilterExpression="scheduleStatus = :active AND nextRunAt <= :now",
        ExpressionAttributeValues={":active": {"S": "active"}, ":now": {"N": str(to_ms(now))}},
        ReturnConsumedCapacity="TOTAL",
    )
    for page in pages:
        yield from page["Items"]


def owners(items: list[dict[str, Any]]) -> list[str]:
    return sorted(item["userId"]["S"] for item in items)


def item_size() -> int:
    """The bytes of a product, its attributes' names included, as DynamoDB counts text."""
    key = {"userId": {"S": users("idles", 1)[0]}, "productId": {"S": f"{0:016x}"}}
    item = dynamo.client().get_item(TableName=Product.Meta.table_name, Key=key)["Item"]
    return sum(len(name) + len(*value.values()) for name, value in item.items())


# -- the weekly plan -------------------------------------------------------------------------------

BERLIN = ZoneInfo("Europe/Berlin")
ROUNDS = 9
MOMENTS = 200

Next = Callable[[datetime], datetime]


def local(moment: datetime) -> datetime:
    return moment.astimezone(BERLIN)


@dataclass(frozen=True)
class Rule:
    """One weekly rule in the words of each library, in the time of Berlin."""

    plan: WeeklyPlan
    cron: str
    rrule: str

    def in_memory(self) -> dict[str, Next]:
        """The next run strictly after an instant, in UTC, from a rule that was read before."""
        cron, rule = croniter(self.cron), rrulestr(self.rrule, dtstart=local(TUESDAY))

        def by_cron(after: datetime) -> datetime:
            return cron.get_next(datetime, local(after)).astimezone(UTC)

        def by_rule(after: datetime) -> datetime:
            # An rrule counts from its start, so it is moved to the instant first.
            return rule.replace(dtstart=local(after)).after(local(after)).astimezone(UTC)

        return {"next_slot_at": self.plan.next_slot_at, "croniter": by_cron, "rrule": by_rule}

    def from_text(self) -> dict[str, Next]:
        """The same from the rule's text, which is what a tick has."""
        text = self.plan.to_json()

        def by_plan(after: datetime) -> datetime:
            return WeeklyPlan.from_json(text).next_slot_at(after)

        def by_cron(after: datetime) -> datetime:
            return croniter(self.cron, local(after)).get_next(datetime).astimezone(UTC)

        def by_rule(after: datetime) -> datetime:
            rule = rrulestr(self.rrule, dtstart=local(after))
            return rule.after(local(after)).astimezone(UTC)

        return {"next_slot_at": by_plan, "croniter": by_cron, "rrule": by_rule}


TWICE_A_WEEK = Rule(
    make_plan((1, "09:00", "x"), (3, "09:00", "x"), timezone="Europe/Berlin"),
    "0 9 * * TUE,THU",
    "FREQ=WEEKLY;BYDAY=TU,TH;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
)
SUNDAY_NIGHT = Rule(
    make_plan((6, "02:30", "x"), timezone="Europe/Berlin"),
    "30 2 * * SUN",
    "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=30;BYSECOND=0",
)


def weekly_plan() -> None:
    """`next_slot_at` beside croniter and dateutil.rrule."""
    progress("weekly plans")
    moments = plain_moments()
    rows = []
    for how, ways in (
        ("rule in memory", TWICE_A_WEEK.in_memory()),
        ("rule read from text", TWICE_A_WEEK.from_text()),
    ):
        ours, *theirs = ([following(moment) for moment in moments] for following in ways.values())
        assert theirs == [ours, ours]
        rounds = [timed(ways, moments) for _ in range(ROUNDS)]
        spent = {name: median(times[name] for times in rounds) for name in ways}
        rows += [
            (f"{name}, {how}", f"{seconds * 1e6:.1f}", ratio(seconds, spent["next_slot_at"]))
            for name, seconds in spent.items()
        ]
    table(
        "The next of Tuesday and Thursday 9:00 in Berlin after an instant. Median of"
        f" {ROUNDS} rounds of {MOMENTS} instants\nin weeks without a clock change, for which all"
        " three gave the same answers.",
        ("", "µs a call", "/ next_slot_at"),
        rows,
    )
    table(
        "At a clock change the answers differ. A plan for Sunday 2:30 in Berlin runs at:",
        ("", "29 March 2026, no 2:30", "25 October 2026, 2:30 twice"),
        [
            (name, runs_on(date(2026, 3, 29), following), runs_on(date(2026, 10, 25), following))
            for name, following in SUNDAY_NIGHT.in_memory().items()
        ],
    )


def plain_moments() -> list[datetime]:
    """Instants of 2026, the same in every run, with no clock change in the week that follows."""
    week, year = timedelta(weeks=1), 365 * 24 * 60 * 60
    dice = random.Random(2026)  # noqa: S311  guards nothing
    drawn = iter(
        lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(year)), None
    )
    plain = (at for at in drawn if local(at).utcoffset() == local(at + week).utcoffset())
    return list(islice(plain, MOMENTS))


def timed(ways: dict[str, Next], moments: list[datetime]) -> dict[str, float]:
    """The seconds that a call of each takes."""
    spent = {}
    for name, next_of in ways.items():
        started = time.perf_counter()
        for moment in moments:
            next_of(moment)
        spent[name] = (time.perf_counter() - started) / len(moments)
    return spent


def runs_on(day: date, following: Next) -> str:
    """When a rule runs on a day."""
    at, runs = datetime.combine(day, time_of_day(), BERLIN).astimezone(UTC), []
    while local(at := following(at)).date() == day:
        runs.append(f"{local(at):%-H:%M (%z)}")
    return ", ".join(runs)


# -- the door for machines -------------------------------------------------------------------------

DELIVERIES = 200


@csrf_exempt
def empty(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def webhook() -> None:
    """A signed delivery of GitHub's that becomes a story, beside an empty view behind the same
    middleware."""
    with roomy_server():
        release = delivery("release", action="published")
        repo_id = str(release["repository"]["id"])
        following.follow(make_product(), "github", Choice(repo_id, "tidewater/tidewater"), NOW)
        settings.ROOT_URLCONF = (*urls.urlpatterns, path("empty/", empty))
        door, nothing = (middle(costs) for costs in zip(*delivered(release), strict=True))
    size = len(as_body(release, 1))
    table(
        f"A release of GitHub's ({size:,} bytes, signed, followed by one product) from request to"
        f" answer, beside\nan empty view that gets the same. Median of {DELIVERIES}.",
        ("", "requests", "capacity units", "ms"),
        [
            door.row("webhook"),
            nothing.row("empty view"),
            ("    webhook / empty view", "", "", ratio(door.seconds, nothing.seconds)),
        ],
    )


def delivered(release: dict[str, Any]) -> Iterator[tuple[Cost, Cost]]:
    """What a delivery and the empty view cost, in turns."""
    handler = WSGIHandler()
    for number in range(DELIVERIES):
        if number % 50 == 0:
            progress(f"delivery {number + 1} of {DELIVERIES}")
        body = as_body(release, number)
        costs = []
        for address, answer in (("/webhooks/github/", b'"taken": 1'), ("/empty/", b"")):
            request = signed(address, body, number)
            with measured() as cost:
                response = handler.get_response(request)
            assert response.status_code == 200
            assert answer in response.content
            costs.append(cost)
        yield costs[0], costs[1]


def as_body(release: dict[str, Any], number: int) -> bytes:
    """The delivery of another release each time."""
    return json.dumps(release | {"release": release["release"] | {"id": 1_000 + number}}).encode()


def signed(address: str, body: bytes, number: int) -> HttpRequest:
    headers = {
        "X-GitHub-Event": "release",
        "X-GitHub-Delivery": f"delivery-{number}",
        github.SIGNATURE_HEADER: github.signature(body, github.secrets()[0]),
    }
    factory = RequestFactory(SERVER_NAME=HOST, headers=headers)
    return factory.post(address, body, "application/json", secure=True)


# -- publishing ------------------------------------------------------------------------------------

POSTS = 200
PUBLISHING_RUNS = 5
HOOK = "hooks.example"
POSTED = "Tidewater has a dark theme. https://tidewater.example/"


def publishing() -> None:
    """Approved posts from the index to their outcome, beside their bare calls. Every post is of
    another account: one account's are spaced as its outlet wants it."""
    with roomy_server(), receiving() as url:
        runs = [sent(url, run) for run in range(PUBLISHING_RUNS)]
    whole, bare = (middle(costs) for costs in zip(*runs, strict=True))
    table(
        f"{POSTS} approved posts of as many accounts, due at once, to a webhook on this machine"
        f" that answers\nat once, beside the bare calls. Median of {PUBLISHING_RUNS} runs.",
        ("", "posts a second", "DynamoDB requests a post"),
        [
            ("the whole path", f"{POSTS / whole.seconds:,.0f}", f"{whole.requests / POSTS:.1f}"),
            ("bare HTTP calls", f"{POSTS / bare.seconds:,.0f}", "0.0"),
            ("    bare calls / whole path", ratio(whole.seconds, bare.seconds), ""),
        ],
    )


@contextmanager
def receiving() -> Iterator[str]:
    """A webhook in a process of its own, so that it takes no time from whoever publishes."""
    port = free_port()
    command = [sys.executable, "-m", "tests.receiver", str(port)]
    with contextmanager(serving)(command, port) as url:
        settings.OPERATOR_HOSTS = {HOOK: url}
        yield url


def sent(url: str, run: int) -> tuple[Cost, Cost]:
    """What a tick costs that sends so many posts, and the same calls alone."""
    progress(f"publishing, run {run + 1} of {PUBLISHING_RUNS}")
    now = NOW + timedelta(hours=run)
    for number in range(POSTS):
        approve_one(f"{run}-{number}", now)
    with measured() as whole:
        assert run_due_posts(now).done == POSTS
    body = json.dumps({"text": POSTED}).encode()

    with measured() as bare:
        for _ in range(POSTS):
            assert requests.post(url, data=body, timeout=5).status_code == 200
    return whole, bare


def approve_one(user_id: str, now: datetime) -> None:
    """An approved post of a person's own webhook, due now."""
    grant = Grant({"url": f"https://{HOOK}/x", "secret": "made up"})
    account = connections.connect(user_id, "webhook", Account("1", HOOK), grant, now=now)
    product = make_product(user_id, now=now)
    posting.choose(product, "webhook", account, now)
    post = make_post(product, slot_at=now, outlet="webhook", text=POSTED, now=now)
    posting.bind(post, account)
    posts.approve(post, seen=posts.text_hash(post), send_at=now, now=now, by="1")


def main() -> None:
    # Log lines are made as in production, and shown to nobody.
    logging.getLogger().handlers[0].setStream(StringIO())
    warnings.filterwarnings("ignore", "No directory at")
    started = time.monotonic()
    say(
        f"Python {platform.python_version()}, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f} at the start."
    )
    ticks()
    weekly_plan()
    webhook()
    publishing()
    FOLDER.cleanup()
    say(f"\nTook {time.monotonic() - started:.0f} seconds. Ratios hold elsewhere, times do not.")


if __name__ == "__main__":
    main()
