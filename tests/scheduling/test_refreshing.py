"""Accounts are renewed before they lapse, by one worker; who has to act is told, once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone
from pytest_django import Settings

from integrations import connections
from integrations.connections import Account, Grant
from integrations.providers import PROVIDERS
from integrations.sources.github import account as github
from integrations.standins.server import Fault
from integrations.tables import Connection
from scheduling import notices
from scheduling.refreshing import run_due_refreshes
from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict
from slothpost_site.moments import from_ms
from tests.builders import reread
from tests.conftest import Outside

pytestmark = pytest.mark.usefixtures("store")

TOKENS = "/github/login/oauth/access_token"


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


def github_account(outside: Outside, user: User, now: datetime, **grant: Any) -> Connection:
    """An account whose token lapsed an hour ago, and whose refresh token GitHub still takes."""
    outside.github.refresh_tokens.add("ghr_old")
    secrets = {"token": "ghu_old", "refresh_token": "ghr_old"}
    times = {"expires_at": now - timedelta(hours=1), "refresh_at": now - timedelta(minutes=1)}
    return connections.connect(
        str(user.pk),
        "github",
        Account("7001", "slothpost-demo", "github#user:7001"),
        Grant(secrets, **{**times, **grant}),
        now=now - timedelta(days=1),
    )


def test_what_would_lapse_is_renewed_ahead_of_time_and_comes_back_before_the_next_end(
    outside: Outside, alice: User, now: datetime
) -> None:
    account = github_account(outside, alice, now)
    assert run_due_refreshes(now).done == 1
    fresh = reread(account)
    assert connections.secrets_of(fresh)["token"] in outside.github.user_tokens
    assert from_ms(fresh.refresh_at) > now + timedelta(days=120)
    assert run_due_refreshes(now).found == 0


def test_two_workers_that_need_one_expired_token_make_one_call_and_both_have_it(
    outside: Outside, alice: User, now: datetime
) -> None:
    account = github_account(outside, alice, now)
    outside.standins.faults.append(Fault(path=TOKENS, delay=0.4, status=0, times=0))
    stale = [reread(account), reread(account)]
    with ThreadPoolExecutor(2) as pool:
        tokens = list(pool.map(lambda connection: github.user_token(connection, now), stale))
    assert tokens[0] == tokens[1]
    assert tokens[0] in outside.github.user_tokens
    assert outside.standins.count("POST", TOKENS) == 1


def test_two_ticks_at_once_renew_once(outside: Outside, alice: User, now: datetime) -> None:
    account = github_account(outside, alice, now)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: run_due_refreshes(now), range(2)))
    assert outside.standins.count("POST", TOKENS) == 1
    assert reread(account).broken is None


@pytest.mark.parametrize(
    "fault",
    [Fault(status=503), Fault(hang_up=True), Fault(status=200, body="<html>"), Fault(status=429)],
    ids=["503", "hangs up", "html", "429"],
)
def test_a_fault_while_renewing_is_trouble_that_passes_and_nobody_is_told(
    outside: Outside, alice: User, now: datetime, fault: Fault
) -> None:
    account = github_account(outside, alice, now)
    outside.standins.faults.append(fault)
    run_due_refreshes(now)
    fresh = reread(account)
    assert (fresh.broken, bool(fresh.trouble)) == (None, True)
    assert from_ms(fresh.refresh_at) == now + timedelta(minutes=1)
    assert (mail.outbox, fresh.lease) == ([], None)
    assert run_due_refreshes(now + timedelta(minutes=1)).done == 1
    assert (reread(account).trouble, reread(account).broken) == (None, None)


def test_a_service_that_is_down_for_a_day_is_asked_seldom(
    outside: Outside, alice: User, now: datetime
) -> None:
    account = github_account(outside, alice, now)
    outside.standins.faults.append(Fault(status=503, times=10_000))
    moment, end = now, now + timedelta(days=1)
    while moment < end:
        run_due_refreshes(moment)
        moment = from_ms(reread(account).refresh_at)
    assert outside.standins.count("POST", TOKENS) == 12
    assert reread(account).broken is None


def test_a_dead_token_breaks_the_account_and_tells_its_owner_once(
    outside: Outside, alice: User, now: datetime, settings: Settings
) -> None:
    account = github_account(outside, alice, now)
    outside.github.refresh_tokens.clear()
    run_due_refreshes(now)
    for minute in range(5):
        run_due_refreshes(now + timedelta(minutes=minute))
    fresh = reread(account)
    assert fresh.broken == "GitHub no longer accepts this authorisation: connect it again."
    assert (fresh.refresh_status, fresh.refresh_at) == (None, None)
    assert [message.to for message in mail.outbox] == [[alice.email]]
    assert mail.outbox[0].subject == "GitHub needs you: connect slothpost-demo again"
    assert f"{settings.SITE_URL}/connections/" in mail.outbox[0].body
    assert str(fresh.broken) in mail.outbox[0].body
    assert [word for word in mail.outbox[0].body.split() if word.startswith("gh")] == []


def test_connected_again_it_works_and_a_second_break_is_told_again(
    outside: Outside, alice: User, now: datetime
) -> None:
    account = github_account(outside, alice, now)
    for _ in range(2):
        outside.github.refresh_tokens.clear()
        run_due_refreshes(now)
        run_due_refreshes(now)
        assert reread(account).broken
        github_account(outside, alice, now)
        assert reread(account).broken is None
    assert len(mail.outbox) == 2


def test_a_worker_that_dies_before_the_mail_left_is_taken_over_from(
    outside: Outside, alice: User, now: datetime, settings: Settings
) -> None:
    account = github_account(outside, alice, now)
    connections.mark_broken(account, "It was revoked.", now)
    settings.EMAIL_BACKEND = f"{__name__}.Deadly"
    with pytest.raises(Killed):
        run_due_refreshes(now)
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    run_due_refreshes(now + timedelta(minutes=4))
    assert (mail.outbox, reread(account).told_at) == ([], None)
    for minute in (5, 6, 12):
        run_due_refreshes(now + timedelta(minutes=minute))
    assert [message.to for message in mail.outbox] == [[alice.email]]


def test_two_workers_that_found_it_broken_tell_it_once(
    outside: Outside, alice: User, now: datetime
) -> None:
    account = github_account(outside, alice, now)
    connections.mark_broken(account, "It was revoked.", now)
    slow = reread(account)
    run_due_refreshes(now)
    with pytest.raises(Conflict):
        notices.tell_broken(slow, now)
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("name", ["Evil\nTeam", "Evil\r\nBcc: everybody@example.com", "x" * 5_000])
def test_whatever_name_is_stored_its_owner_and_the_others_are_told(
    outside: Outside, alice: User, bob: User, now: datetime, name: str
) -> None:
    evil, other = (github_account(outside, user, now) for user in (alice, bob))
    dynamo.change(evil, None, account_name=name)
    for account in (evil, other):
        connections.mark_broken(account, "It was revoked.", now)
    report = run_due_refreshes(now)
    assert (report.done, report.failed) == (2, 0)
    assert sorted(message.to for message in mail.outbox) == [[alice.email], [bob.email]]
    assert all(message.subject == " ".join(message.subject.split()) for message in mail.outbox)
    assert max(len(message.subject) for message in mail.outbox) <= notices.LONGEST_SUBJECT


def test_an_owner_who_cannot_be_told_does_not_keep_the_others_from_it(
    outside: Outside, alice: User, bob: User, now: datetime
) -> None:
    for user in (alice, bob):
        connections.mark_broken(github_account(outside, user, now), "It was revoked.", now)
    User.objects.filter(pk=alice.pk).update(email="alice@example.com\nBcc: all@example.com")
    report = run_due_refreshes(now)
    assert (report.done, report.failed) == (1, 1)
    assert [message.to for message in mail.outbox] == [[bob.email]]


def test_a_mail_that_does_not_leave_is_sent_later(
    outside: Outside, alice: User, now: datetime, settings: Settings
) -> None:
    account = github_account(outside, alice, now)
    connections.mark_broken(account, "It was revoked.", now)
    settings.EMAIL_BACKEND = f"{__name__}.Down"
    assert run_due_refreshes(now).failed == 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert run_due_refreshes(now + timedelta(minutes=4)).found == 0
    assert run_due_refreshes(now + timedelta(minutes=5)).done == 1
    assert len(mail.outbox) == 1


class Killed(BaseException):
    """What ends a process ends it here too."""


class Deadly:
    """A mail server during whose answer the worker is killed."""

    def __init__(self, **_: object) -> None: ...

    def send_messages(self, _: object) -> int:
        raise Killed


class Down:
    """A mail server that hangs up."""

    def __init__(self, **_: object) -> None: ...

    def send_messages(self, _: object) -> int:
        raise SMTPServerDisconnected("Connection unexpectedly closed")


def test_an_owner_without_an_address_is_no_reason_to_go_on_trying(
    outside: Outside, alice: User, now: datetime
) -> None:
    account = github_account(outside, alice, now)
    User.objects.filter(pk=alice.pk).update(email="")
    connections.mark_broken(account, "It was revoked.", now)
    assert run_due_refreshes(now).done == 1
    assert run_due_refreshes(now).found == 0


def test_an_account_of_a_service_that_is_not_known_any_more_does_not_stop_the_others(
    outside: Outside, alice: User, now: datetime
) -> None:
    old = Account("1", "old")
    times = {"refresh_at": now - timedelta(minutes=2)}
    connections.connect(str(alice.pk), "elsewhere", old, Grant({"t": "x"}, **times), now=now)
    account = github_account(outside, alice, now)
    report = run_due_refreshes(now)
    assert (report.found, report.done, report.failed) == (2, 1, 1)
    assert reread(account).trouble is None


class Faulty:
    """A service whose code has a fault, and whose account is disconnected meanwhile."""

    def renew(self, connection: Connection, now: datetime) -> None:
        connections.disconnect(connection)
        raise RuntimeError("a fault of ours")


def test_an_account_that_is_disconnected_while_its_renewal_fails_does_not_stop_the_others(
    outside: Outside, alice: User, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROVIDERS, "faulty", Faulty())
    grant = Grant({"token": "t"}, refresh_at=now - timedelta(minutes=2))
    gone = connections.connect(str(alice.pk), "faulty", Account("1", "gone"), grant, now=now)
    account = github_account(outside, alice, now)
    report = run_due_refreshes(now)
    assert report.found == 2
    assert reread(gone) is None
    assert from_ms(reread(account).refresh_at) > now
