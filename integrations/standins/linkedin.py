"""LinkedIn on this machine: its website, as far as members and posts need it, and its API.

It keeps LinkedIn's contract: tokens of 60 days, versions that end, little text that an open bracket
cuts off, one post of a text, an allowance by the day.
https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import regex
from django.conf import settings

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

DO = "/linkedin/do"  # where a person's buttons lead
REAL_WHEN_SET = "LINKEDIN_CLIENT_ID"
CLIENT_ID, CLIENT_SECRET = "linkedin-standin", "a-stand-ins-client-secret"
MEMBERS = {"dXlOthDemo": "Sam Sloth", "bOatsDemo1": "Slow Boats"}
PERSON = "dXlOthDemo"
CODE_LIFE, TOKEN_LIFE = timedelta(minutes=30), timedelta(days=60)
REFRESH_LIFE = timedelta(days=365)
SCOPES = {"openid", "profile", "email", "w_member_social"}  # of the app's products
ASKED = ("client_id", "redirect_uri", "state", "scope")
FIRST_ID = 7_400_000_000_000_000_000
LIMIT = 3000
POST = {
    "author": str,
    "commentary": str,
    "visibility": str,
    "distribution": dict,
    "lifecycleState": str,
}


def settings_for(standins: StandIns) -> dict[str, str]:
    return {
        "LINKEDIN_URL": f"{standins.url}/linkedin",
        "LINKEDIN_API_URL": f"{standins.url}/linkedin/api",
        "LINKEDIN_CLIENT_ID": CLIENT_ID,
        "LINKEDIN_CLIENT_SECRET": CLIENT_SECRET,
    }


def add_to(standins: StandIns, keys: Path) -> "LinkedIn":
    linkedin = LinkedIn(standins)
    standins.services.append(linkedin)
    return linkedin


@dataclass
class Code:
    member: str
    scopes: tuple[str, ...]
    redirect_uri: str
    made: datetime


@dataclass
class Token:
    member: str
    scopes: tuple[str, ...]
    until: datetime


@dataclass
class Post:
    urn: str
    member: str
    text: str  # as readers see it
    tags: list[str]  # what links to a tag in it
    at: datetime
    visible_at: datetime


def _error(status: int, code: str, message: str, **more: Any) -> Response:
    return Response(status, {"status": status, "code": code, "message": message, **more})


def _oauth_error(status: int, error: str, description: str) -> Response:
    return Response(status, {"error": error, "error_description": description})


class LinkedIn(Service):
    prefix = "/linkedin"
    label = "LinkedIn"
    kept = ("tokens", "refresh_tokens", "accepted", "made")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/psettings/permitted-services", "front"),
        ("GET", "/oauth/v2/authorization", "authorize"),
        ("POST", "/oauth/v2/authorization", "authorized"),
        ("POST", "/oauth/v2/accessToken", "exchange"),
        ("GET", "/feed/update/(urn:li:share:[0-9]+)/", "show_post"),
        ("GET", "/api/v2/userinfo", "show_me"),
        ("POST", "/api/rest/posts", "create"),
    )

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.members = dict(MEMBERS)
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, Token] = {}
        self.gives_refresh_tokens = False  # as to apps that LinkedIn approved for it
        self.accepted: list[Post] = []  # oldest first
        self.made = 0  # posts, those included that are deleted
        self.late = timedelta()  # from accepting a post until it is seen
        self.versions = {settings.LINKEDIN_VERSION}  # that have not ended
        self.day_limit = 150  # posts of a member
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def posts(self) -> list[Post]:
        """What people see now, newest first."""
        return [post for post in reversed(self.accepted) if post.visible_at <= self.clock()]

    # -- who may

    def handle(self, request: Request) -> Response:
        if not request.path.startswith("/api/"):
            return super().handle(request)
        token = self.tokens.get(request.bearer())
        if token is None:
            return _error(
                401, "INVALID_ACCESS_TOKEN", "Invalid access token", serviceErrorCode=65600
            )
        if token.until <= self.clock():
            return _error(401, "EXPIRED_ACCESS_TOKEN", "The token used in the request has expired")
        return super().handle(request)

    def not_found(self) -> Response:
        return _error(404, "RESOURCE_NOT_FOUND", "No virtual resource found")

    def _lacks(self, request: Request, scope: str, what: str) -> Response | None:
        if scope in self.tokens[request.bearer()].scopes:
            return None
        return _error(403, "ACCESS_DENIED", f"Not enough permissions to access: {what}")

    # -- signing in

    def callback_url(self) -> str:
        return f"{self.standins.site_url}/connections/linkedin/callback/"

    def authorize(self, request: Request) -> Response:
        asked = {name: request.query.get(name, "") for name in ASKED}
        known = (asked["client_id"], asked["redirect_uri"]) == (CLIENT_ID, self.callback_url())
        if not known or request.query.get("response_type") != "code":
            wrong = "<p>The redirect_uri does not match the registered value</p>"
            return Response(400, page("LinkedIn", "Something is wrong", wrong))
        if not asked["state"] or not set(asked["scope"].split()) <= SCOPES:
            return self._back(asked, error="unauthorized_scope_error")
        fields = "".join(hidden(name, value) for name, value in asked.items())
        names = "".join(
            f"<label><input type='radio' name='member' value='{number}'"
            f"{' checked' if number == PERSON else ''}> {escape(name)}</label><br>"
            for number, name in self.members.items()
        )
        return Response(
            200,
            page(
                "LinkedIn",
                "SlothPost would like to",
                f"<form method='post'>{fields}<p>use your name and photo, and post for you, as</p>"
                f"{names}<button name='answer' value='allow'>Allow</button> "
                "<button name='answer' value='deny'>Cancel</button></form>",
            ),
        )

    def authorized(self, request: Request) -> Response:
        form = request.form()
        if form.get("redirect_uri") != self.callback_url():
            return Response(400, page("LinkedIn", "Something is wrong", "<p>Wrong address.</p>"))
        if form.get("answer") != "allow":
            return self._back(form, error="user_cancelled_authorize")
        return self._back(form, code=self.code(form["member"], *form["scope"].split()))

    def _back(self, asked: dict[str, str], **answer: str) -> Response:
        return redirect(f"{self.callback_url()}?{urlencode({'state': asked['state'], **answer})}")

    def code(self, member: str, *scopes: str) -> str:
        code = secrets.token_urlsafe(40)
        self.codes[code] = Code(member, scopes, self.callback_url(), self.clock())
        return code

    def exchange(self, request: Request) -> Response:
        form = request.form()
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return _oauth_error(401, "invalid_client", "Client authentication failed")
        if form.get("grant_type") == "refresh_token":
            return self._refresh(form.get("refresh_token", ""))
        with self.lock:
            code = self.codes.pop(form.get("code", ""), None)
        if code is None or code.made + CODE_LIFE < self.clock():
            return _oauth_error(
                400,
                "invalid_request",
                "Unable to retrieve access token: authorization code not found",
            )
        if form.get("redirect_uri") != code.redirect_uri:
            return _oauth_error(
                400,
                "invalid_redirect_uri",
                "Unable to retrieve access token: appid/redirect uri/code verifier does not match",
            )
        return self._tokens(code.member, code.scopes)

    def _refresh(self, refresh: str) -> Response:
        """A refresh token stays the same, and is not prolonged."""
        known = self.refresh_tokens.get(refresh)
        if known is None or known.until <= self.clock():
            return _oauth_error(400, "invalid_grant", "The provided refresh token is invalid")
        return self._tokens(known.member, known.scopes, refresh)

    def _tokens(self, member: str, scopes: tuple[str, ...], refresh: str = "") -> Response:
        token = secrets.token_urlsafe(64)
        self.tokens[token] = Token(member, scopes, self.clock() + TOKEN_LIFE)
        body: dict[str, Any] = {
            "access_token": token,
            "expires_in": int(TOKEN_LIFE.total_seconds()),
            "scope": ",".join(scopes),
            "token_type": "Bearer",
        }
        if self.gives_refresh_tokens:
            refresh = refresh or secrets.token_urlsafe(64)
            lapses = self.clock() + REFRESH_LIFE
            known = self.refresh_tokens.setdefault(refresh, Token(member, scopes, lapses))
            left = known.until - self.clock()
            body |= {
                "refresh_token": refresh,
                "refresh_token_expires_in": int(left.total_seconds()),
            }
        return Response(200, body)

    # -- the API

    def show_me(self, request: Request) -> Response:
        if lacks := self._lacks(request, "openid", "userinfo.GET"):
            return lacks
        member = self.tokens[request.bearer()].member
        return Response(200, {"sub": member, "name": self.members[member]})

    def create(self, request: Request) -> Response:
        version = request.headers.get("LinkedIn-Version", "")
        if not version:
            return _error(400, "VERSION_MISSING", "A version must be present.")
        if version not in self.versions:
            message = f"Requested version {version} is not active"
            return _error(426, "NONEXISTENT_VERSION", message)
        if request.headers.get("X-Restli-Protocol-Version") != "2.0.0":
            return _error(400, "BAD_PROTOCOL", "Invalid Rest.li protocol version")
        if lacks := self._lacks(request, "w_member_social", "partnerApiPostsExternal.CREATE"):
            return lacks
        with self.lock:
            return self._create(request.json(), self.tokens[request.bearer()].member)

    def _create(self, body: Any, member: str) -> Response:
        if why := _why_not(body, member):
            return why
        text, tags = read_little_text(body["commentary"])
        if len(text) > LIMIT:
            return _error(
                422, "UNPROCESSABLE_ENTITY", f"ERROR :: /commentary :: exceeds {LIMIT} characters"
            )
        mine = [post for post in self.accepted if post.member == member]
        same = next((post for post in mine if post.text == text), None)
        if same is not None:
            return _duplicate(same.urn)
        if sum(post.at.date() == self.clock().date() for post in mine) >= self.day_limit:
            return _error(
                429,
                "TOO_MANY_REQUESTS",
                "Resource level throttle APPLICATION_AND_MEMBER DAY limit for calls to this"
                " resource is reached.",
            )
        post = self.accept(member, text, tags)
        return Response(201, None, {"x-restli-id": post.urn})

    def accept(self, member: str, text: str, tags: list[str] | None = None) -> Post:
        """A post of this member, as by hand."""
        now = self.clock()
        self.made += 1
        urn = f"urn:li:share:{FIRST_ID + self.made}"
        post = Post(urn, member, text, tags or [], now, now + self.late)
        self.accepted.append(post)
        return post

    # -- the website

    def show_post(self, request: Request, urn: str) -> Response:
        post = next((post for post in self.posts if post.urn == urn), None)
        if post is None:
            return Response(404, page("LinkedIn", "This post cannot be displayed", ""))
        text = f"<p style='white-space:pre-wrap'>{escape(post.text)}</p>"
        return Response(200, page("LinkedIn", escape(self.members[post.member]), text))

    def front(self, request: Request) -> Response:
        posts = "".join(
            f"<li><a href='{self.url}/feed/update/{post.urn}/'>"
            f"{escape(self.members[post.member])}</a>"
            f" <span style='white-space:pre-wrap'>{escape(post.text)}</span>"
            f" {act(DO, post.urn, 'remove', 'Delete')}</li>"
            for post in self.posts
        )
        members = "".join(
            f"<li>{escape(name)} {act(DO, number, 'take_back', 'Remove SlothPost')}</li>"
            for number, name in self.members.items()
        )
        return Response(
            200,
            page(
                "LinkedIn",
                "LinkedIn",
                f"<h2>What people see</h2><ul>{posts or '<li>nothing yet</li>'}</ul>"
                f"<h2>Permitted services</h2><ul>{members}</ul>",
            ),
        )

    def do(self, request: Request) -> Response:
        form = request.form()
        getattr(self, form["what"])(form["number"])
        return redirect(f"{self.url}/")

    def remove(self, urn: str) -> None:
        self.accepted = [post for post in self.accepted if post.urn != urn]

    def take_back(self, member: str) -> None:
        """What a member does in the settings of their account."""
        for tokens in (self.tokens, self.refresh_tokens):
            for token in [token for token, known in tokens.items() if known.member == member]:
                del tokens[token]


def _why_not(body: Any, member: str) -> Response | None:
    """What is wrong with a post, whatever its text says."""
    if not isinstance(body, dict):
        return _error(400, "ILLEGAL_ARGUMENT", "The body is no object")
    for name, kind in POST.items():
        if not isinstance(body.get(name), kind):
            what = f"ERROR :: /{name} :: field is required but not found and has no default value"
            return _error(422, "UNPROCESSABLE_ENTITY", what)
    if body["author"] != f"urn:li:person:{member}":
        return _error(403, "ACCESS_DENIED", "The author is not the authenticated member")
    if (body["visibility"], body["lifecycleState"]) != ("PUBLIC", "PUBLISHED"):
        return _error(422, "UNPROCESSABLE_ENTITY", "ERROR :: /visibility :: unknown value")
    return None


def _duplicate(urn: str) -> Response:
    inputs = [{"description": "Duplicate post is detected", "input": {}, "code": "DUPLICATE_POST"}]
    return Response(
        422,
        {
            "errorDetailType": "com.linkedin.common.error.BadRequest",
            "message": "com.linkedin.content.common.exception.BadRequestResponseException:"
            f" Content is a duplicate of {urn}",
            "errorDetails": {"inputErrors": inputs},
            "status": 422,
        },
    )


_LITTLE_TEXT = regex.compile(
    r"\{hashtag\|(?:\\#|＃)\|(?P<tag>[^\\|{}@\[\]()<>#*_~]+)\}"  # noqa: RUF001 -- a full-width mark
    r"|\\(?P<escaped>[\\|{}@\[\]()<>#*_~])"
    r"|(?P<bare>#[\p{L}\p{N}]+)"
    r"|(?P<plain>[^\\|{}@\[\]()<>#*_~]+)"
)


def read_little_text(commentary: str) -> tuple[str, list[str]]:
    """The text that readers see, up to whatever is not escaped and means nothing, and its tags."""
    text, tags, at = "", [], 0
    while found := _LITTLE_TEXT.match(commentary, at):
        at = found.end()
        tag = found["tag"] or (found["bare"] or "").removeprefix("#")
        if tag:
            tags.append(tag)
        text += f"#{tag}" if tag else found["escaped"] or found["plain"]
    return text, tags
