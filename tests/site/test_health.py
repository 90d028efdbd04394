"""Whether the clock runs is seen from outside: health, readiness, metrics, the doctor."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from django_q.models import Schedule
from pytest_django import Settings

from products.tables import Product
from scheduling import tasks, tick, ticks
from scheduling.health import find_problems
from slothpost_site.dynamo import change
from slothpost_site.moments import from_ms
from tests.builders import NOW, at, planned_product
from tests.conftest import free_port, use_server

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]


def ready() -> tuple[int, list[str]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()["problems"]


def test_the_process_answers_without_asking_any_store() -> None:
    use_server(f"http://127.0.0.1:{free_port()}")
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_ready_means_that_a_tick_ran_lately() -> None:
    assert ready() == (503, ["No tick has run yet: is the worker running?"])
    tick.run_tick(timezone.now())
    assert ready() == (200, [])


def test_a_tick_that_is_absent_for_three_minutes_is_an_alarm() -> None:
    tick.run_tick(NOW)
    assert find_problems(NOW + timedelta(minutes=3)) == []
    assert find_problems(NOW + timedelta(minutes=3, seconds=1)) == [
        "The last tick ran 181 s ago: is the worker running?"
    ]


def test_work_that_is_overdue_by_five_minutes_is_an_alarm_and_running_again_mends_it() -> None:
    planned_product()
    slot = at("2026-01-06 09:01")
    ticks.record(slot + timedelta(minutes=6), {})
    assert find_problems(slot + timedelta(minutes=4)) == []
    assert find_problems(slot + timedelta(minutes=6))[0].startswith(
        "Work is overdue since 2026-01-06 09:0"
    )
    tick.run_tick(slot + timedelta(minutes=6))
    assert find_problems(slot + timedelta(minutes=6)) == []


def test_fewer_shards_than_there_were_is_an_alarm_until_it_is_set_back(
    settings: Settings,
) -> None:
    settings.SCHEDULE_SHARDS = 4
    tick.run_tick(NOW)
    settings.SCHEDULE_SHARDS = 1
    for minute in (1, 2):
        tick.run_tick(NOW + timedelta(minutes=minute))
    assert find_problems(NOW + timedelta(minutes=2)) == [
        "SCHEDULE_SHARDS was 4 and is 1 now: work lies where nobody looks. Set it back."
    ]
    settings.SCHEDULE_SHARDS = 4
    assert find_problems(NOW + timedelta(minutes=2)) == []


def test_more_shards_find_what_one_shard_left(settings: Settings) -> None:
    for number in range(6):
        planned_product(user_id=str(number))
    settings.SCHEDULE_SHARDS = 4
    for number in range(6, 12):
        planned_product(user_id=str(number))
    reports = tick.run_tick(at("2026-01-06 09:01"))
    assert [(r.found, r.done, r.failed) for r in reports.values()] == [(12, 12, 0)] * 2 + [
        (0, 0, 0)
    ] * 2


def test_a_store_that_is_away_is_named() -> None:
    use_server(f"http://127.0.0.1:{free_port()}")
    status, problems = ready()
    assert status == 503
    assert problems[0].startswith("DynamoDB does not answer")


def test_a_step_that_fails_is_in_the_record_and_does_not_stop_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(now: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setitem(tick.STEPS, "products", broken)
    reports = tick.run_tick(NOW)
    assert (reports["products"].error, reports["posts"].error) == ("RuntimeError: no luck", "")
    assert find_problems(NOW) == ["The last tick's step 'products' failed: RuntimeError"]


def test_every_tick_leaves_a_record_of_what_it_found() -> None:
    planned_product()
    tick.run_tick(NOW + timedelta(days=1))
    latest = ticks.latest()
    assert latest is not None
    assert from_ms(latest.started_at) == NOW + timedelta(days=1)
    report = latest.reports["products"]
    assert {key: report[key] for key in ("found", "done", "failed")} == {
        "found": 1,
        "done": 1,
        "failed": 0,
    }
    assert report["requests"] >= 3


def test_the_metrics_tell_the_lag_of_the_oldest_due_item(settings: Settings) -> None:
    settings.DEBUG = True
    product = planned_product()
    change(product, None, next_run_at=0)
    text = Client().get("/metrics").content.decode()
    lag = next(line for line in text.splitlines() if line.startswith("slothpost_due_lag_seconds"))
    assert float(lag.split()[1]) > 1e9
    assert "slothpost_store_up 1.0" in text


@pytest.fixture
def production(settings: Settings) -> Settings:
    settings.DEBUG = False
    return settings


@pytest.mark.parametrize(
    ("token", "given", "status"),
    [("", "", 404), ("s3", "", 404), ("s3", "Bearer no", 404), ("s3", "Bearer s3", 200)],
)
def test_the_metrics_of_production_want_their_token(
    production: Settings, token: str, given: str, status: int
) -> None:
    production.METRICS_TOKEN = token
    headers = {"Authorization": given} if given else {}
    assert Client().get("/metrics", headers=headers).status_code == status


def doctor() -> tuple[str, str]:
    """What it printed and how it ended."""
    out = StringIO()
    try:
        call_command("doctor", stdout=out, no_color=True)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def test_the_doctor_is_content_when_all_is_well() -> None:
    tick.run_tick(timezone.now())
    out, error = doctor()
    assert (out.splitlines()[-1].strip(), error) == ("all well", "")


def test_the_doctor_names_what_is_late_set_aside_and_lost(alice: object) -> None:
    user_id = str(alice.pk)  # type: ignore[attr-defined]
    tick.run_tick(timezone.now())
    late = planned_product(user_id=user_id)
    change(late, None, next_run_at=0)
    lost = planned_product(user_id=user_id)
    change(lost, None, schedule_status=None, next_run_at=None)
    aside = planned_product(user_id=user_id)
    change(
        aside, None, schedule_status=None, next_run_at=None, schedule_error="Why.",
        trouble_status="open", trouble_at=0,
    )  # fmt: skip
    out, error = doctor()
    assert error == "3 things to mend."
    assert "Work is overdue since 1970-01-01 00:00 UTC" in out
    assert f"product {aside.product_id} set aside 1970-01-01 00:00 UTC: Why." in out
    assert f"product {lost.product_id} has a plan that nothing will run" in out
    assert Product.count(user_id) == 3


def test_no_secret_is_ever_printed_by_the_doctor(settings: Settings) -> None:
    settings.GITHUB_WEBHOOK_SECRET = "do-not-print-me"
    out, _ = doctor()
    assert "do-not-print-me" not in out
    assert "github webhooks at http://localhost:8000/webhooks/github/, secret set" in out


def test_there_is_one_schedule_row_however_often_it_is_installed() -> None:
    Schedule.objects.create(name="tick", func="old.path", args="not python(")
    for _ in range(3):
        tasks.install()
    row = Schedule.objects.get()
    assert (row.func, row.args, row.minutes, row.repeats) == (
        "scheduling.tasks.tick",
        None,
        1,
        -1,
    )


def test_the_schedule_row_is_there_after_migrating() -> None:
    assert Schedule.objects.filter(name="tick").count() == 1
