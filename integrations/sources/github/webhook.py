"""GitHub's webhooks: releases, tags, pushes and merged pull requests.

Shapes: https://docs.github.com/en/webhooks/webhook-events-and-payloads
Signature: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from urllib.parse import quote

import requests
from django.conf import settings

from integrations.sources.base import (
    BODY_LIMIT,
    BadPayload,
    Event,
    Fields,
    Gone,
    Received,
    Renamed,
    header,
    headline,
    is_sha,
    secrets_in,
    trimmed,
)
from integrations.sources.noise import bot, merge_of, pull_request_of, why_ignored, why_tag_ignored

NAME = "github"
LABEL = "GitHub"
PATH = "github"
FOLLOW_ATTRIBUTE = "githubRepoId"
METHODS: tuple[str, ...] = ("POST",)
SIGNATURE_HEADER = "X-Hub-Signature-256"

# GitHub lists up to 2,048 commits in one push; the newest of them are enough to write from, and
# few enough to be recorded within the ten seconds that GitHub waits.
COMMITS_KEPT = 100
NAME_LIMIT = 200  # characters of a tag, login or repository
TIMEOUT = (3, 5)  # seconds to connect and to read


class NoSuchRepository(Exception):
    """A repository could not be looked up; `str()` says why and what to do."""


def find_repository(name: str) -> tuple[str, str]:
    """The numeric id and the full name of a public repository given as "owner/name".

    Raises NoSuchRepository. Asks
    https://docs.github.com/en/rest/repos/repos#get-a-repository at GITHUB_API_URL and nowhere
    else; a renamed repository answers with a redirect to another address of the same host.
    """
    address = f"{settings.GITHUB_API_URL}/repos/{name}"
    headers = {"Accept": "application/vnd.github+json", "User-Agent": "SlothPost"}
    try:
        answer = requests.get(address, headers=headers, timeout=TIMEOUT, allow_redirects=False)
        moved_to = answer.headers.get("Location", "")
        if answer.is_redirect and moved_to.startswith(f"{settings.GITHUB_API_URL}/"):
            answer = requests.get(moved_to, headers=headers, timeout=TIMEOUT, allow_redirects=False)
        if answer.status_code == 404:
            raise NoSuchRepository(
                f"GitHub shows no public repository {name}: check the spelling. A private one"
                " can be followed by its numeric id."
            )
        answer.raise_for_status()
        found = Fields(answer.json(), "")
        return str(found.number("id")), _name(found.text("full_name"))
    except (requests.RequestException, BadPayload) as error:
        raise NoSuchRepository(
            "GitHub did not answer: try again in a minute, or enter the numeric id."
        ) from error


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
    tag = _tag_name(release.text("tag_name"))
    prerelease = release.flag("prerelease")
    # A prerelease that is promoted later is "released" under the same number: that is another
    # fact, and the first one must not stand in its way.
    kind = "prerelease" if prerelease else "release"
    # A promotion leaves `published_at` at the day, maybe long ago, of the prerelease.
    when = "updated_at" if action == "released" and release.has("updated_at") else "published_at"
    title, _ = headline(release.text("name", "") or tag)
    event = Event(
        source=NAME,
        kind="release",
        id=f"{kind}:{release.number('id')}",
        occurred_at=release.moment(when),
        title=title or tag,
        body=trimmed(release.text("body", ""), BODY_LIMIT),
        link=_public_link(body, release.link("html_url")),
        version=tag,
        author=_login(release.maybe("author")),
        refs=(f"tag:{tag}",),
        ignored="a prerelease" if prerelease else "",
    )
    return replace(received, events=(event,))


def _push(body: Fields, received: Received) -> Received:
    ref = body.text("ref")
    branch = body.fields("repository").text("default_branch")
    if body.flag("deleted"):
        return replace(received, note="Something was deleted, nothing was added")
    if ref.startswith("refs/tags/"):
        if not body.flag("created"):
            return replace(received, note="A tag that was there before was moved")
        return replace(received, events=(_tag(body, ref.removeprefix("refs/tags/")),))
    if ref != f"refs/heads/{branch}":
        return replace(received, note=f"Only the default branch, {_name(branch)}, is followed")
    commits = body.each("commits")
    if not commits:
        return replace(received, note="The push brought no commits")
    note = ""
    if len(commits) > COMMITS_KEPT:
        note = f"Of {len(commits)} commits the newest {COMMITS_KEPT} were kept"
    events = tuple(_commit(commit, body) for commit in commits[-COMMITS_KEPT:])
    return replace(received, events=events, note=note)


def _commit(commit: Fields, push: Fields) -> Event:
    """A commit that is new on the default branch, pushed to another one before or not."""
    sha = commit.text("id")
    if not is_sha(sha):
        raise BadPayload("the id of a commit is not a hash")
    title, rest = headline(commit.text("message"))
    author = commit.maybe("author")
    login = _name(author.text("username", ""))
    # A merge on GitHub brings all commits of its pull request, which is told as one.
    pull_request = pull_request_of(title) or merge_of(push.maybe("head_commit").text("message", ""))
    ignored = (
        (f"part of pull request #{pull_request}" if pull_request else "")
        or ("rewritten by a forced push" if push.flag("forced") else "")
        or ("" if login else bot(author.text("name", ""), _is_bot(push.maybe("sender"))))
        or why_ignored(title, login)
    )
    return Event(
        source=NAME,
        kind="commit",
        id=f"commit:{sha}",
        # Somebody's wrong clock does not put a commit after its own push.
        occurred_at=min(commit.moment("timestamp"), _pushed_at(push)),
        title=title or "(no message)",
        body=rest,
        link=_public_link(push, commit.link("url")),
        author=login,
        refs=(f"sha:{sha}", *([f"pr:{pull_request}"] if pull_request else [])),
        ignored=ignored,
    )


def _pull_request(body: Fields, received: Received) -> Received:
    pull_request = body.fields("pull_request")
    if body.text("action") != "closed":
        return replace(received, note="A pull request is told once it is merged")
    if not pull_request.flag("merged"):
        return replace(received, note="The pull request was closed without being merged")
    branch = body.fields("repository").text("default_branch")
    if pull_request.fields("base").text("ref") != branch:
        return replace(received, note=f"Only the default branch, {_name(branch)}, is followed")
    number = pull_request.number("number")
    user = pull_request.maybe("user")
    title, _ = headline(pull_request.text("title"))
    labels = [label.text("name", "") for label in pull_request.each("labels")]
    shas = (pull_request.text("merge_commit_sha", ""), pull_request.maybe("head").text("sha", ""))
    event = Event(
        source=NAME,
        kind="merge",
        id=f"pr:{number}",
        occurred_at=pull_request.moment("merged_at"),
        title=title or f"Pull request #{number}",
        body=trimmed(pull_request.text("body", ""), BODY_LIMIT),
        link=_public_link(body, pull_request.link("html_url")),
        author=_login(user),
        refs=(f"pr:{number}", *(f"sha:{sha}" for sha in shas if is_sha(sha))),
        ignored=bot(_login(user), _is_bot(user)) or why_ignored(title, labels=labels),
    )
    return replace(received, events=(event,))


def _create(body: Fields, received: Received) -> Received:
    if body.text("ref_type") != "tag":
        return replace(received, note="A new branch is told once it is merged")
    return replace(received, events=(_tag(body, body.text("ref")),))


def _tag(body: Fields, name: str) -> Event:
    """A new tag. It arrives as `create` and as `push`: both give the same event."""
    name = _tag_name(name)
    page = body.fields("repository").link("html_url")
    return Event(
        source=NAME,
        kind="tag",
        id=f"tag:{name}",
        occurred_at=_pushed_at(body),
        title=name,
        link=_public_link(body, page and f"{page}/releases/tag/{quote(name)}"),
        version=name,
        author=_login(body.maybe("sender")),
        refs=(f"tag:{name}",),
        ignored=why_tag_ignored(name),
    )


def _tag_name(text: str) -> str:
    name = _name(text)
    if not name:
        raise BadPayload("the tag has no name")
    return name


def _repository(body: Fields, received: Received) -> Received:
    action = body.text("action")
    if action in ("renamed", "transferred"):
        name = _name(body.fields("repository").text("full_name"))
        return replace(received, upkeep=Renamed(name), note=f"The repository is {name} now")
    if action == "deleted":
        reason = "The repository was deleted on GitHub"
        return replace(received, upkeep=Gone(reason), note=reason)
    if action == "privatized":
        note = "The repository is private now: check what the waiting drafts tell of it"
        return replace(received, note=note, private=False)  # whoever follows it saw it in public
    return replace(received, note=f"Nothing to do when a repository is {action}")


def _ping(body: Fields, received: Received) -> Received:
    return replace(received, note="GitHub says hello: the webhook works")


_READERS: dict[str, Callable[[Fields, Received], Received]] = {
    "create": _create,
    "ping": _ping,
    "pull_request": _pull_request,
    "push": _push,
    "release": _release,
    "repository": _repository,
}


def _pushed_at(body: Fields) -> datetime:
    return body.fields("repository").moment("pushed_at")


def _public_link(body: Fields, link: str) -> str:
    """Readers of a public post cannot open a private repository's pages."""
    return "" if body.fields("repository").flag("private") else link


def _login(user: Fields) -> str:
    return _name(user.text("login", ""))


def _is_bot(user: Fields) -> bool:
    return user.text("type", "") == "Bot"


def _name(text: str) -> str:
    return trimmed(text, NAME_LIMIT)
