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
    if isinstance(received.upkeep, Renamed):
        return _rename(follower, source, received.upkeep)
    if isinstance(received.upkeep, Gone):
        return _unfollow(follower, source, received.upkeep)
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


def _rename(follower: Product, source: str, renamed: Renamed) -> str:
    product = catalogue.find(follower.user_id, follower.product_id)
    if product is None:
        return "the product is gone"
    if source == "github":
        catalogue.follow_repository(product, product.github_repo_id, renamed.name)
    else:
        catalogue.follow_vercel_project(product, product.vercel_project_id, renamed.name)
    return f"now called {renamed.name}"


def _unfollow(follower: Product, source: str, gone: Gone) -> str:
    product = catalogue.find(follower.user_id, follower.product_id)
    if product is None:
        return "the product is gone"
    if source == "github":
        catalogue.follow_repository(product, None, None)
    else:
        catalogue.follow_vercel_project(product, None, None)
    return f"no longer followed: {gone.reason}"


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


def stories_since(
    product_id: str, since: float, *, carried: Iterable[str], told: Iterable[str]
) -> list[Activity]:
    """What became a story after `since` (epoch ms), and what is `carried` over from before, but
    not what is `told`; in the order in which it happened, the newest MOST_STORIES at most.

    When it became one, not when it happened: what arrives late is as new as anything.
    """
    newest = Activity.stories.query(
        product_id,
        range_key_condition=Activity.story_at > since,
        scan_index_forward=False,
        limit=MOST_STORIES,
    )
    stories = {item.key: item for item in newest}
    for key in set(carried) - set(stories):
        item = find(product_id, key)
        if item is not None and item.story_at is not None:
            stories[key] = item
    return [stories[key] for key in sorted(set(stories) - set(told))]
