"""Time as the tables hold it: whole milliseconds since 1970, UTC."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Epoch milliseconds of an aware datetime."""
    return (moment - EPOCH) // MILLISECOND


def from_ms(ms: float) -> datetime:
    """The aware UTC datetime of epoch milliseconds."""
    return EPOCH + int(ms) * MILLISECOND


def as_key(ms: float) -> str:
    """Epoch milliseconds as a sortable part of a key and of an address: 20261201T090000Z."""
    return f"{from_ms(ms):%Y%m%dT%H%M%SZ}"


def parse_key(text: str) -> int:
    """The epoch milliseconds of `as_key`. Raises ValueError."""
    return to_ms(datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC))
