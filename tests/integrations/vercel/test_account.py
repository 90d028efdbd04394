"""Connecting Vercel, using what was connected, and every way in which Vercel says no."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from integrations import connections
from integrations.accounts import Cancelled, ExpiredLink
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater
from integrations.sources import vercel as source
from integrations.sources.base import Follow, OutOfReach, Renamed
from integrations.sources.vercel.account import BLOCKED, PAUSED, REMOVED
from integrations.standins.server import Fault
from integrations.standins.vercel import PERSON_NAME, TEAM, TEAM_NAME, Code, add_deployment
from integrations.tables import Connection
from tests.builders import reread
from tests.conftest import Outside
from tests.integrations.recorded import vercel

pytestmark = pytest.mark.usefixtures("store")

SLOWTIDE = "prj_SlowtideDemo"


@pytest.fixture
def now(outside: Outside) -> datetime:
    return timezone.now()


def come_back(outside: Outside, now: datetime, user: str = "1", **answer: str) -> Any:
    return source.finish(user, answer, {"callback_url": outside.vercel.callback_url()}, now)


def connect(outside: Outside, now: datetime, team: str = "", user: str = "1") -> Connection:
    code, _ = outside.vercel.install(team)
    found: Connection = come_back(outside, now, user, code=code).connection
    return found


def follow(connection: Connection | None, now: datetime, days: int = 30) -> Follow:
    return Follow(SLOWTIDE, "slowtide", connection, now - timedelta(days=days))


# -- connecting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("team", "name"), [("", PERSON_NAME), (TEAM, TEAM_NAME)])
def test_an_account_is_connected_once_it_was_read(
    outside: Outside, now: datetime, team: str, name: str
) -> None:
    code, made = outside.vercel.install(team)
    done = come_back(outside, now, code=code, configurationId=made.id)
    account = done.connection
    assert (account.key, account.account_name) == (f"vercel#{made.id}", name)
    assert account.details["teamId"] == team
    read = f"/vercel-api/v1/integrations/configuration/{made.id}"
    assert outside.standins.count("GET", read) == 1


def test_a_no_connects_nothing(outside: Outside, now: datetime) -> None:
    for answer in ({"error": "access_denied"}, {}, {"code": ""}):
        with pytest.raises(Cancelled):
            come_back(outside, now, **answer)
    assert connections.of_provider("1", "vercel") == []


def test_a_code_is_good_once_and_for_half_an_hour(outside: Outside, now: datetime) -> None:
    code, _ = outside.vercel.install()
    come_back(outside, now, code=code)
    late, _ = outside.vercel.install()
    for old in (code, "made-up"):
        with pytest.raises(ExpiredLink):
            come_back(outside, now, code=old)
    outside.vercel.clock = lambda: now + timedelta(minutes=31)
    with pytest.raises(ExpiredLink):
        come_back(outside, now, code=late)


def test_another_installation_in_the_address_is_not_believed(
    outside: Outside, now: datetime
) -> None:
    code, _ = outside.vercel.install()
    with pytest.raises(Refused):
        come_back(outside, now, code=code, configurationId="icfg_somebody_elses")
    assert connections.of_provider("1", "vercel") == []


@pytest.mark.parametrize(
    "fault", [Fault(status=503), Fault(hang_up=True), Fault(status=200, body="<html>")]
)
def test_what_cannot_be_read_is_not_connected(
    outside: Outside, now: datetime, fault: Fault
) -> None:
    code, _ = outside.vercel.install()
    fault.path = "/vercel-api/v1/.*"
    outside.standins.faults.append(Fault(**vars(fault)))
    with pytest.raises(TryLater):
        come_back(outside, now, code=code)
    assert connections.of_provider("1", "vercel") == []


def test_a_name_that_cannot_be_read_voids_nothing(outside: Outside, now: datetime) -> None:
    outside.standins.faults.append(Fault(path="/vercel-api/v2/user", status=500))
    assert connect(outside, now).account_name == "usr_slothpostdemo"


def test_only_vercels_own_pages_are_where_it_goes_on(outside: Outside, now: datetime) -> None:
    here = outside.standins.url
    wanted = {
        f"{here}/vercel/done": f"{here}/vercel/done",
        "https://evil.example/": "",
        f"{here}@evil.example/": "",
        f"{here}.evil.example/": "",
        "//evil.example/": "",
        f"{here}\\@evil.example/": "",
        "javascript:alert(1)": "",
        "https://[": "",
        f"{here}[/": "",
        "": "",
    }
    found = {}
    for next_url in wanted:
        code, _ = outside.vercel.install()
        found[next_url] = come_back(outside, now, code=code, next=next_url).next_url
    assert found == wanted


def test_several_installations_of_one_team_keep_their_own_tokens(
    outside: Outside, now: datetime
) -> None:
    first, second = connect(outside, now, TEAM), connect(outside, now, TEAM)
    tokens = [connections.secrets_of(account)["token"] for account in (first, second)]
    assert len(set(tokens)) == 2
    del outside.vercel.configurations[first.account_id]
    with pytest.raises(NeedsReconnect):
        source.check(first, now)
    source.check(second, now)
    assert (bool(reread(first).broken), reread(second).broken) == (True, None)


def test_connecting_again_mends_the_account_with_its_new_token(
    outside: Outside, now: datetime
) -> None:
    account = connect(outside, now)
    connections.mark_broken(account, REMOVED, now)
    installed = outside.vercel.configurations[account.account_id]
    installed.token = "vercel_another"
    outside.vercel.codes["again"] = Code(installed.id, now)
    come_back(outside, now, code="again")
    (found,) = connections.of_provider("1", "vercel")
    assert (found.key, found.broken) == (account.key, None)
    assert connections.secrets_of(found) == {"token": "vercel_another"}


# -- using it --------------------------------------------------------------------------------------


def test_every_project_is_listed_however_many_pages(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    found = source.choices("1", now)
    assert len(found) == 26
    assert {choice.via for choice in found} == {account.key}
    assert {choice.private for choice in found} == {True}


def test_a_teams_projects_are_the_teams(outside: Outside, now: datetime) -> None:
    connect(outside, now, TEAM)
    assert [choice.name for choice in source.choices("1", now)] == ["logbook", "crew"]
    assert source.choices("2", now) == []
    asked = [call for call in outside.standins.calls if call.path.startswith("/vercel-api/v10")]
    assert ["teamId" in call.query.split("&") for call in asked] == [True]


def test_a_paused_team_does_not_hide_what_other_accounts_show(
    outside: Outside, now: datetime
) -> None:
    own, team = connect(outside, now), connect(outside, now, TEAM)
    outside.vercel.pause(outside.vercel.configurations[team.account_id])
    found = source.choices("1", now)
    assert [choice.via for choice in found] == [own.key] * 26
    assert (reread(own).trouble, reread(team).trouble) == (None, PAUSED)


def test_of_more_deployments_than_are_read_the_newest_are_told(
    outside: Outside, now: datetime
) -> None:
    account = connect(outside, now)
    project = outside.vercel.projects[SLOWTIDE]
    project.deployments.clear()
    for n in range(501):
        add_deployment(project, f"Show moon {n}", now - timedelta(minutes=501 - n))
    fetched = source.fetch(follow(account, now), now)
    assert [event.title for event in fetched.events] == [
        f"Show moon {n}" for n in range(500, 0, -1)
    ]
    assert fetched.note == "Of many deployments only the newest were read."
    project.deployments.pop()
    assert source.fetch(follow(account, now), now).note == ""


def test_what_is_asked_for_is_what_webhooks_tell(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    project = outside.vercel.projects[SLOWTIDE]
    at = now.replace(microsecond=0)
    deployment = add_deployment(project, "Show the moon (#7)\n\nIn its phase.", at)
    told = source.parse(
        {
            "id": "evt_1",
            "type": "deployment.promoted",
            "createdAt": int(at.timestamp() * 1000),
            "payload": {
                **outside.vercel.about(project),
                "deployment": {"id": deployment["uid"], **deployment},
            },
        },
        {},
    )
    fetched = source.fetch(follow(account, now), now)
    assert fetched.events[0] == told.events[0]
    assert len(fetched.events) == 3


def test_only_what_is_new_is_asked_for(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    assert len(source.fetch(follow(account, now, days=5), now).events) == 1


def test_what_is_built_and_not_promoted_is_told_once_people_see_it(
    outside: Outside, now: datetime
) -> None:
    account = connect(outside, now)
    project = outside.vercel.projects[SLOWTIDE]
    outside.vercel.clock = lambda: now - timedelta(days=1)
    outside.vercel.stage(project)
    before = source.fetch(follow(account, now, days=2), now)
    assert before.events == ()
    later = replace(follow(account, now, days=0), seen=before.seen)
    assert source.fetch(later, now).seen == before.seen  # it still waits
    outside.vercel.promote(project)  # and the webhook is lost
    after = source.fetch(later, now)
    assert [event.title for event in after.events] == ["Show sunrise and sunset"]
    assert after.seen == {}


def test_a_new_name_and_a_project_that_is_gone_are_told(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    outside.vercel.rename(outside.vercel.projects[SLOWTIDE], "fasttide")
    assert source.fetch(follow(account, now), now).upkeep == (Renamed("fasttide"),)
    del outside.vercel.projects[SLOWTIDE]
    (upkeep,) = source.fetch(follow(account, now), now).upkeep
    assert isinstance(upkeep, OutOfReach)
    assert reread(account).broken is None


@pytest.mark.parametrize("status", [403, 404])
def test_a_project_that_is_not_shown_is_out_of_reach_and_the_account_works(
    outside: Outside, now: datetime, status: int
) -> None:
    account = connect(outside, now)
    outside.standins.faults.append(Fault(path=".*/v9/projects/.*", status=status))
    (upkeep,) = source.fetch(follow(account, now), now).upkeep
    assert isinstance(upkeep, OutOfReach)
    assert reread(account).works


def test_without_an_account_no_project_is_shown(outside: Outside, now: datetime) -> None:
    with pytest.raises(NeedsReconnect):
        source.fetch(follow(None, now), now)
    assert outside.standins.calls == []


Use = Callable[[Connection, datetime], object]
USES: list[Use] = [
    lambda account, now: source.choices(account.user_id, now),
    lambda account, now: source.check(account, now),
    lambda account, now: source.renew(account, now),
    lambda account, now: source.fetch(follow(account, now), now),
]


@pytest.mark.parametrize("use", USES, ids=["choices", "check", "renew", "fetch"])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(status=429, headers={"X-RateLimit-Remaining": "0"}), TryLater),
        (Fault(status=500), TryLater),
        (Fault(hang_up=True), TryLater),
        (Fault(status=200, body="<html>"), TryLater),
        (Fault(status=200, body="[]"), TryLater),
        (Fault(status=400), Refused),
    ],
    ids=["429", "500", "hangs up", "html", "another shape", "400"],
)
def test_what_fails_for_now_does_not_break_an_account(
    outside: Outside, now: datetime, use: Use, fault: Fault, kind: type[Failure]
) -> None:
    account = connect(outside, now)
    outside.standins.faults.append(Fault(**{**vars(fault), "times": 9}))
    with pytest.raises(kind):
        use(account, now)
    assert reread(account).broken is None


@pytest.mark.parametrize("use", USES, ids=["choices", "check", "renew", "fetch"])
def test_a_token_that_is_not_taken_any_more_breaks_the_account(
    outside: Outside, now: datetime, use: Use
) -> None:
    account = connect(outside, now)
    outside.vercel.configurations.clear()
    with pytest.raises(NeedsReconnect):
        use(account, now)
    assert reread(account).broken


@pytest.mark.parametrize("use", USES[:1] + USES[3:], ids=["choices", "fetch"])
def test_a_paused_or_blocked_account_is_trouble(outside: Outside, now: datetime, use: Use) -> None:
    account = connect(outside, now)
    outside.vercel.pause(outside.vercel.configurations[account.account_id])
    with pytest.raises(TryLater) as paused:
        use(account, now)
    assert (paused.value.reason, paused.value.after) == (PAUSED, timedelta(days=1))
    assert (reread(account).broken, reread(account).trouble) == (None, PAUSED)
    outside.vercel.pause(outside.vercel.configurations[account.account_id])
    outside.standins.faults.append(Fault(status=402))
    with pytest.raises(TryLater) as blocked:
        use(account, now)
    assert blocked.value.reason == BLOCKED


def test_an_installation_that_is_another_accounts_now_is_removed(
    outside: Outside, now: datetime
) -> None:
    account = connect(outside, now)
    outside.standins.faults.append(Fault(path=".*/configuration/.*", status=403))
    with pytest.raises(NeedsReconnect):
        source.check(account, now)
    assert reread(account).broken == REMOVED


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("is_flat", [False, True], ids=["new shape", "flat shape"])
def test_a_removal_at_vercel_breaks_everybodys_account_of_it_and_no_other(
    outside: Outside, now: datetime, settings: Settings, method: str, is_flat: bool
) -> None:
    settings.VERCEL_CLIENT_SECRET = "new,old"
    account, other = connect(outside, now), connect(outside, now)
    outside.vercel.codes["shared"] = Code(account.account_id, now)
    shared = come_back(outside, now, "2", code="shared").connection
    number = account.account_id
    details = {"configurationId": number} if is_flat else {"configuration": {"id": number}}
    delivery = vercel("integration-configuration.removed") | {"payload": details}
    body = json.dumps(delivery).encode()
    signed = {source.SIGNATURE_HEADER: source.signature(body, "old")}
    answer = Client().generic(method, "/webhooks/vercel/", body, "application/json", headers=signed)
    assert answer.status_code == 200
    found = [reread(each).broken for each in (account, shared, other)]
    assert found == [REMOVED, REMOVED, None]


# -- disconnecting ---------------------------------------------------------------------------------


def test_disconnecting_uninstalls_it_and_says_nothing_more(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    assert source.disconnect(account, now) == ""
    assert (outside.vercel.configurations, reread(account)) == ({}, None)


def test_what_is_gone_at_vercel_already_is_forgotten(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    outside.vercel.configurations.clear()
    assert source.disconnect(account, now) == ""
    assert reread(account) is None


def test_a_token_that_cannot_be_read_any_more_leaves_it_to_the_person_to_remove(
    outside: Outside, now: datetime, settings: Settings
) -> None:
    account = connect(outside, now)
    settings.TOKEN_KEYS = ["another"]
    assert source.disconnect(account, now) == (
        "Vercel did not confirm it: remove SlothPost there too, at"
        f" {outside.standins.url}/vercel/dashboard/integrations."
    )
    assert reread(account) is None
    assert account.account_id in outside.vercel.configurations


def test_with_vercel_down_it_is_forgotten_here_and_the_rest_is_said(
    outside: Outside, now: datetime
) -> None:
    account = connect(outside, now)
    outside.standins.faults.append(Fault(status=503))
    assert source.disconnect(account, now).startswith("Vercel did not confirm it: remove")
    assert reread(account) is None
