"""The plan as people fill it in: for each outlet seven days, each with any number of times."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.http import QueryDict

from integrations.outlets import OUTLETS
from integrations.outlets.base import Outlet
from products.tables import Product
from scheduling.plans import plan_of
from scheduling.weekly import WEEKDAYS, InvalidPlan, Slot, WeeklyPlan, time_zones

LEAD_CHOICES = [
    (0, "at the slot itself"),
    (60, "1 hour before"),
    (180, "3 hours before"),
    (720, "12 hours before"),
    (1440, "a day before"),
    (2880, "2 days before"),
]


def _zones() -> list[tuple[str, str]]:
    return [("", "Choose one"), *((name, name) for name in sorted(time_zones()))]


@dataclass(frozen=True)
class Day:
    """The time fields of one outlet and weekday."""

    outlet: str
    weekday: int
    times: list[str]

    @property
    def name(self) -> str:
        return f"{self.outlet}-{self.weekday}"

    @property
    def label(self) -> str:
        return WEEKDAYS[self.weekday]


@dataclass(frozen=True)
class Week:
    """The seven days of one outlet."""

    outlet: Outlet
    days: list[Day]

    @property
    def count(self) -> int:
        """How many times a week."""
        return sum(len(day.times) for day in self.days)

    @property
    def by_hand(self) -> bool:
        """Whether its posts are posted by their owner."""
        return self.outlet.publish is None


class PlanForm(forms.Form):
    """A time zone, a lead time, and the slots. `times` are read from fields named outlet-weekday,
    each as often as there are times that day; an empty one is off."""

    timezone = forms.ChoiceField(
        choices=_zones,
        label="Time zone",
        help_text="Every time below is meant in this zone, summer and winter.",
        error_messages={"required": "Choose the time zone that your times are meant in."},
    )
    lead_minutes = forms.TypedChoiceField(
        label="Show me the draft",
        help_text="The time before each slot that you have to read it.",
        choices=LEAD_CHOICES,
        coerce=int,
        initial=720,
    )
    version = forms.IntegerField(max_value=2**53, widget=forms.HiddenInput)
    previewed = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, product: Product, data: QueryDict | None = None) -> None:
        self._posted = data
        zone, self._stored = _as_stored(product)
        super().__init__(
            data,
            initial={
                "timezone": zone,
                "lead_minutes": int(product.lead_minutes),
                "version": int(product.plan_version),
            },
        )
        # A new plan begins with the browser's zone; beside a chosen one the difference is shown.
        preset = not zone and not self.is_bound
        self.fields["timezone"].widget.attrs["data-browser-zone"] = "preset" if preset else "chosen"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "timezone" in cleaned:
            try:
                cleaned["plan"] = WeeklyPlan(cleaned["timezone"], tuple(self._slots()))
            except InvalidPlan as error:
                raise forms.ValidationError(str(error)) from error
        return cleaned

    def _slots(self) -> list[Slot]:
        return [
            Slot(day.weekday, text, day.outlet)
            for week in self.weeks()
            for day in week.days
            for text in sorted(set(day.times))
        ]

    def weeks(self) -> list[Week]:
        """Each outlet with its seven days, as they were posted or are stored."""
        return [
            Week(outlet, [self._day(name, weekday) for weekday in range(7)])
            for name, outlet in OUTLETS.items()
        ]

    def _day(self, outlet: str, weekday: int) -> Day:
        if self._posted is not None:
            times = self._posted.getlist(f"{outlet}-{weekday}")[:24]
        else:
            times = [
                s.time or "" for s in self._stored if (s.outlet, s.weekday) == (outlet, weekday)
            ]
        return Day(outlet, weekday, [text for text in times if text])


def _as_stored(product: Product) -> tuple[str, tuple[Slot, ...]]:
    """The zone and slots of a stored plan; nothing where there is none that can be read."""
    if product.plan is None:
        return "", ()
    try:
        plan = plan_of(product)
    except InvalidPlan:
        return "", ()
    return plan.timezone, plan.slots


class PauseForm(forms.Form):
    """Until when to pause; without a date, until it is resumed."""

    until = forms.DateField(
        required=False, label="Until", widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, plan: WeeklyPlan, now: datetime, data: Any = None) -> None:
        super().__init__(data)
        self._zone = ZoneInfo(plan.timezone)
        self._today = now.astimezone(self._zone).date()

    def clean_until(self) -> datetime | None:
        """The first moment of that day in the plan's zone."""
        day: date | None = self.cleaned_data["until"]
        if day is None:
            return None
        if not self._today < day <= self._today + timedelta(days=366):
            raise forms.ValidationError("Choose a day from tomorrow on, within a year.")
        return datetime.combine(day, time(), self._zone)
