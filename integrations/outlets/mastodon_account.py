"""An account at any Mastodon instance: SlothPost registers itself there, once for each instance.

https://docs.joinmastodon.org/client/authorized/
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Finish, Start, pkce
from integrations.addresses import api_at, host_of
from integrations.api import LONGEST_WAIT, Api, wait_of
from integrations.connections import Account, Grant
from integrations.errors import Answer, Failure, NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources.base import UNPRINTABLE, BadPayload, Fields, trimmed
from integrations.tables import Connection, Instance
from slothpost_site import crypto
from slothpost_site.dynamo import Conflict, change, get, put_new, unchanged
from slothpost_site.moments import to_ms

logger = logging.getLogger(__name__)

NAME, LABEL, PATH = "mastodon", "Mastodon", "mastodon"
WHO_SCOPES = ("profile", "read:accounts")  # what says who somebody is: since 4.3, and before
POST_SCOPES = ("read:statuses", "write:statuses")
LIMIT = 500  # an instance's, where it says nothing else
CHECKED_AFTER = timedelta(days=7)  # tokens do not lapse; limits change, and accounts go
WAIT = timedelta(minutes=5)  # where an instance does not say how long


def is_configured() -> bool:
    """There is nothing to set up: SlothPost registers itself."""
    return True


# -- registering -----------------------------------------------------------------------------------


def _client(host: str, callback_url: str, now: datetime) -> dict[str, str]:
    """What SlothPost is at an instance: `client_id`, `client_secret` and the `scopes` that it may
    ask for. Registered anew where that is unknown, unreadable or for another address."""
    known = get(Instance, host)
    if client := _opened(known, callback_url):
        return client
    client = _registered(host, callback_url, now)
    if not _kept(host, client, known, callback_url, now):
        # Somebody else registered it meanwhile: a code is good for whoever asked for it alone.
        return _opened(get(Instance, host), callback_url) or client
    return client


def _opened(known: Instance | None, callback_url: str) -> dict[str, str] | None:
    if known is None or known.callback_url != callback_url:
        return None
    try:
        return crypto.unseal(str(known.secrets), known.host)
    except crypto.Unreadable:
        logger.info("no key opens a registration", extra={"host": known.host})
        return None


def _kept(
    host: str, client: dict[str, str], known: Instance | None, callback_url: str, now: datetime
) -> bool:
    """Keep a registration in place of the one that was known; False if that changed meanwhile."""
    values: dict[str, Any] = {
        "secrets": crypto.seal(client, host),
        "callback_url": callback_url,
        "registered_at": to_ms(now),
    }
    if known is None:
        return put_new(Instance(host, **values))
    try:
        change(known, unchanged(Instance.secrets, known.secrets), **values)
    except Conflict:
        return False
    return True


def _registered(host: str, callback_url: str, now: datetime) -> dict[str, str]:
    """https://docs.joinmastodon.org/methods/apps/#create"""
    scopes = " ".join((_who_scope(host, now), *POST_SCOPES))
    form = {
        "client_name": "SlothPost",
        "redirect_uris": callback_url,
        "scopes": scopes,
        "website": settings.SITE_URL,
    }
    try:
        answer = api_of(host).ask("POST", "/api/v1/apps", now=now, data=form)
    except Refused as failure:
        if failure.answer is None or isinstance(failure, NotFound):
            raise Refused(f"{host} is no Mastodon instance: is it written as it should be?") from (
                failure
            )
        raise
    found = Fields(answer.body, "")
    client = {name: found.token(name) for name in ("client_id", "client_secret")}
    return {**client, "scopes": scopes}


def _who_scope(host: str, now: datetime) -> str:
    """https://docs.joinmastodon.org/methods/oauth/#authorization-server-metadata"""
    path = "/.well-known/oauth-authorization-server"
    try:
        body = api_of(host).ask("GET", path, now=now).body
    except (Refused, NeedsReconnect):  # it is older than that
        return WHO_SCOPES[1]
    offered = body.get("scopes_supported") if isinstance(body, dict) else None
    return (
        WHO_SCOPES[0] if isinstance(offered, list) and WHO_SCOPES[0] in offered else WHO_SCOPES[1]
    )


def _forget(host: str, client: Mapping[str, str]) -> None:
    """The instance knows this registration no more (older ones clear out what is little used)."""
    known = get(Instance, host)
    try:
        if known is not None and crypto.unseal(str(known.secrets), host) == client:
            change(known, unchanged(Instance.secrets, known.secrets), callback_url=None)
    except (crypto.Unreadable, Conflict):  # it is another one by now
        return


# -- connecting ------------------------------------------------------------------------------------


def start(state: str, callback_url: str, answer: Mapping[str, str], now: datetime) -> Start:
    host = host_of(answer.get("instance", ""))
    with understood(host, now):
        client = _client(host, callback_url, now)
    verifier, said = pkce()
    query = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": callback_url,
        "scope": client["scopes"],
        "state": state,
        **said,  # older ones pay no heed to it
    }
    address = f"{api_of(host).base}/oauth/authorize?{urlencode(query)}"
    return Start(address, {"verifier": verifier, "instance": host})


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the account that a code stands for. Raises Cancelled, ExpiredLink or a Failure."""
    host = kept.get("instance", "")
    if answer.get("error") == "access_denied":
        raise Cancelled(f"You did not allow it at {host}: nothing was connected.")
    if "error" in answer or not answer.get("code") or not host:
        logger.warning("consent failed", extra={"service": LABEL, "host": host})
        raise ExpiredLink("Mastodon did not complete it: please start again.")
    with understood(host, now):
        grant = _granted(host, answer["code"], kept, now)
        account = _account(host, grant.secrets["token"], now)
    return Finish(connections.connect(user_id, NAME, account, grant, now=now))


def _granted(host: str, code: str, kept: Mapping[str, str], now: datetime) -> Grant:
    """https://docs.joinmastodon.org/methods/oauth/#token: the token never lapses."""
    callback_url = kept.get("callback_url", "")
    client = _client(host, callback_url, now)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        "redirect_uri": callback_url,
        "code_verifier": kept.get("verifier", ""),
    }
    try:
        answer = api_of(host).ask("POST", "/oauth/token", now=now, data=form)
    except (Refused, NeedsReconnect) as failure:
        if failure.answer is None:  # it never came to an answer
            raise
        if failure.said("error") == "invalid_client":
            _forget(host, client)
        late = f"{host}'s answer was too old, or used before: please start again."
        raise ExpiredLink(late) from failure
    found = Fields(answer.body, "")
    return Grant(
        {
            "token": found.token("access_token"),
            "client_id": client["client_id"],
            "client_secret": client["client_secret"],
        },
        refresh_at=now + CHECKED_AFTER,
        scopes=tuple(found.text("scope", client["scopes"]).split()),
    )


def _account(host: str, token: str, now: datetime) -> Account:
    """Whose token it is, and what the instance takes."""
    path = "/api/v1/accounts/verify_credentials"
    me = Fields(api_of(host, token).ask("GET", path, now=now).body, "")
    number, username = me.identifier("id"), me.identifier("username")
    return Account(
        f"{number}@{host}",
        f"@{username}@{host}",
        details={"host": host, "id": number, "username": username, **_limits(host, now)},
    )


def _limits(host: str, now: datetime) -> dict[str, int]:
    """How much the instance takes: https://docs.joinmastodon.org/entities/Instance/, and before 4.0
    https://docs.joinmastodon.org/entities/V1_Instance/. Where it does not say, the usual."""
    for path in ("/api/v2/instance", "/api/v1/instance"):
        try:
            body = Fields(api_of(host).ask("GET", path, now=now).body, "")
            statuses = body.maybe("configuration").maybe("statuses")
            if statuses.has("max_characters"):
                return {"limit": statuses.number("max_characters")}
        except (Refused, NeedsReconnect, BadPayload):
            continue
    return {}


def limit_of(connection: Connection) -> int:
    return int((connection.details or {}).get("limit", LIMIT))


def check(connection: Connection, now: datetime) -> None:
    """Read the account, and what its instance takes."""
    host = host_at(connection)
    with connections.noted(connection, now), understood(host, now):
        account = _account(host, connections.secrets_of(connection)["token"], now)
    connections.mark_working(connection, now)
    connections.keep_details(connection, account.details)


def renew(connection: Connection, now: datetime) -> None:
    """Nothing of it lapses: it is read again, and then left alone for a while."""
    check(connection, now)

    def same(kept: dict[str, str]) -> Grant:
        return Grant(kept, refresh_at=now + CHECKED_AFTER)

    connections.fresh_secrets(connection, same, now, even_if_valid=True)


def disconnect(connection: Connection, now: datetime) -> str:
    """https://docs.joinmastodon.org/methods/oauth/#revoke"""
    host, left = host_at(connection), ""
    try:
        kept = connections.secrets_of(connection)
        form = {name: kept.get(name, "") for name in ("client_id", "client_secret", "token")}
        api_of(host).ask("POST", "/oauth/revoke", now=now, data=form)
    except Failure as failure:
        ids = {"connection": connection.key, "reason": failure.reason}
        logger.warning("not revoked at Mastodon", extra=ids)
        left = (
            f"{host} did not confirm it: revoke SlothPost's access there too, in Preferences,"
            " Account, Authorized apps."
        )
    connections.disconnect(connection)
    return left


# -- asking ----------------------------------------------------------------------------------------


def host_at(connection: Connection) -> str:
    return str((connection.details or {}).get("host", ""))


def api_of(host: str, token: str = "") -> Api:
    return api_at(host, host, {"Authorization": f"Bearer {token}"} if token else {})


def ask(account: Connection, method: str, path: str, now: datetime, **content: Any) -> Answer:
    """Call an account's instance. Raises a Failure in its terms."""
    host, token = host_at(account), connections.secrets_of(account)["token"]
    try:
        with understood(host, now):
            return api_of(host, token).ask(method, path, now=now, **content)
    except NeedsReconnect as failure:
        connections.mark_broken(account, failure.reason, now)
        raise


@contextmanager
def understood(host: str, now: datetime) -> Iterator[None]:
    """What an instance refuses in its own terms; what nobody can read is no answer: TryLater."""
    try:
        yield
    except Failure as failure:
        raise _in_its_terms(failure, host, now) from failure.__cause__
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"host": host, "what": str(error)})
        raise TryLater(f"{host} answered with something that is no answer.") from error


def _in_its_terms(failure: Failure, host: str, now: datetime) -> Failure:
    answer = failure.answer
    if answer is None or answer.status >= 500:
        return failure
    words = _words(failure)
    known: Failure = failure
    if answer.status == 429:
        known = TryLater(f"{host} takes no more from this account for now.", _wait(answer, now))
    elif answer.status == 401:
        known = NeedsReconnect(
            f"{host} no longer accepts this account's authorisation: connect it again."
        )
    elif answer.status == 403 and words:
        known = NeedsReconnect(f"{host} says “{words}”: settle that there, and connect it again.")
    elif isinstance(failure, Refused) and not isinstance(failure, NotFound) and words:
        known = Refused(f"{host} refused: “{words}”")
    known.answer = answer
    return known


def _words(failure: Failure) -> str:
    """The instance's own sentence about what it refuses, or ""."""
    said = failure.said("error_description") or failure.said("error")
    return trimmed(UNPRINTABLE.sub("", said), 200)


def _wait(answer: Answer, now: datetime) -> timedelta:
    """https://docs.joinmastodon.org/api/rate-limits/: the reset is a moment in ISO 8601."""
    try:
        reset = datetime.fromisoformat(answer.headers.get("X-RateLimit-Reset", ""))
        left = reset.replace(tzinfo=reset.tzinfo or UTC) - now
    except ValueError:
        return wait_of(answer.headers, now) or WAIT
    return min(max(left, timedelta(seconds=1)), LONGEST_WAIT)
