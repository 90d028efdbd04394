"""X on this machine: its website, as far as accounts and posts need it, and its API.

It keeps X's contract: codes of 30 seconds with PKCE, tokens that rotate, scopes, credit, limits in
headers, one post of a text, links of its own in what is read back. https://docs.x.com/x-api
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from integrations.outlets.x_length import count, has_link
from integrations.outlets.x_text import objection, pieces
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

DO = "/x/do"  # where a person's buttons lead
REAL_WHEN_SET = "X_CLIENT_ID"
CLIENT_ID, CLIENT_SECRET = "x-standin", "a-stand-ins-client-secret"
PERSON, COMPANY = "slothpost_demo", "slow_boats"
API = "/api/2"
CODE_LIFE, TOKEN_LIFE = timedelta(seconds=30), timedelta(hours=2)
WINDOW = timedelta(minutes=15)
SCOPES = {"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"}
ASKED = ("client_id", "redirect_uri", "scope", "state", "code_challenge")
FIRST_ID = 1_990_000_000_000_000_000


def settings_for(standins: StandIns) -> dict[str, str]:
    return {
        "X_URL": f"{standins.url}/x",
        "X_API_URL": f"{standins.url}/x/api",
        "X_CLIENT_ID": CLIENT_ID,
        "X_CLIENT_SECRET": CLIENT_SECRET,
    }


def add_to(standins: StandIns, keys: Path) -> "X":
    x = X(standins)
    standins.services.append(x)
    return x


@dataclass
class Account:
    id: str
    username: str
    suspended: bool = False
    used: int = 0  # calls that create a post, in this window
    window: datetime | None = None  # when this window ends


@dataclass
class Code:
    account: str
    scopes: tuple[str, ...]
    redirect_uri: str
    challenge: str
    made: datetime


@dataclass
class Token:
    account: str
    scopes: tuple[str, ...]
    until: datetime


@dataclass
class Post:
    id: str
    account: str
    text: str  # as readers see it
    at: datetime
    visible_at: datetime
    metrics: dict[str, int] = field(default_factory=dict)


def _problem(status: int, title: str, detail: str, kind: str = "about:blank") -> Response:
    body = {"detail": detail, "type": kind, "title": title, "status": status}
    return Response(status, body)


def _forbidden(detail: str) -> Response:
    return _problem(403, "Forbidden", detail)


def _invalid(message: str) -> Response:
    kind = "https://api.twitter.com/2/problems/invalid-request"
    body = {
        "errors": [{"message": message}],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": kind,
    }
    return Response(400, body)


def _oauth_error(status: int, error: str, description: str) -> Response:
    return Response(status, {"error": error, "error_description": description})


UNAUTHORISED = _problem(401, "Unauthorized", "Unauthorized")


class X(Service):
    prefix = "/x"
    label = "X"
    kept = ("accounts", "tokens", "refresh_tokens", "accepted", "made", "credit")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/i/oauth2/authorize", "authorize"),
        ("POST", "/i/oauth2/authorize", "authorized"),
        ("GET", "/settings/connected_apps", "front"),
        ("GET", "/[A-Za-z0-9_]+/status/([0-9]+)", "show_post"),
        ("POST", f"{API}/oauth2/token", "exchange"),
        ("POST", f"{API}/oauth2/revoke", "revoke"),
        ("GET", f"{API}/users/me", "show_me"),
        ("POST", f"{API}/tweets", "create"),
        ("GET", f"{API}/tweets", "list_by_id"),
        ("GET", f"{API}/users/([0-9]+)/tweets", "list_of"),
    )

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.accounts = {
            name: Account(str(44_001 + at), name) for at, name in enumerate((PERSON, COMPANY))
        }
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, str] = {}  # the token that goes with each
        self.accepted: list[Post] = []  # oldest first
        self.made = 0  # posts, those included that are deleted
        self.late = timedelta()  # from accepting a post until it is seen
        self.credit = Decimal("25.00")  # US dollars that the app has left
        self.limit, self.day_limit = 100, 10_000  # posts of an account in a window; of the app
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def posts(self) -> list[Post]:
        """What people see now, newest first."""
        return [post for post in reversed(self.accepted) if post.visible_at <= self.clock()]

    # -- who may

    def handle(self, request: Request) -> Response:
        if not request.path.startswith(API) or request.path.startswith(f"{API}/oauth2/"):
            return super().handle(request)
        if self._token(request) is None:
            return UNAUTHORISED
        if self.credit <= 0:
            return _problem(
                402,
                "CreditsDepleted",
                "Your enrolled account does not have any credits to fulfill this request.",
                "https://api.twitter.com/2/problems/credits",
            )
        return super().handle(request)

    def not_found(self) -> Response:
        return _problem(404, "Not Found", "Not Found")

    def _token(self, request: Request) -> Token | None:
        token = self.tokens.get(request.bearer())
        return token if token and token.until > self.clock() else None

    def _account(self, request: Request) -> Account:
        token = self._token(request)
        return self.accounts[token.account if token else ""]

    def _lacks(self, request: Request, *scopes: str) -> Response | None:
        token = self._token(request)
        if token and set(scopes) <= set(token.scopes):
            return None
        return _problem(
            403,
            "Unsupported Authentication",
            "Authenticating with this token is not enough for this endpoint.",
            "https://api.twitter.com/2/problems/unsupported-authentication",
        )

    # -- signing in

    def authorize(self, request: Request) -> Response:
        asked = {name: request.query.get(name, "") for name in ASKED}
        how = (request.query.get("response_type"), request.query.get("code_challenge_method"))
        if (
            asked["client_id"] != CLIENT_ID
            or asked["redirect_uri"] != self.callback_url()
            or how != ("code", "S256")
            or not asked["code_challenge"]
            or not 0 < len(asked["state"]) <= 500
            or not set(asked["scope"].split()) <= SCOPES
        ):
            wrong = "<p>This app is not known, or asks for something that there is not.</p>"
            return Response(400, page("X", "Something went wrong", wrong))
        fields = "".join(hidden(name, value) for name, value in asked.items())
        names = "".join(
            f"<label><input type='radio' name='account' value='{name}'"
            f"{' checked' if name == PERSON else ''}> @{name}</label><br>"
            for name in self.accounts
        )
        return Response(
            200,
            page(
                "X",
                "SlothPost wants to access your X account",
                f"<form method='post'>{fields}<p>Signed in as</p>{names}"
                "<p>It may see your posts, post for you, and stay connected.</p>"
                "<button name='answer' value='allow'>Authorise app</button> "
                "<button name='answer' value='deny'>Cancel</button></form>",
            ),
        )

    def callback_url(self) -> str:
        return f"{self.standins.site_url}/connections/x/callback/"

    def authorized(self, request: Request) -> Response:
        form = request.form()
        if form.get("redirect_uri") != self.callback_url():
            return Response(400, page("X", "Something went wrong", "<p>Wrong address.</p>"))
        answer = {"state": form["state"]}
        if form.get("answer") == "allow":
            scopes = tuple(form["scope"].split())
            answer["code"] = self.code(form["account"], form["code_challenge"], scopes)
        else:
            answer["error"] = "access_denied"
        return redirect(f"{form['redirect_uri']}?{urlencode(answer)}")

    def code(self, account: str, challenge: str, scopes: tuple[str, ...]) -> str:
        code = secrets.token_urlsafe(40)
        self.codes[code] = Code(account, scopes, self.callback_url(), challenge, self.clock())
        return code

    def _is_client(self, request: Request) -> bool:
        ours = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        return request.headers.get("Authorization") == f"Basic {ours}"

    def exchange(self, request: Request) -> Response:
        form = request.form()
        if not self._is_client(request):
            return _oauth_error(401, "unauthorized_client", "Missing valid authorization header")
        if form.get("grant_type") == "refresh_token":
            return self._refresh(form.get("refresh_token", ""))
        with self.lock:
            code = self.codes.pop(form.get("code", ""), None)
        if code is None or code.made + CODE_LIFE < self.clock():
            what = "the authorization code was invalid"
        elif form.get("redirect_uri") != code.redirect_uri:
            what = "the redirect uri did not match the uri of the authorization code"
        elif _challenge(form.get("code_verifier", "")) != code.challenge:
            what = "the code verifier did not match the code challenge"
        else:
            return self._tokens(code.account, code.scopes)
        return _oauth_error(400, "invalid_request", f"Value passed for {what}.")

    def _refresh(self, refresh: str) -> Response:
        """The old pair is dead from now on."""
        with self.lock:
            old = self.tokens.pop(self.refresh_tokens.pop(refresh, ""), None)
        if old is None:
            return _oauth_error(400, "invalid_request", "Value passed for the token was invalid.")
        return self._tokens(old.account, old.scopes)

    def _tokens(self, account: str, scopes: tuple[str, ...]) -> Response:
        token, refresh = secrets.token_urlsafe(48), secrets.token_urlsafe(48)
        self.tokens[token] = Token(account, scopes, self.clock() + TOKEN_LIFE)
        body = {
            "token_type": "bearer",
            "expires_in": int(TOKEN_LIFE.total_seconds()),
            "access_token": token,
            "scope": " ".join(scopes),
        }
        if "offline.access" in scopes:
            self.refresh_tokens[refresh] = token
            body["refresh_token"] = refresh
        return Response(200, body)

    def revoke(self, request: Request) -> Response:
        if not self._is_client(request):
            return _oauth_error(401, "unauthorized_client", "Missing valid authorization header")
        token = request.form().get("token", "")
        if not token:
            return _oauth_error(400, "invalid_request", "Missing required parameter [token].")
        with self.lock:
            self.tokens.pop(token, None)
            self.refresh_tokens.pop(token, None)
        return Response(200, {"revoked": True})

    # -- reading

    def show_me(self, request: Request) -> Response:
        if lacks := self._lacks(request, "users.read", "tweet.read"):
            return lacks
        self.credit -= Decimal("0.010")
        account = self._account(request)
        shown = {"id": account.id, "name": account.username, "username": account.username}
        return Response(200, {"data": shown})

    def list_by_id(self, request: Request) -> Response:
        if lacks := self._lacks(request, "users.read", "tweet.read"):
            return lacks
        ids = request.query.get("ids", "").split(",")
        if not 1 <= len(ids) <= 100 or not all(number.isdigit() for number in ids):
            return _invalid("`ids` must be 1 to 100 numbers")
        found = [post for post in self.posts if post.id in ids]
        missing = [
            {"value": number, "title": "Not Found Error", "resource_type": "tweet"}
            for number in ids
            if number not in {post.id for post in found}
        ]
        return self._listed(request, found, errors=missing)

    def list_of(self, request: Request, number: str) -> Response:
        if lacks := self._lacks(request, "users.read", "tweet.read"):
            return lacks
        size = int(request.query.get("max_results", "10"))
        if not 5 <= size <= 100:
            return _invalid(f"The `max_results` query parameter value [{size}] is not valid")
        since = datetime.fromisoformat(request.query.get("start_time", "2010-11-06T00:00:00Z"))
        found = [
            post
            for post in self.posts
            if self.accounts[post.account].id == number and post.at >= since
        ][:size]
        return self._listed(request, found, meta={"result_count": len(found)})

    def _listed(self, request: Request, found: list[Post], **more: Any) -> Response:
        self.credit -= Decimal("0.005") * len(found)
        fields = request.query.get("tweet.fields", "").split(",")
        body = {name: value for name, value in more.items() if value}
        if found:
            body["data"] = [_shown(post, fields) for post in found]
        return Response(200, body)

    # -- posting

    def create(self, request: Request) -> Response:
        account = self._account(request)
        with self.lock:
            self._count(account)
            left = self.limit - account.used
            response = self._limited() if left < 0 else self._create(request, account)
        return replace(response, headers=self._allowance(account))

    def _count(self, account: Account) -> None:
        now = self.clock()
        if account.window is None or account.window <= now:
            account.window, account.used = now + WINDOW, 0
        account.used += 1

    def _limited(self) -> Response:
        return _problem(429, "Too Many Requests", "Too Many Requests")

    def _allowance(self, account: Account) -> Mapping[str, str]:
        day = sum(post.at > self.clock() - timedelta(days=1) for post in self.accepted)
        reset = account.window or self.clock()
        tomorrow = self.clock() + timedelta(days=1)
        return {
            "x-rate-limit-limit": str(self.limit),
            "x-rate-limit-remaining": str(max(self.limit - account.used, 0)),
            "x-rate-limit-reset": str(int(reset.timestamp())),
            "x-app-limit-24hour-limit": str(self.day_limit),
            "x-app-limit-24hour-remaining": str(max(self.day_limit - day, 0)),
            "x-app-limit-24hour-reset": str(int(tomorrow.timestamp())),
        }

    def _create(self, request: Request, account: Account) -> Response:
        body = request.json()
        text = body.get("text") if isinstance(body, dict) else None
        if not isinstance(text, str) or set(body) != {"text"}:
            return _invalid("The body is not of the shape that is documented")
        if why := self._lacks(request, "tweet.write", "tweet.read", "users.read"):
            return why
        if why := self._why_not(account, text):
            return why
        self.credit -= Decimal(
            settings.X_LINK_POST_PRICE if has_link(text) else settings.X_POST_PRICE
        )
        post = self.accept(account.username, text)
        return Response(201, {"data": {"id": post.id, "text": _read_back(post.text)[0]}})

    def _why_not(self, account: Account, text: str) -> Response | None:
        if account.suspended:
            return _forbidden(
                "Your account is suspended and is not permitted to access this feature."
            )
        if not text.strip() or count(text) > 280:
            return _forbidden("You are not permitted to perform this action.")
        if objection(text):
            return _forbidden("Your Tweet exceeds the maximum of one cashtag.")
        mine = {post.text for post in self.accepted if post.account == account.username}
        if text in mine:
            return _forbidden("You are not allowed to create a Tweet with duplicate content.")
        day = [p for p in self.accepted if p.at > self.clock() - timedelta(days=1)]
        return self._limited() if len(day) >= self.day_limit else None

    def accept(self, account: str, text: str) -> Post:
        """A post of this account, as by hand."""
        now = self.clock()
        self.made += 1
        post = Post(str(FIRST_ID + self.made), account, text, now, now + self.late)
        post.metrics = dict.fromkeys(_METRICS, 0)
        self.accepted.append(post)
        return post

    # -- the website

    def show_post(self, request: Request, number: str) -> Response:
        post = next((post for post in self.posts if post.id == number), None)
        if post is None:
            return Response(404, page("X", "This post is not there", ""))
        text = f"<p style='white-space:pre-wrap'>{escape(post.text)}</p>"
        return Response(200, page("X", f"@{post.account}", text))

    def front(self, request: Request) -> Response:
        posts = "".join(
            f"<li><a href='{self.url}/{post.account}/status/{post.id}'>@{post.account}</a>"
            f" <span style='white-space:pre-wrap'>{escape(post.text)}</span>"
            f" {act(DO, post.id, 'like', 'Like')} {act(DO, post.id, 'remove', 'Delete')}</li>"
            for post in self.posts
        )
        accounts = "".join(
            f"<li>@{account.username}{' (suspended)' if account.suspended else ''}"
            f" {act(DO, account.username, 'suspend', 'Suspend or lift')}"
            f" {act(DO, account.username, 'take_back', 'Take SlothPost&#39;s access away')}</li>"
            for account in self.accounts.values()
        )
        return Response(
            200,
            page(
                "X",
                "X",
                f"<h2>What people see</h2><ul>{posts or '<li>nothing yet</li>'}</ul>"
                f"<h2>Accounts</h2><ul>{accounts}</ul>"
                f"<h2>Credit of the app</h2><p>${self.credit}"
                f" {act(DO, 0, 'use_up', 'Use it up')} {act(DO, 0, 'top_up', 'Add $25')}</p>",
            ),
        )

    def do(self, request: Request) -> Response:
        form = request.form()
        getattr(self, form["what"])(form["number"])
        return redirect(f"{self.url}/")

    def like(self, number: str) -> None:
        for post in self.posts:
            if post.id == number:
                post.metrics["like_count"] += 1
                post.metrics["impression_count"] += 20

    def remove(self, number: str) -> None:
        self.accepted = [post for post in self.accepted if post.id != number]

    def suspend(self, username: str) -> None:
        account = self.accounts[username]
        account.suspended = not account.suspended

    def take_back(self, username: str) -> None:
        """What a person does in the settings of their account."""
        with self.lock:
            gone = {key for key, token in self.tokens.items() if token.account == username}
            self.tokens = {k: token for k, token in self.tokens.items() if k not in gone}
            kept = {k: token for k, token in self.refresh_tokens.items() if token not in gone}
            self.refresh_tokens = kept

    def use_up(self, number: str) -> None:
        self.credit = Decimal(0)

    def top_up(self, number: str) -> None:
        self.credit += 25


_METRICS = (
    "retweet_count",
    "reply_count",
    "like_count",
    "quote_count",
    "bookmark_count",
    "impression_count",
)


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _shown(post: Post, fields: list[str]) -> dict[str, Any]:
    text, urls = _read_back(post.text)
    shown: dict[str, Any] = {"id": post.id, "edit_history_tweet_ids": [post.id], "text": text}
    if "entities" in fields and urls:
        shown["entities"] = {"urls": urls}
    if "public_metrics" in fields:
        shown["public_metrics"] = post.metrics
    return shown


def _read_back(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The text as the API gives it: links are X's own, and three characters are HTML's."""
    told, urls = "", []
    for piece in pieces(text):
        if piece.kind != "link":
            told += re.sub("[&<>]", lambda found: escape(found[0]), piece.text)
            continue
        short = f"https://t.co/{hashlib.sha256(piece.text.encode()).hexdigest()[:10]}"
        expanded = piece.text if "://" in piece.text else f"http://{piece.text}"
        at = {"start": len(told), "end": len(told) + len(short)}
        urls.append({**at, "url": short, "expanded_url": expanded, "display_url": piece.text})
        told += short
    return told, urls
