"""App Store Connect and iTunes' lookup on this machine.

App Store Connect keeps Apple's contract: ES256 tokens of a known key, pages, allowances, error
bodies, webhooks in their two spellings. What changes there, iTunes shows, and webhooks tell.
https://developer.apple.com/documentation/appstoreconnectapi
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import requests
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from integrations.standins.server import Request, Response, Service, StandIns

REAL_WHEN_SET = "APP_STORE_API_URL"
KEY_ID = "SLOTHDEMO1"
ISSUER = "57246542-96fe-1a63-e053-0824d0110001"
APP_ID = "6441234567"
LONGEST_TOKEN = timedelta(minutes=20)
LEEWAY = timedelta(seconds=60)
SUBSCRIBED = "APP_STORE_VERSION_APP_VERSION_STATE_UPDATED"
DELIVERED = "appStoreVersionAppVersionStateUpdated"
EVENT_TYPES = (SUBSCRIBED, "BUILD_UPLOAD_STATE_UPDATED")
READY, REPLACED = "READY_FOR_DISTRIBUTION", "REPLACED_WITH_NEW_VERSION"


def settings_for(standins: StandIns) -> dict[str, str]:
    return {
        "APP_STORE_API_URL": f"{standins.url}{AppStoreConnect.prefix}",
        "ITUNES_LOOKUP_URL": f"{standins.url}{ITunes.prefix}/lookup",
    }


def add_to(standins: StandIns, keys: Path) -> "AppStoreConnect":
    connect = AppStoreConnect(standins, demo_key(keys))
    seed(connect)
    standins.services += [connect, ITunes(standins, connect)]
    return connect


def demo_key(keys: Path) -> str:
    """The PEM of the key to connect with, made once."""
    path = keys / "standin-app-store-key.p8"
    if not path.exists():
        made = ec.generate_private_key(ec.SECP256R1())
        keys.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        path.chmod(0o600)
    return path.read_text()


@dataclass
class Key:
    """`issuer` is "" for an individual's key."""

    issuer: str
    pem: str
    may_manage_webhooks: bool = True
    may_read_reviews: bool = True
    agreement_unsigned: bool = False


@dataclass
class Version:
    id: str
    text: str
    state: str
    created: datetime
    notes: dict[str, str]  # by locale
    platform: str = "IOS"
    released: datetime | None = None


@dataclass
class Review:
    id: str
    rating: int
    title: str
    body: str
    created: datetime


@dataclass
class App:
    id: str
    name: str
    bundle_id: str
    countries: tuple[str, ...] = ("us", "de")
    versions: list[Version] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)

    def in_store(self) -> Version | None:
        """What the store's page shows: the newest released."""
        out = [version for version in self.versions if version.state == READY]
        return max(out, key=lambda version: version.released or version.created, default=None)


@dataclass
class Hook:
    id: str
    app_id: str
    name: str
    url: str
    secret: str
    event_types: list[str]
    enabled: bool = True
    deliveries: list[dict[str, Any]] = field(default_factory=list)


class Problem(Exception):
    """An answer with an error, as Apple documents it."""

    def __init__(self, status: int, code: str, title: str) -> None:
        super().__init__(title)
        error = {"id": str(uuid4()), "status": str(status), "code": code, "title": title}
        self.response = Response(status, {"errors": [{**error, "detail": title}]})


class AppStoreConnect(Service):
    prefix = "/app-store-connect"
    label = "App Store Connect"
    kept = ("keys", "hooks")
    routes = (
        ("GET", "/", "front"),
        ("POST", "/do", "do"),
        ("GET", "/v1/apps", "list_apps"),
        ("GET", "/v1/apps/([^/]+)", "show_app"),
        ("GET", "/v1/apps/([^/]+)/appStoreVersions", "list_versions"),
        ("GET", "/v1/appStoreVersions/([^/]+)/appStoreVersionLocalizations", "list_notes"),
        ("GET", "/v1/apps/([^/]+)/customerReviews", "list_reviews"),
        ("GET", "/v1/apps/([^/]+)/webhooks", "list_hooks"),
        ("GET", "/v1/webhooks", "refuse_all_hooks"),
        ("POST", "/v1/webhooks", "add_hook"),
        ("PATCH", "/v1/webhooks/([^/]+)", "change_hook"),
        ("DELETE", "/v1/webhooks/([^/]+)", "remove_hook"),
        ("GET", "/v1/webhooks/([^/]+)/deliveries", "list_deliveries"),
        ("POST", "/v1/webhookPings", "ping"),
    )

    def __init__(self, standins: StandIns, demo_pem: str) -> None:
        super().__init__(standins)
        self.demo_pem = demo_pem
        self.keys: dict[str, Key] = {KEY_ID: Key(ISSUER, demo_pem)}
        self.apps: dict[str, App] = {}
        self.hooks: dict[str, Hook] = {}
        self.allowance = 3600  # requests that are left in this hour
        self.most_per_page = 200
        self.tokens: set[str] = set()  # digests of those seen
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def handle(self, request: Request) -> Response:
        if not request.path.startswith("/v1/"):
            return super().handle(request)
        try:
            key = self._key_of(request)
            self._spend()
            self._permit(key, request)
            response = super().handle(request)
        except Problem as problem:
            response = problem.response
        limits = {"X-Rate-Limit": f"user-hour-lim:3600;user-hour-rem:{self.allowance};"}
        return replace(response, headers={**limits, **response.headers})

    def not_found(self) -> Response:
        title = "The specified resource does not exist"
        return Problem(404, "NOT_FOUND", title).response

    # -- who may

    def _key_of(self, request: Request) -> Key:
        token = request.bearer()
        refused = Problem(
            401, "NOT_AUTHORIZED", "Authentication credentials are missing or invalid."
        )
        try:
            key = self.keys[jwt.get_unverified_header(token)["kid"]]
            public = load_pem_private_key(key.pem.encode(), None).public_key()
            claims = jwt.decode(
                token,
                public,  # type: ignore[arg-type] # made on P-256 above
                algorithms=["ES256"],
                audience="appstoreconnect-v1",
                options={"require": ["iat", "exp"], "verify_exp": False, "verify_iat": False},
            )
        except (jwt.InvalidTokenError, KeyError) as error:
            raise refused from error
        now = self.clock().timestamp()
        in_time = now < claims["exp"] <= now + LONGEST_TOKEN.total_seconds()
        made = claims["iat"] <= now + LEEWAY.total_seconds()
        who = claims.get("iss") == key.issuer if key.issuer else claims.get("sub") == "user"
        if not (in_time and made and who):
            raise refused
        self.tokens.add(hashlib.sha256(token.encode()).hexdigest())
        return key

    def _spend(self) -> None:
        with self.lock:
            if self.allowance <= 0:
                raise Problem(
                    429, "RATE_LIMIT_EXCEEDED", "The request rate limit has been reached."
                )
            self.allowance -= 1

    def _permit(self, key: Key, request: Request) -> None:
        if key.agreement_unsigned:
            code = "FORBIDDEN.REQUIRED_AGREEMENTS_MISSING_OR_EXPIRED"
            raise Problem(403, code, "A required agreement is missing or has expired.")
        hooks = "webhook" in request.path
        reviews = request.path.endswith("/customerReviews")
        if (hooks and not key.may_manage_webhooks) or (reviews and not key.may_read_reviews):
            raise Problem(403, "FORBIDDEN_ERROR", "This request is forbidden for security reasons")

    # -- apps

    def list_apps(self, request: Request) -> Response:
        return self._page(request, [_app(app) for app in self.apps.values()])

    def show_app(self, request: Request, app_id: str) -> Response:
        return Response(200, {"data": _app(self._app(app_id))})

    def list_versions(self, request: Request, app_id: str) -> Response:
        found = sorted(self._app(app_id).versions, key=lambda v: v.created, reverse=True)
        platform = request.query.get("filter[platform]")
        state = request.query.get("filter[appVersionState]")
        return self._page(
            request,
            [
                _version(version)
                for version in found
                if platform in (None, version.platform) and state in (None, version.state)
            ],
        )

    def list_notes(self, request: Request, version_id: str) -> Response:
        versions = (version for app in self.apps.values() for version in app.versions)
        version = next((version for version in versions if version.id == version_id), None)
        if version is None:
            return self.not_found()
        wanted = request.query.get("filter[locale]")
        return self._page(
            request,
            [
                {
                    "type": "appStoreVersionLocalizations",
                    "id": f"{version.id}-{locale}",
                    "attributes": {"locale": locale, "whatsNew": text},
                }
                for locale, text in version.notes.items()
                if wanted in (None, locale)
            ],
        )

    def list_reviews(self, request: Request, app_id: str) -> Response:
        newest_first = request.query.get("sort") == "-createdDate"
        found = sorted(self._app(app_id).reviews, key=lambda r: r.created, reverse=newest_first)
        return self._page(request, [_review(review) for review in found])

    def _app(self, app_id: str) -> App:
        if app_id not in self.apps:
            raise Problem(
                404, "NOT_FOUND", f"There is no resource of type 'apps' with id '{app_id}'"
            )
        return self.apps[app_id]

    def _page(self, request: Request, entries: list[dict[str, Any]]) -> Response:
        limit = min(int(request.query.get("limit", "50")), self.most_per_page)
        start = int(request.query.get("cursor", "0"))
        here = f"{self.url}{request.path}"
        links = {"self": here}
        if start + limit < len(entries):
            links["next"] = f"{here}?cursor={start + limit}&limit={limit}"
            if "sort" in request.query:
                links["next"] += f"&sort={request.query['sort']}"
        paging = {"total": len(entries), "limit": limit}
        body = {"data": entries[start : start + limit], "links": links, "meta": {"paging": paging}}
        return Response(200, body)

    # -- webhooks

    def refuse_all_hooks(self, request: Request) -> Response:
        title = "The resource 'webhooks' does not allow 'GET_COLLECTION'."
        raise Problem(403, "FORBIDDEN_ERROR", title)

    def list_hooks(self, request: Request, app_id: str) -> Response:
        app = self._app(app_id)
        return self._page(
            request, [_hook(hook) for hook in self.hooks.values() if hook.app_id == app.id]
        )

    def add_hook(self, request: Request) -> Response:
        data = request.json()["data"]
        attributes = data["attributes"]
        app = self._app(data["relationships"]["app"]["data"]["id"])
        missing = {"enabled", "eventTypes", "name", "secret", "url"} - set(attributes)
        if missing:
            raise Problem(409, "ENTITY_ERROR.ATTRIBUTE.REQUIRED", f"Missing: {sorted(missing)}")
        _check_event_types(attributes)
        hook = Hook(
            id=str(uuid4()),
            app_id=app.id,
            name=attributes["name"],
            url=attributes["url"],
            secret=attributes["secret"],
            event_types=attributes["eventTypes"],
            enabled=attributes["enabled"],
        )
        self.hooks[hook.id] = hook
        return Response(201, {"data": _hook(hook)})

    def change_hook(self, request: Request, hook_id: str) -> Response:
        hook = self._hook(hook_id)
        attributes = request.json()["data"]["attributes"]
        _check_event_types(attributes)
        hook.url = attributes.get("url", hook.url)
        hook.secret = attributes.get("secret", hook.secret)
        hook.enabled = attributes.get("enabled", hook.enabled)
        hook.event_types = attributes.get("eventTypes", hook.event_types)
        return Response(200, {"data": _hook(hook)})

    def remove_hook(self, request: Request, hook_id: str) -> Response:
        del self.hooks[self._hook(hook_id).id]
        return Response(204)

    def list_deliveries(self, request: Request, hook_id: str) -> Response:
        return self._page(request, self._hook(hook_id).deliveries)

    def ping(self, request: Request) -> Response:
        about = request.json()["data"]["relationships"]["webhook"]["data"]
        hook = self._hook(about["id"])
        self._deliver(hook, "webhookPings", {"ping": True}, {})
        return Response(201, {"data": {"type": "webhookPings", "id": str(uuid4())}})

    def _hook(self, hook_id: str) -> Hook:
        if hook_id not in self.hooks:
            raise Problem(404, "NOT_FOUND", f"There is no webhook with id '{hook_id}'")
        return self.hooks[hook_id]

    def _tell(self, app: App, version: Version, old: str) -> None:
        """Send a changed state to the app's webhooks."""
        attributes = {
            "oldValue": old,
            "newValue": version.state,
            "timestamp": self.clock().isoformat(),
        }
        instance = {"instance": {"data": {"type": "appStoreVersions", "id": version.id}}}
        for hook in list(self.hooks.values()):
            if hook.app_id == app.id and hook.enabled and SUBSCRIBED in hook.event_types:
                self._deliver(hook, DELIVERED, attributes, instance)

    def _deliver(
        self, hook: Hook, kind: str, attributes: Mapping[str, Any], related: Mapping[str, Any]
    ) -> None:
        data = {
            "type": kind,
            "id": str(uuid4()),
            "version": 1,
            "attributes": attributes,
            "relationships": related,
        }
        body = json.dumps({"data": data}).encode()
        signed = hmac.new(hook.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"x-apple-signature": f"hmacsha256={signed}", "Content-Type": "application/json"}
        try:
            status = requests.post(hook.url, data=body, headers=headers, timeout=5).status_code
        except requests.RequestException:
            status = 0  # the list of deliveries says so
        hook.deliveries.insert(
            0,
            {
                "type": "webhookDeliveries",
                "id": data["id"],
                "attributes": {
                    "deliveryState": "SUCCEEDED" if 200 <= status < 300 else "FAILED",
                    "createdDate": self.clock().isoformat(),
                    "request": {"url": hook.url},
                    "response": {"httpStatusCode": status},
                },
            },
        )

    # -- what a person makes happen

    def put_in_review(self, app_id: str, text: str, notes: str, platform: str = "IOS") -> Version:
        app = self.apps[app_id]
        version = Version(
            id=str(uuid4()),
            text=text,
            state="WAITING_FOR_REVIEW",
            created=self.clock().replace(microsecond=0),
            notes={"en-US": notes},
            platform=platform,
        )
        app.versions.append(version)
        self.move(app, version, "IN_REVIEW", old="WAITING_FOR_REVIEW")
        return version

    def release(self, app_id: str, version_id: str) -> None:
        app, version = self._find(app_id, version_id)
        for other in app.versions:
            if other.state == READY and other.platform == version.platform:
                other.state = REPLACED
        version.released = self.clock().replace(microsecond=0)
        self.move(app, version, READY)

    def reject(self, app_id: str, version_id: str) -> None:
        self.move(*self._find(app_id, version_id), "REJECTED")

    def review(self, app_id: str, rating: int, title: str, body: str) -> None:
        made = Review(str(uuid4()), rating, title, body, self.clock().replace(microsecond=0))
        self.apps[app_id].reviews.append(made)

    def move(self, app: App, version: Version, state: str, old: str = "") -> None:
        old, version.state = old or version.state, state
        self._tell(app, version, old)

    def _find(self, app_id: str, version_id: str) -> tuple[App, Version]:
        app = self._app(app_id)
        version = next((v for v in app.versions if v.id == version_id), None)
        if version is None:
            raise Problem(404, "NOT_FOUND", f"There is no version with id '{version_id}'")
        return app, version

    def do(self, request: Request) -> Response:
        form = request.form()
        app_id, version = form.get("app", ""), form.get("version", "")
        try:
            self._app(app_id)
            if form["what"] == "submit":
                self.put_in_review(app_id, form["text"], form["notes"], form["platform"])
            elif form["what"] == "release":
                self.release(app_id, version)
            elif form["what"] == "reject":
                self.reject(app_id, version)
            elif form["what"] == "review":
                self.review(app_id, int(form["rating"]), form["title"], form["body"])
        except Problem as problem:
            return problem.response
        return Response(303, headers={"Location": f"{self.url}/"})

    def front(self, request: Request) -> Response:
        apps = "".join(_app_as_html(app, self.url) for app in self.apps.values())
        return Response(
            200,
            _PAGE.format(
                issuer=ISSUER,
                key_id=KEY_ID,
                pem=escape(self.demo_pem),
                apps=apps,
                hooks=self._told(),
            ),
        )

    def _told(self) -> str:
        rows = [
            f"<li>{escape(hook.url)}: {delivery['attributes']['deliveryState']}"
            f" ({delivery['attributes']['response']['httpStatusCode']})</li>"
            for hook in self.hooks.values()
            for delivery in hook.deliveries[:5]
        ]
        return "".join(rows) or "<li>nothing yet</li>"


class ITunes(Service):
    prefix = "/itunes"
    routes = (("GET", "/lookup", "lookup"),)

    def __init__(self, standins: StandIns, connect: AppStoreConnect) -> None:
        super().__init__(standins)
        self.connect = connect
        self.is_limited = False  # 403 to whoever asks more than twenty times a minute
        self.asked: list[datetime] = []

    def lookup(self, request: Request) -> Response:
        now = self.connect.clock()
        with self.lock:
            self.asked = [then for then in self.asked if now - then < timedelta(minutes=1)] + [now]
            if self.is_limited and len(self.asked) > 20:
                return Response(403, "<html>Forbidden</html>")
        wanted = (request.query.get("id"), request.query.get("bundleId"))
        country = request.query.get("country", "us")
        results = [
            _in_store(app, version)
            for app in self.connect.apps.values()
            if (app.id == wanted[0] or app.bundle_id == wanted[1]) and country in app.countries
            if (version := app.in_store())
        ]
        return Response(200, {"resultCount": len(results), "results": results})


# -- as Apple writes it ----------------------------------------------------------------------------


def _app(app: App) -> dict[str, Any]:
    attributes = {"name": app.name, "bundleId": app.bundle_id, "primaryLocale": "en-US"}
    return {"type": "apps", "id": app.id, "attributes": attributes}


def _version(version: Version) -> dict[str, Any]:
    return {
        "type": "appStoreVersions",
        "id": version.id,
        "attributes": {
            "platform": version.platform,
            "versionString": version.text,
            "appVersionState": version.state,
            "releaseType": "AFTER_APPROVAL",
            "earliestReleaseDate": None,
            "createdDate": version.created.isoformat(),
            "downloadable": version.state == READY,
        },
    }


def _review(review: Review) -> dict[str, Any]:
    return {
        "type": "customerReviews",
        "id": review.id,
        "attributes": {
            "rating": review.rating,
            "title": review.title,
            "body": review.body,
            "reviewerNickname": "a reader",
            "createdDate": review.created.isoformat(),
            "territory": "USA",
        },
    }


def _hook(hook: Hook) -> dict[str, Any]:
    """Without its secret: Apple never shows that again."""
    return {
        "type": "webhooks",
        "id": hook.id,
        "attributes": {
            "name": hook.name,
            "url": hook.url,
            "enabled": hook.enabled,
            "eventTypes": hook.event_types,
        },
    }


def _check_event_types(attributes: Mapping[str, Any]) -> None:
    unknown = [name for name in attributes.get("eventTypes", []) if name not in EVENT_TYPES]
    if unknown:
        title = f"'{unknown[0]}' is not a valid value for the attribute 'eventTypes'"
        raise Problem(409, "ENTITY_ERROR.ATTRIBUTE.INVALID", title)


def _in_store(app: App, version: Version) -> dict[str, Any]:
    released = (version.released or version.created).astimezone(UTC)
    return {
        "trackId": int(app.id),
        "trackName": app.name,
        "bundleId": app.bundle_id,
        "version": version.text,
        "currentVersionReleaseDate": f"{released:%Y-%m-%dT%H:%M:%SZ}",
        "releaseNotes": version.notes.get("en-US", ""),
        "trackViewUrl": f"https://apps.apple.com/us/app/id{app.id}",
    }


def _app_as_html(app: App, url: str) -> str:
    rows = "".join(
        f"<li>{escape(version.text)} ({version.platform}): {version.state.lower()}"
        f"{_buttons(app, version, url)}</li>"
        for version in sorted(app.versions, key=lambda v: v.created, reverse=True)
    )
    return _APP.format(name=escape(app.name), id=app.id, rows=rows, url=url)


def _buttons(app: App, version: Version, url: str) -> str:
    if version.state in (READY, REPLACED):
        return ""
    return (
        f'<form method="post" action="{url}/do"><input type="hidden" name="app" value="{app.id}">'
        f'<input type="hidden" name="version" value="{version.id}">'
        '<button name="what" value="release">Release it</button>'
        '<button name="what" value="reject">Reject it</button></form>'
    )


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>App Store Connect (stand-in)</title>
<style>body{{font:16px/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}}
form{{margin:.3rem 0}}textarea{{width:100%}}</style>
<h1>App Store Connect</h1>
<p>This is a <strong>stand-in</strong> on your own machine: nothing here is Apple's.</p>
<h2>A key to connect with</h2>
<p>Issuer ID <code>{issuer}</code><br>Key ID <code>{key_id}</code></p>
<label>The .p8 file<textarea readonly rows="6">{pem}</textarea></label>
{apps}
<h2>Webhooks told</h2><ul>{hooks}</ul></html>"""

_APP = """<h2>{name} ({id})</h2><ul>{rows}</ul>
<form method="post" action="{url}/do"><input type="hidden" name="app" value="{id}">
<label>Version <input name="text" value="1.6.0" required pattern="[0-9.]+"></label>
<label>Platform <select name="platform"><option>IOS<option>MAC_OS</select></label>
<label>What is new <input name="notes" value="Widgets for the lock screen."></label>
<button name="what" value="submit">Put it in review</button></form>
<form method="post" action="{url}/do"><input type="hidden" name="app" value="{id}">
<label>Stars <input name="rating" type="number" min="1" max="5" value="5"></label>
<label>Title <input name="title" value="Calm and quick" required></label>
<label>Text <input name="body" value="I use it every day."></label>
<button name="what" value="review">Add a review</button></form>"""


# -- what is there at first ------------------------------------------------------------------------


def seed(connect: AppStoreConnect) -> None:
    """An app with two weeks behind it, on two platforms."""
    now = connect.clock().replace(microsecond=0)

    def ago(days: float) -> datetime:
        return now - timedelta(days=days)

    connect.apps[APP_ID] = App(
        id=APP_ID,
        name="Slowtide",
        bundle_id="com.example.slowtide",
        versions=[
            _seeded("1.4.0", "IOS", REPLACED, "Tides for every harbour.", ago(13), ago(12)),
            _seeded("1.4.0", "MAC_OS", REPLACED, "Tides for every harbour.", ago(13), ago(11)),
            _seeded("1.4.1", "IOS", REPLACED, "The moon is right again.", ago(8), ago(7)),
            _seeded("1.5.0", "IOS", READY, "Dark mode follows the system.", ago(4), ago(2)),
            _seeded("1.5.0", "MAC_OS", READY, "Dark mode follows the system.", ago(4), ago(3)),
        ],
        reviews=[
            Review("review-1", 5, "Finally", "The only tide app I keep.", ago(9)),
            Review("review-2", 2, "Crashes", "It closes when I rotate it.", ago(5)),
            Review("review-3", 5, "Dark at last", "Thank you for dark mode.", ago(1)),
        ],
    )


def _seeded(
    text: str, platform: str, state: str, notes: str, created: datetime, released: datetime
) -> Version:
    return Version(
        id=f"version-{text}-{platform.lower()}",
        text=text,
        state=state,
        created=created,
        notes={"en-US": notes, "de-DE": f"{notes} (de)"},
        platform=platform,
        released=released,
    )
