"""What each run of the clock found: told to its caller, kept for staff, watched by /readyz."""

import contextvars
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.conf import settings

from integrations.tables import Connection, RefreshIndex
from products.tables import FetchIndex, Post, Product, ScheduleIndex, WorkIndex
from scheduling.tables import Tick
from slothpost_site.dynamo import Table, metered, put_new, query_raw, shards
from slothpost_site.moments import as_key, from_ms, to_ms

JOB = "tick"
KEPT = timedelta(days=30)
# Seconds for each step: django-q2 ends a task after 50, and what does not fit is due in the next.
TIME_BUDGET = 11.0
MOST_PARALLEL = 8
MOST_HANDED_OUT = 200


@dataclass
class TickReport:
    """What one step of a tick found due, did and failed at, and what it asked of DynamoDB."""

    found: int = 0
    done: int = 0
    failed: int = 0
    requests: int = 0
    capacity_units: float = 0.0
    seconds: float = 0.0
    error: str = ""


@contextmanager
def measured() -> Iterator[TickReport]:
    """A report whose requests, capacity units and seconds are filled in at the end."""
    report = TickReport()
    started = time.monotonic()
    with metered() as meter:
        try:
            yield report
        finally:
            report.requests = meter.requests
            report.capacity_units = meter.capacity_units
            report.seconds = round(time.monotonic() - started, 3)


def work_through(
    report: TickReport,
    table: type[Table],
    index_name: str,
    until: Any,
    handle: Callable[[dict[str, Any]], bool],
) -> None:
    """Hand each raw entry that is due to `handle`, which says whether that went well.

    Every shard is asked in parallel. Stops taking new entries when the time budget is used up.
    """
    deadline = time.monotonic() + TIME_BUDGET

    def one_shard(status: str) -> tuple[int, int]:
        done = failed = 0
        for entry in query_raw(table, index_name, status, until):
            if time.monotonic() > deadline:
                break
            if handle(entry):
                done += 1
            else:
                failed += 1
        return done, failed

    statuses = shards("active")
    with ThreadPoolExecutor(min(len(statuses), MOST_PARALLEL)) as pool:
        runs = [
            pool.submit(contextvars.copy_context().run, one_shard, status) for status in statuses
        ]
    for run in runs:
        done, failed = run.result()
        report.found += done + failed
        report.done += done
        report.failed += failed


def hand_out(
    report: TickReport,
    table: type[Table],
    index_name: str,
    until: Any,
    handle: Callable[[dict[str, Any]], bool],
    *besides: Callable[[], object],
) -> None:
    """`work_through` for work that waits for others: several entries at once, and `besides`.

    What is not over within the time budget goes on by itself, under the lease that it took.
    """
    due = (
        entry
        for status in shards("active")
        for entry in query_raw(table, index_name, status, until)
    )
    pool = ThreadPoolExecutor(MOST_PARALLEL)
    others = [pool.submit(contextvars.copy_context().run, work) for work in besides]
    runs: list[Future[bool]] = [
        pool.submit(contextvars.copy_context().run, handle, entry)
        for entry in islice(due, MOST_HANDED_OUT)
    ]
    every: list[Future[Any]] = [*runs, *others]
    wait(every, timeout=TIME_BUDGET)
    pool.shutdown(wait=False, cancel_futures=True)
    for other in others:
        if other.done() and not other.cancelled():
            other.result()  # what it raised is the step's to tell
    over = [run for run in runs if run.done() and not run.cancelled()]
    report.found += len(runs)
    report.done += sum(run.result() for run in over)
    report.failed += sum(not run.result() for run in over)


def record(started_at: datetime, reports: dict[str, TickReport]) -> None:
    """Keep what a tick found, and how many shards work may lie in."""
    before = latest()
    put_new(
        Tick(
            job=JOB,
            key=f"{as_key(to_ms(started_at))}#{secrets.token_hex(4)}",
            started_at=to_ms(started_at),
            seconds=sum(report.seconds for report in reports.values()),
            reports={name: asdict(report) for name, report in reports.items()},
            shards=max(settings.SCHEDULE_SHARDS, int(before.shards) if before else 1),
            expires_at=started_at + KEPT,
        )
    )


def latest() -> Tick | None:
    """The newest tick on record."""
    return next(iter(Tick.query(JOB, scan_index_forward=False, limit=1)), None)


def oldest_due_at(now: datetime) -> datetime | None:
    """Since when the oldest piece of work is due, in any index; None if nothing is due."""
    until = to_ms(now)
    times = [
        float(entry[attribute]["N"])
        for table, index_name, attribute, condition in (
            (Product, ScheduleIndex.Meta.index_name, "nextRunAt", Product.next_run_at <= until),
            (Post, WorkIndex.Meta.index_name, "workAt", Post.work_at <= until),
            (Product, FetchIndex.Meta.index_name, "fetchAt", Product.fetch_at <= until),
            (Connection, RefreshIndex.Meta.index_name, "refreshAt", Connection.refresh_at <= until),
        )
        for status in shards("active")
        for entry in query_raw(table, index_name, status, condition, most=1)
    ]
    return from_ms(min(times)) if times else None
