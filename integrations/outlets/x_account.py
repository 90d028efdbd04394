"""An account at X: OAuth 2.0 with PKCE, and calls with its token.

https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Finish, Start, pkce
from integrations.api import Api, wait_of
from integrations.connections import Account, Grant
from integrations.errors import Answer, Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.sources.base import BadPayload, Fields, trimmed
from integrations.tables import Connection

logger = logging.getLogger(__name__)

NAME, LABEL, PATH = "x", "X", "x"
SCOPES = "tweet.read tweet.write users.read offline.access"
RENEWED_AFTER = timedelta(days=120)  # a refresh token that nobody uses lapses after six months
LOST = "X no longer accepts this account's authorisation: connect it again."
OPERATORS_FAULT = (
    "X does not accept what SlothPost identifies itself by: whoever runs this SlothPost has to"
    " mend that."
)
NO_CREDIT = "X takes nothing more: whoever runs this SlothPost has to add to its credit there."


def is_configured() -> bool:
    return bool(settings.X_CLIENT_ID and settings.X_CLIENT_SECRET)


# -- connecting ------------------------------------------------------------------------------------


def start(state: str, callback_url: str, answer: Mapping[str, str], now: datetime) -> Start:
    verifier, said = pkce()
    query = {
        "response_type": "code",
        "client_id": settings.X_CLIENT_ID,
        "redirect_uri": callback_url,
        "scope": SCOPES,
        "state": state,
        **said,
    }
    address = f"{settings.X_URL}/i/oauth2/authorize?{urlencode(query)}"
    return Start(address, {"verifier": verifier})


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the account that a code stands for; a code lives for 30 seconds.

    Raises Cancelled, ExpiredLink or a Failure.
    """
    if answer.get("error") == "access_denied":
        raise Cancelled("You did not allow it at X: nothing was connected.")
    if "error" in answer or not answer.get("code"):
        logger.warning("consent failed", extra={"service": LABEL})
        raise ExpiredLink("X did not complete it: please start again.")
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "redirect_uri": kept.get("callback_url", ""),
        "code_verifier": kept.get("verifier", ""),
    }
    late = ExpiredLink("X's answer was too old, or used before: please start again.")
    with understood(now):
        grant = _granted(form, late, now)
        account = _who(_api(grant.secrets["token"]).ask("GET", "/2/users/me", now=now))
    return Finish(connections.connect(user_id, NAME, account, grant, now=now))


def _granted(form: Mapping[str, str], refused: Exception, now: datetime) -> Grant:
    """The tokens for a code or a refresh token. Raises `refused` where X takes that no more, and
    a Failure for whatever says nothing of it."""
    client = (settings.X_CLIENT_ID, settings.X_CLIENT_SECRET)
    try:
        answer = _api().ask("POST", "/2/oauth2/token", now=now, data=form, auth=client)
    except (Refused, NeedsReconnect) as failure:
        if failure.answer is None:  # it never came to an answer
            raise
        if _body(failure).get("error") in ("invalid_request", "invalid_grant"):
            raise refused from failure
        logger.error("no token was handed out", extra={"service": LABEL})
        raise TryLater(OPERATORS_FAULT) from failure
    found = Fields(answer.body, "")
    tokens = {"token": found.text("access_token"), "refresh_token": found.text("refresh_token")}
    life = timedelta(seconds=min(found.number("expires_in"), 10**9))
    scopes = tuple(found.text("scope", "").split())
    return Grant(tokens, expires_at=now + life, refresh_at=now + RENEWED_AFTER, scopes=scopes)


def _who(answer: Answer) -> Account:
    """Whose token it is: https://docs.x.com/x-api/users/get-my-user"""
    found = Fields(answer.body, "").fields("data")
    username = found.identifier("username")
    return Account(found.identifier("id"), f"@{username}", details={"username": username})


def check(connection: Connection, now: datetime) -> None:
    with connections.noted(connection, now), understood(now):
        _who(ask(connection, "GET", "/2/users/me", now))
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    connections.fresh_secrets(connection, partial(_renewed, now=now), now, even_if_valid=True)


def _renewed(kept: dict[str, str], now: datetime) -> Grant:
    """New tokens for the refresh token, which is good once."""
    form = {"grant_type": "refresh_token", "refresh_token": kept.get("refresh_token", "")}
    with understood(now):
        return _granted(form, NeedsReconnect(LOST), now)


def disconnect(connection: Connection, now: datetime) -> str:
    """Take the tokens back at X, or say that this is left to do, and forget them here."""
    client = (settings.X_CLIENT_ID, settings.X_CLIENT_SECRET)
    left = ""
    try:
        kept = connections.secrets_of(connection)
        for kind in ("refresh_token", "token"):
            form = {"token": kept.get(kind, "")}
            _api().ask("POST", "/2/oauth2/revoke", now=now, data=form, auth=client)
    except Failure as failure:
        ids = {"connection": connection.key, "reason": failure.reason}
        logger.warning("not revoked at X", extra=ids)
        left = (
            "X did not confirm it: revoke SlothPost's access there too, at"
            f" {settings.X_URL}/settings/connected_apps."
        )
    connections.disconnect(connection)
    return left


# -- asking ----------------------------------------------------------------------------------------


def _api(token: str = "") -> Api:
    return Api(LABEL, settings.X_API_URL, {"Authorization": f"Bearer {token}"} if token else {})


def ask(account: Connection, method: str, path: str, now: datetime, **content: Any) -> Answer:
    """Call X for an account, with a new token if it takes the one at hand no more."""
    renewed = partial(_renewed, now=now)
    token = connections.fresh_secrets(account, renewed, now)["token"]
    try:
        return _api(token).ask(method, path, now=now, **content)
    except NeedsReconnect:
        logger.info("a token was refused early", extra={"connection": account.key})
    token = connections.fresh_secrets(account, renewed, now, even_if_valid=True)["token"]
    try:
        return _api(token).ask(method, path, now=now, **content)
    except NeedsReconnect as failure:
        connections.mark_broken(account, LOST, now)
        raise NeedsReconnect(LOST) from failure


@contextmanager
def understood(now: datetime) -> Iterator[None]:
    """What X refuses in its own terms; what nobody can read is no answer: TryLater."""
    try:
        yield
    except Failure as failure:
        raise _in_its_terms(failure, now) from failure.__cause__
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"service": LABEL, "what": str(error)})
        raise TryLater("X answered with something that is no answer.") from error


def _in_its_terms(failure: Failure, now: datetime) -> Failure:
    """https://docs.x.com/x-api/fundamentals/response-codes-and-errors"""
    answer = failure.answer
    if answer is None or isinstance(failure, Unknown | NeedsReconnect):
        return failure
    problem = str(_body(failure).get("type", "")).rpartition("/")[2]
    known: Failure = failure
    if answer.status == 402 or problem == "usage-capped":
        logger.error("X wants to be paid first", extra={"service": LABEL})
        known = TryLater(NO_CREDIT, timedelta(hours=1))
    elif answer.status == 429:
        known = TryLater("X asks us to wait.", _wait(answer.headers, now))
    elif problem == "client-forbidden":
        logger.error("the app may not do this", extra={"service": LABEL})
        known = TryLater(OPERATORS_FAULT, timedelta(hours=1))
    elif problem == "unsupported-authentication":
        known = NeedsReconnect("X says that this authorisation is not enough: connect it again.")
    elif isinstance(failure, Refused) and (words := words_of(failure)):
        known = Refused(f"X refused: “{words}”")
    known.answer = answer
    return known


def _body(failure: Failure) -> dict[str, Any]:
    body = failure.answer.body if failure.answer else None
    return body if isinstance(body, dict) else {}


def words_of(failure: Failure) -> str:
    """X's own sentence about what it refuses, or ""."""
    try:
        body = Fields(_body(failure), "")
        first = next(iter(body.each("errors")), Fields({}, ""))
        words = body.text("detail", "") or first.text("message", "")
    except BadPayload:
        return ""
    return trimmed(" ".join(words.split()), 200)


def _wait(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Until the last of the allowances that are used up is there again.

    https://docs.x.com/x-api/fundamentals/rate-limits
    """
    waits = [wait_of(headers, now)]
    for kind in ("x-rate-limit", "x-user-limit-24hour", "x-app-limit-24hour"):
        if headers.get(f"{kind}-remaining") == "0":
            # The words for it differ by a dash from those that everybody else uses.
            reset = headers.get(f"{kind}-reset", "")
            usual = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
            waits.append(wait_of(usual, now))
    return max((wait for wait in waits if wait is not None), default=None)
