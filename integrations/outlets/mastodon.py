"""Mastodon: 500 graphemes (the default of an instance), with a discount for links and mentions.

https://docs.joinmastodon.org/user/posting/#text
"""

import regex

from integrations.outlets.base import Outlet
from integrations.outlets.entities import HOST_CHARACTER, LINK_TAIL, grapheme_count

LINK = "x" * 23
_COUNTED_SPECIALLY = regex.compile(
    rf"(?<![a-z0-9@$#])https?://(?:{HOST_CHARACTER}|[-_])(?:(?:{HOST_CHARACTER}|[-_.])*"
    rf"(?:{HOST_CHARACTER}|[-_]))?{LINK_TAIL}"
    r"|(?<![=/\w])(?P<user>@[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?)@\w(?:[\w.-]*\w)?",
    regex.I,
)


def count(text: str) -> int:
    """Graphemes; an http(s) link counts 23, a mention `@user@host` only its `@user`."""
    return grapheme_count(_COUNTED_SPECIALLY.sub(lambda found: found["user"] or LINK, text))


OUTLET = Outlet(name="mastodon", label="Mastodon", unit="characters", limit=500, count=count)
