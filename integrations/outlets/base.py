"""What an outlet is: how it counts, how much it takes, how it publishes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import regex

if TYPE_CHECKING:
    from integrations.tables import Connection


@dataclass(frozen=True)
class Approved:
    """A post that its owner approved, with all that an outlet needs to publish it.

    `publish` is called again with the same post after an attempt whose outcome nobody knows; then
    `is_repeat` is true, and the outlet finds out what became of that attempt before it sends
    anything. What it needs to do so it hands to `keep` before the call that publishes.
    """

    user_id: str
    product_id: str
    product_name: str
    product_link: str
    slug: str  # of the product's public page
    text: str
    slot_at: datetime
    key: str  # stable for this post for ever: the same key is the same post, sent once
    account: "Connection | None" = None  # that it was approved for; None where none is needed
    approved_at: datetime | None = None
    claimed_at: datetime | None = None  # when this attempt began; its repeats have the same
    is_repeat: bool = False
    kept: Mapping[str, Any] = field(default_factory=dict)  # what `keep` was given, by any attempt
    keep: Callable[[Mapping[str, Any]], None] = lambda kept: None  # raises Conflict: then stop


@dataclass(frozen=True)
class Published:
    external_id: str  # what the outlet calls it
    permalink: str


@dataclass(frozen=True)
class Piece:
    """A stretch of a text as its outlet shows it; the pieces of a text, joined, are the text."""

    text: str
    kind: Literal["text", "link", "tag", "mention"] = "text"
    url: str = ""  # where a link leads


@dataclass(frozen=True)
class Sent:
    """A post that is out, for what is asked about it afterwards."""

    external_id: str
    permalink: str
    account: "Connection | None"


@dataclass(frozen=True)
class Price:
    """What publishing a text costs whoever runs SlothPost, in US dollars."""

    amount: Decimal
    without_links: Decimal  # the same text, if it held none
    as_of: str  # the day of the price list, ISO


def whole(text: str) -> list[Piece]:
    return [Piece(text)]


def marked(
    text: str, pattern: "regex.Pattern[str]", piece: "Callable[[regex.Match[str]], Piece | None]"
) -> list[Piece]:
    """The pieces of a text: what a pattern finds as `piece` has it, where it is not None, and the
    plain text between."""
    found, done = [], 0
    for mark in pattern.finditer(text):
        if special := piece(mark):
            found += [Piece(text[done : mark.start()]), special]
            done = mark.end()
    return [each for each in (*found, Piece(text[done:])) if each.text]


def counted(body: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    """The numbers that somebody else's JSON gives, by our names for theirs; what is none is not."""
    return {
        ours: value
        for ours, theirs in names.items()
        if type(value := body.get(theirs)) is int and 0 <= value < 2**63
    }


# When numbers are asked for that cost nothing, after publishing.
EVER_MORE_SELDOM = (
    timedelta(hours=1),
    timedelta(hours=6),
    *(timedelta(days=days) for days in (1, 3, 7, 30)),
)


@dataclass(frozen=True)
class Outlet:
    """Where posts go. `publish` is None where they are posted by hand.

    `publish(approved, now)` returns Published or raises one of the four kinds of failure in
    integrations.errors: TryLater only where provably nothing was sent, Unknown where nobody knows.
    """

    name: str
    label: str
    unit: str
    limit: int
    count: Callable[[str], int]
    publish: Callable[[Approved, datetime], Published] | None = None
    # Whether `publish` can find out what became of an attempt: else a person has to.
    can_find_out: bool = False
    # Whether it takes an account (a connection whose provider is `name`).
    needs_account: bool = False
    # Why it does not take a text, in a sentence, or "": what its length does not say.
    objection: Callable[[str], str] = lambda text: ""
    # The limit of one account, where accounts differ, such as Mastodon's by instance.
    limit_of: "Callable[[Connection], int] | None" = None
    pieces: Callable[[str], list[Piece]] = whole
    # The most posts of one account in one minute.
    per_minute: int = 60
    # What people made of posts that are out: {"likes": 3, ...} by external id. Raises a Failure.
    numbers: Callable[[list[Sent], datetime], dict[str, dict[str, int]]] | None = None
    # How long after publishing its numbers are asked for.
    numbers_after: tuple[timedelta, ...] = ()
    price: Callable[[str], Price] | None = None

    def length(self, text: str) -> int:
        """The length in this outlet's unit; a line end is one character, however it was sent."""
        return self.count(text.replace("\r\n", "\n").replace("\r", "\n"))
