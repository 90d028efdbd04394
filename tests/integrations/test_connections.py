"""Connections: what a reconnect keeps, who renews a token, and keys that are rotated."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from integrations import connections
from integrations.connections import Account, Grant
from integrations.errors import NeedsReconnect, TryLater
from integrations.sources.base import AccountNews
from integrations.tables import Connection
from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict, shard_of
from slothpost_site.moments import from_ms, to_ms

pytestmark = pytest.mark.usefixtures("store")

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
LAPSED, LATER = NOW - timedelta(minutes=1), NOW + timedelta(hours=8)
KEY = "github#5"


def connect(
    token: str = "t1",  # noqa: S107 -- made up
    refresh: str = "r1",
    expires_at: datetime = LAPSED,
    user_id: str = "1",
) -> Connection:
    grant = Grant({"token": token, "refresh": refresh}, expires_at=expires_at)
    account = Account("5", "acme", "github#user:5")
    return connections.connect(user_id, "github", account, grant, now=NOW)


def stored(user_id: str = "1") -> Connection:
    found = connections.find(user_id, KEY)
    assert found is not None
    return found


def renewed(secrets: dict[str, str]) -> Grant:
    return Grant({"token": "t2", "refresh": "r2"}, expires_at=LATER)


def failing(failure: Exception) -> Callable[[dict[str, str]], Grant]:
    def renew(secrets: dict[str, str]) -> Grant:
        raise failure

    return renew


NEW = {"token": "t2", "refresh": "r2"}


# -- connecting again ------------------------------------------------------------------------------


def test_connecting_again_replaces_what_it_brings_and_empties_nothing() -> None:
    connect("t1", "r1")
    again = connect("t2", "")
    assert connections.secrets_of(stored()) == {"token": "t2", "refresh": "r1"}
    assert again.secrets == stored().secrets


def test_connecting_again_mends_what_was_broken() -> None:
    broken = connect()
    connections.mark_broken(broken, "revoked", NOW)
    connect("t2")
    assert stored().works


def test_connecting_again_mends_what_no_key_opens(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["lost"]
    connect("t1", "r1")
    settings.TOKEN_KEYS = ["new"]
    connect("t2", "r2")
    assert connections.secrets_of(stored()) == NEW


# -- renewing --------------------------------------------------------------------------------------


def test_a_token_that_is_valid_is_not_renewed() -> None:
    connection = connect(expires_at=LATER)
    never = failing(AssertionError("renewed"))
    assert connections.fresh_secrets(connection, never, NOW) == {"token": "t1", "refresh": "r1"}


def test_a_renewed_token_is_kept_with_what_was_not_renewed() -> None:
    connection = connect()
    fresh = connections.fresh_secrets(
        connection, lambda _: Grant({"token": "t2"}, expires_at=LATER), NOW
    )
    assert fresh == {"token": "t2", "refresh": "r1"}
    assert connections.secrets_of(stored()) == fresh
    assert stored().lease is None


def test_two_workers_renew_once_and_both_get_the_new_token() -> None:
    connect()
    calls: list[dict[str, str]] = []
    both_read = [stored(), stored()]

    def renew(secrets: dict[str, str]) -> Grant:
        calls.append(secrets)
        time.sleep(1)  # long enough for the other to find the lease taken
        return renewed(secrets)

    def ask(connection: Connection) -> dict[str, str]:
        return connections.fresh_secrets(connection, renew, NOW)

    with ThreadPoolExecutor(2) as workers:
        answers = list(workers.map(ask, both_read))
    assert answers == [NEW, NEW]
    assert calls == [{"token": "t1", "refresh": "r1"}]


def test_a_worker_that_read_before_the_renewal_gets_the_new_token_without_renewing() -> None:
    connect()
    early, late = stored(), stored()
    connections.fresh_secrets(early, renewed, NOW)
    never = failing(AssertionError("renewed"))
    assert connections.fresh_secrets(late, never, NOW) == NEW


def test_a_renewal_that_fails_for_now_leaves_it_working_and_lets_the_next_one_try() -> None:
    connection = connect()
    with pytest.raises(TryLater):
        connections.fresh_secrets(connection, failing(TryLater("503")), NOW)
    assert (stored().works, stored().lease) == (True, None)
    assert connections.fresh_secrets(stored(), renewed, NOW) == NEW


def test_a_refused_renewal_breaks_it_once() -> None:
    connection = connect()
    with pytest.raises(NeedsReconnect):
        connections.fresh_secrets(connection, failing(NeedsReconnect("revoked")), NOW)
    assert (stored().broken, stored().refresh_at) == ("revoked", to_ms(NOW))
    assert not connections.mark_broken(stored(), "again", NOW)
    with pytest.raises(NeedsReconnect) as failure:
        connections.fresh_secrets(stored(), failing(AssertionError("renewed")), NOW)
    assert failure.value.reason == "revoked"


def test_a_worker_that_was_killed_holds_nobody_up_once_its_lease_lapsed() -> None:
    after = NOW + connections.LEASE
    dynamo.change(connect(), None, lease="killed", lease_until=to_ms(after))
    assert connections.fresh_secrets(stored(), renewed, after) == NEW


def test_what_its_owner_connects_while_it_is_renewed_is_newer() -> None:
    connection = connect()

    def renew(secrets: dict[str, str]) -> Grant:
        connect("t3", "r3", LATER)
        return renewed(secrets)

    assert connections.fresh_secrets(connection, renew, NOW) == {"token": "t3", "refresh": "r3"}
    assert connections.secrets_of(stored()) == {"token": "t3", "refresh": "r3"}


def test_a_refusal_of_the_old_token_says_nothing_against_a_newer_one() -> None:
    connection = connect()

    def renew(secrets: dict[str, str]) -> Grant:
        connect("t3", "r3", LATER)
        raise NeedsReconnect("revoked")

    with pytest.raises(NeedsReconnect):
        connections.fresh_secrets(connection, renew, NOW)
    assert stored().works


def test_an_account_that_is_disconnected_while_it_is_renewed_stays_so() -> None:
    connection = connect()

    def renew(secrets: dict[str, str]) -> Grant:
        connections.disconnect(stored())
        return renewed(secrets)

    with pytest.raises(NeedsReconnect):
        connections.fresh_secrets(connection, renew, NOW)
    assert connections.find("1", KEY) is None


# -- sealed ----------------------------------------------------------------------------------------


def test_secrets_that_no_key_opens_need_their_owner(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["lost"]
    connection = connect()
    settings.TOKEN_KEYS = ["new"]
    with pytest.raises(NeedsReconnect) as failure:
        connections.secrets_of(connection)
    assert failure.value.reason == "What was stored of this account can no longer be read here."


def test_secrets_that_no_key_opens_break_the_connection_at_a_renewal(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["lost"]
    connection = connect()
    settings.TOKEN_KEYS = ["new"]
    with pytest.raises(NeedsReconnect):
        connections.fresh_secrets(connection, renewed, NOW)
    assert not stored().works


# -- meanwhile -------------------------------------------------------------------------------------


def test_a_renewal_is_kept_while_the_keys_are_rotated(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["old"]
    connection = connect()
    settings.TOKEN_KEYS = ["new", "old"]

    def renew(_: dict[str, str]) -> Grant:
        connections.reseal(stored())
        return Grant({"token": "t2", "refresh": "r2"}, expires_at=LATER)

    assert connections.fresh_secrets(connection, renew, NOW)["refresh"] == "r2"
    assert connections.secrets_of(stored())["refresh"] == "r2"


def test_what_was_sealed_anew_since_it_was_read_is_renewed_all_the_same(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["old"]
    connection = connect()
    settings.TOKEN_KEYS = ["new", "old"]
    connections.reseal(stored())
    assert connections.fresh_secrets(connection, renewed, NOW) == NEW


def test_what_was_sealed_anew_since_it_was_read_breaks_all_the_same(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["old"]
    connection = connect()
    settings.TOKEN_KEYS = ["new", "old"]

    def renew(_: dict[str, str]) -> Grant:
        connections.reseal(stored())
        raise NeedsReconnect("revoked")

    with pytest.raises(NeedsReconnect):
        connections.fresh_secrets(connection, renew, NOW)
    assert stored().broken == "revoked"


@pytest.mark.parametrize("refresh_at", [None, LATER], ids=["never", "later"])
def test_what_broke_an_account_during_its_renewal_still_has_and_is_told(
    refresh_at: datetime | None,
) -> None:
    connection = connect()

    def renew(_: dict[str, str]) -> Grant:
        connections.hear(AccountNews("github#user:5", broken="It was revoked."), NOW)
        return Grant(NEW, expires_at=LATER, refresh_at=refresh_at)

    with pytest.raises(NeedsReconnect) as failure:
        connections.fresh_secrets(connection, renew, NOW)
    assert failure.value.reason == "It was revoked."
    kept = stored()
    assert (kept.broken, kept.refresh_status, kept.refresh_at, kept.lease) == (
        "It was revoked.",
        shard_of("active", KEY),
        to_ms(NOW),
        None,
    )
    assert connections.secrets_of(kept) == NEW


@pytest.mark.parametrize("secrets", [{}, {"refresh": "r1"}], ids=["no secrets", "no token"])
def test_without_a_token_there_is_none_that_is_valid(secrets: dict[str, str]) -> None:
    grant = Grant(secrets, expires_at=LATER)
    made = connections.connect("1", "github", Account("5", "acme"), grant, now=NOW)
    assert connections.fresh_secrets(made, renewed, NOW) == NEW


def test_a_lease_counts_from_when_it_is_taken() -> None:
    """A tick comes to an account a good while after it began."""
    connection = connect()
    long_ago = timezone.now() - timedelta(hours=1)
    seen: list[datetime] = []

    def renew(_: dict[str, str]) -> Grant:
        seen.append(from_ms(stored().lease_until))
        return Grant({"token": "t2"}, expires_at=LATER)

    connections.fresh_secrets(connection, renew, long_ago, even_if_valid=True)
    assert seen[0] > timezone.now()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("My\nkey", "My key"),
        ("a\r\nb", "a b"),
        ("  a \u2028 b\x85", "a b"),
        ("\x00x\x7fy", "x y"),
        ("\u202eevil", "evil"),
        ("half \ud83d", "half"),
        ("कं\u200cप", "कं\u200cप"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("a" * 1_000_000, "a" * connections.LONGEST_NAME),
    ],
    ids=[
        "line end",
        "two line ends",
        "line separators",
        "control",
        "direction",
        "surrogate",
        "joiner in a word",
        "joiner in an emoji",
        "long",
    ],
)
def test_an_accounts_name_is_one_line_however_it_arrives(given: str, kept: str) -> None:
    account = Account("5", given, "github#user:5")
    connections.connect("1", "github", account, Grant({}), now=NOW)
    assert stored().account_name == kept
    connections.hear(AccountNews("github#user:5", name="acme"), NOW)
    connections.hear(AccountNews("github#user:5", name=given), NOW)
    assert stored().account_name == kept


def test_nothing_is_noted_of_an_account_that_was_disconnected_meanwhile() -> None:
    connection = connect()
    connections.disconnect(stored())
    connections.mark_working(connection, NOW)
    connections.mark_trouble(connection, "It failed.", NOW)
    assert not connections.mark_broken(connection, "revoked", NOW)
    assert connections.find("1", KEY) is None


def test_an_account_that_broke_while_it_was_renewed_stays_among_those_to_be_told_of() -> None:
    connection = connect()
    due = NOW - timedelta(minutes=1)
    dynamo.change(connection, None, refresh_status=shard_of("active", KEY), refresh_at=to_ms(due))
    connections.hear(AccountNews("github#user:5", broken="It was revoked."), due)
    connections.mark_working(connection, NOW)
    with pytest.raises(Conflict):
        connections.end_refresh(connection, NOW)
    with pytest.raises(Conflict):
        connections.put_off_refresh(connection, LATER, "It failed.", NOW)
    assert stored().refresh_at == to_ms(due)


def rotate() -> str:
    said = StringIO()
    call_command("rotate_token_keys", stdout=said)
    return said.getvalue()


def test_after_a_rotation_the_old_key_can_go(settings: Settings, alice: User, bob: User) -> None:
    settings.TOKEN_KEYS = ["old"]
    for user in (alice, bob):
        connect(user_id=str(user.pk))
    settings.TOKEN_KEYS = ["new", "old"]
    assert rotate() == "Accounts sealed with the first of TOKEN_KEYS: 2.\n"
    settings.TOKEN_KEYS = ["new"]
    for user in (alice, bob):
        assert connections.secrets_of(stored(str(user.pk))) == {"token": "t1", "refresh": "r1"}


def test_a_rotation_reaches_every_page_of_somebodys_accounts(
    settings: Settings, alice: User
) -> None:
    for number in range(60):
        account = Account(f"{number:02}", "acme")
        grant = Grant({"token": "t"})
        connections.connect(str(alice.pk), "github", account, grant, now=NOW)
    assert rotate() == "Accounts sealed with the first of TOKEN_KEYS: 60.\n"


def test_a_rotation_names_what_it_cannot_open_and_does_the_rest(
    settings: Settings, alice: User, bob: User
) -> None:
    settings.TOKEN_KEYS = ["lost"]
    connect(user_id=str(alice.pk))
    settings.TOKEN_KEYS = ["old"]
    connect(user_id=str(bob.pk))
    settings.TOKEN_KEYS = ["new", "old"]
    with pytest.raises(CommandError) as failure:
        rotate()
    assert f"{alice.pk}/{KEY}." in str(failure.value)
    settings.TOKEN_KEYS = ["new"]
    assert connections.secrets_of(stored(str(bob.pk))) == {"token": "t1", "refresh": "r1"}


def test_a_token_that_is_renewed_during_a_rotation_is_sealed_anew_too(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["old"]
    connect()
    read = stored()
    connect("t2", "r2")
    settings.TOKEN_KEYS = ["new", "old"]
    connections.reseal(read)
    settings.TOKEN_KEYS = ["new"]
    assert connections.secrets_of(stored()) == NEW
