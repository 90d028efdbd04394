"""Bluesky: 300 graphemes and 3,000 UTF-8 bytes (lexicon app.bsky.feed.post, field `text`).

The key of a record is ours to choose: the same post sent twice is one record, whatever became of
the answers. https://docs.bsky.app/docs/api/com-atproto-repo-put-record
"""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from integrations.addresses import api_at
from integrations.errors import Failure, Refused, TryLater, Unknown
from integrations.outlets.base import (
    EVER_MORE_SELDOM,
    Approved,
    Outlet,
    Published,
    Sent,
    counted,
)
from integrations.outlets.bluesky_account import (
    LABEL,
    NAME,
    api_of,
    ask,
    error_of,
    understood,
)
from integrations.outlets.bluesky_card import PATIENCE, card
from integrations.outlets.bluesky_facets import facets, first_link, handles, pieces
from integrations.outlets.entities import grapheme_count
from integrations.sources.base import UNPRINTABLE, BadPayload, Fields
from integrations.tables import Connection

BYTES_PER_GRAPHEME = 10  # 3,000 bytes to 300 graphemes
READERS = "bsky.app"  # where people read posts
COLLECTION = "app.bsky.feed.post"
MOST_MENTIONS = 10  # that are looked up
MOST_ASKED = 25  # posts at once
NUMBERS = {
    "likes": "likeCount",
    "replies": "replyCount",
    "reposts": "repostCount",
    "quotes": "quoteCount",
}


def count(text: str) -> int:
    """Graphemes, or tenths of the byte limit where those are more (joined-up emoji, stacked
    accents): so the count is over 300 exactly when one of the two limits is passed."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return max(grapheme_count(text), -(-size // BYTES_PER_GRAPHEME))


# -- publishing ------------------------------------------------------------------------------------


def publish(approved: Approved, now: datetime) -> Published:
    """Put the post under its key. A repeat looks first whether it is there, as anybody may; if not,
    it puts the record that it kept, which changes nothing should it be there by then."""
    account = approved.account
    if account is None:
        raise Refused("Connect a Bluesky account first.")
    key = record_key(approved)
    if approved.is_repeat and _is_out(account, key, approved.text, now):
        return _published(account, key)
    record = {
        "repo": account.account_id,
        "collection": COLLECTION,
        "rkey": key,
        "record": {**_prepared(approved, account, now), "text": approved.text},
    }
    with understood(now):
        answer = ask(account, "POST", "com.atproto.repo.putRecord", now, creates=True, json=record)
    published = _published(account, key)
    if not isinstance(answer.body, dict) or answer.body.get("uri") != published.external_id:
        raise Unknown("Bluesky did not say what became of it: it may have taken the post.")
    return published


def _published(account: Connection, key: str) -> Published:
    """By its DID, which stays when its handle changes."""
    readers = settings.OPERATOR_HOSTS.get(READERS, f"https://{READERS}")
    did = account.account_id
    return Published(f"at://{did}/{COLLECTION}/{key}", f"{readers}/profile/{did}/post/{key}")


def record_key(approved: Approved) -> str:
    """The same for this post for ever, and for no other: made of its slot and its key."""
    digest = int.from_bytes(hashlib.sha256(approved.key.encode()).digest()[:8])
    within_the_minute = digest % 60_000_000
    return tid(int(approved.slot_at.timestamp()) * 1_000_000 + within_the_minute, digest >> 54)


def tid(microseconds: int, clock: int) -> str:
    """https://atproto.com/specs/tid: since 1970, and ten bits of whoever made it."""
    number = microseconds << 10 | clock
    digits = "234567abcdefghijklmnopqrstuvwxyz"
    return "".join(digits[number >> shift & 31] for shift in range(60, -1, -5))


def _is_out(account: Connection, key: str, text: str, now: datetime) -> bool:
    """Whether an earlier attempt got through. Raises TryLater where that cannot be said now."""
    query = {"repo": account.account_id, "collection": COLLECTION, "rkey": key}
    try:
        with understood(now):
            api = api_of(account.details or {})
            answer = api.ask("GET", "/xrpc/com.atproto.repo.getRecord", now=now, params=query)
            shown = Fields(answer.body, "").fields("value").text("text")
    except Failure as failure:
        if error_of(failure) == "RecordNotFound":
            return False
        raise TryLater(f"Whether it is out cannot be said now: {failure.reason}") from failure
    return shown == UNPRINTABLE.sub("", text)


def _prepared(approved: Approved, account: Connection, now: datetime) -> dict[str, Any]:
    """All of the record but its text, kept before it is sent: a repeat sends the very same.

    Where an attempt broke off before it was kept, nobody's page is waited for again.
    """
    moment = (approved.claimed_at or now).astimezone(UTC)
    created_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    kept = approved.kept.get("record")
    if approved.is_repeat and isinstance(kept, dict) and kept.get("createdAt") == created_at:
        return kept
    looks = not approved.is_repeat
    dids = _dids(approved.text, account, now) if looks else {}
    record: dict[str, Any] = {"$type": COLLECTION, "createdAt": created_at}
    if marks := facets(approved.text, dids):
        record["facets"] = marks
    if link := first_link(approved.text):
        record["embed"] = card(link, now, looks=looks)
    approved.keep({"record": record})
    return record


def _dids(text: str, account: Connection, now: datetime) -> dict[str, str]:
    """The accounts of those whom a text mentions, as far as they can be found."""
    api, found = replace(api_of(account.details or {}), patience=PATIENCE), {}
    path = "/xrpc/com.atproto.identity.resolveHandle"
    for handle in handles(text)[:MOST_MENTIONS]:
        try:
            body = api.ask("GET", path, now=now, params={"handle": handle}).body
            found[handle] = Fields(body, "").identifier("did")
        except (Refused, BadPayload):  # nobody is called that: it stays plain text
            continue
        except Failure:  # nor will the others be found now
            break
    return found


# -- numbers ---------------------------------------------------------------------------------------


def numbers(sent: list[Sent], now: datetime) -> dict[str, dict[str, int]]:
    """https://docs.bsky.app/docs/api/app-bsky-feed-get-posts, which anybody may ask; there is no
    count of views."""
    found: dict[str, dict[str, int]] = {}
    for first in range(0, len(sent), MOST_ASKED):
        found |= _numbers([post.external_id for post in sent[first : first + MOST_ASKED]], now)
    return found


def _numbers(uris: list[str], now: datetime) -> dict[str, dict[str, int]]:
    api = api_at(LABEL, settings.BLUESKY_PUBLIC_HOST)
    with understood(now):
        body = api.ask("GET", "/xrpc/app.bsky.feed.getPosts", now=now, params={"uris": uris}).body
        Fields(body, "").each("posts")  # it is a list of objects
    return {str(post.get("uri")): counted(post, NUMBERS) for post in body.get("posts") or []}


OUTLET = Outlet(
    name=NAME,
    label=LABEL,
    unit="characters",
    limit=300,
    count=count,
    publish=publish,
    can_find_out=True,
    needs_account=True,
    pieces=pieces,
    per_minute=20,
    numbers=numbers,
    numbers_after=EVER_MORE_SELDOM,
)
