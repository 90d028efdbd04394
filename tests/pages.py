"""Pages as a browser without scripts has them: what stands in the fields is what is sent."""

from html.parser import HTMLParser

from django.http import HttpResponse
from django.test import Client
from requests import Response

HTMX = {"HX-Request": "true"}


class _Fields(HTMLParser):
    """Every named field of a page with its value; a field that repeats has several."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self._area: str | None = None
        self._select: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        name = found.get("name")
        if tag == "input" and name:
            self._add(name, found.get("value") or "")
        elif tag == "textarea":
            self._area = name
            self._add(name or "", "")
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in found and self._select:
            self._add(self._select, found.get("value") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area][-1] += data

    def _add(self, name: str, value: str) -> None:
        self.values.setdefault(name, []).append(value)


def fields(answer: HttpResponse | Response) -> dict[str, list[str]]:
    """What a browser would send of a page's fields. The line end after <textarea> is not text."""
    parser = _Fields()
    parser.feed(answer.content.decode())
    return {
        name: [value.removeprefix("\n") for value in values]
        for name, values in parser.values.items()
    }


def send(client: Client, path: str, page: HttpResponse, **typed: str | list[str]) -> HttpResponse:
    """Post the page's fields with what was typed over them; "x__text" stands for x-text."""
    changed = {name.replace("__", "-"): value for name, value in typed.items()}
    return client.post(path, fields(page) | changed)


def words(answer: HttpResponse) -> str:
    """The page's source with its white space evened out."""
    return " ".join(answer.content.decode().split())
