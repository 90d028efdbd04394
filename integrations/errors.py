"""How work with somebody else's service fails, in the kinds that code can act on.

Decided where the service is known, in its own file, and nowhere else. `reason` is a sentence for
the person whose account or post it is; it never holds a token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a service said: parsed JSON, None for an empty answer and for 304."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    next_url: str = ""  # of the Link header, the next page

    @property
    def is_unchanged(self) -> bool:
        """304: what the ETag names is still so."""
        return self.status == 304


class Failure(Exception):
    """The service did not do what was asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.answer: Answer | None = None

    def said(self, name: str) -> str:
        """The text that the answer has under this name, on one line, or ""."""
        body = self.answer.body if self.answer else None
        value = body.get(name) if isinstance(body, dict) else None
        return " ".join(value.split()) if isinstance(value, str) else ""


class Refused(Failure):
    """It will not, as things are: repeating it changes nothing. Nothing was sent."""


class NotFound(Refused):
    """What was asked for is not there, or not for this account."""


class TryLater(Failure):
    """It could not now; safe to repeat. `after` is the wait that the service asked for."""

    def __init__(self, reason: str, after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = after


class NeedsReconnect(Failure):
    """The account's authorisation is gone: only its owner can renew it. Nothing was sent."""


class Unknown(Failure):
    """Nobody knows whether it was done: a person decides."""
