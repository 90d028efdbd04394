"""An account at Bluesky: signed in to with an app password, which is not kept. What it was worth
is: a token for two hours, and one for 90 days that renews both.

https://docs.bsky.app/docs/api/com-atproto-server-create-session
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import jwt
from django.conf import settings

from integrations import connections
from integrations.accounts import Finish
from integrations.addresses import api_at, host_of
from integrations.api import LONGEST_WAIT, Api, wait_of
from integrations.connections import Account, Grant
from integrations.errors import Answer, Failure, NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources.base import UNPRINTABLE, BadPayload, Fields, trimmed
from integrations.tables import Connection

logger = logging.getLogger(__name__)

NAME, LABEL, PATH = "bluesky", "Bluesky", "bluesky"
APP_PASSWORDS = "bsky.app/settings/app-passwords"  # where they are made
LAPSED = "Bluesky's authorisation has ended: connect it again, with an app password."
SECOND_FACTOR = (
    "This is the password of the account itself, which wants a code by e-mail too: make an app"
    f" password at {APP_PASSWORDS} and use that."
)
STOPPED = {  # what ends all that an account may do, in sentences
    "AccountTakedown": "Bluesky has taken this account down: settle that there, and connect again.",
    "AccountDeactivated": "This account is deactivated: activate it at Bluesky, and connect again.",
    "AccountSuspended": "Bluesky has suspended this account: settle that there, and connect again.",
}
TOKEN_ENDED = frozenset({"ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired"})
WAIT = timedelta(minutes=5)  # where Bluesky does not say how long
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HANDLE = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+(?![0-9]+$){_LABEL}")


def is_configured() -> bool:
    """There is nothing to set up: whoever has an account can make an app password."""
    return True


# -- connecting ------------------------------------------------------------------------------------


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the account of a `handle`, with an app `password`; `server` is a host, for accounts
    that are not at Bluesky's own. Raises a Failure."""
    handle, password = _handle(answer.get("handle", "")), answer.get("password", "").strip()
    if not password:
        raise Refused(f"Write an app password too: it is made at {APP_PASSWORDS}.")
    named = answer.get("server", "").strip()
    server = host_of(named) if named else settings.BLUESKY_SERVER
    with understood(now):
        session = Fields(_session(server, handle, password, now).body, "")
        grant = _granted(session, now)
        host = _host_of(session) or server
        api = api_of({"host": host, "server": server}, grant.secrets["token"])
        me = Fields(api.ask("GET", "/xrpc/com.atproto.server.getSession", now=now).body, "")
        _require_active(me)
        account = Account(
            me.identifier("did"),
            f"@{trimmed(me.text('handle'), 253)}",
            details={"host": host, "server": server},
        )
    return Finish(connections.connect(user_id, NAME, account, grant, now=now))


def _handle(typed: str) -> str:
    """`name.bsky.social`, as it is typed or pasted: with an @, as an address of a profile, with
    the marks of direction that Bluesky's own pages put around it."""
    text = UNPRINTABLE.sub("", typed).strip().rstrip("/").rpartition("/")[2]
    handle = text.removeprefix("@").lower()
    if not _HANDLE.fullmatch(handle):
        raise Refused("Write the whole handle, such as name.bsky.social.")
    return handle


def _session(server: str, handle: str, password: str, now: datetime) -> Answer:
    """Sign in. Each account may do so a few times a day only, whatever it signs in to."""
    api = api_of({"host": server, "server": server})
    login = {"identifier": handle, "password": password}
    try:
        return api.ask("POST", "/xrpc/com.atproto.server.createSession", now=now, json=login)
    except Failure as failure:
        raise _not_signed_in(failure, api.label, server, now) from failure


def _not_signed_in(failure: Failure, label: str, server: str, now: datetime) -> Failure:
    status, error = _status(failure), error_of(failure)
    if error == "AuthFactorTokenRequired":
        return Refused(SECOND_FACTOR)
    if error in STOPPED:
        return Refused(STOPPED[error])
    if isinstance(failure, NeedsReconnect) or error in ("InvalidRequest", "InvalidToken"):
        where = " If it is at a server of its own, name that too." if label == LABEL else ""
        return Refused(f"{label} does not know this handle with this password.{where}")
    if status == 429:
        wait = _wait(failure, now)
        minutes = max(round(wait / timedelta(minutes=1)), 1)
        return TryLater(
            f"{label} lets this account sign in no more for now: try again in {minutes} minutes.",
            wait,
        )
    if status in (404, 405, 501) or (failure.answer and not error and isinstance(failure, Refused)):
        return Refused(
            f"{server} is no Bluesky server: leave that field empty, unless your account is at a"
            " server of its own."
        )
    return failure


def _host_of(session: Fields) -> str:
    """Where the account's records are kept, as its DID document says, or "".

    https://atproto.com/specs/did#did-documents
    """
    for service in session.maybe("didDoc").each("service"):
        if service.text("id", "").endswith("#atproto_pds"):
            return host_of(service.text("serviceEndpoint"))
    return ""


def _require_active(session: Fields) -> None:
    if session.has("active") and not session.flag("active"):
        status = trimmed(session.text("status", "not active"), 50)
        raise Refused(f"Bluesky says that this account is {status}: settle that there first.")


def _granted(session: Fields, now: datetime) -> Grant:
    """The tokens of a session, to be renewed when half of the longer one's life is over."""
    token, refresh_token = session.token("accessJwt"), session.token("refreshJwt")
    left = _end_of(refresh_token) - now
    return Grant(
        {"token": token, "refresh_token": refresh_token},
        expires_at=_end_of(token),
        refresh_at=now + max(left / 2, timedelta(hours=1)),
    )


def _end_of(token: str) -> datetime:
    """When a token lapses; its signature is its server's to check. Raises BadPayload."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
        raise BadPayload("a token is none") from error
    return Fields(claims, "token").moment("exp")


# -- asking ----------------------------------------------------------------------------------------


def api_of(details: Mapping[str, Any], token: str = "", *, signing_in: bool = False) -> Api:
    """The host of an account's records, or the server that it signed in to."""
    server, host = details["server"], details["host"]
    label = LABEL if server == settings.BLUESKY_SERVER else server
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return api_at(label, server if signing_in else host, headers)


def ask(account: Connection, method: str, call: str, now: datetime, **content: Any) -> Answer:
    """Call an account's host, with a new token if it takes the one at hand no more."""
    renewed = partial(_renewed, details=account.details or {}, now=now)
    token = connections.fresh_secrets(account, renewed, now)["token"]
    try:
        return api_of(account.details, token).ask(method, f"/xrpc/{call}", now=now, **content)
    except (NeedsReconnect, Refused) as failure:
        if not _is_about_token(failure):
            raise
        logger.info("a token was refused early", extra={"connection": account.key})
    token = connections.fresh_secrets(account, renewed, now, even_if_valid=True)["token"]
    try:
        return api_of(account.details, token).ask(method, f"/xrpc/{call}", now=now, **content)
    except (NeedsReconnect, Refused) as failure:
        if not _is_about_token(failure):
            raise
        connections.mark_broken(account, LAPSED, now)
        raise NeedsReconnect(LAPSED) from failure


def _renewed(kept: dict[str, str], details: Mapping[str, Any], now: datetime) -> Grant:
    """https://docs.bsky.app/docs/api/com-atproto-server-refresh-session: the old token lives on for
    two hours, so that a lost answer loses nothing."""
    api = api_of(details, kept.get("refresh_token", ""), signing_in=True)
    with understood(now):
        try:
            answer = api.ask("POST", "/xrpc/com.atproto.server.refreshSession", now=now)
        except (NeedsReconnect, Refused) as failure:
            if not _is_about_token(failure):
                raise
            raise NeedsReconnect(LAPSED) from failure
        return _granted(Fields(answer.body, ""), now)


def error_of(failure: Failure) -> str:
    """Bluesky's name for what is wrong, or ""."""
    return failure.said("error")


def _status(failure: Failure) -> int:
    return failure.answer.status if failure.answer else 0


def _is_about_token(failure: Failure) -> bool:
    """A token that has lapsed is told with status 400."""
    error = error_of(failure)
    return error in TOKEN_ENDED or (isinstance(failure, NeedsReconnect) and error not in STOPPED)


@contextmanager
def understood(now: datetime) -> Iterator[None]:
    """What Bluesky refuses in its own terms; what nobody can read is no answer: TryLater."""
    try:
        yield
    except Failure as failure:
        raise _in_its_terms(failure, now) from failure.__cause__
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"service": LABEL, "what": str(error)})
        raise TryLater("Bluesky answered with something that is no answer.") from error


def _in_its_terms(failure: Failure, now: datetime) -> Failure:
    """https://atproto.com/specs/xrpc#error-responses"""
    error, words = error_of(failure), failure.said("message")
    known = failure
    if error in STOPPED:
        known = NeedsReconnect(STOPPED[error])
    elif _status(failure) == 429:
        known = TryLater("Bluesky takes no more from this account for now.", _wait(failure, now))
    elif isinstance(failure, NotFound) and not words:
        known = TryLater("The account's server is no Bluesky server just now.")
    elif isinstance(failure, Refused) and words:
        known = Refused(f"Bluesky refused: “{trimmed(UNPRINTABLE.sub('', words), 200)}”")
    known.answer = failure.answer
    return known


def _wait(failure: Failure, now: datetime) -> timedelta:
    """https://docs.bsky.app/docs/advanced-guides/rate-limits: RateLimit-Reset is in seconds since
    1970."""
    headers = failure.answer.headers if failure.answer else {}
    if wait := wait_of(headers, now):
        return wait
    reset = headers.get("RateLimit-Reset", "")
    if not (reset.isascii() and reset.isdigit() and len(reset) <= 11):
        return WAIT
    left = datetime.fromtimestamp(int(reset), UTC) - now
    return min(max(left, timedelta(seconds=1)), LONGEST_WAIT)


# -- using it --------------------------------------------------------------------------------------


def check(connection: Connection, now: datetime) -> None:
    with connections.noted(connection, now), understood(now):
        session = ask(connection, "GET", "com.atproto.server.getSession", now)
        _require_active(Fields(session.body, ""))
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    renewed = partial(_renewed, details=connection.details or {}, now=now)
    connections.fresh_secrets(connection, renewed, now, even_if_valid=True)


def disconnect(connection: Connection, now: datetime) -> str:
    """End the session at Bluesky, and forget the account; the app password stays its owner's."""
    try:
        token = connections.secrets_of(connection).get("refresh_token", "")
        api = api_of(connection.details or {}, token, signing_in=True)
        api.ask("POST", "/xrpc/com.atproto.server.deleteSession", now=now)
    except Failure as failure:  # it lapses by itself, and with its app password
        ids = {"connection": connection.key, "reason": failure.reason}
        logger.info("the session was not ended", extra=ids)
    connections.disconnect(connection)
    return f"The app password is not needed any more: delete it at {APP_PASSWORDS}."
