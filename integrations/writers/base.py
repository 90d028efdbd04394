"""What a writer is given and what it hands back. Pure data."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Story:
    """One activity that is worth telling, as the writer sees it."""

    key: str
    kind: str  # "version" | "release" | "merge" | "commit" | "tag" | "deployment"
    title: str  # or its author's own words
    body: str
    link: str
    version: str
    occurred_at: datetime
    refs: tuple[str, ...]  # what it shares with other activity of the same change
    source: str


@dataclass(frozen=True)
class Brief:
    """What to write: for whom, where, about what, and how long it may be."""

    product: str
    link: str
    pitch: str
    audience: str
    voice: str
    outlet: str
    stories: tuple[Story, ...]
    variation: int  # any whole number, the same for the same post: picks among equal wordings
    limit: int
    length: Callable[[str], int]  # in the outlet's own unit, like `limit`


@dataclass(frozen=True)
class Written:
    """A text within the limit, and the keys of the stories that it rests on."""

    text: str
    evidence: tuple[str, ...]
