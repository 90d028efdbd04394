"""Connecting GitHub, using what was connected, and every way in which GitHub says no."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink, Finish
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater
from integrations.sources import github as source
from integrations.sources.base import Follow, OutOfReach, Reachable, Renamed
from integrations.sources.github.webhook import SUSPENDED
from integrations.standins.github import COLLEAGUE, ORGANISATION, PERSON, SLOWTIDE
from integrations.standins.server import Fault, Response
from integrations.tables import Connection
from slothpost_site.dynamo import change
from tests.builders import reread
from tests.conftest import Outside

pytestmark = pytest.mark.usefixtures("store")

HARBOUR, BOATS = 912345679, 912345680
TOKENS = "/github/login/oauth/access_token"
MINTED = "/github/api/v3/app/installations/[0-9]+/access_tokens"


@pytest.fixture
def now(outside: Outside) -> datetime:
    return timezone.now()


def callback(outside: Outside) -> str:
    return f"{outside.standins.site_url}/connections/github/callback/"


def come_back(outside: Outside, now: datetime, user: str = "1", **answer: str) -> Finish:
    start = source.start("state-1", callback(outside), {}, now)
    kept = {**start.kept, "callback_url": callback(outside), "state": "state-2"}
    return source.finish(user, answer, kept, now)


def connect(outside: Outside, now: datetime, user: str = "1") -> Connection:
    code = outside.github.code(callback(outside))
    return come_back(outside, now, user, code=code).connection


def installed(outside: Outside, now: datetime, user: str = "1") -> Connection:
    """The connection of an installation that covers everything of the person's."""
    made = outside.github.install_for(PERSON)
    connect(outside, now, user)
    found = connections.find(user, f"github#installation:{made.id}")
    assert found is not None
    return found


def follow(via: Connection | None, now: datetime, number: int = SLOWTIDE) -> Follow:
    return Follow(str(number), "slothpost-demo/slowtide", via, now - timedelta(days=14))


# -- connecting ------------------------------------------------------------------------------------


def test_an_account_and_its_installations_are_connected_once_they_were_read(
    outside: Outside, now: datetime
) -> None:
    made = outside.github.install_for(PERSON)
    account = connect(outside, now)
    assert (account.key, account.account_name) == ("github#7001", PERSON)
    assert sorted(c.key for c in connections.of_provider("1", "github")) == [
        "github#7001",
        f"github#installation:{made.id}",
    ]
    assert outside.standins.count("GET", "/github/api/v3/user") == 1


def test_without_an_installation_it_goes_on_to_choose_repositories(
    outside: Outside, now: datetime
) -> None:
    done = come_back(outside, now, code=outside.github.code(callback(outside)))
    assert done.next_url == (
        f"{outside.github.url}/apps/slothpost-standin/installations/new?state=state-2"
    )


def test_a_no_connects_nothing(outside: Outside, now: datetime) -> None:
    with pytest.raises(Cancelled):
        come_back(outside, now, error="access_denied")
    assert connections.of_provider("1", "github") == []


def test_a_code_is_good_once_for_ten_minutes_and_for_who_began(
    outside: Outside, now: datetime
) -> None:
    used = outside.github.code(callback(outside))
    come_back(outside, now, "2", code=used)
    another = outside.github.code(callback(outside), challenge="of somebody else's verifier")
    late = outside.github.code(callback(outside))
    for code in (used, another, "made-up"):
        with pytest.raises(ExpiredLink):
            come_back(outside, now, code=code)
    outside.github.clock = lambda: now + timedelta(minutes=11)
    with pytest.raises(ExpiredLink):
        come_back(outside, now, code=late)
    assert connections.of_provider("1", "github") == []


def test_an_installation_that_github_does_not_list_is_not_believed(
    outside: Outside, now: datetime
) -> None:
    code = outside.github.code(callback(outside))
    with pytest.raises(Refused):
        come_back(outside, now, code=code, installation_id="1")
    assert connections.of_provider("1", "github") == []
    connect(outside, now)
    with pytest.raises(Refused):
        come_back(outside, now, installation_id="1", setup_action="install")
    assert [c.key for c in connections.of_provider("1", "github")] == ["github#7001"]


def test_coming_back_with_nothing_is_an_expired_link(outside: Outside, now: datetime) -> None:
    for answer in ({}, {"installation_id": "1"}):
        with pytest.raises(ExpiredLink):
            come_back(outside, now, **answer)


def test_an_owner_who_has_to_approve_is_named(outside: Outside, now: datetime) -> None:
    connect(outside, now)
    done = come_back(outside, now, setup_action="request")
    assert done.note == "An owner of the organisation has to approve it at GitHub first."
    assert done.next_url == ""


def test_connecting_again_mends_the_account_and_leaves_what_works_alone(
    outside: Outside, now: datetime
) -> None:
    via = installed(outside, now)
    source.fetch(follow(via, now), now)
    account = connections.find("1", "github#7001")
    assert account is not None
    connections.mark_broken(account, "It was revoked.", now)
    assert connect(outside, now).broken is None
    source.fetch(follow(reread(via), now), now)
    assert outside.standins.count("POST", MINTED) == 1  # it kept its token
    assert len(connections.of_provider("1", "github")) == 2


def test_what_cannot_be_read_is_not_connected(outside: Outside, now: datetime) -> None:
    outside.standins.faults.append(Fault(path="/github/api/v3/user", status=502))
    with pytest.raises(TryLater):
        connect(outside, now)
    assert connections.of_provider("1", "github") == []


def test_our_own_wrong_secret_is_not_the_persons_fault(
    outside: Outside, now: datetime, settings: Settings
) -> None:
    settings.GITHUB_CLIENT_SECRET = "wrong"
    with pytest.raises(TryLater):
        connect(outside, now)


# -- choosing --------------------------------------------------------------------------------------


def test_every_repository_is_listed_however_many_pages(outside: Outside, now: datetime) -> None:
    via = installed(outside, now)
    found = source.choices("1", now)
    assert len(found) == 112
    assert {choice.via for choice in found} == {via.key}
    assert [choice.name for choice in found if choice.private] == ["slothpost-demo/secret-harbour"]


def test_only_what_the_person_may_see_is_listed_whatever_the_app_may(
    outside: Outside, now: datetime
) -> None:
    installed(outside, now)
    outside.github.hidden.add(HARBOUR)
    assert str(HARBOUR) not in {choice.id for choice in source.choices("1", now)}
    assert source.choices("2", now) == []


# -- tokens ----------------------------------------------------------------------------------------


def test_an_installations_token_serves_for_its_hour(outside: Outside, now: datetime) -> None:
    via = installed(outside, now)
    for _ in range(2):
        source.fetch(follow(reread(via), now), now)
    assert outside.standins.count("POST", MINTED) == 1
    outside.github.clock = lambda: now + timedelta(hours=1)
    source.fetch(follow(reread(via), now), now + timedelta(hours=1))
    assert outside.standins.count("POST", MINTED) == 2


@pytest.mark.parametrize("is_read_before", [False, True], ids=["no token yet", "a kept token"])
@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        ("suspend", "SlothPost was suspended at GitHub for this account: lift that"),
        ("uninstall", "SlothPost was removed at GitHub from slothpost-demo: install it"),
    ],
)
def test_a_suspended_or_removed_installation_breaks_with_its_reason(
    outside: Outside, now: datetime, happens: str, reason: str, is_read_before: bool
) -> None:
    via = installed(outside, now)
    if is_read_before:
        source.fetch(follow(via, now), now)
    outside.github._change_installation(next(iter(outside.github.installations.values())), happens)
    with pytest.raises(NeedsReconnect):
        source.fetch(follow(via, now), now)
    assert str(reread(via).broken).startswith(reason)


def test_a_token_that_github_took_back_is_replaced(outside: Outside, now: datetime) -> None:
    via = installed(outside, now)
    first = source.fetch(follow(via, now), now)
    outside.github.app_tokens.clear()
    assert source.fetch(follow(reread(via), now), now).events == first.events
    assert reread(via).works


def test_an_app_that_github_does_not_know_breaks_nobodys_account(
    outside: Outside, now: datetime, settings: Settings
) -> None:
    via = installed(outside, now)
    for wrong in ("no key", settings.GITHUB_PRIVATE_KEY[:200]):
        settings.GITHUB_PRIVATE_KEY = wrong
        with pytest.raises(TryLater):
            source.fetch(follow(reread(via), now), now)
    assert reread(via).broken is None


# -- reading ---------------------------------------------------------------------------------------


def events(found: Any) -> dict[str, Any]:
    return {event.id: event for event in found.events}


def told(outside: Outside, event: str, payload: dict[str, Any]) -> dict[str, Any]:
    """What a webhook of the stand-in's own objects says."""
    repository = outside.github.as_json(outside.github.repositories[SLOWTIDE])
    headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": "guid-1"}
    return events(source.parse({**payload, "repository": repository}, headers))


def test_what_is_asked_for_is_what_webhooks_tell(outside: Outside, now: datetime) -> None:
    repository = outside.github.repositories[SLOWTIDE]
    fetched = events(source.fetch(follow(None, now), now))
    seen = set()
    for pull in repository.pulls:
        closed = {"action": "closed", "pull_request": {**pull, "merged": True}}
        said = told(outside, "pull_request", closed)
        seen |= set(said)
        assert said == {key: fetched[key] for key in said}
    for release in repository.releases:
        said = told(outside, "release", {"action": "published", "release": release})
        seen |= set(said)
        assert said == {key: fetched[key] for key in said}
    new = [c for c in repository.commits if f"commit:{c['sha']}" in fetched]
    pushed = [
        {
            "id": commit["sha"],
            "message": commit["commit"]["message"],
            "timestamp": commit["commit"]["committer"]["date"],
            "url": commit["html_url"],
            "author": {"name": "x", "username": commit["author"]["login"]},
        }
        for commit in reversed(new)
    ]
    said = told(outside, "push", {"ref": "refs/heads/main", "commits": pushed, "head_commit": {}})
    seen |= set(said)
    assert said == {key: fetched[key] for key in said}
    (release,) = repository.releases
    (tag,) = told(outside, "create", {"ref_type": "tag", "ref": release["tag_name"]}).values()
    # A webhook does not say of which commit, and has no time but that of the last push.
    found = fetched[tag.id]
    assert found.refs == (*tag.refs, f"sha:{repository.tags[0]['commit']['sha']}")
    assert replace(found, refs=tag.refs, occurred_at=tag.occurred_at) == tag
    assert set(fetched) == seen | {tag.id}


def test_only_what_is_new_is_told(outside: Outside, now: datetime) -> None:
    lately = Follow(str(SLOWTIDE), "x", None, now - timedelta(hours=8))
    newest, before = outside.github.repositories[SLOWTIDE].commits[:2]
    found = events(source.fetch(lately, now))
    assert set(found) == {"pr:104", f"commit:{newest['sha']}"}
    at = datetime.fromisoformat(before["commit"]["committer"]["date"])
    exactly = Follow(str(SLOWTIDE), "x", None, at)
    assert set(events(source.fetch(exactly, now))) == {*found, f"commit:{before['sha']}"}


def test_a_renamed_repository_is_found_by_its_number(outside: Outside, now: datetime) -> None:
    outside.github.rename(outside.github.repositories[SLOWTIDE], "fasttide")
    found = source.fetch(follow(None, now), now)
    assert found.upkeep == (Renamed("slothpost-demo/fasttide"),)
    assert "pr:104" in events(found)


def test_a_private_repository_needs_the_persons_own_eyes(outside: Outside, now: datetime) -> None:
    via = installed(outside, now)
    found = source.fetch(follow(via, now, HARBOUR), now)
    assert found.private
    assert {event.private for event in found.events} == {True}
    outside.github.hidden.add(HARBOUR)  # the person left; the app still sees it
    (upkeep,) = source.fetch(follow(reread(via), now, HARBOUR), now).upkeep
    assert isinstance(upkeep, OutOfReach)
    account = connections.find("1", "github#7001")
    assert account is not None
    outside.github.user_tokens.clear()
    for _ in range(2):  # GitHub says so first, then it is known here
        with pytest.raises(Refused):
            source.fetch(follow(reread(via), now, HARBOUR), now)
    assert [reread(each).works for each in (account, via)] == [False, True]


def test_what_is_unchanged_is_not_sent_again(outside: Outside, now: datetime) -> None:
    first = source.fetch(follow(None, now), now)
    again = Follow(str(SLOWTIDE), "x", None, now - timedelta(days=14), first.seen)
    second = source.fetch(again, now)
    assert (second.events, dict(second.seen)) == ((), dict(first.seen))


def test_an_empty_repository_says_nothing(outside: Outside, now: datetime) -> None:
    assert source.fetch(follow(None, now, 912346000), now).events == ()


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("is_connected", [False, True], ids=["anybody", "an account"])
def test_a_repository_that_is_not_shown_is_out_of_reach(
    outside: Outside, now: datetime, status: int, is_connected: bool
) -> None:
    via = installed(outside, now) if is_connected else None
    outside.standins.faults.append(Fault(path=".*/repositories/[0-9]+", status=status))
    found = source.fetch(Follow(str(SLOWTIDE), "x", via, now, {"tags": "e"}), now)
    (upkeep,) = found.upkeep
    assert isinstance(upkeep, OutOfReach)
    assert (found.events, found.seen, found.private) == ((), {"tags": "e"}, None)


def test_nobodys_allowance_that_is_used_up_says_until_when(outside: Outside, now: datetime) -> None:
    outside.github.anonymous_left = 1
    outside.github.clock = lambda: now
    with pytest.raises(TryLater) as limited:
        source.fetch(follow(None, now), now)
    assert limited.value.after is not None
    assert timedelta(minutes=19) < limited.value.after <= timedelta(minutes=20)


Use = Callable[[Connection, datetime], object]
USES: list[Use] = [
    lambda via, now: source.choices(via.user_id, now),
    lambda via, now: source.check(via, now),
    lambda via, now: source.fetch(follow(via, now), now),
]


@pytest.mark.parametrize("use", USES, ids=["choices", "check", "fetch"])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(status=429, headers={"Retry-After": "9"}), TryLater),
        (Fault(status=403, headers={"X-RateLimit-Remaining": "0"}), TryLater),
        (Fault(status=403), Refused),
        (Fault(status=422), Refused),
        (Fault(status=500), TryLater),
        (Fault(hang_up=True), TryLater),
        (Fault(status=200, body="<html>"), TryLater),
        (Fault(status=200, body='{"id": '), TryLater),
        (Fault(status=200, body='"text"'), TryLater),
    ],
    ids=["429", "403 limited", "403", "422", "500", "hangs up", "html", "half", "another shape"],
)
def test_what_fails_for_now_does_not_break_an_account(
    outside: Outside, now: datetime, use: Use, fault: Fault, kind: type[Failure]
) -> None:
    via = installed(outside, now)
    outside.standins.faults.append(Fault(**{**vars(fault), "times": 99}))
    with pytest.raises(kind):
        use(via, now)
    assert [c.broken for c in connections.of_provider("1", "github")] == [None, None]


@pytest.mark.parametrize("use", USES[:2], ids=["choices", "check"])
def test_an_authorisation_that_was_taken_back_breaks_the_account_alone(
    outside: Outside, now: datetime, use: Use
) -> None:
    via = installed(outside, now)
    account = connections.find("1", "github#7001")
    outside.github.user_tokens.clear()
    with pytest.raises(NeedsReconnect):
        use(via, now)
    assert [reread(each).works for each in (account, via)] == [False, True]


# -- disconnecting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [None, Fault(status=503, times=9), Fault(hang_up=True, times=9)])
def test_disconnecting_forgets_the_account_and_what_it_showed(
    outside: Outside, now: datetime, fault: Fault | None
) -> None:
    installed(outside, now)
    account = connections.find("1", "github#7001")
    assert account is not None
    outside.standins.faults += [Fault(**vars(fault))] if fault else []
    assert source.disconnect(account, now).startswith("The app is still installed at GitHub")
    assert connections.of_provider("1", "github") == []
    assert (outside.github.user_tokens == {}) is (fault is None)


def test_two_people_of_one_installation_are_told_apart(outside: Outside, now: datetime) -> None:
    first, second = installed(outside, now), installed(outside, now, "2")
    source.disconnect(first, now)
    assert (reread(first), reread(second).works) == (None, True)


def test_an_account_that_is_disconnected_while_its_repositories_are_listed_leaves_nothing(
    outside: Outside, now: datetime
) -> None:
    installed(outside, now)
    account = connections.find("1", "github#7001")
    assert account is not None

    def meanwhile(response: Response) -> Response:
        if isinstance(response.body, dict) and "installations" in response.body:
            source.disconnect(account, now)
        return response

    outside.standins.alter = meanwhile
    with pytest.raises(NeedsReconnect):
        source.choices("1", now)
    assert connections.of_provider("1", "github") == []


def test_an_account_that_is_disconnected_while_the_app_is_installed_leaves_nothing(
    outside: Outside, now: datetime
) -> None:
    account = connect(outside, now)
    made = outside.github.install_for(PERSON)

    def meanwhile(response: Response) -> Response:
        if isinstance(response.body, dict) and "installations" in response.body:
            connections.disconnect(account)
        return response

    outside.standins.alter = meanwhile
    with pytest.raises(NeedsReconnect):
        come_back(outside, now, installation_id=str(made.id), setup_action="install")
    assert connections.of_provider("1", "github") == []


# -- several accounts of one person ----------------------------------------------------------------


def connect_colleague(outside: Outside, now: datetime) -> Connection:
    outside.github.person = COLLEAGUE
    account = connect(outside, now)
    outside.github.person = PERSON
    return account


@pytest.fixture
def shared(outside: Outside, now: datetime) -> Connection:
    """An organisation's installation, and two accounts of one person that show it."""
    outside.github.install_for(ORGANISATION)
    connect(outside, now)
    connect_colleague(outside, now)
    found = connections.find("1", f"github#installation:{min(outside.github.installations)}")
    assert found is not None
    return found


def accounts_of(installation: Connection) -> tuple[str, list[str]]:
    details = reread(installation).details
    return details["account"], details["accounts"]


def test_an_installation_that_two_accounts_show_stays_with_the_first(shared: Connection) -> None:
    assert accounts_of(shared) == ("github#7001", ["github#7001", "github#7003"])


@pytest.mark.parametrize(("gone", "left"), [("7001", "7003"), ("7003", "7001")])
def test_disconnecting_one_of_two_accounts_leaves_what_the_other_shows(
    outside: Outside, now: datetime, shared: Connection, gone: str, left: str
) -> None:
    account = connections.find("1", f"github#{gone}")
    assert account is not None
    source.fetch(follow(shared, now, BOATS), now)
    source.disconnect(account, now)
    assert accounts_of(shared) == (f"github#{left}", [f"github#{left}"])
    assert connections.find_working("1", shared.key) is not None
    assert source.fetch(follow(reread(shared), now, BOATS), now).upkeep[1:] == ()
    assert outside.standins.count("POST", MINTED) == 1  # it kept its token


def test_disconnecting_one_account_forgets_what_it_alone_shows(
    outside: Outside, now: datetime, shared: Connection
) -> None:
    own = installed(outside, now)
    account = connections.find("1", "github#7001")
    assert account is not None
    source.disconnect(account, now)
    assert [reread(own), reread(shared).works] == [None, True]


def test_an_installation_goes_over_to_the_account_that_works(
    outside: Outside, now: datetime, shared: Connection
) -> None:
    account = connections.find("1", "github#7001")
    assert account is not None
    connections.mark_broken(account, "It was revoked.", now)
    assert connections.find_working("1", shared.key) is None
    assert [choice.via for choice in source.choices("1", now)] == [shared.key]
    assert accounts_of(shared) == ("github#7003", ["github#7001", "github#7003"])
    assert connections.find_working("1", shared.key) is not None


def test_what_one_of_two_accounts_may_see_can_be_read_and_is_checked(
    outside: Outside, now: datetime, shared: Connection
) -> None:
    outside.github.hidden.add(BOATS)  # from the first account
    found = source.fetch(follow(shared, now, BOATS), now)
    assert [event.title for event in found.events] == ["Add a logbook", "Add a logbook (#101)"]
    outside.github.sees[PERSON].discard(ORGANISATION)
    source.check(reread(shared), now)
    outside.github.sees[COLLEAGUE].discard(ORGANISATION)
    (*_, upkeep) = source.fetch(follow(reread(shared), now, BOATS), now).upkeep
    assert isinstance(upkeep, OutOfReach)
    with pytest.raises(NeedsReconnect):
        source.check(reread(shared), now)


def test_an_account_that_lapsed_may_be_the_one_that_sees_it(
    outside: Outside, now: datetime, shared: Connection
) -> None:
    outside.github.hidden.add(BOATS)
    account = connections.find("1", "github#7003")
    assert account is not None
    del outside.github.user_tokens[connections.secrets_of(account)["token"]]
    with pytest.raises(Refused):
        source.fetch(follow(shared, now, BOATS), now)
    assert [reread(account).works, reread(shared).works] == [False, True]


def test_an_installation_from_before_accounts_were_counted_goes_on(
    outside: Outside, now: datetime
) -> None:
    via = installed(outside, now)
    details = {"login": PERSON, "account": "github#7001"}
    change(via, None, details=details)
    source.choices("1", now)
    assert accounts_of(via) == ("github#7001", ["github#7001"])
    change(via, None, details=details)
    account = connections.find("1", "github#7001")
    assert account is not None
    source.disconnect(account, now)
    assert connections.of_provider("1", "github") == []


# -- what a webhook would have told ----------------------------------------------------------------


def test_an_installation_that_is_listed_as_suspended_does_not_work(
    outside: Outside, now: datetime
) -> None:
    via = installed(outside, now)
    (made,) = outside.github.installations.values()
    uses: list[Callable[[], object]] = [
        lambda: connect(outside, now),
        lambda: source.choices("1", now),
    ]
    for use in uses:
        made.suspended_at = now  # and its webhook is missed
        use()
        assert reread(via).broken == SUSPENDED
        assert source.choices("1", now) == []
        made.suspended_at = None
        use()
        assert reread(via).broken is None


def test_its_owner_is_told_once_of_an_installation_that_stays_suspended(
    outside: Outside, now: datetime
) -> None:
    via = installed(outside, now)
    outside.github.installations[50_001].suspended_at = now
    connect(outside, now)
    connections.note_told(reread(via), now)
    connect(outside, now)
    source.choices("1", now)
    assert reread(via).refresh_at is None


def test_access_that_is_given_back_is_told_as_it_was_taken(outside: Outside, now: datetime) -> None:
    outside.github.install_for(PERSON)
    for repositories in ({SLOWTIDE}, None):
        outside.github.install_for(PERSON, repositories)
    heard = []
    for delivery in reversed(outside.github.deliveries):
        event, body = outside.github.bodies[delivery["guid"]]
        headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": delivery["guid"]}
        received = source.parse(json.loads(body), headers)
        heard.append((received.event, dict(received.upkeep_of).get(str(HARBOUR))))
    name = "slothpost-demo/secret-harbour"
    reason = f"SlothPost's access to {name} was taken away at GitHub: give it back there to go on."
    key = "github#installation:50001"
    assert heard == [
        ("installation.created", None),
        ("installation_repositories.removed", OutOfReach(reason, key)),
        ("installation_repositories.added", Reachable(key)),
    ]
