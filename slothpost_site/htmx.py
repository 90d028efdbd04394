"""The type of a request behind django-htmx's middleware."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxRequest(HttpRequest):
    """`request.htmx` is true for what htmx asks: it wants a part of the page."""

    htmx: HtmxDetails
