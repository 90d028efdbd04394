"""What has happened in a repository, by GitHub's lists: what webhooks missed, or nobody sends.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from integrations import connections
from integrations.api import Api
from integrations.errors import Failure, NeedsReconnect, NotFound, Refused
from integrations.sources.base import (
    BadPayload,
    Event,
    Fetched,
    Fields,
    Follow,
    OutOfReach,
    Renamed,
    Upkeep,
)
from integrations.sources.github import facts
from integrations.sources.github.account import (
    accounts_of,
    installation_token,
    is_suspension,
    user_token,
)
from integrations.sources.github.calls import each_page, items_of, rest, understood
from integrations.sources.github.facts import name_of
from integrations.sources.noise import merge_of
from integrations.tables import Connection

MOST_PAGES = 5  # of a hundred each, of every list
PRERELEASES_KEPT = 20  # of which we notice that they become releases
_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class NoSuchRepository(Exception):
    """A repository could not be looked up; `str()` says why and what to do."""


@understood()
def fetch(follow: Follow, now: datetime) -> Fetched:
    """Releases, merged pull requests, commits and tags since `follow.since`, and what the
    repository is now. `Fetched.seen` holds the ETags of the lists. Raises a Failure."""
    if follow.connection is None:
        return _read(follow, "", now)
    try:
        return _read(follow, installation_token(follow.connection, now), now)
    except (NeedsReconnect, Refused) as failure:
        if isinstance(failure, Refused) and not is_suspension(failure):
            raise
        # The token that was kept is taken no more: being given another, or not, tells why.
        return _read(follow, installation_token(follow.connection, now, anew=True), now)


def _read(follow: Follow, token: str, now: datetime) -> Fetched:
    """Everything, with one token of the installation, or "" as anybody."""
    try:
        repository = _repository(rest(token), follow.id, now)
        if follow.connection and repository.flag("private"):
            _prove_access(follow.connection, follow.id, now)
    except NotFound:
        return Fetched(seen=follow.seen, upkeep=(OutOfReach(_why_unseen(follow)),))
    reading = _Reading(rest(token), repository, follow, now)
    events = reading.events()
    return Fetched(
        events=tuple(sorted(events, key=lambda event: event.occurred_at)),
        seen=reading.seen,
        upkeep=tuple(_renamed(repository, follow)),
        private=repository.flag("private"),
        note=reading.note,
    )


def _repository(api: Api, number: str, now: datetime) -> Fields:
    """By its number, which it keeps when it is renamed or moves."""
    return Fields(api.ask("GET", f"/repositories/{number}", now=now).body, "repository")


def _prove_access(installation: Connection, number: str, now: datetime) -> None:
    """The app sees what its installation covers; whether this person still may, only the tokens of
    their own accounts tell. Raises NotFound where they may not, and Refused where that cannot be
    asked: the installation has done nothing wrong."""
    unseen: NotFound | None = None
    lapsed: NeedsReconnect | None = None
    for account in accounts_of(installation):
        try:
            _repository(rest(user_token(account, now)), number, now)
        except NotFound as failure:
            unseen = failure
        except NeedsReconnect as failure:
            connections.mark_broken(account, failure.reason, now)
            lapsed = failure
        else:
            return
    if unseen is not None and lapsed is None:
        raise unseen
    raise Refused(
        "Connect your GitHub account again: it shows that you may see this repository."
    ) from lapsed


def _why_unseen(follow: Follow) -> str:
    name = follow.name or "the repository"
    if follow.connection is None:
        return f"GitHub no longer shows {name} to everybody: it was deleted or made private."
    return f"GitHub no longer shows {name} to your account: it was deleted, or access was taken."


def _renamed(repository: Fields, follow: Follow) -> Iterator[Upkeep]:
    name = name_of(repository.text("full_name"))
    if name != follow.name:
        yield Renamed(name)


@dataclass
class _Reading:
    """One reading of a repository's lists."""

    api: Api
    repository: Fields
    follow: Follow
    now: datetime
    seen: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def events(self) -> list[Event]:
        if not self.repository.has("pushed_at"):  # nothing was ever pushed to it
            return []
        tags = self._items("tags", {}, lambda tag: False)
        # A tag has no time of its own: new ones need the commits, also where none is new.
        commits = self._commits(unless_changed=not tags)
        return [
            event
            for event in (
                *self._releases(),
                *self._merges(),
                *self._told(commits),
                *self._tags(tags, commits),
            )
            if event.occurred_at >= self.follow.since
        ]

    def _items(
        self,
        name: str,
        params: Mapping[str, str | int],
        is_old: Callable[[Fields], bool],
        *,
        unless_changed: bool = True,
    ) -> list[Fields]:
        """A list from its newest entry on to the first page of old ones; empty where its ETag
        says that it is as it was."""
        etag = self.follow.seen.get(name, "") if unless_changed else ""
        pages = each_page(
            self.api,
            f"/repos/{self._name()}/{name}",
            self.now,
            params=params,
            headers={"If-None-Match": etag} if etag else None,
        )
        found: list[Fields] = []
        for number, page in enumerate(islice(pages, MOST_PAGES)):
            if page.is_unchanged:
                self.seen[name] = etag
                return []
            if number == 0:
                self.seen[name] = page.headers.get("ETag", "")
            items = items_of(page)
            found += items
            if all(is_old(item) for item in items):
                return found
            if number == MOST_PAGES - 1 and page.next_url:
                self.note = f"GitHub lists more {name} than we read at once: the newest were read."
        return found

    def _name(self) -> str:
        """As GitHub writes it just now, and fit for an address."""
        name = self.repository.text("full_name")
        if not _FULL_NAME.fullmatch(name):
            raise BadPayload("repository.full_name is not a name")
        return name

    # -- releases

    def _releases(self) -> Iterator[Event]:
        known = set(self.follow.seen.get("prereleases", "").split(","))
        found = [
            r for r in self._items("releases", {}, self._is_old_release) if not r.flag("draft")
        ]
        early = [str(r.number("id")) for r in found if r.flag("prerelease")]
        self.seen["prereleases"] = ",".join(early[:PRERELEASES_KEPT])
        if not found:  # nothing is new
            self.seen["prereleases"] = self.follow.seen.get("prereleases", "")
        for release in found:
            promoted = str(release.number("id")) in known and not release.flag("prerelease")
            yield facts.release(release, self.repository, promoted=promoted)

    def _is_old_release(self, release: Fields) -> bool:
        # They are listed by when they were drafted.
        return release.moment("created_at") < self.follow.since

    # -- pull requests

    def _merges(self) -> Iterator[Event]:
        params = {
            "state": "closed",
            "base": self.repository.text("default_branch"),
            "sort": "updated",
            "direction": "desc",
        }
        for pull_request in self._items("pulls", params, self._is_old_pull_request):
            if pull_request.has("merged_at"):
                yield facts.merge(pull_request, self.repository)

    def _is_old_pull_request(self, pull_request: Fields) -> bool:
        return pull_request.moment("updated_at") < self.follow.since

    # -- commits and tags

    def _commits(self, *, unless_changed: bool) -> list[Fields]:
        params = {
            "sha": self.repository.text("default_branch"),
            "since": self.follow.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        try:
            return self._items("commits", params, lambda _: False, unless_changed=unless_changed)
        except Refused as failure:
            if failure.answer is not None and failure.answer.status == 409:  # no commit at all
                return []
            raise

    def _told(self, commits: list[Fields]) -> Iterator[Event]:
        merged = _merged_with(commits)
        for found in commits:
            commit = found.fields("commit")
            yield facts.commit(
                found.text("sha"),
                commit.text("message"),
                occurred_at=_committed_at(found),
                login=found.maybe("author").text("login", ""),
                author=commit.maybe("author").text("name", ""),
                link=found.link("html_url"),
                merged_with=merged.get(found.text("sha")),
                repository=self.repository,
            )

    def _tags(self, tags: list[Fields], commits: list[Fields]) -> Iterator[Event]:
        """Those of the commits that were read, at their time: a tag itself has none."""
        times = {found.text("sha"): _committed_at(found) for found in commits}
        for tag in tags:
            sha = tag.fields("commit").text("sha")
            if sha in times:
                yield facts.tag(
                    tag.text("name"),
                    sha=sha,
                    occurred_at=min(times[sha], facts.pushed_at(self.repository)),
                    repository=self.repository,
                )


def _committed_at(found: Fields) -> datetime:
    return found.fields("commit").fields("committer").moment("date")


def _merged_with(commits: list[Fields]) -> dict[str, int]:
    """The pull request whose merge brought a commit, by the commit's hash.

    A merge's first parent is what was there before; what only the others lead to came with it.
    """
    parents = {
        found.text("sha"): [parent.text("sha") for parent in found.each("parents")]
        for found in commits
    }
    brought: dict[str, int] = {}
    for found in commits:
        sha = found.text("sha")
        pull_request = merge_of(found.fields("commit").text("message"))
        if pull_request and len(parents[sha]) > 1:
            before = _behind(parents[sha][:1], parents)
            for other in _behind(parents[sha][1:], parents) - before:
                brought.setdefault(other, pull_request)
    return brought


def _behind(starts: list[str], parents: Mapping[str, list[str]]) -> set[str]:
    """The commits, of those that were read, that these lead to; themselves included."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        sha = waiting.pop()
        if sha in parents and sha not in found:
            found.add(sha)
            waiting += parents[sha]
    return found


# -- looking one up --------------------------------------------------------------------------------


def find_repository(name: str, now: datetime) -> tuple[str, str]:
    """The numeric id and the full name of a public repository given as "owner/name".

    A renamed one is found under its old name as well. Raises NoSuchRepository.
    """
    try:
        with understood():
            found = Fields(rest().ask("GET", f"/repos/{name}", now=now).body, "repository")
            return str(found.number("id")), name_of(found.text("full_name"))
    except NotFound as failure:
        raise NoSuchRepository(
            f"GitHub shows no public repository {name}: check the spelling. A private one"
            " is in your list once your account is connected."
        ) from failure
    except Failure as failure:
        raise NoSuchRepository("GitHub did not answer: try again in a minute.") from failure
