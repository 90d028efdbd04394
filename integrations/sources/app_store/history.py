"""What happened to an app: its versions and their states, and its reviews.

With a key by App Store Connect (https://developer.apple.com/documentation/appstoreconnectapi),
else by what the store shows everybody. A version is one fact by both, dated by when it came into
the store; only the store itself says when that was.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from integrations.errors import NotFound, Refused, TryLater
from integrations.sources.app_store import account, itunes
from integrations.sources.app_store.webhook import LABEL, NAME, in_words
from integrations.sources.base import (
    BODY_LIMIT,
    VERSION_LIMIT,
    BadPayload,
    Event,
    Fetched,
    Fields,
    Follow,
    OutOfReach,
    Renamed,
    headline,
    trimmed,
)
from integrations.tables import Connection

logger = logging.getLogger(__name__)

LIVE = ("READY_FOR_DISTRIBUTION", "READY_FOR_SALE")
REPLACED = "REPLACED_WITH_NEW_VERSION"
# Not handed in, or handed back: nobody is reviewing it.
NOT_IN_REVIEW = (
    "DEVELOPER_REJECTED",
    "INVALID_BINARY",
    "METADATA_REJECTED",
    "PREPARE_FOR_SUBMISSION",
    "READY_FOR_REVIEW",
    "REJECTED",
)
MOST_PAGES = 4  # of versions, and of reviews
MOST_NOTES = 20  # versions whose release notes are asked for


@dataclass(frozen=True)
class Version:
    """A version on one platform, as App Store Connect has it."""

    id: str
    text: str  # "1.5.0"
    state: str
    at: datetime

    @property
    def was_out(self) -> bool:
        return self.state in LIVE or self.state == REPLACED


def fetch(follow: Follow, now: datetime) -> Fetched:
    if follow.connection is None:
        return _from_store(follow, now)
    try:
        return _from_connect(follow, follow.connection, now)
    except BadPayload as error:
        raise account.unreadable() from error
    except NotFound:
        reason = f"{account.SERVICE} no longer shows this app to your key."
        return Fetched(seen=follow.seen, upkeep=(OutOfReach(reason),))


def _event(follow: Follow, name: str, text: str, at: datetime, state: str) -> Event:
    """A version, but for its release notes; the same from everywhere."""
    out = state in LIVE or state == REPLACED
    reviewed = not out and state not in NOT_IN_REVIEW
    return Event(
        source=NAME,
        kind="version",
        id=f"version:{follow.id}:{re.sub(r'[^A-Za-z0-9_.-]+', '-', text)[:100]}",
        occurred_at=at,
        title=headline(f"{follow.name or name} {text}")[0],
        link=_page_of(follow.id),
        version=text,
        refs=(f"version:{text}",),
        stage="in the store" if out else "in review" if reviewed else "",
        ignored="" if out else f"not in the store yet ({in_words(state)})",
    )


def _page_of(app_id: str) -> str:
    return f"https://apps.apple.com/app/id{app_id}"


def _renamed(follow: Follow, name: str) -> tuple[Renamed, ...]:
    return (Renamed(name),) if follow.name and name and name != follow.name else ()


# -- as everybody sees it --------------------------------------------------------------------------


def _from_store(follow: Follow, now: datetime) -> Fetched:
    country = follow.seen.get("country", itunes.COUNTRY)
    found = itunes.lookup(follow.id, country, now)
    if found is None:
        reason = f"The {LABEL} of the country “{country}” does not show this app."
        return Fetched(seen=follow.seen, upkeep=(OutOfReach(reason),))
    event = _event(follow, found.name, found.version, found.since, LIVE[0])
    event = replace(event, body=trimmed(found.notes, BODY_LIMIT))
    is_new = found.since >= follow.since or _came_out(found.version, follow)
    return Fetched(
        events=(event,) if is_new else (),
        seen={**follow.seen, "live": found.version},
        upkeep=_renamed(follow, found.name),
    )


def _came_out(text: str, follow: Follow) -> bool:
    """Whether a version that is in the store was not there when last asked. Its date alone does
    not tell: a cache may have kept it from us for a day."""
    return "live" in follow.seen and text not in follow.seen["live"].split()


# -- as its owner sees it --------------------------------------------------------------------------


def _from_connect(follow: Follow, connection: Connection, now: datetime) -> Fetched:
    fields = {"fields[apps]": "name,bundleId,primaryLocale"}
    answer = account.ask(connection, "GET", f"/v1/apps/{follow.id}", now, params=fields)
    app = Fields(answer.body, "").fields("data").fields("attributes")
    name = app.line("name")
    versions = _versions(follow, connection, now)
    wanted = [
        version
        for version in _furthest(versions)
        if version.at >= follow.since or (version.state in LIVE and _came_out(version.text, follow))
    ]
    events = [
        replace(
            _event(follow, name, version.text, version.at, version.state),
            body=_notes(connection, version, app.text("primaryLocale", ""), now),
        )
        for version in wanted[:MOST_NOTES]
    ]
    reviews, note = _reviews(follow, connection, now)
    live = " ".join(sorted({version.text for version in versions if version.state in LIVE}))
    return Fetched(
        events=(*events, *reviews),
        seen={**follow.seen, "live": live},
        upkeep=_renamed(follow, name),
        note=note,
    )


def _versions(follow: Follow, connection: Connection, now: datetime) -> list[Version]:
    """The app's versions on all platforms, the newest first as Apple lists them."""
    in_store = _in_store(follow, now)
    path = f"/v1/apps/{follow.id}/appStoreVersions"
    found = account.pages(connection, path, now, MOST_PAGES, limit=50)
    return [_version(entry, follow, in_store, now) for page in found for entry in page]


def _in_store(follow: Follow, now: datetime) -> itunes.InStore | None:
    """What the store shows, for its date alone: without it, a version is dated less well."""
    try:
        return itunes.lookup(follow.id, follow.seen.get("country", itunes.COUNTRY), now)
    except (TryLater, Refused) as failure:
        logger.info("the store did not date a version", extra={"reason": failure.reason})
        return None


def _version(
    entry: Fields, follow: Follow, in_store: itunes.InStore | None, now: datetime
) -> Version:
    attributes = entry.fields("attributes")
    text = attributes.line("versionString", limit=VERSION_LIMIT)
    state = trimmed(attributes.text("appVersionState", attributes.text("appStoreState", "")), 50)
    if state in LIVE and in_store is not None and in_store.version == text:
        at = in_store.since
    elif state in LIVE and _came_out(text, follow):
        at = now
    else:
        at = _planned(attributes)
    return Version(entry.identifier("id"), text, state, at)


def _planned(attributes: Fields) -> datetime:
    """When a version was made or, if later, was to come out at the earliest."""
    made = attributes.moment("createdDate")
    if attributes.has("earliestReleaseDate"):
        return max(made, attributes.moment("earliestReleaseDate"))
    return made


def _furthest(versions: Iterable[Version]) -> list[Version]:
    """One for each number: of several platforms, that which came furthest."""
    found: dict[str, Version] = {}
    for version in versions:
        other = found.get(version.text)
        if other is None or (version.was_out and not other.was_out):
            found[version.text] = version
    return list(found.values())


def _notes(connection: Connection, version: Version, locale: str, now: datetime) -> str:
    """What is new in a version, in the app's own language, else in English, else in any."""
    path = f"/v1/appStoreVersions/{version.id}/appStoreVersionLocalizations"
    params = {"limit": 50, "fields[appStoreVersionLocalizations]": "locale,whatsNew"}
    texts: dict[str, str] = {}
    for page in account.pages(connection, path, now, 1, **params):
        for entry in page:
            attributes = entry.fields("attributes")
            texts[attributes.text("locale", "")] = attributes.text("whatsNew", "")
    best = texts.get(locale) or texts.get("en-US") or next(filter(None, texts.values()), "")
    return trimmed(best, BODY_LIMIT)


def _reviews(follow: Follow, connection: Connection, now: datetime) -> tuple[list[Event], str]:
    """The reviews since, the newest first, and what is to be said of them."""
    path = f"/v1/apps/{follow.id}/customerReviews"
    params = {"sort": "-createdDate", "limit": 50}
    events: list[Event] = []
    try:
        for page in account.pages(connection, path, now, MOST_PAGES, **params):
            found = [_review(entry, follow) for entry in page]
            events += [event for event in found if event.occurred_at >= follow.since]
            if any(event.occurred_at < follow.since for event in found):
                return events, ""
    except Refused as failure:
        if failure.answer is None or failure.answer.status != 403:
            raise
        return events, "This key's role may not read reviews: the versions are read without them."
    return events, ""


def _review(entry: Fields, follow: Follow) -> Event:
    """A review, without who wrote it."""
    attributes = entry.fields("attributes")
    stars = attributes.number("rating")
    return Event(
        source=NAME,
        kind="review",
        id=f"review:{entry.identifier('id')}",
        occurred_at=attributes.moment("createdDate"),
        title=headline(f"{stars} of 5: {attributes.text('title', '')}")[0],
        body=trimmed(attributes.text("body", ""), BODY_LIMIT),
        link=_page_of(follow.id),
        ignored="a review: yours to tell",
    )
