"""From what people type into titles and release notes to plain words that are safe to publish.

All of it is untrusted: markup, links, mentions, invisible characters and numbers that mean
something only inside the project are taken out. What remains keeps its wording.
"""

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace

import regex

from integrations.writers.words import LOWER

LONGEST_BODY = 4000

_JOINED_SCRIPT = r"[\p{L}\p{M}--\p{Latin}]"
_INVISIBLE = regex.compile(
    rf"(?V1)(?!(?<={_JOINED_SCRIPT})[\u200c\u200d](?={_JOINED_SCRIPT}))"
    r"[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u034f\u115f\u1160\u3164\uffa0--[\n\t]]"
)
_STACKED = regex.compile(r"(\p{M}{4})\p{M}++")
EMOJI = regex.compile(
    r"(?V1)[\p{Emoji_Presentation}\p{Extended_Pictographic}\p{Emoji_Modifier}"
    r"\p{Regional_Indicator}\ufe0e\ufe0f\u20e3--[©®™]]++"
)
_COMMENT = regex.compile(r"<!--.*?(?:-->|$)", regex.S)
_TAG = regex.compile(r"</?[a-zA-Z!][^<>]{0,500}>|<[a-zA-Z/!][^<>]{0,500}$")
_IMAGE = regex.compile(r"!\[[^\[\]]{0,300}\]\([^()\s]{0,1000}\)")
_LINK = regex.compile(r"\[([^\[\]]{1,300})\]\([^()\s]{0,1000}\)")
_URL = regex.compile(
    r"(?:\b[a-z][a-z0-9+.-]{1,20}://|\bwww\.|\b(?:javascript|data|mailto):)\S++", regex.I
)
_EMPHASIS = regex.compile(r"(?<!\w)(\*\*\*|\*\*|\*|___|__|_|~~)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")
_SHORTCODE = regex.compile(r"(?<![\w:/]):[a-z][a-z0-9_+-]{1,40}:(?![\w:])")
_MENTION = regex.compile(r"(?<![A-Za-z0-9_])[@＠#＃]+(?=[\p{L}\p{N}_])")  # noqa: RUF001
_CLOSES = regex.compile(
    r"[\s(\[]*\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?|see)\b:?(?:\s*,?\s*#\d+)+[)\]]*",
    regex.I,
)
_NUMBER = regex.compile(r"\s*[(\[]\s*(?:#|GH-)\d+(?:\s*,\s*#\d+)*\s*[)\]]|(?:^|\s+)(?:#|GH-)\d+\b")
_NOT_A_TICKET = r"(?!(?:UTF|SHA|ISO|GPT|RFC|CVE|AES|MD|IPV|ES|RSA|HTTP|ANSI|WCAG|COVID|OAUTH|X)-)"
_TICKET = rf"{_NOT_A_TICKET}[A-Z][A-Z0-9]{{1,9}}-\d+"
_TICKETS = regex.compile(
    rf"^[\[(]?{_TICKET}[\])]?\s*[:\-–—|]?\s+|\s*[\[(]{_TICKET}[\])]|\s+{_TICKET}$"  # noqa: RUF001
)
_LABEL = regex.compile(r"^\[[^\[\]]{1,30}\]\s*")
_PREFIX = regex.compile(
    r"^(feat|feature|fix|bugfix|hotfix|perf|docs?|refactor|chore|style|tests?|build|ci|revert|deps"
    r"|security|ui|ux|improvement|enhancement|wip|release|a11y|i18n)"
    r"(?:\([^()]{0,60}\))?!?:\s*",
    regex.I,
)
_CREDIT = regex.compile(
    r"\s+by\s+@?[\w\[\]-]{1,60}(?:\s+(?:in|via)\s+\S+)?\s*$|\s+(?:in|via)\s+https?://\S+\s*$"
)
_SCOPE = regex.compile(r"^\*\*[a-z0-9_./,-]{1,40}:\*\*\s+")  # as release tools write them
_HASH = regex.compile(r"\s*\((?:commit )?[0-9a-f]{7,40}\)")
_BOLD_HEAD = regex.compile(r"^\*\*([^*]{2,60})(?::\*\*|\*\*\s*[:–—])\s")  # noqa: RUF001
_ENDS = " \t.,;:!-–—|/\\…·*"  # noqa: RUF001


@dataclass(frozen=True)
class Item:
    """One thing that was done, in plain words, and what its author marked it as."""

    text: str
    mark: str  # "feat", "fix", "chore" ... or "" without a mark
    short: str = ""  # the part that its author set in bold before a colon, if any


def line(text: str, keep_emoji: bool = False) -> str:
    """One line of plain text without markup, links, mentions, tags or anything invisible."""
    text = html.unescape(html.unescape(text[:LONGEST_BODY]))
    text = _INVISIBLE.sub("", text)
    text = _STACKED.sub(r"\1", text)
    text = _TAG.sub(" ", _COMMENT.sub(" ", text))
    text = _IMAGE.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    text = _URL.sub(" ", text).replace("`", "")
    text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    text = _SHORTCODE.sub(" ", text)
    if not keep_emoji:
        text = EMOJI.sub(" ", text)
    text = regex.sub(r"[(\[{<]\s*[)\]}>]", " ", text)
    text = _MENTION.sub("", text).replace("<", "").replace(">", "")
    return regex.sub(r"\s+([,.;:)])(?=\s|$)", r"\1", " ".join(text.split()))


def item(title: str) -> Item:
    """A title as a person would say it: without prefix, scope, ticket, number and full stop."""
    text = next(iter(title[:LONGEST_BODY].strip().splitlines()), "")
    text = _SCOPE.sub("", _LINK.sub(r"\1", text))
    bold = _BOLD_HEAD.match(text)
    text = _CREDIT.sub("", text)
    text = _HASH.sub("", _NUMBER.sub("", _CLOSES.sub("", text) or text))
    text, mark = line(text), ""
    while True:
        shorter = _TICKETS.sub("", _LABEL.sub("", text)).strip()
        if prefix := _PREFIX.match(shorter):
            mark = mark or prefix[1].lower()
            shorter = shorter[prefix.end() :]
        if shorter == text:
            break
        text = shorter
    text = text.strip(_ENDS)
    return Item(capitalised(_calm(text)), mark, line(bold[1]).strip(_ENDS) if bold else "")


def _calm(text: str) -> str:
    """SHOUTING, said normally."""
    words = text.split()
    shouted = len(words) > 2 and text.isupper() and text.isascii()
    return text.lower() if shouted else text


def capitalised(text: str) -> str:
    """With a capital first letter, unless the first word has its own spelling (iOS, npm)."""
    first = text.split(" ", 1)[0]
    own = first in LOWER or any(c.isupper() or c.isdigit() or c in "._/" for c in first[1:])
    return text if own else text[:1].upper() + text[1:]


# -- release notes --------------------------------------------------------------------------------

_HEADING = regex.compile(
    r"^\s{0,3}(?:#{1,6}\s+(.+?)\s*#*|\*\*([^*]{1,80})\*\*:?|([\p{L} &/]{3,40}):)\s*$"
)
_BULLET = regex.compile(r"^(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.+)$")
_SKIPPED_SECTION = regex.compile(
    r"contributor|thank|credit|dependenc|internal|chore|maintenance|\bci\b|\btests?\b|\bdocs?\b"
    r"|documentation|checksum|asset|install|upgrad|download|refactor|build|known issue|developer"
    r"|housekeeping",
    regex.I,
)
_FIX_SECTION = regex.compile(r"fix|bug|resolved", regex.I)
_NEW_SECTION = regex.compile(r"feature|added|^new|what's new\b(?!.*changed)", regex.I)
_NOISE = regex.compile(
    r"^(?:bump|update|upgrade)\b.*\b(?:from|dependenc\w*|deps)\b|^merge (?:branch|pull)"
    r"|^full changelog|^wip\b|^[0-9a-f]{7,64}\b|made their first contribution|^co-authored-by"
    r"|^signed-off-by|\breadme\b|\btypos?\b|\blint(?:er|ing)?\b|^clean ?up\b|^misc\b|^minor\b",
    regex.I,
)
QUIET_MARKS = frozenset(
    (
        "doc",
        "docs",
        "refactor",
        "chore",
        "style",
        "test",
        "tests",
        "build",
        "ci",
        "revert",
        "deps",
        "wip",
    )
)
_PULL = regex.compile(r"/pull/(\d+)|\(#(\d+)\)")


def notes(body: str) -> Iterator[Item]:
    """What the readers of release notes would notice: the top-level bullets, without the
    sections and lines that concern the developers alone."""
    mark, skipped = "", False
    for heading, text in _bullets(body):
        if heading:
            skipped = bool(_SKIPPED_SECTION.search(text))
            mark = "fix" if _FIX_SECTION.search(text) else ""
            mark = mark or ("feat" if _NEW_SECTION.search(text) else "")
        elif not skipped:
            found = item(text)
            if is_news(found):
                yield replace(found, mark=found.mark or mark)


def is_news(found: Item) -> bool:
    """Whether there is anything in it for a reader."""
    return bool(found.text) and found.mark not in QUIET_MARKS and not _NOISE.search(found.text)


def has_bullets(body: str) -> bool:
    """Whether release notes list anything at all, noticeable or not."""
    return any(not heading for heading, _ in _bullets(body))


def _bullets(body: str) -> Iterator[tuple[bool, str]]:
    """(is a heading, text) for each heading and each bullet of the first level."""
    fenced, depth = False, None
    for raw in _COMMENT.sub("", body[:LONGEST_BODY]).splitlines():
        if raw.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif fenced:
            continue
        elif heading := _HEADING.match(raw):
            depth = None
            yield True, line(next(filter(None, heading.groups())))
        elif bullet := _BULLET.match(raw):
            indent = len(bullet[1].expandtabs(4))
            depth = indent if depth is None else depth
            if indent <= depth:
                yield False, bullet[2]


def prose(body: str) -> str:
    """The first sentence of the first paragraph of release notes that have no bullets, or ""."""
    for raw in _COMMENT.sub("", body[:LONGEST_BODY]).splitlines():
        text = line(raw)
        if (
            not text
            or _HEADING.match(raw)
            or _NOISE.search(text)
            or raw.lstrip().startswith(("|", ">", "```"))
        ):
            continue
        return first_sentence(text)
    return ""


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence, without it."""
    end = regex.search(r"(?<=[\p{Ll}\p{N})])[.!?](?=\s+\p{Lu}|\s*$)", text)
    return (text[: end.start()] if end else text).strip(_ENDS)


def pulls(body: str) -> frozenset[str]:
    """The pull requests that release notes name, as refs: `pr:45`."""
    return frozenset(f"pr:{a or b}" for a, b in _PULL.findall(body[:LONGEST_BODY]))
