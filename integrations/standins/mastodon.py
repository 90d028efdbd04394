"""A Mastodon instance on this machine: apps that register themselves, accounts, statuses.

It keeps Mastodon's contract: scopes within those registered, codes that are good once, keys that
make the same status of the same call for an hour, its own limit of characters, requests by the
five minutes.
https://docs.joinmastodon.org/methods/
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from integrations.outlets import text_length
from integrations.outlets.mastodon_text import pieces
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

REAL_WHEN_SET = ""  # there are no credentials to set: real instances are called all the same
HOST = "mastodon.standin"
DO = "/mastodon/do"  # where a person's buttons lead
PERSON, COMPANY = "slothpost_demo", "slow_boats"
SCOPES = {"read", "read:accounts", "read:statuses", "write", "write:statuses", "write:media"}
SINCE_4_3 = "profile"
CODE_LIFE, KEY_LIFE, WINDOW = timedelta(minutes=10), timedelta(hours=1), timedelta(minutes=5)
FIRST_ID = 115_000_000_000_000_000
ASKED = ("client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method")


def settings_for(standins: StandIns) -> dict[str, str]:
    return {"OPERATOR_HOSTS": json.dumps({HOST: f"{standins.url}{Mastodon.prefix}"})}


def add_to(standins: StandIns, keys: Path) -> "Mastodon":
    mastodon = Mastodon(standins)
    standins.services.append(mastodon)
    return mastodon


@dataclass
class App:
    client_id: str
    secret: str
    redirect_uri: str
    scopes: set[str]


@dataclass
class Account:
    id: str
    username: str
    disabled: bool = False
    window: datetime | None = None  # when its allowance is whole again
    used: int = 0


@dataclass
class Code:
    client_id: str
    username: str
    scopes: set[str]
    challenge: str
    made: datetime


@dataclass
class Token:
    client_id: str
    username: str
    scopes: set[str]


@dataclass
class Post:
    id: str
    username: str
    text: str
    at: datetime
    visible_at: datetime
    counts: dict[str, int] = field(default_factory=dict)  # {"favourites_count": 3}


def _error(status: int, error: str, description: str = "") -> Response:
    body = {"error": error}
    return Response(status, {**body, "error_description": description} if description else body)


class Mastodon(Service):
    prefix = "/mastodon"
    label = "Mastodon"
    kept = ("apps", "tokens", "accepted", "made")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/.well-known/oauth-authorization-server", "about_oauth"),
        ("POST", "/api/v1/apps", "register"),
        ("GET", "/oauth/authorize", "authorize"),
        ("POST", "/oauth/authorize", "authorized"),
        ("POST", "/oauth/token", "exchange"),
        ("POST", "/oauth/revoke", "revoke"),
        ("GET", "/api/v([12])/instance", "about"),
        ("GET", "/api/v1/accounts/verify_credentials", "show_me"),
        ("GET", "/api/v1/accounts/([0-9]+)/statuses", "list_of"),
        ("POST", "/api/v1/statuses", "create"),
        ("GET", "/api/v1/statuses/([0-9]+)", "show"),
        ("GET", "/api/v1/statuses/([0-9]+)/source", "show_source"),
        ("GET", "/@([a-z0-9_]+)/([0-9]+)", "show_post"),
    )

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.accounts = {
            name: Account(str(109_001 + at), name) for at, name in enumerate((PERSON, COMPANY))
        }
        self.apps: dict[str, App] = {}  # by client id
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Token] = {}
        self.accepted: list[Post] = []  # oldest first
        self.keys: dict[tuple[str, str], tuple[str, datetime]] = {}  # account, key: status, since
        self.made = 0  # statuses, those included that are deleted
        self.late = timedelta()  # from accepting a status until it is seen
        self.version = (4, 5)
        self.knows_keys = True  # not all software that speaks Mastodon's language does
        self.limit, self.allowance = 500, 300  # characters; requests in a window
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def posts(self) -> list[Post]:
        """What people see now, newest first."""
        return [post for post in reversed(self.accepted) if post.visible_at <= self.clock()]

    def not_found(self) -> Response:
        return _error(404, "Record not found")

    # -- apps and signing in

    @property
    def scopes(self) -> set[str]:
        return SCOPES | {SINCE_4_3} if self.version >= (4, 3) else SCOPES

    def about_oauth(self, request: Request) -> Response:
        if self.version < (4, 3):
            return self.not_found()
        about = {"issuer": self.url, "scopes_supported": sorted(self.scopes)}
        return Response(200, {**about, "code_challenge_methods_supported": ["S256"]})

    def register(self, request: Request) -> Response:
        form = request.form()
        scopes = set(form.get("scopes", "read").split())
        if not form.get("client_name") or "://" not in form.get("redirect_uris", ""):
            return _error(422, "Validation failed: Application name can't be blank")
        if not scopes <= self.scopes:
            return _error(422, "Validation failed: Scopes doesn't match configured on the server.")
        app = App(secrets.token_urlsafe(32), secrets.token_urlsafe(32), "", scopes)
        app.redirect_uri = form["redirect_uris"]
        self.apps[app.client_id] = app
        return Response(
            200,
            {
                "id": str(len(self.apps)),
                "name": form["client_name"],
                "redirect_uri": app.redirect_uri,
                "client_id": app.client_id,
                "client_secret": app.secret,
                "client_secret_expires_at": 0,
            },
        )

    def authorize(self, request: Request) -> Response:
        asked = {name: request.query.get(name, "") for name in ASKED}
        app = self.apps.get(asked["client_id"])
        if (
            app is None
            or asked["redirect_uri"] != app.redirect_uri
            or request.query.get("response_type") != "code"
            or not set(asked["scope"].split()) <= app.scopes
        ):
            wrong = "<p>Client authentication failed due to unknown client.</p>"
            return Response(401, page("Mastodon", "An error has occurred", wrong))
        fields = "".join(hidden(name, value) for name, value in asked.items())
        names = "".join(
            f"<label><input type='radio' name='account' value='{name}'"
            f"{' checked' if name == PERSON else ''}> @{name}</label><br>"
            for name in self.accounts
        )
        return Response(
            200,
            page(
                "Mastodon",
                "SlothPost wants to access your account",
                f"<form method='post'>{fields}<p>Signed in as</p>{names}"
                "<p>It may see who you are, read your statuses and post for you.</p>"
                "<button name='answer' value='allow'>Authorise</button> "
                "<button name='answer' value='deny'>Cancel</button></form>",
            ),
        )

    def authorized(self, request: Request) -> Response:
        form = request.form()
        app = self.apps.get(form.get("client_id", ""))
        if app is None or form.get("redirect_uri") != app.redirect_uri:
            return Response(400, page("Mastodon", "An error has occurred", ""))
        answer = {"state": form["state"]}
        if form.get("answer") == "allow":
            code = secrets.token_urlsafe(32)
            scopes, challenge = set(form["scope"].split()), form.get("code_challenge", "")
            account = form.get("account", PERSON)
            self.codes[code] = Code(app.client_id, account, scopes, challenge, self.clock())
            answer["code"] = code
        else:
            answer["error"] = "access_denied"
        return redirect(f"{app.redirect_uri}?{urlencode(answer)}")

    def _is_app(self, form: Mapping[str, str]) -> bool:
        app = self.apps.get(form.get("client_id", ""))
        return app is not None and app.secret == form.get("client_secret")

    def exchange(self, request: Request) -> Response:
        form = request.form()
        if not self._is_app(form):
            return _error(401, "invalid_client", "Client authentication failed.")
        with self.lock:
            code = self.codes.pop(form.get("code", ""), None)
        if (
            code is None
            or code.made + CODE_LIFE < self.clock()
            or code.client_id != form["client_id"]
            or form.get("redirect_uri") != self.apps[code.client_id].redirect_uri
            or not self._verifies(form.get("code_verifier", ""), code.challenge)
        ):
            said = "The provided authorization grant is invalid, expired or revoked."
            return _error(400, "invalid_grant", said)
        token = secrets.token_urlsafe(32)
        self.tokens[token] = Token(code.client_id, code.username, code.scopes)
        return Response(
            200,
            {
                "access_token": token,
                "token_type": "Bearer",
                "scope": " ".join(sorted(code.scopes)),
                "created_at": int(self.clock().timestamp()),
            },
        )

    def _verifies(self, verifier: str, challenge: str) -> bool:
        """Before 4.3 nobody looked at it."""
        if self.version < (4, 3) or not challenge:
            return True
        digest = hashlib.sha256(verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge

    def revoke(self, request: Request) -> Response:
        form = request.form()
        token = self.tokens.get(form.get("token", ""))
        if not self._is_app(form) or (token and token.client_id != form["client_id"]):
            return _error(403, "unauthorized_client", "You are not authorized to revoke this token")
        self.tokens.pop(form.get("token", ""), None)
        return Response(200, {})

    # -- reading

    def _may(self, request: Request, *scopes: str) -> Response | None:
        """Why a call with this token is refused, or None."""
        token = self.tokens.get(request.bearer())
        if token is None:
            return _error(401, "The access token is invalid")
        if self.accounts[token.username].disabled:
            return _error(403, "Your login is currently disabled")
        if not set(scopes) & token.scopes:
            return _error(403, "This action is outside the authorized scopes")
        return None

    def _account(self, request: Request) -> Account:
        return self.accounts[self.tokens[request.bearer()].username]

    def about(self, request: Request, version: str) -> Response:
        if version == "2" and self.version < (4, 0):
            return self.not_found()
        limits = {"max_characters": self.limit, "characters_reserved_per_url": 23}
        about = {"version": ".".join(map(str, self.version)), "title": "A stand-in"}
        return Response(200, {**about, "configuration": {"statuses": limits}})

    def show_me(self, request: Request) -> Response:
        if refused := self._may(request, "profile", "read:accounts", "read"):
            return refused
        account = self._account(request)
        names = dict.fromkeys(("username", "acct", "display_name"), account.username)
        return Response(200, {"id": account.id, **names, "url": f"{self.url}/@{account.username}"})

    def list_of(self, request: Request, number: str) -> Response:
        if refused := self._may(request, "read:statuses", "read"):
            return refused
        most = int(request.query.get("limit", "20"))
        mine = [post for post in self.posts if self.accounts[post.username].id == number]
        return Response(200, [self._shown(post) for post in mine[: min(most, 40)]])

    def _find(self, number: str) -> Post | None:
        return next((post for post in self.posts if post.id == number), None)

    def show(self, request: Request, number: str) -> Response:
        if refused := self._may(request, "read:statuses", "read"):
            return refused
        found = self._find(number)
        return Response(200, self._shown(found)) if found else self.not_found()

    def show_source(self, request: Request, number: str) -> Response:
        if refused := self._may(request, "read:statuses", "read"):
            return refused
        found = self._find(number)
        if found is None or self.version < (3, 5):
            return self.not_found()
        return Response(200, {"id": found.id, "text": found.text, "spoiler_text": ""})

    def _shown(self, post: Post) -> dict[str, Any]:
        address = f"{self.url}/@{post.username}/{post.id}"
        counts = dict.fromkeys(("favourites_count", "reblogs_count", "replies_count"), 0)
        return {
            "id": post.id,
            "created_at": post.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "uri": address,
            "url": address,
            "visibility": "public",
            "content": _as_page(post.text),
            **counts,
            **post.counts,
        }

    # -- posting

    def create(self, request: Request) -> Response:
        if refused := self._may(request, "write:statuses", "write"):
            return refused
        account = self._account(request)
        with self.lock:
            self._count(account)
            over = account.used > self.allowance
            response = _error(429, "Too many requests") if over else self._create(request, account)
        reset = account.window or self.clock()
        return replace(
            response,
            headers={
                "X-RateLimit-Limit": str(self.allowance),
                "X-RateLimit-Remaining": str(max(self.allowance - account.used, 0)),
                "X-RateLimit-Reset": reset.isoformat(timespec="microseconds"),
            },
        )

    def _count(self, account: Account) -> None:
        now = self.clock()
        if account.window is None or account.window <= now:
            account.window, account.used = now + WINDOW, 0
        account.used += 1

    def _create(self, request: Request, account: Account) -> Response:
        body = request.json()
        text = body.get("status", "")
        if not isinstance(text, str) or not text.strip():
            return _error(422, "Validation failed: Text can't be blank")
        if text_length("mastodon", text) > self.limit:
            said = f"Validation failed: Text character limit of {self.limit} exceeded"
            return _error(422, said)
        key = (account.username, request.headers.get("Idempotency-Key", ""))
        number, since = self.keys.get(key, ("", self.clock()))
        if self.knows_keys and number and since + KEY_LIFE > self.clock():
            return Response(200, self._shown(next(p for p in self.accepted if p.id == number)))
        post = self.accept(account.username, text)
        if key[1]:
            self.keys[key] = (post.id, self.clock())
        return Response(200, self._shown(post))

    def accept(self, username: str, text: str) -> Post:
        """A status of this account, as by hand."""
        now = self.clock()
        self.made += 1
        post = Post(str(FIRST_ID + self.made), username, text, now, now + self.late)
        self.accepted.append(post)
        return post

    # -- the website

    def show_post(self, request: Request, username: str, number: str) -> Response:
        post = self._find(number)
        if post is None or post.username != username:
            return Response(404, page("Mastodon", "This post is not there", ""))
        return Response(200, page("Mastodon", f"@{post.username}", _as_page(post.text)))

    def front(self, request: Request) -> Response:
        posts = "".join(
            f"<li><a href='{self.url}/@{post.username}/{post.id}'>@{post.username}</a>"
            f" {_as_page(post.text)}"
            f" {act(DO, post.id, 'like', 'Favourite')} {act(DO, post.id, 'remove', 'Delete')}</li>"
            for post in self.posts
        )
        accounts = "".join(
            f"<li>@{account.username}{' (disabled)' if account.disabled else ''}"
            f" {act(DO, account.username, 'disable', 'Disable or lift')}"
            f" {act(DO, account.username, 'take_back', 'Take SlothPost&#39;s access away')}</li>"
            for account in self.accounts.values()
        )
        body = (
            f"<p>As an instance, write <code>{HOST}</code>.</p>"
            f"<h2>What people see</h2><ul>{posts or '<li>nothing yet</li>'}</ul>"
            f"<h2>Accounts</h2><ul>{accounts}</ul>"
        )
        return Response(200, page("Mastodon", "Mastodon", body))

    def do(self, request: Request) -> Response:
        form = request.form()
        if form["what"] in ("like", "remove", "disable", "take_back"):
            getattr(self, form["what"])(form["number"])
        return redirect(f"{self.url}/")

    def like(self, number: str) -> None:
        for post in self.posts:
            if post.id == number:
                post.counts["favourites_count"] = post.counts.get("favourites_count", 0) + 1

    def remove(self, number: str) -> None:
        self.accepted = [post for post in self.accepted if post.id != number]

    def disable(self, username: str) -> None:
        account = self.accounts[username]
        account.disabled = not account.disabled

    def take_back(self, username: str) -> None:
        """What a person does in the settings of their account."""
        with self.lock:
            kept = {key: token for key, token in self.tokens.items() if token.username != username}
            self.tokens = kept


def _as_page(text: str) -> str:
    """A text as it is shown: a mention without its host, the scheme of a link out of sight."""
    shown = ""
    for piece in pieces(text):
        told = escape(piece.text)
        if piece.kind == "link":
            scheme, _, rest = piece.text.partition("://")
            told = (
                f"<a href='{told}' rel='nofollow'><span class='invisible'>{scheme}://</span>"
                f"<span>{escape(rest)}</span></a>"
            )
        elif piece.kind == "mention":
            told = f"<span class='h-card'>{escape(piece.text.rpartition('@')[0])}</span>"
        shown += told
    paragraphs = "".join(f"<p>{part}</p>" for part in shown.split("\n\n"))
    return paragraphs.replace("\n", "<br />")
