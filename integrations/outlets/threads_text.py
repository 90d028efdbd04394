"""What Threads makes of a text: how long it is, and the links, topics and mentions in it.

https://developers.facebook.com/docs/threads/posts
"""

import regex

from integrations.outlets.base import Piece, marked
from integrations.outlets.entities import EMOJI, HOST_CHARACTER, LINK_TAIL

MOST_LINKS = 5  # different ones
_MARKED = regex.compile(
    rf"(?P<link>(?<![\w@#])https?://(?:{HOST_CHARACTER}|[-_.])+{LINK_TAIL})"
    r"|(?<![\w&/#])(?P<tag>#(?=[\p{N}_]*+[\p{L}\p{M}])[\p{L}\p{M}\p{N}_]++)"
    r"|(?<![\w@./])(?P<mention>@[a-z0-9_](?:[a-z0-9_.]*[a-z0-9_])?)",
    regex.I,
)


def count(text: str) -> int:
    """Code points; an emoji sequence counts its UTF-8 bytes. Links count as they are written."""
    emoji = EMOJI.findall(text)
    return len(text) + sum(len(one.encode()) - len(one) for one in emoji)


def objection(text: str) -> str:
    """https://developers.facebook.com/docs/threads/changelog (22 December 2025)"""
    found = len({piece.url for piece in pieces(text) if piece.kind == "link"})
    if found <= MOST_LINKS:
        return ""
    return f"Threads takes {MOST_LINKS} different links in a post: this has {found}."


def pieces(text: str) -> list[Piece]:
    """Only the first tag is a topic: a post on Threads has one."""
    topic = next((mark.start() for mark in _MARKED.finditer(text) if mark["tag"]), None)

    def piece(mark: "regex.Match[str]") -> Piece | None:
        if mark["link"]:
            return Piece(mark[0], "link", mark[0])
        if mark["mention"]:
            return Piece(mark[0], "mention")
        return Piece(mark[0], "tag") if mark.start() == topic else None

    return marked(text, _MARKED, piece)
