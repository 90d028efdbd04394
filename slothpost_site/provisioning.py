"""Make the tables what the code says they are: created, indexed, with TTL and backups."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from botocore.exceptions import ClientError
from django.conf import settings
from pynamodb.attributes import TTLAttribute

from slothpost_site import dynamo
from slothpost_site.dynamo import Table

# What servers answer to a call that they do not have; anything else is a real failure.
UNSUPPORTED = {"UnknownOperationException", "NotImplemented"}
CALLS = {
    "DescribeContinuousBackups": "point-in-time recovery",
    "UpdateTimeToLive": "expiry of old items (TTL)",
}


def create_tables() -> Iterator[str]:
    """Bring every table to what its model says. Repeating it changes nothing. Yields one line
    for each thing done or found in place, and one for each thing that the server cannot do."""
    unsupported = set()
    for table in dynamo.all_tables():
        name = table.Meta.table_name
        _finish_rebuild(table)
        if not table.exists():
            table.create_table(wait=True, ignore_update_ttl_errors=True)
            yield f"{name}: created"
        else:
            yield from _add_missing_indexes(table)
        for turn_on in (_turn_on_ttl, _turn_on_backups):
            try:
                yield from turn_on(table)
            except ClientError as error:
                if error.response["Error"]["Code"] not in UNSUPPORTED:
                    raise
                unsupported.add(error.operation_name)
    yield from (f"this server has no {CALLS[name]}: left out" for name in sorted(unsupported))


def missing() -> list[str]:
    """The tables and indexes that the store lacks, by name."""
    lacking = []
    for table in dynamo.all_tables():
        if not table.exists():
            lacking.append(table.Meta.table_name)
        else:
            lacking += [f"{table.Meta.table_name}/{name}" for name in _missing_indexes(table)]
    return lacking


def _missing_indexes(table: type[Table]) -> list[str]:
    wanted = {index["index_name"] for index in table._get_schema()["global_secondary_indexes"]}
    description = dynamo.client().describe_table(TableName=table.Meta.table_name)["Table"]
    present = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", [])}
    return sorted(wanted - present)


def _add_missing_indexes(table: type[Table]) -> Iterator[str]:
    name = table.Meta.table_name
    lacking = _missing_indexes(table)
    if not lacking:
        yield f"{name}: in place"
        return
    try:
        for index_name in lacking:
            _add_index(table, index_name)
            _wait_until_active(name)
    except ClientError:
        if not _is_on_this_machine():
            raise
    if _missing_indexes(table) and _is_on_this_machine():
        # dynalite adds no index to a table that exists: the table is made anew.
        _rebuild(table)
    yield from (f"{name}: added {index_name}" for index_name in lacking)


def _add_index(table: type[Table], index_name: str) -> None:
    schema = table._get_schema()
    index = next(i for i in schema["global_secondary_indexes"] if i["index_name"] == index_name)
    dynamo.client().update_table(
        TableName=table.Meta.table_name,
        AttributeDefinitions=schema["attribute_definitions"],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": index_name,
                    # HASH before RANGE, which DynamoDB insists on.
                    "KeySchema": sorted(index["key_schema"], key=lambda key: key["KeyType"]),
                    "Projection": index["projection"],
                }
            }
        ],
    )


def _is_on_this_machine() -> bool:
    return urlsplit(settings.DYNAMODB_ENDPOINT_URL).hostname in {"localhost", "127.0.0.1", "::1"}


def _wait_until_active(name: str) -> None:
    while True:
        description = dynamo.client().describe_table(TableName=name)["Table"]
        states = [description["TableStatus"]]
        states += [
            i.get("IndexStatus", "ACTIVE") for i in description.get("GlobalSecondaryIndexes", [])
        ]
        if set(states) == {"ACTIVE"}:
            return
        time.sleep(0.2)


# -- rebuilding, for servers without online index creation -----------------------------------------


def _rebuild(table: type[Table]) -> None:
    """Copy the items to a file, make the table anew, put them back. Killed in between, the next
    run goes on from the file."""
    copy = _copy_path(table)
    partial = copy.with_suffix(".partial")
    copy.parent.mkdir(parents=True, exist_ok=True)
    pages = dynamo.client().get_paginator("scan").paginate(TableName=table.Meta.table_name)
    with partial.open("w") as file:
        for page in pages:
            file.writelines(json.dumps(item) + "\n" for item in page["Items"])
    partial.rename(copy)
    _finish_rebuild(table)


def _finish_rebuild(table: type[Table]) -> None:
    copy = _copy_path(table)
    if not copy.exists():
        return
    if table.exists():
        table.delete_table()
        dynamo.client().get_waiter("table_not_exists").wait(TableName=table.Meta.table_name)
    table.create_table(wait=True, ignore_update_ttl_errors=True)
    with copy.open() as file:
        for line in file:
            dynamo.client().put_item(TableName=table.Meta.table_name, Item=json.loads(line))
    copy.unlink()


def _copy_path(table: type[Table]) -> Path:
    return Path(settings.DATA_DIR) / "rebuild" / f"{table.Meta.table_name}.jsonl"


# -- what not every server has ---------------------------------------------------------------------


def _turn_on_ttl(table: type[Table]) -> Iterator[str]:
    attribute = next(
        (a for a in table.get_attributes().values() if isinstance(a, TTLAttribute)), None
    )
    if attribute is None:
        return
    name, client = table.Meta.table_name, dynamo.client()
    state = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if state["TimeToLiveStatus"] in {"ENABLED", "ENABLING"}:
        return
    client.update_time_to_live(
        TableName=name,
        TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute.attr_name},
    )
    yield f"{name}: old items expire by {attribute.attr_name}"


def _turn_on_backups(table: type[Table]) -> Iterator[str]:
    name, client = table.Meta.table_name, dynamo.client()
    state = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = state.get("PointInTimeRecoveryDescription", {})
    if recovery.get("PointInTimeRecoveryStatus") == "ENABLED":
        return
    client.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    yield f"{name}: point-in-time recovery is on"
