"""What an outlet is: how it counts, how much it takes, how it publishes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Approved:
    """A post that its owner approved, with all that an outlet needs to publish it."""

    user_id: str
    product_id: str
    product_name: str
    product_link: str
    slug: str  # of the product's public page
    text: str
    slot_at: datetime
    key: str  # stable for this post for ever: the same key is the same post, sent once


@dataclass(frozen=True)
class Published:
    external_id: str  # what the outlet calls it
    permalink: str


@dataclass(frozen=True)
class Outlet:
    """Where posts go. `publish` is None where they are posted by hand.

    `publish(approved, now)` returns Published or raises one of the four kinds of
    failure in integrations.errors.
    `repeatable`: publishing with the same key again is known to make no second post.
    """

    name: str
    label: str
    unit: str
    limit: int
    count: Callable[[str], int]
    publish: Callable[[Approved, datetime], Published] | None = None
    repeatable: bool = False

    def length(self, text: str) -> int:
        """The length in this outlet's unit; a line end is one character, however it was sent."""
        return self.count(text.replace("\r\n", "\n").replace("\r", "\n"))
