"""Is the process alive, is the whole ready, and the numbers behind it."""

import hmac
import os
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from scheduling import ticks
from slothpost_site import provisioning
from slothpost_site.dynamo import StoreError
from slothpost_site.moments import from_ms

OLDEST_TICK = timedelta(minutes=3)
OVERDUE = timedelta(minutes=5)


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when both stores answer, every table is there and the tick is young; else 503 and why.

    The age of the tick is the health of the clock: a worker can be alive and do nothing.
    """
    problems = find_problems(timezone.now())
    return JsonResponse(
        {"ready": not problems, "problems": problems}, status=503 if problems else 200
    )


def find_problems(now: datetime) -> list[str]:
    """What keeps this installation from doing its work, a sentence each."""
    problems = []
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        problems.append(f"Django's database does not answer: {type(error).__name__}")
    try:
        lacking = provisioning.missing()
        if lacking:
            problems.append(f"Run `manage.py create_tables`; missing: {', '.join(lacking)}")
        else:
            problems += [*_silence(now), *_overdue(now)]
    except StoreError as error:
        problems.append(f"DynamoDB does not answer: {type(error).__name__}")
    return problems


def _silence(now: datetime) -> list[str]:
    tick = ticks.latest()
    if tick is None:
        return ["No tick has run yet: is the worker running?"]
    if tick.shards > settings.SCHEDULE_SHARDS:
        return [
            f"SCHEDULE_SHARDS was {tick.shards:.0f} and is {settings.SCHEDULE_SHARDS} now: work"
            " lies where nobody looks. Set it back."
        ]
    age = now - from_ms(tick.started_at)
    if age > OLDEST_TICK:
        return [f"The last tick ran {age.total_seconds():.0f} s ago: is the worker running?"]
    return [
        f"The last tick's step '{name}' failed: {report['error'].partition(':')[0]}"
        for name, report in tick.reports.items()
        if report["error"]
    ]


def _overdue(now: datetime) -> list[str]:
    oldest = ticks.oldest_due_at(now)
    if oldest is None or now - oldest <= OVERDUE:
        return []
    return [f"Work is overdue since {oldest:%Y-%m-%d %H:%M} UTC: `manage.py doctor` says more."]


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text. In production it wants `Authorization: Bearer METRICS_TOKEN`."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = settings.METRICS_TOKEN
    if not (settings.DEBUG and not token) and not (
        token and hmac.compare_digest(given.encode(), token.encode())
    ):
        raise Http404
    registry = CollectorRegistry()
    registry.register(_State(timezone.now()))
    shown = generate_latest(registry) + generate_latest(_counters())
    return HttpResponse(shown, content_type=CONTENT_TYPE_LATEST)


def _counters() -> CollectorRegistry:
    """The counters of all web processes where they share a folder, else of this one."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return registry


class _State:
    """What the store says right now, as gauges."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def collect(self) -> Iterable[GaugeMetricFamily]:
        try:
            tick, oldest = ticks.latest(), ticks.oldest_due_at(self.now)
        except StoreError:
            yield GaugeMetricFamily("slothpost_store_up", "Whether DynamoDB answers", value=0)
            return
        yield GaugeMetricFamily("slothpost_store_up", "Whether DynamoDB answers", value=1)
        lag = (self.now - oldest).total_seconds() if oldest else 0.0
        yield GaugeMetricFamily(
            "slothpost_due_lag_seconds", "Age of the oldest due item", value=lag
        )
        if tick is None:
            return
        age = (self.now - from_ms(tick.started_at)).total_seconds()
        yield GaugeMetricFamily("slothpost_tick_age_seconds", "Age of the last tick", value=age)
        for figure in ("found", "done", "failed", "requests", "capacity_units", "seconds"):
            family = GaugeMetricFamily(
                f"slothpost_tick_{figure}", f"The last tick's {figure}", labels=["step"]
            )
            for step, report in tick.reports.items():
                family.add_metric([step], report[figure])
            yield family
