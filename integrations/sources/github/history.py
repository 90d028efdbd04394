"""What has happened in a repository, by GitHub's lists: what webhooks missed, or nobody sends.

Git's own dates say when something was made, not when it was pushed. So commits and tags are new by
what was there when last read, and by their dates only where that is not known.
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

import hashlib
import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from integrations import connections
from integrations.api import Api
from integrations.errors import Failure, NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources.base import (
    BadPayload,
    Event,
    Fetched,
    Fields,
    Follow,
    OutOfReach,
    Renamed,
    Upkeep,
    is_sha,
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

logger = logging.getLogger(__name__)

MOST_PAGES = 5  # of a hundred each, of every list
PRERELEASES_KEPT = 20  # of which we notice that they become releases
LONGEST_ETAG = 200  # characters
# In `Follow.seen`, beside the ETags of the lists: the newest commit of the default branch, and a
# mark for each tag, so short that those of all pages fit into a product.
HEAD, TAGS_KNOWN = "head", "tags_known"
MARK = 6  # characters
_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class NoSuchRepository(Exception):
    """A repository could not be looked up; `str()` says why and what to do."""


@understood()
def fetch(follow: Follow, now: datetime) -> Fetched:
    """Releases, merged pull requests, commits and tags since `follow.since`, and what the
    repository is now. `Fetched.seen` holds what tells the next time what is new. Raises a Failure.
    """
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
    if name and name != follow.name:
        yield Renamed(name)


@dataclass
class _Reading:
    """One reading of a repository's lists."""

    api: Api
    repository: Fields
    follow: Follow
    now: datetime
    seen: dict[str, str] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # lists that go on behind what was read
    pushed: set[str] = field(default_factory=set)  # facts that are new, whatever their date
    times: dict[str, datetime] = field(default_factory=dict)  # of the commits that were read

    def events(self) -> list[Event]:
        if not self.repository.has("pushed_at"):  # nothing was ever pushed to it
            return []
        tags = self._tags()
        commits = self._commits()
        return [
            event
            for event in (
                *self._releases(),
                *self._merges(),
                *self._told(commits),
                *self._tagged(tags),
            )
            if event.occurred_at >= self.follow.since or event.id in self.pushed
        ]

    @property
    def note(self) -> str:
        """What its owner should know."""
        if not self.cut:
            return ""
        names = " and ".join(sorted(self.cut))
        return f"GitHub lists more {names} than we read at once: the newest were read."

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
                new = page.headers.get("ETag", "")
                self.seen[name] = new if len(new) <= LONGEST_ETAG else ""
            items = items_of(page)
            found += items
            if all(is_old(item) for item in items):
                return found
            if number == MOST_PAGES - 1 and page.next_url:
                self.cut.add(name)
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

    # -- commits

    def _commits(self) -> list[Fields]:
        """What came to the default branch since it was last read, or else its newest commits."""
        before = self.follow.seen.get(HEAD, "")
        newest = self._newest()
        if not newest:
            self.seen |= {HEAD: before} if before else {}
            return []
        self.seen[HEAD] = head = _sha_of(newest[0])
        pushed = [] if before == head else self._between(before, head)
        self.times = {_sha_of(found): _committed_at(found) for found in (*newest, *(pushed or ()))}
        if pushed is None:
            return newest
        self.cut.discard("commits")
        self.pushed |= {f"commit:{_sha_of(found)}" for found in pushed}
        return pushed

    def _newest(self) -> list[Fields]:
        params = {"sha": self.repository.text("default_branch")}
        unless_changed = self._knows_tags()
        try:
            return self._items(
                "commits", params, self._is_old_commit, unless_changed=unless_changed
            )
        except Refused as failure:
            if failure.answer is not None and failure.answer.status == 409:  # no commit at all
                return []
            raise

    def _is_old_commit(self, commit: Fields) -> bool:
        return _committed_at(commit) < self.follow.since

    def _between(self, before: str, head: str) -> list[Fields] | None:
        """The commits that lead to `head` and did not lead to what was the newest before; None
        where GitHub cannot say, as when the history was written anew.

        https://docs.github.com/en/rest/commits/commits#compare-two-commits
        """
        if not before:
            return None
        path = f"/repos/{self._name()}/compare/{before}...{head}"
        found: list[Fields] = []
        try:
            for number, page in enumerate(islice(each_page(self.api, path, self.now), MOST_PAGES)):
                comparison = Fields(page.body, "comparison")
                if comparison.text("status") == "diverged":
                    return None
                found += comparison.each("commits")
                if number == MOST_PAGES - 1 and page.next_url:  # the newest come last
                    self.cut.add("commits")
                    return None
        except Refused:
            return None
        except TryLater as failure:
            # It may fail for as long as these two are compared, so it holds up nothing else; what
            # is missed for now is found from where we stood.
            logger.warning("commits not compared", extra={"why": failure.reason})
            self.seen |= {HEAD: before, "commits": ""}
            return None
        return found

    def _told(self, commits: list[Fields]) -> Iterator[Event]:
        merged = _merged_with(commits)
        for found in commits:
            commit = found.fields("commit")
            yield facts.commit(
                _sha_of(found),
                commit.text("message"),
                occurred_at=_committed_at(found),
                login=found.maybe("author").text("login", ""),
                author=commit.maybe("author").text("name", ""),
                link=found.link("html_url"),
                merged_with=merged.get(found.text("sha")),
                repository=self.repository,
            )

    # -- tags

    def _knows_tags(self) -> bool:
        """Whether it is known which tags there were. Where not, the commits' dates have to tell."""
        return TAGS_KNOWN in self.follow.seen

    def _tags(self) -> list[Fields]:
        """The tags, unless they are as they were; which of them are new is noted."""
        known = self.follow.seen.get(TAGS_KNOWN, "")
        # They are listed by their names: an ETag, which is that of the first page, tells of all
        # only where there is no second one.
        is_one_page = self._knows_tags() and len(known) < 100 * MARK
        found = self._items("tags", {}, lambda tag: False, unless_changed=is_one_page)
        marks = {tag.text("name"): _mark(tag.text("name")) for tag in found}
        if "tags" not in self.cut:  # else one that is seen for the first time need not be new
            self.seen[TAGS_KNOWN] = "".join(sorted(marks.values())) if found else known
            if self._knows_tags():
                before = {known[at : at + MARK] for at in range(0, len(known), MARK)}
                self.pushed |= {
                    f"tag:{name_of(name)}" for name, mark in marks.items() if mark not in before
                }
        return found

    def _tagged(self, tags: list[Fields]) -> Iterator[Event]:
        """The new tags, at the time of their commit if that was read: a tag itself has none, and
        a webhook tells it at the time of the last push."""
        by_name = self._knows_tags() and "tags" not in self.cut
        pushed_at = facts.pushed_at(self.repository)
        for tag in tags:
            name, sha = tag.text("name"), tag.fields("commit").text("sha")
            if f"tag:{name_of(name)}" in self.pushed if by_name else sha in self.times:
                yield facts.tag(
                    name,
                    sha=sha,
                    occurred_at=min(self.times.get(sha, pushed_at), pushed_at),
                    repository=self.repository,
                )


def _mark(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()
    return urlsafe_b64encode(digest)[:MARK].decode()


def _sha_of(commit: Fields) -> str:
    sha = commit.text("sha")
    if not is_sha(sha):
        raise BadPayload("the id of a commit is not a hash")
    return sha


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
