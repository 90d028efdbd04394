"""Verbs on activity: what happened, told once, and whether it is a story."""

from collections.abc import Iterable
from datetime import datetime

from integrations.deliveries import Taken
from integrations.sources.base import Event, Gone, Received, Renamed
from products import catalogue
from products.tables import Activity, Fact, Product
from slothpost_site.dynamo import change, get, put_new
from slothpost_site.moments import as_key, to_ms
from slothpost_site.paging import Page, read_page

MOST_STORIES = 300

FOLLOWERS = {"github": Product.by_github_repo, "vercel": Product.by_vercel_project}
FOLLOWS = {"github": "github_repo_id", "vercel": "vercel_project_id"}
LINKS = {"github": catalogue.follow_repository, "vercel": catalogue.follow_vercel_project}


# -- taking ----------------------------------------------------------------------------------------


def take(source: str, received: Received, now: datetime) -> list[Taken]:
    """Hand a delivery to every product that follows what it is about. Repeating it adds nothing."""
    if not received.follow_id:
        return []
    followers = FOLLOWERS[source].query(received.follow_id)
    return [
        Taken(follower.user_id, follower.product_id, _take_for(follower, source, received, now))
        for follower in followers
    ]


def _take_for(follower: Product, source: str, received: Received, now: datetime) -> str:
    """What became of the delivery for one product, in words."""
    if received.upkeep is not None:
        return _keep_up(follower, source, received, received.upkeep)
    if not received.events:
        return received.note or "nothing to record"
    stories = ignored = known = 0
    for event in received.events:
        if not record(follower.product_id, event, now):
            known += 1
        elif event.ignored:
            ignored += 1
        else:
            stories += 1
    counts = {
        "story": stories,
        "ignored": ignored,
        "known already": known,
    }
    parts = [f"{count} {_plural(what, count)}" for what, count in counts.items() if count]
    if len(received.events) == 1 and received.events[0].ignored and ignored:
        return f"ignored: {received.events[0].ignored}"
    return ", ".join(parts)


def _plural(what: str, count: int) -> str:
    return "stories" if what == "story" and count > 1 else what


def _keep_up(follower: Product, source: str, received: Received, upkeep: Renamed | Gone) -> str:
    """Rename or end the link, if the product still has it: the index may lag behind."""
    product = catalogue.find(follower.user_id, follower.product_id)
    if product is None or getattr(product, FOLLOWS[source]) != received.follow_id:
        return "no longer followed"
    if isinstance(upkeep, Renamed):
        LINKS[source](product, received.follow_id, upkeep.name)
        return f"now called {upkeep.name}"
    LINKS[source](product, None, None)
    return f"no longer followed: {upkeep.reason}"


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
