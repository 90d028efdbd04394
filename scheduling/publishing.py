"""The second half of the tick: which posts need a machine now?

To write, to publish, to try again, or to recover from a lease that lapsed. Between the claim and
the outcome stands the outlet's call and nothing else. What is neither clearly sent nor clearly
refused is never sent again by code.
"""

import logging
import random
import secrets
from datetime import datetime, timedelta
from typing import Any

from integrations.errors import NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import OUTLETS
from integrations.outlets.base import Approved, Outlet
from products import catalogue, posts
from products.states import State
from products.tables import Post, Product, WorkIndex
from scheduling import ticks, writing
from scheduling.plans import plan_of
from scheduling.ticks import TickReport
from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict, StoreError
from slothpost_site.moments import from_ms, to_ms

logger = logging.getLogger(__name__)

LEASE = timedelta(minutes=2)
MOST_ATTEMPTS = 3
GIVE_UP_AFTER = timedelta(days=1)


def run_due_posts(now: datetime) -> TickReport:
    """Do the next step of every post whose time to be worked on has come."""
    with ticks.measured() as report:
        ticks.work_through(
            report,
            Post,
            WorkIndex.Meta.index_name,
            Post.work_at <= to_ms(now),
            lambda entry: _run_one(entry, now),
        )
    logger.info("due posts", extra={"report": vars(report)})
    return report


def _run_one(entry: dict[str, Any], now: datetime) -> bool:
    """The index nominates, the post as it is now decides; whatever is wrong stays with it."""
    ids = {"user_id": entry["userId"]["S"], "post": entry["slotAt#productId#outlet"]["S"]}
    post = None
    try:
        post = dynamo.get(Post, ids["user_id"], ids["post"])
        if post is None or post.work_at is None or post.work_at > to_ms(now):
            return True
        _STEPS[State(post.state)](post, now)
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
    outlet = OUTLETS[post.outlet]
    if reason := _why_not_by_itself(post, product, outlet, now):
        posts.miss(post, reason, now=now)
        return
    if posts.text_hash(post) != post.approved_hash:
        posts.take_back(
            post, now=now, by=posts.MACHINE, why="its text is not the one that was approved"
        )
        return
    approved = _approved(post, product)
    posts.claim(post, lease=secrets.token_hex(8), until=now + LEASE, now=now)
    _send(post, approved, outlet, now)


def _why_not_by_itself(post: Post, product: Product, outlet: Outlet, now: datetime) -> str | None:
    """Why this post is held for its owner instead of sent, or None."""
    if outlet.publish is None:
        return (
            f"Yours to post: SlothPost cannot post to {outlet.label} yet. Copy the text,"
            " post it, and mark it as published."
        )
    return _lateness(post, product, now)


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
    """The outlet's call and its outcome; the post is ours until the lease ends."""
    if outlet.publish is None:
        raise ValueError(f"{outlet.name} cannot publish")
    try:
        published = outlet.publish(approved, now)
    except Refused as refused:
        posts.mark_failed(post, str(refused), now=now)
    except NeedsReconnect as broken:
        posts.mark_failed(post, str(broken), now=now)
    except TryLater as later:
        _try_later(post, later, now)
    except Unknown as unknown:
        posts.mark_unconfirmed(post, str(unknown), now=now)
    except StoreError:
        raise  # nor could the outcome be written: it is found out when the lease lapses
    except Exception as error:
        # An error that the outlet did not classify says nothing about what was sent.
        posts.mark_unconfirmed(
            post, "The call broke off: it may be out. Look before you send it again.", now=now
        )
        raise error
    else:
        posts.mark_published(
            post, permalink=published.permalink, external_id=published.external_id, now=now
        )


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
    """The lease lapsed: whoever held it died between the call and its outcome."""
    product = catalogue.find(post.user_id, post.product_id)
    outlet = OUTLETS[post.outlet]
    if product is None or not outlet.can_find_out or _lateness(post, product, now):
        posts.mark_unconfirmed(
            post,
            "SlothPost stopped while sending this: it may be out. Look, then say which.",
            now=now,
        )
        return
    # Still publishing, so that nobody takes back meanwhile what may be out already.
    posts.renew(post, lease=secrets.token_hex(8), until=now + LEASE)
    _send(post, _approved(post, product), outlet, now)


def _approved(post: Post, product: Product) -> Approved:
    return Approved(
        user_id=post.user_id,
        product_id=post.product_id,
        product_name=product.name,
        product_link=product.link or "",
        slug=product.slug,
        key=post.key,
        slot_at=from_ms(post.slot_at),
        text=post.text or "",
    )


_STEPS = {State.DRAFTING: writing.write, State.APPROVED: _publish, State.PUBLISHING: _recover}
