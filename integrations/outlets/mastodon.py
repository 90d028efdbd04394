"""Mastodon: 500 characters, or what the account's instance says.

A status goes out under a key of ours, which the instance keeps for an hour: the same key is the
same status. Other software that speaks Mastodon's language may not know keys, so that a repeat
first looks among the account's statuses.
https://docs.joinmastodon.org/methods/statuses/#create
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from integrations.errors import NotFound, Refused, TryLater, Unknown
from integrations.outlets.base import (
    EVER_MORE_SELDOM,
    Approved,
    Outlet,
    Published,
    Sent,
    counted,
)
from integrations.outlets.mastodon_account import (
    LABEL,
    LIMIT,
    NAME,
    ask,
    host_at,
    limit_of,
)
from integrations.outlets.mastodon_text import as_read, count, pieces, plain
from integrations.sources.base import UNPRINTABLE, BadPayload, Fields
from integrations.tables import Connection

MOST_SHOWN = 40  # statuses that are looked through
CLOCKS_DIFFER = timedelta(minutes=10)  # an instance's and ours, at most
NUMBERS = {"likes": "favourites_count", "replies": "replies_count", "reposts": "reblogs_count"}


# -- publishing ------------------------------------------------------------------------------------


def publish(approved: Approved, now: datetime) -> Published:
    account = approved.account
    if account is None:
        raise Refused("Connect a Mastodon account first.")
    if approved.is_repeat and (found := _look(approved, account, now)):
        return found
    status = {"status": approved.text, "visibility": "public"}
    key = hashlib.sha256(approved.key.encode()).hexdigest()[:32]
    headers = {"Idempotency-Key": key}
    try:
        answer = ask(
            account, "POST", "/api/v1/statuses", now, creates=True, json=status, headers=headers
        )
    except Refused as failure:
        raise Refused(f"{failure.reason} Change the text, or post it by hand.") from failure
    try:
        return _published(account, Fields(answer.body, ""))
    except BadPayload as error:
        host = host_at(account)
        raise Unknown(f"{host}'s answer cannot be read: it may have taken the post.") from error


def _published(account: Connection, status: Fields) -> Published:
    number = status.identifier("id")
    for name in ("url", "uri"):
        link = status.text(name, "")
        if link.startswith(("https://", "http://")) and len(link) <= 2_000:
            return Published(number, link)
    details = account.details or {}
    return Published(number, f"https://{details['host']}/@{details['username']}/{number}")


def _look(approved: Approved, account: Connection, now: datetime) -> Published | None:
    """The status among those of the account since it was claimed, if it is there.

    https://docs.joinmastodon.org/methods/accounts/#statuses
    """
    since = (approved.claimed_at or now) - CLOCKS_DIFFER
    path = f"/api/v1/accounts/{(account.details or {})['id']}/statuses"
    query = {"limit": MOST_SHOWN, "exclude_reblogs": "true"}
    wanted = as_read(UNPRINTABLE.sub("", approved.text))
    try:
        body = ask(account, "GET", path, now, params=query).body
        for status in Fields({"statuses": body}, "").each("statuses"):
            if status.moment("created_at") >= since and _read(account, status, now) == wanted:
                return _published(account, status)
    except Refused as failure:
        raise TryLater(f"Whether it is out cannot be said now: {failure.reason}") from failure
    except BadPayload as error:
        host = host_at(account)
        raise TryLater(f"{host} answered with something that is no answer.") from error
    return None


def _read(account: Connection, status: Fields, now: datetime) -> str:
    """A status as it was written: its source, or (before 3.5) what its page makes of it.

    https://docs.joinmastodon.org/methods/statuses/#source
    """
    path = f"/api/v1/statuses/{status.identifier('id')}/source"
    try:
        text = Fields(ask(account, "GET", path, now).body, "").text("text")
    except Refused:
        text = plain(status.text("content", ""))
    return as_read(text)


# -- numbers ---------------------------------------------------------------------------------------


def numbers(sent: list[Sent], now: datetime) -> dict[str, dict[str, int]]:
    """https://docs.joinmastodon.org/entities/Status/, post by post; of one that was deleted there
    are none. There is no count of views."""
    found: dict[str, dict[str, int]] = {}
    for post in sent:
        if post.account is not None and (counted := _numbers(post.account, post.external_id, now)):
            found[post.external_id] = counted
    return found


def _numbers(account: Connection, number: str, now: datetime) -> dict[str, int]:
    try:
        body = ask(account, "GET", f"/api/v1/statuses/{number}", now).body
    except NotFound:
        return {}
    if not isinstance(body, Mapping):
        raise TryLater(f"{host_at(account)} answered with something that is no answer.")
    return counted(body, NUMBERS)


OUTLET = Outlet(
    name=NAME,
    label=LABEL,
    unit="characters",
    limit=LIMIT,
    count=count,
    publish=publish,
    can_find_out=True,
    needs_account=True,
    limit_of=limit_of,
    pieces=pieces,
    per_minute=10,
    numbers=numbers,
    numbers_after=EVER_MORE_SELDOM,
)
