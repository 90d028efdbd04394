"""An account at Vercel: one installation of our integration, for a person or for a team.

Each installation has a token of its own, which lives until it is removed; one account may have
several. https://vercel.com/docs/integrations/create-integration
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Finish, Start
from integrations.api import Api
from integrations.connections import Account, Grant
from integrations.errors import Answer, Failure, NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources.base import BadPayload, Choice, Fields, choices_of
from integrations.sources.vercel.webhook import LABEL, NAME, installation_key, secrets
from integrations.tables import Connection

logger = logging.getLogger(__name__)

PAGE = 100  # Vercel's own default is 20
MOST_PAGES = 50
REMOVED = "SlothPost was removed at Vercel: install it again to go on."
PAUSED = (
    "Vercel has paused this installation, because the person who installed it left the team. It"
    " is kept for 30 days: somebody else of the team can take it over at Vercel."
)
BLOCKED = "Vercel has blocked this account for a payment: settle that there to go on."


def is_configured() -> bool:
    return bool(settings.VERCEL_INTEGRATION_SLUG and settings.VERCEL_CLIENT_ID and secrets())


# -- connecting ------------------------------------------------------------------------------------


def start(state: str, callback_url: str, answer: Mapping[str, str], now: datetime) -> Start:
    """The way back is fixed in the Integration Console, so `callback_url` does not travel."""
    slug = settings.VERCEL_INTEGRATION_SLUG
    return Start(f"{settings.VERCEL_URL}/integrations/{slug}/new?{urlencode({'state': state})}")


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the installation that a code stands for, once it can be read with its token.

    The address names an installation too, which anybody can write there: the token's counts.
    """
    if "error" in answer or not answer.get("code"):
        raise Cancelled("You did not install it at Vercel: nothing was connected.")
    with understood():
        granted = _exchanged(answer["code"], kept.get("callback_url", ""), now)
        number = granted.identifier("installation_id")
        if answer.get("configurationId", number) != number:
            raise Refused("Vercel sent you back with somebody else's installation: start again.")
        token = granted.text("access_token")
        team, user = _id_in(granted, "team_id"), _id_in(granted, "user_id")
        api = _api(token)
        api.ask("GET", f"/v1/integrations/configuration/{number}", now=now, params=_of(team))
    account = Account(
        id=number,
        name=_name_of(api, team, user, now),
        external_key=installation_key(number),
        details={"teamId": team, "userId": user},
    )
    connection = connections.connect(user_id, NAME, account, Grant({"token": token}), now=now)
    return Finish(connection, next_url=_safe_next(answer.get("next", "")))


def _id_in(found: Fields, name: str) -> str:
    return found.identifier(name) if found.text(name, "") else ""


def _exchanged(code: str, callback_url: str, now: datetime) -> Fields:
    """What a code is worth, once and within half an hour."""
    form = {
        "client_id": settings.VERCEL_CLIENT_ID,
        "client_secret": next(iter(secrets()), ""),
        "code": code,
        "redirect_uri": callback_url,
    }
    try:
        answer = _api().ask("POST", "/v2/oauth/access_token", now=now, data=form)
    except (Refused, NeedsReconnect) as failure:
        if failure.answer is None:  # it never came to an answer
            raise
        if _code_of(failure) in ("invalid_client", "forbidden"):
            logger.error("no token was handed out", extra={"service": LABEL})
            raise TryLater(
                "Vercel does not accept what SlothPost identifies itself by: whoever runs this"
                " SlothPost has to mend that."
            ) from failure
        raise ExpiredLink("Vercel's answer was too old, or used before: start again.") from failure
    return Fields(answer.body, "")


def _name_of(api: Api, team: str, user: str, now: datetime) -> str:
    """What people call the account: only a label, so that a failure voids nothing."""
    path = f"/v2/teams/{team}" if team else "/v2/user"
    try:
        with understood():
            found = Fields(api.ask("GET", path, now=now, params=_of(team)).body, "")
            found = found.maybe("user") if found.has("user") else found
            name = found.line("name", "") or found.line("username", "") or found.line("slug", "")
    except Failure:
        name = ""
    return name or team or user


def _safe_next(url: str) -> str:
    """Where Vercel wants the browser to go on, if that is Vercel."""
    try:
        wanted, vercel = urlsplit(url), urlsplit(settings.VERCEL_URL)
    except ValueError:  # it is no address at all
        return ""
    same = (wanted.scheme, wanted.netloc) == (vercel.scheme, vercel.netloc)
    return url if same and "\\" not in url else ""


# -- asking ----------------------------------------------------------------------------------------


def _api(token: str = "") -> Api:
    return Api(
        LABEL, settings.VERCEL_API_URL, {"Authorization": f"Bearer {token}"} if token else {}
    )


def _of(team: str, **params: str | int) -> dict[str, str | int]:
    """Without its team's id Vercel would look at the person's own account, and say nothing."""
    return {**params, **({"teamId": team} if team else {})}


def ask(connection: Connection, path: str, now: datetime, **params: str | int) -> Answer:
    """Read something of an account; its health is noted. Raises a Failure."""
    team = (connection.details or {}).get("teamId", "")
    try:
        api = _api(connections.secrets_of(connection).get("token", ""))
        return api.ask("GET", path, now=now, params=_of(team, **params))
    except Failure as failure:
        known = _understood(failure)
        if isinstance(known, NeedsReconnect):
            connections.mark_broken(connection, known.reason, now)
        elif isinstance(known, TryLater):
            connections.mark_trouble(connection, known.reason, now)
        raise known from failure


def _understood(failure: Failure) -> Failure:
    """The failure in Vercel's own terms: https://vercel.com/docs/rest-api/reference/errors"""
    status = failure.answer.status if failure.answer else 0
    known: Failure = failure
    if isinstance(failure, NeedsReconnect) or _has_invalid_token(failure):
        known = NeedsReconnect("Vercel no longer accepts this installation: install it again.")
    elif _code_of(failure) == "integration_configuration_disabled":
        known = TryLater(PAUSED, timedelta(days=1))
    elif status == 402:
        known = TryLater(BLOCKED, timedelta(days=1))
    known.answer = failure.answer
    return known


def _error_of(failure: Failure) -> dict[str, Any]:
    body = failure.answer.body if failure.answer else None
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {"code": error}


def _code_of(failure: Failure) -> str:
    return str(_error_of(failure).get("code") or "")


def _has_invalid_token(failure: Failure) -> bool:
    return _error_of(failure).get("invalidToken") is True


@contextmanager
def understood() -> Iterator[None]:
    """What Vercel refuses in its own terms; what nobody can read is no answer: TryLater."""
    try:
        yield
    except Failure as failure:
        raise _understood(failure) from failure.__cause__
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"service": LABEL, "what": str(error)})
        raise TryLater(f"{LABEL} answered with something that is no answer.") from error


def each_page(
    connection: Connection, path: str, cursor: str, now: datetime, **params: str | int
) -> Iterator[Fields]:
    """The pages of a list, as far as they are taken; `cursor` is the parameter for the next."""
    while True:
        page = Fields(ask(connection, path, now, limit=PAGE, **params).body, "")
        yield page
        following = page.maybe("pagination")
        if not following.has("next"):
            return
        params[cursor] = following.number("next")


# -- using it --------------------------------------------------------------------------------------


def choices(user_id: str, now: datetime) -> list[Choice]:
    """Every project of every installation that works: a team may be paused, for up to a month."""
    return choices_of(connections.of_provider(user_id, NAME), partial(_choices_of, now=now))


def _choices_of(account: Connection, now: datetime) -> list[Choice]:
    with understood():
        pages = islice(each_page(account, "/v10/projects", "from", now), MOST_PAGES)
        found = [_choice(project, account) for page in pages for project in page.each("projects")]
    connections.mark_working(account, now)
    return found


def _choice(project: Fields, account: Connection) -> Choice:
    """What a project's commits say is private as far as Vercel tells."""
    return Choice(
        id=project.identifier("id"),
        name=project.line("name"),
        via=account.key,
        private=True,
        detail=account.account_name or "",
    )


def check(connection: Connection, now: datetime) -> None:
    """Whether the installation is there still, and not paused."""
    path = f"/v1/integrations/configuration/{connection.account_id}"
    try:
        answer = ask(connection, path, now)
    except Refused as failure:
        if failure.answer is None or failure.answer.status not in (403, 404, 410):
            raise
        connections.mark_broken(connection, REMOVED, now)
        raise NeedsReconnect(REMOVED) from failure
    with understood():
        if Fields(answer.body, "").has("disabledAt"):
            connections.mark_trouble(connection, PAUSED, now)
            raise TryLater(PAUSED, timedelta(days=1))
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    """Its token does not lapse."""
    check(connection, now)


def disconnect(connection: Connection, now: datetime) -> str:
    """Uninstall it at Vercel, or say that this is left to do, and forget it here."""
    is_gone = _uninstalled(connection, now)
    connections.disconnect(connection)
    if is_gone:
        return ""
    return (
        f"Vercel did not confirm it: remove SlothPost there too, at"
        f" {settings.VERCEL_URL}/dashboard/integrations."
    )


def _uninstalled(connection: Connection, now: datetime) -> bool:
    """Whether Vercel says that the installation is gone, by this or from before."""
    team = (connection.details or {}).get("teamId", "")
    path = f"/v1/integrations/configuration/{connection.account_id}"
    try:
        api = _api(connections.secrets_of(connection).get("token", ""))
        api.ask("DELETE", path, now=now, params=_of(team))
    except Failure as failure:
        # Its token goes with the installation. Without an answer it is only here that no token can
        # be read: nobody has asked Vercel.
        known = _understood(failure)
        if known.answer is not None and isinstance(known, NotFound | NeedsReconnect):
            return True
        logger.warning(
            "not uninstalled at Vercel",
            extra={"connection": connection.key, "reason": failure.reason},
        )
        return False
    return True
