"""What connecting an account takes, the same for sources and outlets."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from integrations.tables import Connection


class Cancelled(Exception):
    """The person said no at the service; `str()` is a sentence for them. Nothing was connected."""


class ExpiredLink(Exception):
    """The way back from the service was too old, or used before: it begins again at the start."""


@dataclass(frozen=True)
class Start:
    """Where a browser goes to connect an account, and what its session keeps till it returns."""

    url: str
    kept: Mapping[str, str] = field(default_factory=dict)  # such as PKCE's verifier


def pkce() -> tuple[str, dict[str, str]]:
    """A new secret of a way there and back, and what of it the way there says (RFC 7636)."""
    verifier = secrets.token_urlsafe(48)
    challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode()
    said = {"code_challenge": challenge.rstrip("="), "code_challenge_method": "S256"}
    return verifier, said


@dataclass(frozen=True)
class Finish:
    """An account is connected."""

    connection: "Connection"
    next_url: str = ""  # where its service wants the browser to go on
    note: str = ""  # what is still missing, in words


class Provider(Protocol):
    """A service at which a person has an account."""

    NAME: str  # of its connections: their key is NAME#account id
    LABEL: str  # what people call it
    PATH: str  # its name in addresses, such as "app-store"

    def is_configured(self) -> bool:
        """Whether the operator has set what connecting an account takes."""

    def finish(
        self, user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
    ) -> Finish:
        """Connect what the browser came back with, once one real read of the account succeeded.

        `answer` is the query of the callback, or the form's answers; `kept` is what start() kept,
        and "callback_url". Raises Cancelled, ExpiredLink or a Failure; then nothing was connected.
        """

    def check(self, connection: "Connection", now: datetime) -> None:
        """One real read of the account, and its health accordingly. Raises a Failure."""

    def disconnect(self, connection: "Connection", now: datetime) -> str:
        """Give the grant back at the service as far as can be, forget the account, and say in a
        sentence what is left to do there, or ""."""

    def renew(self, connection: "Connection", now: datetime) -> None:
        """Renew what lapses by itself, whether it is needed now or not. Raises a Failure."""


class Consenting(Provider, Protocol):
    """A provider that asks the person itself, on a page of its own."""

    def start(
        self, state: str, callback_url: str, answer: Mapping[str, str], now: datetime
    ) -> Start:
        """Where to send the browser. `answer` is what its form asked for before, such as a
        Mastodon instance; empty where it has none. Raises a Failure."""
