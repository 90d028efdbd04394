"""DynamoDB: one client per process, the rules of writing, and the meter.

Nothing else in the project writes an item. `put_new` creates one, `change` alters one; both are
conditional, neither can leave a NULL, an empty index key or a ghost behind.
"""

import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from django.conf import settings
from pynamodb.attributes import Attribute
from pynamodb.connection import Connection
from pynamodb.connection.table import TableConnection
from pynamodb.constants import ALL_NEW, NONE
from pynamodb.exceptions import PutError, PynamoDBException, UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.models import Model

# Raised by every call when the store cannot be reached or refuses; `str()` names the operation.
StoreError = PynamoDBException


class Conflict(Exception):
    """A conditional write found the item in another state; nothing was changed."""


# -- one client per process ----------------------------------------------------------------------

_lock = threading.RLock()
_shared: Connection | None = None


def _connection() -> Connection:
    global _shared
    if _shared is None:
        # A server of one's own wants a signature but does not look at it.
        unsigned = settings.DYNAMODB_ENDPOINT_URL and "AWS_ACCESS_KEY_ID" not in os.environ
        shared = Connection(
            region=settings.DYNAMODB_REGION,
            host=settings.DYNAMODB_ENDPOINT_URL or None,
            connect_timeout_seconds=2,
            read_timeout_seconds=5,
            max_retry_attempts=2,
            max_pool_connections=16,
            aws_access_key_id="local" if unsigned else None,
            aws_secret_access_key="local" if unsigned else None,
        )
        # Built here, under the lock: threads that race for the first call would build one each.
        shared.client.meta.events.register("after-call.dynamodb", _count)
        _shared = shared
    return _shared


def client() -> Any:
    """The process's botocore client, for what PynamoDB has no call for (tables, indexes)."""
    with _lock:
        return _connection().client


def forget_connections() -> None:
    """Drop the cached client. A connection used across a fork returns other people's items."""
    global _lock, _shared
    _lock = threading.RLock()
    _shared = None
    for table in all_tables():
        table._connection = table._ready = None


os.register_at_fork(after_in_child=forget_connections)


class Table(Model):
    """A DynamoDB table. Subclasses live in each app's `tables.py`."""

    _ready: ClassVar[TableConnection | None] = None

    @classmethod
    def _get_connection(cls) -> TableConnection:
        if cls._ready is None:
            with _lock:
                # PynamoDB shows its own connection to other threads before it has our client.
                connection = super()._get_connection()
                own = connection.connection
                shared = _connection()
                if own is not shared:
                    shared.add_meta_table(own.get_meta_table(cls.Meta.table_name))
                    connection.connection = shared
                cls._ready = connection
                return connection
        return cls._ready


T = TypeVar("T", bound=Table)


class BaseMeta:
    """What every table's Meta inherits. Time-outs: connect 2 s, read 5 s, three attempts."""

    region = settings.DYNAMODB_REGION
    host = settings.DYNAMODB_ENDPOINT_URL or None
    billing_mode = "PAY_PER_REQUEST"


def table_name(noun: str) -> str:
    return f"{settings.DYNAMODB_TABLE_PREFIX}{noun}"


def all_tables() -> list[type[Table]]:
    """Every table that the installed apps declare."""
    return sorted(Table.__subclasses__(), key=lambda table: table.Meta.table_name)


# -- shards of a constant partition key ----------------------------------------------------------


def shard_of(status: str, item_id: str) -> str:
    """The partition of a pending-work index for an item: `active`, or `active#k` for shard k."""
    shard = zlib.crc32(item_id.encode()) % settings.SCHEDULE_SHARDS
    return f"{status}#{shard}" if shard else status


def shards(status: str) -> list[str]:
    """Every partition of a pending-work index."""
    return [status, *(f"{status}#{shard}" for shard in range(1, settings.SCHEDULE_SHARDS))]


# -- writing -------------------------------------------------------------------------------------


def put_new(item: Table) -> bool:
    """Write an item unless its key is taken. Returns whether this call wrote it.

    Attributes that are None are left out, so that a sparse index never sees them.
    """
    _refuse_empty_keys(
        type(item), {name: getattr(item, name) for name in type(item).get_attributes()}
    )
    try:
        item.save(condition=_hash_key(type(item)).does_not_exist())
    except PutError as error:
        if _condition_failed(error):
            return False
        raise
    return True


def change(item: T, condition: Condition | None, *actions: Action, **values: Any) -> T:
    """Alter an existing item in one conditional write and refresh `item` with what it now holds.

    Each keyword is an attribute by its Python name; None removes it. Raises Conflict when the
    item is gone or the condition does not hold.
    """
    item.deserialize(_update(item, condition, actions, values, ALL_NEW)["Attributes"])
    return item


def change_unread(
    item: Table, condition: Condition | None, *actions: Action, **values: Any
) -> None:
    """`change` without reading the item back: for an item known by its key alone, which may hold
    what no model can read. Raises Conflict likewise."""
    _update(item, condition, actions, values, NONE)


def _update(
    item: Table,
    condition: Condition | None,
    actions: tuple[Action, ...],
    values: dict[str, Any],
    answer: str,
) -> dict[str, Any]:
    table = type(item)
    _refuse_empty_keys(table, values)
    attributes = table.get_attributes()
    sets = [
        attributes[name].remove() if value is None else attributes[name].set(value)
        for name, value in values.items()
    ]
    guard: Condition = _hash_key(table).exists()
    if condition is not None:
        guard = guard & condition
    hash_key, range_key = item._get_hash_range_key_serialized_values()
    try:
        return table._get_connection().update_item(
            hash_key,
            range_key=range_key,
            actions=[*sets, *actions],
            condition=guard,
            return_values=answer,
        )
    except UpdateError as error:
        if _condition_failed(error):
            raise Conflict(f"{table.__name__} was changed by somebody else") from error
        raise


def remove(item: Table, condition: Condition | None = None) -> None:
    """Delete an item; nothing happens if it is gone already."""
    item.delete(condition=condition)


def all_of(conditions: list[Condition]) -> Condition:
    """All of them, as a tree and not as a chain: the time that dynalite takes to read a condition
    doubles with each bracket inside another."""
    half = len(conditions) // 2
    return all_of(conditions[:half]) & all_of(conditions[half:]) if half else conditions[0]


def unchanged(attribute: Attribute[Any], value: Any) -> Condition:
    """The condition that an attribute still has the value that was read (None: is absent)."""
    return attribute.does_not_exist() if value is None else attribute == value


def _hash_key(table: type[Table]) -> Attribute[Any]:
    return next(a for a in table.get_attributes().values() if a.is_hash_key)


def _condition_failed(error: PutError | UpdateError) -> bool:
    # Not `cause_response_code`, which fails itself where there was no response: at a time-out.
    response = getattr(error.cause, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "ConditionalCheckFailedException")


def _refuse_empty_keys(table: type[Table], values: dict[str, Any]) -> None:
    """Some servers accept "" as an index key and AWS does not: an absent value is None here."""
    keys = _key_names(table)
    attributes = table.get_attributes()
    for name, value in values.items():
        if value == "" and attributes[name].attr_name in keys:
            raise ValueError(f"{name} is a key of {table.__name__}: leave it out instead of empty")


def _key_names(table: type[Table]) -> set[str]:
    return {
        definition["AttributeName"] for definition in table._get_schema()["attribute_definitions"]
    }


# -- reading -------------------------------------------------------------------------------------


def get(table: type[T], hash_key: str, range_key: str | None = None) -> T | None:
    """The item under a key as it is now (consistent), or None.

    A key may come from an address: one that no item can have is simply not there.
    """
    if not _possible(hash_key, 2048) or (range_key is not None and not _possible(range_key, 1024)):
        return None
    try:
        return table.get(hash_key, range_key, consistent_read=True)
    except table.DoesNotExist:
        return None


def _possible(key: str, most_bytes: int) -> bool:
    return 0 < len(key.encode(errors="replace")) <= most_bytes


def query_raw(
    table: type[Table], index_name: str, partition: str, until: Condition, most: int | None = None
) -> Iterator[dict[str, Any]]:
    """The raw entries of an index partition, oldest first, page after page, or `most` of them.

    Raw, because one item of a wrong type would make a model raise in the middle of a page and
    hide everything behind it.
    """
    start = None
    while True:
        page = table._get_connection().query(
            partition,
            range_key_condition=until,
            index_name=index_name,
            exclusive_start_key=start,
            limit=most,
        )
        yield from page["Items"]
        start = page.get("LastEvaluatedKey")
        if not start or most:
            return


# -- the meter -----------------------------------------------------------------------------------


@dataclass
class Meter:
    """What a piece of work asked of DynamoDB."""

    requests: int = 0
    capacity_units: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


_meters: ContextVar[tuple[Meter, ...]] = ContextVar("meters", default=())


@contextmanager
def metered() -> Iterator[Meter]:
    """Count the requests and capacity units of everything inside (also in copied contexts)."""
    meter = Meter()
    token = _meters.set((*_meters.get(), meter))
    try:
        yield meter
    finally:
        _meters.reset(token)


def _count(parsed: dict[str, Any], **_: Any) -> None:
    consumed = parsed.get("ConsumedCapacity") or []
    units = sum(
        entry["CapacityUnits"] for entry in (consumed if isinstance(consumed, list) else [consumed])
    )
    for meter in _meters.get():
        with meter.lock:
            meter.requests += 1
            meter.capacity_units += units
