"""The weekly plan: when it is next, between two instants, said back, and at every clock change."""

import json
import os
import subprocess
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.weekly import (
    MAX_SLOTS,
    InvalidPlan,
    Move,
    Slot,
    WeeklyPlan,
    describe,
    moved,
    time_zones,
    upcoming,
)

HERE = Path(__file__).parent
CASES = json.loads((HERE / "weekly_cases.json").read_text())["cases"]
LABELS = {"x": "X", "threads": "Threads", "bluesky": "Bluesky"}
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def plan(timezone: str, *slots: str) -> WeeklyPlan:
    """plan("UTC", "0 9:00 x") has one slot: Monday 9:00 on x."""
    split = [slot.split() for slot in slots]
    return WeeklyPlan(timezone, tuple(Slot(int(day), time, outlet) for day, time, outlet in split))


# --- The shared cases ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["note"])
def test_next_slot_is_the_one_of_the_shared_case(case):
    weekly = WeeklyPlan(
        timezone=case["timezone"], slots=tuple(Slot(**slot) for slot in case["slots"])
    )
    expected = case["next_slot_at"]

    found = weekly.next_slot_at(datetime.fromisoformat(case["after"]))

    assert found == (expected and datetime.fromisoformat(expected))
    assert found is None or found.tzinfo is UTC


# --- Against an oracle that walks the minutes and only looks at the clock on the wall -------------

# A zone and an instant within a day of a clock change: gaps and overlaps of 15 minutes to a day,
# at night, at midnight, over a weekday's end, and in zones with odd offsets.
CLOCK_CHANGES = [
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("America/Santiago", "2026-04-05T03:00"),
    ("America/Santiago", "2026-09-06T04:00"),
    ("Asia/Beirut", "2026-03-28T22:00"),
    ("Asia/Beirut", "2026-10-24T21:00"),
    ("Africa/Cairo", "2026-04-23T22:00"),
    ("Africa/Cairo", "2026-10-29T21:00"),
    ("America/Nuuk", "2026-03-29T01:00"),
    ("America/Nuuk", "2026-10-25T01:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),
    ("Europe/Dublin", "2026-03-29T01:00"),
    ("Europe/Dublin", "2026-10-25T01:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Africa/Casablanca", "2026-03-22T02:00"),
    ("Pacific/Chatham", "2026-04-04T14:00"),
    ("Pacific/Chatham", "2026-09-26T14:00"),
]


@cache
def instants_by_wall_clock(timezone: str, change: str) -> dict[tuple[int, int, int], list]:
    """When each weekday, hour and minute strikes, from two days before a clock change to ten after.

    A time that the clock on the wall skips strikes as long after the jump as it would have struck
    without it; a time that the wall shows again does not strike again.
    """
    zone = ZoneInfo(timezone)
    at = utc(change) - 2 * DAY
    latest = at.astimezone(zone).replace(tzinfo=None)
    strikes: dict[tuple[int, int, int], list] = defaultdict(list)
    jumps = 0
    for _ in range(12 * 24 * 60):
        at += MINUTE
        wall = at.astimezone(zone).replace(tzinfo=None)
        jumps += wall != latest + MINUTE
        skipped = 0
        while latest < wall:
            latest += MINUTE
            struck = at if latest == wall else at + skipped * MINUTE
            strikes[latest.weekday(), latest.hour, latest.minute].append(struck)
            skipped += 1
    assert jumps, f"{timezone} has no clock change at {change}"
    return {key: sorted(instants) for key, instants in strikes.items()}


@st.composite
def situations(draw: st.DrawFn) -> tuple[WeeklyPlan, datetime, str]:
    """A plan, an instant and a clock change; the first two drawn mostly from close around it."""
    timezone, change = draw(st.sampled_from(CLOCK_CHANGES))
    local_change = utc(change).astimezone(ZoneInfo(timezone)).replace(tzinfo=None)
    near = st.integers(-180, 180).map(lambda minutes: local_change + minutes * MINUTE)
    anywhere = st.integers(0, 7 * 24 * 60 - 1).map(lambda minutes: local_change + minutes * MINUTE)
    walls = draw(st.lists(near | anywhere, min_size=1, max_size=5))
    slots = tuple(Slot(wall.weekday(), f"{wall:%H:%M}", "x") for wall in walls)
    seconds = draw(st.integers(-6 * 3600, 6 * 3600) | st.integers(-2 * 86400, 2 * 86400))
    after = utc(change) + timedelta(seconds=seconds)
    return WeeklyPlan(timezone, slots), after, change


@settings(max_examples=300, deadline=None, database=None)
@given(situations())
def test_next_slot_is_when_the_wall_clock_strikes_it(situation):
    weekly, after, change = situation
    strikes = instants_by_wall_clock(weekly.timezone, change)
    coming = []
    for slot in weekly.slots:
        instants = strikes[slot.weekday, int(slot.time[:2]), int(slot.time[3:])]
        coming.append(instants[bisect_right(instants, after)])

    assert weekly.next_slot_at(after) == min(coming)


@settings(max_examples=200, deadline=None, database=None)
@given(situations(), st.integers(0, 10 * 24 * 60))
def test_slots_between_is_next_slot_repeated(situation, minutes):
    weekly, start, _ = situation
    end = start + minutes * MINUTE
    expected = []
    at = weekly.next_slot_at(start)
    while at is not None and at <= end:
        expected.append(at)
        at = weekly.next_slot_at(at)

    assert [at for at, _ in weekly.slots_between(start, end)] == expected


@pytest.mark.parametrize("timezone", sorted({zone for zone, _ in CLOCK_CHANGES}))
def test_each_slot_runs_once_in_every_local_week_of_a_year(timezone):
    asked = [(day, time) for day in range(7) for time in ("0:30", "2:30", "12:00", "23:30")]
    weekly = WeeklyPlan(timezone, tuple(Slot(*slot, f"o{i}") for i, slot in enumerate(asked)))
    # From Monday 5 January 2026 to Monday 4 January 2027, both at 0:00 local.
    start, end = (
        datetime(year, 1, day, tzinfo=weekly.zone) - timedelta(microseconds=1)
        for year, day in ((2026, 5), (2027, 4))
    )

    runs = Counter(
        (at.astimezone(weekly.zone).isocalendar()[:2], slot)
        for at, slots in weekly.slots_between(start, end)
        for slot in slots
    )

    weeks = {week for week, _ in runs}
    assert len(weeks) == 52
    assert runs == Counter((week, slot) for week in weeks for slot in weekly.slots)


def test_nine_stays_nine_local_across_both_clock_changes_of_a_year():
    weekly = plan("America/New_York", "1 9:00 x")

    instants = [at for at, _ in weekly.slots_between(utc("2026-01-01"), utc("2027-01-01"))]

    assert {f"{at.astimezone(weekly.zone):%a %H:%M}" for at in instants} == {"Tue 09:00"}
    assert Counter(at.hour for at in instants) == {13: 34, 14: 18}


def test_a_late_slot_is_found_when_the_utc_date_is_already_tomorrow():
    weekly = plan("America/New_York", "0 23:30 x")

    assert weekly.next_slot_at(utc("2026-01-06T02:00")) == utc("2026-01-06T04:30")


def test_a_day_that_never_was_runs_a_day_later_and_meets_that_days_slot():
    weekly = plan("Pacific/Apia", "4 9:00 x", "5 9:00 x", "5 9:00 threads")  # no 30 December 2011

    found = list(weekly.slots_between(utc("2011-12-29T12:00"), utc("2012-01-01")))

    assert found == [
        (utc("2011-12-30T19:00"), (Slot(4, "09:00", "x"), Slot(5, "09:00", "threads"))),
    ]


# --- What goes in and out -----------------------------------------------------------------------


def test_an_interval_leaves_its_start_out_and_takes_its_end_in():
    weekly = plan("UTC", "0 9:00 x", "1 9:00 x")
    monday, tuesday = utc("2026-01-05T09:00"), utc("2026-01-06T09:00")

    assert [at for at, _ in weekly.slots_between(monday, tuesday)] == [tuesday]
    assert list(weekly.slots_between(tuesday, monday)) == []


def test_slots_of_one_instant_are_one_item_with_each_outlet_once():
    weekly = plan("UTC", "0 9:00 threads", "0 9:00 x", "0 9:00 x", "0 18:00 x")

    found = list(weekly.slots_between(utc("2026-01-05"), utc("2026-01-06")))

    assert found == [
        (utc("2026-01-05T09:00"), (Slot(0, "09:00", "threads"), Slot(0, "09:00", "x"))),
        (utc("2026-01-05T18:00"), (Slot(0, "18:00", "x"),)),
    ]


def test_the_second_pass_of_a_repeated_hour_is_told_from_the_first_by_fold():
    weekly = plan("America/New_York", "6 1:30 x")
    first = datetime(2026, 11, 1, 1, 15, tzinfo=weekly.zone)

    assert weekly.next_slot_at(first) == utc("2026-11-01T05:30")
    assert weekly.next_slot_at(first.replace(fold=1)) == utc("2026-11-08T06:30")


@pytest.mark.parametrize("timezone", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_the_ends_of_the_calendar_have_no_slot_beyond_them(timezone):
    weekly = plan(timezone, *(f"{day} 12:00 x" for day in range(7)))
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

    assert weekly.next_slot_at(last) is None
    assert list(weekly.slots_between(last - 2 * DAY, last))[-1][0] > last - 2 * DAY
    assert upcoming(weekly, last) == moved(weekly, plan("UTC"), last) == []
    assert first < weekly.next_slot_at(first) < first + 2 * DAY
    assert upcoming(weekly, first, 1)[0].at == weekly.next_slot_at(first)


@pytest.mark.parametrize(
    "end",
    [
        datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
        datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
    ],
)
def test_an_instant_outside_the_calendar_in_utc_is_refused(end):
    with pytest.raises(ValueError, match="is outside the calendar in UTC"):
        plan("UTC", "0 9:00 x").next_slot_at(end)


@pytest.mark.parametrize(
    "ask",
    [
        lambda weekly, naive: weekly.next_slot_at(naive),
        lambda weekly, naive: weekly.slots_between(naive, utc("2026-01-06")),
        lambda weekly, naive: weekly.slots_between(utc("2026-01-05"), naive),
        lambda weekly, naive: upcoming(weekly, naive),
        lambda weekly, naive: moved(weekly, weekly, naive),
    ],
)
def test_a_datetime_without_a_time_zone_is_refused_at_the_call(ask):
    naive = utc("2026-01-05").replace(tzinfo=None)

    with pytest.raises(ValueError, match="2026-01-05T00:00:00 has no time zone: pass an aware"):
        ask(plan("UTC", "0 9:00 x"), naive)


@pytest.mark.parametrize("tz", [None, "UTC", "Asia/Kolkata"])
def test_the_machines_own_time_zone_changes_nothing(tz):
    script = """
from datetime import UTC, datetime
import slothpost_site
from scheduling.weekly import Slot, WeeklyPlan
after = datetime(2026, 3, 28, 20, tzinfo=UTC)
for zone in "Europe/Berlin", "Asia/Kolkata", "UTC":
    print(WeeklyPlan(zone, (Slot(6, "02:30", "x"),)).next_slot_at(after).isoformat())
"""
    environment = {name: value for name, value in os.environ.items() if name != "TZ"}
    if tz is not None:
        environment["TZ"] = tz

    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == [
        "2026-03-29T01:30:00+00:00",
        "2026-03-28T21:00:00+00:00",
        "2026-03-29T02:30:00+00:00",
    ]


# --- Validity -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [("9:05", "09:05"), ("0:00", "00:00"), ("23:59", "23:59"), ("", None), (None, None)],
)
def test_a_time_is_kept_in_one_form_and_an_empty_one_is_off(given, kept):
    assert Slot(0, given, "x") == Slot(weekday=0, time=kept, outlet="x")
    assert WeeklyPlan("UTC", (Slot(0, given, "x"),)).is_on == (kept is not None)


@pytest.mark.parametrize(
    "time",
    [
        *("25:00", "24:00", "09:60", "nine", "9", "9:5", "009:00", "-1:00", " 9:00", "9:00\n"),
        *("9:00:00", "9.00", "\u0660\u0669:00", "9:00 pm", 9, 9.5, True, ["09:00"], b"09:00"),
    ],
)
def test_a_time_that_is_none_is_refused(time):
    with pytest.raises(InvalidPlan, match="is not a time of day: write it as HH:MM, such as 09:30"):
        Slot(0, time, "x")


@pytest.mark.parametrize("weekday", [-1, 7, 10**30, 1.0, True, "1", None, [0]])
def test_a_weekday_outside_the_week_is_refused(weekday):
    with pytest.raises(InvalidPlan, match="is not a weekday: use 0 for Monday to 6 for Sunday"):
        Slot(weekday, "09:00", "x")


@pytest.mark.parametrize("outlet", ["", None, 3, ["x"]])
def test_a_slot_without_an_outlets_name_is_refused(outlet):
    with pytest.raises(InvalidPlan, match="is not the name of an outlet"):
        Slot(0, "09:00", outlet)


@pytest.mark.parametrize(
    "timezone",
    [
        *("", "Berlin", "europe/berlin", "Europe/Berlin ", "Europe", "../../etc/passwd"),
        *("/etc/localtime", "localtime", "posixrules", "Factory", "\ud800", "UTC\0", "U" * 10_000),
        *(None, 1, ["UTC"]),
    ],
    ids=ascii,
)
def test_an_unknown_time_zone_is_refused(timezone):
    with pytest.raises(InvalidPlan, match="is not a time zone: choose one from the list") as error:
        WeeklyPlan(timezone, ())
    assert len(str(error.value)) < 120


def test_the_time_zones_hold_aliases_and_no_entry_that_names_no_place():
    assert {"UTC", "Europe/Berlin", "US/Eastern", "Europe/Kiev"} <= time_zones()
    assert not {"Factory", "localtime", "posixrules"} & time_zones()


def test_a_plan_with_more_slots_than_anyone_needs_is_refused():
    slots = [Slot(0, None, "x")] * MAX_SLOTS
    assert len(WeeklyPlan("UTC", tuple(slots)).slots) == MAX_SLOTS

    with pytest.raises(InvalidPlan, match="at most 1008 slots, and this one has 1009"):
        WeeklyPlan("UTC", (*slots, Slot(0, None, "x")))


# --- Stored -------------------------------------------------------------------------------------


def test_a_plan_is_stored_as_compact_json_and_read_back_equal():
    weekly = plan("Europe/Berlin", "1 9:00 x", "0 18:00 threads")
    off = WeeklyPlan("UTC", (Slot(0, "", "x"),))

    text = weekly.to_json()

    assert text == '{"timezone":"Europe/Berlin","slots":[[1,"09:00","x"],[0,"18:00","threads"]]}'
    assert WeeklyPlan.from_json(text) == weekly
    assert hash(WeeklyPlan.from_json(text)) == hash(weekly)
    assert WeeklyPlan.from_json(off.to_json()) == off


def test_a_plan_stays_equal_after_it_was_used():
    used, fresh = plan("UTC", "0 9:00 x"), plan("UTC", "0 9:00 x")
    used.next_slot_at(utc("2026-01-05"))

    assert (used, hash(used), repr(used)) == (fresh, hash(fresh), repr(fresh))


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", "1", '"UTC"', "{}", "NaN", None, "1" * 5_000, "[" * 200_000),
        *('{"timezone":"UTC"}', '{"slots":[]}', '{"timezone":"Nowhere","slots":[]}'),
        '{"timezone":["UTC"],"slots":[]}',
        *(
            f'{{"timezone":"UTC","slots":{slots}}}'
            for slots in (
                *("null", "{}", '"x"', "[null]", "[[]]", '[[0,"09:00"]]', '[[0,"09:00","x",1]]'),
                *('["0ab"]', '[{"weekday":0}]', '[[7,"09:00","x"]]', '[[0,"25:00","x"]]'),
                *('[[0,"09:00",null]]', '[[0,{},"x"]]', "[[0,null,{}]]", '[[NaN,"09:00","x"]]'),
                f'[[0,{"[" * 900}{"]" * 900},"x"]]',
                json.dumps([[0, None, "x"]] * (MAX_SLOTS + 1)),
            )
        ),
    ],
    ids=lambda text: str(text)[:60],
)
def test_a_broken_stored_plan_is_refused_with_a_sentence(text):
    with pytest.raises(InvalidPlan, match=r"\.$"):
        WeeklyPlan.from_json(text)


# --- Said back ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weekly", "sentence"),
    [
        (plan("UTC"), "Nothing is scheduled."),
        (WeeklyPlan("UTC", (Slot(0, None, "x"),)), "Nothing is scheduled."),
        (
            plan("Europe/Berlin", "1 9:00 x", "3 9:00 x", "0 18:00 threads"),
            "Tuesday and Thursday at 9:00 on X, Monday at 18:00 on Threads (Europe/Berlin time).",
        ),
        (
            plan("America/New_York", *(f"{day} 0:05 x" for day in range(7))),
            "Every day at 0:05 on X (America/New York time).",
        ),
        (
            plan("UTC", "0 8:00 x", *(f"{day} 10:30 bluesky" for day in range(5))),
            "Monday at 8:00 on X, every weekday at 10:30 on Bluesky (UTC time).",
        ),
        (
            plan("UTC", "0 18:00 x", "0 8:00 x", "0 12:30 x"),
            "Monday at 8:00, 12:30 and 18:00 on X (UTC time).",
        ),
        (
            plan("UTC", "0 9:00 x", "0 9:00 threads", "0 9:00 mastodon"),
            "Monday at 9:00 on X, Threads and mastodon (UTC time).",
        ),
        (
            plan("UTC", "4 9:00 x", "0 9:00 x", "2 9:00 x", "6 10:00 threads"),
            "Monday, Wednesday and Friday at 9:00 on X; Sunday at 10:00 on Threads (UTC time).",
        ),
        (plan("UTC", "0 9:00 x", "0 9:00 x"), "Monday at 9:00 on X (UTC time)."),
    ],
)
def test_a_plan_is_said_back_in_one_sentence(weekly, sentence):
    assert describe(weekly, LABELS) == sentence


@pytest.mark.parametrize(
    ("weekly", "after", "dates"),
    [
        (
            plan("America/New_York", "6 2:30 x"),
            "2026-03-07T00:00",
            [
                ("Sun 8 03:30", "2:30 does not exist that day, so this goes out at 3:30."),
                ("Sun 15 02:30", ""),
            ],
        ),
        (
            plan("America/New_York", "6 2:30 x", "6 3:30 x"),
            "2026-03-07T00:00",
            [
                ("Sun 8 03:30", "2:30 does not exist that day, so this goes out at 3:30."),
                ("Sun 15 02:30", ""),
                ("Sun 15 03:30", ""),
            ],
        ),
        (
            plan("America/New_York", "6 1:30 x", "0 9:00 x"),
            "2026-10-31T00:00",
            [
                ("Sun 1 01:30", "1:30 comes twice that day: this goes out the first time."),
                ("Mon 2 09:00", "The clocks change on 1 November: still 9:00 local time."),
                ("Sun 8 01:30", ""),
            ],
        ),
        (
            plan("Europe/Berlin", "3 9:00 x"),
            "2026-03-24T12:00",
            [
                ("Thu 26 09:00", ""),
                ("Thu 2 09:00", "The clocks change on 29 March: still 9:00 local time."),
                ("Thu 9 09:00", ""),
            ],
        ),
        (
            plan("Europe/Berlin", "3 9:00 x"),
            "2026-03-28T12:00",
            [("Thu 2 09:00", "The clocks change on 29 March: still 9:00 local time.")],
        ),
        (
            plan("America/Nuuk", "5 23:30 x"),
            "2026-03-27T12:00",
            [
                (
                    "Sun 29 00:30",
                    "Saturday 23:30 does not exist that week, so this goes out on Sunday at 0:30.",
                )
            ],
        ),
        (
            plan("Pacific/Apia", "4 9:00 x"),
            "2011-12-28T12:00",
            [
                (
                    "Sat 31 09:00",
                    "Friday 9:00 does not exist that week, so this goes out on Saturday at 9:00.",
                )
            ],
        ),
        (plan("UTC"), "2026-01-01T00:00", []),
    ],
)
def test_coming_dates_say_what_a_clock_change_does_to_them(weekly, after, dates):
    found = upcoming(weekly, utc(after), max(1, len(dates)))

    assert [
        (f"{date.local:%a} {date.local.day} {date.local:%H:%M}", date.note) for date in found
    ] == dates
    assert [(date.at, date.slots) for date in found] == list(
        islice(weekly.slots_between(utc(after), utc("2027-01-01")), len(dates))
    )


# --- What a change of plan moves ----------------------------------------------------------------

MONDAY = utc("2026-11-30T12:00")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (plan("UTC", "3 9:00 x"), plan("UTC", "3 9:00 x", "3 9:00 x"), []),
        (plan("UTC", "3 9:00 x"), plan("Africa/Abidjan", "3 9:00 x"), []),
        (plan("UTC", "3 9:00 x"), plan("UTC"), ["Thu 3 Dec 9:00 on X is dropped"]),
        (
            plan("UTC", "3 9:00 x"),
            plan("UTC", "3 9:00 x", "0 9:00 x"),
            ["Mon 7 Dec 9:00 on X is new"],
        ),
        (
            plan("UTC", "3 9:00 x"),
            plan("UTC", "3 10:00 x"),
            ["Thu 3 Dec 9:00 on X moves to Thu 3 Dec 10:00"],
        ),
        (
            plan("UTC", "3 9:00 x"),
            plan("UTC", "3 9:00 threads"),
            ["Thu 3 Dec 9:00 on Threads is new", "Thu 3 Dec 9:00 on X is dropped"],
        ),
        (
            plan("UTC", "3 8:00 x", "3 12:00 x", "3 18:00 x"),
            plan("UTC", "3 12:00 x", "3 9:00 x"),
            ["Thu 3 Dec 8:00 on X moves to Thu 3 Dec 9:00", "Thu 3 Dec 18:00 on X is dropped"],
        ),
        (  # The earlier time has passed today: saving makes today's post come after all.
            plan("UTC", "0 9:00 x"),
            plan("UTC", "0 15:00 x"),
            ["Mon 7 Dec 9:00 on X moves to Mon 30 Nov 15:00"],
        ),
        (
            plan("Asia/Tokyo", "0 9:00 x"),
            plan("America/Los_Angeles", "0 9:00 x"),
            ["Mon 7 Dec 9:00 (Asia/Tokyo) on X moves to Mon 30 Nov 9:00 (America/Los_Angeles)"],
        ),
    ],
)
def test_a_change_of_plan_says_what_moves(old, new, lines):
    assert [move.describe(LABELS) for move in moved(old, new, MONDAY)] == lines


def test_a_move_holds_both_dates_in_their_own_zones():
    old, new = plan("Asia/Tokyo", "0 9:00 x"), plan("America/Los_Angeles", "0 9:00 x")

    assert moved(old, new, MONDAY) == [
        Move(
            outlet="x",
            old=datetime(2026, 12, 7, 9, tzinfo=old.zone),
            new=datetime(2026, 11, 30, 9, tzinfo=new.zone),
        )
    ]


def test_a_week_that_a_clock_change_makes_longer_still_shows_every_slot():
    weekly = plan("America/New_York", "6 9:00 x")
    just_run = utc("2026-10-25T13:00")  # the next one is a week and an hour away

    assert [move.describe() for move in moved(weekly, plan("UTC"), just_run)] == [
        "Sun 1 Nov 9:00 on x is dropped"
    ]
