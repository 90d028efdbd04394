"""How X weighs a text, and what it takes for a link, as twitter-text 3 does (configuration v3).

Written out here because the Python port of twitter-text takes minutes on hostile text, raises on
lone surrogates and knows emoji up to 2019. The tests hold the two equal.
"""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import regex

from integrations.outlets.entities import (
    EMOJI,
    HOST_CHARACTER,
    LATIN_HOST_CHARACTER,
    LINK_TAIL,
    QUERY,
)

LINK_WEIGHT = 23
LONGEST_LINK = 4096
LONGEST_SHORT_LINK = 40

TLDS = frozenset(
    name
    for line in Path(__file__).with_name("tlds.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
    for name in line.split()
)
LONGEST_TLD = max(map(len, TLDS))

_LIGHT = regex.compile(r"[\u0000-\u10ff\u2000-\u200d\u2010-\u201f\u2032-\u2037]")
_CANDIDATE = regex.compile(
    rf"(https?://)?+((?:(?!https?://)(?:{HOST_CHARACTER}|[-_.]))++)", regex.I
)
_LABEL = regex.compile(rf"{HOST_CHARACTER}(?:(?:{HOST_CHARACTER}|[-_])*{HOST_CHARACTER})?")
_LATIN_LABEL = regex.compile(rf"{LATIN_HOST_CHARACTER}++", regex.I)
_LATIN_CHAIN = regex.compile(rf"(?:{LATIN_HOST_CHARACTER}++\.)++", regex.I)
_TAIL = regex.compile(LINK_TAIL, regex.I)
_PUNYCODE = regex.compile(r"xn--[-0-9a-z]++", regex.I)
_SHORT_LINK = regex.compile(rf"https?://t\.co/([a-z0-9]++)(?:{QUERY})?+", regex.I)
_MAY_PRECEDE = regex.compile(r"[^A-Za-z0-9@＠$#＃\ufffe\ufeff\uffff]")  # noqa: RUF001  full width
_MAY_NOT_PRECEDE_BARE = "-_./"
_LONG_MARKS = regex.compile(r"(\p{M}{30})(?=\p{M})")
_BREAK = "\u034f"


def count(text: str) -> int:
    """The weighted length: a link 23, an emoji 2, a character 1 or 2 by its code point."""
    text, breaks = _normalised(text)
    total, done = -breaks, 0
    for start, end in links(text):
        total += _weight(text[done:start]) + LINK_WEIGHT
        done = end
    return total + _weight(text[done:])


def has_link(text: str) -> bool:
    """Whether the weight of the text holds that of a link."""
    return any(links(_normalised(text)[0]))


def _normalised(text: str) -> tuple[str, int]:
    """The text as it is weighed, and how many characters in it are only there to be quick."""
    # Normalising takes quadratic time on a long row of accents: break it as UAX #15 advises.
    text, breaks = _LONG_MARKS.subn(rf"\1{_BREAK}", text)
    return unicodedata.normalize("NFC", text), breaks


def _weight(text: str) -> int:
    rest, emoji = EMOJI.subn("", text)
    return 2 * (emoji + len(rest)) - len(_LIGHT.findall(rest))


def links(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of every link, with and without https://."""
    at = done = 0
    while candidate := _CANDIDATE.search(text, at):
        at = candidate.end()
        for start, host_start in _starts(text, candidate, done):
            host_end = _host_end(text, host_start, candidate.end(), _LABEL)
            if host_end and (tail := _TAIL.match(text, host_end)):
                yield from _links_at(text, start, host_start, host_end, tail)
                at = done = tail.end()
                break


def _starts(text: str, candidate: regex.Match[str], done: int) -> Iterator[tuple[int, int]]:
    """Where a link and its host may begin in a row of characters that hosts are made of: at its
    beginning, unless what stands before forbids it, or after its first character that is not a
    plain letter or digit. (twitter-text tries the second first at the very start of a text.)"""
    start, host_start = candidate.start(), candidate.start(2)
    later = _MAY_PRECEDE.search(text, host_start, candidate.end())
    if not start and later and later.start() == 0:
        yield 1, 1
    if not start or (start > done and _MAY_PRECEDE.match(text, start - 1)):
        yield start, host_start
    elif start < host_start:
        yield host_start, host_start
    elif later:
        yield later.end(), later.end()


def _host_end(text: str, start: int, end: int, label_shape: regex.Pattern[str]) -> int:
    """Where the host name that begins at `start` ends: after its last top-level domain, or 0."""
    best, dot = 0, text.find(".", start, end)
    while dot > 0 and (label := label_shape.fullmatch(text, start, dot)):
        if "_" not in label[0]:
            best = _tld_end(text, dot + 1, end) or best
        start, dot = dot + 1, text.find(".", dot + 1, end)
    return best


def _tld_end(text: str, start: int, end: int) -> int:
    for stop in range(min(start + LONGEST_TLD, end), start, -1):
        if text[start:stop].lower() in TLDS and not _goes_on(text[stop : stop + 1]):
            return stop
    punycode = _PUNYCODE.match(text, start, end)
    return punycode.end() if punycode else 0


def _goes_on(character: str) -> bool:
    return character in tuple("@+-") or (character.isascii() and character.isalnum())


def _links_at(
    text: str, start: int, host_start: int, host_end: int, tail: regex.Match[str]
) -> Iterator[tuple[int, int]]:
    """What of a link's shape at `start` counts as a link."""
    host, protocol = text[host_start:host_end], text[start:host_start]
    if not _possible(host, tail.end() - start, protocol or "https://"):
        return
    if protocol:
        yield from _with_protocol(text, start, tail.end())
    elif not start or text[start - 1] not in _MAY_NOT_PRECEDE_BARE:
        yield from _bare(host, start, len(tail[0]) if tail["path"] else 0)


def _possible(host: str, length: int, protocol: str) -> bool:
    """Whether a name like this can exist at all: its labels and the whole are not too long."""
    if max(map(len, host.split("."))) > 63:
        return False
    try:
        ascii_host = host.encode("idna")
    except UnicodeError:
        return False
    return len(protocol) + length + len(ascii_host) - len(host) <= LONGEST_LINK


def _with_protocol(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    short = _SHORT_LINK.match(text, start, end)
    if not short:
        yield start, end
    elif len(short[1]) <= LONGEST_SHORT_LINK:
        yield start, short.end()


def _bare(host: str, start: int, path: int) -> Iterator[tuple[int, int]]:
    """The Latin names in a host; the path (its length) belongs to the last of them."""
    names = []
    for chain in _LATIN_CHAIN.finditer(host):
        if name_end := _host_end(host, chain.start(), len(host), _LATIN_LABEL):
            names.append((start + chain.start(), start + name_end))
    yield from names[:-1]
    yield from ((name_start, name_end + path) for name_start, name_end in names[-1:])
