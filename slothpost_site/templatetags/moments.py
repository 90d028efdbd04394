"""Times in templates: each in a named zone, machine-readable beside the words."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from slothpost_site.moments import from_ms

register = template.Library()


@register.simple_tag
def moment(ms: float | datetime, zone: str | None = None) -> SafeString:
    """`Tue 1 Dec, 9:00` as a <time>; the page names the zone beside it."""
    return _time(ms, zone, "{at:%a} {at.day} {at:%b}, {at.hour}:{at:%M}")


@register.simple_tag
def full_moment(ms: float | datetime, zone: str | None = None) -> SafeString:
    """`Tue 1 Dec 2026, 9:00 (Europe/Berlin)` as a <time>."""
    return _time(ms, zone, "{at:%a} {at.day} {at:%b} {at.year}, {at.hour}:{at:%M} ({zone})")


@register.simple_tag
def clock(ms: float | datetime, zone: str | None = None) -> SafeString:
    """`9:02` as a <time>."""
    return _time(ms, zone, "{at.hour}:{at:%M}")


@register.simple_tag
def stamp(ms: float | datetime, zone: str | None = None, kind: str = "") -> SafeString:
    """The day as a postage stamp; it repeats what stands beside it, so it is not read out."""
    at = _local(ms, zone)
    return format_html(
        '<span class="stamp {}" aria-hidden="true">{}<b>{}</b>{}</span>',
        kind,
        f"{at:%a}",
        at.day,
        f"{at:%b}",
    )


@register.simple_tag
def distance(ms: float, now: datetime) -> str:
    """`in 11 hours`, `3 days ago`, `now`."""
    seconds = int((from_ms(ms) - now).total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = round(abs(seconds) / size)
        if count:
            words = f"{count} {unit}{'s' if count > 1 else ''}"
            return f"in {words}" if seconds > 0 else f"{words} ago"
    return "now"


@register.filter
def date_in(ms: float, zone: str) -> date:
    """The day that a moment falls on in a zone."""
    return _local(ms, zone).date()


def _local(ms: float | datetime, zone: str | None) -> datetime:
    at = ms if isinstance(ms, datetime) else from_ms(ms)
    return at.astimezone(ZoneInfo(zone or "UTC"))


def _time(ms: float | datetime, zone: str | None, words: str) -> SafeString:
    at = _local(ms, zone)
    said = words.format(at=at, zone=zone or "UTC")
    return format_html('<time datetime="{}">{}</time>', at.isoformat(timespec="minutes"), said)
