"""A person's account at GitHub, and the app's installations that it shows.

The account holds the token that acts for the person, and proves what they may see; each
installation holds the app's own token, which reads. Both are connections.
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Finish, Start, pkce
from integrations.connections import Account, Grant
from integrations.errors import Failure, NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources.base import Choice, Fields, choices_of
from integrations.sources.github.calls import (
    OPERATORS_FAULT,
    app_token,
    each_page,
    items_of,
    rest,
    understood,
    web,
)
from integrations.sources.github.facts import LABEL, NAME, name_of
from integrations.sources.github.webhook import SUSPENDED, installation_key, user_key
from integrations.tables import Connection
from slothpost_site.dynamo import Conflict, change, unchanged

logger = logging.getLogger(__name__)

MOST_PAGES = 50  # of a hundred each; more is a list that never ends
RENEWED_BEFORE = timedelta(days=30)  # a refresh token lapses after six months
TOKEN_PATH = "/login/oauth/access_token"  # noqa: S105 -- a path


def is_configured() -> bool:
    return all(
        (
            settings.GITHUB_APP_ID,
            settings.GITHUB_APP_SLUG,
            settings.GITHUB_CLIENT_ID,
            settings.GITHUB_CLIENT_SECRET,
            settings.GITHUB_PRIVATE_KEY,
        )
    )


# -- connecting ------------------------------------------------------------------------------------


def start(state: str, callback_url: str, answer: Mapping[str, str], now: datetime) -> Start:
    verifier, said = pkce()
    query = {
        "client_id": settings.GITHUB_CLIENT_ID,
        "redirect_uri": callback_url,
        "state": state,
        **said,
    }
    address = f"{settings.GITHUB_URL}/login/oauth/authorize?{urlencode(query)}"
    return Start(address, {"verifier": verifier})


@understood()
def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect the account and every installation of the app that it shows.

    The browser comes back from signing in with a code, and from installing the app with an
    `installation_id`, which anybody can write into an address: it counts if GitHub lists it for
    the account. Raises Cancelled, ExpiredLink or a Failure.
    """
    if "error" in answer:
        raise _refusal(answer["error"])
    if "code" in answer:
        grant = _exchanged(answer["code"], kept, now)
        who = _read_account(grant.secrets["token"], now)
        installations = _installations(grant.secrets["token"], now)
        _must_show(installations, answer)
        account = connections.connect(user_id, NAME, who, grant, now=now)
    else:
        account = _returned(user_id, answer)
        with connections.noted(account, now):
            installations = _installations(user_token(account, now), now)
        _must_show(installations, answer)
    _connect_installations(account, installations, now)
    return _finished(account, installations, answer, kept)


def _refusal(error: str) -> Exception:
    """What an error that the browser comes back with means:
    https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-authorization-request-errors
    """
    if error == "access_denied":
        return Cancelled("You did not allow it at GitHub: nothing was connected.")
    if error in ("application_suspended", "redirect_uri_mismatch"):
        logger.error("the app is set up wrong", extra={"service": LABEL, "error": error})
        return Refused(OPERATORS_FAULT)
    return ExpiredLink("GitHub did not complete it: please start again.")


def _exchanged(code: str, kept: Mapping[str, str], now: datetime) -> Grant:
    """What a code is worth: https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app"""
    form = {
        "code": code,
        "redirect_uri": kept.get("callback_url", ""),
        "code_verifier": kept.get("verifier", ""),
    }
    found = _asked_for_token(form, now)
    if found.has("error"):
        error = found.text("error")
        if error == "bad_verification_code":
            raise ExpiredLink("GitHub's answer was too old, or used before: please start again.")
        raise _our_own(error)
    return _grant(found, now)


def _asked_for_token(form: Mapping[str, str], now: datetime) -> Fields:
    """GitHub's answer, which has status 200 even where it says no; other servers of it say 400."""
    client = {
        "client_id": settings.GITHUB_CLIENT_ID,
        "client_secret": settings.GITHUB_CLIENT_SECRET,
    }
    try:
        answer = web().ask("POST", TOKEN_PATH, now=now, data={**client, **form})
    except (Refused, NeedsReconnect) as failure:
        if failure.answer is None or not isinstance(failure.answer.body, dict):
            raise _our_own("refused") from failure
        answer = failure.answer
    found = Fields(answer.body, "")
    if answer.status >= 400 and not found.has("error"):
        raise _our_own(f"status {answer.status}")
    return found


def _our_own(error: str) -> TryLater:
    """GitHub refuses us, whoever's account it is about: that says nothing against the account."""
    logger.error("no token was handed out", extra={"service": LABEL, "error": name_of(error)})
    return TryLater(OPERATORS_FAULT)


def _grant(found: Fields, now: datetime) -> Grant:
    """Tokens that do not lapse come without a time and without a refresh token."""
    tokens = {"token": found.text("access_token"), "refresh_token": found.text("refresh_token", "")}
    refresh_at = None
    if found.has("refresh_token_expires_in"):
        lapses = now + timedelta(seconds=_seconds(found, "refresh_token_expires_in"))
        refresh_at = max(lapses - RENEWED_BEFORE, now + timedelta(days=1))
    expires_at = None
    if found.has("expires_in"):
        expires_at = now + timedelta(seconds=_seconds(found, "expires_in"))
    return Grant(tokens, expires_at=expires_at, refresh_at=refresh_at)


def _seconds(found: Fields, name: str) -> int:
    return min(found.number(name), 10**9)


def _read_account(token: str, now: datetime) -> Account:
    """Whose token it is: the real read that shows that it works."""
    found = Fields(rest(token).ask("GET", "/user", now=now).body, "user")
    number = found.number("id")
    return Account(str(number), name_of(found.text("login")), user_key(number))


def _returned(user_id: str, answer: Mapping[str, str]) -> Connection:
    """Whose browser comes back from installing the app, without a code: the account that was
    connected last."""
    found = [account for account in _accounts(user_id) if account.works]
    if not found or not {"installation_id", "setup_action"} & set(answer):
        raise ExpiredLink("GitHub sent you back without what we need: please start again.")
    return max(found, key=lambda account: int(account.connected_at))


def _must_show(installations: list[Fields], answer: Mapping[str, str]) -> None:
    """Raises Refused for an installation that is somebody else's."""
    named = answer.get("installation_id", "")
    if named and named not in {str(found.number("id")) for found in installations}:
        raise Refused("GitHub does not show that installation to your account.")


def _finished(
    account: Connection,
    installations: list[Fields],
    answer: Mapping[str, str],
    kept: Mapping[str, str],
) -> Finish:
    if answer.get("setup_action") == "request":
        return Finish(
            account, note="An owner of the organisation has to approve it at GitHub first."
        )
    if installations:
        return Finish(account)
    return Finish(
        account,
        next_url=install_url(kept.get("state", "")),
        note="Choose at GitHub which repositories SlothPost may read.",
    )


def install_url(state: str) -> str:
    """Where a person chooses what the app may read."""
    query = f"?{urlencode({'state': state})}" if state else ""
    return f"{settings.GITHUB_URL}/apps/{settings.GITHUB_APP_SLUG}/installations/new{query}"


# -- installations ---------------------------------------------------------------------------------


def _installations(token: str, now: datetime) -> list[Fields]:
    """The app's installations that a person can see."""
    pages = each_page(rest(token), "/user/installations", now)
    return [
        found for page in islice(pages, MOST_PAGES) for found in items_of(page, "installations")
    ]


def _connect_installations(
    account: Connection, installations: list[Fields], now: datetime
) -> list[Connection]:
    """A connection for each of them. Raises NeedsReconnect where the account was disconnected
    meanwhile: then nothing is left of it."""
    made = [
        _connect_installation(account, installation, now)
        for installation in installations
        if _is_connected(account)
    ]
    if not _is_connected(account):
        _let_go(account)
        raise NeedsReconnect("This account was disconnected.")
    return made


def _is_connected(account: Connection) -> bool:
    return connections.find(account.user_id, account.key) is not None


def _connect_installation(account: Connection, installation: Fields, now: datetime) -> Connection:
    """One that a person has and that works keeps its token."""
    key = installation_key(installation.number("id"))
    login = name_of(installation.maybe("account").text("login", ""))
    is_suspended = installation.has("suspended_at")
    found = connections.find(account.user_id, key)
    details = {"login": login, **_showing(found, account)}
    if found is not None and (found.works or is_suspended):
        _note(found, details)
    else:
        who = Account(key.removeprefix(f"{NAME}#"), login, key, details)
        # Its own token is still to be had: until then the one it has counts as lapsed.
        found = connections.connect(account.user_id, NAME, who, Grant({}, expires_at=now), now=now)
    if is_suspended:
        connections.mark_broken(found, SUSPENDED, now)
    return found


def _showing(installation: Connection | None, account: Connection) -> dict[str, Any]:
    """The person's accounts that show an installation, now also this one, and which of them is
    used: that which was, while it works."""
    known = accounts_of(installation) if installation is not None else []
    used = next((other for other in known[:1] if other.works), account)
    return {"account": used.key, "accounts": sorted({account.key, *(o.key for o in known)})}


def _note(installation: Connection, details: dict[str, Any]) -> None:
    if installation.details == details:
        return
    try:
        change(
            installation,
            unchanged(Connection.details, installation.details),
            details=details,
        )
    except Conflict:  # somebody else has noted it just now, or it is gone
        logger.info("not noted who shows it", extra={"connection": installation.key})


def _let_go(account: Connection) -> None:
    """Leave the installations that an account showed to another that shows them too, or forget
    them."""
    for installation in connections.of_provider(account.user_id, NAME):
        if account.key not in _keys_of(installation):
            continue
        others = [other for other in accounts_of(installation) if other.key != account.key]
        if not others:
            connections.disconnect(installation)
            continue
        used = next((other for other in others if other.works), others[0])
        keys = sorted(other.key for other in others)
        _note(installation, {**installation.details, "account": used.key, "accounts": keys})


def _is_installation(connection: Connection) -> bool:
    return connection.key.startswith(f"{NAME}#installation:")


def _accounts(user_id: str) -> list[Connection]:
    return [c for c in connections.of_provider(user_id, NAME) if not _is_installation(c)]


def accounts_of(installation: Connection) -> list[Connection]:
    """The person's accounts that show an installation, the one that is used first."""
    found = (connections.find(installation.user_id, key) for key in _keys_of(installation))
    return [account for account in found if account is not None]


def _keys_of(installation: Connection) -> list[str]:
    details = installation.details or {}
    used = details.get("account", "")
    return [key for key in (used, *(k for k in details.get("accounts", []) if k != used)) if key]


def _removed(installation: Connection) -> str:
    return (
        f"SlothPost was removed at GitHub from {installation.account_name}: install it again to"
        " go on."
    )


# -- tokens ----------------------------------------------------------------------------------------


def user_token(account: Connection, now: datetime) -> str:
    """A token that acts for a person. Raises a Failure."""
    return connections.fresh_secrets(account, partial(_renewed, now=now), now)["token"]


def renew(connection: Connection, now: datetime) -> None:
    """A refresh token that nobody uses lapses; an installation's token is made when needed."""
    if not _is_installation(connection):
        connections.fresh_secrets(connection, partial(_renewed, now=now), now, even_if_valid=True)


@understood()
def _renewed(kept: dict[str, str], now: datetime) -> Grant:
    """https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens"""
    if not kept.get("refresh_token"):
        raise NeedsReconnect("GitHub's authorisation has lapsed: connect it again to go on.")
    form = {"grant_type": "refresh_token", "refresh_token": kept["refresh_token"]}
    found = _asked_for_token(form, now)
    if not found.has("error"):
        return _grant(found, now)
    if found.text("error") in ("bad_refresh_token", "invalid_grant"):
        raise NeedsReconnect("GitHub no longer accepts this authorisation: connect it again.")
    raise _our_own(found.text("error"))


def installation_token(installation: Connection, now: datetime, *, anew: bool = False) -> str:
    """A token that reads what an installation of the app covers; it lasts for an hour, unless
    GitHub takes it back: then ask `anew`.

    Raises NeedsReconnect, having marked the connection broken, or another Failure.
    """
    mint = partial(_minted, installation=installation, now=now)
    return connections.fresh_secrets(installation, mint, now, even_if_valid=anew)["token"]


@understood()
def _minted(kept: dict[str, str], installation: Connection, now: datetime) -> Grant:
    """https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app"""
    number = installation.account_id.removeprefix("installation:")
    path = f"/app/installations/{number}/access_tokens"
    try:
        answer = rest(app_token(now)).ask("POST", path, now=now)
    except NotFound as failure:
        raise NeedsReconnect(_removed(installation)) from failure
    except NeedsReconnect as failure:  # it is the app that GitHub does not know
        raise _our_own("the app's token was refused") from failure
    except Refused as failure:
        if is_suspension(failure):
            raise NeedsReconnect(SUSPENDED) from failure
        raise
    found = Fields(answer.body, "")
    return Grant({"token": found.text("token")}, expires_at=found.moment("expires_at"))


def is_suspension(failure: Failure) -> bool:
    """Whether GitHub refuses since the installation is suspended, which only its words tell."""
    body: Any = failure.answer.body if failure.answer else None
    message = Fields(body if isinstance(body, dict) else {}, "").text("message", "")
    return "suspended" in message.lower()


# -- using it --------------------------------------------------------------------------------------


def choices(user_id: str, now: datetime) -> list[Choice]:
    """Every repository that both the app and the person can see: the app may see more."""
    return choices_of(_accounts(user_id), partial(_choices_of, now=now))


@understood()
def _choices_of(account: Connection, now: datetime) -> list[Choice]:
    found = []
    with connections.noted(account, now):
        token = user_token(account, now)
        for installation in _connect_installations(account, _installations(token, now), now):
            if not installation.works:
                continue
            number = installation.account_id.removeprefix("installation:")
            pages = each_page(rest(token), f"/user/installations/{number}/repositories", now)
            found += [
                _choice(repository, installation)
                for page in islice(pages, MOST_PAGES)
                for repository in items_of(page, "repositories")
            ]
    connections.mark_working(account, now)
    return found


def _choice(repository: Fields, installation: Connection) -> Choice:
    return Choice(
        id=str(repository.number("id")),
        name=name_of(repository.text("full_name")),
        via=installation.key,
        private=repository.flag("private"),
    )


@understood()
def check(connection: Connection, now: datetime) -> None:
    if _is_installation(connection):
        _check_installation(connection, now)
    else:
        with connections.noted(connection, now):
            _read_account(user_token(connection, now), now)
    connections.mark_working(connection, now)


def _check_installation(installation: Connection, now: datetime) -> None:
    """Whether an account of the person's still lists it, and as one that works."""
    accounts = [account for account in accounts_of(installation) if account.works]
    if not accounts:
        raise Refused("Connect your GitHub account again: it is what shows this installation.")
    listed = [found for account in accounts for found in _listed(account, installation, now)]
    if any(not found.has("suspended_at") for found in listed):
        return
    reason = SUSPENDED if listed else _removed(installation)
    connections.mark_broken(installation, reason, now)
    raise NeedsReconnect(reason)


def _listed(account: Connection, installation: Connection, now: datetime) -> list[Fields]:
    """The installation as an account lists it, if it does."""
    with connections.noted(account, now):
        return [
            found
            for found in _installations(user_token(account, now), now)
            if installation_key(found.number("id")) == installation.key
        ]


def disconnect(connection: Connection, now: datetime) -> str:
    """Forget an installation, or an account with the installations that it alone shows."""
    if _is_installation(connection):
        connections.disconnect(connection)
        return f"It is still installed at GitHub: uninstall it at {_installed_at()}."
    _give_back(connection, now)
    # The account first: whoever lists its installations meanwhile finds that it is gone.
    connections.disconnect(connection)
    _let_go(connection)
    return f"The app is still installed at GitHub: uninstall it at {_installed_at()}."


def _installed_at() -> str:
    return f"{settings.GITHUB_URL}/settings/installations"


def _give_back(account: Connection, now: datetime) -> None:
    """https://docs.github.com/en/rest/apps/oauth-applications#delete-an-app-authorization

    Whatever comes of it, the account is forgotten here.
    """
    client = (settings.GITHUB_CLIENT_ID, settings.GITHUB_CLIENT_SECRET)
    try:
        token = user_token(account, now)
        path = f"/applications/{settings.GITHUB_CLIENT_ID}/grant"
        rest().ask("DELETE", path, now=now, auth=client, json={"access_token": token})
    except Failure as failure:
        logger.warning(
            "the grant was not given back",
            extra={"user_id": account.user_id, "connection": account.key, "why": failure.reason},
        )
