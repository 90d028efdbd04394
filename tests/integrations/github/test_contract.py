"""What GitHub's contract asks for beside connecting: tokens that end early, pages, names, calls."""

import json
from datetime import datetime, timedelta

import jwt
import pytest
import requests
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from integrations import connections
from integrations.errors import Failure, NeedsReconnect, NotFound, TryLater
from integrations.redeliveries import redeliver
from integrations.sources import github as source
from integrations.sources.base import Renamed
from integrations.sources.github.history import find_repository
from integrations.standins.github import PERSON, SLOWTIDE
from integrations.standins.server import Fault
from tests.builders import reread
from tests.conftest import Outside
from tests.integrations.github.test_account import (
    MINTED,
    USES,
    Use,
    come_back,
    connect,
    events,
    follow,
    installed,
)

pytestmark = pytest.mark.usefixtures("store")

READS = "/github/api/v3/(user|repositor|repos).*"


@pytest.fixture
def now(outside: Outside) -> datetime:
    return timezone.now()


# -- tokens that are refused -----------------------------------------------------------------------


def test_a_new_token_that_is_refused_too_is_not_tried_for_ever(
    outside: Outside, now: datetime
) -> None:
    via = installed(outside, now)
    outside.standins.faults.append(Fault(path=READS, status=401, times=99))
    with pytest.raises(NeedsReconnect):
        source.fetch(follow(via, now), now)
    assert outside.standins.count("POST", MINTED) == 2


@pytest.mark.parametrize("use", USES[:2], ids=["choices", "check"])
@pytest.mark.parametrize(
    ("status", "kind", "broken"),
    [
        (401, NeedsReconnect, "GitHub no longer accepts this account's authorisation."),
        (404, NotFound, None),
    ],
)
def test_a_person_whose_token_is_refused_is_asked_once_and_told_on_their_account(
    outside: Outside,
    now: datetime,
    use: Use,
    status: int,
    kind: type[Failure],
    broken: str | None,
) -> None:
    via = installed(outside, now)
    outside.standins.faults.append(Fault(path=READS, status=status, times=99))
    before = len(outside.standins.calls)
    with pytest.raises(kind):
        use(via, now)
    assert len(outside.standins.calls) == before + 1
    account = connections.find("1", "github#7001")
    assert account is not None
    assert (account.broken, reread(via).broken) == (broken, None)


def test_a_refreshed_token_ends_the_one_before(outside: Outside, now: datetime) -> None:
    account = connect(outside, now)
    before = connections.secrets_of(account)["token"]
    source.renew(account, now)
    assert list(outside.github.user_tokens) == [connections.secrets_of(reread(account))["token"]]
    assert before not in outside.github.user_tokens


def test_a_code_that_was_handed_to_another_address_is_refused(
    outside: Outside, now: datetime
) -> None:
    code = outside.github.code("https://example.com/")
    with pytest.raises(TryLater):
        come_back(outside, now, code=code)
    assert connections.of_provider("1", "github") == []


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 201),
        ({"exp": 900}, 401),
        ({"exp": -1}, 401),
        ({"iat": 100}, 401),
        ({"iss": "another"}, 401),
    ],
    ids=["good", "too long", "lapsed", "not yet", "another app"],
)
def test_an_apps_token_has_to_keep_its_times(
    outside: Outside, now: datetime, settings: Settings, claims: dict[str, int | str], status: int
) -> None:
    outside.github.clock = lambda: now
    made = outside.github.install_for(PERSON)
    at = int(now.timestamp())
    times = {"iat": -60, "exp": 500, **{k: v for k, v in claims.items() if k != "iss"}}
    said = {name: at + int(offset) for name, offset in times.items()}
    said["iss"] = claims.get("iss", settings.GITHUB_APP_ID)
    key = settings.GITHUB_PRIVATE_KEY.replace("\\n", "\n")
    token = jwt.encode(said, key, algorithm="RS256")
    answer = requests.post(
        f"{settings.GITHUB_API_URL}/app/installations/{made.id}/access_tokens",
        headers={"Authorization": f"Bearer {token}"},
        timeout=5,
    )
    assert answer.status_code == status


# -- lists and names -------------------------------------------------------------------------------


def test_history_is_the_same_on_however_many_pages(outside: Outside, now: datetime) -> None:
    whole = events(source.fetch(follow(None, now), now))
    outside.github.most_per_page = 2
    assert events(source.fetch(follow(None, now), now)) == whole


def test_a_list_that_fails_halfway_loses_nothing(outside: Outside, now: datetime) -> None:
    whole = events(source.fetch(follow(None, now), now))
    outside.standins.faults.append(Fault(path=".*/pulls"))
    with pytest.raises(TryLater):
        source.fetch(follow(None, now), now)
    assert events(source.fetch(follow(None, now), now)) == whole


def test_a_renamed_repository_is_found_by_its_old_name_and_read_by_its_number(
    outside: Outside, now: datetime
) -> None:
    outside.github.rename(outside.github.repositories[SLOWTIDE], "fasttide")
    found = find_repository("slothpost-demo/slowtide", now)
    assert found == (str(SLOWTIDE), "slothpost-demo/fasttide")
    read = source.fetch(follow(None, now), now)
    assert read.upkeep == (Renamed("slothpost-demo/fasttide"),)


# -- calls -----------------------------------------------------------------------------------------


def test_a_call_names_the_installation_that_it_goes_through(
    outside: Outside, now: datetime
) -> None:
    made = outside.github.install_for(PERSON)
    outside.github.merge(outside.github.repositories[SLOWTIDE])
    _, body = outside.github.bodies[outside.github.deliveries[0]["guid"]]
    assert json.loads(body)["installation"] == {"id": made.id}


@pytest.mark.django_db(transaction=True)
def test_a_call_that_was_missed_arrives_when_it_is_asked_for_and_is_not_asked_for_again(
    outside: Outside, live_server: LiveServer, settings: Settings
) -> None:
    settings.GITHUB_WEBHOOK_SECRET = "new,old"
    outside.github.merge(outside.github.repositories[SLOWTIDE])  # nobody listens
    outside.standins.site_url = live_server.url
    later = timezone.now() + timedelta(minutes=1)
    assert [redeliver(later), redeliver(later)] == [1, 0]
    assert [d["status_code"] for d in outside.github.deliveries] == [200, 0]
