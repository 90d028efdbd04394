"""How often an account may be posted to: so many posts a minute, and none while it is limited.

Posts of one account that are due together are spread over the next minutes, whoever sends them.
"""

from datetime import datetime, timedelta

from integrations import connections
from integrations.tables import Connection
from slothpost_site.dynamo import Conflict, change, unchanged
from slothpost_site.moments import from_ms, to_ms

MINUTE = timedelta(minutes=1)
MOST_TRIES = 8


def take(account: Connection, per_minute: int, now: datetime) -> datetime | None:
    """Take one of the account's turns in this minute: None. Otherwise when to ask again."""
    for _ in range(MOST_TRIES):
        if account.limited_until is not None and account.limited_until > to_ms(now):
            return from_ms(account.limited_until)
        minute = to_ms(now) // 60_000
        taken = int(account.turns or 0) if account.turn_minute == minute else 0
        if taken >= per_minute:
            return from_ms((minute + 1) * 60_000)
        try:
            change(
                account,
                unchanged(Connection.turn_minute, account.turn_minute)
                & unchanged(Connection.turns, account.turns),
                turn_minute=minute,
                turns=taken + 1,
            )
        except Conflict:
            found = connections.find(account.user_id, account.key)
            if found is None:
                return None  # gone: whoever posts to it says so
            account.deserialize(found.serialize())
        else:
            return None
    return now + MINUTE


def limit(account: Connection, until: datetime) -> None:
    """The service asked for no more before then."""
    try:
        change(account, None, limited_until=to_ms(until))
    except Conflict:  # it was disconnected meanwhile
        return
