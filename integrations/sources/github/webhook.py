"""GitHub's webhooks: releases, tags, pushes and merged pull requests.

Shapes: https://docs.github.com/en/webhooks/webhook-events-and-payloads
Signature: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import replace

from django.conf import settings

from integrations.sources.base import (
    AccountNews,
    Event,
    Fields,
    Gone,
    Hidden,
    Opened,
    OutOfReach,
    Reachable,
    Received,
    Renamed,
    header,
    secrets_in,
)
from integrations.sources.github import facts
from integrations.sources.github.facts import NAME, name_of
from integrations.sources.noise import merge_of

PATH = "github"
FOLLOW_ATTRIBUTE = "githubRepoId"
METHODS: tuple[str, ...] = ("POST",)
SIGNATURE_HEADER = "X-Hub-Signature-256"

# GitHub lists up to 2,048 commits in one push; the newest of them are enough to write from, and
# few enough to be recorded within the ten seconds that GitHub waits.
COMMITS_KEPT = 100


def secrets() -> tuple[str, ...]:
    return secrets_in(settings.GITHUB_WEBHOOK_SECRET)


def signature(body: bytes, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def verify(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    claimed = headers.get(SIGNATURE_HEADER, "").encode()
    return bool(secret) and hmac.compare_digest(signature(body, secret).encode(), claimed)


def parse(payload: dict[str, object], headers: Mapping[str, str]) -> Received:
    body = Fields(payload, "")
    event = header(headers, "X-GitHub-Event")
    action = body.identifier("action") if body.has("action") else ""
    received = Received(
        delivery_id=header(headers, "X-GitHub-Delivery"),
        event=f"{event}.{action}" if action else event,
        follow_id=str(body.fields("repository").number("id")) if body.has("repository") else "",
        private=body.maybe("repository").flag("private"),
    )
    if event not in _READERS:
        return replace(received, note=f"SlothPost does not track `{event}` events")
    return _READERS[event](body, received)


def _release(body: Fields, received: Received) -> Received:
    """A full release arrives as created, published and released; the last two are one fact."""
    release = body.fields("release")
    action = body.text("action")
    if action not in ("published", "released") or release.flag("draft"):
        return replace(received, note=f"A release is told once it is published, not when {action}")
    promoted = action == "released"  # maybe: what was never a prerelease says so too
    event = facts.release(release, body.fields("repository"), promoted=promoted)
    return replace(received, events=(event,))


def _push(body: Fields, received: Received) -> Received:
    ref = body.text("ref")
    repository = body.fields("repository")
    branch = repository.text("default_branch")
    if body.flag("deleted"):
        return replace(received, note="Something was deleted, nothing was added")
    if ref.startswith("refs/tags/"):
        if not body.flag("created"):
            return replace(received, note="A tag that was there before was moved")
        sha = body.maybe("head_commit").text("id", "")
        return replace(received, events=(_tag(body, ref.removeprefix("refs/tags/"), sha),))
    if ref != f"refs/heads/{branch}":
        return replace(received, note=f"Only the default branch, {name_of(branch)}, is followed")
    commits = body.each("commits")
    if not commits:
        return replace(received, note="The push brought no commits")
    note = ""
    if len(commits) > COMMITS_KEPT:
        note = f"Of {len(commits)} commits the newest {COMMITS_KEPT} were kept"
    # A merge on GitHub brings all commits of its pull request.
    merged = merge_of(body.maybe("head_commit").text("message", ""))
    events = tuple(_commit(commit, merged, repository) for commit in commits[-COMMITS_KEPT:])
    return replace(received, events=events, note=note)


def _commit(commit: Fields, merged: int | None, repository: Fields) -> Event:
    """A commit that is new on the default branch, pushed to another one before or not."""
    author = commit.maybe("author")
    return facts.commit(
        commit.text("id"),
        commit.text("message"),
        occurred_at=commit.moment("timestamp"),
        login=author.text("username", ""),
        author=author.text("name", ""),
        link=commit.link("url"),
        merged_with=merged,
        repository=repository,
    )


def _pull_request(body: Fields, received: Received) -> Received:
    """A label, or another text, that a merged pull request gets afterwards gives its fact anew."""
    pull_request = body.fields("pull_request")
    if body.text("action") not in ("closed", "labeled", "edited"):
        return replace(received, note="A pull request is told once it is merged")
    if not pull_request.flag("merged"):
        note = "The pull request was closed without being merged"
        if body.text("action") != "closed":
            note = "A pull request is told once it is merged"
        return replace(received, note=note)
    repository = body.fields("repository")
    branch = repository.text("default_branch")
    if pull_request.fields("base").text("ref") != branch:
        return replace(received, note=f"Only the default branch, {name_of(branch)}, is followed")
    return replace(received, events=(facts.merge(pull_request, repository),))


def _create(body: Fields, received: Received) -> Received:
    if body.text("ref_type") != "tag":
        return replace(received, note="A new branch is told once it is merged")
    return replace(received, events=(_tag(body, body.text("ref"), ""),))


def _tag(body: Fields, name: str, sha: str) -> Event:
    """A new tag. It arrives as `create` and as `push`; only the latter says of which commit."""
    repository = body.fields("repository")
    return facts.tag(name, sha=sha, occurred_at=facts.pushed_at(repository), repository=repository)


def _repository(body: Fields, received: Received) -> Received:
    action = body.text("action")
    if action in ("renamed", "transferred"):
        name = name_of(body.fields("repository").text("full_name"))
        return replace(received, upkeep=Renamed(name), note=f"The repository is {name} now")
    if action == "deleted":
        reason = "The repository was deleted on GitHub"
        return replace(received, upkeep=Gone(reason), note=reason)
    if action == "privatized":
        reason = "The repository was made private on GitHub"
        # Not private itself: whoever follows the repository saw it in public until now.
        return replace(received, upkeep=Hidden(reason), note=reason, private=False)
    if action == "publicized":
        return _public(body, received)
    return replace(received, note=f"Nothing to do when a repository is {action}")


def _public(body: Fields, received: Received) -> Received:
    return replace(received, upkeep=Opened(), note="The repository is open to everybody now")


SUSPENDED = "SlothPost was suspended at GitHub for this account: lift that there to go on."


def _installation(body: Fields, received: Received) -> Received:
    """What became of the app at an account: whoever connected it hears so."""
    installation = body.fields("installation")
    key = installation_key(installation.number("id"))
    name = name_of(installation.maybe("account").text("login", "")) or "an account"
    action = body.text("action")
    if action == "deleted":
        reason = f"SlothPost was uninstalled from {name} at GitHub: install it again to go on."
        return replace(received, account=AccountNews(key, broken=reason), note=reason)
    if action == "suspend":
        return replace(received, account=AccountNews(key, broken=SUSPENDED), note=SUSPENDED)
    if action == "unsuspend":
        note = f"SlothPost works for {name} again"
        return replace(received, account=AccountNews(key, lifted=SUSPENDED), note=note)
    if action == "created":
        # Whoever installed it comes back by a browser, which says who they are here.
        return replace(received, note=f"SlothPost was installed for {name}")
    return replace(received, note=f"Nothing to do for an installation when {action}")


def _installation_repositories(body: Fields, received: Received) -> Received:
    """The app may read other repositories of an account than before."""
    via = installation_key(body.fields("installation").number("id"))
    if body.text("action") == "removed":
        lost = tuple(
            (str(repository.number("id")), OutOfReach(_taken_away(repository), via))
            for repository in body.each("repositories_removed")
        )
        note = "Access to repositories was taken away at GitHub"
        return replace(received, upkeep_of=lost, note=note)
    given = tuple(
        (str(repository.number("id")), Reachable(via))
        for repository in body.each("repositories_added")
    )
    return replace(received, upkeep_of=given, note="More repositories can be read now")


def _taken_away(repository: Fields) -> str:
    name = name_of(repository.text("full_name", "")) or "the repository"
    return f"SlothPost's access to {name} was taken away at GitHub: give it back there to go on."


def _installation_target(body: Fields, received: Received) -> Received:
    """A user or an organisation is called by another name."""
    name = name_of(body.fields("account").text("login", ""))
    key = installation_key(body.fields("installation").number("id"))
    return replace(received, account=AccountNews(key, name=name), note=f"It is called {name} now")


def _authorization(body: Fields, received: Received) -> Received:
    reason = "You took SlothPost's authorisation back at GitHub: connect it again to go on."
    key = user_key(body.fields("sender").number("id"))
    return replace(received, account=AccountNews(key, broken=reason), note=reason)


def user_key(number: int) -> str:
    """What GitHub's webhooks call a person, as a connection's external key."""
    return f"{NAME}#user:{number}"


def installation_key(number: int) -> str:
    return f"{NAME}#installation:{number}"


def _ping(body: Fields, received: Received) -> Received:
    return replace(received, note="GitHub says hello: the webhook works")


_READERS: dict[str, Callable[[Fields, Received], Received]] = {
    "create": _create,
    "github_app_authorization": _authorization,
    "installation": _installation,
    "installation_repositories": _installation_repositories,
    "installation_target": _installation_target,
    "ping": _ping,
    "public": _public,
    "pull_request": _pull_request,
    "push": _push,
    "release": _release,
    "repository": _repository,
}
