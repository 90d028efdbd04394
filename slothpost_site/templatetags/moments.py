"""Times in templates: each in a named zone, machine-readable beside the words."""

from datetime import datetime
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
def day(ms: float | datetime, zone: str | None = None) -> SafeString:
    """`1 December 2026` as a <time>."""
    return _time(ms, zone, "{at.day} {at:%B} {at.year}")


@register.filter
def local(ms: float | datetime, zone: str | None) -> datetime:
    """The moment in a zone, for what the tags above do not say."""
    at = ms if isinstance(ms, datetime) else from_ms(ms)
    return at.astimezone(ZoneInfo(zone or "UTC"))


def _time(ms: float | datetime, zone: str | None, words: str) -> SafeString:
    at = local(ms, zone)
    said = words.format(at=at, zone=zone or "UTC")
    return format_html('<time datetime="{}">{}</time>', at.isoformat(timespec="minutes"), said)
