"""What every source says in the same words, and how a stranger's JSON is read."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from integrations.accounts import Provider
from integrations.errors import Failure, NeedsReconnect

if TYPE_CHECKING:
    from integrations.tables import Connection

TITLE_LIMIT = 300  # characters
BODY_LIMIT = 4_000  # characters
NAME_LIMIT = 200  # characters of what somebody or something is called
VERSION_LIMIT = 50  # characters


@dataclass(frozen=True)
class Event:
    """One thing that happened at a source, before we know which products follow it."""

    source: str  # "github" | "vercel" | "app_store"
    kind: str  # "release" | "merge" | "commit" | "tag" | "deployment" | "version" | "review"
    id: str  # one key per fact: "release:123", "pr:45", "commit:<sha>", "tag:v1.2"
    occurred_at: datetime  # aware, UTC
    title: str  # one line, at most TITLE_LIMIT
    body: str = ""  # as the source has it (plain text or Markdown), at most BODY_LIMIT
    link: str = ""  # https, and open to everybody, or ""
    version: str = ""  # "v1.2.0" for releases and tags
    author: str = ""  # login
    refs: tuple[str, ...] = ()  # shared with other events of the same change: "sha:…", "pr:45"
    ignored: str = ""  # "" for a story, else the reason in words
    private: bool = False  # only its title may be kept, unless its owner says otherwise
    stage: str = ""  # one of STAGES: how far the change is known to have got by this event


# How far a change can get, in order; each includes what stands before it.
STAGES = ("", "merged", "released", "live", "in review", "in the store")


@dataclass(frozen=True)
class Renamed:
    """The source calls the followed thing by another name now, e.g. "acme/app"."""

    name: str


@dataclass(frozen=True)
class Gone:
    """The followed thing was deleted: the link to it is dead."""

    reason: str


@dataclass(frozen=True)
class Hidden:
    """The followed thing was open to everybody and is not any more."""

    reason: str


@dataclass(frozen=True)
class Opened:
    """The followed thing was private and is open to everybody now."""


@dataclass(frozen=True)
class OutOfReach:
    """The account that showed it may no longer see it; whether it still exists is not said.

    `via` is the key of the connection that is meant; "" is whichever shows it.
    """

    reason: str
    via: str = ""


@dataclass(frozen=True)
class Reachable:
    """What was out of reach can be read again, through the connection with this key."""

    via: str


Upkeep = Renamed | Gone | Hidden | Opened | OutOfReach | Reachable


@dataclass(frozen=True)
class AccountNews:
    """What happened to an account itself, by what the source's webhooks call it."""

    external_key: str  # as in connections.Account
    broken: str = ""  # why its owner has to connect it again
    lifted: str = ""  # what had broken it, in the same words, and is over
    trouble: str = ""  # what is wrong for now
    name: str = ""  # what it is called now


@dataclass(frozen=True)
class Wanted:
    """Something is new that the delivery itself does not tell: the source is to be asked."""


@dataclass(frozen=True)
class Received:
    """What a verified delivery said."""

    delivery_id: str  # the same on a redelivery
    event: str  # "release.published", "push", "deployment.promoted"
    follow_id: str = ""  # value of the source's FOLLOW_ATTRIBUTE; "" routes nowhere
    events: tuple[Event, ...] = ()
    upkeep: Upkeep | Wanted | None = None  # of what `follow_id` names
    upkeep_of: tuple[tuple[str, Upkeep], ...] = ()  # of further things, by their follow ids
    account: AccountNews | None = None
    note: str = ""  # why nothing comes of it, in words
    private: bool = False  # not open to everybody: who follows it must have shown that they may


@dataclass(frozen=True)
class Choice:
    """Something at a source that a product can follow, as its owner chooses it from a list."""

    id: str  # the follow id
    name: str
    via: str = ""  # the key of the connection that shows it
    private: bool = False
    detail: str = ""  # whatever else helps to tell it from the others
    seen: Mapping[str, str] = field(default_factory=dict)  # what the first fetch begins from


@dataclass(frozen=True)
class Follow:
    """What a product follows, and how far it has been read."""

    id: str  # the follow id
    name: str
    connection: "Connection | None"  # that shows it; None where it is read as anybody can
    since: datetime  # nothing that happened before is wanted
    seen: Mapping[str, str] = field(default_factory=dict)  # what the last fetch left for this one


@dataclass(frozen=True)
class Fetched:
    """What a source says has happened since, and what is so now."""

    events: tuple[Event, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict)  # for the next fetch: ETags and the like
    upkeep: tuple[Upkeep, ...] = ()
    private: bool | None = None  # whether it is now; None where the source does not say
    note: str = ""  # what its owner should know, such as that a list was too long to read whole


class BadPayload(Exception):
    """The JSON is not of the shape that the source documents; `str()` is one line of reason."""


def choices_of(
    accounts: "Iterable[Connection]", show: "Callable[[Connection], Iterable[Choice]]"
) -> list[Choice]:
    """What a person's accounts show, each thing once. An account that fails for now leaves the
    others' to choose from, and its own page says what is wrong.

    Raises NeedsReconnect where there are accounts and none works, and the first account's Failure
    where all of them fail.
    """
    known = list(accounts)
    working = [account for account in known if account.works]
    if known and not working:
        raise NeedsReconnect(str(known[0].broken))
    found: dict[str, Choice] = {}
    failures: list[Failure] = []
    for account in working:
        try:
            for choice in show(account):
                found.setdefault(choice.id, choice)
        except Failure as failure:
            failures.append(failure)
    if failures and len(failures) == len(working):
        raise failures[0]
    return list(found.values())


class Source(Provider, Protocol):
    """A package per source; `integrations.sources.SOURCES` lists them."""

    FOLLOW_ATTRIBUTE: str  # the product's attribute (and sparse index) that `follow_id` matches
    METHODS: tuple[str, ...]  # HTTP methods that its deliveries come with
    SIGNATURE_HEADER: str

    # -- its webhooks

    def secrets(self) -> tuple[str, ...]:
        """The secrets that deliveries may be signed with, the newest first; none refuses all."""

    def signature(self, body: bytes, secret: str) -> str:
        """The value of SIGNATURE_HEADER for a raw body."""

    def verify(self, body: bytes, headers: Mapping[str, str], secret: str) -> bool:
        """Whether the raw body was signed with the secret. Never true for an empty secret."""

    def parse(self, payload: dict[str, object], headers: Mapping[str, str]) -> Received:
        """What a delivery says. Pure; raises BadPayload and nothing else, whatever it is fed."""

    # -- its accounts, beside what every provider can do

    def choices(self, user_id: str, now: datetime) -> list[Choice]:
        """What this person's accounts show that can be followed. Raises a Failure."""

    # -- its history

    def fetch(self, follow: Follow, now: datetime) -> Fetched:
        """What has happened at what is followed, and is not known from webhooks alone.

        In the same normal form, under the same keys, as `parse` gives. Raises a Failure.
        """


LONGEST_TOKEN = 10_000
_IDENTIFIER = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Control characters, lone surrogates (UTF-8 and so DynamoDB has no place for them) and marks that
# turn the direction of the text around them.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINK = re.compile(r"https://[^\s<>\"]{1,2000}")


class Fields:
    """Typed access to a JSON object that somebody else wrote.

    null and absent are the same. A required field that is absent, and any field of another type
    than the one asked for, is a BadPayload that names it.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise BadPayload(f"{where} is not an object")
        self._values: dict[str, object] = value
        self._where = where

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def fields(self, name: str) -> "Fields":
        """A required object."""
        return Fields(self._values.get(name), self._path(name))

    def maybe(self, name: str) -> "Fields":
        """An object that may be absent: then one without any field."""
        return self.fields(name) if self.has(name) else Fields({}, self._path(name))

    def each(self, name: str) -> "list[Fields]":
        """A list of objects; an absent one is empty."""
        values = self._values.get(name)
        if values is None:
            return []
        if not isinstance(values, list):
            raise BadPayload(f"{self._path(name)} is not a list")
        return [Fields(value, f"{self._path(name)}[{at}]") for at, value in enumerate(values)]

    def text(self, name: str, default: str | None = None) -> str:
        """Text without anything unprintable; required where no default is given."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise BadPayload(f"{self._path(name)} is not a text")
        return UNPRINTABLE.sub("", value)

    def line(self, name: str, default: str | None = None, limit: int = NAME_LIMIT) -> str:
        """The same on one line, cut to `limit` characters: what something is called."""
        return one_line(self.text(name, default), limit)

    def token(self, name: str) -> str:
        """A required text that calls are signed with, of a length that can be kept."""
        value = self.text(name)
        if not 0 < len(value) <= LONGEST_TOKEN:
            raise BadPayload(f"{self._path(name)} is not a token")
        return value

    def identifier(self, name: str) -> str:
        """A required text that can be part of a key: ASCII, 1 to 100 characters."""
        value = self.text(name)
        if not _IDENTIFIER.fullmatch(value):
            raise BadPayload(f"{self._path(name)} is not an id")
        return value

    def number(self, name: str) -> int:
        """A required whole number from 1 to 2^63 - 1."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**63:
            raise BadPayload(f"{self._path(name)} is not a positive whole number")
        return value

    def flag(self, name: str) -> bool:
        """A yes or no; absent is no."""
        value = self._values.get(name, False)
        if value is not None and not isinstance(value, bool):
            raise BadPayload(f"{self._path(name)} is not true or false")
        return bool(value)

    def moment(self, name: str, per_second: int = 1) -> datetime:
        """A required time, as ISO text with an offset or as a number since 1970, in UTC."""
        value = self._values.get(name)
        try:
            if isinstance(value, int) and not isinstance(value, bool):
                moment = datetime.fromtimestamp(value / per_second, UTC)
            else:
                moment = datetime.fromisoformat(self.text(name))
                if moment.tzinfo is None:
                    raise BadPayload(f"{self._path(name)} has no time zone")
                moment = moment.astimezone(UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise BadPayload(f"{self._path(name)} is not a time") from error
        if moment.year < 1970:
            raise BadPayload(f"{self._path(name)} is before 1970")
        return moment

    def link(self, name: str) -> str:
        """An https link, or ""."""
        value = self.text(name, "")
        return value if _LINK.fullmatch(value) else ""

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name


def secrets_in(setting: str) -> tuple[str, ...]:
    """The values of a secret that is being rotated, newest first: separated by commas."""
    return tuple(value for part in setting.split(",") if (value := part.strip()))


def header(headers: Mapping[str, str], name: str) -> str:
    """A required header that can be part of a key. Raises BadPayload."""
    value = headers.get(name, "")
    if not _IDENTIFIER.fullmatch(value):
        raise BadPayload(f"the header {name} is missing or malformed")
    return value


def is_sha(text: str) -> bool:
    return bool(_SHA.fullmatch(text))


def trimmed(text: str, limit: int) -> str:
    """The text without surrounding space, cut to `limit` characters with an ellipsis."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def one_line(text: str, limit: int = NAME_LIMIT) -> str:
    """The text with every run of white space as one space, cut as `trimmed` does."""
    return trimmed(" ".join(text.split()), limit)


def headline(message: str) -> tuple[str, str]:
    """A message's first line as a title, and what follows it as a body."""
    first, *rest = message.strip().splitlines() or [""]
    return one_line(first, TITLE_LIMIT), trimmed("\n".join(rest), BODY_LIMIT)
