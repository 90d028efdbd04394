"""Verbs on posts. Each move is one conditional write on the states that it may leave.

A move that finds the post in another state changes nothing and raises WrongState, whose sentence
says what it found.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pynamodb.expressions.condition import Condition

from integrations import connections
from integrations.outlets import OUTLETS, text_length, text_limit
from products import catalogue, secrecy
from products.states import FINAL, TOLD, TROUBLE, WORKING, State, check_allowed
from products.tables import Post
from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict, change, put_new, shard_of
from slothpost_site.moments import as_key, from_ms, to_ms

MACHINE = "slothpost"
MOST_OTHERS = 100


class WrongState(Conflict):
    """The post is not in a state that this move may leave; `found` is the post as it is now."""

    def __init__(self, found: Post) -> None:
        self.found = found
        super().__init__(f"Nothing was changed: this post {describe_state(found)}.")


class TextRefused(Exception):
    """The text cannot be sent as it is; `str()` says why and what to do."""


# -- finding ---------------------------------------------------------------------------------------


def key_of(slot_at: float, product_id: str, outlet: str) -> str:
    """The sort key that makes a slot's post unique."""
    return f"{as_key(slot_at)}#{product_id}#{outlet}"


def find(user_id: str, slot_at: float, product_id: str, outlet: str) -> Post | None:
    return dynamo.get(Post, user_id, key_of(slot_at, product_id, outlet))


def others_of_outlet(post: Post) -> list[Post]:
    """The outlet's other posts, newest slot first, MOST_OTHERS at most. Those that may still
    change, and the one begun before this, are as they are now, not as an index has them."""
    listed = Post.of_outlet.query(post.product_outlet, scan_index_forward=False, limit=MOST_OTHERS)
    found = {other.key: other for other in listed}
    unsure = {key for key, other in found.items() if other.state not in FINAL}
    if post.previous_slot_at is not None:
        unsure.add(key_of(post.previous_slot_at, post.product_id, post.outlet))
    for key in unsure - {post.key}:
        if current := dynamo.get(Post, post.user_id, key):
            found[key] = current
    found.pop(post.key, None)
    return sorted(found.values(), key=lambda other: -other.slot_at)


def text_hash(post: Post) -> str:
    """What an approval binds to: the outlet, its account and the text to the byte."""
    seen = json.dumps([post.outlet, post.account or "", post.text or ""], ensure_ascii=True)
    return hashlib.sha256(seen.encode()).hexdigest()


def describe_state(post: Post) -> str:
    """The post's state in words, with the time of its last move: "was approved at 9:02 (UTC)"."""
    words = {
        State.DRAFTING: "is being written since",
        State.AWAITING_REVIEW: "is waiting for review since",
        State.APPROVED: "was already approved at",
        State.PUBLISHING: "is being published since",
        State.PUBLISHED: "was already published at",
        State.REJECTED: "was already rejected at",
        State.SKIPPED: "was skipped at",
        State.SUPERSEDED: "was replaced by a newer draft at",
        State.MISSED: "missed its time at",
        State.FAILED: "failed at",
        State.UNCONFIRMED: "is unconfirmed since",
    }
    zone = post.timezone or "UTC"
    moved = from_ms(json.loads(str(post.history[-1]))["at"]).astimezone(ZoneInfo(zone))
    return f"{words[State(post.state)]} {moved:%-H:%M on %-d %B} ({zone})"


# -- the machine's verbs ---------------------------------------------------------------------------


def begin(
    user_id: str,
    product_id: str,
    outlet: str,
    slot_at: int,
    *,
    work_at: int,
    previous_slot_at: int | None,
    missed_slots: Iterable[int],
    now: datetime,
) -> bool:
    """Put the slot's post, to be written from `work_at` on. False if it is there already."""
    return put_new(
        Post(
            user_id=user_id,
            key=key_of(slot_at, product_id, outlet),
            product_id=product_id,
            outlet=outlet,
            product_outlet=f"{product_id}#{outlet}",
            slot_at=slot_at,
            state=State.DRAFTING,
            review_user_id=user_id,
            work_status=shard_of("active", product_id),
            work_at=work_at,
            previous_slot_at=previous_slot_at,
            missed_slots=list(missed_slots) or None,
            history=[_line(None, State.DRAFTING, MACHINE, "its slot came up", now)],
        )
    )


def fill(post: Post, *, now: datetime, **written: Any) -> None:
    """Give a drafting post its text and evidence and hand it to its owner."""
    _move(post, {State.DRAFTING}, State.AWAITING_REVIEW, now=now, reason=None, **written)


def skip(post: Post, why: str, *, now: datetime, **kept: Any) -> None:
    """End a post that has nothing to tell."""
    _move(post, {State.DRAFTING}, State.SKIPPED, why=why, now=now, reason=why, **kept)


def fail_writing(post: Post, why: str, *, now: datetime) -> None:
    _move(post, {State.DRAFTING}, State.FAILED, why=why, now=now, reason=why)


def supersede(post: Post, why: str, *, now: datetime) -> None:
    """A newer draft takes over an unreviewed one and its stories."""
    _move(post, {State.AWAITING_REVIEW}, State.SUPERSEDED, why=why, now=now, reason=why)


def renew(post: Post, *, lease: str, until: datetime) -> None:
    """Take over a post whose lease lapsed, still publishing."""
    postpone(post, until=until, lease=lease)


def claim(post: Post, *, lease: str, until: datetime, now: datetime) -> None:
    """Take an approved post for publishing until the lease ends."""
    try:
        _move(
            post,
            {State.APPROVED},
            State.PUBLISHING,
            now=now,
            condition=(Post.work_at == post.work_at) & (Post.approved_hash == post.approved_hash),
            work_at=to_ms(until),
            lease=lease,
            claimed_at=to_ms(now),
        )
    except WrongState as found:
        # A repeated request of our own finds its first try applied: then the claim is ours.
        if found.found.lease != lease:
            raise
        post.deserialize(found.found.serialize())


def keep(post: Post, kept: Mapping[str, Any]) -> None:
    """Store what tells later what became of this attempt, before its outlet is called. Raises
    Conflict when somebody else took the post over: then it is not to be called."""
    change(
        post,
        (Post.state == State.PUBLISHING) & (Post.lease == post.lease),
        kept={**(post.kept or {}), **kept},
    )


def mark_published(
    post: Post,
    *,
    permalink: str,
    external_id: str,
    now: datetime,
    look_at: datetime | None = None,
    **known: Any,
) -> None:
    """It is out; at `look_at` its outlet is asked what people made of it."""
    _outcome(
        post,
        State.PUBLISHED,
        now=now,
        permalink=permalink or None,
        external_id=external_id or None,
        published_at=to_ms(now),
        reason=None,
        work_at=to_ms(look_at) if look_at else None,
        **known,
    )


def look_again(post: Post, why: str, *, at: datetime) -> None:
    """Nobody knows yet whether it is out: still publishing, to be found out at `at`."""
    change(
        post,
        (Post.state == State.PUBLISHING) & (Post.lease == post.lease),
        work_at=to_ms(at),
        attempts=int(post.attempts) + 1,
        reason=why,
    )


def put_back(post: Post, why: str, *, retry_at: datetime, now: datetime) -> None:
    """Provably not sent: approved again, to be tried at `retry_at`."""
    _outcome(
        post,
        State.APPROVED,
        why=why,
        now=now,
        work_at=to_ms(retry_at),
        attempts=int(post.attempts) + 1,
        reason=why,
    )


def mark_failed(post: Post, why: str, *, now: datetime, held_for: str = "") -> None:
    """It was refused; `held_for` is the account that has to be connected again first."""
    _outcome(post, State.FAILED, why=why, now=now, reason=why, held_for=held_for or None)


def mark_unconfirmed(post: Post, why: str, *, now: datetime) -> None:
    """It may be out and it may not: only a person, or the outlet, can tell."""
    _outcome(post, State.UNCONFIRMED, why=why, now=now, reason=why)


def miss(post: Post, why: str, *, now: datetime, held_for: str = "") -> None:
    """An approved post whose time went by unsent: held until its owner decides."""
    _move(
        post,
        {State.APPROVED},
        State.MISSED,
        why=why,
        now=now,
        condition=Post.work_at == post.work_at,
        reason=why,
        held_for=held_for or None,
    )


def note_told(post: Post) -> None:
    """Its owner was told what state it is in: a machine has nothing left to do."""
    change(
        post,
        (Post.state == post.state) & (Post.work_at == post.work_at),
        work_status=None,
        work_at=None,
    )


def keep_numbers(
    post: Post, numbers: Mapping[str, int], *, now: datetime, next_at: datetime | None
) -> None:
    """What people made of a published post, as its outlet says now."""
    change(
        post,
        (Post.state == State.PUBLISHED) & (Post.work_at == post.work_at),
        numbers=dict(numbers) or post.numbers,
        numbers_at=to_ms(now) if numbers else post.numbers_at,
        numbers_read=int(post.numbers_read) + 1,
        work_status=shard_of("active", post.product_id) if next_at else None,
        work_at=to_ms(next_at) if next_at else None,
    )


def postpone(post: Post, *, until: datetime, **kept: Any) -> None:
    """Look at a working post again later; its state stays."""
    change(
        post,
        (Post.state == post.state) & (Post.work_at == post.work_at),
        work_at=to_ms(until),
        **kept,
    )


# -- the person's verbs ----------------------------------------------------------------------------


def approve(post: Post, *, seen: str, send_at: datetime | None, now: datetime, by: str) -> None:
    """Let a tick publish exactly the text that was seen, from `send_at` on.

    `seen` is the `text_hash` of the page that the person looked at. `send_at` None leaves the
    time to the plan: the outlet's next slot. Raises TextRefused when the text changed since, is
    empty, is too long or holds what must not get out, and WrongState when the post is no longer
    waiting.
    """
    if post.state not in _DECIDABLE:
        raise _wrong_state(post)
    if seen != text_hash(post):
        raise TextRefused("The text changed after you opened this page: read it again first.")
    check_text(post.outlet, post.text or "", post)
    _check_secrecy(post)
    _move(
        post,
        _DECIDABLE,
        State.APPROVED,
        by=by,
        now=now,
        condition=(Post.text == post.text) & dynamo.unchanged(Post.account, post.account),
        work_at=to_ms(send_at or now),
        send_at=to_ms(send_at) if send_at else None,
        approved_hash=seen,
        approved_at=to_ms(now),
        attempts=0,
        reason=None,
        held_for=None,
    )


def take_back(post: Post, *, now: datetime, by: str, why: str = "taken back") -> None:
    """Return an approved post to review, as long as nobody began to send it."""
    _move(
        post,
        {State.APPROVED},
        State.AWAITING_REVIEW,
        why=why,
        by=by,
        now=now,
        approved_hash=None,
        approved_at=None,
        send_at=None,
    )


def take_back_all(user_id: str, product_id: str, source: str, *, now: datetime, why: str) -> int:
    """Return a product's approved posts that rest on a source to review; how many there were."""
    count = 0
    for post in Post.open_for.query(user_id):
        rests = any(item.get("source") == source for item in post.evidence or [])
        if post.product_id != product_id or post.state != State.APPROVED or not rests:
            continue
        try:
            take_back(post, now=now, by=MACHINE, why=why)
            count += 1
        except WrongState:  # its owner or the tick was quicker
            continue
    return count


def edit(post: Post, text: str, *, seen: str, now: datetime, by: str) -> None:
    """Replace the text that was seen. An approved post returns to review."""
    text = text.replace("\r\n", "\n").strip()
    check_text(post.outlet, text)
    if post.state not in _EDITABLE:
        raise _wrong_state(post)
    if seen != text_hash(post):
        raise TextRefused("The text changed after you opened this page: compare and save again.")
    same_text = dynamo.unchanged(Post.text, post.text)
    if post.state == State.APPROVED:
        _move(
            post,
            {State.APPROVED},
            State.AWAITING_REVIEW,
            why="edited after approval",
            by=by,
            now=now,
            condition=same_text,
            text=text,
            approved_hash=None,
            approved_at=None,
            send_at=None,
        )
        return
    line = _line(State(post.state), State(post.state), by, "edited", now)
    try:
        change(
            post,
            same_text & (Post.state == post.state),
            Post.history.set(Post.history.append([line])),
            text=text,
        )
    except Conflict as conflict:
        raise _wrong_state(post) from conflict


def reject(post: Post, reason: str, *, now: datetime, by: str) -> None:
    """Drop the post and its stories for this outlet, for a reason in words."""
    _move(post, _DECIDABLE, State.REJECTED, why=reason, by=by, now=now, reason=reason)


def rewrite(post: Post, *, now: datetime, by: str) -> None:
    """Send the post back to the writer for another try on the same stories."""
    _move(
        post,
        _DECIDABLE,
        State.DRAFTING,
        why="another try was asked for",
        by=by,
        now=now,
        work_at=to_ms(now),
        approved_hash=None,
        approved_at=None,
        send_at=None,
        variation=int(post.variation) + 1,
        attempts=0,
    )


def confirm_published(post: Post, *, permalink: str, now: datetime, by: str) -> None:
    """The person says that it is out."""
    _move(
        post,
        {State.MISSED, State.FAILED, State.UNCONFIRMED},
        State.PUBLISHED,
        why="its owner said so",
        by=by,
        now=now,
        permalink=permalink or None,
        published_at=to_ms(now),
        reason=None,
    )


# -- staff's verbs ---------------------------------------------------------------------------------


def retry(post: Post, *, now: datetime, by: str) -> None:
    """Try again what failed: send the text that its owner approved, or write it if there is none.

    Raises TextRefused where there is a text that its owner never approved: only they can.
    """
    if not post.text:
        rewrite(post, now=now, by=by)
        return
    if post.approved_hash != text_hash(post):
        raise TextRefused("Its owner has not approved this text: only they can.")
    _move(
        post,
        {State.MISSED, State.FAILED, State.UNCONFIRMED},
        State.APPROVED,
        why="tried again",
        by=by,
        now=now,
        work_at=to_ms(now),
        send_at=to_ms(now),
        attempts=0,
        reason=None,
    )


def release(post: Post, *, now: datetime) -> None:
    """End the lease of a post that is stuck in publishing: the next tick recovers it."""
    if post.state != State.PUBLISHING:
        raise _wrong_state(post)
    postpone(post, until=now)


_DECIDABLE = frozenset({State.AWAITING_REVIEW, State.MISSED, State.FAILED, State.UNCONFIRMED})
_EDITABLE = _DECIDABLE | {State.APPROVED}


def check_text(outlet: str, text: str, post: Post | None = None) -> None:
    """Raise TextRefused unless the outlet can carry this text, for the account of `post` if that
    has a limit of its own."""
    if not text.strip():
        raise TextRefused("There is no text yet: write one, or reject the post.")
    length, limit = text_length(outlet, text), limit_for(post) if post else text_limit(outlet)
    label = OUTLETS[outlet].label
    if length > limit:
        raise TextRefused(f"{label} takes {limit} characters and this has {length}: shorten it.")
    if why := OUTLETS[outlet].objection(text):
        raise TextRefused(why)


def limit_for(post: Post) -> int:
    """The most that the post's account takes, in its outlet's unit."""
    outlet = OUTLETS[post.outlet]
    if outlet.limit_of is None or not post.account:
        return outlet.limit
    account = connections.find(post.user_id, post.account)
    return outlet.limit_of(account) if account else outlet.limit


def _check_secrecy(post: Post) -> None:
    """Raise TextRefused if the text holds a secret, or what its product's owner never mentions."""
    product = catalogue.find(post.user_id, post.product_id)
    words = secrecy.kept_words(product.never_mention if product else None)
    if why := secrecy.why_kept(post.text or "", words):
        raise TextRefused(why)


# -- the one move ----------------------------------------------------------------------------------


def _outcome(post: Post, to: State, *, now: datetime, **rest: Any) -> None:
    """A move out of `publishing`, by the holder of the lease alone."""
    _move(
        post,
        {State.PUBLISHING},
        to,
        now=now,
        condition=Post.lease == post.lease,
        lease=None,
        **rest,
    )


def _move(
    post: Post,
    origins: Set[State],
    to: State,
    *,
    now: datetime,
    by: str = MACHINE,
    why: str = "",
    condition: Condition | None = None,
    work_at: int | None = None,
    **values: Any,
) -> None:
    """The one write behind every verb: the state, the indexes that depend on it, and a line of
    history, on condition that the post still is in the state that was read, one of `origins`."""
    for origin in origins:
        check_allowed(origin, to)
    if State(post.state) not in origins:
        raise _wrong_state(post)
    if to in TOLD:
        work_at = to_ms(now)  # its owner is to be told
    if to in WORKING and work_at is None:
        raise ValueError(f"{to} needs a time to work at: a machine has the next step")
    guard = Post.state == post.state
    line = _line(State(post.state), to, by, why, now)
    try:
        change(
            post,
            guard & condition if condition is not None else guard,
            Post.history.set(Post.history.append([line])),
            state=to,
            review_user_id=None if to in FINAL else post.user_id,
            work_status=shard_of("active", post.product_id) if work_at is not None else None,
            work_at=work_at,
            trouble_status="open" if to in TROUBLE else None,
            trouble_at=to_ms(now) if to in TROUBLE else None,
            **values,
        )
    except Conflict as conflict:
        raise _wrong_state(post) from conflict


def _wrong_state(post: Post) -> Conflict:
    found = dynamo.get(Post, post.user_id, post.key)
    return WrongState(found) if found else Conflict("This post is gone.")


def _line(origin: State | None, to: State, by: str, why: str, now: datetime) -> str:
    line = {"at": to_ms(now), "from": origin, "to": to, "by": by, "why": why}
    return json.dumps({name: value for name, value in line.items() if value})
