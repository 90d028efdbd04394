"""The card of a post's link: whoever posts looks at the page, Bluesky does not.

https://docs.bsky.app/docs/advanced-guides/posts#website-card-embeds
"""

import logging
from dataclasses import replace
from datetime import datetime
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import regex

from integrations.addresses import api_at, host_of
from integrations.errors import Failure, Refused
from integrations.sources.base import UNPRINTABLE, trimmed

logger = logging.getLogger(__name__)

PATIENCE = 2.0  # seconds: a post is not late for its card
LARGEST_HEAD = 200_000  # bytes of the page that are looked at
LONGEST = 300  # characters

_VALUE = r"(?:\"[^\"]{0,4000}+\"|'[^']{0,4000}+'|[^\s\"'<>=`]{1,4000}+)"
_META = regex.compile(rf"<meta(?:\s++[\w:.-]++(?:\s*+=\s*+{_VALUE})?+)++", regex.I)
_ATTRIBUTE = regex.compile(rf"\s([\w:.-]++)\s*+=\s*+({_VALUE})", regex.I)
_TITLE = regex.compile(r"<title[^<>]{0,1000}+>([^<]{0,4000}+)", regex.I)
_TITLES, _DESCRIPTIONS = ("og:title", "twitter:title"), ("og:description", "description")


def card(url: str, now: datetime, *, looks: bool = True) -> dict[str, Any]:
    """The embed for a link; of a page that does not answer at once, or is none, its host."""
    title, description = _read(url, now) if looks else ("", "")
    host = urlsplit(url).netloc
    external = {"uri": url, "title": title or host, "description": description}
    return {"$type": "app.bsky.embed.external", "external": external}


def _read(url: str, now: datetime) -> tuple[str, str]:
    try:
        page = _page(url, now)
    except Failure as failure:
        logger.info("no card", extra={"reason": failure.reason})
        return "", ""
    metas = [_attributes(found[0]) for found in _META.finditer(page)]
    named = {
        (meta.get("property") or meta.get("name", "")).lower(): meta.get("content", "")
        for meta in reversed(metas)
    }
    titles = [named.get(name, "") for name in _TITLES]
    if title := _TITLE.search(page):
        titles.append(_line(title[1]))
    descriptions = [named.get(name, "") for name in _DESCRIPTIONS]
    return next(filter(None, titles), ""), next(filter(None, descriptions), "")


def _page(url: str, now: datetime) -> str:
    """The beginning of the page. Raises a Failure."""
    parts = urlsplit(url)
    if parts.scheme.lower() != "https" or ":" in parts.netloc:
        raise Refused("Only https pages on the usual port are looked at.")
    host = host_of(parts.netloc)
    api = replace(api_at(host, host, {"Accept": "text/html"}), patience=PATIENCE)
    query = f"?{parts.query}" if parts.query else ""
    answer = api.ask("GET", f"{api.base}{parts.path}{query}", now=now, raw=True)
    return bytes(answer.body)[:LARGEST_HEAD].decode("utf-8", "replace")


def _attributes(tag: str) -> dict[str, str]:
    return {name.lower(): _line(_unquoted(value)) for name, value in _ATTRIBUTE.findall(tag)}


def _unquoted(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _line(text: str) -> str:
    return trimmed(" ".join(UNPRINTABLE.sub("", unescape(text)).split()), LONGEST)
