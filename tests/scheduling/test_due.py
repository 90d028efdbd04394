"""The first half of the tick: due products get their slots' posts and move on."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from products.states import State
from products.tables import Post, Product
from scheduling import due, plans
from scheduling.due import run_due_products
from scheduling.weekly import InvalidPlan, Slot, WeeklyPlan
from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict, change, put_new
from slothpost_site.moments import from_ms, to_ms
from tests.builders import NOW, at, make_plan, make_product, planned_product, reread

pytestmark = pytest.mark.usefixtures("store")


def posts_of(user_id: str = "1") -> list[tuple[str, datetime]]:
    return [(post.outlet, from_ms(post.slot_at)) for post in Post.query(user_id)]


def due_ids() -> list[str]:
    return [product.product_id for product in Product.due.query("active")]


def test_a_due_product_gets_one_post_per_outlet_and_its_next_run() -> None:
    product = planned_product(
        (1, "09:00", "changelog"), (1, "09:00", "x"), (3, "18:00", "x"), lead=timedelta(hours=12)
    )
    now = at("2026-01-05 21:01")
    report = run_due_products(now)
    assert (report.found, report.done, report.failed) == (1, 1, 0)
    assert posts_of() == [
        ("changelog", at("2026-01-06 09:00")),
        ("x", at("2026-01-06 09:00")),
    ]
    product = reread(product)
    assert from_ms(product.next_slot_at) == at("2026-01-08 18:00")
    assert from_ms(product.next_run_at) == (
        at("2026-01-08 06:00") + plans.jitter(product.product_id)
    ).replace(microsecond=from_ms(product.next_run_at).microsecond)


def test_nothing_is_due_before_its_time_and_the_jitter_is_under_a_minute() -> None:
    planned_product()
    assert run_due_products(at("2026-01-06 08:59")).found == 0
    assert run_due_products(at("2026-01-06 09:01")).found == 1


def test_running_again_finds_nothing_and_changes_nothing() -> None:
    planned_product()
    run_due_products(at("2026-01-06 09:01"))
    before = posts_of()
    assert run_due_products(at("2026-01-06 09:01")).found == 0
    assert posts_of() == before


def test_three_days_down_is_one_post_per_outlet_and_says_what_was_missed() -> None:
    slots = [(day, time, "x") for day in (0, 1, 2) for time in ("08:00", "13:00", "18:00")]
    product = planned_product(*slots, (1, "09:00", "changelog"), now=at("2026-01-04 12:00"))
    report = run_due_products(at("2026-01-08 10:00"))
    assert (report.found, report.done) == (1, 1)
    assert sorted(posts_of()) == [
        ("changelog", at("2026-01-06 09:00")),
        ("x", at("2026-01-07 18:00")),
    ]
    x = next(post for post in Post.query("1") if post.outlet == "x")
    assert [from_ms(slot) for slot in x.missed_slots] == [
        at(f"2026-01-0{day} {time}") for day in (5, 6, 7) for time in ("08:00", "13:00", "18:00")
    ][:-1]
    assert from_ms(reread(product).next_slot_at) == at("2026-01-12 08:00")


def test_a_product_that_was_down_for_years_moves_on_in_one_step() -> None:
    product = planned_product()
    run_due_products(at("2036-01-06 10:00"))
    assert len(posts_of()) == 1
    assert from_ms(reread(product).next_slot_at) == at("2036-01-08 09:00")


def test_fifty_products_of_the_same_minute_are_all_drafted() -> None:
    for number in range(50):
        planned_product(user_id=str(number))
    report = run_due_products(at("2026-01-06 09:01"))
    assert (report.found, report.done, report.failed) == (50, 50, 0)
    assert {len(posts_of(str(number))) for number in range(50)} == {1}


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("America/New_York", "2026-03-09", "2026-03-10 13:00"),
        ("America/New_York", "2026-03-02", "2026-03-03 14:00"),
        ("America/New_York", "2026-11-02", "2026-11-03 14:00"),
        ("Europe/Berlin", "2026-07-06", "2026-07-07 07:00"),
        ("Asia/Kolkata", "2026-01-05", "2026-01-06 03:30"),
    ],
)
def test_a_slot_stays_at_its_local_hour_across_clock_changes(
    zone: str, day: str, expected: str
) -> None:
    planned_product(timezone=zone, now=at(f"{day} 12:00"))
    run_due_products(at(expected) + timedelta(minutes=1))
    assert posts_of() == [("changelog", at(expected))]
    assert at(expected).astimezone(ZoneInfo(zone)).hour == 9


def test_a_paused_product_is_in_no_due_index_and_a_resumed_one_is() -> None:
    product = planned_product()
    plans.pause(product, now=NOW)
    assert (due_ids(), reread(product).next_slot_at) == ([], None)
    assert run_due_products(at("2026-01-06 09:01")).found == 0
    plans.resume(product, now=at("2026-01-07 00:00"))
    assert due_ids() == [product.product_id]
    assert from_ms(reread(product).next_slot_at) == at("2026-01-13 09:00")


def test_a_plan_whose_last_time_is_cleared_leaves_the_index() -> None:
    product = planned_product()
    plan = WeeklyPlan("UTC", (Slot(1, None, "changelog"), Slot(2, "", "x")))
    plans.set_plan(product, plan, lead=timedelta(), version_seen=1, now=NOW)
    raw = dynamo.client().get_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": "1"}, "productId": {"S": product.product_id}},
    )["Item"]
    assert {"scheduleStatus", "nextRunAt", "nextSlotAt"} & set(raw) == set()
    assert due_ids() == []


def test_a_slot_with_a_time_and_no_other_flag_becomes_due() -> None:
    product = make_product()
    assert due_ids() == []
    plans.set_plan(product, make_plan((1, "09:00", "x")), lead=timedelta(), version_seen=0, now=NOW)
    assert due_ids() == [product.product_id]


def test_a_pause_until_a_date_comes_back_by_itself() -> None:
    product = planned_product()
    plans.pause(product, now=NOW, until=at("2026-01-10 00:00"))
    assert plans.is_paused(product, at("2026-01-09 23:59"))
    assert not plans.is_paused(product, at("2026-01-10 00:00"))
    assert run_due_products(at("2026-01-06 09:01")).found == 0
    assert run_due_products(at("2026-01-13 09:01")).found == 1
    assert not plans.is_paused(reread(product), at("2026-01-13 09:01"))


def test_a_new_plan_during_a_pause_stays_paused() -> None:
    product = planned_product()
    plans.pause(product, now=NOW)
    plans.set_plan(product, make_plan((2, "10:00", "x")), lead=timedelta(), version_seen=2, now=NOW)
    assert due_ids() == []


def test_a_plan_that_was_replaced_meanwhile_is_not_overwritten() -> None:
    product = planned_product()
    with pytest.raises(Conflict):
        plans.set_plan(product, make_plan(), lead=timedelta(), version_seen=0, now=NOW)
    assert plans.plan_of(reread(product)).is_on


def poison(product: Product, **values: object) -> None:
    change(product, None, next_run_at=1, **values)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ('{"timezone":"Mars/Base","slots":[[1,"09:00","x"]]}', "The plan cannot run. 'Mars/Base'"),
        ("not JSON", "The plan cannot run. The stored plan is not JSON"),
        ('{"timezone":"UTC","slots":[[1,"25:00","x"]]}', "The plan cannot run. '25:00'"),
    ],
)
def test_a_poisoned_product_is_set_aside_after_three_tries_and_stops_nobody(
    plan: str, sentence: str
) -> None:
    broken = planned_product(user_id="broken")
    poison(broken, plan=plan)
    for number in range(3):
        planned_product(user_id=f"fine{number}")
    reports = [
        run_due_products(at("2026-01-06 09:01") + timedelta(minutes=minute)) for minute in range(4)
    ]
    assert [(r.found, r.done, r.failed) for r in reports] == [
        (4, 3, 1),
        (1, 0, 1),
        (1, 0, 1),
        (0, 0, 0),
    ]
    assert {len(posts_of(f"fine{number}")) for number in range(3)} == {1}
    broken = reread(broken)
    assert broken.schedule_error.startswith(sentence)
    assert (broken.schedule_status, broken.next_run_at) == (None, None)
    assert [p.product_id for p in Product.in_trouble.query("open")] == [broken.product_id]


def test_an_entry_of_a_wrong_type_at_the_head_hides_nothing_behind_it() -> None:
    broken = planned_product(user_id="broken")
    dynamo.client().update_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": "broken"}, "productId": {"S": broken.product_id}},
        UpdateExpression="SET #p = :n, nextRunAt = :one",
        ExpressionAttributeNames={"#p": "plan"},
        ExpressionAttributeValues={":n": {"N": "5"}, ":one": {"N": "1"}},
    )
    planned_product(user_id="fine")
    for minute in range(3):
        run_due_products(at("2026-01-06 09:01") + timedelta(minutes=minute))
    assert len(posts_of("fine")) == 1
    raw = dynamo.client().get_item(
        TableName=Product.Meta.table_name,
        Key={"userId": {"S": "broken"}, "productId": {"S": broken.product_id}},
    )["Item"]
    assert "nextRunAt" not in raw
    assert raw["scheduleError"]["S"].startswith("The plan cannot be read")


def test_saving_the_plan_mends_a_product_that_was_set_aside() -> None:
    product = planned_product()
    poison(product, plan="broken")
    for minute in range(3):
        run_due_products(NOW + timedelta(minutes=minute))
    product = reread(product)
    plans.set_plan(product, make_plan((1, "09:00", "x")), lead=timedelta(), version_seen=1, now=NOW)
    assert (product.schedule_error, product.trouble_status) == (None, None)
    assert due_ids() == [product.product_id]


def test_a_product_paused_after_it_was_nominated_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The index nominates, the base item decides: here the pause comes between the two."""
    product = planned_product()
    real = plans.due_at

    def pause_first(*args: object) -> object:
        monkeypatch.setattr(plans, "due_at", real)
        plans.pause(reread(product), now=NOW)
        return real(*args)

    monkeypatch.setattr(plans, "due_at", pause_first)
    run_due_products(at("2026-01-06 09:01"))
    assert reread(product).next_run_at is None


def test_a_zone_whose_rules_changed_loses_no_slot() -> None:
    """The stored slot is an hour later than the zone's new rules say: it is drafted, not passed."""
    product = planned_product(lead=timedelta(hours=12))
    moved = to_ms(at("2026-01-06 10:00"))
    change(product, None, next_slot_at=moved, next_run_at=to_ms(at("2026-01-05 22:00")))
    run_due_products(at("2026-01-05 22:01"))
    assert posts_of() == [("changelog", at("2026-01-06 09:00"))]
    assert from_ms(reread(product).next_slot_at) == at("2026-01-13 09:00")


def test_a_tick_costs_what_is_due_and_nothing_else() -> None:
    def fill(idle: int) -> None:
        for number in range(idle):
            put_new(
                Product(
                    user_id=f"idle{number}", product_id=f"{number:016x}", name="Idle", slug="idle",
                    created_at=1, plan=make_plan((3, "09:00", "x")).to_json(), plan_version=1,
                    schedule_status="active", next_run_at=to_ms(at("2027-01-01 00:00")),
                    next_slot_at=to_ms(at("2027-01-01 00:00")),
                )
            )  # fmt: skip

    costs = []
    for idle in (0, 300):
        fill(idle)
        for number in range(20):
            planned_product(user_id=f"due{idle}-{number}", now=NOW)
        report = run_due_products(at("2026-01-06 09:01"))
        assert report.done == 20
        costs.append((report.requests, report.capacity_units))
        for number in range(20):
            for product in Product.query(f"due{idle}-{number}"):
                change(product, None, schedule_status=None, next_run_at=None)
    assert costs[0] == costs[1]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", None])
def test_a_tick_does_not_depend_on_the_machines_time_zone(
    zone: str | None, store: str, tmp_path: object
) -> None:
    product = planned_product(timezone="Europe/Berlin")
    environment = {
        "PATH": "/usr/bin:/bin",
        "DYNAMODB_ENDPOINT_URL": store,
        "DATA_DIR": str(tmp_path),
    }
    if zone:
        environment["TZ"] = zone
    command = [sys.executable, "manage.py", "run_due_products", "--now", "2026-01-06T08:01:00Z"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert posts_of() == [("changelog", at("2026-01-06 08:00"))]
    assert from_ms(reread(product).next_slot_at) == at("2026-01-13 08:00")


def test_a_plan_with_an_unknown_zone_cannot_even_be_made() -> None:
    with pytest.raises(InvalidPlan):
        make_plan((1, "09:00", "x"), timezone="Mars/Base")


def test_the_first_state_of_a_post_is_drafting_and_it_is_due_for_writing() -> None:
    planned_product()
    run_due_products(at("2026-01-06 09:01"))
    post = next(iter(Post.query("1")))
    assert (post.state, post.work_status, post.review_user_id) == (State.DRAFTING, "active", "1")
    assert from_ms(post.work_at) <= datetime(2026, 1, 6, 9, 1, tzinfo=UTC)


def test_saving_a_plan_between_its_slot_and_the_tick_loses_no_slot() -> None:
    product = planned_product()
    plan = make_plan((1, "09:00", "changelog"), (4, "10:00", "x"))
    plans.set_plan(
        product, plan, lead=timedelta(), version_seen=1, now=at("2026-01-06 09:00")
        + timedelta(minutes=1, seconds=5),
    )  # fmt: skip
    run_due_products(at("2026-01-06 09:02"))
    assert posts_of() == [("changelog", at("2026-01-06 09:00"))]
    assert from_ms(reread(product).next_slot_at) == at("2026-01-09 10:00")


def test_a_store_that_fails_while_a_failure_is_counted_stops_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poison(planned_product(user_id="broken"), plan="broken")
    planned_product(user_id="fine")
    real = due.change_unread

    def failing(item: Product, *args: object, **values: object) -> None:
        if item.user_id == "broken":
            raise dynamo.StoreError("away")
        real(item, *args, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(due, "change_unread", failing)
    report = run_due_products(at("2026-01-06 09:01"))
    assert (report.done, report.failed, len(posts_of("fine"))) == (1, 1, 1)


def test_a_run_time_that_is_no_whole_number_is_set_aside_too() -> None:
    product = planned_product()
    change(product, None, next_run_at=1.5)
    for minute in range(3):
        run_due_products(NOW + timedelta(minutes=minute))
    assert due_ids() == []
    assert reread(product).trouble_status == "open"
