"""What django-q2 calls, and the one row that makes it do so."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django_q.models import Schedule

from scheduling.tick import run_tick

NAME = "tick"


def tick() -> None:
    """The minute's task. Takes nothing and trusts nothing but the time and the store."""
    run_tick(timezone.now())


def install(**_: Any) -> None:
    """Have exactly one schedule row: a tick a minute, on the minute."""
    wanted = {
        "func": "scheduling.tasks.tick",
        "schedule_type": Schedule.MINUTES,
        "minutes": 1,
        "repeats": -1,
        "args": None,
        "kwargs": None,
        "cluster": None,
    }
    rows = Schedule.objects.filter(name=NAME).order_by("pk")
    first = rows.first()
    if first is None:
        next_minute = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
        Schedule.objects.create(name=NAME, next_run=next_minute, **wanted)
        return
    rows.exclude(pk=first.pk).delete()
    rows.filter(pk=first.pk).update(**wanted)
