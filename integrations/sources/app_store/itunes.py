"""What anybody can ask of the App Store, without an account: iTunes' lookup.

https://developer.apple.com/library/archive/documentation/AudioVideo/Conceptual/iTuneSearchAPI/
It knows an app's version in the store, since when it is there, and its release notes; about twenty
questions a minute, and answers that a cache keeps for up to a day.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from integrations.api import Api
from integrations.errors import NotFound, Refused, TryLater
from integrations.sources.app_store.webhook import is_app_id
from integrations.sources.base import VERSION_LIMIT, BadPayload, Choice, Fields

LABEL = "iTunes"
COUNTRY = "us"
_LINK = re.compile(
    r"(?:https?://)?(?:apps|itunes)\.apple\.com"
    r"(?:/(?P<country>[a-z]{2}))?/app(?:/[^/?#\s]+)?/id(?P<id>[0-9]+)(?:[/?#]\S*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class InStore:
    """An app as its page in the store shows it now."""

    id: str
    name: str
    version: str
    since: datetime  # when this version came into the store
    notes: str


def find_app(text: str, now: datetime) -> Choice:
    """The app of an Apple ID or of a link to its page in the store; `detail` is the country whose
    store has it. Raises Refused for anything else, NotFound, and TryLater."""
    app_id, country = _named(text.strip())
    found = lookup(app_id, country, now)
    if found is None:
        raise NotFound(
            f"The App Store of the country “{country}” has no app with the id {app_id}."
            " If it is sold elsewhere, paste the link to its page there."
        )
    return Choice(found.id, found.name or found.id, detail=country, seen={"country": country})


def _named(text: str) -> tuple[str, str]:
    """The id and the country that a person's text names. Raises Refused."""
    link = _LINK.fullmatch(text)
    app_id = link["id"] if link else text.removeprefix("id")
    if not is_app_id(app_id):
        raise Refused(
            "Paste the link to your app's page in the App Store, such as"
            " https://apps.apple.com/app/id6441234567, or only the number in it."
        )
    return app_id, ((link["country"] if link else None) or COUNTRY).lower()


def lookup(app_id: str, country: str, now: datetime) -> InStore | None:
    """What a country's store shows of an app; None where it has none. Raises TryLater."""
    # The cache in between is asked anew once an hour, and no more often.
    asked = {"id": app_id, "country": country, "_": str(int(now.timestamp()) // 3600)}
    try:
        answer = Api(LABEL, settings.ITUNES_LOOKUP_URL).ask("GET", "", now=now, params=asked)
        results = Fields(answer.body, "").each("results")
        return _in_store(results[0]) if results else None
    except BadPayload as error:
        raise TryLater(f"{LABEL} answered with something that is no answer.") from error
    except Refused as failure:
        if failure.answer is not None and failure.answer.status == 403:
            raise TryLater(f"{LABEL} asks us to wait.", timedelta(minutes=2)) from failure
        raise


def _in_store(result: Fields) -> InStore:
    return InStore(
        id=str(result.number("trackId")),
        name=result.line("trackName"),
        version=result.line("version", limit=VERSION_LIMIT),
        since=result.moment("currentVersionReleaseDate"),
        notes=result.text("releaseNotes", ""),
    )
