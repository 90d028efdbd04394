"""An account at App Store Connect: an API key that its owner made there.

https://developer.apple.com/documentation/appstoreconnectapi/generating-tokens-for-api-requests
The key signs short-lived tokens; nothing is exchanged and nothing lapses until it is revoked.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings

from integrations import connections
from integrations.accounts import Finish
from integrations.api import Api
from integrations.errors import Answer, NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources.app_store.webhook import LABEL, NAME, STATE_UPDATED, is_app_id
from integrations.sources.base import UNPRINTABLE, BadPayload, Choice, Fields, choices_of, one_line
from integrations.tables import Connection

SERVICE = "App Store Connect"
AUDIENCE = "appstoreconnect-v1"
LIFE = timedelta(minutes=15)  # Apple takes twenty at most, by its own clock
REUSE = timedelta(minutes=10)
MOST_PAGES = 25
WEBHOOK_NAME = "SlothPost"

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LIMITED = re.compile(r"user-(hour|minute)-rem:0(?![0-9])")


@dataclass(frozen=True)
class Key:
    """What signs for an account. `issuer` is "" for an individual's own key."""

    id: str
    issuer: str
    pem: str = field(repr=False)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.id}/{self.issuer}/{self.pem}".encode()).hexdigest()


# -- connecting ------------------------------------------------------------------------------------


def is_configured() -> bool:
    """A key is made by its owner: the operator has nothing to set."""
    return True


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the key of the form: `issuer_id`, `key_id`, `private_key` and a `name` for it.

    Raises Refused with what to mend, or TryLater.
    """
    key = Key(
        id=_key_id(answer.get("key_id", "")),
        issuer=_issuer(answer.get("issuer_id", "")),
        pem=_private_key(answer.get("private_key", "")),
    )
    try:
        ask_with(key, "GET", "/v1/apps", now, params={"limit": 1})
    except NeedsReconnect as failure:
        raise Refused(
            f"{SERVICE} does not accept this key. Check that issuer ID, key ID and file belong"
            " together, and that the key was not revoked."
        ) from failure
    name = one_line(UNPRINTABLE.sub("", answer.get("name", "")), 100) or f"Key {key.id}"
    return Finish(
        connections.connect(
            user_id,
            NAME,
            connections.Account(id=key.id, name=name, details={"issuer": key.issuer}),
            connections.Grant(secrets={"private_key": key.pem}),
            now=now,
        )
    )


def _issuer(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    try:
        return str(UUID(text))
    except ValueError as error:
        raise Refused(
            "The issuer ID looks like 57246542-96fe-1a63-e053-0824d011072a: copy it from above the"
            " list of keys, or leave it empty for an individual key."
        ) from error


def _key_id(text: str) -> str:
    found = text.strip().upper()
    if not re.fullmatch(r"[A-Z0-9]{10}", found):
        raise Refused("The key ID has ten letters and digits, such as 2X9R4HXF34.")
    return found


def _private_key(text: str) -> str:
    """The PEM of a P-256 key, however it was pasted. Raises Refused, saying what it is instead."""
    found = _PEM.search(text.replace("\\n", "\n"))
    if found is None:
        raise Refused(
            "Paste the whole .p8 file, from its line -----BEGIN PRIVATE KEY----- to its line"
            " -----END PRIVATE KEY-----."
        )
    kind, content = found[1], "".join(found[2].split())
    if kind != "PRIVATE KEY":
        raise Refused(_not_that(f"“{kind.lower()}”"))
    try:
        key = load_pem_private_key(
            f"-----BEGIN PRIVATE KEY-----\n{content}\n-----END PRIVATE KEY-----\n".encode(), None
        )
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Refused(
            "The key's text is damaged: download the .p8 file anew, or paste it whole."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Refused(_not_that(f"key of another kind ({type(key).__name__.strip('_')})"))
    if not isinstance(key.curve, ec.SECP256R1):
        raise Refused(_not_that(f"key on another curve ({key.curve.name})"))
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _not_that(what: str) -> str:
    return f"This is a {what}. {SERVICE} gives a .p8 file with a plain private key on P-256."


def key_of(connection: Connection) -> Key:
    """Raises NeedsReconnect where the stored key cannot be read."""
    pem = connections.secrets_of(connection).get("private_key", "")
    issuer = str((connection.details or {}).get("issuer", ""))
    return Key(id=connection.account_id, issuer=issuer, pem=pem)


# -- asking ----------------------------------------------------------------------------------------

_tokens: dict[str, tuple[str, datetime]] = {}  # by the key's fingerprint, with when it was made


def _token(key: Key, now: datetime, *, fresh: bool = False) -> str:
    """One token serves a key for most of its life."""
    token, made = _tokens.get(key.fingerprint, ("", now))
    if token and not fresh and made <= now < made + REUSE:
        return token
    for old in [name for name, (_, then) in list(_tokens.items()) if then + LIFE < now]:
        _tokens.pop(old, None)
    who = {"iss": key.issuer} if key.issuer else {"sub": "user"}
    claims = {**who, "iat": now, "exp": now + LIFE, "aud": AUDIENCE}
    try:
        token = jwt.encode(claims, key.pem, algorithm="ES256", headers={"kid": key.id})
    except (TypeError, ValueError) as error:
        raise NeedsReconnect("The key that was kept is no key: connect it again.") from error
    _tokens[key.fingerprint] = (token, now)
    return token


def ask(connection: Connection, method: str, path: str, now: datetime, **content: Any) -> Answer:
    """App Store Connect's answer to one request, as this account. Raises a Failure; NeedsReconnect
    marks the connection broken."""
    if not connection.works:
        raise NeedsReconnect(str(connection.broken))
    try:
        return ask_with(key_of(connection), method, path, now, **content)
    except NeedsReconnect as failure:
        connections.mark_broken(connection, failure.reason, now)
        raise


def ask_with(key: Key, method: str, path: str, now: datetime, **content: Any) -> Answer:
    """The same with a key. Apple refuses good tokens now and then: only what is refused three
    times, the last with a fresh token, is refused."""
    for fresh in (False, False, True):
        token = _token(key, now, fresh=fresh)
        try:
            return _ask_once(token, method, path, now, content)
        except NeedsReconnect as failure:
            refused = failure
    raise NeedsReconnect(
        f"{SERVICE} no longer accepts this key: it was revoked, or its owner's role ended."
    ) from refused


def _ask_once(
    token: str, method: str, path: str, now: datetime, content: Mapping[str, Any]
) -> Answer:
    api = Api(SERVICE, settings.APP_STORE_API_URL, {"Authorization": f"Bearer {token}"})
    try:
        return api.ask(method, path, now=now, **content)
    except Refused as failure:
        if failure.answer is not None and failure.answer.status == 403:
            _forbidden(failure)
        raise
    except TryLater as failure:
        if failure.answer is not None and failure.answer.status == 429:
            failure.after = _wait(failure)
        raise


def _forbidden(failure: Refused) -> NoReturn:
    said = str(failure.answer.body if failure.answer else "")
    if "AGREEMENT" in said.upper():
        reason = (
            f"{SERVICE} waits for its Account Holder to sign an agreement: sign in there and accept"
            " what it shows under Business."
        )
    else:
        reason = (
            f"{SERVICE} does not let this key do that: its role is too low, or an agreement waits"
            " to be signed there. A key with the role App Manager can do all that SlothPost needs."
        )
    refused = Refused(reason)
    refused.answer = failure.answer
    raise refused from failure


def _wait(failure: TryLater) -> timedelta | None:
    """How long to wait where Apple, as it does, gives no Retry-After: the allowance is for an hour
    that moves along, so that a part of it comes back soon."""
    headers = failure.answer.headers if failure.answer else {}
    spent = _LIMITED.search(headers.get("X-Rate-Limit", ""))
    if headers.get("Retry-After") or spent is None or spent[1] == "minute":
        return failure.after
    return timedelta(minutes=15)


def pages(
    connection: Connection, path: str, now: datetime, most: int = MOST_PAGES, **params: Any
) -> Iterator[list[Fields]]:
    """The `data` of a list, page after page, at most so many of them. Raises a Failure."""
    answer = ask(connection, "GET", path, now, params=params)
    for _ in range(most):
        try:
            body = Fields(answer.body, "")
            entries, following = body.each("data"), body.maybe("links").text("next", "")
        except BadPayload as error:
            raise unreadable() from error
        yield entries
        if not following:
            return
        answer = ask(connection, "GET", following, now)


def unreadable() -> TryLater:
    return TryLater(f"{SERVICE} answered with something that is no answer.")


# -- the account -----------------------------------------------------------------------------------


def choices(user_id: str, now: datetime) -> list[Choice]:
    """Every app that this person's keys show, each once, by name."""
    found = choices_of(connections.of_provider(user_id, NAME), partial(_apps, now=now))
    return sorted(found, key=lambda choice: choice.name.casefold())


def _apps(connection: Connection, now: datetime) -> Iterator[Choice]:
    fields: dict[str, Any] = {"limit": 200, "fields[apps]": "name,bundleId"}
    for page in pages(connection, "/v1/apps", now, **fields):
        try:
            yield from [_choice(app, connection) for app in page if is_app_id(app.text("id"))]
        except BadPayload as error:
            raise unreadable() from error


def _choice(app: Fields, connection: Connection) -> Choice:
    attributes = app.fields("attributes")
    return Choice(
        id=app.text("id"),
        name=attributes.line("name") or app.text("id"),
        via=connection.key,
        detail=attributes.line("bundleId", ""),
    )


def check(connection: Connection, now: datetime) -> None:
    """One real read. Raises a Failure; what may pass by itself is noted as trouble."""
    try:
        ask(connection, "GET", "/v1/apps", now, params={"limit": 1})
    except (TryLater, Refused) as failure:
        connections.mark_trouble(connection, failure.reason, now)
        raise
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    """Nothing of a key lapses by itself: look whether it still works."""
    check(connection, now)


def disconnect(connection: Connection, now: datetime) -> str:
    connections.disconnect(connection)
    return (
        f"SlothPost has forgotten this key. To end it for good, revoke it in {SERVICE}:"
        " Users and Access, Integrations."
    )


# -- its webhooks ----------------------------------------------------------------------------------


def set_up_webhook(
    connection: Connection, app_id: str, url: str, secret: str, now: datetime
) -> None:
    """Have App Store Connect tell `url` of an app's versions, signed with `secret`, and ping it.

    Doing so again changes nothing but an address or a secret that is another by now. Raises a
    Failure: without a webhook, the fetch before each draft finds the same.
    """
    attributes = {"enabled": True, "eventTypes": [STATE_UPDATED], "secret": secret, "url": url}
    try:
        webhook = _our_webhook(connection, app_id, url, now)
        if webhook:
            changed = {"type": "webhooks", "id": webhook, "attributes": attributes}
            ask(connection, "PATCH", f"/v1/webhooks/{webhook}", now, json={"data": changed})
        else:
            webhook = _new_webhook(connection, app_id, {**attributes, "name": WEBHOOK_NAME}, now)
        about = {"webhook": {"data": {"type": "webhooks", "id": webhook}}}
        ping = {"data": {"type": "webhookPings", "relationships": about}}
        ask(connection, "POST", "/v1/webhookPings", now, json=ping)
    except Refused as failure:
        if failure.answer is None or failure.answer.status != 403:
            raise
        raise Refused(
            f"This key's role may not manage webhooks, so {LABEL} news do not arrive by themselves."
            " SlothPost asks the App Store before each draft instead; a key with the role Admin"
            " can have both."
        ) from failure


def remove_webhook(connection: Connection, app_id: str, url: str, now: datetime) -> None:
    """Take our webhook of an app away, if it is there. Raises a Failure."""
    try:
        webhook = _our_webhook(connection, app_id, url, now)
        if webhook:
            ask(connection, "DELETE", f"/v1/webhooks/{webhook}", now)
    except NotFound:  # the app or the webhook went before us
        return


def _new_webhook(
    connection: Connection, app_id: str, attributes: Mapping[str, Any], now: datetime
) -> str:
    app = {"app": {"data": {"type": "apps", "id": app_id}}}
    new = {"type": "webhooks", "attributes": attributes, "relationships": app}
    answer = ask(connection, "POST", "/v1/webhooks", now, json={"data": new})
    try:
        return Fields(answer.body, "").fields("data").identifier("id")
    except BadPayload as error:
        raise unreadable() from error


def _our_webhook(connection: Connection, app_id: str, url: str, now: datetime) -> str:
    """The id of the webhook whose address ends in the same hook, or "": the site in front of it
    may have moved since. (`GET /v1/webhooks` is forbidden; the app's own list is not.)"""
    for page in pages(connection, f"/v1/apps/{app_id}/webhooks", now):
        try:
            for webhook in page:
                if _hook_in(webhook.fields("attributes").text("url", "")) == _hook_in(url):
                    return webhook.identifier("id")
        except BadPayload as error:
            raise unreadable() from error
    return ""


def _hook_in(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]
