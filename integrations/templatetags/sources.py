"""What people call the sources."""

from django import template

from integrations.sources import SOURCES

register = template.Library()


@register.filter
def source_label(name: str) -> str:
    """`GitHub` for `github`; the name itself where no such source is known any more."""
    return SOURCES[name].LABEL if name in SOURCES else name
