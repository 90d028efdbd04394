"""A step of the tick: which accounts need something done before they lapse, or their owner told?"""

import logging
from datetime import datetime, timedelta
from typing import Any

from integrations import connections
from integrations.errors import Failure, NeedsReconnect
from integrations.providers import PROVIDERS
from integrations.tables import Connection, RefreshIndex
from scheduling import notices, ticks
from scheduling.ticks import TickReport
from slothpost_site.dynamo import Conflict, StoreError
from slothpost_site.moments import to_ms

logger = logging.getLogger(__name__)

LONGEST_WAIT = timedelta(hours=6)


def run_due_refreshes(now: datetime) -> TickReport:
    """Renew the secrets that would lapse, and tell the owners of accounts that broke."""
    broken: list[Connection] = []
    with ticks.measured() as report:
        ticks.work_through(
            report,
            Connection,
            RefreshIndex.Meta.index_name,
            Connection.refresh_at <= to_ms(now),
            lambda entry: _run_one(entry, broken, now),
        )
        # Here, and not in the threads above: Django's database is asked who owns them.
        for connection in broken:
            if not _tell(connection, now):
                report.done -= 1
                report.failed += 1
    logger.info("due connections", extra={"report": vars(report)})
    return report


def _run_one(entry: dict[str, Any], broken: list[Connection], now: datetime) -> bool:
    """One account; whatever is wrong with it stays with it. Adds to `broken` those whose owner is
    to be told."""
    ids = {"user_id": entry["userId"]["S"], "connection": entry["provider#accountId"]["S"]}
    try:
        connection = connections.find(ids["user_id"], ids["connection"])
        if connection is None or connection.refresh_at is None:
            return True
        if connection.refresh_at > to_ms(now):
            return True
        if not connection.works:
            broken.append(connection)
            return True
        return _renew(connection, now)
    except Conflict:
        logger.info("another tick was quicker", extra=ids)
        return True
    except StoreError:
        logger.exception("the store failed", extra=ids)
        return False
    except Exception:  # whatever it is, the other accounts go on
        logger.exception("an account cannot be read", extra=ids)
        return False


def _tell(connection: Connection, now: datetime) -> bool:
    try:
        return notices.tell_broken(connection, now)
    except Conflict:  # another tick tells it
        return True
    except Exception:  # whatever it is, the others are told; and this one when its lease is over
        logger.exception(
            "an owner was not told",
            extra={"user_id": connection.user_id, "connection": connection.key},
        )
        return False


def _renew(connection: Connection, now: datetime) -> bool:
    """Renew an account's secrets. What failed for now is tried again: it is not a dead account.
    Raises Conflict when it was renewed, disconnected or told of meanwhile."""
    try:
        PROVIDERS[connection.provider].renew(connection, now)
    except NeedsReconnect as failure:
        if connections.mark_broken(connection, failure.reason, now):
            logger.info("an account broke", extra={"connection": connection.key})
        return False
    except Failure as failure:
        attempts = int(connection.refresh_attempts or 0)
        wait = min(timedelta(minutes=2**attempts), LONGEST_WAIT) if attempts < 9 else LONGEST_WAIT
        connections.put_off_refresh(connection, now + wait, failure.reason, now)
        return False
    except (Conflict, StoreError):
        raise
    except Exception:  # a fault of ours, which the next minute does not mend
        ids = {"user_id": connection.user_id, "connection": connection.key}
        logger.exception("an account was not renewed", extra=ids)
        trouble = "SlothPost itself failed to renew it."
        connections.put_off_refresh(connection, now + LONGEST_WAIT, trouble, now)
        return False
    connections.end_refresh(connection, now)
    return True
