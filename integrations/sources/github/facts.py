"""What GitHub tells, each fact in one form under one key, whichever road it came by.

Webhooks and the REST API describe releases and pull requests alike; what differs is read by those
who call, and handed in. `repository` is GitHub's own object, which both roads bring.
"""

from datetime import datetime
from urllib.parse import quote

from integrations.sources.base import (
    BODY_LIMIT,
    BadPayload,
    Event,
    Fields,
    headline,
    is_sha,
    one_line,
    trimmed,
)
from integrations.sources.noise import bot, pull_request_of, why_ignored, why_tag_ignored

NAME = "github"
LABEL = "GitHub"


def release(found: Fields, repository: Fields, *, promoted: bool = False) -> Event:
    """A release; `promoted` if it was published as a prerelease before, maybe long ago."""
    version = _tag_name(found.text("tag_name"))
    early = found.flag("prerelease")
    title, _ = headline(found.text("name", "") or version)
    # A promotion leaves `published_at` at the day of the prerelease.
    when = "updated_at" if promoted and found.has("updated_at") else "published_at"
    return Event(
        source=NAME,
        kind="release",
        # A prerelease that is promoted later keeps its number: that is another fact, and the first
        # one must not stand in its way.
        id=f"{'prerelease' if early else 'release'}:{found.number('id')}",
        occurred_at=found.moment(when),
        title=title or version,
        body=trimmed(found.text("body", ""), BODY_LIMIT),
        link=_public_link(repository, found.link("html_url")),
        version=version,
        author=_login(found.maybe("author")),
        refs=(f"tag:{version}",),
        ignored="a prerelease" if early else "",
        private=repository.flag("private"),
        stage="" if early else "released",
    )


def merge(pull_request: Fields, repository: Fields) -> Event:
    """A pull request that was merged."""
    number = pull_request.number("number")
    user = pull_request.maybe("user")
    title, _ = headline(pull_request.text("title"))
    labels = [label.text("name", "") for label in pull_request.each("labels")]
    shas = (pull_request.text("merge_commit_sha", ""), pull_request.maybe("head").text("sha", ""))
    return Event(
        source=NAME,
        kind="merge",
        id=f"pr:{number}",
        occurred_at=pull_request.moment("merged_at"),
        title=title or f"Pull request #{number}",
        body=trimmed(pull_request.text("body", ""), BODY_LIMIT),
        link=_public_link(repository, pull_request.link("html_url")),
        author=_login(user),
        refs=(f"pr:{number}", *(f"sha:{sha}" for sha in shas if is_sha(sha))),
        ignored=bot(_login(user), user.text("type", "") == "Bot")
        or why_ignored(title, labels=labels),
        private=repository.flag("private"),
        stage="merged",
    )


def commit(
    sha: str,
    message: str,
    *,
    occurred_at: datetime,
    login: str,
    author: str,
    link: str,
    merged_with: int | None,
    repository: Fields,
) -> Event:
    """A commit on the default branch.

    `login` is its author's at GitHub, "" for somebody it does not know and calls `author`;
    `merged_with` is the pull request whose merge brought it.
    """
    if not is_sha(sha):
        raise BadPayload("the id of a commit is not a hash")
    title, rest = headline(message)
    login, author = name_of(login), name_of(author)
    pull_request = pull_request_of(title) or merged_with
    return Event(
        source=NAME,
        kind="commit",
        id=f"commit:{sha}",
        # Somebody's wrong clock does not put a commit after its own push.
        occurred_at=min(occurred_at, pushed_at(repository)),
        title=title or "(no message)",
        body=rest,
        link=_public_link(repository, link),
        author=login,
        refs=(f"sha:{sha}", *([f"pr:{pull_request}"] if pull_request else [])),
        ignored=("" if login else bot(author)) or why_ignored(title, login),
        private=repository.flag("private"),
        stage="merged",
    )


def tag(name: str, *, sha: str, occurred_at: datetime, repository: Fields) -> Event:
    """A new tag; `sha` is the commit that it names, "" where that is not said."""
    name = _tag_name(name)
    page = repository.link("html_url")
    ignored = why_tag_ignored(name)
    return Event(
        source=NAME,
        kind="tag",
        id=f"tag:{name}",
        occurred_at=occurred_at,
        title=name,
        link=_public_link(repository, page and f"{page}/releases/tag/{quote(name)}"),
        version=name,
        refs=(f"tag:{name}", *([f"sha:{sha}"] if is_sha(sha) else [])),
        ignored=ignored,
        private=repository.flag("private"),
        stage="" if ignored else "released",
    )


def pushed_at(repository: Fields) -> datetime:
    return repository.moment("pushed_at")


def name_of(text: str) -> str:
    """What a tag, a person, a branch or a repository is called."""
    return one_line(text)


def _tag_name(text: str) -> str:
    name = name_of(text)
    if not name:
        raise BadPayload("the tag has no name")
    return name


def _public_link(repository: Fields, link: str) -> str:
    """Readers of a public post cannot open a private repository's pages."""
    return "" if repository.flag("private") else link


def _login(user: Fields) -> str:
    return name_of(user.text("login", ""))
