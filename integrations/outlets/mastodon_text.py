"""What Mastodon makes of a text: how long it is, and the links, tags and mentions in it.

https://docs.joinmastodon.org/user/posting/#text
"""

import html
import unicodedata

import regex

from integrations.outlets.base import Piece, marked
from integrations.outlets.entities import HOST_CHARACTER, LINK_TAIL, grapheme_count

LINK_LENGTH = 23  # `characters_reserved_per_url`, which no instance has any other way
_LINK = (
    rf"(?<![a-z0-9@$#])https?://(?:{HOST_CHARACTER}|[-_])(?:(?:{HOST_CHARACTER}|[-_.])*"
    rf"(?:{HOST_CHARACTER}|[-_]))?{LINK_TAIL}"
)
_USER = r"(?<![=/\w])(?P<user>@[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?)@\w(?:[\w.-]*\w)?"
_COUNTED_SPECIALLY = regex.compile(f"{_LINK}|{_USER}", regex.I)
_MARKED = regex.compile(
    rf"(?P<link>{_LINK})|{_USER}"
    r"|(?<![\w/])(?P<tag>#(?=[\p{N}_·]*+[\p{L}\p{M}])[\p{L}\p{M}\p{N}_·]++)",
    regex.I,
)
_BREAK = regex.compile(r"<br ?/?>|</p>", regex.I)
_MARKUP = regex.compile(r"<[^>]*>")


def count(text: str) -> int:
    """Graphemes; an http(s) link counts 23, a mention `@user@host` only its `@user`."""
    link = "x" * LINK_LENGTH
    return grapheme_count(_COUNTED_SPECIALLY.sub(lambda found: found["user"] or link, text))


def pieces(text: str) -> list[Piece]:
    return marked(text, _MARKED, _piece)


def _piece(mark: "regex.Match[str]") -> Piece:
    if mark["link"]:
        return Piece(mark[0], "link", mark[0])
    return Piece(mark[0], "tag" if mark["tag"] else "mention")


def plain(content: str) -> str:
    """The text of a status that is shown as HTML; where its lines broke is kept, how is not."""
    return html.unescape(_MARKUP.sub("", _BREAK.sub("\n", content)))


def as_read(text: str) -> str:
    """A text as far as an instance keeps it: without white space, which it may move, in one form
    of its letters, and with each mention as its page shows it."""
    composed = unicodedata.normalize("NFC", text)
    shown = _COUNTED_SPECIALLY.sub(lambda found: found["user"] or found[0], composed)
    return "".join(shown.split())
