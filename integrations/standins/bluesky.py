"""Bluesky on this machine: signing in with app passwords, records under keys, what people see.

It keeps Bluesky's contract: sessions that lapse and are renewed in turn, few sign-ins at a time,
records held to their lexicon, the same record twice as one, points for what is written.
https://github.com/bluesky-social/atproto/tree/main/lexicons
"""

import hashlib
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

import jwt

from integrations.outlets import text_length, text_limit
from integrations.standins.server import (
    Request,
    Response,
    Service,
    StandIns,
    act,
    page,
    redirect,
)

REAL_WHEN_SET = ""  # there are no credentials to set: whoever wants the real one leaves this out
HOST, READERS = "bluesky.standin", "bsky.app"
LINKED = "acme.example"  # a host that posts may link to, for their cards
LINKED_PAGE = (
    "<!doctype html><html><head><title>Acme: changes</title>"
    '<meta property="og:title" content="Acme &amp; its dark theme">'
    '<meta name="description" content="Easy on the eyes."></head><body></body></html>'
)
HANDLE, DID = "slothpost-demo.bsky.social", "did:plc:slothpostdemo234567abcde"
PASSWORD, APP_PASSWORD = "correct horse", "abcd-efgh-2345-ijkl"
OTHER_HANDLE, OTHER_DID = "slowboats.example.com", "did:plc:slowboatsdemo234567abcde"
OTHER_APP_PASSWORD = "wxyz-2345-abcd-efgh"  # noqa: S105
COLLECTION = "app.bsky.feed.post"
ACCESS_LIFE, REFRESH_LIFE = timedelta(hours=2), timedelta(days=90)
GRACE = timedelta(hours=2)  # that a token which was renewed lives on
PUT_POINTS = 2
MOST_URIS = 25
_TID = re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
STOPPED = {
    "takendown": (401, "AccountTakedown", "Account has been taken down"),
    "deactivated": (400, "AccountDeactivated", "Account is deactivated"),
}


def settings_for(standins: StandIns) -> dict[str, str]:
    here = f"{standins.url}{Bluesky.prefix}"
    return {
        "BLUESKY_SERVER": HOST,
        "BLUESKY_PUBLIC_HOST": HOST,
        "OPERATOR_HOSTS": json.dumps({HOST: here, READERS: here, LINKED: f"{here}/linked"}),
    }


def add_to(standins: StandIns, keys: Path) -> "Bluesky":
    bluesky = Bluesky(standins)
    standins.services.append(bluesky)
    return bluesky


@dataclass
class Record:
    value: dict[str, Any]
    cid: str
    at: datetime
    visible_at: datetime
    counts: dict[str, int] = field(default_factory=dict)  # {"likeCount": 3}


@dataclass
class Account:
    did: str
    handle: str
    app_passwords: set[str]
    password: str = PASSWORD
    has_second_factor: bool = True
    status: str = ""  # "takendown" | "deactivated"
    records: dict[str, Record] = field(default_factory=dict)
    sign_ins: list[datetime] = field(default_factory=list)
    points: list[tuple[datetime, int]] = field(default_factory=list)


@dataclass
class Session:
    """What one refresh token stands for."""

    did: str
    password: str  # that it was signed in with
    until: datetime
    following: str = ""  # the token that it was renewed to


@dataclass(frozen=True)
class Post:
    """A post as people see it."""

    uri: str
    handle: str
    text: str
    marks: list[tuple[str, str]]  # what stands out, and where it leads
    card: dict[str, str]
    counts: dict[str, int]


class _Refusal(Exception):
    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.response = Response(status, {"error": error, "message": message})


def _require(holds: object, message: str) -> None:
    if not holds:
        raise _Refusal(400, "InvalidRequest", message)


class Bluesky(Service):
    """The server that people sign in to, the host of their records and what shows them, in one."""

    prefix = "/bluesky"
    label = "Bluesky"
    kept = ("accounts", "sessions", "tokens")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/profile/([^/]+)/post/([^/]+)", "show_post"),
        ("GET", "/linked(?:/.*)?", "show_linked"),
        ("POST", "/xrpc/com.atproto.server.createSession", "sign_in"),
        ("POST", "/xrpc/com.atproto.server.refreshSession", "refresh"),
        ("POST", "/xrpc/com.atproto.server.deleteSession", "sign_out"),
        ("GET", "/xrpc/com.atproto.server.getSession", "show_session"),
        ("GET", "/xrpc/com.atproto.identity.resolveHandle", "resolve"),
        ("POST", "/xrpc/com.atproto.repo.putRecord", "put"),
        ("GET", "/xrpc/com.atproto.repo.getRecord", "show_record"),
        ("GET", "/xrpc/app.bsky.feed.getPosts", "show_posts"),
    )

    def __init__(self, standins: StandIns, host: str = HOST) -> None:
        super().__init__(standins)
        self.host = host
        self.accounts = {
            DID: Account(DID, HANDLE, {APP_PASSWORD}),
            OTHER_DID: Account(OTHER_DID, OTHER_HANDLE, {OTHER_APP_PASSWORD}),
        }
        self.sessions: dict[str, Session] = {}  # by the ids of refresh tokens
        self.tokens: set[str] = set()  # whose signatures are good
        self.sign_in_limit = 30  # in five minutes
        self.points_per_hour = 5000
        self.late = timedelta()  # from accepting a record until anybody sees it
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def handle(self, request: Request) -> Response:
        try:
            return super().handle(request)
        except _Refusal as refusal:
            return refusal.response

    def not_found(self) -> Response:
        return Response(404, {"error": "XRPCNotSupported", "message": "XRPCNotSupported"})

    @property
    def posts(self) -> list[Post]:
        """What people see now, newest first."""
        seen = [
            (record.at, self._post(account, key, record))
            for account in self.accounts.values()
            for key, record in account.records.items()
            if record.visible_at <= self.clock() and account.status == ""
        ]
        return [post for _, post in sorted(seen, key=lambda each: each[0], reverse=True)]

    def _post(self, account: Account, key: str, record: Record) -> Post:
        value = record.value
        text = value["text"].encode()
        marks = []
        for facet in value.get("facets", []):
            shown = text[facet["index"]["byteStart"] : facet["index"]["byteEnd"]]
            feature = facet["features"][0]
            leads = feature.get("uri") or feature.get("did") or f"#{feature['tag']}"
            marks.append((shown.decode("utf-8", "replace"), leads))
        return Post(
            _uri(account.did, key),
            account.handle,
            value["text"],
            marks,
            dict(value.get("embed", {}).get("external", {})),
            record.counts,
        )

    # -- sessions

    def _named(self, name: str) -> Account | None:
        """By handle or DID."""
        found = (a for a in self.accounts.values() if name.lower() in (a.did, a.handle))
        return next(found, None)

    def sign_in(self, request: Request) -> Response:
        form = request.json()
        account, password = self._named(form.get("identifier", "")), form.get("password", "")
        if account is not None:
            self._take_sign_in(account)
        own = account is not None and password == account.password
        if account is None or not (own or password in account.app_passwords):
            raise _Refusal(401, "AuthenticationRequired", "Invalid identifier or password")
        if own and account.has_second_factor and not form.get("authFactorToken"):
            message = "A sign in code has been sent to your email address"
            raise _Refusal(401, "AuthFactorTokenRequired", message)
        if account.status == "takendown":
            raise _Refusal(*STOPPED["takendown"])
        return self._session(account, secrets.token_hex(16), password)

    def _take_sign_in(self, account: Account) -> None:
        now = self.clock()
        recent = [at for at in account.sign_ins if at > now - timedelta(minutes=5)]
        if len(recent) >= self.sign_in_limit:
            raise _Limited(recent[0] + timedelta(minutes=5), self.sign_in_limit)
        account.sign_ins = [*recent, now]

    def _session(self, account: Account, number: str, password: str) -> Response:
        now = self.clock()
        until = now + REFRESH_LIFE
        self.sessions[number] = Session(account.did, password, until)
        about = {"sub": account.did, "iat": int(now.timestamp()), "aud": f"did:web:{self.host}"}
        access = {**about, "scope": "com.atproto.appPass", "exp": _seconds(now + ACCESS_LIFE)}
        refresh = {**about, "scope": "com.atproto.refresh", "exp": _seconds(until), "jti": number}
        key = secrets.token_hex(32)
        tokens = {
            "accessJwt": jwt.encode(access, key, "HS256", {"typ": "at+jwt"}),
            "refreshJwt": jwt.encode(refresh, key, "HS256", {"typ": "refresh+jwt"}),
        }
        self.tokens |= set(tokens.values())
        return Response(200, {**tokens, **self._about(account)})

    def _about(self, account: Account) -> dict[str, Any]:
        service = {
            "id": "#atproto_pds",
            "type": "AtprotoPersonalDataServer",
            "serviceEndpoint": f"https://{self.host}",
        }
        return {
            "did": account.did,
            "handle": account.handle,
            "didDoc": {"id": account.did, "service": [service]},
            "active": account.status == "",
            **({"status": account.status} if account.status else {}),
        }

    def _claims(self, request: Request, scope: str) -> dict[str, Any]:
        token = request.bearer()
        if not token:
            raise _Refusal(401, "AuthMissing", "Authentication Required")
        if token not in self.tokens:
            raise _Refusal(400, "InvalidToken", "Token could not be verified")
        claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
        if claims["exp"] <= self.clock().timestamp():
            raise _Refusal(400, "ExpiredToken", "Token has expired")
        if claims["scope"] != scope:
            raise _Refusal(400, "InvalidToken", "Bad token scope")
        return claims

    def _of(self, request: Request) -> Account:
        """Whose access token it is. It lives its two hours, whatever becomes of its session."""
        account = self.accounts[self._claims(request, "com.atproto.appPass")["sub"]]
        if account.status:
            raise _Refusal(*STOPPED[account.status])
        return account

    def refresh(self, request: Request) -> Response:
        claims = self._claims(request, "com.atproto.refresh")
        with self.lock:
            session = self.sessions.get(claims["jti"])
            if session is None or session.until <= self.clock():
                raise _Refusal(400, "ExpiredToken", "Token has been revoked")
            account = self.accounts[session.did]
            if account.status == "takendown":
                raise _Refusal(*STOPPED["takendown"])
            # Asked for again within the grace, it is renewed to the same one.
            session.following = session.following or secrets.token_hex(16)
            session.until = min(session.until, self.clock() + GRACE)
            return self._session(account, session.following, session.password)

    def sign_out(self, request: Request) -> Response:
        self.sessions.pop(self._claims(request, "com.atproto.refresh")["jti"], None)
        return Response(200)

    def show_session(self, request: Request) -> Response:
        return Response(200, self._about(self._of(request)))

    def resolve(self, request: Request) -> Response:
        account = self._named(request.query.get("handle", ""))
        if account is None:
            raise _Refusal(400, "InvalidRequest", "Unable to resolve handle")
        return Response(200, {"did": account.did})

    # -- records

    def put(self, request: Request) -> Response:
        account, form = self._of(request), request.json()
        _require(self._named(form.get("repo", "")) is account, "Could not find repo")
        _require(form.get("collection") == COLLECTION, "Only posts are played here")
        key, value = form.get("rkey", ""), form.get("record")
        _require(_TID.fullmatch(key), "Invalid record key")
        _require_post(value)
        with self.lock:
            headers = self._take_points(account)
            before, now = account.records.get(key), self.clock()
            cid = _cid(value)
            said = {"uri": _uri(account.did, key), "cid": cid, "validationStatus": "valid"}
            if before is not None and before.cid == cid:
                return Response(200, said, headers)
            at, seen = (before.at, before.visible_at) if before else (now, now + self.late)
            account.records[key] = Record(value, cid, at, seen)
            return Response(200, {**said, "commit": {"cid": cid, "rev": key}}, headers)

    def _take_points(self, account: Account) -> dict[str, str]:
        now = self.clock()
        spent = [each for each in account.points if each[0] > now - timedelta(hours=1)]
        left = self.points_per_hour - sum(points for _, points in spent)
        if left < PUT_POINTS:
            raise _Limited(spent[0][0] + timedelta(hours=1), self.points_per_hour)
        account.points = [*spent, (now, PUT_POINTS)]
        return _limits(now + timedelta(hours=1), self.points_per_hour, remaining=left - PUT_POINTS)

    def show_record(self, request: Request) -> Response:
        query = request.query
        account, key = self._named(query.get("repo", "")), query.get("rkey", "")
        _require(account, "Could not find repo")
        record = account.records.get(key) if account else None
        if account is None or record is None or record.visible_at > self.clock():
            where = f"at://{query.get('repo')}/{query.get('collection')}/{key}"
            raise _Refusal(400, "RecordNotFound", f"Could not locate record: {where}")
        uri = _uri(account.did, key)
        return Response(200, {"uri": uri, "cid": record.cid, "value": record.value})

    def show_posts(self, request: Request) -> Response:
        uris = [request.query.get("uris", "")]  # of a parameter that repeats, one is seen here
        found = [post for post in self.posts if post.uri in uris]
        none = {"likeCount": 0, "replyCount": 0, "repostCount": 0, "quoteCount": 0}
        return Response(
            200, {"posts": [{"uri": post.uri, **none, **post.counts} for post in found]}
        )

    # -- what a person sees and does

    def show_linked(self, request: Request) -> Response:
        return Response(200, LINKED_PAGE)

    def revoke(self, account: Account) -> None:
        """Delete its app passwords, and with them what was signed in with them."""
        self.sessions = {
            number: session
            for number, session in self.sessions.items()
            if session.password not in account.app_passwords
        }
        account.app_passwords = {f"new-{secrets.token_hex(6)}"}

    def suspend(self, account: Account) -> None:
        """Take it down, or lift that."""
        account.status = "" if account.status else "takendown"

    def like(self, account: Account) -> None:
        """Have its newest post liked once more."""
        for record in list(account.records.values())[-1:]:
            record.counts["likeCount"] = record.counts.get("likeCount", 0) + 1

    def front(self, request: Request) -> Response:
        accounts = "".join(
            f"<li><b>@{escape(a.handle)}</b>{' (taken down)' if a.status else ''}, app password"
            f" <code>{escape(', '.join(sorted(a.app_passwords)))}</code>"
            f" {act('/bluesky/do', a.did, 'revoke', 'Revoke')}"
            f" {act('/bluesky/do', a.did, 'suspend', 'Take down or lift it')}"
            f" {act('/bluesky/do', a.did, 'like', 'Like its newest post')}</li>"
            for a in self.accounts.values()
        )
        posts = "".join(f"<li>{_shown(post)}</li>" for post in self.posts)
        body = f"<h2>Accounts</h2><ul>{accounts}</ul><h2>Posts</h2><ul>{posts or 'None yet'}</ul>"
        return Response(200, page("Bluesky", "Bluesky", body))

    def do(self, request: Request) -> Response:
        form = request.form()
        if form["what"] in ("revoke", "suspend", "like"):
            getattr(self, form["what"])(self.accounts[form["number"]])
        return redirect(f"{self.url}/")

    def show_post(self, request: Request, did: str, key: str) -> Response:
        found = next((post for post in self.posts if post.uri == _uri(did, key)), None)
        if found is None:
            return Response(404, page("Bluesky", "Post not found", "<p>It may be deleted.</p>"))
        return Response(200, page("Bluesky", f"@{found.handle}", _shown(found)))


class _Limited(_Refusal):
    def __init__(self, until: datetime, limit: int) -> None:
        super().__init__(429, "RateLimitExceeded", "Rate Limit Exceeded")
        said = self.response
        self.response = Response(said.status, said.body, _limits(until, limit, remaining=0))


def _limits(until: datetime, limit: int, *, remaining: int) -> dict[str, str]:
    return {
        "ratelimit-limit": str(limit),
        "ratelimit-remaining": str(remaining),
        "ratelimit-reset": str(_seconds(until)),
    }


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _uri(did: str, key: str) -> str:
    return f"at://{did}/{COLLECTION}/{key}"


def _cid(value: dict[str, Any]) -> str:
    """The same for the same record, in whatever order it is written."""
    return "bafyrei" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _shown(post: Post) -> str:
    marks = "".join(f"<li>{escape(shown)} → {escape(leads)}</li>" for shown, leads in post.marks)
    card = post.card
    shown = (
        f"<p><b>{escape(card['title'])}</b><br>{escape(card['description'])}<br>"
        f"{escape(card['uri'])}</p>"
        if card
        else ""
    )
    text = f"<p style='white-space:pre-wrap' dir='auto'>{escape(post.text)}</p>"
    return f"{text}<ul>{marks}</ul>{shown}<p>{post.counts.get('likeCount', 0)} likes</p>"


# -- the lexicon of a post -------------------------------------------------------------------------


def _require_post(value: Any) -> None:
    _require(isinstance(value, dict), "Invalid app.bsky.feed.post record: Record must be an object")
    where = f"Invalid {COLLECTION} record: Record"
    _require(value.get("$type") == COLLECTION, f"{where}/$type must be {COLLECTION}")
    text = value.get("text")
    _require(isinstance(text, str), f'{where} must have the property "text"')
    too_long = text_length("bluesky", text) > text_limit("bluesky")
    _require(not too_long, f"{where}/text must not be longer than 300 graphemes")
    created = str(value.get("createdAt"))
    _require(_MOMENT.fullmatch(created), f"{where}/createdAt must be an valid atproto datetime")
    for facet in value.get("facets", []):
        _require_facet(facet, where)
    embed = value.get("embed")
    if embed is not None:
        _require_card(embed, where)


def _require_facet(facet: Any, where: str) -> None:
    start, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
    whole = type(start) is int and type(end) is int and 0 <= start < end
    _require(whole, f"{where}/facets/index must be an integer")
    names = {"link": "uri", "tag": "tag", "mention": "did"}
    for feature in facet["features"]:
        kind = feature["$type"].removeprefix("app.bsky.richtext.facet#")
        _require(names.get(kind) in feature, f"{where}/facets/features must have a value")
        _require(len(feature.get("tag", "")) <= 64, f"{where}/facets/features/tag is too long")


def _require_card(embed: Any, where: str) -> None:
    external = embed.get("external", {})
    given = all(isinstance(external.get(name), str) for name in ("uri", "title", "description"))
    _require(embed.get("$type") == "app.bsky.embed.external" and given, f"{where}/embed is invalid")
