"""Verbs on connections: a user's authorised accounts, their health and their secrets.

A connection works until its service says that its authorisation is gone; then only its owner can
mend it, and is told once. Whatever may pass by itself is trouble, shown and not acted on.
"""

import re
import secrets as random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from pynamodb.expressions.condition import Condition

from integrations.errors import Failure, NeedsReconnect, TryLater
from integrations.tables import Connection
from slothpost_site import crypto, dynamo
from slothpost_site.dynamo import Conflict, change, get, put_new, shard_of
from slothpost_site.moments import to_ms
from slothpost_site.paging import Page, read_page

if TYPE_CHECKING:  # the sources import this module
    from integrations.sources.base import AccountNews

LEASE = timedelta(seconds=30)  # longer than the longest refresh call
LONGEST_NAME = 200
MOST_TRIES = 8
# What a line has no place for: control characters, marks that turn the direction of the text around
# them, lone surrogates. What joins letters or parts of an emoji stays.
NO_PART_OF_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
UNSHOWN = "The account that shows it is not connected any more."
SOON = timedelta(days=7)
EXPIRY_MARGIN = timedelta(minutes=2)  # a token is renewed this long before it lapses


@dataclass(frozen=True)
class Grant:
    """What a service gave us to act for an account."""

    secrets: Mapping[str, str]
    expires_at: datetime | None = None  # of the access token
    refresh_at: datetime | None = None  # when it has to be renewed though nobody needs it
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Account:
    """Whose account it is, as its service knows it."""

    id: str  # stable
    name: str
    external_key: str = ""  # what the service's webhooks call it, such as "vercel#icfg_1"
    details: Mapping[str, Any] = field(default_factory=dict)  # not secret


# -- connecting ------------------------------------------------------------------------------------


def connect(
    user_id: str, provider: str, account: Account, grant: Grant, *, now: datetime
) -> Connection:
    """Keep an account that one real read has shown to work, new or connected again.

    What a reconnect does not bring is kept: an empty value never replaces a secret. Raises TryLater
    where others change the account again and again.
    """
    key = f"{provider}#{account.id}"
    values = {
        "account_name": _one_line(account.name),
        "external_key": account.external_key or None,
        "details": dict(account.details) or None,
        "scopes": list(grant.scopes) or None,
        **_granted(user_id, key, grant, before={}),
        **_healthy(now),
    }
    item = Connection(
        user_id, key, provider=provider, account_id=account.id, connected_at=to_ms(now), **values
    )
    for _ in range(MOST_TRIES):
        if put_new(item):
            return item
        found = find(user_id, key)
        if found is None:
            continue  # disconnected meanwhile: it is new again
        try:
            before = secrets_of(found)
        except NeedsReconnect:
            before = {}
        values |= _granted(user_id, key, grant, before=before)
        try:
            return change(
                found,
                dynamo.unchanged(Connection.secrets, found.secrets),
                connected_at=to_ms(now),
                lease=None,
                lease_until=None,
                **values,
            )
        except Conflict:
            continue
    raise TryLater("This account is being changed elsewhere just now: connect it again.")


def _one_line(name: str) -> str:
    """An account's name, fit to stand in a sentence or a subject."""
    return " ".join(NO_PART_OF_A_LINE.sub(" ", name).split())[:LONGEST_NAME]


def _granted(user_id: str, key: str, grant: Grant, before: Mapping[str, str]) -> dict[str, Any]:
    """The attributes that a grant sets, with what it leaves empty as it was before."""
    kept = {**before, **{name: value for name, value in grant.secrets.items() if value}}
    refresh_at = to_ms(grant.refresh_at) if grant.refresh_at else None
    return {
        "secrets": crypto.seal(kept, f"{user_id}/{key}") if kept else None,
        "expires_at": to_ms(grant.expires_at) if grant.expires_at else None,
        "refresh_status": shard_of("active", key) if refresh_at else None,
        "refresh_at": refresh_at,
        "refresh_attempts": None,
    }


def disconnect(connection: Connection) -> None:
    """Forget an account and its secrets; nothing happens if it is gone already."""
    dynamo.remove(connection)


# -- finding ---------------------------------------------------------------------------------------


def find(user_id: str, key: str) -> Connection | None:
    return get(Connection, user_id, key)


def find_working(user_id: str, key: str) -> Connection | None:
    """The connection, if it works, and so does the account that shows it where there is one
    (`details["account"]` is its key)."""
    found = find(user_id, key)
    return None if found is None or broken_of(found) else found


def broken_of(connection: Connection) -> str:
    """Why it does not work, or "": it may be for the account that shows it."""
    account = (connection.details or {}).get("account")
    if connection.broken or not account:
        return connection.broken or ""
    shows = find(connection.user_id, account)
    if shows is None:
        return UNSHOWN
    return broken_of(shows)


def shown_by(account: Connection) -> list[Connection]:
    """The connections that need this account, and end with it."""
    return [
        found
        for found in of_provider(account.user_id, account.provider)
        if (found.details or {}).get("account") == account.key
    ]


def list_for(user_id: str, cursor: str = "") -> Page[Connection]:
    """A person's accounts, a page at a time, in the order of provider and account."""
    return read_page(Connection, user_id, cursor=cursor, size=50, newest_first=False)


def every_one_of(user_id: str) -> Iterator[Connection]:
    """All of a person's accounts, page by page."""
    page = list_for(user_id)
    yield from page.items
    while page.next_cursor:
        page = list_for(user_id, page.next_cursor)
        yield from page.items


def of_provider(user_id: str, provider: str) -> list[Connection]:
    """A person's accounts at one provider."""
    return list(
        Connection.query(user_id, Connection.key.startswith(f"{provider}#"), consistent_read=True)
    )


def known_as(external_key: str) -> Iterator[Connection]:
    """Everybody's connections of an account, by what its service's webhooks call it; as they are
    now, not as the index has them."""
    for entry in Connection.by_external_key.query(external_key):
        found = find(entry.user_id, entry.key)
        if found is not None and found.external_key == external_key:
            yield found


# -- health ----------------------------------------------------------------------------------------


def _healthy(now: datetime) -> dict[str, Any]:
    return {
        "checked_at": to_ms(now),
        "broken": None,
        "broken_at": None,
        "told_at": None,
        "trouble": None,
        "trouble_at": None,
    }


def mark_working(connection: Connection, now: datetime) -> None:
    """One real read succeeded. A broken connection stays so: only connecting again mends it.
    Nothing happens to one that was disconnected meanwhile."""
    _note(connection, checked_at=to_ms(now), trouble=None, trouble_at=None)


def keep_details(connection: Connection, details: Mapping[str, Any]) -> None:
    """What a read showed of the account itself. Nothing happens to one that was disconnected."""
    _note(connection, details=dict(details))


def mark_trouble(connection: Connection, reason: str, now: datetime) -> None:
    """Something failed that may pass by itself. Nothing happens to what was disconnected meanwhile:
    nobody is to be told."""
    _note(connection, trouble=reason, trouble_at=to_ms(now))


@contextmanager
def noted(connection: Connection, now: datetime) -> Iterator[None]:
    """Let an account's own page tell what failed."""
    try:
        yield
    except NeedsReconnect as failure:
        mark_broken(connection, failure.reason, now)
        raise
    except Failure as failure:
        mark_trouble(connection, failure.reason, now)
        raise


def _note(connection: Connection, **values: Any) -> None:
    try:
        change(connection, None, **values)
    except Conflict:  # it is gone
        return


def mark_broken(connection: Connection, reason: str, now: datetime) -> bool:
    """Its authorisation is gone. False if that was known: its owner is told only once.

    Puts it into the refresh index, so that the tick tells its owner. A connection that was
    renewed since it was read is left alone: the failure was the old secrets'.
    """
    return _change_same(
        connection, Connection.broken.does_not_exist(), **_as_broken(connection, reason, now)
    )


def _as_broken(connection: Connection, reason: str, now: datetime) -> dict[str, Any]:
    return {
        "broken": reason,
        "broken_at": to_ms(now),
        "refresh_status": shard_of("active", connection.key),
        "refresh_at": to_ms(now),
    }


def lapses(connection: Connection) -> bool:
    """Whether it ends at `expires_at`, and only connecting it again prolongs it: what a machine
    renews is renewed before that."""
    ends = connection.expires_at
    return ends is not None and connection.refresh_at == ends


def lapses_soon(connection: Connection, now: datetime) -> bool:
    """Whether its owner should connect it again within days, so that nothing is held."""
    soon = lapses(connection) and connection.expires_at <= to_ms(now + SOON)
    return connection.works and soon


def begin_telling(connection: Connection, until: datetime) -> None:
    """Be the one who tells its owner that it is broken, until then: whoever comes later takes over
    from one who died. Raises Conflict when somebody else tells it, or it works again."""
    change(
        connection,
        Connection.broken.exists()
        & Connection.told_at.does_not_exist()
        & (Connection.refresh_at == connection.refresh_at),
        refresh_at=to_ms(until),
    )


def note_told(connection: Connection, now: datetime) -> None:
    """Its owner was told. Nothing happens where it was connected again meanwhile."""
    try:
        change(
            connection,
            Connection.broken.exists() & (Connection.refresh_at == connection.refresh_at),
            told_at=to_ms(now),
            refresh_status=None,
            refresh_at=None,
        )
    except Conflict:
        return


def put_off_refresh(connection: Connection, until: datetime, trouble: str, now: datetime) -> None:
    """Renewing failed for now: try again then. Raises Conflict when it broke or was renewed."""
    change(
        connection,
        Connection.broken.does_not_exist()
        & dynamo.unchanged(Connection.refresh_at, connection.refresh_at),
        refresh_at=to_ms(until),
        refresh_attempts=int(connection.refresh_attempts or 0) + 1,
        trouble=trouble,
        trouble_at=to_ms(now),
    )


def end_refresh(connection: Connection, now: datetime) -> None:
    """It was renewed, or needed nothing. Where that set no new time, none is coming.

    Raises Conflict when it broke meanwhile: then its owner is to be told.
    """
    if connection.refresh_at is None or connection.refresh_at > to_ms(now):
        return
    change(
        connection,
        Connection.broken.does_not_exist()
        & dynamo.unchanged(Connection.refresh_at, connection.refresh_at),
        refresh_status=None,
        refresh_at=None,
        refresh_attempts=None,
    )


def hear(news: "AccountNews", now: datetime) -> None:
    """What a source's webhook says of an account, for everybody who connected it."""
    for connection in known_as(news.external_key):
        if news.broken:
            _break(connection, news.broken, now)
        elif news.lifted:
            _lift(connection, news.lifted, now)
        elif news.trouble:
            mark_trouble(connection, news.trouble, now)
        elif news.name:
            _note(connection, account_name=_one_line(news.name))


def _break(connection: Connection, reason: str, now: datetime) -> None:
    """`mark_broken` whatever its secrets are by now: it is the account itself that is gone."""
    try:
        change(
            connection,
            Connection.broken.does_not_exist(),
            **_as_broken(connection, reason, now),
        )
    except Conflict:  # that was known, or nobody has it any more
        return


def _lift(connection: Connection, reason: str, now: datetime) -> None:
    """What broke it is over. Something else that broke it meanwhile is not."""
    try:
        change(connection, Connection.broken == reason, **_healthy(now))
    except Conflict:
        return


# -- secrets ---------------------------------------------------------------------------------------


def secrets_of(connection: Connection) -> dict[str, str]:
    """The account's secrets in the clear. Raises NeedsReconnect where no key opens them."""
    if connection.secrets is None:
        return {}
    try:
        return crypto.unseal(connection.secrets, f"{connection.user_id}/{connection.key}")
    except crypto.Unreadable as error:
        raise NeedsReconnect(
            "What was stored of this account can no longer be read here."
        ) from error


def fresh_secrets(
    connection: Connection,
    renew: Callable[[dict[str, str]], Grant],
    now: datetime,
    *,
    even_if_valid: bool = False,
) -> dict[str, str]:
    """The account's secrets with an access token, `token`, that is valid now.

    `renew(secrets)` asks the service for new ones, and runs in one worker only: the others wait
    for what it stores. Raises NeedsReconnect, having marked the connection broken, and TryLater,
    which says nothing against it.
    """
    if not connection.works:
        raise NeedsReconnect(str(connection.broken))
    if not even_if_valid and _is_valid(connection, now):
        return secrets_of(connection)
    lease = random.token_hex(8)
    if not _take_lease(connection, lease, now):
        return _renewed_by_another(connection, now)
    try:
        grant = renew(secrets_of(connection))
    except NeedsReconnect as failure:
        mark_broken(connection, failure.reason, now)
        raise
    except BaseException:
        _drop_lease(connection, lease)
        raise
    return _store(connection, grant, now)


def _is_valid(connection: Connection, now: datetime) -> bool:
    """Whether there is a token, and time left of it."""
    until = connection.expires_at
    lasts = until is None or until > to_ms(now + EXPIRY_MARGIN)
    return lasts and "token" in secrets_of(connection)


def _take_lease(connection: Connection, lease: str, now: datetime) -> bool:
    """Become the one who renews, on condition that the secrets are still those that were read."""
    # By the clock, which a tick's `now` may be far behind by the time it gets here: counted from
    # that, the lease would be over while its holder asks, and a token be spent twice.
    taken_at = max(now, timezone.now())
    free = Connection.lease.does_not_exist() | (Connection.lease_until <= to_ms(taken_at))
    return _change_same(connection, free, lease=lease, lease_until=to_ms(taken_at + LEASE))


def _drop_lease(connection: Connection, lease: str) -> None:
    try:
        change(connection, Connection.lease == lease, lease=None, lease_until=None)
    except Conflict:  # it lapsed, and somebody else has it
        return


def _store(connection: Connection, grant: Grant, now: datetime) -> dict[str, str]:
    """Keep renewed secrets, also under a lease that lapsed meanwhile: a rotating refresh token
    that is not kept is lost. Only what its owner connected anew in the meantime is newer.

    Raises NeedsReconnect where it broke or was disconnected meanwhile.
    """
    values = _granted(connection.user_id, connection.key, grant, secrets_of(connection))
    values |= {"lease": None, "lease_until": None}
    works = Connection.broken.does_not_exist()
    if _change_same(connection, works, **values, **_healthy(now)):
        return secrets_of(connection)
    # What broke it may be over one day. When to act next is not ours: its owner is to be told.
    kept = ("secrets", "expires_at", "lease", "lease_until")
    _change_same(connection, None, **{name: values[name] for name in kept})
    _read_again(connection)
    if connection.broken:
        raise NeedsReconnect(str(connection.broken))
    return secrets_of(connection)


def _change_same(connection: Connection, condition: Condition | None, **values: Any) -> bool:
    """Alter a connection whose secrets are still those that were read, be it under another seal:
    rotate_token_keys may come at any moment. False, and `connection` as it was read, if not."""
    latest = connection
    while True:
        guard = dynamo.unchanged(Connection.secrets, latest.secrets)
        try:
            change(latest, guard if condition is None else guard & condition, **values)
        except Conflict:
            found = find(connection.user_id, connection.key)
            if found is None or found.secrets == latest.secrets or not _same(found, connection):
                return False
            latest = found
        else:
            connection.deserialize(latest.serialize())
            return True


def _same(one: Connection, other: Connection) -> bool:
    """Whether both have the same secrets. Those that no key opens are other ones."""
    try:
        return secrets_of(one) == secrets_of(other)
    except NeedsReconnect:
        return one.secrets == other.secrets


def _read_again(connection: Connection) -> None:
    """Raises NeedsReconnect where it was disconnected."""
    found = find(connection.user_id, connection.key)
    if found is None:
        raise NeedsReconnect("This account was disconnected.")
    connection.deserialize(found.serialize())


def _renewed_by_another(connection: Connection, now: datetime) -> dict[str, str]:
    """What the worker that renews these secrets stores, if it does so soon. Raises TryLater."""
    for _ in range(40):
        found = find(connection.user_id, connection.key)
        if found is None:
            raise NeedsReconnect("This account was disconnected.")
        if found.broken:
            raise NeedsReconnect(str(found.broken))
        if not _same(found, connection) and _is_valid(found, now):
            connection.deserialize(found.serialize())
            return secrets_of(connection)
        time.sleep(0.25)
    raise TryLater("This account's authorisation is being renewed.", timedelta(minutes=1))


def reseal(connection: Connection) -> None:
    """Seal the secrets with the first of TOKEN_KEYS, also those that somebody changes meanwhile:
    a worker that has not been restarted yet seals with the old one. Raises NeedsReconnect where no
    key opens them."""
    while connection.secrets is not None:
        sealed = crypto.seal(secrets_of(connection), f"{connection.user_id}/{connection.key}")
        try:
            change(connection, Connection.secrets == connection.secrets, secrets=sealed)
        except Conflict:
            found = find(connection.user_id, connection.key)
            if found is None:
                return
            connection.deserialize(found.serialize())
        else:
            return
