"""The second half of the tick: which posts need a machine now?

To write, to publish, to try again, or to recover from a lease that lapsed. Between the claim and
the outcome stands the outlet's call and nothing else. What is neither clearly sent nor clearly
refused is never sent again by code.
"""

import logging
import random
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from integrations import connections, turns
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import OUTLETS
from integrations.outlets.base import Approved, Outlet
from integrations.tables import Connection
from products import catalogue, posting, posts, spending
from products.states import TOLD, State
from products.tables import Post, Product, WorkIndex
from scheduling import astray, results, ticks, writing
from scheduling.plans import plan_of
from scheduling.ticks import TickReport
from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict, StoreError
from slothpost_site.moments import from_ms, to_ms

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
MOST_LOOKS = 6
LOOK = "It may be out: look, then say which."
BROKE_OFF = "The call broke off."
MOST_ATTEMPTS = 3
GIVE_UP_AFTER = timedelta(days=1)


def run_due_posts(now: datetime) -> TickReport:
    """Do the next step of every post whose time to be worked on has come, and tell the owners of
    those that went astray, also a moment ago."""
    gone: list[Post] = []
    with ticks.measured() as report:
        ticks.work_through(
            report,
            Post,
            WorkIndex.Meta.index_name,
            Post.work_at <= to_ms(now),
            lambda entry: _run_one(entry, gone, now),
        )
        # Here, and not in the threads above: Django's database is asked who owns them.
        for post in gone:
            if not _tell(post, now):
                report.done -= 1
                report.failed += 1
    logger.info("due posts", extra={"report": vars(report)})
    return report


def _tell(post: Post, now: datetime) -> bool:
    try:
        return astray.tell(post, now)
    except Conflict:  # another tick tells it, or its owner was quicker
        return True


def _run_one(entry: dict[str, Any], gone: list[Post], now: datetime) -> bool:
    """The index nominates, the post as it is now decides; whatever is wrong stays with it. Adds to
    `gone` those whose owner is to be told."""
    ids = {"user_id": entry["userId"]["S"], "post": entry["slotAt#productId#outlet"]["S"]}
    post = None
    try:
        post = dynamo.get(Post, ids["user_id"], ids["post"])
        if post is None or post.work_at is None or post.work_at > to_ms(now):
            return True
        if post.state not in TOLD:
            _STEPS[State(post.state)](post, now)
        if post.state in TOLD:
            gone.append(post)
    except Conflict:
        logger.info("somebody else was quicker", extra=ids)
    except StoreError:
        # Nothing is wrong with the post: the next minute tries again.
        logger.exception("the store failed", extra=ids)
        return False
    except Exception:  # whatever it is, the other posts go on and its owner sees it
        logger.exception("a due post failed", extra=ids)
        if post is not None:
            _count_failure(post, now)
        return False
    return True


def _count_failure(post: Post, now: datetime) -> None:
    """Try again a little later; after the third failure the post is its owner's to decide."""
    if post.work_at is None or post.work_at > to_ms(now):
        return  # its next step has a time already
    attempts = int(post.attempts) + 1
    try:
        if attempts < MOST_ATTEMPTS:
            posts.postpone(post, until=now + timedelta(minutes=attempts), attempts=attempts)
        elif post.state == State.DRAFTING:
            posts.fail_writing(
                post, "This draft could not be written: write it yourself or try again.", now=now
            )
        elif post.state == State.APPROVED:
            posts.miss(post, "It could not be sent. Try again, or reject it.", now=now)
    except (Conflict, StoreError):
        logger.exception("not counted", extra={"post": post.key})


# -- publishing ------------------------------------------------------------------------------------


def _publish(post: Post, now: datetime) -> None:
    """Send an approved post, exactly as approved, or say why not."""
    product = catalogue.find(post.user_id, post.product_id)
    if product is None:
        posts.miss(post, "Its product is gone.", now=now)
        return
    if post.send_at is None:
        _wait_for_next_slot(post, product, now)
        return
    if why := _why_not_as_approved(post, product):
        posts.take_back(post, now=now, by=posts.MACHINE, why=why)
        return
    outlet = OUTLETS[post.outlet]
    account = posting.account_of(product, post.outlet) if outlet.needs_account else None
    if held := _why_held(post, product, outlet, account, now):
        posts.miss(post, held.reason, now=now, held_for=held.account)
        return
    if account is not None and (turn := turns.take(account, outlet.per_minute, now)):
        posts.postpone(post, until=turn)
        return
    posts.claim(post, lease=secrets.token_hex(8), until=now + LEASE, now=now)
    _send(post, _approved(post, product, account), outlet, now)


def _why_not_as_approved(post: Post, product: Product) -> str:
    """Why this is not what its owner approved, or ""."""
    if posts.text_hash(post) != post.approved_hash:
        return "its text is not the one that was approved"
    if (post.account or "") != posting.key_of(product, post.outlet):
        return "its account is not the one that it was approved for"
    return ""


@dataclass(frozen=True)
class Held:
    """Why a post waits for its owner, and the account that has to be mended first."""

    reason: str
    account: str = ""


def _why_held(
    post: Post, product: Product, outlet: Outlet, account: Connection | None, now: datetime
) -> Held | None:
    """Why this post is held for its owner instead of sent, or None."""
    if outlet.publish is None or (outlet.needs_account and not post.account):
        return Held(
            f"Yours to post: no {outlet.label} account is connected to this product. Copy the"
            " text, post it, and mark it as published; or connect an account, and send it."
        )
    if outlet.needs_account and account is None:
        gone = f"Its {outlet.label} account is not connected any more: connect it, and send it."
        return Held(gone, post.account)
    if account is not None and not account.works:
        return Held(str(account.broken), account.key)
    if late := _lateness(post, product, now):
        return Held(late)
    return Held(over) if (over := spending.why_over(product, post, now)) else None


def _lateness(post: Post, product: Product, now: datetime) -> str | None:
    """How late this is, if that is more than its product allows."""
    late = now - from_ms(post.work_at)  # of a second try, the time that it was planned for
    if late <= timedelta(minutes=int(product.late_limit_minutes)):
        return None
    return (
        f"SlothPost was not running at its time and came {late / timedelta(hours=1):.1f} hours"
        " late, more than this product allows. Send it now, or reject it."
    )


def _send(post: Post, approved: Approved, outlet: Outlet, now: datetime) -> None:
    """Call the outlet and write its answer; nothing else stands between the two.

    Raises what the outlet did not classify, once its outcome is written: unknown.
    """
    if outlet.publish is None:
        raise ValueError(f"{outlet.name} is posted by hand")
    try:
        published = outlet.publish(approved, now)
    except Conflict:
        raise  # somebody else took the post over, before anything was sent
    except Failure as failure:
        _failed(post, approved, failure, outlet, now)
    except StoreError:
        raise  # nor could the outcome be written: it is found out when the lease lapses
    except Exception as error:
        # An error that the outlet did not classify says nothing about what was sent.
        _unknown(post, outlet, BROKE_OFF, now)
        raise error
    else:
        price = outlet.price(approved.text) if outlet.price else None
        posts.mark_published(
            post,
            permalink=published.permalink,
            external_id=published.external_id,
            now=now,
            look_at=results.first_look(outlet, published, now),
            price=str(price.amount) if price else None,
        )


def _failed(
    post: Post, approved: Approved, failure: Failure, outlet: Outlet, now: datetime
) -> None:
    """Write what a failure means. In a repeat only a refusal is sure: everything else leaves open
    what became of the attempt before."""
    account = approved.account
    if isinstance(failure, NeedsReconnect) and account is not None:
        connections.mark_broken(account, failure.reason, now)
    if isinstance(failure, TryLater) and failure.after and account is not None:
        turns.limit(account, now + failure.after)
    if isinstance(failure, Refused):
        posts.mark_failed(post, failure.reason, now=now)
    elif isinstance(failure, Unknown) or approved.is_repeat:
        _unknown(post, outlet, failure.reason, now)
    elif isinstance(failure, TryLater):
        _try_later(post, failure, now)
    else:
        key = account.key if account else ""
        posts.mark_failed(post, failure.reason, now=now, held_for=key)


def _unknown(post: Post, outlet: Outlet, reason: str, now: datetime) -> None:
    """Ask the outlet again where it can be asked, for a while; then its owner decides."""
    attempts = int(post.attempts)
    if outlet.can_find_out and attempts < MOST_LOOKS:
        posts.look_again(post, reason, at=now + timedelta(minutes=2**attempts))
    else:
        posts.mark_unconfirmed(post, f"{reason} {LOOK}", now=now)


def _try_later(post: Post, later: TryLater, now: datetime) -> None:
    """Back off from a minute on, doubling, for a day; what the outlet asks for comes first."""
    wait = later.after or timedelta(minutes=min(2 ** int(post.attempts), 120))
    wait = max(wait, timedelta(minutes=1))
    retry_at = now + wait * random.uniform(1, 1.2)  # noqa: S311  spreads retries, guards nothing
    if retry_at - from_ms(post.send_at) > GIVE_UP_AFTER:
        posts.mark_failed(post, f"A day of tries did not get through: {later}", now=now)
    else:
        posts.put_back(post, str(later), retry_at=retry_at, now=now)


def _wait_for_next_slot(post: Post, product: Product, now: datetime) -> None:
    """Give a post that was approved late the time of its outlet's next slot."""
    plan = plan_of(product)
    mine = type(plan)(plan.timezone, tuple(s for s in plan.slots if s.outlet == post.outlet))
    slot_at = mine.next_slot_at(now)
    if slot_at is None:
        posts.miss(post, "The plan has no coming slot for it. Send it now, or reject it.", now=now)
        return
    posts.postpone(post, until=slot_at, send_at=to_ms(slot_at))


# -- recovering ------------------------------------------------------------------------------------


def _recover(post: Post, now: datetime) -> None:
    """Nobody knows what became of the last attempt: its answer was lost, or whoever made it died
    between the call and its outcome."""
    product = catalogue.find(post.user_id, post.product_id)
    outlet = OUTLETS[post.outlet]
    if product is None or not outlet.can_find_out or _lateness(post, product, now):
        posts.mark_unconfirmed(post, f"SlothPost stopped while sending this. {LOOK}", now=now)
        return
    account = connections.find(post.user_id, post.account) if post.account else None
    if outlet.needs_account and (account is None or not account.works):
        why = account.broken if account else "Its account is not connected any more."
        posts.mark_unconfirmed(post, f"{why} {LOOK}", now=now)
        return
    # Still publishing, so that nobody takes back meanwhile what may be out already.
    posts.renew(post, lease=secrets.token_hex(8), until=now + LEASE)
    _send(post, _approved(post, product, account, is_repeat=True), outlet, now)


def _approved(
    post: Post, product: Product, account: Connection | None, *, is_repeat: bool = False
) -> Approved:
    return Approved(
        user_id=post.user_id,
        product_id=post.product_id,
        product_name=product.name,
        product_link=product.link or "",
        slug=product.slug,
        key=post.key,
        slot_at=from_ms(post.slot_at),
        text=post.text or "",
        account=account,
        approved_at=from_ms(post.approved_at) if post.approved_at else None,
        claimed_at=from_ms(post.claimed_at) if post.claimed_at else None,
        is_repeat=is_repeat,
        kept=post.kept or {},
        keep=lambda kept: posts.keep(post, kept),
    )


_STEPS = {
    State.DRAFTING: writing.write,
    State.APPROVED: _publish,
    State.PUBLISHING: _recover,
    State.PUBLISHED: results.look,
}
