"""Verbs on activity: what happened, told once, and whether it is a story."""

from collections.abc import Iterable
from datetime import datetime

from integrations.sources.base import Event
from products.tables import Activity, Fact, Product
from slothpost_site.dynamo import change, get, put_new
from slothpost_site.moments import as_key, to_ms
from slothpost_site.paging import Page, read_page

MOST_STORIES = 300

# -- taking ----------------------------------------------------------------------------------------


def record_all(product: Product, events: Iterable[Event], now: datetime) -> str:
    """Write events as activity of a product, and say what they were: "1 story, 2 ignored"."""
    stories = ignored = known = 0
    reason = ""
    for event in events:
        if not record(product.product_id, event, now):
            known += 1
        elif event.ignored:
            ignored += 1
            reason = event.ignored
        else:
            stories += 1
    if (stories, ignored, known) == (0, 1, 0):
        return f"ignored: {reason}"
    counts = {"story": stories, "ignored": ignored, "known already": known}
    return ", ".join(f"{count} {_plural(what, count)}" for what, count in counts.items() if count)


def _plural(what: str, count: int) -> str:
    return "stories" if what == "story" and count > 1 else what


def record(product_id: str, event: Event, now: datetime) -> bool:
    """Write an event as activity of a product. False if this fact is known already.

    The fact keeps the time it was first seen with: two deliveries about one release may name two
    times, and the activity's key must be the same for both.
    """
    fact = Fact(
        product_id=product_id,
        key=f"{event.source}#{event.id}",
        # A commit's clock may be wrong; nothing happened later than now.
        occurred_at=to_ms(min(event.occurred_at, now)),
    )
    if not put_new(fact):
        fact = get(Fact, product_id, fact.key) or fact
    return put_new(
        Activity(
            product_id=product_id,
            key=f"{as_key(fact.occurred_at)}#{event.source}#{event.id}",
            source=event.source,
            kind=event.kind,
            title=event.title,
            body=event.body or None,
            link=event.link or None,
            version=event.version or None,
            author=event.author or None,
            refs=list(event.refs) or None,
            occurred_at=int(fact.occurred_at),
            recorded_at=to_ms(now),
            ignored=event.ignored or None,
            story_at=None if event.ignored else to_ms(now),
        )
    )


# -- reading and judging ---------------------------------------------------------------------------


def find(product_id: str, key: str) -> Activity | None:
    return get(Activity, product_id, key)


def list_for(product_id: str, cursor: str = "") -> Page[Activity]:
    return read_page(Activity, product_id, cursor=cursor)


def make_story(activity: Activity, now: datetime) -> None:
    """Overrule a reason to ignore: tell it."""
    change(
        activity,
        Activity.ignored.exists(),
        ignored=None,
        story_at=to_ms(now),
        overruled=f"was ignored: {activity.ignored}",
    )


def ignore(activity: Activity) -> None:
    """Overrule a story: do not tell it."""
    change(
        activity,
        Activity.ignored.does_not_exist(),
        ignored="you said so",
        story_at=None,
        overruled="was a story",
    )


def stories_since(product_id: str, since: float) -> list[Activity]:
    """What became a story after `since` (epoch ms), in the order in which it happened, the newest
    MOST_STORIES at most.

    When it became one, not when it happened: what arrives late is as new as anything.
    """
    found = Activity.stories.query(
        product_id,
        range_key_condition=Activity.story_at > since,
        scan_index_forward=False,
        limit=MOST_STORIES,
    )
    return sorted(found, key=lambda item: item.key)


def stories_of(product_id: str, keys: Iterable[str]) -> list[Activity]:
    """Those of these activities that are stories still, in the order in which they happened."""
    found = (find(product_id, key) for key in sorted(keys))
    return [item for item in found if item is not None and item.story_at is not None]
