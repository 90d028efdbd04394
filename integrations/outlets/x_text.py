"""What X makes of a text: links, tags and mentions in it."""

import unicodedata

import regex

from integrations.outlets.base import Piece, marked
from integrations.outlets.x_length import links
from integrations.sources.base import UNPRINTABLE

# https://github.com/twitter/twitter-text: a tag has a letter, a cashtag stands between spaces.
_MARKED = regex.compile(
    r"(?<![\w&/])(?P<tag>[#＃](?=[\p{N}_]*+[\p{L}\p{M}])[\p{L}\p{M}\p{N}_]++)"  # noqa: RUF001
    r"|(?<![\w!#$%&*@＠])(?P<mention>[@＠][A-Za-z0-9_]{1,20}+(?![@＠\w]))"  # noqa: RUF001
)
_CASHTAG = regex.compile(r"(?<!\S)\$[a-z]{1,6}(?:[._][a-z]{1,2})?(?=$|\s|\p{P})", regex.I)


def objection(text: str) -> str:
    """https://docs.x.com/developer-guidelines"""
    found = len(_CASHTAG.findall(text))
    return f"X takes one cashtag such as $ACME in a post: this has {found}." if found > 1 else ""


def pieces(text: str) -> list[Piece]:
    found, done = [], 0
    for start, end in links(text):
        found += _marked(text[done:start])
        link = text[start:end]
        found.append(Piece(link, "link", link if "://" in link else f"https://{link}"))
        done = end
    return found + _marked(text[done:])


def _marked(text: str) -> list[Piece]:
    """A stretch without links, in plain text, tags and mentions."""
    return marked(text, _MARKED, lambda m: Piece(m[0], "tag" if m["tag"] else "mention"))


def as_read(text: str, *, with_links: bool) -> str:
    """What two writings of the same text have in common."""
    shown = ""
    for piece in pieces(unicodedata.normalize("NFC", UNPRINTABLE.sub("", text))):
        if piece.kind != "link":
            shown += piece.text
        elif with_links:
            shown += piece.url.partition("://")[2].rstrip("/").lower()
    return " ".join(shown.split())
