"""What a product follows: who may, what comes of a delivery for it, and how far it was read.

A follow id is no secret, so by id alone anybody could follow anybody's work. What is not open to
everybody reaches only a product with a connection (`via`) that has shown its owner may see it, and
that works now.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from pynamodb.indexes import GlobalSecondaryIndex

from integrations import connections
from integrations.deliveries import Taken
from integrations.sources.base import (
    Choice,
    Event,
    Follow,
    Gone,
    Hidden,
    Opened,
    OutOfReach,
    Reachable,
    Received,
    Renamed,
    Upkeep,
    Wanted,
)
from integrations.tables import Connection
from products import activity, catalogue, posts
from products.tables import Activity, Product
from slothpost_site.dynamo import Conflict, all_of, change, shard_of, unchanged
from slothpost_site.moments import from_ms, to_ms

# How far back a source is read when it is followed: enough to write a first post from.
FIRST_LOOK = timedelta(days=14)
MOST_TRIES = 8
SOMETHING_ELSE = "nothing to do: something else is followed by now"


@dataclass(frozen=True)
class Link:
    """Where a product keeps what it follows at a source: the names of its attributes."""

    index: GlobalSecondaryIndex[Product]
    id: str
    name: str
    via: str


LINKS: dict[str, Link] = {
    "github": Link(Product.by_github_repo, "github_repo_id", "github_repo_name", "github_via"),
    "vercel": Link(
        Product.by_vercel_project, "vercel_project_id", "vercel_project_name", "vercel_via"
    ),
    "app_store": Link(Product.by_app_store_app, "app_store_id", "app_store_name", "app_store_via"),
}


# -- following -------------------------------------------------------------------------------------


def follow(product: Product, source: str, choice: Choice, now: datetime) -> None:
    """Take activity from what was chosen at a source, from FIRST_LOOK ago on.

    A choice that is private says nothing by itself about posts: `allow_private` does. What is
    followed already goes on where it was.
    """
    link = LINKS[source]

    _alter(
        product,
        lambda: {
            link.id: choice.id,
            link.name: choice.name,
            link.via: choice.via or None,
            "first_followed": {source: choice.id, **(product.first_followed or {})},
            **_privacy(product, source, choice, now),
            "fetched": _with(product.fetched, source, _read_from(product, source, choice, now)),
            **_asked(product, now),
        },
    )


def follow_openly(connection: Connection) -> None:
    """What a person's products follow through this account, they go on following as anybody can."""
    link = LINKS[connection.provider]
    for product in catalogue.every_one_of(connection.user_id):
        _alter(product, lambda: {link.via: None}, {link.via: connection.key})


def left_behind(user_id: str, source: str) -> list[Product]:
    """A person's products that follow something through an account that does not show it now."""
    via = LINKS[source].via
    return [
        product
        for product in catalogue.every_one_of(user_id)
        if getattr(product, via) and connection_of(product, source) is None
    ]


def go_on(user_id: str, source: str, choices: Sequence[Choice], now: datetime) -> list[Product]:
    """Follow the same as before through the account that shows it now; which products do."""
    shown = {choice.id: choice for choice in choices}
    going_on = []
    for product in left_behind(user_id, source):
        choice = shown.get(getattr(product, LINKS[source].id))
        if choice:
            follow(product, source, choice, now)
            going_on.append(product)
    return going_on


def _read_from(product: Product, source: str, choice: Choice, now: datetime) -> dict[str, Any]:
    """The state that its reading begins with, or goes on from. What the last fetch left for the
    next one was shown to another account, where it comes by another now."""
    link, state = LINKS[source], state_of(product, source)
    seen: Mapping[str, str] = choice.seen
    begins = {"since": to_ms(now - FIRST_LOOK)}
    if getattr(product, link.id) == choice.id and "since" in state:
        begins = {name: state[name] for name in ("since", "at") if name in state}
        if (getattr(product, link.via) or "") == choice.via:
            seen = state.get("seen", {})
    return {**begins, "seen": dict(seen)} if seen else dict(begins)


def _privacy(product: Product, source: str, choice: Choice, now: datetime) -> dict[str, Any]:
    """What was private and is so still stays as its owner has it."""
    is_known = getattr(product, LINKS[source].id) == choice.id
    if is_known and choice.private and is_private(product, source):
        return {}
    return _private(product, source, to_ms(now) if choice.private else None)


def scope_of(product: Product, source: str) -> str:
    """What tells the facts of what is followed from those of what was followed before; "" for
    what was the first."""
    followed = getattr(product, LINKS[source].id) or ""
    return "" if (product.first_followed or {}).get(source, followed) == followed else followed


def unfollow(product: Product, source: str) -> None:
    """Take nothing more from a source."""
    _alter(product, lambda: _unfollowed(product, source, ""))


def _unfollowed(product: Product, source: str, reason: str) -> dict[str, Any]:
    """`reason` is kept for the owner to read."""
    link = LINKS[source]
    return {
        **dict.fromkeys((link.id, link.name, link.via)),
        **_private(product, source, None),
        "fetched": _with(product.fetched, source, {"error": reason} if reason else None),
    }


def _private(product: Product, source: str, since: int | None) -> dict[str, Any]:
    """Since when a source is private, and that its owner has not allowed anything yet."""
    return {
        "private_since": _with(product.private_since, source, since),
        "private_allowed": _with(product.private_allowed, source, None),
    }


def _alter(
    product: Product,
    values: Callable[[], dict[str, Any]],
    seen: Mapping[str, str] | None = None,
) -> bool:
    """Write what `values` makes of the product as it is, again if somebody else was quicker: what
    is kept for several sources in one attribute must not undo another's. False, and nothing is
    written, where the attributes in `seen` have other values by now. Raises Conflict."""
    for _ in range(MOST_TRIES):
        if any(getattr(product, name) != value for name, value in (seen or {}).items()):
            return False
        changed = values()
        kept = ("fetched", "private_since", "private_allowed", "first_followed", *(seen or {}))
        same = [unchanged(getattr(Product, name), getattr(product, name)) for name in kept]
        try:
            change(product, all_of(same), **changed)
        except Conflict:
            found = catalogue.find(product.user_id, product.product_id)
            if found is None:
                raise
            product.deserialize(found.serialize())
        else:
            return True
    raise Conflict("This product is being changed by somebody else: try again.")


def followed(product: Product) -> list[str]:
    """The sources that this product follows something at."""
    return [source for source, link in LINKS.items() if getattr(product, link.id)]


def connection_of(product: Product, source: str) -> Connection | None:
    """The connection that shows what is followed, while it is there and works."""
    via = getattr(product, LINKS[source].via)
    return connections.find_working(product.user_id, via) if via else None


def is_cut_off(product: Product, source: str) -> bool:
    """Whether what is followed is private, and the account that shows it has to be connected
    again: until then nobody is asked, for nobody's answer would be right."""
    via = getattr(product, LINKS[source].via)
    return bool(via) and is_private(product, source) and connection_of(product, source) is None


def may_see_private(product: Product, source: str) -> bool:
    return bool(settings.FOLLOW_PRIVATE_REPOSITORIES) or (
        connection_of(product, source) is not None
    )


def _with(values: Mapping[str, Any] | None, source: str, value: Any) -> dict[str, Any] | None:
    """A JSON of sources with one changed; None where nothing is left."""
    changed = {**(values or {}), source: value}
    return {name: kept for name, kept in changed.items() if kept is not None} or None


# -- what is private -------------------------------------------------------------------------------


def may_tell(product: Product, item: Activity) -> bool:
    """Whether a post may be written from it. What is private, or stands where all is private now,
    only once its owner said so of what is followed now, and as long as they can be seen to see
    it; of what was followed before, only what was open."""
    source = item.source
    is_followed = bool(getattr(product, LINKS[source].id))
    if not is_followed or (item.scope or "") != scope_of(product, source):
        return not item.private
    if not is_private(product, source):
        return True  # it was opened since, if it was ever private
    return is_allowed(product, source) and may_see_private(product, source)


def allow_private(product: Product, source: str, follow_id: str, now: datetime) -> None:
    """Its owner says that posts may be written from what this source tells in private of what they
    were shown. Raises Conflict where the product follows something else by now."""
    _permit(product, source, follow_id, to_ms(now))


def forbid_private(product: Product, source: str, follow_id: str, now: datetime) -> None:
    """Its owner says that none may: what was approved and rests on it waits to be looked at again.
    Raises Conflict as `allow_private` does."""
    _permit(product, source, follow_id, None)
    why = "You said that no post is to be written from what is private there."
    posts.take_back_all(product.user_id, product.product_id, source, now=now, why=why)


def _permit(product: Product, source: str, follow_id: str, at: int | None) -> None:
    def values() -> dict[str, Any]:
        return {"private_allowed": _with(product.private_allowed, source, at)}

    if not follow_id or not _alter(product, values, {LINKS[source].id: follow_id}):
        raise Conflict(f"{product.name} follows something else there by now.")


def is_private(product: Product, source: str) -> bool:
    return source in (product.private_since or {})


def is_allowed(product: Product, source: str) -> bool:
    """Whether posts may be written from what this source tells in private."""
    return source in (product.private_allowed or {})


# -- taking deliveries -----------------------------------------------------------------------------


def take(source: str, received: Received, now: datetime) -> list[Taken]:
    """Hand a delivery to every product that follows what it is about. Repeating it adds nothing."""
    taken = []
    if received.follow_id:
        for product in _followers(source, received.follow_id):
            if received.private and not may_see_private(product, source):
                continue
            what = _take_for(product, source, received, now)
            taken.append(Taken(product.user_id, product.product_id, what))
    for follow_id, upkeep in received.upkeep_of:
        for product in _followers(source, follow_id):
            what = keep_up(product, source, follow_id, upkeep, now)
            taken.append(Taken(product.user_id, product.product_id, what))
    return taken


def _followers(source: str, follow_id: str) -> list[Product]:
    """The products that follow it now, which the index alone does not say."""
    link = LINKS[source]
    found = (
        catalogue.find(entry.user_id, entry.product_id) for entry in link.index.query(follow_id)
    )
    return [
        product
        for product in found
        if product is not None and getattr(product, link.id) == follow_id
    ]


def _take_for(product: Product, source: str, received: Received, now: datetime) -> str:
    """What became of the delivery for one product, in words."""
    if isinstance(received.upkeep, Wanted):
        ask_for_fetch(product, now)
        return "noted: the source is asked for more"
    if received.upkeep is not None:
        return keep_up(product, source, received.follow_id, received.upkeep, now)
    if not received.events:
        return received.note or "nothing to record"
    return record(product, source, received.follow_id, received.events, now)


def record(
    product: Product, source: str, follow_id: str, events: Sequence[Event], now: datetime
) -> str:
    """Write what happened as the product's activity, and say what it was. What is private makes
    the source private, so that its owner is asked whether posts may be written from it."""
    link = LINKS[source]
    if getattr(product, link.id) != follow_id:
        return SOMETHING_ELSE
    if any(event.private for event in events) and not is_private(product, source):
        seen = {link.id: follow_id}
        if not _alter(product, lambda: _private(product, source, to_ms(now)), seen):
            return SOMETHING_ELSE
    return activity.record_all(product, events, now, scope=scope_of(product, source))


def keep_up(product: Product, source: str, follow_id: str, upkeep: Upkeep, now: datetime) -> str:
    """Bring the link to what the source says now of what it leads to (`follow_id`), and say so in
    words."""
    link = LINKS[source]
    if isinstance(upkeep, OutOfReach) and upkeep.via not in ("", getattr(product, link.via)):
        return "nothing to do: it is followed in another way"
    if isinstance(upkeep, Reachable) and not _may_go_on(product, source, upkeep.via):
        return "nothing to do"
    values = partial(_brought_up, product, source, upkeep, now)
    if not _alter(product, values, {link.id: follow_id}):
        return SOMETHING_ELSE
    if isinstance(upkeep, Hidden):
        return _take_back(product, source, upkeep, now)
    return _in_words(upkeep)


def _brought_up(product: Product, source: str, upkeep: Upkeep, now: datetime) -> dict[str, Any]:
    """What is to be written of the product for it."""
    link = LINKS[source]
    match upkeep:
        case Renamed(name):
            return {link.name: name}
        case Gone(reason):
            return _unfollowed(product, source, reason)
        case OutOfReach(reason):
            return {link.via: None, "fetched": _failed(product, source, reason)}
        case Reachable(via):
            fetched = _failed(product, source, "")
            return {link.via: via, "fetched": fetched, **_asked(product, now)}
        case Opened():
            return {"private_since": _with(product.private_since, source, None)}
        case Hidden():
            return _private(product, source, to_ms(now))


def _in_words(upkeep: Upkeep) -> str:
    match upkeep:
        case Renamed(name):
            return f"now called {name}"
        case Gone(reason):
            return f"no longer followed: {reason}"
        case OutOfReach(reason) | Hidden(reason):
            return reason
        case Reachable():
            return "it can be read again"
        case Opened():
            return "open to everybody now"


def _may_go_on(product: Product, source: str, via: str) -> bool:
    """Whether it is followed through nothing that works, and its owner has this connection."""
    cut_off = connection_of(product, source) is None
    return cut_off and connections.find_working(product.user_id, via) is not None


def _failed(product: Product, source: str, reason: str) -> dict[str, Any] | None:
    """The source's state with a reason why it could not be read, or with none."""
    state = {name: kept for name, kept in state_of(product, source).items() if name != "error"}
    return _with(product.fetched, source, {**state, "error": reason} if reason else state)


def _take_back(product: Product, source: str, hidden: Hidden, now: datetime) -> str:
    """What was open is private: what was approved of it waits to be looked at again."""
    back = posts.take_back_all(
        product.user_id, product.product_id, source, now=now, why=hidden.reason
    )
    return f"private now; approved posts that wait for you again: {back}" if back else "private now"


# -- asking the source -----------------------------------------------------------------------------


def ask_for_fetch(product: Product, now: datetime) -> bool:
    """Have the product's sources asked at the next tick. False, and nothing happens, if that is
    coming or nothing is followed."""
    if product.fetch_at is not None or not followed(product):
        return False
    try:
        change(product, Product.fetch_at.does_not_exist(), **_asked(product, now))
    except Conflict:  # somebody else asked first
        return False
    return True


def _asked(product: Product, now: datetime) -> dict[str, Any]:
    return {
        "fetch_status": shard_of("active", product.product_id),
        "fetch_at": to_ms(now),
        "fetch_asked_at": to_ms(now),
        "fetch_attempts": None,
    }


def state_of(product: Product, source: str) -> dict[str, Any]:
    """How far a source was read: `since` (epoch ms), `seen` (the source's own), `at` of the last
    good read, `error` of the last bad one, and `note`."""
    found: dict[str, Any] = (product.fetched or {}).get(source, {})
    return found


def follow_of(product: Product, source: str, now: datetime) -> Follow:
    """What to ask a source for, and for whom."""
    link = LINKS[source]
    state = state_of(product, source)
    since = state.get("since")
    return Follow(
        id=getattr(product, link.id),
        name=getattr(product, link.name) or "",
        connection=connection_of(product, source),
        since=from_ms(since) if since else now - FIRST_LOOK,
        seen=state.get("seen", {}),
    )


def claim_fetch(product: Product, *, until: datetime) -> None:
    """Be the one who asks, until then; whoever comes later takes over from one who died. Raises
    Conflict when somebody else does."""
    change(product, Product.fetch_at == product.fetch_at, fetch_at=to_ms(until))


def end_fetch(product: Product, fetched: Mapping[str, Mapping[str, Any]], now: datetime) -> None:
    """Every source was asked: keep how far, and ask no more. Raises Conflict when what is followed
    changed meanwhile; then it is asked again."""
    merged = {**(product.fetched or {}), **fetched}
    change(
        product,
        unchanged(Product.fetch_at, product.fetch_at) & unchanged(Product.fetched, product.fetched),
        fetched=merged or None,
        fetched_at=to_ms(now),
        **NOT_ASKED,
    )


def put_off_fetch(
    product: Product, fetched: Mapping[str, Mapping[str, Any]], until: datetime
) -> None:
    """Some source could not be asked: keep what the others said, and ask again later."""
    change(
        product,
        unchanged(Product.fetch_at, product.fetch_at) & unchanged(Product.fetched, product.fetched),
        fetched={**(product.fetched or {}), **fetched} or None,
        fetch_at=to_ms(until),
        fetch_attempts=int(product.fetch_attempts or 0) + 1,
    )


NOT_ASKED: dict[str, Any] = {
    "fetch_status": None,
    "fetch_at": None,
    "fetch_asked_at": None,
    "fetch_attempts": None,
}
