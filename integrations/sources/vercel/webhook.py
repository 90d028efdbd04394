"""Vercel's webhooks: production deployments.

Shapes: https://vercel.com/docs/webhooks/webhooks-api
Signature: HMAC-SHA1 over the raw body with the integration's client secret, bare hex.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.conf import settings

from integrations.sources.base import (
    AccountNews,
    Event,
    Fields,
    Gone,
    Received,
    Renamed,
    Wanted,
    headline,
    is_sha,
    one_line,
    secrets_in,
    trimmed,
)
from integrations.sources.noise import merge_of, why_ignored

NAME = "vercel"
LABEL = "Vercel"
PATH = "vercel"
FOLLOW_ATTRIBUTE = "vercelProjectId"
# Vercel has delivered an uninstall by DELETE as well.
METHODS: tuple[str, ...] = ("POST", "DELETE")
SIGNATURE_HEADER = "x-vercel-signature"

_GIT_HOSTS = ("github", "gitlab", "bitbucket")
# "deployment-ready" is how older integrations still spell "deployment.ready".
_OLD_SPELLING = re.compile(r"(deployment|integration-configuration|project)-([a-z-]+)")
_NOTES = {
    "deployment.rollback": "A rollback is no news",
    "test-webhook": "Vercel says hello: the webhook works",
}


def secrets() -> tuple[str, ...]:
    return secrets_in(settings.VERCEL_CLIENT_SECRET)


def signature(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()


def verify(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    claimed = headers.get(SIGNATURE_HEADER, "").encode()
    return bool(secret) and hmac.compare_digest(signature(body, secret).encode(), claimed)


def parse(payload: dict[str, object], headers: Mapping[str, str]) -> Received:
    body = Fields(payload, "")
    event = body.identifier("type")
    if old := _OLD_SPELLING.fullmatch(event):
        event = f"{old[1]}.{old[2]}"
    details = body.maybe("payload")
    received = Received(
        delivery_id=body.identifier("id"),
        event=event,
        follow_id=_project(details),
        private=True,  # only who has shown that a project is theirs hears of it
    )
    if event in ("deployment.promoted", "deployment.ready", "deployment.succeeded"):
        return replace(received, events=(_deployment(body, received),))
    if event == "project.removed":
        reason = "The project was removed on Vercel"
        return replace(received, upkeep=Gone(reason), note=reason)
    if event == "project.renamed":
        return _renamed(details, received)
    if event == "integration-configuration.removed":
        return _removed(details, received)
    return replace(received, note=_NOTES.get(event, f"SlothPost does not track `{event}` events"))


def installation_key(number: str) -> str:
    """What an installation is called, here and in Vercel's deliveries."""
    return f"{NAME}#{number}"


def _renamed(details: Fields, received: Received) -> Received:
    name = details.maybe("project").line("name", "")
    if not name:
        return replace(received, upkeep=Wanted(), note="The project has a new name")
    return replace(received, upkeep=Renamed(name), note=f"The project is {name} now")


def _removed(details: Fields, received: Received) -> Received:
    """The installation stands in an object of its own, or, as it was before, by itself."""
    flat = details.has("configurationId")
    number = (
        details.identifier("configurationId")
        if flat
        else details.fields("configuration").identifier("id")
    )
    reason = "SlothPost was removed at Vercel: install it again to go on."
    news = AccountNews(installation_key(number), broken=reason)
    return replace(received, account=news, note="The integration was removed on Vercel")


def _project(details: Fields) -> str:
    project = details.maybe("project")
    return project.identifier("id") if project.has("id") else ""


def _deployment(body: Fields, received: Received) -> Event:
    """A deployment is told once, at the first event that says it is in production."""
    details = body.fields("payload")
    deployment = details.fields("deployment")
    target = details.text("target", "") or "preview"
    # A promotion says production by its name and has no target.
    live = received.event == "deployment.promoted" or target == "production"
    return deployed(
        number=deployment.identifier("id"),
        at=body.moment("createdAt", per_second=1000),
        host=deployment.text("url", ""),
        meta=deployment.maybe("meta"),
        preview="" if live else target,
    )


def deployed(number: str, at: datetime, host: str, meta: Fields, preview: str = "") -> Event:
    """A deployment as everybody tells it, by webhook or when asked. `preview` is what it is for
    where that is not production."""
    title, rest = headline(_of_commit(meta, "CommitMessage"))
    if rest and (merge_of(title) or "See merge request" in rest):
        # What was merged stands in the body of GitHub's and GitLab's merge commits.
        title, rest = headline(rest)
    author = one_line(_of_commit(meta, "CommitAuthorLogin"))
    sha = _of_commit(meta, "CommitSha")
    return Event(
        source=NAME,
        kind="deployment",
        # A preview that is promoted later is another fact under the same number.
        id=f"{'preview' if preview else 'deployment'}:{number}",
        occurred_at=at,
        title=title or "New production deployment",
        body=rest,
        link="" if preview else _link(host),
        author=author,
        refs=(f"sha:{sha}",) if is_sha(sha) else (),
        ignored=_why_ignored(preview, title, author),
        private=_of_commit(meta, "RepoVisibility") != "public",
        stage="" if preview else "live",
    )


def _why_ignored(preview: str, title: str, author: str) -> str:
    if preview:
        return f"a {trimmed(preview, 50)} deployment"
    if not title:
        return "a deployment that does not say what changed"
    return why_ignored(title, author)


def _of_commit(meta: Fields, what: str) -> str:
    """A fact of the deployed commit, from whichever Git host it came; "" for a CLI deployment."""
    return next((found for host in _GIT_HOSTS if (found := meta.text(host + what, ""))), "")


def _link(host: str) -> str:
    return f"https://{host}" if re.fullmatch(r"[A-Za-z0-9.-]{1,250}", host) else ""
