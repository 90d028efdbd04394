"""Threads: posts of 500 characters, put out in two steps.

First a container is made of a text, and once that is ready it is published, which can be done once:
a container's status says afterwards whether it was.
https://developers.facebook.com/docs/threads/posts
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from integrations.errors import Failure, NeedsReconnect, NotFound, Refused, TryLater, Unknown
from integrations.outlets.base import EVER_MORE_SELDOM, Approved, Outlet, Published, Sent
from integrations.outlets.threads_account import (
    LABEL,
    NAME,
    NOT_THERE,
    ask,
    code_of,
    lost,
    understood,
)
from integrations.outlets.threads_text import count, objection, pieces
from integrations.sources.base import UNPRINTABLE, BadPayload, Fields, trimmed
from integrations.tables import Connection

PREPARING = "Threads is still preparing the post."
GONE = ("ERROR", "EXPIRED")  # nothing of such a container is out, nor ever will be
STUCK = timedelta(minutes=10)  # a container that is not to be had after that is given up
MOST_SHOWN = 50  # posts that are looked through
NUMBERS = ("views", "likes", "replies", "reposts", "quotes", "shares")


# -- publishing ------------------------------------------------------------------------------------


def publish(approved: Approved, now: datetime) -> Published:
    """Make a container, or go on with the one that an earlier attempt made, and publish it once it
    is ready: one that is not yet is looked at again by the next attempt. Its status is read before
    each try: what is out is never published again."""
    account = approved.account
    if account is None:
        raise Refused("Connect a Threads account first.")
    kept = _kept(approved, account)
    if kept is not None:
        status, _ = _status(account, kept["container"], now)
        if status == "PUBLISHED":
            return _look(approved, account, now)
        if status == "FINISHED" and (number := _put_out(account, kept["container"], now)):
            return _published(account, number, now)
        is_stuck = status == "FINISHED" and datetime.fromisoformat(kept["at"]) + STUCK < now
        if not is_stuck and status not in GONE:
            raise TryLater(PREPARING)
    made = _begun(approved, account, now)
    status, words = _status(account, made["container"], now)
    if status in GONE:
        raise Refused(f"Threads could not make a post of it: “{words or status}”")
    if status == "FINISHED" and (number := _put_out(account, made["container"], now)):
        return _published(account, number, now)
    raise TryLater(PREPARING)


def _kept(approved: Approved, account: Connection) -> Mapping[str, Any] | None:
    """The container that an earlier attempt made of this text for this account."""
    kept = approved.kept
    return kept if kept.get("of") == _digest(approved, account) else None


def _digest(approved: Approved, account: Connection) -> str:
    return hashlib.sha256(f"{account.key}\n{approved.text}".encode()).hexdigest()


def _begun(approved: Approved, account: Connection, now: datetime) -> Mapping[str, Any]:
    """A container of the text, kept before anything can come of it."""
    post = {"media_type": "TEXT", "text": approved.text}
    path = f"/v1.0/{account.account_id}/threads"
    try:
        answer = ask(account, "POST", path, now, data=post)
    except Refused as failure:
        if code_of(failure) == NOT_THERE:
            raise lost(account, now) from failure
        raise Refused(f"{failure.reason} Change the text, or post it by hand.") from failure
    with understood(now):
        number = Fields(answer.body, "").identifier("id")
    made = {"container": number, "of": _digest(approved, account), "at": now.isoformat()}
    approved.keep(made)
    return made


def _status(account: Connection, container: str, now: datetime) -> tuple[str, str]:
    """How far a container is, and why it failed if it did:
    https://developers.facebook.com/docs/threads/troubleshooting#publishing-does-not-return-a-media-id"""
    query = {"fields": "status,error_message"}
    try:
        answer = ask(account, "GET", f"/v1.0/{container}", now, params=query)
    except Refused as failure:
        if code_of(failure) == NOT_THERE:  # it is too new to be seen everywhere
            return "IN_PROGRESS", ""
        raise TryLater(f"Threads does not show us the post: {failure.reason}") from failure
    with understood(now):
        found = Fields(answer.body, "")
        return found.text("status"), trimmed(found.text("error_message", ""), 200)


def _put_out(account: Connection, container: str, now: datetime) -> str:
    """Publish a container. What the post is called, or "" where the container is not to be had
    yet, which happens though it is finished."""
    path = f"/v1.0/{account.account_id}/threads_publish"
    try:
        answer = ask(account, "POST", path, now, creates=True, data={"creation_id": container})
    except Refused as failure:
        if code_of(failure) == NOT_THERE:
            return ""
        raise Refused(f"{failure.reason} Look at your account there first.") from failure
    try:
        return Fields(answer.body, "").identifier("id")
    except BadPayload as error:
        raise Unknown("Threads' answer cannot be read: it may have taken the post.") from error


def _published(account: Connection, number: str, now: datetime) -> Published:
    """Where a post is that was just published. Whatever goes wrong now, it is out: Unknown."""
    try:
        answer = ask(account, "GET", f"/v1.0/{number}", now, params={"fields": "permalink"})
        return Published(number, Fields(answer.body, "").text("permalink"))
    except (Failure, BadPayload) as error:
        raise Unknown("The post is out, and Threads did not say where yet.") from error


def _look(approved: Approved, account: Connection, now: datetime) -> Published:
    """The post of a container that is published, among those of the account since it was approved.

    https://developers.facebook.com/docs/threads/retrieve-and-discover-posts/retrieve-posts
    """
    since = (approved.approved_at or approved.claimed_at or now) - timedelta(minutes=1)
    query = {"fields": "id,text,permalink,timestamp", "limit": MOST_SHOWN}
    path = f"/v1.0/{account.account_id}/threads"
    try:
        with understood(now):
            shown = Fields(ask(account, "GET", path, now, params=query).body, "").each("data")
            for post in shown:
                if _is(post, approved.text) and post.moment("timestamp") >= since:
                    return Published(post.identifier("id"), post.text("permalink"))
    except (Refused, TryLater, NeedsReconnect) as failure:
        raise Unknown(f"The post is out, and where is not known: {failure.reason}") from failure
    raise Unknown("Threads says that the post is out, and does not show it yet.")


def _is(post: Fields, text: str) -> bool:
    """Whether it is a post of this text, however white space came through."""
    return post.text("text", "").split() == UNPRINTABLE.sub("", text).split()


# -- numbers ---------------------------------------------------------------------------------------


def numbers(sent: list[Sent], now: datetime) -> dict[str, dict[str, int]]:
    """https://developers.facebook.com/docs/threads/insights, post by post; of one that was deleted
    there are none."""
    found: dict[str, dict[str, int]] = {}
    for post in sent:
        if post.account is not None and (counted := _numbers(post.account, post.external_id, now)):
            found[post.external_id] = counted
    return found


def _numbers(account: Connection, number: str, now: datetime) -> dict[str, int]:
    path, query = f"/v1.0/{number}/insights", {"metric": ",".join(NUMBERS)}
    try:
        with understood(now):
            body = ask(account, "GET", path, now, params=query).body
            Fields(body, "").each("data")  # it is a list of objects
    except Refused as failure:
        if isinstance(failure, NotFound) or code_of(failure) in (NOT_THERE, 100):
            return {}
        raise
    totals = {metric.get("name"): _total(metric) for metric in body.get("data") or []}
    return {name: total for name in NUMBERS if (total := totals.get(name)) is not None}


def _total(metric: dict[str, Any]) -> int | None:
    """Threads gives some of them as a list of one, and others as a total."""
    values = metric.get("values")
    given = values[0] if isinstance(values, list) and values else metric.get("total_value")
    value = given.get("value") if isinstance(given, dict) else None
    return value if type(value) is int and 0 <= value < 2**63 else None


OUTLET = Outlet(
    name=NAME,
    label=LABEL,
    unit="characters",
    limit=500,
    count=count,
    publish=publish,
    can_find_out=True,
    needs_account=True,
    objection=objection,
    pieces=pieces,
    per_minute=5,
    numbers=numbers,
    numbers_after=EVER_MORE_SELDOM,
)
