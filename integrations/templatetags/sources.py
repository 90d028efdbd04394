"""What people call the services that they have accounts at."""

from django import template

from integrations.providers import PROVIDERS

register = template.Library()


@register.filter
def source_label(name: str) -> str:
    """`GitHub` for `github`; the name itself where no such service is known any more."""
    return PROVIDERS[name].LABEL if name in PROVIDERS else name
