"""LinkedIn's "little text": tags and links in a post, and what has to be escaped around them.

https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/little-text-format
"""

import regex

from integrations.outlets.base import Piece, marked

_RESERVED = regex.compile(r"[\\|{}@\[\]()<>#*_~]")
_MARKED = regex.compile(
    r"(?P<link>https?://[^\s<>\"]*[^\s<>\".,;:!?'”’)\]])"  # noqa: RUF001 -- a quotation mark
    r"|(?<![\w&/])#(?=\p{N}*+\p{L})[\p{L}\p{M}\p{N}]++",
    regex.I,
)


def pieces(text: str) -> list[Piece]:
    return marked(
        text, _MARKED, lambda m: Piece(m[0], "link", m[0]) if m["link"] else Piece(m[0], "tag")
    )


def commentary(text: str) -> str:
    """The text as the API wants it. What means something there is escaped, also in links: an open
    bracket would cut the text off. Tags are templates: escaped they would not link."""
    return "".join(
        f"{{hashtag|\\#|{piece.text[1:]}}}" if piece.kind == "tag" else _escaped(piece.text)
        for piece in pieces(text)
    )


def _escaped(text: str) -> str:
    return _RESERVED.sub(r"\\\g<0>", text)
