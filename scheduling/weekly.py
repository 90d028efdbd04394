"""The weekly plan of a product: which local times of the week, on which outlets, and when next.

Pure: no Django, no clock, no input or output but the time zone database, which is read once per
zone. Every instant that goes in is aware and every instant that comes out is in UTC.

The rules at a clock change, which are those of RFC 5545 and of fold=0 in PEP 495:

- a local time that does not exist that day moves forward by the gap (2:30 becomes 3:30);
- a local time that occurs twice runs once, at its first occurrence;
- two slots that meet at one instant that way are one run, with each outlet once.
"""

import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from functools import cache, cached_property
from itertools import groupby, islice, takewhile, zip_longest
from operator import itemgetter
from zoneinfo import ZoneInfo, available_timezones

MAX_SLOTS = 7 * 6 * 24  # every hour of the week on six outlets: no person plans more

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Spelled out because strftime follows the locale of the machine.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
# Entries of a machine's zone folder that name no place: they mean something else on each machine.
_NOT_PLACES = {"Factory", "localtime", "posixrules"}
_NO_LABELS: Mapping[str, str] = {}


class InvalidPlan(ValueError):
    """A plan or slot that cannot be. The message is one sentence for the person who wrote it."""


@cache
def time_zones() -> frozenset[str]:
    """The names a plan's time zone may have, aliases such as US/Eastern among them."""
    return frozenset(available_timezones() - _NOT_PLACES)


@dataclass(frozen=True)
class Slot:
    """A weekday (0 is Monday), a local time and the name of an outlet.

    A slot is on when its time is a string. The time is kept as "HH:MM": "9:05" becomes "09:05",
    and an empty one becomes None. Raises InvalidPlan for anything else.
    """

    weekday: int
    time: str | None
    outlet: str

    def __post_init__(self) -> None:
        # bool is an int to Python, but true is no weekday in a stored plan.
        if type(self.weekday) is not int or not 0 <= self.weekday <= 6:
            raise InvalidPlan(
                f"{_quoted(self.weekday)} is not a weekday: use 0 for Monday to 6 for Sunday."
            )
        if not isinstance(self.outlet, str) or not self.outlet:
            raise InvalidPlan(f"{_quoted(self.outlet)} is not the name of an outlet.")
        object.__setattr__(self, "time", _normal_time(self.time))


# A slot's coming run: its instant in UTC, the wall-clock time that was asked for, its slots.
_Run = tuple[datetime, datetime, tuple[Slot, ...]]


@dataclass(frozen=True)
class WeeklyPlan:
    """A time zone and the slots of the week. A plan that exists is valid.

    Raises InvalidPlan for an unknown time zone and for more than MAX_SLOTS slots.
    """

    timezone: str
    slots: tuple[Slot, ...]

    def __post_init__(self) -> None:
        # ZoneInfo's keys are paths, so nothing is opened before the name was found in the list.
        if not isinstance(self.timezone, str) or self.timezone not in time_zones():
            raise InvalidPlan(
                f"{_quoted(self.timezone)} is not a time zone:"
                " choose one from the list, such as Europe/Berlin."
            )
        object.__setattr__(self, "slots", tuple(self.slots))
        if len(self.slots) > MAX_SLOTS:
            raise InvalidPlan(
                f"A plan has at most {MAX_SLOTS} slots, and this one has {len(self.slots)}."
            )

    @property
    def is_on(self) -> bool:
        """Whether any slot has a time."""
        return any(slot.time is not None for slot in self.slots)

    def next_slot_at(self, after: datetime) -> datetime | None:
        """The first slot strictly after an instant, in UTC; None when no slot is on.

        None also where the calendar ends. Raises ValueError when `after` has no time zone.
        """
        return min((run[0] for run in self._coming(_utc(after))), default=None)

    def slots_between(
        self, start: datetime, end: datetime
    ) -> Iterator[tuple[datetime, tuple[Slot, ...]]]:
        """Each instant with start < instant <= end, in order, with the slots that are on then.

        The start is left out and the end is in, so that one interval continues the one before it
        as next_slot_at does. Each outlet appears once at an instant. Raises ValueError, at the
        call, when either end has no time zone.
        """
        last = _utc(end)
        return takewhile(lambda item: item[0] <= last, self._occurrences(_utc(start)))

    def to_json(self) -> str:
        """The plan as compact JSON: equal plans give equal text."""
        rows = [[slot.weekday, slot.time, slot.outlet] for slot in self.slots]
        return json.dumps({"timezone": self.timezone, "slots": rows}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "WeeklyPlan":
        """The plan that to_json wrote. Raises InvalidPlan for everything else."""
        try:
            stored = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidPlan("The stored plan is not JSON: save the plan again.") from error
        match stored:
            case {"timezone": timezone, "slots": [*rows]} if all(
                isinstance(row, list) and len(row) == 3 for row in rows
            ):
                return cls(timezone, tuple(Slot(*row) for row in rows))
        raise InvalidPlan("The stored plan has no time zone and list of slots: save it again.")

    @cached_property
    def zone(self) -> ZoneInfo:
        """The plan's time zone, to show instants in."""
        return ZoneInfo(self.timezone)

    @cached_property
    def _times(self) -> tuple[tuple[int, time_of_day, tuple[Slot, ...]], ...]:
        """Weekday, time and slots for each time of the week at which a slot is on."""
        groups: dict[tuple[int, str], list[Slot]] = {}
        for slot in self.slots:
            if slot.time is not None:
                groups.setdefault((slot.weekday, slot.time), []).append(slot)
        return tuple(
            (weekday, time_of_day.fromisoformat(text).replace(tzinfo=self.zone), tuple(slots))
            for (weekday, text), slots in groups.items()
        )

    def _coming(self, after: datetime) -> Iterator[_Run]:
        """The first run of each time of the week strictly after an instant in UTC.

        No zone is a whole day from UTC. So a local date before yesterday (by UTC) is over, one
        after tomorrow is still to come, and of two dates a week apart, the first from yesterday
        on, one is the answer. Local dates are counted, never hours: a day may have 23 of them.
        """
        yesterday = after.toordinal() - 1
        for weekday, time, slots in self._times:
            day = yesterday + (weekday + 1 - yesterday) % 7  # day 1 of the calendar is a Monday
            for candidate in (day, day + 7):
                try:
                    wall = datetime.combine(date.fromordinal(candidate), time)
                    at = wall.astimezone(UTC)
                except (ValueError, OverflowError):
                    continue  # before the calendar's first day or after its last
                if at > after:
                    yield at, wall, slots
                    break

    def _occurrences(self, after: datetime) -> Iterator[tuple[datetime, tuple[Slot, ...]]]:
        """Every instant strictly after one in UTC, with its slots, each outlet once."""
        while runs := sorted(self._coming(after)):
            # In the order of the wall clock, so that of a slot moved by a gap and a slot that
            # stands there anyway the moved one is kept: it is the one with something to say.
            after, together = next(groupby(runs, key=itemgetter(0)))
            outlets: dict[str, Slot] = {}
            for slot in (slot for run in together for slot in run[2]):
                outlets.setdefault(slot.outlet, slot)
            yield after, tuple(outlets.values())


@dataclass(frozen=True)
class Occurrence:
    """One date of a plan: the instant in UTC, the same in the plan's zone, and its slots.

    The note is one sentence where a clock change touches this date, else "".
    """

    at: datetime
    local: datetime
    slots: tuple[Slot, ...]
    note: str


@dataclass(frozen=True)
class Move:
    """What a change of plan does to one run: `old` and `new` are local, in their plan's zone.

    Without `old` the run is new, without `new` it is dropped.
    """

    outlet: str
    old: datetime | None
    new: datetime | None

    def describe(self, labels: Mapping[str, str] = _NO_LABELS) -> str:
        """The move as a line for the person, with the outlet's label if there is one."""
        outlet = labels.get(self.outlet, self.outlet)
        apart = self.old and self.new and self.old.tzinfo is not self.new.tzinfo
        old, new = (
            at and _moment(at) + (f" ({at.tzinfo})" if apart else "") for at in (self.old, self.new)
        )
        if old is None:
            return f"{new} on {outlet} is new"
        if new is None:
            return f"{old} on {outlet} is dropped"
        return f"{old} on {outlet} moves to {new}"


def describe(plan: WeeklyPlan, labels: Mapping[str, str] = _NO_LABELS) -> str:
    """The plan said back as one sentence, in the order of its slots.

    `labels` maps the outlets' names to what people call them.
    """
    # Days with the same time, then times with the same days, then outlets with the same both.
    days: dict[tuple[str, str], set[int]] = {}
    for slot in plan.slots:
        if slot.time is not None:
            days.setdefault((slot.outlet, slot.time), set()).add(slot.weekday)
    times: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (outlet, time), weekdays in days.items():
        times.setdefault((outlet, tuple(sorted(weekdays))), []).append(time)
    outlets: dict[tuple[tuple[int, ...], tuple[str, ...]], list[str]] = {}
    for (outlet, weekdays_), times_ in times.items():
        outlets.setdefault((weekdays_, tuple(sorted(times_))), []).append(outlet)
    if not outlets:
        return "Nothing is scheduled."
    clauses = [
        f"{_days(on)} at {_listed([_short(time) for time in at])}"
        f" on {_listed([labels.get(outlet, outlet) for outlet in where])}"
        for (on, at), where in outlets.items()
    ]
    told = ("; " if any("," in clause for clause in clauses) else ", ").join(clauses)
    return f"{told[0].upper()}{told[1:]} ({plan.timezone.replace('_', ' ')} time)."


def upcoming(plan: WeeklyPlan, after: datetime, count: int = 5) -> list[Occurrence]:
    """The next dates of a plan strictly after an instant, with a note at each clock change.

    Raises ValueError when `after` has no time zone.
    """
    previous = _utc(after)
    occurrences = []
    for at, slots in islice(plan._occurrences(previous), count):
        local = at.astimezone(plan.zone)
        note = _note(local, slots) or _offset_note(plan.zone, previous, at)
        occurrences.append(Occurrence(at, local, slots, note))
        previous = at
    return occurrences


def moved(old: WeeklyPlan, new: WeeklyPlan, after: datetime) -> list[Move]:
    """What happens to the next run of each slot when one plan takes the place of another.

    Runs that both plans have are left out. Of the others, an outlet's old and new runs of one
    weekday are paired in the order of their times. Sorted by the earlier date of each move.
    Raises ValueError when `after` has no time zone.
    """
    before, later = _next_runs(old, after), _next_runs(new, after)
    both = before.keys() & later.keys()
    pairs: dict[tuple[str, int], tuple[list[datetime], list[datetime]]] = {}
    for side, (plan, runs) in enumerate(((old, before), (new, later))):
        for outlet, at in sorted(runs.keys() - both):
            columns = pairs.setdefault((outlet, runs[outlet, at]), ([], []))
            columns[side].append(at.astimezone(plan.zone))
    moves = [
        Move(outlet, *row)
        for (outlet, _), columns in pairs.items()
        for row in zip_longest(*columns)
    ]
    return sorted(moves, key=lambda move: (min(filter(None, (move.old, move.new))), move.outlet))


def _next_runs(plan: WeeklyPlan, after: datetime) -> dict[tuple[str, datetime], int]:
    """The weekday of each outlet's coming runs, by outlet and instant."""
    return {
        (slot.outlet, at): slot.weekday
        for at, _, slots in plan._coming(_utc(after))
        for slot in slots
    }


def _note(local: datetime, slots: tuple[Slot, ...]) -> str:
    """What a clock change on that very date does to a run, or ""."""
    for slot in slots:
        same_day = slot.weekday == local.weekday()
        if slot.time is None or (same_day and slot.time == f"{local:%H:%M}"):
            continue
        asked, given = _short(slot.time), _clock(local)
        if same_day:
            return f"{asked} does not exist that day, so this goes out at {given}."
        return (
            f"{WEEKDAYS[slot.weekday]} {asked} does not exist that week,"
            f" so this goes out on {WEEKDAYS[local.weekday()]} at {given}."
        )
    if local.replace(fold=1).utcoffset() != local.utcoffset():
        return f"{_clock(local)} comes twice that day: this goes out the first time."
    return ""


def _offset_note(zone: ZoneInfo, start: datetime, end: datetime) -> str:
    """Where the clocks change between two runs: the date, and that the local time stays."""
    start = max(start, datetime(1, 1, 2, tzinfo=UTC))  # the day before has no local time out west
    before = start.astimezone(zone).utcoffset()
    local = end.astimezone(zone)
    if local.utcoffset() == before:
        return ""
    while end - start > timedelta(minutes=1):
        middle = start + (end - start) / 2
        if middle.astimezone(zone).utcoffset() == before:
            start = middle
        else:
            end = middle
    day = end.astimezone(zone)
    return (
        f"The clocks change on {day.day} {_MONTHS[day.month - 1]}:"
        f" still {_clock(local)} local time."
    )


def _normal_time(time: str | None) -> str | None:
    """ "HH:MM", or None for a slot that is off."""
    if time is None or time == "":
        return None
    found = _TIME.fullmatch(time) if isinstance(time, str) else None
    if found is None:
        raise InvalidPlan(
            f"{_quoted(time)} is not a time of day: write it as HH:MM, such as 09:30,"
            " or leave it empty."
        )
    return f"{int(found[1]):02}:{found[2]}"


def _utc(instant: datetime) -> datetime:
    """The same instant in UTC."""
    if instant.utcoffset() is None:
        raise ValueError(
            f"{instant.isoformat()} has no time zone: pass an aware datetime, such as one in UTC."
        )
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{instant.isoformat()} is outside the calendar in UTC.") from error


def _quoted(value: object) -> str:
    """What was given, cut short: it may be anything, of any length and depth."""
    return reprlib.repr(value)


def _short(time: str) -> str:
    """ "09:00" as people say it: "9:00"."""
    return time[1:] if time.startswith("0") else time


def _clock(local: datetime) -> str:
    return _short(f"{local:%H:%M}")


def _moment(local: datetime) -> str:
    """A date and time in a few words: "Thu 3 Dec 9:00"."""
    weekday, month = WEEKDAYS[local.weekday()][:3], _MONTHS[local.month - 1][:3]
    return f"{weekday} {local.day} {month} {_clock(local)}"


def _days(weekdays: tuple[int, ...]) -> str:
    if weekdays == tuple(range(7)):
        return "every day"
    if weekdays == tuple(range(5)):
        return "every weekday"
    return _listed([WEEKDAYS[weekday] for weekday in weekdays])


def _listed(words: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
