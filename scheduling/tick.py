"""The once-a-minute task: what is due now?"""

import logging
from datetime import datetime

from scheduling import ticks
from scheduling.due import run_due_products
from scheduling.fetching import run_due_fetches
from scheduling.publishing import run_due_posts
from scheduling.refreshing import run_due_refreshes
from scheduling.ticks import TickReport

logger = logging.getLogger(__name__)

# What waits for others comes last: a source that hangs holds up no post.
STEPS = {
    "products": run_due_products,
    "posts": run_due_posts,
    "connections": run_due_refreshes,
    "fetches": run_due_fetches,
}


def run_tick(now: datetime) -> dict[str, TickReport]:
    """Run every step and keep a record of what each found. A step that fails does not stop the
    next one; its error is in the record and in the log."""
    reports = {}
    for name, step in STEPS.items():
        try:
            reports[name] = step(now)
        except (
            Exception
        ) as error:  # the record of this tick says it, and the next minute tries again
            logger.exception("a step of the tick failed", extra={"step": name})
            reports[name] = TickReport(error=f"{type(error).__name__}: {error}")
    ticks.record(now, reports)
    return reports
