"""An account at Threads: its tokens of sixty days, and calls in its name.

https://developers.facebook.com/docs/threads/get-started
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
from integrations.accounts import Cancelled, ExpiredLink, Finish, Start
from integrations.api import Api, wait_of
from integrations.connections import Account, Grant
from integrations.errors import Answer, Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.sources.base import BadPayload, Fields, trimmed
from integrations.tables import Connection

logger = logging.getLogger(__name__)

NAME, LABEL, PATH = "threads", "Threads", "threads"
SCOPES = ("threads_basic", "threads_content_publish", "threads_manage_insights")
RENEWED_AFTER = timedelta(days=7)  # a token lapses sixty days after it was renewed last
LOST = "Threads no longer accepts this account's authorisation: connect it again."
NOT_ENOUGH = "Threads says that this authorisation is not enough: connect it again."
OPERATORS_FAULT = (
    "Threads does not accept what SlothPost identifies itself by: whoever runs this SlothPost has"
    " to mend that."
)
TOKEN_IS_DEAD, LACKS_PERMISSION = {102, 190}, {10, 200}
LIMITED, HICCUPS = {4, 17, 32, 613}, {1, 2}
NOT_THERE = 24  # what is asked for, also because it is not ready, or whoever asks is gone


def is_configured() -> bool:
    return bool(settings.THREADS_CLIENT_ID and settings.THREADS_CLIENT_SECRET)


# -- connecting ------------------------------------------------------------------------------------
# https://developers.facebook.com/docs/threads/get-started/get-access-tokens-and-permissions


def start(state: str, callback_url: str, answer: Mapping[str, str], now: datetime) -> Start:
    query = {
        "client_id": settings.THREADS_CLIENT_ID,
        "redirect_uri": callback_url,
        "scope": ",".join(SCOPES),
        "response_type": "code",
        "state": state,
    }
    return Start(f"{settings.THREADS_URL}/oauth/authorize?{urlencode(query)}")


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the account that a code stands for. Raises Cancelled, ExpiredLink or a Failure."""
    if answer.get("error") == "access_denied":
        raise Cancelled("You did not allow it at Threads: nothing was connected.")
    if "error" in answer or not answer.get("code"):
        logger.warning("consent failed", extra={"service": LABEL})
        raise ExpiredLink("Threads did not complete it: please start again.")
    code = answer["code"].removesuffix("#_")  # which Threads appends
    with understood(now):
        grant = _lasting(_short_token(code, kept.get("callback_url", ""), now), now)
        who = _api(grant.secrets["token"]).ask("GET", "/v1.0/me", now=now, params=WHO)
        account = _account(who)
    return Finish(connections.connect(user_id, NAME, account, grant, now=now))


def _short_token(code: str, callback_url: str, now: datetime) -> str:
    """What a code is worth, once and within an hour: a token of an hour."""
    form = {
        "client_id": settings.THREADS_CLIENT_ID,
        "client_secret": settings.THREADS_CLIENT_SECRET,
        "grant_type": "authorization_code",
        "redirect_uri": callback_url,
        "code": code,
    }
    try:
        answer = _api().ask("POST", "/oauth/access_token", now=now, data=form)
    except (Refused, NeedsReconnect) as failure:
        if failure.answer is None:  # it never came to an answer
            raise
        if "client" in words_of(failure).lower():
            raise _our_own() from failure
        late = "Threads' answer was too old, or used before: please start again."
        raise ExpiredLink(late) from failure
    return Fields(answer.body, "").text("access_token")


def _lasting(token: str, now: datetime) -> Grant:
    """The token of sixty days for one of an hour:
    https://developers.facebook.com/docs/threads/get-started/long-lived-tokens"""
    query = {
        "grant_type": "th_exchange_token",
        "client_secret": settings.THREADS_CLIENT_SECRET,
        "access_token": token,
    }
    try:
        return _grant(_asked_for_token("/access_token", query, now), now)
    except (Refused, NeedsReconnect) as failure:
        raise _our_own() from failure


def _our_own() -> TryLater:
    """Threads refuses us, whoever's account it is about."""
    logger.error("no token was handed out", extra={"service": LABEL})
    return TryLater(OPERATORS_FAULT)


def _asked_for_token(path: str, query: Mapping[str, str], now: datetime) -> Answer:
    """Threads wants its secrets in the address: no error that quotes that may be seen."""
    try:
        return _api().ask("GET", path, now=now, params=query)
    except Failure as failure:
        seen = failure
    raise seen from None


def _grant(answer: Answer, now: datetime) -> Grant:
    found = Fields(answer.body, "")
    life = timedelta(seconds=min(found.number("expires_in"), 10**9))
    return Grant(
        {"token": found.text("access_token")},
        expires_at=now + life,
        refresh_at=now + RENEWED_AFTER,
        scopes=SCOPES,
    )


WHO = {"fields": "id,username"}


def _account(answer: Answer) -> Account:
    """Whose token it is: https://developers.facebook.com/docs/threads/threads-profiles"""
    found = Fields(answer.body, "")
    return Account(found.identifier("id"), f"@{found.identifier('username')}")


def check(connection: Connection, now: datetime) -> None:
    with connections.noted(connection, now), understood(now):
        try:
            _account(ask(connection, "GET", "/v1.0/me", now, params=WHO))
        except Refused as failure:
            if code_of(failure) == NOT_THERE:
                raise NeedsReconnect(LOST) from failure
            raise
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    connections.fresh_secrets(connection, partial(_renewed, now=now), now, even_if_valid=True)


def _renewed(kept: dict[str, str], now: datetime) -> Grant:
    """Sixty more days for a token that has not lapsed, and is a day old."""
    query = {"grant_type": "th_refresh_token", "access_token": kept.get("token", "")}
    with understood(now):
        try:
            return _grant(_asked_for_token("/refresh_access_token", query, now), now)
        except Refused as failure:
            if failure.answer is None or code_of(failure) in TOKEN_IS_DEAD:
                raise
            reason = f"Threads did not renew its authorisation: “{words_of(failure)}”"
            raise TryLater(reason, timedelta(days=1)) from None


def disconnect(connection: Connection, now: datetime) -> str:
    """Threads takes no token back from an app: only its owner can."""
    connections.disconnect(connection)
    return (
        "Threads forgets SlothPost only if you remove it there too: Settings, Account, Website"
        " permissions."
    )


# -- asking ----------------------------------------------------------------------------------------


def _api(token: str = "") -> Api:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Api(LABEL, settings.THREADS_API_URL, headers)


def ask(account: Connection, method: str, path: str, now: datetime, **content: Any) -> Answer:
    """Call Threads for an account, with a new token if it takes the one at hand no more. Raises a
    Failure in Threads' terms; that of an account that is lost is noted."""
    renewed = partial(_renewed, now=now)
    token = connections.fresh_secrets(account, renewed, now)["token"]
    try:
        return _asked(token, method, path, now, **content)
    except NeedsReconnect as failure:
        if failure.reason == NOT_ENOUGH:  # a new token allows no more, and the old one the rest
            raise
        logger.info("a token was refused early", extra={"connection": account.key})
    token = connections.fresh_secrets(account, renewed, now, even_if_valid=True)["token"]
    try:
        return _asked(token, method, path, now, **content)
    except NeedsReconnect as failure:
        raise lost(account, now) from failure


def lost(account: Connection, now: datetime) -> NeedsReconnect:
    """The failure of an account that is not there any more, which is noted: so Threads answers for
    some tokens that have lapsed."""
    connections.mark_broken(account, LOST, now)
    return NeedsReconnect(LOST)


def _asked(token: str, method: str, path: str, now: datetime, **content: Any) -> Answer:
    with understood(now, creates=bool(content.get("creates"))):
        return _api(token).ask(method, path, now=now, **content)


@contextmanager
def understood(now: datetime, *, creates: bool = False) -> Iterator[None]:
    """What Threads refuses in its own terms; what nobody can read is no answer: TryLater."""
    try:
        yield
    except Failure as failure:
        raise _in_its_terms(failure, now, creates) from failure.__cause__
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"service": LABEL, "what": str(error)})
        raise TryLater("Threads answered with something that is no answer.") from error


def _in_its_terms(failure: Failure, now: datetime, creates: bool) -> Failure:
    """https://developers.facebook.com/docs/graph-api/guides/error-handling"""
    answer = failure.answer
    if answer is None or isinstance(failure, Unknown):
        return failure
    code = code_of(failure)
    known: Failure = failure
    if code in TOKEN_IS_DEAD or isinstance(failure, NeedsReconnect):
        known = failure if failure.reason == NOT_ENOUGH else NeedsReconnect(LOST)
    elif code in LACKS_PERMISSION:
        known = NeedsReconnect(NOT_ENOUGH)
    elif code in LIMITED or answer.status == 429:
        wait = wait_of(answer.headers, now) or timedelta(minutes=10)
        known = TryLater("Threads takes no more from this account for now.", wait)
    elif code in HICCUPS or _error_of(failure).get("is_transient") is True:
        known = _hiccup(creates)
    elif isinstance(failure, Refused) and (words := words_of(failure)):
        known = Refused(f"Threads refused: “{words}”")
    known.answer = answer
    return known


def _hiccup(creates: bool) -> Failure:
    reason = "Threads has a fault of its own"
    if creates:
        return Unknown(f"{reason}, and may have done it all the same.")
    return TryLater(f"{reason}.")


def _error_of(failure: Failure) -> dict[str, Any]:
    body = failure.answer.body if failure.answer else None
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def code_of(failure: Failure) -> int:
    """The number of Threads' own for what went wrong, or 0."""
    code = _error_of(failure).get("code")
    return code if type(code) is int else 0


def words_of(failure: Failure) -> str:
    """Threads' own sentence about what it refuses, or ""."""
    error = _error_of(failure)
    body = failure.answer.body if failure.answer else None
    beside = body.get("error_message") if isinstance(body, dict) else None  # where codes are taken
    for words in (error.get("error_user_msg"), error.get("message"), beside):
        if isinstance(words, str) and words.strip():
            return trimmed(" ".join(words.split()), 200)
    return ""
