"""Vercel on this machine: installing an integration, its API, and its one global webhook.

It keeps Vercel's contract: one-time codes, a token for each installation, the scope that a missing
teamId looks at, pages by a number, error bodies. https://vercel.com/docs/rest-api
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import requests
from django.conf import settings

from integrations.sources.base import secrets_in
from integrations.standins.github import SLOWTIDE, GitHub
from integrations.standins.server import (
    Request,
    Response,
    Service,
    StandIns,
    act,
    hidden,
    page,
    redirect,
)

DO = "/vercel/do"  # where a person's buttons lead
REAL_WHEN_SET = "VERCEL_CLIENT_ID"
SLUG, CLIENT_ID = "slothpost-standin", "oac_standin"
PERSON, PERSON_NAME = "usr_slothpostdemo", "slothpost-demo"
TEAM, TEAM_NAME = "team_slowboats", "Slow Boats"
CODE_LIFE = timedelta(minutes=30)


def settings_for(standins: StandIns) -> dict[str, str]:
    """The client secret stays Django's own: it signs the webhooks."""
    return {
        "VERCEL_URL": f"{standins.url}{Website.prefix}",
        "VERCEL_API_URL": f"{standins.url}{Vercel.prefix}",
        "VERCEL_INTEGRATION_SLUG": SLUG,
        "VERCEL_CLIENT_ID": CLIENT_ID,
    }


def add_to(standins: StandIns, keys: Path) -> "Vercel":
    vercel = Vercel(standins)
    seed(vercel, _commits_at_github(standins))
    standins.services += [vercel, Website(standins, vercel)]
    return vercel


def _commits_at_github(standins: StandIns) -> dict[str, str]:
    """The hashes of what the demo's repository merged, by title: what is deployed is that."""
    found = (s.repositories for s in standins.services if isinstance(s, GitHub))
    pulls = (pull for repositories in found for pull in repositories[SLOWTIDE].pulls)
    return {pull["title"]: pull["merge_commit_sha"] for pull in pulls}


@dataclass
class Project:
    id: str
    name: str
    owner: str  # a team's id, or the person's
    deployments: list[dict[str, Any]] = field(default_factory=list)  # as its API has them


@dataclass
class Configuration:
    """An installation, with the one token that reads for it."""

    id: str
    team: str  # "" for the person's own account
    token: str
    disabled_at: datetime | None = None

    @property
    def owner(self) -> str:
        return self.team or PERSON


@dataclass
class Code:
    configuration: str
    made: datetime


def _error(status: int, code: str, message: str, **more: Any) -> Response:
    return Response(status, {"error": {"code": code, "message": message, **more}})


FORBIDDEN = _error(403, "forbidden", "Not authorized")


class Vercel(Service):
    """The API."""

    prefix = "/vercel-api"
    kept = ("configurations",)
    routes = (
        ("POST", "/v2/oauth/access_token", "exchange"),
        ("GET", "/v1/integrations/configuration/([^/]+)", "show_configuration"),
        ("DELETE", "/v1/integrations/configuration/([^/]+)", "remove_configuration"),
        ("GET", "/v10/projects", "list_projects"),
        ("GET", "/v9/projects/([^/]+)", "show_project"),
        ("GET", "/v7/deployments", "list_deployments"),
        ("GET", "/v2/user", "show_user"),
        ("GET", "/v2/teams/([^/]+)", "show_team"),
        ("POST", "/v1/webhooks", "refuse_webhook"),
    )

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.projects: dict[str, Project] = {}
        self.configurations: dict[str, Configuration] = {}
        self.codes: dict[str, Code] = {}
        self.sent: list[tuple[str, int]] = []
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def handle(self, request: Request) -> Response:
        if request.path == "/v2/oauth/access_token":
            return super().handle(request)
        configuration = self._of(request)
        if configuration is None:
            return _error(401, "forbidden", "Not authorized", invalidToken=True)
        removes = request.method == "DELETE"
        if configuration.disabled_at and "/configuration/" not in request.path and not removes:
            return _error(403, "integration_configuration_disabled", "It is disabled")
        if request.query.get("teamId", configuration.team) != configuration.team:
            return FORBIDDEN
        return super().handle(request)

    def not_found(self) -> Response:
        return _error(404, "not_found", "Not found")

    def _of(self, request: Request) -> Configuration | None:
        token = request.bearer()
        return next((c for c in self.configurations.values() if c.token == token), None)

    # -- installing

    def install(self, team: str = "") -> tuple[str, Configuration]:
        """A new installation, and the code that stands for it."""
        made = Configuration(
            f"icfg_{secrets.token_hex(8)}", team, f"vercel_{secrets.token_hex(12)}"
        )
        self.configurations[made.id] = made
        code = secrets.token_hex(12)
        self.codes[code] = Code(made.id, self.clock())
        return code, made

    def callback_url(self) -> str:
        return f"{self.standins.site_url}/connections/vercel/callback/"

    def exchange(self, request: Request) -> Response:
        form = request.form()
        secret = next(iter(secrets_in(settings.VERCEL_CLIENT_SECRET)), "")
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, secret):
            return _error(403, "forbidden", "The client is not known")
        with self.lock:
            code = self.codes.pop(form.get("code", ""), None)
        in_time = code is not None and code.made + CODE_LIFE >= self.clock()
        if code is None or not in_time or form.get("redirect_uri") != self.callback_url():
            return _error(400, "invalid_grant", "The code is invalid or has expired")
        configuration = self.configurations[code.configuration]
        return Response(
            200,
            {
                "token_type": "Bearer",
                "access_token": configuration.token,
                "installation_id": configuration.id,
                "user_id": PERSON,
                "team_id": configuration.team or None,
            },
        )

    def show_configuration(self, request: Request, number: str) -> Response:
        mine = self._of(request)
        if mine is None or mine.id != number:
            return FORBIDDEN
        disabled = mine.disabled_at
        return Response(
            200,
            {
                "id": mine.id,
                "ownerId": mine.owner,
                "teamId": mine.team or None,
                "userId": PERSON,
                "projectSelection": "all",
                "disabledAt": int(disabled.timestamp() * 1000) if disabled else None,
            },
        )

    def remove_configuration(self, request: Request, number: str) -> Response:
        mine = self._of(request)
        if mine is None or mine.id != number:
            return FORBIDDEN
        self.remove(mine)
        return Response(204)

    def refuse_webhook(self, request: Request) -> Response:
        """An integration's webhook is set up in the Integration Console and nowhere else."""
        return FORBIDDEN

    # -- reading

    def _mine(self, request: Request) -> list[Project]:
        """Without a teamId, what is the person's own."""
        owner = request.query.get("teamId") or PERSON
        return [project for project in self.projects.values() if project.owner == owner]

    def list_projects(self, request: Request) -> Response:
        size = min(int(request.query.get("limit", "20")), 100)
        start = int(request.query.get("from", "0"))
        found = self._mine(request)
        here = [{"id": p.id, "name": p.name} for p in found[start : start + size]]
        more = start + size if start + size < len(found) else None
        return Response(200, {"projects": here, "pagination": {"count": len(here), "next": more}})

    def show_project(self, request: Request, number: str) -> Response:
        project = next((p for p in self._mine(request) if p.id == number), None)
        if project is None:
            return self.not_found()
        return Response(200, {"id": project.id, "name": project.name, "framework": "nextjs"})

    def list_deployments(self, request: Request) -> Response:
        """Newest first; `until` is the time of the next page."""
        query = request.query
        project = next((p for p in self._mine(request) if p.id == query.get("projectId")), None)
        if project is None:
            return FORBIDDEN
        since, until = int(query.get("since", "0")), int(query.get("until", str(2**62)))
        found = [
            deployment
            for deployment in project.deployments
            if since <= deployment["created"] < until
            and query.get("target") in (None, deployment["target"])
            and query.get("state") in (None, deployment["readyState"])
        ]
        size = min(int(query.get("limit", "20")), 100)
        more = found[size - 1]["created"] if len(found) > size else None
        pagination = {"count": len(found[:size]), "next": more}
        return Response(200, {"deployments": found[:size], "pagination": pagination})

    def show_user(self, request: Request) -> Response:
        return Response(200, {"user": {"id": PERSON, "username": PERSON_NAME, "name": None}})

    def show_team(self, request: Request, number: str) -> Response:
        return Response(200, {"id": TEAM, "name": TEAM_NAME, "slug": "slow-boats"})

    # -- webhooks

    def send(self, event: str, payload: dict[str, Any], method: str = "POST") -> int:
        """Tell SlothPost; the status that it answered with, 0 for none."""
        body = json.dumps(
            {
                "id": f"evt_{secrets.token_hex(10)}",
                "type": event,
                "createdAt": int(self.clock().timestamp() * 1000),
                "region": None,
                "payload": payload,
            }
        ).encode()
        secret = next(iter(secrets_in(settings.VERCEL_CLIENT_SECRET)), "")
        signature = hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()
        headers = {"Content-Type": "application/json", "x-vercel-signature": signature}
        address = f"{self.standins.site_url}/webhooks/vercel/"
        try:
            answer = requests.request(method, address, data=body, headers=headers, timeout=10)
            status = answer.status_code
        except requests.RequestException:
            status = 0
        self.sent.insert(0, (event, status))
        return status

    def about(self, project: Project) -> dict[str, Any]:
        team = {"id": project.owner} if project.owner != PERSON else None
        return {
            "team": team,
            "user": {"id": PERSON},
            "project": {"id": project.id, "name": project.name},
            "plan": "hobby",
            "regions": ["fra1"],
        }

    def deploy(self, project: Project, message: str = "Show the moon beside each tide") -> None:
        """Deploy to production and tell of it, as ready and as promoted."""
        deployment = add_deployment(project, message, self.clock())
        told = {**self.about(project), "deployment": {"id": deployment["uid"], **deployment}}
        self.send("deployment.ready", {**told, "target": "production"})
        self.send("deployment.promoted", told)

    def stage(self, project: Project) -> None:
        """Build for production without letting anybody see it yet."""
        made = add_deployment(project, "Show sunrise and sunset", self.clock())
        made["readySubstate"] = "STAGED"

    def promote(self, project: Project) -> None:
        """Let people see what was built last."""
        newest = project.deployments[0]
        newest["readySubstate"] = "PROMOTED"
        told = {**self.about(project), "deployment": {"id": newest["uid"], **newest}}
        self.send("deployment.promoted", told)

    def preview(self, project: Project) -> None:
        deployment = add_deployment(project, "Try another blue", self.clock(), target="preview")
        told = {**self.about(project), "deployment": {"id": deployment["uid"], **deployment}}
        self.send("deployment.ready", {**told, "target": None})

    def roll_back(self, project: Project) -> None:
        self.send("deployment.rollback", {**self.about(project), "toDeploymentId": "dpl_old"})

    def rename(self, project: Project, name: str = "") -> None:
        project.name = name or f"{project.name}-2"
        self.send("project.renamed", self.about(project))

    def remove_project(self, project: Project) -> None:
        del self.projects[project.id]
        self.send("project.removed", self.about(project))

    def remove(self, configuration: Configuration, method: str = "POST") -> None:
        """Uninstall, and tell of it."""
        del self.configurations[configuration.id]
        self.send(
            "integration-configuration.removed",
            {
                "configuration": {"id": configuration.id, "projects": []},
                "team": {"id": configuration.team} if configuration.team else None,
                "user": {"id": PERSON},
            },
            method,
        )

    def pause(self, configuration: Configuration) -> None:
        """What Vercel does when the person who installed it leaves the team; or lift it."""
        configuration.disabled_at = None if configuration.disabled_at else self.clock()


def add_deployment(
    project: Project, message: str, at: datetime, *, target: str = "production", sha: str = ""
) -> dict[str, Any]:
    number = f"{project.id}/{len(project.deployments)}/{message}"
    digest = hashlib.sha1(number.encode()).hexdigest()  # noqa: S324 -- as Git names commits
    deployment = {
        "uid": f"dpl_{digest[:20]}",
        "name": project.name,
        "url": f"{project.name}-{digest[:9]}.vercel.app",
        "created": int(at.timestamp() * 1000),
        "ready": int(at.timestamp() * 1000),
        "target": target,
        "readyState": "READY",
        "readySubstate": "PROMOTED",
        "meta": {
            "githubCommitSha": sha or digest,
            "githubCommitRef": "main",
            "githubCommitMessage": message,
            "githubCommitAuthorLogin": PERSON_NAME,
            "githubCommitOrg": PERSON_NAME,
            "githubCommitRepo": project.name,
            "githubRepoVisibility": "public",
        },
    }
    project.deployments.insert(0, deployment)
    return deployment


def seed(vercel: Vercel, commits: Mapping[str, str]) -> None:
    """A person with one project that matters among many, and a team with two."""
    now = vercel.clock()
    others = [Project(f"prj_idea{n:02}", f"old-idea-{n:02}", PERSON) for n in range(25)]
    slowtide = Project("prj_SlowtideDemo", "slowtide", PERSON)
    boats = [Project(f"prj_boats{n}", name, TEAM) for n, name in enumerate(("logbook", "crew"))]
    for project in (*others[:22], slowtide, *others[22:], *boats):
        vercel.projects[project.id] = project
    for days, title in (
        (9, "Load tide tables without a connection"),
        (3, "Warn when the wind stands against the tide"),
    ):
        add_deployment(slowtide, title, now - timedelta(days=days), sha=commits.get(title, ""))


class Website(Service):
    """Where a person installs the integration, and makes things happen."""

    prefix = "/vercel"
    label = "Vercel"
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", f"/integrations/{SLUG}/new", "choose"),
        ("POST", f"/integrations/{SLUG}/new", "install"),
        ("GET", "/done", "done"),
    )

    def __init__(self, standins: StandIns, vercel: Vercel) -> None:
        super().__init__(standins)
        self.vercel = vercel

    def choose(self, request: Request) -> Response:
        state = hidden("state", request.query.get("state", ""))
        return Response(
            200,
            page(
                "Vercel",
                "Install SlothPost",
                f"<form method='post'>{state}<p>For which account?</p>"
                "<label><input type='radio' name='team' value='' checked>"
                f" {PERSON_NAME}</label><br><label><input type='radio' name='team' value='{TEAM}'>"
                f" {TEAM_NAME}, a team</label>"
                "<p>It may read all projects and deployments.</p>"
                "<button name='answer' value='install'>Install</button> "
                "<button name='answer' value='cancel'>Cancel</button></form>",
            ),
        )

    def install(self, request: Request) -> Response:
        form = request.form()
        answer = {name: form[name] for name in ("state",) if form.get(name)}
        if form.get("answer") != "install":
            answer |= {"error": "access_denied"}
            return redirect(f"{self.vercel.callback_url()}?{urlencode(answer)}")
        code, made = self.vercel.install(form.get("team", ""))
        answer |= {"code": code, "configurationId": made.id, "next": f"{self.url}/done"}
        answer |= {"teamId": made.team} if made.team else {}
        return redirect(f"{self.vercel.callback_url()}?{urlencode(answer)}")

    def done(self, request: Request) -> Response:
        back = f"{self.standins.site_url}/connections/"
        return Response(
            200,
            page("Vercel", "Installed", f"<p>All set. <a href='{back}'>Go on at SlothPost</a></p>"),
        )

    def front(self, request: Request) -> Response:
        vercel = self.vercel
        projects = "".join(
            f"<li><b>{escape(p.name)}</b> {act(DO, p.id, 'deploy', 'Deploy to production')}"
            f" {act(DO, p.id, 'preview', 'Deploy a preview')}"
            f" {act(DO, p.id, 'stage', 'Build only')} {act(DO, p.id, 'promote', 'Promote')}"
            f" {act(DO, p.id, 'roll_back', 'Roll back')}"
            f" {act(DO, p.id, 'rename', 'Rename')} {act(DO, p.id, 'remove_project', 'Remove')}</li>"
            for p in vercel.projects.values()
            if not p.name.startswith("old-idea")
        )
        installed = "".join(
            f"<li>SlothPost for {TEAM_NAME if c.team else PERSON_NAME}"
            f"{' (paused)' if c.disabled_at else ''} {act(DO, c.id, 'pause', 'Pause or go on')}"
            f" {act(DO, c.id, 'remove', 'Remove')}</li>"
            for c in vercel.configurations.values()
        )
        sent = "".join(f"<li>{event}: {status}</li>" for event, status in vercel.sent[:8])
        return Response(
            200,
            page(
                "Vercel",
                f"Vercel of {PERSON_NAME}",
                f"<h2>Projects</h2><ul>{projects}</ul>"
                f"<h2>Installed integrations</h2><ul>{installed or '<li>none</li>'}</ul>"
                f"<p><a href='{self.url}/integrations/{SLUG}/new'>Install SlothPost from the"
                " marketplace</a></p>"
                f"<h2>Webhooks sent</h2><ul>{sent or '<li>none yet</li>'}</ul>",
            ),
        )

    def do(self, request: Request) -> Response:
        form = request.form()
        number, what = form["number"], form["what"]
        things: dict[str, Any] = {**self.vercel.projects, **self.vercel.configurations}
        getattr(self.vercel, what)(things[number])
        return redirect(f"{self.url}/")
