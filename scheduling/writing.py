"""Write a drafting post: the stories that its outlet was not told, as a text for that outlet.

A story belongs to the post that tells it, for as long as that post may go out or has been decided.
A draft that nobody decided by its slot is replaced by the next one, and its stories are free again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from integrations.outlets import text_length
from integrations.sources.noise import told_in
from integrations.writers import composer
from integrations.writers.base import Brief, Story, Written
from products import activity, catalogue, following, posting, posts, secrecy, stories
from products.states import State
from products.stories import Verdict
from products.tables import Activity, Post, Product
from scheduling.plans import plan_of
from slothpost_site.moments import from_ms, to_ms

ONE_MORE_MINUTE = timedelta(minutes=1)
# A first draft waits until the sources were asked, for as long as they may be expected to answer.
FRESH = timedelta(minutes=10)
PATIENCE = timedelta(minutes=15)
HOLDS_NOTHING = frozenset({State.SKIPPED, State.SUPERSEDED})
QUIET = "A quiet week: nothing new since the last draft."
PRIVATE = (
    "What is new is private, and no post may be written from it before you say so: allow it"
    " on the product's page, beside its source."
)
UNSEEN = (
    "What is new is private, and the account that shows it does not work: see Connections, and"
    " connect it again."
)


@dataclass(frozen=True)
class Told:
    """What other posts of the outlet hold, by the keys and the refs of their evidence."""

    keys: frozenset[str]
    refs: frozenset[str]

    def holds(self, story: Verdict) -> bool:
        """Whether the same change or version is told already, by whatever told of it first.

        A version is not told by the changes that it brings. What a person wants told is, unless
        it was the very thing that was told.
        """
        if self.keys & {item.key for item in (story.item, *story.same)}:
            return True
        return not story.item.overruled and bool(self.refs & story.refs)


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
    if not int(post.variation) and _are_sources_to_be_asked(product, now):
        following.ask_for_fetch(product, now)
        posts.postpone(post, until=now + ONE_MORE_MINUTE)
        return
    replaced = [other for other in others if _is_replaced(other, post, now)]
    told = _told(
        other for other in others if other not in replaced and other.state not in HOLDS_NOTHING
    )
    untold = _untold(post, product, others, told, now)
    allowed = [story for story in untold if following.may_tell(product, story.item)]
    written = _compose(product, post, allowed, told)
    shown: dict[str, str | None] = {
        "product_name": product.name,
        "timezone": plan_of(product).timezone,
    }
    if written is None:
        posts.skip(post, _why_nothing(product, untold, allowed), now=now, **shown)
        return
    for other in replaced:
        posts.supersede(other, "A newer draft took over its stories.", now=now)
    rests_on = set(written.evidence)
    evidence = [_evidence(story) for story in allowed if story.item.key in rests_on]
    shown |= posting.bound(product, post.outlet)
    posts.fill(post, now=now, text=written.text, evidence=evidence, **shown)


def _why_nothing(product: Product, untold: list[Verdict], allowed: list[Verdict]) -> str:
    if len(allowed) == len(untold):
        return QUIET
    held = {story.item.source for story in untold if story not in allowed}
    unseen = any(
        following.is_allowed(product, source) and not following.may_see_private(product, source)
        for source in held
    )
    return UNSEEN if unseen else PRIVATE


def _are_sources_to_be_asked(product: Product, now: datetime) -> bool:
    """Whether what happened may be known better in a minute."""
    if not following.followed(product):
        return False
    fetched, asked = product.fetched_at, product.fetch_asked_at
    if fetched is not None and now - from_ms(fetched) < FRESH:
        return False
    return asked is None or now - from_ms(asked) <= PATIENCE


def _is_replaced(other: Post, post: Post, now: datetime) -> bool:
    """Whether nobody decided an earlier draft by its slot."""
    earlier = other.slot_at < post.slot_at and other.slot_at <= to_ms(now)
    return bool(earlier and other.state == State.AWAITING_REVIEW)


def _told(held: Iterable[Post]) -> Told:
    items = [item for other in held for item in other.evidence or []]
    return Told(
        frozenset(item["key"] for item in items),
        frozenset(ref for item in items for ref in item.get("refs", [])),
    )


def _untold(
    post: Post, product: Product, others: list[Post], told: Told, now: datetime
) -> list[Verdict]:
    """The stories that no other post of the outlet holds, in the order in which they happened.

    A post that is written again while a later one exists keeps to what it told: what is new is the
    later one's.
    """
    found = activity.window(post.product_id, now)
    own = {item["key"] for item in post.evidence or []}
    keeps = own and any(other.slot_at > post.slot_at for other in others)
    since = _since(product, others, now)
    return [
        story
        for story in stories.judge(found, product.never_mention)
        if story.is_story
        and not told.holds(story)
        and (_rests_on(story, own) if keeps else int(story.item.story_at or 0) > since)
    ]


def _rests_on(story: Verdict, keys: set[str]) -> bool:
    return any(item.key in keys for item in story.everything)


def _since(product: Product, others: list[Post], now: datetime) -> int:
    """From when on stories are looked at: no further back than the posts that are known."""
    since = max(int(product.created_at), to_ms(now - activity.NEWS))
    if len(others) < posts.MOST_OTHERS - 1:
        return since
    return max(since, int(others[-1].slot_at))


def _compose(product: Product, post: Post, found: list[Verdict], told: Told) -> Written | None:
    brief = Brief(
        product=product.name,
        link=product.link or "",
        pitch=product.pitch or "",
        audience=product.audience or "",
        voice=product.voice or "",
        outlet=post.outlet,
        stories=tuple(part for story in found for part in _tellings(story, product, told)),
        variation=_variation(post),
        limit=posting.limit_of(product, post.outlet),
        length=lambda text: text_length(post.outlet, text),
    )
    if not found and product.quiet_week == "evergreen":
        return composer.evergreen(brief)
    return composer.write(brief)


def _variation(post: Post) -> int:
    """A stable number that differs from slot to slot and from try to try."""
    days = from_ms(post.slot_at).toordinal()
    return days + int(post.variation)


def _tellings(story: Verdict, product: Product, told: Told) -> list[Story]:
    """A story as the writer sees it: in its author's own words if there are any; of a version also
    the changes that it brings, as far as they are to be told."""
    item = story.item
    same = [other for other in story.same if following.may_tell(product, other)]
    said = next((other.said for other in (item, *same) if other.said), None)
    refs = tuple(sorted(_refs(story)))
    brought = [
        part
        for part in story.parts
        if item.kind in stories.VERSIONS
        and not part.ignored
        and not told.refs & set(part.refs or ())
        and following.may_tell(product, part)
    ]
    bodies = [text for other in (item, *same) if (text := _body(other, product, told))]
    lead = _story(item, said or item.title, bodies[0] if bodies else "", refs)
    return [lead, *(_story(part, part.said or part.title, "", refs) for part in brought)]


def _body(item: Activity, product: Product, told: Told) -> str:
    """The body without the lines that hold nothing to tell: what the outlet was told before, and
    what was taken out. Of what is private only where its owner wants more told than titles."""
    if item.private and product.private_detail != "full":
        return ""
    known = told.refs if item.kind in stories.VERSIONS else frozenset()
    return "\n".join(
        line
        for line in (item.body or "").splitlines()
        if secrecy.REMOVED not in line
        and not activity.scoped(told_in(line), item.scope or "") & known
    )


def _story(item: Activity, title: str, body: str, refs: tuple[str, ...]) -> Story:
    return Story(
        key=item.key,
        kind=item.kind,
        title=title,
        body=body,
        link=item.link or "",
        version=item.version or "",
        occurred_at=from_ms(item.occurred_at),
        refs=refs,
        source=item.source,
    )


def _refs(story: Verdict) -> set[str]:
    """Of all that a story tells: of a version also what its notes name and nobody has recorded. A
    change that is told says nothing of the version it was put into."""
    tells = [(item.about or {}).get("tells", []) for item in (story.item, *story.same)]
    whole = story.item.kind in stories.VERSIONS
    own = [item.refs or [] for item in story.everything if whole or item.kind in stories.CHANGES]
    return {ref for refs in (*tells, *own) for ref in refs}


def _evidence(story: Verdict) -> dict[str, Any]:
    """What stays with the post for good of a story that it rests on."""
    item = story.item
    return {
        "key": item.key,
        "source": item.source,
        "kind": item.kind,
        "title": item.title,
        "link": item.link or "",
        "occurredAt": int(item.occurred_at),
        "refs": sorted(_refs(story)),
    }
