"""The plan page over HTTP: said back first, saved when it is sent again as it was shown."""

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from products.tables import Product
from scheduling import plans
from scheduling.weekly import Slot
from slothpost_site.dynamo import change
from slothpost_site.moments import as_key, from_ms
from tests.builders import make_plan, make_product, planned_product, reread
from tests.conftest import signed_in
from tests.pages import HTMX, fields, send, words

pytestmark = pytest.mark.usefixtures("store")

EVERY_DAY = {f"changelog-{day}": ["09:00"] for day in range(7)}


@pytest.fixture
def client(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def product(alice: User) -> Product:
    return make_product(str(alice.pk))


def address(product: Product, name: str = "plan") -> str:
    return reverse(name, args=[product.product_id])


def preview(client: Client, product: Product, **typed: str | list[str]) -> HttpResponse:
    page = client.get(address(product))
    return send(client, address(product), page, preview="", **typed)


def slots(product: Product) -> list[tuple[int, str | None, str]]:
    return [(s.weekday, s.time, s.outlet) for s in plans.plan_of(reread(product)).slots]


def test_a_plan_is_said_back_before_it_is_saved(client: Client, product: Product) -> None:
    page = preview(client, product, timezone="Europe/Berlin", changelog__1=["09:00", "17:30"])
    assert "Tuesday at 9:00 and 17:30 on Changelog (Europe/Berlin time)." in words(page)
    assert "Save this plan" in words(page)
    assert reread(product).plan is None
    answer = send(client, address(product), page, save="")
    assert answer.headers["Location"] == address(product, "product")
    assert slots(product) == [(1, "09:00", "changelog"), (1, "17:30", "changelog")]
    assert reread(product).timezone == "Europe/Berlin"


def test_nothing_is_saved_that_was_not_shown(client: Client, product: Product) -> None:
    page = client.get(address(product))
    assert "Save this plan" not in words(page)
    shown = send(client, address(product), page, save="", timezone="UTC", x__0="08:00")
    assert "Monday at 8:00 on X (UTC time)." in words(shown)
    again = send(client, address(product), shown, save="", x__0="10:00")
    assert "Monday at 10:00 on X (UTC time)." in words(again)
    assert reread(product).plan is None
    send(client, address(product), again, save="")
    assert slots(product) == [(0, "10:00", "x")]


def test_a_cleared_plan_takes_the_product_out_of_the_index(client: Client, alice: User) -> None:
    product = planned_product(user_id=str(alice.pk))
    page = preview(client, product, changelog__1="")
    assert "Nothing is scheduled." in words(page)
    send(client, address(product), page, save="")
    found = reread(product)
    assert (found.next_run_at, found.schedule_status) == (None, None)


def test_what_moves_is_shown_before_saving(client: Client, alice: User) -> None:
    product = planned_product(user_id=str(alice.pk))
    page = words(preview(client, product, changelog__1="10:00"))
    assert re.search(r"Tue \d+ \w+ 9:00 on Changelog moves to Tue \d+ \w+ 10:00\.", page)


def test_a_plan_changed_in_another_window_is_not_overwritten(client: Client, alice: User) -> None:
    product = planned_product(user_id=str(alice.pk))
    page = preview(client, product, changelog__1="10:00")
    plans.set_plan(
        product,
        make_plan((2, "07:00", "x")),
        lead=timedelta(),
        version_seen=1,
        now=timezone.now(),
    )
    answer = send(client, address(product), page, save="")
    assert answer.status_code == 409
    assert "This plan was changed in another window" in words(answer)
    assert fields(answer)["changelog-1"][0] == "10:00"
    assert slots(product) == [(2, "07:00", "x")]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"timezone": "UTC", "x__0": "25:00"}, "is not a time of day"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus is not one of the available choices"),
        ({"timezone": ""}, "Choose the time zone that your times are meant in."),
        ({"timezone": "UTC", "lead_minutes": "7"}, "7 is not one of the available choices"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_reason(
    client: Client, product: Product, typed: dict[str, str], says: str
) -> None:
    page = preview(client, product, **typed)  # type: ignore[arg-type]
    assert page.status_code == 422
    assert says in words(page)


def test_htmx_gets_the_preview_alone(client: Client, product: Product) -> None:
    sent = fields(client.get(address(product))) | {"timezone": ["UTC"], "x-0": ["08:00"]}
    answer = client.post(address(product), sent, headers=HTMX)
    assert "<html" not in words(answer)
    assert fields(answer).keys() == {"previewed"}
    assert client.post(address(product), sent | fields(answer) | {"save": ""}).status_code == 302


def test_htmx_gets_the_reason_alone(client: Client, product: Product) -> None:
    sent = fields(client.get(address(product))) | {"timezone": ["UTC"], "x-0": ["25:00"]}
    answer = client.post(address(product), sent, headers=HTMX)
    assert answer.status_code == 422
    assert "<html" not in words(answer)
    assert "is not a time of day" in words(answer)


def test_a_new_plan_begins_with_the_browsers_zone_and_a_saved_one_keeps_its_own(
    client: Client, product: Product, alice: User
) -> None:
    saved = planned_product(user_id=str(alice.pk), timezone="Asia/Tokyo")
    assert 'data-browser-zone="preset"' in words(client.get(address(product)))
    page = client.get(address(saved))
    assert 'data-browser-zone="chosen"' in words(page)
    assert fields(page)["timezone"] == ["Asia/Tokyo"]


def test_a_time_is_meant_in_the_plans_zone_and_shown_in_it_everywhere(
    client: Client, product: Product
) -> None:
    """14:55 in India is 9:25 UTC, and never shown as that."""
    typed = {"timezone": "Asia/Kolkata", "lead_minutes": "0", "x-3": "14:55"}
    page = preview(client, product, **typed)
    assert "Thursday at 14:55 on X (Asia/Kolkata time)." in words(page)
    send(client, address(product), page, save="")
    stored = from_ms(reread(product).next_slot_at)
    assert (stored.weekday(), stored.hour, stored.minute) == (3, 9, 25)
    for name in ("plan", "product"):
        shown = words(client.get(address(product, name)))
        assert "14:55" in shown
        assert "9:25" not in shown
    assert fields(client.get(address(product)))["x-3"] == ["14:55", ""]


def test_a_slot_nearer_than_its_lead_time_is_drafted_right_away(
    client: Client, product: Product
) -> None:
    page = preview(client, product, timezone="UTC", lead_minutes="2880", **EVERY_DAY)
    assert words(page).count("Its draft is written as soon as you save.") == 2
    assert words(page).count("Draft on ") == 3


def test_a_slot_that_has_its_draft_says_so(client: Client, alice: User) -> None:
    every_day = [(day, "09:00", "changelog") for day in range(7)]
    product = planned_product(*every_day, user_id=str(alice.pk), now=timezone.now())
    drafted = {"changelog": [as_key(reread(product).next_slot_at)]}
    change(product, None, drafted_slots=drafted)
    assert words(client.get(address(product))).count("Its draft is written.") == 1


def test_a_plan_is_paused_until_a_day_and_resumed(client: Client, alice: User) -> None:
    product = planned_product(user_id=str(alice.pk), timezone="Asia/Tokyo")
    day = timezone.now().date() + timedelta(days=60)
    client.post(address(product, "plan_pause"), {"until": day.isoformat()})
    found = reread(product)
    assert found.next_slot_at > found.paused_until
    page = words(client.get(address(product)))
    assert f"Paused until {day.day} {day:%B %Y}" in page
    dates = [
        datetime.fromisoformat(at) for at in re.findall(r'<strong><time datetime="(.+?)"', page)
    ]
    assert len(dates) == 5
    assert dates[0] == from_ms(found.next_slot_at)
    client.post(address(product, "plan_resume"))
    assert reread(product).paused_at is None
    assert reread(product).next_slot_at < found.paused_until


def test_a_pause_without_a_day_plans_no_date(client: Client, alice: User) -> None:
    product = planned_product(user_id=str(alice.pk))
    client.post(address(product, "plan_pause"), {"until": ""})
    assert reread(product).next_run_at is None
    page = words(client.get(address(product)))
    assert "Paused: no date is planned until you resume." in page
    assert "The next 5" not in page


@pytest.mark.parametrize("days", [-1, 0, 400])
def test_a_pause_until_a_day_that_cannot_be_is_refused(
    client: Client, alice: User, days: int
) -> None:
    product = planned_product(user_id=str(alice.pk))
    day = timezone.now().date() + timedelta(days=days)
    client.post(address(product, "plan_pause"), {"until": day.isoformat()})
    assert reread(product).paused_at is None
    assert "Choose a day from tomorrow on" in words(client.get(address(product)))


def test_saving_mends_a_product_that_was_set_aside(client: Client, product: Product) -> None:
    change(
        product,
        None,
        plan='{"timezone": "Mars/Olympus", "slots": []}',
        schedule_error="Mars/Olympus is not a time zone.",
        schedule_attempts=3,
        trouble_status="open",
    )
    page = client.get(address(product))
    assert "Mars/Olympus is not a time zone. Check the plan below and save it again" in words(page)
    shown = send(client, address(product), page, preview="", timezone="UTC", x__0="08:00")
    send(client, address(product), shown, save="")
    found = reread(product)
    assert (found.schedule_error, found.trouble_status) == (None, None)
    assert plans.plan_of(found).slots == (Slot(0, "08:00", "x"),)
    assert found.next_run_at is not None
