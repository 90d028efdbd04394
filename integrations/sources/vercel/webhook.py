"""Vercel's webhooks: production deployments.

Shapes: https://vercel.com/docs/webhooks/webhooks-api
Signature: HMAC-SHA1 over the raw body with the integration's client secret, bare hex.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings

from integrations.sources.base import (
    Event,
    Fields,
    Gone,
    Received,
    headline,
    is_sha,
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
    "integration-configuration.removed": "The integration was removed on Vercel: nothing more will"
    " arrive until it is installed again",
    "project.renamed": "The project has a new name: the link to it goes on by its id",
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
    )
    if event in ("deployment.promoted", "deployment.ready", "deployment.succeeded"):
        return replace(received, events=(_deployment(body, received),))
    if event == "project.removed":
        reason = "The project was removed on Vercel"
        return replace(received, upkeep=Gone(reason), note=reason)
    return replace(received, note=_NOTES.get(event, f"SlothPost does not track `{event}` events"))


def _project(details: Fields) -> str:
    project = details.maybe("project")
    return project.identifier("id") if project.has("id") else ""


def _deployment(body: Fields, received: Received) -> Event:
    """A deployment is told once, at the first event that says it is in production."""
    details = body.fields("payload")
    deployment = details.fields("deployment")
    meta = deployment.maybe("meta")
    target = details.text("target", "") or "preview"
    # A promotion says production by its name and has no target.
    live = received.event == "deployment.promoted" or target == "production"
    message = _of_commit(meta, "CommitMessage")
    title, rest = headline(message)
    if rest and (merge_of(title) or "See merge request" in rest):
        # What was merged stands in the body of GitHub's and GitLab's merge commits.
        title, rest = headline(rest)
    author = trimmed(_of_commit(meta, "CommitAuthorLogin"), 200)
    sha = _of_commit(meta, "CommitSha")
    return Event(
        source=NAME,
        kind="deployment",
        # A preview that is promoted later is another fact under the same number.
        id=f"{'deployment' if live else 'preview'}:{deployment.identifier('id')}",
        occurred_at=body.moment("createdAt", per_second=1000),
        title=title or "New production deployment",
        body=rest,
        link=_link(deployment) if live else "",
        author=author,
        refs=(f"sha:{sha}",) if is_sha(sha) else (),
        ignored=_why_ignored(live, target, title, author),
    )


def _why_ignored(live: bool, target: str, title: str, author: str) -> str:
    if not live:
        return f"a {trimmed(target, 50)} deployment"
    if not title:
        return "a deployment that does not say what changed"
    return why_ignored(title, author)


def _of_commit(meta: Fields, what: str) -> str:
    """A fact of the deployed commit, from whichever Git host it came; "" for a CLI deployment."""
    return next((found for host in _GIT_HOSTS if (found := meta.text(host + what, ""))), "")


def _link(deployment: Fields) -> str:
    host = deployment.text("url", "")
    return f"https://{host}" if re.fullmatch(r"[A-Za-z0-9.-]{1,250}", host) else ""
