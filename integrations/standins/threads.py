"""Threads on this machine: its website, as far as accounts and posts need it, and its API.

It keeps Threads' contract: a token of an hour and one of sixty days, containers that have to be
ready and are published once, five links in a post, posts by the day, error bodies.
https://developers.facebook.com/docs/threads
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import regex

from integrations.outlets import text_length
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

DO = "/threads/do"  # where a person's buttons lead
API = "/graph"
REAL_WHEN_SET = "THREADS_CLIENT_ID"
CLIENT_ID, CLIENT_SECRET = "44700000000001", "a-stand-ins-client-secret"
PERSON, COMPANY = "slothpost_demo", "slow.boats"
CODE_LIFE = SHORT_LIFE = timedelta(hours=1)
LONG_LIFE, OLD_ENOUGH = timedelta(days=60), timedelta(days=1)
CONTAINER_LIFE = DAY = timedelta(days=1)
BASIC, PUBLISHING, INSIGHTS = (
    "threads_basic",
    "threads_content_publish",
    "threads_manage_insights",
)
SCOPES = {BASIC, PUBLISHING, INSIGHTS, "threads_read_replies", "threads_manage_replies"}
LIMIT, MOST_LINKS, DAY_LIMIT = 500, 5, 250
ASKED = ("client_id", "redirect_uri", "state", "scope")
_LINK = regex.compile(r"https?://[^\s<>\"]*[^\s<>\".,;:!?'’)\]]", regex.I)  # noqa: RUF001


def settings_for(standins: StandIns) -> dict[str, str]:
    return {
        "THREADS_URL": f"{standins.url}/threads",
        "THREADS_API_URL": f"{standins.url}/threads{API}",
        "THREADS_CLIENT_ID": CLIENT_ID,
        "THREADS_CLIENT_SECRET": CLIENT_SECRET,
    }


def add_to(standins: StandIns, keys: Path) -> "Threads":
    threads = Threads(standins)
    standins.services.append(threads)
    return threads


@dataclass
class Account:
    id: str
    username: str
    is_restricted: bool = False


@dataclass
class Code:
    username: str
    scopes: tuple[str, ...]
    made: datetime


@dataclass
class Token:
    username: str
    scopes: tuple[str, ...]
    made: datetime
    until: datetime
    is_long: bool = False


@dataclass
class Container:
    username: str
    text: str
    made: datetime
    ready_at: datetime
    media: str = ""  # what was published of it
    error: str = ""


@dataclass
class Post:
    id: str
    username: str
    text: str
    at: datetime
    visible_at: datetime
    numbers: dict[str, int] = field(default_factory=dict)  # by the names of its insights

    @property
    def shortcode(self) -> str:
        return f"DT{self.id}"


def _error(
    status: int, code: int, message: str, kind: str = "THApiException", **more: Any
) -> Response:
    body = {"message": message, "type": kind, "code": code, "fbtrace_id": secrets.token_hex(6)}
    return Response(status, {"error": {**body, **more}})


def _code_error(message: str) -> Response:
    return Response(400, {"error_type": "OAuthException", "code": 400, "error_message": message})


def _token_error(message: str = "Error validating access token") -> Response:
    return _error(401, 190, message, "OAuthException")


def _not_there() -> Response:
    return _error(
        400,
        24,
        "The requested resource does not exist",
        "OAuthException",
        error_subcode=4279009,
        is_transient=False,
        error_user_title="Media Not Found",
        error_user_msg="The media with id does not exist",
    )


class Threads(Service):
    prefix = "/threads"
    label = "Threads"
    kept = ("accounts", "tokens", "containers", "accepted", "made")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/oauth/authorize", "authorize"),
        ("POST", "/oauth/authorize", "authorized"),
        ("GET", "/@[a-z0-9_.]+/post/(DT[0-9]+)", "show_post"),
        ("POST", f"{API}/oauth/access_token", "exchange"),
        ("GET", f"{API}/access_token", "prolong"),
        ("GET", f"{API}/refresh_access_token", "refresh"),
        ("GET", f"{API}/v1.0/me", "show_me"),
        ("POST", f"{API}/v1.0/(me|[0-9]+)/threads", "begin"),
        ("GET", f"{API}/v1.0/(me|[0-9]+)/threads", "list_of"),
        ("POST", f"{API}/v1.0/(me|[0-9]+)/threads_publish", "publish"),
        ("GET", f"{API}/v1.0/([0-9]+)", "show"),
        ("GET", f"{API}/v1.0/([0-9]+)/insights", "count"),
    )

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.accounts = {
            name: Account(str(9_900_000_000_000_001 + at), name)
            for at, name in enumerate((PERSON, COMPANY))
        }
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Token] = {}
        self.containers: dict[str, Container] = {}
        self.accepted: list[Post] = []  # oldest first
        self.made = 0  # containers and posts
        self.takes = timedelta()  # until a container is ready
        self.not_there = 0  # so many more calls find a finished container not there
        self.spoils = ""  # the error that containers end with
        self.late = timedelta()  # from accepting a post until it is seen
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def posts(self) -> list[Post]:
        """What people see now, newest first."""
        return [post for post in reversed(self.accepted) if post.visible_at <= self.clock()]

    # -- who may

    def handle(self, request: Request) -> Response:
        if not request.path.startswith(f"{API}/v1.0/"):
            return super().handle(request)
        token = self._token(request)
        if token is None:
            return _token_error()
        owner = regex.match(r"/graph/v1\.0/([0-9]+)/threads", request.path)
        if owner and owner[1] != self.accounts[token.username].id:
            return _error(
                400, 100, f"Unsupported request. Object with ID '{owner[1]}' is not yours"
            )
        return super().handle(request)

    def not_found(self) -> Response:
        return _error(400, 100, "Unsupported request", error_subcode=33)

    def _known(self, token: str) -> Token | None:
        known = self.tokens.get(token)
        return known if known is not None and known.until > self.clock() else None

    def _token(self, request: Request) -> Token | None:
        asked = request.bearer() or request.query.get("access_token", "")
        return self._known(asked or request.form().get("access_token", ""))

    def _lacks(self, request: Request, scope: str) -> Response | None:
        token = self._token(request)
        if token is None:
            return _token_error()
        if scope in token.scopes:
            return None
        message = f"Application does not have permission for this action: {scope}"
        return _error(403, 10, message, "OAuthException")

    def _who(self, request: Request) -> Account:
        token = self._token(request)
        if token is None:
            raise ValueError("whoever has no token is turned away before")
        return self.accounts[token.username]

    # -- signing in

    def callback_url(self) -> str:
        return f"{self.standins.site_url}/connections/threads/callback/"

    def authorize(self, request: Request) -> Response:
        asked = {name: request.query.get(name, "") for name in ASKED}
        known = (asked["client_id"], asked["redirect_uri"]) == (CLIENT_ID, self.callback_url())
        wanted = set(asked["scope"].split(","))
        good = BASIC in wanted and wanted <= SCOPES
        if not (known and good and request.query.get("response_type") == "code"):
            return Response(400, page("Threads", "Something is wrong", "<p>Blocked URL</p>"))
        fields = "".join(hidden(name, value) for name, value in asked.items())
        names = "".join(
            f"<label><input type='radio' name='username' value='{name}'"
            f"{' checked' if name == PERSON else ''}> {name}</label><br>"
            for name in self.accounts
        )
        return Response(
            200,
            page(
                "Threads",
                "Allow SlothPost to use your account?",
                f"<form method='post'>{fields}<p>It may see your profile, post for you, and read"
                f" what your posts reach, as</p>{names}"
                "<button name='answer' value='allow'>Allow</button> "
                "<button name='answer' value='deny'>Cancel</button></form>",
            ),
        )

    def authorized(self, request: Request) -> Response:
        form = request.form()
        if form.get("redirect_uri") != self.callback_url():
            return Response(400, page("Threads", "Something is wrong", "<p>Blocked URL</p>"))
        if form.get("answer") != "allow":
            return self._back(
                form,
                error="access_denied",
                error_reason="user_denied",
                error_description="The user denied your request.",
            )
        return self._back(form, code=self.code(form["username"], *form["scope"].split(",")))

    def _back(self, asked: dict[str, str], **answer: str) -> Response:
        query = urlencode({**answer, "state": asked["state"]})
        return redirect(f"{self.callback_url()}?{query}#_")

    def code(self, username: str, *scopes: str) -> str:
        code = secrets.token_urlsafe(40)
        self.codes[code] = Code(username, scopes, self.clock())
        return code

    def exchange(self, request: Request) -> Response:
        form = request.form()
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return _code_error("Error validating client secret.")
        with self.lock:
            code = self.codes.pop(form.get("code", ""), None)
        in_time = code is not None and code.made + CODE_LIFE >= self.clock()
        good = form.get("grant_type") == "authorization_code"
        if code is None or not in_time or not good:
            return _code_error("Invalid authorization code")
        if form.get("redirect_uri") != self.callback_url():
            return _code_error(
                "Error validating verification code. Please make sure your redirect_uri is"
                " identical to the one you used in the OAuth dialog request"
            )
        short = self.hand_out(code.username, code.scopes, SHORT_LIFE)
        number = int(self.accounts[code.username].id)
        return Response(200, {"access_token": short, "user_id": number})

    def hand_out(
        self, username: str, scopes: tuple[str, ...], life: timedelta, *, is_long: bool = False
    ) -> str:
        """A new token."""
        token, now = f"TH{secrets.token_urlsafe(48)}", self.clock()
        self.tokens[token] = Token(username, scopes, now, now + life, is_long)
        return token

    def prolong(self, request: Request) -> Response:
        query = request.query
        if query.get("grant_type") != "th_exchange_token":
            return _error(400, 100, "Invalid grant_type")
        if query.get("client_secret") != CLIENT_SECRET:
            return _error(400, 101, "Error validating client secret.", "OAuthException")
        known = self._known(query.get("access_token", ""))
        if known is None or known.is_long:
            return _token_error()
        return self._long(known)

    def refresh(self, request: Request) -> Response:
        query = request.query
        if query.get("grant_type") != "th_refresh_token":
            return _error(400, 100, "Invalid grant_type")
        known = self._known(query.get("access_token", ""))
        if known is None or not known.is_long:
            return _token_error("Error validating access token: Session has expired")
        if known.made + OLD_ENOUGH > self.clock():
            return _error(400, 100, "The access token must be at least 24 hours old")
        return self._long(known)

    def _long(self, known: Token) -> Response:
        token = self.hand_out(known.username, known.scopes, LONG_LIFE, is_long=True)
        life = int(LONG_LIFE.total_seconds())
        return Response(200, {"access_token": token, "token_type": "bearer", "expires_in": life})

    # -- the API

    def show_me(self, request: Request) -> Response:
        if lacks := self._lacks(request, BASIC):
            return lacks
        who = self._who(request)
        return Response(200, {"id": who.id, "username": who.username})

    def begin(self, request: Request, owner: str) -> Response:
        """Make a container."""
        if lacks := self._lacks(request, PUBLISHING):
            return lacks
        form = request.form()
        text = form.get("text", "")
        if form.get("media_type") != "TEXT" or not text.strip():
            return _error(400, 100, "Param text is required for media_type TEXT")
        if text_length("threads", text) > LIMIT:
            message = f"Param text must be at most {LIMIT} characters long."
            return _error(400, 100, message, "OAuthException")
        if len(set(_LINK.findall(text))) > MOST_LINKS:
            return _error(400, 100, "THREADS_API__LINK_LIMIT_EXCEEDED", "OAuthException")
        now = self.clock()
        number = self._number()
        made = Container(self._who(request).username, text, now, now + self.takes)
        made.error = self.spoils
        self.containers[number] = made
        return Response(200, {"id": number})

    def _number(self) -> str:
        with self.lock:
            self.made += 1
            return str(18_000_000_000_000_000 + self.made)

    def status_of(self, container: Container) -> str:
        """https://developers.facebook.com/docs/threads/troubleshooting"""
        if container.media:
            return "PUBLISHED"
        if container.error:
            return "ERROR"
        if container.made + CONTAINER_LIFE <= self.clock():
            return "EXPIRED"
        return "FINISHED" if container.ready_at <= self.clock() else "IN_PROGRESS"

    def publish(self, request: Request, owner: str) -> Response:
        if lacks := self._lacks(request, PUBLISHING):
            return lacks
        who = self._who(request)
        number = request.form().get("creation_id", "") or request.query.get("creation_id", "")
        with self.lock:
            return self._publish(who, number)

    def _publish(self, who: Account, number: str) -> Response:
        container = self.containers.get(number)
        if container is None or container.username != who.username:
            return _not_there()
        status = self.status_of(container)
        if status == "FINISHED" and self.not_there:
            self.not_there -= 1
            status = "IN_PROGRESS"
        if status == "IN_PROGRESS":
            return _not_there()
        if status != "FINISHED":
            return _error(400, 100, f"The container is {status}", "OAuthException")
        if who.is_restricted:
            return _error(
                403,
                368,
                "The action is blocked",
                "OAuthException",
                error_subcode=2207051,
                error_user_msg="We restrict certain activity to protect our community.",
            )
        since = self.clock() - DAY
        today = sum(p.username == who.username and p.at > since for p in self.accepted)
        if today >= DAY_LIMIT:
            return _error(400, 4, "Application request limit reached", "OAuthException")
        container.media = self._accept(who.username, container.text).id
        return Response(200, {"id": container.media})

    def accept(self, username: str, text: str) -> Post:
        """A post of this account, as by hand."""
        with self.lock:
            return self._accept(username, text)

    def _accept(self, username: str, text: str) -> Post:
        now = self.clock()
        self.made += 1
        number = str(18_000_000_000_000_000 + self.made)
        post = Post(number, username, text, now, now + self.late)
        self.accepted.append(post)
        return post

    def show(self, request: Request, number: str) -> Response:
        """A container or a post, each with the fields that it has."""
        wanted = request.query.get("fields", "id").split(",")
        container = self.containers.get(number)
        who = self._who(request)
        if container is not None and container.username == who.username:
            found = {"id": number, "status": self.status_of(container)}
            if container.error:
                found["error_message"] = container.error
            return Response(200, {k: v for k, v in found.items() if k in {"id", *wanted}})
        post = self._mine(who, number)
        if post is None:
            return _not_there()
        if "status" in wanted:
            return _error(400, 100, "Tried accessing nonexisting field (status)", "OAuthException")
        shown = self._shown(post)
        return Response(200, {k: v for k, v in shown.items() if k in {"id", *wanted}})

    def _mine(self, who: Account, number: str) -> Post | None:
        mine = (post for post in self.posts if post.username == who.username)
        return next((post for post in mine if post.id == number), None)

    def _shown(self, post: Post) -> dict[str, str]:
        return {
            "id": post.id,
            "text": post.text,
            "shortcode": post.shortcode,
            "permalink": f"{self.url}/@{post.username}/post/{post.shortcode}",
            "timestamp": f"{post.at:%Y-%m-%dT%H:%M:%S%z}",
        }

    def list_of(self, request: Request, owner: str) -> Response:
        if lacks := self._lacks(request, BASIC):
            return lacks
        who = self._who(request)
        wanted = {"id", *request.query.get("fields", "id").split(",")}
        size = min(int(request.query.get("limit", "25")), 100)
        mine = [post for post in self.posts if post.username == who.username][:size]
        data = [{k: v for k, v in self._shown(post).items() if k in wanted} for post in mine]
        return Response(200, {"data": data, "paging": {}})

    def count(self, request: Request, number: str) -> Response:
        if lacks := self._lacks(request, INSIGHTS):
            return lacks
        post = self._mine(self._who(request), number)
        if post is None:
            return _error(400, 100, f"Object with ID '{number}' does not exist", error_subcode=33)
        data = [
            {
                "name": name,
                "period": "lifetime",
                "values": [{"value": post.numbers.get(name, 0)}],
                "id": f"{number}/insights/{name}/lifetime",
            }
            for name in request.query.get("metric", "").split(",")
        ]
        return Response(200, {"data": data})

    # -- the website

    def show_post(self, request: Request, shortcode: str) -> Response:
        post = next((post for post in self.posts if post.shortcode == shortcode), None)
        if post is None:
            return Response(404, page("Threads", "This page is not available", ""))
        text = f"<p style='white-space:pre-wrap'>{escape(post.text)}</p>"
        return Response(200, page("Threads", f"@{post.username}", text))

    def front(self, request: Request) -> Response:
        posts = "".join(
            f"<li><a href='{self._shown(post)['permalink']}'>@{post.username}</a>"
            f" <span style='white-space:pre-wrap'>{escape(post.text)}</span>"
            f" {act(DO, post.id, 'remove', 'Delete')}</li>"
            for post in self.posts
        )
        accounts = "".join(
            f"<li>@{name} {act(DO, name, 'take_back', 'Remove SlothPost')} "
            f"{act(DO, name, 'restrict', 'Restrict or not')}"
            f"{' (restricted)' if account.is_restricted else ''}</li>"
            for name, account in self.accounts.items()
        )
        return Response(
            200,
            page(
                "Threads",
                "Threads",
                f"<h2>What people see</h2><ul>{posts or '<li>nothing yet</li>'}</ul>"
                f"<h2>Website permissions</h2><ul>{accounts}</ul>",
            ),
        )

    def do(self, request: Request) -> Response:
        form = request.form()
        getattr(self, form["what"])(form["number"])
        return redirect(f"{self.url}/")

    def remove(self, number: str) -> None:
        self.accepted = [post for post in self.accepted if post.id != number]

    def take_back(self, username: str) -> None:
        """What a person does under Website permissions."""
        for token in [token for token, known in self.tokens.items() if known.username == username]:
            del self.tokens[token]

    def restrict(self, username: str) -> None:
        """What Threads does to whom it takes for a spammer; or lift it."""
        account = self.accounts[username]
        account.is_restricted = not account.is_restricted
