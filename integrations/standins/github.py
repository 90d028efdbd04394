"""GitHub on this machine: its website, as far as an app needs it, and its REST API.

It keeps GitHub's contract: one-time codes and PKCE, rotating tokens, an app's RS256 token, pages by
Link, ETags, allowances. What changes here is told by signed webhook, and kept as a delivery that
can be asked for again. https://docs.github.com/en/rest
"""

import hashlib
import hmac
import json
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jwt
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings

from integrations.sources.base import secrets_in
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

DO = "/github/do"  # where a person's buttons lead
REAL_WHEN_SET = "GITHUB_APP_ID"
APP_ID, SLUG = "4242", "slothpost-standin"
CLIENT_ID, CLIENT_SECRET = "Iv23standin", "a-stand-ins-client-secret"
PERSON, PERSON_ID = "slothpost-demo", 7001
ORGANISATION, ORGANISATION_ID = "slow-boats", 7002
COLLEAGUE, COLLEAGUE_ID = "slothpost-colleague", 7003
SLOWTIDE = 912345678  # the repository that the demo follows
CODE_LIFE = timedelta(minutes=10)
TOKEN_LIFE = timedelta(hours=8)
REFRESH_LIFE = timedelta(days=183)
API = "/api/v3"


def settings_for(standins: StandIns) -> dict[str, str]:
    github = next(service for service in standins.services if isinstance(service, GitHub))
    return {
        "GITHUB_URL": github.url,
        "GITHUB_API_URL": f"{github.url}{API}",
        "GITHUB_APP_ID": APP_ID,
        "GITHUB_APP_SLUG": SLUG,
        "GITHUB_CLIENT_ID": CLIENT_ID,
        "GITHUB_CLIENT_SECRET": CLIENT_SECRET,
        "GITHUB_PRIVATE_KEY": github.pem.replace("\n", "\\n"),
    }


def add_to(standins: StandIns, keys: Path) -> "GitHub":
    github = GitHub(standins, _app_key(keys))
    seed(github)
    standins.services.append(github)
    return github


def _app_key(keys: Path) -> str:
    """The PEM of the app's key, made once."""
    path = keys / "standin-github-app.pem"
    if not path.exists():
        made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        keys.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            made.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        )
        path.chmod(0o600)
    return path.read_text()


@dataclass
class Repository:
    """The lists hold GitHub's own JSON, newest first."""

    id: int
    owner: str
    name: str
    private: bool = False
    pushed_at: datetime | None = None
    old_names: set[str] = field(default_factory=set)
    releases: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    tags: list[dict[str, Any]] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


@dataclass
class Installation:
    """`repositories` is None where it covers all of the account's."""

    id: int
    account: str
    repositories: set[int] | None = None
    suspended_at: datetime | None = None


@dataclass
class Code:
    redirect_uri: str
    challenge: str
    made: datetime
    person: str


class GitHub(Service):
    prefix = "/github"
    label = "GitHub"
    kept = ("installations", "user_tokens", "people", "refresh_tokens", "refreshes", "app_tokens")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/login/oauth/authorize", "authorize"),
        ("POST", "/login/oauth/authorize", "authorized"),
        ("POST", "/login/oauth/access_token", "exchange"),
        ("GET", f"/apps/{SLUG}/installations/new", "choose"),
        ("POST", f"/apps/{SLUG}/installations/new", "install"),
        ("GET", "/settings/installations", "front"),
        ("GET", f"{API}/user", "show_user"),
        ("GET", f"{API}/user/emails", "list_emails"),
        ("GET", f"{API}/user/installations", "list_installations"),
        ("GET", f"{API}/user/installations/([0-9]+)/repositories", "list_installed"),
        ("POST", f"{API}/app/installations/([0-9]+)/access_tokens", "mint"),
        ("DELETE", f"{API}/app/installations/([0-9]+)", "uninstall"),
        ("GET", f"{API}/app/hook/deliveries", "list_deliveries"),
        ("POST", f"{API}/app/hook/deliveries/([0-9]+)/attempts", "attempt"),
        ("DELETE", f"{API}/applications/([^/]+)/grant", "revoke"),
        ("GET", f"{API}/installation/repositories", "list_covered"),
        ("GET", f"{API}/repositories/([0-9]+)", "show_by_id"),
        ("GET", f"{API}/repos/([^/]+/[^/]+)", "show_by_name"),
        ("GET", f"{API}/repos/([^/]+/[^/]+)/(releases|pulls|commits|tags)", "list_of"),
        ("GET", f"{API}/repos/([^/]+/[^/]+)/compare/([0-9a-f]+)\\.\\.\\.([0-9a-f]+)", "compare"),
    )

    def __init__(self, standins: StandIns, pem: str) -> None:
        super().__init__(standins)
        self.pem = pem
        self.repositories: dict[int, Repository] = {}
        self.installations: dict[int, Installation] = {}
        self.codes: dict[str, Code] = {}
        self.person = PERSON  # who is signed in there
        self.user_tokens: dict[str, datetime] = {}  # by when they lapse
        self.people: dict[str, str] = {}  # whom a user token acts for
        self.refresh_tokens: set[str] = set()
        self.refreshes: dict[str, str] = {}  # the user token that goes with a refresh token
        self.app_tokens: dict[str, tuple[int, datetime]] = {}
        self.accounts = {
            PERSON: PERSON_ID,
            ORGANISATION: ORGANISATION_ID,
            COLLEAGUE: COLLEAGUE_ID,
        }
        self.sees = {PERSON: {PERSON, ORGANISATION}, COLLEAGUE: {COLLEAGUE, ORGANISATION}}
        self.hidden: set[int] = set()  # repositories that PERSON may not see, the app may
        self.deliveries: list[dict[str, Any]] = []
        self.bodies: dict[str, tuple[str, bytes]] = {}  # of deliveries, by guid
        self.most_per_page = 100
        self.anonymous_left: int | None = None  # requests without a token; None for no end
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def handle(self, request: Request) -> Response:
        if not request.path.startswith(API):
            return super().handle(request)
        if refused := self._why_not(request):
            return refused
        response = super().handle(request)
        response = replace(response, headers={**response.headers, **self._allowance(request)})
        if request.method != "GET" or response.status != 200:
            return response
        etag = f'W/"{hashlib.sha256(json.dumps(response.body).encode()).hexdigest()}"'
        headers = {**response.headers, "ETag": etag}
        if request.headers.get("If-None-Match") == etag:
            return Response(304, None, headers)
        return replace(response, headers=headers)

    # -- who may

    def _why_not(self, request: Request) -> Response | None:
        """Bad credentials are refused whatever is asked for, and too many questions of nobody."""
        token = request.bearer()
        if token and not (self._is_user(token) or self._installation_of(token) or _is_jwt(token)):
            return Response(401, {"message": "Bad credentials"})
        installation = self._installation_of(token)
        if installation and installation.suspended_at:
            return Response(403, {"message": "This installation has been suspended"})
        if token or request.headers.get("Authorization") or self.anonymous_left is None:
            return None
        with self.lock:
            self.anonymous_left -= 1
            if self.anonymous_left >= 0:
                return None
        return Response(403, {"message": "API rate limit exceeded"}, self._allowance(request))

    def _allowance(self, request: Request) -> dict[str, str]:
        limit = 5000 if request.headers.get("Authorization") else 60
        left = self.anonymous_left if limit == 60 else None
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(limit - 1 if left is None else max(left, 0)),
            "X-RateLimit-Reset": str(int((self.clock() + timedelta(minutes=20)).timestamp())),
        }

    def _is_user(self, token: str) -> bool:
        return token in self.user_tokens and self.user_tokens[token] > self.clock()

    def _person(self, token: str) -> str:
        return self.people.get(token, PERSON)

    def _installation_of(self, token: str) -> Installation | None:
        number, until = self.app_tokens.get(token, (0, self.clock()))
        installation = self.installations.get(number)
        return installation if installation and until > self.clock() else None

    def _is_app(self, request: Request) -> bool:
        try:
            public = load_pem_private_key(self.pem.encode(), None).public_key()
            claims = jwt.decode(
                request.bearer(),
                public,  # type: ignore[arg-type] # made as an RSA key above
                algorithms=["RS256"],
                options={
                    "require": ["iat", "exp", "iss"],
                    "verify_exp": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidTokenError:
            return False
        now = self.clock().timestamp()
        in_time = claims["iat"] <= now < claims["exp"] <= now + 600
        return in_time and claims["iss"] in (APP_ID, CLIENT_ID)

    def _may_see(self, request: Request, repository: Repository) -> bool:
        if not repository.private:
            return True
        if self._is_user(request.bearer()):
            person = self._person(request.bearer())
            is_hidden = person == PERSON and repository.id in self.hidden
            return repository.owner in self.sees[person] and not is_hidden
        installation = self._installation_of(request.bearer())
        return installation is not None and self._covers(installation, repository)

    def _covers(self, installation: Installation, repository: Repository) -> bool:
        chosen = installation.repositories
        return repository.owner == installation.account and (
            chosen is None or repository.id in chosen
        )

    # -- signing in

    def authorize(self, request: Request) -> Response:
        asked = {name: request.query.get(name, "") for name in _OAUTH}
        if asked["client_id"] != CLIENT_ID or not self._is_our_callback(asked["redirect_uri"]):
            return Response(400, page("GitHub", "Wrong app", "<p>This app is not known.</p>"))
        fields = "".join(hidden(name, value) for name, value in asked.items())
        return Response(
            200,
            page(
                "GitHub",
                "Authorise SlothPost",
                f"<p>SlothPost wants to see which repositories {self.person} can reach.</p>"
                f"<form method='post'>{fields}"
                "<button name='answer' value='allow'>Authorise</button> "
                "<button name='answer' value='deny'>Cancel</button></form>",
            ),
        )

    def _is_our_callback(self, url: str) -> bool:
        paths = ("/connections/github/callback/", "/accounts/github/login/callback/")
        return url in {self.standins.site_url + path for path in paths}

    def authorized(self, request: Request) -> Response:
        form = request.form()
        if not self._is_our_callback(form.get("redirect_uri", "")):
            return Response(400, page("GitHub", "Wrong app", "<p>This app is not known.</p>"))
        answer = {"state": form["state"]}
        if form.get("answer") == "allow":
            answer["code"] = self.code(form["redirect_uri"], form.get("code_challenge", ""))
        else:
            answer |= {"error": "access_denied", "error_description": "The user has denied it."}
        return redirect(f"{form['redirect_uri']}?{urlencode(answer)}")

    def code(self, redirect_uri: str, challenge: str = "") -> str:
        code = secrets.token_hex(10)
        self.codes[code] = Code(redirect_uri, challenge, self.clock(), self.person)
        return code

    def exchange(self, request: Request) -> Response:
        """What is refused is refused with status 200, as GitHub does."""
        form = request.form()
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return Response(200, {"error": "incorrect_client_credentials"})
        if form.get("grant_type") == "refresh_token":
            with self.lock:
                refresh = form.get("refresh_token", "")
                known = refresh in self.refresh_tokens
                self.refresh_tokens.discard(refresh)
                before = self.refreshes.pop(refresh, "")
                self.user_tokens.pop(before, None)
                person = self._person(before)
            return self._tokens(person) if known else Response(200, {"error": "bad_refresh_token"})
        with self.lock:
            code = self.codes.pop(form.get("code", ""), None)
        if code is None or code.made + CODE_LIFE < self.clock() or not _proves(form, code):
            return Response(200, {"error": "bad_verification_code"})
        if form.get("redirect_uri", code.redirect_uri) != code.redirect_uri:
            return Response(200, {"error": "redirect_uri_mismatch"})
        return self._tokens(code.person)

    def _tokens(self, person: str) -> Response:
        token, refresh = f"ghu_{secrets.token_hex(20)}", f"ghr_{secrets.token_hex(30)}"
        self.user_tokens[token] = self.clock() + TOKEN_LIFE
        self.people[token] = person
        self.refresh_tokens.add(refresh)
        self.refreshes[refresh] = token
        return Response(
            200,
            {
                "access_token": token,
                "expires_in": int(TOKEN_LIFE.total_seconds()),
                "refresh_token": refresh,
                "refresh_token_expires_in": int(REFRESH_LIFE.total_seconds()),
                "token_type": "bearer",
                "scope": "",
            },
        )

    def revoke(self, request: Request, client_id: str) -> Response:
        ours = b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if client_id != CLIENT_ID or request.headers.get("Authorization") != f"Basic {ours}":
            return self.not_found()
        token = request.json().get("access_token")
        if token not in self.user_tokens:
            return Response(422, {"message": "Validation Failed"})
        theirs = {t for t in self.user_tokens if self._person(t) == self._person(token)}
        for other in theirs:
            self.user_tokens.pop(other, None)
        self.refresh_tokens -= {refresh for refresh, of in self.refreshes.items() if of in theirs}
        return Response(204)

    # -- installing

    def choose(self, request: Request) -> Response:
        rows = "".join(
            f"<label><input type='checkbox' name='repository' value='{r.id}'>"
            f" {escape(r.name)}{' (private)' if r.private else ''}</label><br>"
            for r in self.repositories.values()
            if r.owner == PERSON
        )
        state = hidden("state", request.query.get("state", ""))
        return Response(
            200,
            page(
                "GitHub",
                "Install SlothPost",
                f"<form method='post'>{state}<p>Where?</p>"
                f"<label><input type='radio' name='account' value='{PERSON}' checked> {PERSON}"
                f"</label><br><label><input type='radio' name='account' value='{ORGANISATION}'>"
                f" {ORGANISATION} (an owner has to approve it)</label>"
                "<p>Which repositories? None ticked is all of them.</p>"
                f"{rows}<p><button>Install</button></p></form>",
            ),
        )

    def install(self, request: Request) -> Response:
        form = request.forms()
        answer = {"state": form.get("state", [""])[0]}
        if form["account"][0] == ORGANISATION:
            answer |= {"setup_action": "request"}
        else:
            chosen = {int(number) for number in form.get("repository", [])}
            found = self.install_for(PERSON, chosen or None)
            answer |= {"installation_id": str(found.id), "setup_action": "install"}
            answer["code"] = self.code(self._callback())
        return redirect(f"{self._callback()}?{urlencode(answer)}")

    def _callback(self) -> str:
        return f"{self.standins.site_url}/connections/github/callback/"

    def install_for(self, account: str, repositories: set[int] | None = None) -> Installation:
        """The account's installation, new or with these repositories."""
        found = next((i for i in self.installations.values() if i.account == account), None)
        if found is None:
            found = Installation(50_001 + len(self.installations), account, repositories)
            self.installations[found.id] = found
            self.send("installation", "created", self._about_installation(found))
            return found
        before = self._covered_by(found)
        found.repositories = repositories
        after = self._covered_by(found)
        self._tell_access(found, "added", after - before)
        self._tell_access(found, "removed", before - after)
        return found

    def _covered_by(self, installation: Installation) -> set[int]:
        return {r.id for r in self.repositories.values() if self._covers(installation, r)}

    def _tell_access(self, installation: Installation, action: str, changed: set[int]) -> None:
        if not changed:
            return
        shown = [self.as_json(self.repositories[number]) for number in sorted(changed)]
        short = [{name: r[name] for name in ("id", "name", "full_name", "private")} for r in shown]
        about = {
            "installation": self._installation(installation),
            "repositories_added": [],
            "repositories_removed": [],
            f"repositories_{action}": short,
        }
        self.send("installation_repositories", action, about)

    def uninstall(self, request: Request, number: str) -> Response:
        if not self._is_app(request):
            return Response(401, {"message": "A JSON web token could not be decoded"})
        return Response(204 if self.installations.pop(int(number), None) else 404)

    def mint(self, request: Request, number: str) -> Response:
        if not self._is_app(request):
            return Response(401, {"message": "A JSON web token could not be decoded"})
        installation = self.installations.get(int(number))
        if installation is None:
            return self.not_found()
        if installation.suspended_at:
            return Response(403, {"message": "This installation has been suspended"})
        token = f"ghs_{APP_ID}_{secrets.token_hex(120)}"
        until = self.clock() + timedelta(hours=1)
        self.app_tokens[token] = (installation.id, until)
        return Response(201, {"token": token, "expires_at": iso(until)})

    # -- reading

    def show_user(self, request: Request) -> Response:
        if not self._is_user(request.bearer()):
            return Response(401, {"message": "Requires authentication"})
        person = self._person(request.bearer())
        return Response(
            200, {"id": self.accounts[person], "login": person, "name": None, "email": None}
        )

    def list_emails(self, request: Request) -> Response:
        if not self._is_user(request.bearer()):
            return Response(401, {"message": "Requires authentication"})
        person = self._person(request.bearer())
        address = {"email": f"{person}@example.com", "primary": True, "verified": True}
        return Response(200, [address])

    def list_installations(self, request: Request) -> Response:
        if not self._is_user(request.bearer()):
            return Response(401, {"message": "Requires authentication"})
        seen = self.sees[self._person(request.bearer())]
        found = [self._installation(i) for i in self.installations.values() if i.account in seen]
        return self._page(request, found, "installations")

    def list_installed(self, request: Request, number: str) -> Response:
        installation = self.installations.get(int(number))
        if not self._is_user(request.bearer()) or installation is None:
            return self.not_found()
        return self._page(
            request,
            [
                self.as_json(repository)
                for repository in self.repositories.values()
                if self._covers(installation, repository) and self._may_see(request, repository)
            ],
            "repositories",
        )

    def list_covered(self, request: Request) -> Response:
        installation = self._installation_of(request.bearer())
        if installation is None:
            return Response(403, {"message": "Resource not accessible"})
        covered = [r for r in self.repositories.values() if self._covers(installation, r)]
        return self._page(request, [self.as_json(r) for r in covered], "repositories")

    def show_by_id(self, request: Request, number: str) -> Response:
        repository = self.repositories.get(int(number))
        if repository is None or not self._may_see(request, repository):
            return self.not_found()
        return Response(200, self.as_json(repository))

    def show_by_name(self, request: Request, name: str) -> Response:
        for repository in self.repositories.values():
            if not self._may_see(request, repository):
                continue
            if repository.full_name == name:
                return Response(200, self.as_json(repository))
            if name in repository.old_names:
                address = f"{self.url}{API}/repositories/{repository.id}"
                return Response(301, {"message": "Moved Permanently"}, {"Location": address})
        return self.not_found()

    def _named(self, request: Request, name: str) -> Repository | None:
        named = (r for r in self.repositories.values() if r.full_name == name)
        return next((r for r in named if self._may_see(request, r)), None)

    def compare(self, request: Request, name: str, base: str, head: str) -> Response:
        """What leads to one commit and not to another, the oldest first."""
        repository = self._named(request, name)
        known = {c["sha"]: c for c in repository.commits} if repository else {}
        if base not in known or head not in known:
            return self.not_found()
        before, after = _behind(base, known), _behind(head, known)
        ahead, behind = len(after - before), len(before - after)
        page = self._page(
            request, [c for sha, c in reversed(known.items()) if sha in after - before], "commits"
        )
        states = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
        comparison = {
            "status": states.get((ahead > 0, behind > 0), "identical"),
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "commits": page.body["commits"],
            "files": [],
        }
        return replace(page, body=comparison)

    def list_of(self, request: Request, name: str, what: str) -> Response:
        repository = self._named(request, name)
        if repository is None:
            return self.not_found()
        if what == "commits" and not repository.commits:
            return Response(409, {"message": "Git Repository is empty."})
        found: list[dict[str, Any]] = getattr(repository, what)
        since = request.query.get("since", "")
        if what == "commits" and since:
            found = [c for c in found if c["commit"]["committer"]["date"] >= since]
        if what == "pulls":
            state = request.query.get("state", "open")
            found = [p for p in found if state in ("all", p["state"])]
            if base := request.query.get("base"):
                found = [p for p in found if p["base"]["ref"] == base]
            if request.query.get("sort") == "updated":
                newest_first = request.query.get("direction", "desc") == "desc"
                found = sorted(found, key=lambda p: str(p["updated_at"]), reverse=newest_first)
        return self._page(request, found)

    def _page(self, request: Request, entries: list[Any], name: str = "") -> Response:
        size = min(int(request.query.get("per_page", "30")), self.most_per_page)
        page = int(request.query.get("page", "1"))
        here = entries[(page - 1) * size : page * size]
        headers = {}
        if page * size < len(entries):
            query = urlencode({**request.query, "per_page": size, "page": page + 1})
            headers["Link"] = f'<{self.url}{request.path}?{query}>; rel="next"'
        body = {"total_count": len(entries), name: here} if name else here
        return Response(200, body, headers)

    # -- as GitHub writes it

    def as_json(self, repository: Repository) -> dict[str, Any]:
        pushed = repository.pushed_at
        return {
            "id": repository.id,
            "name": repository.name,
            "full_name": repository.full_name,
            "private": repository.private,
            "html_url": f"https://github.com/{repository.full_name}",
            "description": None,
            "default_branch": "main",
            "pushed_at": iso(pushed) if pushed else None,
            "owner": {"login": repository.owner, "id": self.accounts.get(repository.owner, 1)},
        }

    def _installation(self, installation: Installation) -> dict[str, Any]:
        suspended = installation.suspended_at
        return {
            "id": installation.id,
            "account": {
                "id": self.accounts[installation.account],
                "login": installation.account,
                "type": "User" if installation.account == PERSON else "Organization",
            },
            "repository_selection": "all" if installation.repositories is None else "selected",
            "suspended_at": iso(suspended) if suspended else None,
        }

    def _about_installation(self, installation: Installation) -> dict[str, Any]:
        return {"installation": self._installation(installation), "repositories": []}

    # -- webhooks

    def send(self, event: str, action: str, about: Mapping[str, Any]) -> int:
        """Tell SlothPost; the status that it answered with, 0 for none."""
        person = {"login": PERSON, "id": PERSON_ID, "type": "User"}
        payload = {
            **({"action": action} if action else {}),
            **self._through(about),
            **about,
            "sender": person,
        }
        guid = secrets.token_hex(16)
        self.bodies[guid] = (event, json.dumps(payload).encode())
        return self._deliver(guid)

    def _through(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The installation through which something is seen, where there is one."""
        number = about.get("repository", {}).get("id", 0)
        for installation in self.installations.values():
            if number and self._covers(installation, self.repositories[number]):
                return {"installation": {"id": installation.id}}
        return {}

    def _deliver(self, guid: str) -> int:
        event, body = self.bodies[guid]
        secret = next(iter(secrets_in(settings.GITHUB_WEBHOOK_SECRET)), "")
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": guid,
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        address = f"{self.standins.site_url}/webhooks/github/"
        try:
            status = requests.post(address, data=body, headers=headers, timeout=10).status_code
        except requests.RequestException:
            status = 0
        attempt = {
            "id": len(self.deliveries) + 1,
            "guid": guid,
            "delivered_at": iso(self.clock()),
            "status": "OK" if 200 <= status < 300 else "failed",
            "status_code": status,
            "event": event,
        }
        self.deliveries.insert(0, attempt)
        return status

    def list_deliveries(self, request: Request) -> Response:
        if not self._is_app(request):
            return Response(401, {"message": "A JSON web token could not be decoded"})
        return self._page(request, self.deliveries)

    def attempt(self, request: Request, number: str) -> Response:
        if not self._is_app(request):
            return Response(401, {"message": "A JSON web token could not be decoded"})
        found = next((d for d in self.deliveries if d["id"] == int(number)), None)
        if found is None:
            return self.not_found()
        self._deliver(found["guid"])
        return Response(202, {})

    # -- what a person does there

    def front(self, request: Request) -> Response:
        repositories = "".join(
            f"<li><b>{escape(r.full_name)}</b>{' (private)' if r.private else ''}"
            f" {act(DO, r.id, 'merge', 'Merge a pull request')}"
            f" {act(DO, r.id, 'release', 'Publish a release')}"
            f" {act(DO, r.id, 'rename', 'Rename')}"
            f" {act(DO, r.id, 'hide', 'Make it public' if r.private else 'Make it private')}</li>"
            for r in list(self.repositories.values())[:3]
        )
        installations = "".join(
            f"<li>SlothPost on {escape(i.account)} {act(DO, i.id, 'suspend', 'Suspend or lift')}"
            f" {act(DO, i.id, 'uninstall', 'Uninstall')}</li>"
            for i in self.installations.values()
        )
        deliveries = "".join(
            f"<li>{d['event']}: {d['status']} ({d['status_code']})</li>"
            for d in self.deliveries[:8]
        )
        return Response(
            200,
            page(
                "GitHub",
                f"GitHub of {PERSON}",
                f"<h2>Repositories</h2><ul>{repositories}</ul>"
                f"<h2>Installed apps</h2><ul>{installations or '<li>none</li>'}</ul>"
                f"<p><a href='{self.url}/apps/{SLUG}/installations/new'>Install SlothPost</a></p>"
                f"<h2>Webhooks sent</h2><ul>{deliveries or '<li>none yet</li>'}</ul>",
            ),
        )

    def do(self, request: Request) -> Response:
        form = request.form()
        number, what = int(form["number"]), form["what"]
        if what in ("suspend", "uninstall"):
            self._change_installation(self.installations[number], what)
        else:
            getattr(self, what)(self.repositories[number])
        return redirect(f"{self.url}/")

    def _change_installation(self, installation: Installation, what: str) -> None:
        if what == "uninstall":
            del self.installations[installation.id]
            self.send("installation", "deleted", self._about_installation(installation))
            return
        lifted = installation.suspended_at is not None
        installation.suspended_at = None if lifted else self.clock()
        action = "unsuspend" if lifted else "suspend"
        self.send("installation", action, self._about_installation(installation))

    def merge(
        self,
        repository: Repository,
        title: str = "Show the moon's phase beside each tide",
        **fields: Any,
    ) -> dict[str, Any]:
        """Merge a pull request and tell of it."""
        pull = add_pull(repository, title, self.clock(), **fields)
        about = {"number": pull["number"], "pull_request": {**pull, "merged": True}}
        self.send("pull_request", "closed", {**about, "repository": self.as_json(repository)})
        return pull

    def release(self, repository: Repository, version: str = "", **fields: Any) -> dict[str, Any]:
        """Publish a release and tell of it, as created and as published."""
        version = version or f"v2.{len(repository.releases) + 1}.0"
        release = add_release(repository, version, self.clock(), **fields)
        for action in ("created", "published"):
            about = {"release": release, "repository": self.as_json(repository)}
            self.send("release", action, about)
        return release

    def rename(self, repository: Repository, name: str = "") -> None:
        before = repository.name
        repository.old_names.add(repository.full_name)
        repository.name = name or f"{before}-2"
        changes = {"repository": {"name": {"from": before}}}
        about = {"changes": changes, "repository": self.as_json(repository)}
        self.send("repository", "renamed", about)

    def hide(self, repository: Repository) -> None:
        """Make a public repository private, or a private one public."""
        repository.private = not repository.private
        action = "privatized" if repository.private else "publicized"
        self.send("repository", action, {"repository": self.as_json(repository)})


# -- what has happened -----------------------------------------------------------------------------


def _behind(sha: str, known: Mapping[str, dict[str, Any]]) -> set[str]:
    """The commits that one leads to, itself included."""
    found: set[str] = set()
    waiting = [sha]
    while waiting:
        sha = waiting.pop()
        if sha in known and sha not in found:
            found.add(sha)
            waiting += [parent["sha"] for parent in known[sha]["parents"]]
    return found


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def add_commit(
    repository: Repository, message: str, at: datetime, login: str = PERSON
) -> dict[str, Any]:
    seed = f"{repository.id}/{len(repository.commits)}/{message}"
    sha = hashlib.sha1(seed.encode()).hexdigest()  # noqa: S324 -- as Git names commits
    who = {"name": login, "date": iso(at)}
    before = [{"sha": commit["sha"]} for commit in repository.commits[:1]]
    commit = {
        "sha": sha,
        "commit": {"message": message, "author": who, "committer": who},
        "author": {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"},
        "html_url": f"https://github.com/{repository.full_name}/commit/{sha}",
        "parents": before,
    }
    repository.commits.insert(0, commit)
    repository.pushed_at = max(at, repository.pushed_at or at)
    return commit


def add_pull(
    repository: Repository,
    title: str,
    at: datetime,
    *,
    body: str = "",
    login: str = PERSON,
    labels: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A pull request that was merged as one commit."""
    number = 101 + len(repository.pulls)
    commit = add_commit(repository, f"{title} (#{number})\n\n{body}".strip(), at, login)
    pull = {
        "id": repository.id * 1000 + number,
        "number": number,
        "state": "closed",
        "title": title,
        "body": body,
        "user": {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"},
        "labels": [{"name": label} for label in labels],
        "html_url": f"https://github.com/{repository.full_name}/pull/{number}",
        "base": {"ref": "main"},
        "head": {"ref": "work", "sha": hashlib.sha1(title.encode()).hexdigest()},  # noqa: S324
        "merge_commit_sha": commit["sha"],
        "merged_at": iso(at),
        "updated_at": iso(at),
    }
    repository.pulls.insert(0, pull)
    return pull


def add_release(
    repository: Repository,
    version: str,
    at: datetime,
    *,
    name: str = "",
    body: str = "",
    prerelease: bool = False,
) -> dict[str, Any]:
    if not repository.commits:
        add_commit(repository, "Begin", at)
    release = {
        "id": repository.id * 100 + len(repository.releases),
        "tag_name": version,
        "target_commitish": "main",
        "name": name or version,
        "body": body,
        "draft": False,
        "prerelease": prerelease,
        "created_at": iso(at),
        "published_at": iso(at),
        "updated_at": iso(at),
        "html_url": f"https://github.com/{repository.full_name}/releases/tag/{version}",
        "author": {"login": PERSON, "type": "User"},
    }
    repository.releases.insert(0, release)
    repository.tags.insert(0, {"name": version, "commit": {"sha": repository.commits[0]["sha"]}})
    repository.pushed_at = max(at, repository.pushed_at or at)
    return release


def seed(github: GitHub) -> None:
    """Two weeks of a tide table's life, and enough beside it to fill a second page."""
    now = github.clock()
    slowtide = Repository(SLOWTIDE, PERSON, "slowtide")
    harbour = Repository(912345679, PERSON, "secret-harbour", private=True)
    boats = Repository(912345680, ORGANISATION, "boats", private=True)
    others = [Repository(912346000 + n, PERSON, f"old-idea-{n:02}") for n in range(110)]
    for repository in (slowtide, harbour, boats, *others):
        github.repositories[repository.id] = repository

    def ago(**span: float) -> datetime:
        return now - timedelta(**span)

    add_commit(slowtide, "Initial commit", ago(days=40))
    add_pull(
        slowtide,
        "Load tide tables without a connection",
        ago(days=9, hours=3),
        body="The last place you looked at stays on the phone, so it opens out at sea too.",
    )
    add_pull(slowtide, "Bump urllib3 from 2.4.0 to 2.5.0", ago(days=8), login="dependabot[bot]")
    add_commit(slowtide, "chore: tidy the build", ago(days=7))
    add_release(
        slowtide,
        "v2.1.0",
        ago(days=6),
        name="Slowtide 2.1: tides offline",
        body="- Tide tables open without a connection (#101)",
    )
    add_pull(
        slowtide,
        "Warn when the wind stands against the tide",
        ago(days=3, hours=5),
        body="Wind against tide makes short, steep waves. The hours it will happen are marked.",
    )
    add_commit(slowtide, "Fix typo in README", ago(days=3))
    add_commit(slowtide, 'Revert "chore: tidy the build"', ago(days=2))
    add_pull(
        slowtide,
        "Share a tide as a picture",
        ago(hours=7),
        body="Pick a day and send it to whoever you paddle with.",
    )
    add_pull(harbour, "Let a harbour set its own depth", ago(days=1), body="Not for everybody yet.")
    add_pull(boats, "Add a logbook", ago(days=1))


# -- pages -----------------------------------------------------------------------------------------

_OAUTH = ("client_id", "redirect_uri", "state", "code_challenge")


def _is_jwt(token: str) -> bool:
    return token.count(".") == 2 and token.startswith("ey")


def _proves(form: Mapping[str, str], code: Code) -> bool:
    """Whether whoever asks is who began: https://www.rfc-editor.org/rfc/rfc7636"""
    if not code.challenge:
        return True
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=") == code.challenge
