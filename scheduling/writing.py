"""Write a drafting post: the stories since its outlet was last told, as a text for that outlet.

Which stories are new is a chain: each post keeps the time whose stories it had, and what it told.
A post whose predecessor was not decided by its slot takes that one's time and stories over; any
other begins where its predecessor ended.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from integrations.outlets import text_length, text_limit
from integrations.writers import composer
from integrations.writers.base import Brief, Story, Written
from products import activity, catalogue, posts
from products.states import State
from products.tables import Activity, Post, Product
from scheduling.plans import plan_of
from slothpost_site.moments import as_key, from_ms, to_ms

logger = logging.getLogger(__name__)

# A story may be written a moment after the draft that was drawn up to its time.
OVERLAP = timedelta(minutes=10)
LONGEST_CHAIN = 20
ONE_MORE_MINUTE = timedelta(minutes=1)
UNDECIDED = frozenset({State.AWAITING_REVIEW, State.SUPERSEDED, State.DRAFTING})


@dataclass(frozen=True)
class Untold:
    """Where a post's stories begin: after `since` (epoch ms) or `carried`, without `told`."""

    since: int
    told: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()


def write(post: Post, now: datetime) -> None:
    """Fill a drafting post, or end it because there is nothing to tell.

    Raises WrongState when somebody else moved the post meanwhile.
    """
    product = catalogue.find(post.user_id, post.product_id)
    if product is None:
        posts.skip(post, "The product is gone.", now=now)
        return
    if _is_passed_over(post, product, now):
        posts.skip(post, "A newer draft tells its stories.", now=now)
        return
    previous = _previous(post)
    if previous is not None and previous.state == State.DRAFTING and not _is_over(previous, now):
        posts.postpone(post, until=now + ONE_MORE_MINUTE)  # it begins where that one will end
        return
    untold = _own_untold(post) or _untold_after(previous, product, now)
    stories = activity.stories_since(
        product.product_id, untold.since, carried=untold.carried, told=untold.told
    )
    kept = {
        "told_from": untold.since,
        "told_until": to_ms(now),
        "already_told": list(untold.told) or None,
        "product_name": product.name,
        "timezone": plan_of(product).timezone,
    }
    written = _compose(product, post, stories)
    if written is None:
        posts.skip(post, "A quiet week: nothing new since the last draft.", now=now, **kept)
        return
    if previous is not None and previous.state == State.AWAITING_REVIEW and _is_over(previous, now):
        # Raises WrongState when it was decided this very moment: then the stories are counted anew.
        posts.supersede(previous, "A newer draft took over its stories.", now=now)
    told = set(written.evidence)
    posts.fill(
        post,
        now=now,
        text=written.text,
        evidence=[_evidence(story) for story in stories if story.key in told],
        left_over=[story.key for story in stories if story.key not in told] or None,
        **kept,
    )


def _previous(post: Post) -> Post | None:
    if post.previous_slot_at is None:
        return None
    return posts.find(post.user_id, post.previous_slot_at, post.product_id, post.outlet)


def _own_untold(post: Post) -> Untold | None:
    """What this post had before it was sent back for another try."""
    if post.told_from is None:
        return None
    had = [item["key"] for item in post.evidence or []] + (post.left_over or [])
    return Untold(int(post.told_from), tuple(post.already_told or ()), tuple(had))


def _is_over(post: Post, now: datetime) -> bool:
    return bool(post.slot_at <= to_ms(now))


def _is_passed_over(post: Post, product: Product, now: datetime) -> bool:
    """Whether the post comes too late: its slot is over, and a later one has its post begun."""
    begun = (product.drafted_slots or {}).get(post.outlet, [])
    return _is_over(post, now) and max(begun, default="") > as_key(post.slot_at)


def _untold_after(previous: Post | None, product: Product, now: datetime) -> Untold:
    """Where the stories begin for the post that follows `previous`.

    A draft that nobody decided by its slot is taken over with its stories; one whose slot is
    still to come keeps them.
    """
    for _ in range(LONGEST_CHAIN):
        if previous is None:
            return Untold(int(product.created_at))
        if previous.told_from is None:  # never written: look at what came before it
            previous = _previous(previous)
            continue
        if previous.state in UNDECIDED and _is_over(previous, now):
            return _own_untold(previous) or Untold(int(previous.told_from))
        return Untold(
            int(previous.told_until) - int(OVERLAP / timedelta(milliseconds=1)),
            tuple(item["key"] for item in previous.evidence or []),
            tuple(previous.left_over or ()),
        )
    return Untold(int(product.created_at))


def _compose(product: Product, post: Post, stories: list[Activity]) -> Written | None:
    brief = Brief(
        product=product.name,
        link=product.link or "",
        pitch=product.pitch or "",
        audience=product.audience or "",
        voice=product.voice or "",
        outlet=post.outlet,
        stories=tuple(_story(story) for story in stories),
        variation=_variation(post),
        limit=text_limit(post.outlet),
        length=lambda text: text_length(post.outlet, text),
    )
    if not stories and product.quiet_week == "evergreen":
        return composer.evergreen(brief)
    return composer.write(brief)


def _variation(post: Post) -> int:
    """A stable number that differs from slot to slot and from try to try."""
    days = from_ms(post.slot_at).toordinal()
    return days + int(post.variation)


def _story(item: Activity) -> Story:
    return Story(
        key=item.key,
        kind=item.kind,
        title=item.title,
        body=item.body or "",
        link=item.link or "",
        version=item.version or "",
        occurred_at=from_ms(item.occurred_at),
        refs=tuple(item.refs or ()),
        source=item.source,
    )


def _evidence(item: Activity) -> dict[str, Any]:
    """What stays with the post for good of a story that it rests on."""
    return {
        "key": item.key,
        "source": item.source,
        "kind": item.kind,
        "title": item.title,
        "link": item.link or "",
        "occurredAt": int(item.occurred_at),
    }
