"""The rules of writing, on dynalite and on moto's server."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.http import Http404

from products.tables import Activity, Product
from slothpost_site import dynamo, provisioning
from slothpost_site.dynamo import Conflict, change, get, metered, put_new
from slothpost_site.paging import read_page
from tests.conftest import use_server

pytestmark = pytest.mark.usefixtures("either_store")


def product(product_id: str = "p1", **values: object) -> Product:
    fields = {"name": "Tidewater", "slug": product_id, "created_at": 1, **values}
    return Product(user_id="1", product_id=product_id, **fields)


def test_put_new_writes_once_and_says_so() -> None:
    assert put_new(product(name="first"))
    assert not put_new(product(name="second"))
    found = get(Product, "1", "p1")
    assert found is not None
    assert found.name == "first"


def test_none_is_left_out_of_a_new_item_and_removed_by_a_change() -> None:
    put_new(product(link=None, pitch="Tides"))
    found = get(Product, "1", "p1")
    assert found is not None
    change(found, None, pitch=None)
    raw = dynamo.client().get_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": "1"}, "productId": {"S": "p1"}},
    )["Item"]
    assert {"link", "pitch"} & set(raw) == set()
    assert {"NULL": True} not in raw.values()


@pytest.mark.parametrize("attribute", ["github_repo_id", "schedule_status", "vercel_project_id"])
def test_an_empty_index_key_is_refused_before_it_is_sent(attribute: str) -> None:
    with pytest.raises(ValueError, match=attribute):
        put_new(product(**{attribute: ""}))
    put_new(product())
    with pytest.raises(ValueError, match=attribute):
        change(product(), None, **{attribute: ""})
    assert list(Product.by_github_repo.query("x")) == []


def test_a_change_of_a_missing_item_makes_no_ghost() -> None:
    with pytest.raises(Conflict):
        change(product("gone"), None, name="Ghost")
    assert get(Product, "1", "gone") is None


def test_a_change_keeps_what_the_model_does_not_know() -> None:
    put_new(product())
    dynamo.client().update_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": "1"}, "productId": {"S": "p1"}},
        UpdateExpression="SET fromTheFuture = :x",
        ExpressionAttributeValues={":x": {"S": "kept"}},
    )
    change(product(), None, name="New name")
    raw = dynamo.client().get_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": "1"}, "productId": {"S": "p1"}},
    )["Item"]
    assert (raw["name"], raw["fromTheFuture"]) == ({"S": "New name"}, {"S": "kept"})


def test_a_failed_condition_changes_nothing() -> None:
    put_new(product(plan_version=3))
    with pytest.raises(Conflict):
        change(product(), Product.plan_version == 2, name="Late")
    found = get(Product, "1", "p1")
    assert found is not None
    assert (found.name, found.plan_version) == ("Tidewater", 3)


def test_an_item_is_in_a_sparse_index_exactly_while_it_has_the_key() -> None:
    put_new(product(schedule_status="active", next_run_at=5))
    assert [p.product_id for p in Product.due.query("active")] == ["p1"]
    change(product(), None, schedule_status=None, next_run_at=None)
    assert list(Product.due.query("active")) == []
    change(product(), None, schedule_status="active", next_run_at=7)
    assert [p.next_run_at for p in Product.due.query("active")] == [7]


def test_every_index_of_the_design_is_there() -> None:
    names = {
        index["index_name"]
        for table in dynamo.all_tables()
        for index in table._get_schema()["global_secondary_indexes"]
    }
    assert names >= {
        "scheduleStatus-nextRunAt-index",
        "vercelProjectId-index",
        "githubRepoId-index",
        "appStoreId-index",
        "workStatus-workAt-index",
        "reviewUserId-slotAt-index",
        "refreshStatus-refreshAt-index",
    }
    assert provisioning.missing() == []


def activities(count: int) -> None:
    for number in range(count):
        put_new(
            Activity(
                product_id="p1", key=f"{number:03}", source="github", kind="merge",
                title=str(number), occurred_at=1, recorded_at=1,
            )
        )  # fmt: skip


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (19, [19]), (20, [20]), (45, [20, 20, 5])])
def test_pages_hold_everything_once_and_the_last_has_no_cursor(
    count: int, sizes: list[int]
) -> None:
    activities(count)
    seen, lengths, cursor = [], [], ""
    while True:
        page = read_page(Activity, "p1", cursor=cursor, size=20)
        seen += [item.title for item in page.items]
        lengths.append(len(page.items))
        cursor = page.next_cursor
        if not cursor:
            break
    assert seen == [str(number) for number in reversed(range(count))]
    assert lengths == sizes


def test_pages_of_an_index_hold_everything_once() -> None:
    for number in range(7):
        put_new(product(f"p{number}", schedule_status="active", next_run_at=number // 3))
    first = read_page(Product.due, "active", size=4, newest_first=False)
    second = read_page(Product.due, "active", size=4, newest_first=False, cursor=first.next_cursor)
    found = [item.product_id for item in first.items + second.items]
    assert (len(first.items), sorted(found)) == (4, [f"p{number}" for number in range(7)])


def test_a_cursor_opens_no_other_list() -> None:
    activities(30)
    cursor = read_page(Activity, "p1", size=20).next_cursor
    for partition, given in (("p2", cursor), ("p1", "made-up"), ("p1", cursor[:-1] + "x")):
        with pytest.raises(Http404):
            read_page(Activity, partition, cursor=given, size=20)


def test_the_meter_counts_what_happens_inside_it() -> None:
    put_new(product())
    with metered() as outer:
        put_new(product("p2"))
        with metered() as inner:
            get(Product, "1", "p1")
            get(Product, "1", "p1")
    assert (outer.requests, inner.requests) == (3, 2)
    assert outer.capacity_units > inner.capacity_units > 0


def test_creating_tables_again_changes_nothing() -> None:
    put_new(product())
    lines = list(provisioning.create_tables())
    assert [line for line in lines if "created" in line or "added" in line] == []
    assert get(Product, "1", "p1") is not None


def test_a_missing_index_is_added_and_the_items_stay(either_store: str) -> None:
    name = Product.Meta.table_name
    for number in range(3):
        put_new(product(f"p{number}", github_repo_id="42"))
    pages = dynamo.client().get_paginator("scan").paginate(TableName=name)
    items = [item for page in pages for item in page["Items"]]
    schema = Product._get_schema()
    kept = [
        index
        for index in schema["global_secondary_indexes"]
        if index["index_name"] != "githubRepoId-index"
    ]
    dynamo.client().delete_table(TableName=name)
    keys = {key["AttributeName"] for index in kept for key in index["key_schema"]}
    keys |= {key["AttributeName"] for key in schema["key_schema"]}
    dynamo.client().create_table(
        TableName=name,
        KeySchema=sorted(schema["key_schema"], key=lambda key: key["KeyType"]),
        AttributeDefinitions=[
            a for a in schema["attribute_definitions"] if a["AttributeName"] in keys
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index["index_name"],
                "KeySchema": sorted(index["key_schema"], key=lambda key: key["KeyType"]),
                "Projection": index["projection"],
            }
            for index in kept
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    for item in items:
        dynamo.client().put_item(TableName=name, Item=item)
    assert provisioning.missing() == [f"{name}/githubRepoId-index"]
    lines = list(provisioning.create_tables())
    assert [line for line in lines if "added" in line] == [f"{name}: added githubRepoId-index"]
    assert provisioning.missing() == []
    found = sorted(p.product_id for p in Product.by_github_repo.query("42"))
    assert found == ["p0", "p1", "p2"]


def _read_many(url: str, number: int, answers: "multiprocessing.Queue[int]") -> None:
    wrong = 0
    for turn in range(80):
        wanted = f"p{(number * 7 + turn) % 20}"
        found = get(Product, "1", wanted)
        wrong += found is None or found.product_id != wanted
    answers.put(wrong)


def test_eight_forked_readers_get_their_own_items(either_store: str) -> None:
    """640 reads after the parent has read: a connection used across the fork mixes answers up."""
    for number in range(20):
        put_new(product(f"p{number}"))
    get(Product, "1", "p0")
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    children = [
        fork.Process(target=_read_many, args=(either_store, number, answers)) for number in range(8)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * 8
    assert sum(answers.get() for _ in children) == 0


def test_a_fork_forgets_the_client_and_the_parent_keeps_it() -> None:
    before = dynamo.client()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"fresh" if dynamo.client() is not before else b"stale")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 5) == b"fresh"
    assert dynamo.client() is before


def test_a_store_that_does_not_answer_is_a_store_error(either_store: str) -> None:
    use_server("http://127.0.0.1:9")
    with pytest.raises(dynamo.StoreError):
        get(Product, "1", "p1")
    use_server(either_store)


def test_the_first_calls_of_a_process_may_come_from_several_threads() -> None:
    def first_call(_: int) -> None:
        assert dynamo.get(Product, "1", "p1") is None

    for _ in range(60):
        dynamo.forget_connections()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(first_call, range(4)))
