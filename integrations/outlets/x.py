"""X: posts of 280 weighted characters, each of which whoever runs SlothPost pays for.

By version 2 of its API: https://docs.x.com/x-api
"""

import html
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings

from integrations.errors import Refused, TryLater, Unknown
from integrations.outlets.base import Approved, Outlet, Price, Published, Sent
from integrations.outlets.x_account import (
    LABEL,
    NAME,
    ask,
    understood,
    words_of,
)
from integrations.outlets.x_length import count, has_link
from integrations.outlets.x_text import as_read, objection, pieces
from integrations.sources.base import BadPayload, Fields
from integrations.tables import Connection

MOST_ASKED = 100  # posts in one call
MET_BEFORE = (
    "X has this very text of yours already, and takes none twice: it was posted before, maybe by"
    " hand. Change the text, or mark this post as published."
)
SOMEWHERE = "X says that this text is out already, and does not show it."
NUMBERS = {
    "likes": "like_count",
    "replies": "reply_count",
    "reposts": "retweet_count",
    "quotes": "quote_count",
    "bookmarks": "bookmark_count",
    "views": "impression_count",
}


# -- publishing ------------------------------------------------------------------------------------


def publish(approved: Approved, now: datetime) -> Published:
    """Post it: https://docs.x.com/x-api/posts/create-post

    X knows no key for a call and gives posts of the same text once, so that a repeat first looks
    among the account's posts, and sending it again where it is not there doubles nothing.
    """
    account = approved.account
    if account is None:
        raise Refused("Connect an X account first.")
    if approved.is_repeat and (found := _look(approved, account, now)):
        return found
    try:
        with understood(now):
            post = {"text": approved.text}
            answer = ask(account, "POST", "/2/tweets", now, creates=True, json=post)
    except Refused as failure:
        if not _is_duplicate(failure):
            raise Refused(f"{failure.reason} Change the text, or post it by hand.") from failure
        if not approved.is_repeat:
            raise Refused(MET_BEFORE) from failure
        if found := _look(approved, account, now, by_words=True):
            return found
        raise Unknown(SOMEWHERE) from failure
    try:
        return _published(account, Fields(answer.body, "").fields("data"))
    except BadPayload as error:
        raise Unknown("X's answer cannot be read: it may have taken the post.") from error


def _is_duplicate(failure: Refused) -> bool:
    refused = failure.answer is not None and failure.answer.status == 403
    return refused and "duplicate content" in words_of(failure).lower()


def _published(account: Connection, post: Fields) -> Published:
    number = post.identifier("id")
    username = (account.details or {}).get("username", "i")
    return Published(number, f"{settings.X_URL}/{username}/status/{number}")


def _look(
    approved: Approved, account: Connection, now: datetime, *, by_words: bool = False
) -> Published | None:
    """The post among those of the account since it was claimed, if X shows it; `by_words` where
    it is known to be out, and X may write its links in another way.

    https://docs.x.com/x-api/users/get-posts
    """
    since = (approved.claimed_at or now) - timedelta(minutes=1)
    query = {
        "start_time": f"{since:%Y-%m-%dT%H:%M:%SZ}",
        "max_results": MOST_ASKED,
        "tweet.fields": "entities",
    }
    path = f"/2/users/{account.account_id}/tweets"
    try:
        with understood(now):
            shown = Fields(ask(account, "GET", path, now, params=query).body, "")
            if shown.has("errors") and not shown.has("data"):
                raise BadPayload("errors in place of posts")
            wanted = as_read(approved.text, with_links=not by_words)
            for post in shown.each("data"):
                if as_read(_written(post), with_links=not by_words) == wanted:
                    return _published(account, post)
    except Refused as failure:  # of what was sent it says nothing
        raise TryLater(f"X does not show us the account's posts: {failure.reason}") from failure
    return None


def _written(post: Fields) -> str:
    """The text of a post, with the links that X replaced with its own as they were."""
    text = html.unescape(post.text("text"))
    for link in post.maybe("entities").each("urls"):
        text = text.replace(link.text("url"), link.text("expanded_url", ""), 1)
    return text


# -- numbers ---------------------------------------------------------------------------------------


def numbers(sent: list[Sent], now: datetime) -> dict[str, dict[str, int]]:
    """https://docs.x.com/x-api/posts/get-posts-by-ids, of which each post that is read costs."""
    found: dict[str, dict[str, int]] = {}
    for account, ids in _by_account(sent):
        for first in range(0, len(ids), MOST_ASKED):
            found |= _numbers(account, ids[first : first + MOST_ASKED], now)
    return found


def _by_account(sent: list[Sent]) -> list[tuple[Connection, list[str]]]:
    found: dict[str, tuple[Connection, list[str]]] = {}
    for post in sent:
        if post.account is not None:
            found.setdefault(post.account.key, (post.account, []))[1].append(post.external_id)
    return list(found.values())


def _numbers(account: Connection, ids: list[str], now: datetime) -> dict[str, dict[str, int]]:
    query = {"ids": ",".join(ids), "tweet.fields": "public_metrics"}
    with understood(now):
        body = ask(account, "GET", "/2/tweets", now, params=query).body
        Fields(body, "").each("data")  # it is a list of objects
    return {
        str(post.get("id")): _counted(post.get("public_metrics")) for post in body.get("data") or []
    }


def _counted(metrics: Any) -> dict[str, int]:
    """https://docs.x.com/x-api/fundamentals/metrics"""
    given = metrics if isinstance(metrics, dict) else {}
    return {
        ours: value
        for ours, theirs in NUMBERS.items()
        if type(value := given.get(theirs)) is int and value >= 0
    }


def price(text: str) -> Price:
    """https://docs.x.com/x-api/getting-started/pricing: what holds a link, also a bare domain that
    X makes one, costs more."""
    plain = Decimal(settings.X_POST_PRICE)
    amount = Decimal(settings.X_LINK_POST_PRICE) if has_link(text) else plain
    return Price(amount, plain, settings.X_PRICES_AS_OF)


OUTLET = Outlet(
    name=NAME,
    label=LABEL,
    unit="characters",
    limit=280,
    count=count,
    publish=publish,
    can_find_out=True,
    needs_account=True,
    objection=objection,
    pieces=pieces,
    per_minute=10,
    numbers=numbers,
    numbers_after=(timedelta(days=1), timedelta(days=7)),
    price=price,
)
