"""LinkedIn: 3,000 characters of the text as it is read, posted by a member.

LinkedIn does not say what a character is; here it is a Unicode code point. Companies' pages take a
scope that LinkedIn gives to reviewed apps only, and are not offered.
https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any
from urllib.parse import unquote, urlencode

from django.conf import settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Finish, Start
from integrations.api import Api, wait_of
from integrations.connections import Account, Grant
from integrations.errors import Answer, Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets.base import Approved, Outlet, Published
from integrations.outlets.linkedin_text import commentary, pieces
from integrations.sources.base import BadPayload, Fields, trimmed
from integrations.tables import Connection

logger = logging.getLogger(__name__)

NAME, LABEL, PATH = "linkedin", "LinkedIn", "linkedin"
SCOPES = "openid profile w_member_social"
RENEWED_BEFORE = timedelta(days=7)
LAPSED = (
    "LinkedIn's authorisation has ended, as it does after 60 days at the latest: connect it again."
)
OPERATORS_FAULT = (
    "LinkedIn does not accept what SlothPost identifies itself by: whoever runs this SlothPost has"
    " to mend that."
)
OLD_VERSION = (
    "LinkedIn has ended the version of its API that this SlothPost uses: whoever runs it has to"
    " set a newer one."
)
_POST = re.compile(r"urn:li:(?:share|ugcPost|activity):[0-9]{1,30}")
_DUPLICATE = re.compile(r"duplicate of (urn:li:[A-Za-z]+:[\w-]+)")
MAY_BE_OUT = "LinkedIn did not say what became of it: it may have taken the post."


def is_configured() -> bool:
    return bool(settings.LINKEDIN_CLIENT_ID and settings.LINKEDIN_CLIENT_SECRET)


# -- connecting ------------------------------------------------------------------------------------
# https://learn.microsoft.com/en-us/linkedin/shared/authentication/authorization-code-flow


def start(state: str, callback_url: str, answer: Mapping[str, str], now: datetime) -> Start:
    query = {
        "response_type": "code",
        "client_id": settings.LINKEDIN_CLIENT_ID,
        "redirect_uri": callback_url,
        "state": state,
        "scope": SCOPES,
    }
    return Start(f"{settings.LINKEDIN_URL}/oauth/v2/authorization?{urlencode(query)}")


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the member that a code stands for. Raises Cancelled, ExpiredLink or a Failure."""
    if answer.get("error", "").startswith("user_cancelled"):  # signing in, or allowing it
        raise Cancelled("You did not allow it at LinkedIn: nothing was connected.")
    if answer.get("error") == "unauthorized_scope_error":
        logger.error("the app may not ask for this", extra={"service": LABEL})
        raise Refused(OPERATORS_FAULT)
    if "error" in answer or not answer.get("code"):
        raise ExpiredLink("LinkedIn did not complete it: please start again.")
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "redirect_uri": kept.get("callback_url", ""),
    }
    late = ExpiredLink("LinkedIn's answer was too old, or used before: please start again.")
    with _understood(now):
        grant = _granted(form, late, now)
        account = _who(_api(grant.secrets["token"]).ask("GET", "/v2/userinfo", now=now))
    return Finish(connections.connect(user_id, NAME, account, grant, now=now))


def _granted(form: Mapping[str, str], refused: Exception, now: datetime) -> Grant:
    """The token for a code, or for a refresh token, which few apps get. Raises `refused` where
    LinkedIn takes that no more, and a Failure for whatever says nothing of it."""
    client = {
        "client_id": settings.LINKEDIN_CLIENT_ID,
        "client_secret": settings.LINKEDIN_CLIENT_SECRET,
    }
    web = Api(LABEL, settings.LINKEDIN_URL)
    try:
        answer = web.ask("POST", "/oauth/v2/accessToken", now=now, data={**client, **form})
    except (Refused, NeedsReconnect) as failure:
        if failure.answer is None:  # it never came to an answer
            raise
        if failure.said("error") in ("invalid_request", "invalid_grant", "invalid_redirect_uri"):
            raise refused from failure
        logger.error("no token was handed out", extra={"service": LABEL})
        raise TryLater(OPERATORS_FAULT) from failure
    found = Fields(answer.body, "")
    tokens = {"token": found.text("access_token"), "refresh_token": found.text("refresh_token", "")}
    expires_at = now + timedelta(seconds=min(found.number("expires_in"), 10**9))
    # Without a way to renew it nothing can be done but tell its owner when it lapses.
    refresh_at = (
        max(expires_at - RENEWED_BEFORE, now + timedelta(days=1))
        if tokens["refresh_token"]
        else expires_at
    )
    scopes = tuple(re.findall(r"[^ ,]+", found.text("scope", "")))
    return Grant(tokens, expires_at=expires_at, refresh_at=refresh_at, scopes=scopes)


def _who(answer: Answer) -> Account:
    """Whose token it is:
    https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2"""
    found = Fields(answer.body, "")
    number = found.identifier("sub")
    return Account(number, trimmed(found.text("name", ""), 100) or number)


def check(connection: Connection, now: datetime) -> None:
    with connections.noted(connection, now), _understood(now):
        _who(_ask(connection, "GET", "/v2/userinfo", now))
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    connections.fresh_secrets(connection, partial(_renewed, now=now), now, even_if_valid=True)


def _renewed(kept: dict[str, str], now: datetime) -> Grant:
    """https://learn.microsoft.com/en-us/linkedin/shared/authentication/programmatic-refresh-tokens"""
    if not kept.get("refresh_token"):
        raise NeedsReconnect(LAPSED)
    form = {"grant_type": "refresh_token", "refresh_token": kept["refresh_token"]}
    with _understood(now):
        return _granted(form, NeedsReconnect(LAPSED), now)


def disconnect(connection: Connection, now: datetime) -> str:
    """LinkedIn takes no token back from an app: only its member can."""
    connections.disconnect(connection)
    return (
        "LinkedIn forgets SlothPost only if you remove it there too, at"
        f" {settings.LINKEDIN_URL}/psettings/permitted-services."
    )


# -- asking ----------------------------------------------------------------------------------------


def _api(token: str) -> Api:
    return Api(
        LABEL,
        settings.LINKEDIN_API_URL,
        {
            "Authorization": f"Bearer {token}",
            "LinkedIn-Version": settings.LINKEDIN_VERSION,
            "X-Restli-Protocol-Version": "2.0.0",
        },
    )


def _ask(account: Connection, method: str, path: str, now: datetime, **content: Any) -> Answer:
    """Call LinkedIn for a member, with a new token if it takes the one at hand no more and there
    is a way to get one."""
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
        connections.mark_broken(account, LAPSED, now)
        raise NeedsReconnect(LAPSED) from failure


@contextmanager
def _understood(now: datetime) -> Iterator[None]:
    """What LinkedIn refuses in its own terms; what nobody can read is no answer: TryLater."""
    try:
        yield
    except Failure as failure:
        raise _in_its_terms(failure, now) from failure.__cause__
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"service": LABEL, "what": str(error)})
        raise TryLater("LinkedIn answered with something that is no answer.") from error


def _in_its_terms(failure: Failure, now: datetime) -> Failure:
    """https://learn.microsoft.com/en-us/linkedin/shared/api-guide/concepts/error-handling"""
    answer = failure.answer
    if answer is None or isinstance(failure, Unknown | NeedsReconnect):
        return failure
    known: Failure = failure
    if answer.status == 426:
        logger.error(
            "the version has ended: set LINKEDIN_VERSION",
            extra={"version": settings.LINKEDIN_VERSION},
        )
        known = TryLater(OLD_VERSION, timedelta(hours=1))
    elif answer.status == 429:
        wait = wait_of(answer.headers, now) or _until_midnight(now)
        known = TryLater("LinkedIn takes no more from this account today.", wait)
    elif answer.status == 403 and "permission" in _words(failure).lower():
        known = NeedsReconnect(
            "LinkedIn says that this authorisation is not enough: connect it again."
        )
    elif isinstance(failure, Refused) and (words := _words(failure)):
        known = Refused(f"LinkedIn refused: “{words}”")
    known.answer = answer
    return known


def _words(failure: Failure) -> str:
    """LinkedIn's own sentence about what it refuses, or ""."""
    return trimmed(failure.said("message"), 200)


def _until_midnight(now: datetime) -> timedelta:
    """Allowances are by the day, in UTC:
    https://learn.microsoft.com/en-us/linkedin/shared/api-guide/concepts/rate-limits"""
    tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    return tomorrow - now


# -- publishing ------------------------------------------------------------------------------------


def publish(approved: Approved, now: datetime) -> Published:
    """Post it for everybody to see.

    LinkedIn knows no key for a call, but takes the same text once and names the post that has it,
    so that a repeat sends it again: that doubles nothing, and tells where it is.
    """
    account = approved.account
    if account is None:
        raise Refused("Connect a LinkedIn account first.")
    try:
        with _understood(now):
            answer = _sent(account, approved.text, now)
    except Refused as failure:
        return _where_it_is(failure, approved)
    urn = unquote(answer.headers.get("x-restli-id", ""))
    if not _POST.fullmatch(urn):
        raise Unknown(MAY_BE_OUT)
    return _published(urn)


def _sent(account: Connection, text: str, now: datetime) -> Answer:
    post = {
        "author": f"urn:li:person:{account.account_id}",
        "commentary": commentary(text),
        "visibility": "PUBLIC",
        "distribution": {
            "feedDistribution": "MAIN_FEED",
            "targetEntities": [],
            "thirdPartyDistributionChannels": [],
        },
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": False,
    }
    try:
        return _ask(account, "POST", "/rest/posts", now, creates=True, json=post)
    except Refused as failure:
        if _status(failure) != 403:
            raise
    # It forbids at random what it allows the next moment.
    return _ask(account, "POST", "/rest/posts", now, creates=True, json=post)


def _status(failure: Failure) -> int:
    return failure.answer.status if failure.answer else 0


def _where_it_is(failure: Refused, approved: Approved) -> Published:
    """The post that a repeat would have doubled. Raises a Failure for any other refusal."""
    named = _duplicate_of(failure)
    if named is None:
        # Of an earlier attempt only what is wrong with the post itself says something.
        if _status(failure) == 409 or (approved.is_repeat and _status(failure) not in (400, 422)):
            raise Unknown(f"{MAY_BE_OUT} {failure.reason}") from failure
        raise Refused(f"{failure.reason} Change the text, or post it by hand.") from failure
    if not approved.is_repeat:
        where = f" ({_published(named).permalink})" if named else ""
        raise Refused(
            f"LinkedIn has this very text of yours already{where}, and takes none twice: it was"
            " posted before, maybe by hand. Change the text, or mark this post as published."
        ) from failure
    if not named:
        raise Unknown("LinkedIn has this text already, and does not say where.") from failure
    return _published(named)


def _duplicate_of(failure: Refused) -> str | None:
    """The post that has the same text, "" where LinkedIn does not name it, None where none has."""
    body = json.dumps(failure.answer.body if failure.answer else None)
    named = _DUPLICATE.search(body)
    if named:
        return named[1] if _POST.fullmatch(named[1]) else ""
    return "" if "DUPLICATE_POST" in body else None


def _published(urn: str) -> Published:
    return Published(urn, f"{settings.LINKEDIN_URL}/feed/update/{urn}/")


OUTLET = Outlet(
    name=NAME,
    label=LABEL,
    unit="characters",
    limit=3000,
    count=len,
    publish=publish,
    can_find_out=True,
    needs_account=True,
    pieces=pieces,
    per_minute=10,
)
