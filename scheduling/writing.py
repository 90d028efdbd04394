"""Write a drafting post: the stories that its outlet was not told, as a text for that outlet.

A story belongs to the post that tells it, for as long as that post may go out or has been decided.
A draft that nobody decided by its slot is replaced by the next one, and its stories are free again.
"""

from datetime import datetime, timedelta
from typing import Any

from integrations.outlets import text_length, text_limit
from integrations.writers import composer
from integrations.writers.base import Brief, Story, Written
from products import activity, catalogue, posts
from products.states import State
from products.tables import Activity, Post, Product
from scheduling.plans import plan_of
from slothpost_site.moments import from_ms, to_ms

# What nobody told for so long is no news.
NEWS = timedelta(days=60)
ONE_MORE_MINUTE = timedelta(minutes=1)
HOLDS_NOTHING = frozenset({State.SKIPPED, State.SUPERSEDED})


def write(post: Post, now: datetime) -> None:
    """Fill a drafting post, or end it because there is nothing to tell.

    Raises WrongState when somebody else moved it, or a post that it replaces, meanwhile.
    """
    product = catalogue.find(post.user_id, post.product_id)
    if product is None:
        posts.skip(post, "The product is gone.", now=now)
        return
    others = posts.others_of_outlet(post)
    if any(other.state == State.DRAFTING and other.slot_at < post.slot_at for other in others):
        posts.postpone(post, until=now + ONE_MORE_MINUTE)  # the earlier slot chooses first
        return
    replaced = [other for other in others if _is_replaced(other, post, now)]
    held = [other for other in others if other not in replaced and other.state not in HOLDS_NOTHING]
    stories = _untold(post, product, others, held, now)
    written = _compose(product, post, stories)
    shown = {"product_name": product.name, "timezone": plan_of(product).timezone}
    if written is None:
        why = "A quiet week: nothing new since the last draft."
        posts.skip(post, why, now=now, **shown)
        return
    for other in replaced:
        posts.supersede(other, "A newer draft took over its stories.", now=now)
    told = set(written.evidence)
    evidence = [_evidence(story) for story in stories if story.key in told]
    posts.fill(post, now=now, text=written.text, evidence=evidence, **shown)


def _is_replaced(other: Post, post: Post, now: datetime) -> bool:
    """Whether nobody decided an earlier draft by its slot."""
    earlier = other.slot_at < post.slot_at and other.slot_at <= to_ms(now)
    return bool(earlier and other.state == State.AWAITING_REVIEW)


def _untold(
    post: Post, product: Product, others: list[Post], held: list[Post], now: datetime
) -> list[Activity]:
    """The stories that no other post of the outlet holds, by key or by what they are about.

    A post that is written again while a later one exists keeps to what it told: what is new is the
    later one's.
    """
    own = [item["key"] for item in post.evidence or []]
    if own and any(other.slot_at > post.slot_at for other in others):
        stories = activity.stories_of(post.product_id, own)
    else:
        stories = activity.stories_since(post.product_id, _since(product, others, now))
    items = [item for other in held for item in other.evidence or []]
    keys = {item["key"] for item in items}
    refs = {ref for item in items for ref in item.get("refs", [])}
    return [
        story for story in stories if story.key not in keys and not refs & set(story.refs or [])
    ]


def _since(product: Product, others: list[Post], now: datetime) -> int:
    """From when on stories are looked at: no further back than the posts that are known."""
    since = max(int(product.created_at), to_ms(now - NEWS))
    if len(others) < posts.MOST_OTHERS - 1:
        return since
    return max(since, int(others[-1].slot_at))


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
        "refs": item.refs or [],
    }
