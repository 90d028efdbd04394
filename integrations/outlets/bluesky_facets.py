"""Links, tags and mentions in a text for Bluesky, where nothing links by itself.

https://docs.bsky.app/docs/advanced-guides/post-richtext
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import regex

from integrations.outlets.base import Piece, marked
from integrations.outlets.entities import LINK_TAIL

_TLDS = frozenset(
    name
    for line in Path(__file__).with_name("tlds.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
    for name in line.split()
)
_WORD = r"[\p{L}\p{M}\p{N}]++"
_LABEL = r"[a-z0-9]++(?:-++[a-z0-9]++)*+"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})++"
_MARKED = regex.compile(
    rf"(?<![\w@#/.:-])(?:https?://(?P<host>{_WORD}(?:[-_.]++{_WORD})++)|(?P<bare>{_DOMAIN})(?![\w@-]))"
    rf"{LINK_TAIL}"
    r"|(?<![\w&/#])[#＃](?P<tag>(?=[\p{N}_]*+\p{L})[\p{L}\p{M}\p{N}_]{1,64}+(?![\p{L}\p{M}\p{N}_]))"  # noqa: RUF001
    rf"|(?<![\w@/.])@(?P<handle>{_DOMAIN})(?![\w@-])",
    regex.I,
)
LONGEST_HANDLE = 253


def pieces(text: str) -> list[Piece]:
    """The text with what will link. A domain links without `https://` where its end is one of
    the Internet's."""
    return marked(text, _MARKED, _piece)


def _piece(mark: "regex.Match[str]") -> Piece | None:
    if mark["handle"]:
        return Piece(mark[0], "mention") if len(mark["handle"]) <= LONGEST_HANDLE else None
    if mark["tag"]:
        return Piece(mark[0], "tag")
    if mark["host"]:
        return Piece(mark[0], "link", mark[0])
    known = mark["bare"].rpartition(".")[2].lower() in _TLDS
    return Piece(mark[0], "link", f"https://{mark[0]}") if known else None


def first_link(text: str) -> str:
    """Where the first link leads, or ""."""
    return next((piece.url for piece in pieces(text) if piece.kind == "link"), "")


def handles(text: str) -> list[str]:
    """Whom the text mentions, each once, in lower case."""
    mentions = [piece.text[1:].lower() for piece in pieces(text) if piece.kind == "mention"]
    return list(dict.fromkeys(mentions))


def facets(text: str, dids: Mapping[str, str]) -> list[dict[str, Any]]:
    """What links where, by bytes of UTF-8. `dids` has the accounts of the handles that are known;
    others stay plain text."""
    found, start = [], 0
    for piece in pieces(text):
        end = start + len(piece.text.encode())
        if feature := _feature(piece, dids):
            found.append({"index": {"byteStart": start, "byteEnd": end}, "features": [feature]})
        start = end
    return found


def _feature(piece: Piece, dids: Mapping[str, str]) -> dict[str, str] | None:
    kind = f"app.bsky.richtext.facet#{piece.kind}"
    if piece.kind == "link":
        return {"$type": kind, "uri": piece.url}
    if piece.kind == "tag":
        return {"$type": kind, "tag": piece.text[1:]}
    if piece.kind == "mention" and (did := dids.get(piece.text[1:].lower())):
        return {"$type": kind, "did": did}
    return None
