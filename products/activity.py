"""Verbs on activity: what happened, told once, and whether it is a story.

The same fact comes by several roads, in any order, and more than once. What is known of it only
ever grows (`_together`), so that in the end the same is known whichever came first. What it has to
do with other facts is said by products.stories when it is read.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from integrations.sources import noise
from integrations.sources.base import STAGES, Event
from products import secrecy
from products.tables import Activity, Fact, Product
from slothpost_site.dynamo import Conflict, all_of, change, get, put_new, unchanged
from slothpost_site.moments import as_key, from_ms, parse_key, to_ms
from slothpost_site.paging import Page, read_page

# How far back activity is looked at together, and how much of it at most.
NEWS = timedelta(days=60)
MOST_READ = 500
MOST_AROUND = 250
MOST_TRIES = 20
YOU_SAID_SO = "you said so"
ELSEWHERE = "you announced it elsewhere"
SURE = frozenset({secrecy.SECRET, secrecy.INNER_HOST, YOU_SAID_SO, ELSEWHERE})

_KNOWN = (
    *("stage", "ignored", "title", "body", "link", "version", "author"),
    *("refs", "said", "about", "private", "occurred_at"),
)

# -- taking ----------------------------------------------------------------------------------------


def record_all(product: Product, events: Iterable[Event], now: datetime, *, scope: str = "") -> str:
    """Write events as activity of a product, and say what they were: "1 story, 2 ignored"."""
    stories = ignored = known = 0
    reason = ""
    full = product.private_detail == "full"
    for event in events:
        new = record(product.product_id, event, now, full=full, scope=scope)
        if new is None:
            known += 1
        elif new.ignored:
            ignored += 1
            reason = new.ignored
        else:
            stories += 1
    if (stories, ignored, known) == (0, 1, 0):
        return f"ignored: {reason}"
    counts = {"story": stories, "ignored": ignored, "known already": known}
    return ", ".join(f"{count} {_plural(what, count)}" for what, count in counts.items() if count)


def _plural(what: str, count: int) -> str:
    return "stories" if what == "story" and count > 1 else what


def record(
    product_id: str, event: Event, now: datetime, *, full: bool = False, scope: str = ""
) -> Activity | None:
    """Write an event as activity of a product, or add what it says to what is known of this fact
    already: then None.

    Of what is private only the title is kept, or all of it if `full`. The key keeps the time that
    the fact was first seen with: two deliveries about one release may name two times, and the
    activity's key must be the same for both. `scope` tells the facts of one followed thing from
    those of another that counts anew (`scoped`).
    """
    # A commit's clock may be wrong; nothing happened later than now.
    occurred_at = to_ms(min(event.occurred_at, now))
    key = f"{event.source}#{event.id}" + (f"@{scope}" if scope else "")
    fact = Fact(product_id=product_id, key=key, occurred_at=occurred_at)
    if not put_new(fact):
        fact = get(Fact, product_id, fact.key) or fact
    known = {**_said_of(event, full, scope), "occurred_at": occurred_at}
    item = Activity(
        product_id=product_id,
        key=f"{as_key(fact.occurred_at)}#{key}",
        source=event.source,
        scope=scope or None,
        kind=event.kind,
        recorded_at=to_ms(now),
        story_at=None if known["ignored"] else to_ms(now),
        **known,
    )
    if put_new(item):
        return item
    _add(product_id, item.key, known, now)
    return None


def scoped(refs: Iterable[str], scope: str) -> set[str]:
    """The refs as they are known in a scope: a hash is one of its kind, everything else is counted
    anew in each repository."""
    return {ref if not scope or ref.startswith("sha:") else f"{ref}@{scope}" for ref in refs}


def _said_of(event: Event, full: bool, scope: str) -> dict[str, Any]:
    """What an event says of its fact, by the attributes of an activity."""
    title, unfit = secrecy.cleaned(event.title)
    body, _ = secrecy.cleaned(event.body)
    by_hand = event.kind in {"merge", "commit", "deployment"}
    said = noise.said_in(body) if by_hand else ""
    ignored = unfit or (noise.SAID_NO if noise.is_no(said) else event.ignored)
    said = "" if noise.is_no(said) else said
    refs = {*event.refs}
    if event.kind in {"release", "tag", "version"}:
        number = f"v{event.version}" if event.kind == "version" else event.version
        refs |= {ref} if (ref := noise.version_ref(number)) else set()
    about = {
        "reverts": noise.reverted_by(title, body) if by_hand else set(),
        "fixes": noise.fixed_by(title, body) if by_hand else set(),
        "tells": noise.told_in(body) if event.kind == "release" else set(),
    }
    refs = scoped(refs, scope)
    about = {name: scoped(found, scope) for name, found in about.items()}
    whole = full or not event.private
    return {
        "stage": event.stage or None,
        "ignored": _verdict(ignored, said),
        "title": title,
        "body": (body or None) if whole else None,
        "link": (event.link or None) if whole else None,
        "version": event.version or None,
        "author": event.author or None,
        "refs": sorted(refs) or None,
        "said": said or None,
        "about": {name: sorted(found - refs) for name, found in about.items() if found - refs}
        or None,
        "private": event.private or None,
    }


def _verdict(ignored: str | None, said: str | None) -> str | None:
    """Its author's own words make a story of what would be none by its title."""
    return None if said and not is_sure(ignored or "") else ignored or None


def is_sure(ignored: str) -> bool:
    """Whether a reason to ignore is more than a guess by the words of a title."""
    return noise.is_sure(ignored) or ignored in SURE


def _add(product_id: str, key: str, known: dict[str, Any], now: datetime) -> None:
    """Add to what is known of an activity, again if somebody else was quicker. Raises Conflict."""
    for _ in range(MOST_TRIES):
        item = get(Activity, product_id, key)
        if item is None:
            return  # deleted meanwhile
        before = {name: getattr(item, name) for name in _KNOWN}
        after = _together(before, known)
        if item.overruled:
            after["ignored"] = before["ignored"]
        altered = {name: value for name, value in after.items() if value != before[name]}
        if not altered:
            return
        if "ignored" in altered:
            altered["story_at"] = None if after["ignored"] else to_ms(now)
        same = [unchanged(getattr(Activity, name), before[name]) for name in _KNOWN]
        same.append(unchanged(Activity.overruled, item.overruled))
        try:
            change(item, all_of(same), **altered)
        except Conflict:
            continue
        return
    raise Conflict("This activity is being changed by somebody else: try again.")


def _together(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What two tellings of one fact say together: the same whichever comes first, and nothing new
    when one is repeated. The later stage decides; within one, a reason to ignore wins."""
    later = max(one, other, key=_rank)
    said = max(one["said"] or "", other["said"] or "") or None
    return {
        "stage": later["stage"],
        "ignored": _verdict(later["ignored"], said),
        "title": later["title"],
        **{name: _fuller(one[name], other[name]) for name in ("body", "link", "version", "author")},
        "refs": sorted({*(one["refs"] or ()), *(other["refs"] or ())}) or None,
        "said": said,
        "about": _united(one["about"] or {}, other["about"] or {}) or None,
        "private": (one["private"] and other["private"]) or None,  # once open to all, it is open
        "occurred_at": min(int(one["occurred_at"]), int(other["occurred_at"])),
    }


def _rank(known: dict[str, Any]) -> tuple[int, bool, bool, str, str]:
    ignored = known["ignored"] or ""
    stage = STAGES.index(known["stage"] or "")
    return stage, is_sure(ignored), bool(ignored), ignored, known["title"]


def _fuller(one: str | None, other: str | None) -> str | None:
    return max(one or "", other or "", key=lambda text: (len(text), text)) or None


def _united(one: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted({*one.get(name, ()), *other.get(name, ())}) for name in {**one, **other}}


# -- reading and judging ---------------------------------------------------------------------------


def find(product_id: str, key: str) -> Activity | None:
    return get(Activity, product_id, key)


def list_for(product_id: str, cursor: str = "") -> Page[Activity]:
    return read_page(Activity, product_id, cursor=cursor)


def tell(item: Activity, why_not: str, now: datetime) -> None:
    """Its owner's word that this is a story, whatever stood against it (`why_not`, in words).
    Raises Conflict when somebody judged it meanwhile."""
    change(
        item,
        unchanged(Activity.ignored, item.ignored) & unchanged(Activity.overruled, item.overruled),
        ignored=None,
        story_at=to_ms(now),
        overruled=f"was {why_not}",
    )


def leave_out(item: Activity, why: str = YOU_SAID_SO) -> None:
    """Its owner's word that this is no story, and why.

    Raises Conflict when somebody judged it meanwhile.
    """
    change(
        item,
        unchanged(Activity.ignored, item.ignored) & unchanged(Activity.overruled, item.overruled),
        ignored=why,
        story_at=None,
        overruled="was a story",
    )


def window(product_id: str, now: datetime) -> list[Activity]:
    """What happened within NEWS, the newest MOST_READ at most."""
    return _query(product_id, to_ms(now - NEWS), None, MOST_READ)


def around(product_id: str, items: list[Activity]) -> list[Activity]:
    """These activities and what happened up to NEWS before and after, so that what they have to do
    with others can be said; MOST_AROUND on each side at most."""
    if not items:
        return []
    first, last = min(item.key for item in items), max(item.key for item in items)
    # A key keeps the time that a fact was first told with, which may be long before or after.
    keys = [parse_key(key.partition("#")[0]) for key in (first, last)]
    times = [*(int(item.occurred_at) for item in items), *keys]
    before = _query(product_id, to_ms(from_ms(min(times)) - NEWS), first, MOST_AROUND)
    until = as_key(to_ms(from_ms(max(times)) + NEWS))
    after = Activity.query(
        product_id, range_key_condition=Activity.key.between(last, until), limit=MOST_AROUND
    )
    found = {item.key: item for item in (*before, *after, *items)}
    return list(found.values())


def _query(product_id: str, since: int, until: str | None, most: int) -> list[Activity]:
    """Newest first. `until` is a key, `since` is in epoch milliseconds."""
    start = as_key(since)
    between = Activity.key.between(start, until) if until else Activity.key >= start
    return list(
        Activity.query(
            product_id,
            range_key_condition=between,
            scan_index_forward=False,
            limit=most,
            page_size=most,
        )
    )
