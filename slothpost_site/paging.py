"""Pages of a DynamoDB query with signed, opaque cursors."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core import signing
from django.http import Http404
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from slothpost_site.dynamo import Table

T = TypeVar("T", bound=Table)


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of items; `next_cursor` is "" on the last one."""

    items: list[T]
    next_cursor: str = ""


def read_page(
    source: type[T] | Index[T],
    partition: str,
    *,
    cursor: str = "",
    size: int = 25,
    newest_first: bool = True,
    condition: Condition | None = None,
) -> Page[T]:
    """One page of a table's or an index's partition.

    The cursor is signed for this partition alone: one from another list, another user's or a
    made-up one raises Http404.
    """
    scope = f"{_name(source)}/{partition}"
    start = _open(cursor, scope) if cursor else None
    # One more than shown tells whether there is a next page without asking again.
    found = list(
        source.query(
            partition,
            range_key_condition=condition,
            scan_index_forward=not newest_first,
            last_evaluated_key=start,
            limit=size + 1,
            page_size=size + 1,
        )
    )
    if len(found) <= size:
        return Page(found)
    return Page(found[:size], signing.dumps(_key(source, found[size - 1]), salt=scope))


def _open(cursor: str, scope: str) -> dict[str, Any]:
    try:
        key: dict[str, Any] = signing.loads(cursor, salt=scope)
    except signing.BadSignature as error:
        raise Http404("This list has moved on: start again from its first page.") from error
    return key


def _name(source: type[T] | Index[T]) -> str:
    if isinstance(source, Index):
        return str(source.Meta.index_name)
    return str(source.Meta.table_name)


def _key(source: type[T] | Index[T], item: T) -> dict[str, Any]:
    """The item's place in the list: its table keys, and the index's keys where there is one."""
    attributes = [
        a for a in type(item).get_attributes().values() if a.is_hash_key or a.is_range_key
    ]
    if isinstance(source, Index):
        attributes += source.Meta.attributes.values()
    # An item of an index lacks what the index does not carry.
    stored = item.serialize(null_check=False)
    return {attribute.attr_name: stored[attribute.attr_name] for attribute in attributes}
