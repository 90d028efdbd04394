"""What webhooks missed is found by asking, and a source that fails is told of and left in peace."""

import json
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from integrations.sources import SOURCES
from integrations.sources.base import Choice
from integrations.sources.vercel.account import PAUSED
from integrations.standins.github import SLOWTIDE
from integrations.standins.server import Fault
from integrations.tables import Connection
from products import activity, following
from products.tables import Product
from scheduling.fetching import MOST_ATTEMPTS, run_due_fetches
from slothpost_site.moments import from_ms
from tests.builders import make_product, reread
from tests.conftest import Outside

pytestmark = pytest.mark.usefixtures("store")

REPOSITORY = Choice(str(SLOWTIDE), "slothpost-demo/slowtide")


@pytest.fixture
def now(outside: Outside) -> datetime:
    """A moment at which no redeliveries are asked for."""
    moment = timezone.now().replace(minute=7, second=0, microsecond=0)
    outside.github.clock = outside.vercel.clock = lambda: moment
    return moment


def follower(now: datetime, source: str = "github", choice: Choice = REPOSITORY) -> Product:
    product = make_product(now=now)
    following.follow(product, source, choice, now)
    return product


def vercel_account(outside: Outside, now: datetime) -> Connection:
    code, _ = outside.vercel.install()
    kept = {"callback_url": outside.vercel.callback_url()}
    return SOURCES["vercel"].finish("1", {"code": code}, kept, now).connection


def told(product: Product) -> list[str]:
    return sorted(item.title for item in activity.window(product.product_id, timezone.now()))


def test_a_followed_repository_is_read_at_the_next_tick_and_only_once(
    outside: Outside, now: datetime
) -> None:
    product = follower(now)
    first = run_due_fetches(now)
    assert (first.found, first.done, first.failed) == (1, 1, 0)
    assert "Share a tide as a picture" in told(product)
    assert run_due_fetches(now + timedelta(hours=1)).found == 0
    fresh = reread(product)
    assert (fresh.fetch_status, fresh.fetch_at, fresh.fetch_attempts) == (None, None, None)
    assert from_ms(fresh.fetched_at) == now


def test_what_was_shipped_while_nobody_listened_is_found_at_the_next_fetch(
    outside: Outside, now: datetime
) -> None:
    product = follower(now)
    run_due_fetches(now)
    before = told(product)
    outside.github.merge(outside.github.repositories[SLOWTIDE], "Show the moon")  # nobody answers
    later = now + timedelta(hours=2)
    following.ask_for_fetch(product := reread(product), later)
    run_due_fetches(later)
    new = [title for title in told(product) if title not in before]
    assert new == ["Show the moon", "Show the moon (#105)"]


def test_an_unchanged_list_is_not_sent_again(outside: Outside, now: datetime) -> None:
    product = follower(now)
    run_due_fetches(now)
    following.ask_for_fetch(reread(product), now)
    run_due_fetches(now)
    seen = reread(product).fetched["github"]["seen"]
    assert seen["releases"].startswith("W/")


@pytest.mark.parametrize(
    ("fault", "reason", "after"),
    [
        (Fault(status=503), "GitHub has a fault of its own (503).", timedelta(minutes=1)),
        (
            Fault(status=429, headers={"Retry-After": "600"}),
            "GitHub asks us to wait.",
            timedelta(minutes=10),
        ),
        (Fault(hang_up=True), "GitHub did not answer.", timedelta(minutes=1)),
        (
            Fault(status=200, body="<html>Hello</html>"),
            "GitHub answered with something that is no answer.",
            timedelta(minutes=1),
        ),
    ],
    ids=["503", "429", "hangs up", "html"],
)
def test_a_source_that_fails_for_now_is_asked_again_later_and_nothing_is_lost(
    outside: Outside, now: datetime, fault: Fault, reason: str, after: timedelta
) -> None:
    product = follower(now)
    outside.standins.faults.append(fault)
    report = run_due_fetches(now)
    assert (report.found, report.done, report.failed) == (1, 0, 1)
    fresh = reread(product)
    assert fresh.fetched["github"]["error"] == reason
    assert from_ms(fresh.fetch_at) == now + after
    assert run_due_fetches(now + after - timedelta(seconds=1)).found == 0
    assert run_due_fetches(now + after).done == 1
    assert "error" not in reread(product).fetched["github"]
    assert "Share a tide as a picture" in told(product)


def test_a_source_that_never_answers_is_left_in_peace_until_the_next_draft(
    outside: Outside, now: datetime
) -> None:
    product = follower(now)
    outside.standins.faults.append(Fault(status=500, times=1000))
    ticks = 0
    while reread(product).fetch_at is not None:
        run_due_fetches(from_ms(reread(product).fetch_at))
        ticks += 1
    assert ticks == MOST_ATTEMPTS + 1
    assert reread(product).fetched["github"]["error"] == "GitHub has a fault of its own (500)."


def test_one_source_that_fails_does_not_keep_the_others_from_being_read(
    outside: Outside, now: datetime
) -> None:
    product = follower(now)
    following.follow(product, "app_store", Choice("6441234567", "Slowtide"), now)
    outside.standins.faults.append(Fault(path="/github/.*", status=503))
    run_due_fetches(now)
    fetched = reread(product).fetched
    assert ("error" in fetched["github"], "error" in fetched["app_store"]) == (True, False)
    assert "Slowtide 1.5.0" in told(product)


def test_a_repository_that_is_gone_or_private_by_now_is_said_and_not_asked_again(
    outside: Outside, now: datetime
) -> None:
    product = follower(now)
    outside.github.repositories[SLOWTIDE].private = True
    run_due_fetches(now)
    fresh = reread(product)
    assert fresh.fetched["github"]["error"] == (
        "GitHub no longer shows slothpost-demo/slowtide to everybody: it was deleted or made"
        " private."
    )
    assert fresh.fetch_at is None


def test_a_new_name_is_kept(outside: Outside, now: datetime) -> None:
    product = follower(now)
    outside.github.rename(outside.github.repositories[SLOWTIDE], "fasttide")
    run_due_fetches(now)
    assert reread(product).github_repo_name == "slothpost-demo/fasttide"


def test_an_account_that_was_revoked_breaks_and_the_page_of_the_product_says_so(
    outside: Outside, now: datetime
) -> None:
    account = vercel_account(outside, now)
    choice = Choice("prj_SlowtideDemo", "slowtide", via=account.key, private=True)
    product = follower(now, "vercel", choice)
    outside.vercel.configurations.clear()
    run_due_fetches(now)
    assert reread(account).broken == "Vercel no longer accepts this installation: install it again."
    calls = len(outside.standins.calls)
    following.ask_for_fetch(reread(product), now)
    run_due_fetches(now)
    assert len(outside.standins.calls) == calls  # nobody is asked for what nobody may see
    assert reread(product).fetched["vercel"]["error"] == (
        "The account that shows it has to be connected again."
    )
    code, made = outside.vercel.install()
    made.id, made.token = account.account_id, "a new one"
    outside.vercel.configurations = {made.id: made}
    outside.vercel.codes[code].configuration = made.id
    kept = {"callback_url": outside.vercel.callback_url()}
    SOURCES["vercel"].finish("1", {"code": code}, kept, now)
    following.ask_for_fetch(reread(product), now)
    run_due_fetches(now)
    assert told(product) == [
        "Load tide tables without a connection",
        "Warn when the wind stands against the tide",
    ]


def test_a_paused_installation_is_trouble_and_not_the_end(outside: Outside, now: datetime) -> None:
    account = vercel_account(outside, now)
    choice = Choice("prj_SlowtideDemo", "slowtide", via=account.key, private=True)
    product = follower(now, "vercel", choice)
    outside.vercel.pause(outside.vercel.configurations[account.account_id])
    run_due_fetches(now)
    fresh = reread(account)
    assert (fresh.broken, fresh.trouble) == (None, PAUSED)
    assert reread(product).fetched["vercel"]["error"] == PAUSED
    assert reread(product).fetch_at is None  # a day is too long: the next draft asks again


# -- each source waits for itself ------------------------------------------------------------------


def ask(product: Product, now: datetime) -> Product:
    """What a draft does, and the tick behind it."""
    following.ask_for_fetch(reread(product), now)
    run_due_fetches(now)
    found: Product = reread(product)
    return found


def both(outside: Outside, now: datetime) -> Product:
    """A product with an account at Vercel that is paused for days, and a repository."""
    account = vercel_account(outside, now)
    choice = Choice("prj_SlowtideDemo", "slowtide", via=account.key, private=True)
    product = follower(now, "vercel", choice)
    following.follow(product, "github", REPOSITORY, now)
    outside.vercel.pause(outside.vercel.configurations[account.account_id])
    return product


def asked(outside: Outside, path: str) -> int:
    return outside.standins.count("GET", f"/{path}/.*")


def test_a_source_that_pauses_for_a_day_does_not_silence_the_others(
    outside: Outside, now: datetime
) -> None:
    product = both(outside, now)
    run_due_fetches(now)
    assert "Share a tide as a picture" in told(product)
    later = now + timedelta(hours=2)
    outside.github.clock = lambda: later
    outside.github.merge(outside.github.repositories[SLOWTIDE], "Show the moon")  # nobody answers
    fresh = ask(product, later)
    assert "Show the moon" in [i.title for i in activity.window(product.product_id, later)]
    assert (fresh.fetched["vercel"]["error"], fresh.fetch_at) == (PAUSED, None)


def test_a_source_that_pauses_is_asked_again_when_it_said_and_no_sooner(
    outside: Outside, now: datetime
) -> None:
    product = both(outside, now)
    run_due_fetches(now)
    before = asked(outside, "vercel-api")
    ask(product, now + timedelta(hours=23))
    assert asked(outside, "vercel-api") == before
    outside.vercel.pause(next(iter(outside.vercel.configurations.values())))  # taken over
    fresh = ask(product, now + timedelta(days=1))
    assert fresh.fetched["vercel"].keys() == {"since", "seen", "at"}


def test_the_others_are_asked_again_with_a_source_that_needs_it_soon(
    outside: Outside, now: datetime
) -> None:
    product = both(outside, now)
    limited = Fault("/github/.*", status=429, headers={"Retry-After": "600"})
    outside.standins.faults.append(limited)
    run_due_fetches(now)
    soon = now + timedelta(minutes=10)
    assert from_ms(reread(product).fetch_at) == soon
    run_due_fetches(soon)
    fresh = reread(product)
    assert (fresh.fetch_at, fresh.fetched["github"].get("error")) == (None, None)
    assert "Share a tide as a picture" in told(product)


def test_a_wait_counts_for_what_was_followed_then(outside: Outside, now: datetime) -> None:
    product = both(outside, now)
    run_due_fetches(now)
    account = vercel_account(outside, now)
    choice = Choice("prj_SlowtideDemo", "slowtide", via=account.key, private=True)
    following.follow(reread(product), "vercel", choice, now)
    run_due_fetches(now)
    assert "error" not in reread(product).fetched["vercel"]


# -- a fault of ours -------------------------------------------------------------------------------


class OutOfOrder:
    """A source that fails in a way that nobody foresaw."""

    LABEL = "App Store"

    def fetch(self, follow: object, now: datetime) -> object:
        raise ZeroDivisionError("a fault of ours")


def test_a_source_that_fails_unforeseen_is_told_of_and_left_in_peace_in_the_end(
    outside: Outside, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = follower(now)
    following.follow(product, "app_store", Choice("6441234567", "Slowtide"), now)
    monkeypatch.setitem(SOURCES, "app_store", OutOfOrder())
    assert run_due_fetches(now).failed == 1
    assert "Share a tide as a picture" in told(product)
    ticks = 1
    while (at := reread(product).fetch_at) is not None:
        run_due_fetches(from_ms(at))
        ticks += 1
    assert ticks == MOST_ATTEMPTS + 1
    fetched = reread(product).fetched
    assert fetched["app_store"] == {
        "since": fetched["app_store"]["since"],
        "error": "App Store could not be read, by a fault of ours: it is tried again.",
    }
    assert fetched["github"].keys() == {"since", "seen", "at"}


def test_an_answer_that_nobody_expects_is_taken_or_told_of(outside: Outside, now: datetime) -> None:
    product = follower(now, "app_store", Choice("6441234567", "Slowtide"))
    body = json.dumps(
        {
            "results": [
                {
                    "trackId": 6441234567,
                    "trackName": "A" * 500_000,
                    "version": "9" * 5_000,
                    "currentVersionReleaseDate": now.isoformat(),
                    "releaseNotes": "x" * 500_000,
                }
            ]
        }
    )
    outside.standins.faults.append(Fault("/itunes/lookup", status=200, body=body))
    assert run_due_fetches(now).done == 1
    fresh = reread(product)
    assert (fresh.fetch_at, len(fresh.app_store_name)) == (None, 200)


def test_two_ticks_at_once_ask_a_source_once(outside: Outside, now: datetime) -> None:
    product = follower(now)
    stale = reread(product)
    following.claim_fetch(stale, until=now + timedelta(minutes=5))
    assert run_due_fetches(now).found == 0
    assert outside.standins.calls == []
    assert run_due_fetches(now + timedelta(minutes=5)).done == 1  # whoever claimed it died


def test_what_is_followed_anew_meanwhile_is_asked_too(outside: Outside, now: datetime) -> None:
    product = follower(now)
    claimed = reread(product)
    following.claim_fetch(claimed, until=now + timedelta(minutes=5))
    following.follow(reread(product), "app_store", Choice("6441234567", "Slowtide"), now)
    with pytest.raises(following.Conflict):
        following.end_fetch(claimed, {"github": {"since": 1}}, now)
    assert run_due_fetches(now).done == 1
    assert "Slowtide 1.5.0" in told(product)


def test_a_private_project_is_read_by_whoever_has_shown_that_it_is_theirs(
    outside: Outside, now: datetime
) -> None:
    stranger = make_product("2", now=now)
    account = vercel_account(outside, now)
    choice = Choice("prj_SlowtideDemo", "slowtide", via=account.key, private=True)
    following.follow(stranger, "vercel", choice, now)  # a key that is another's opens nothing
    run_due_fetches(now)
    assert told(stranger) == []


def test_failed_deliveries_are_asked_for_again_four_times_an_hour(
    outside: Outside, now: datetime
) -> None:
    outside.github.merge(outside.github.repositories[SLOWTIDE], "Show the moon")
    run_due_fetches(now)
    assert len(outside.github.deliveries) == 1
    quarter_past = now.replace(minute=15)
    outside.github.clock = lambda: quarter_past
    run_due_fetches(quarter_past)
    assert [d["guid"] for d in outside.github.deliveries] == [
        outside.github.deliveries[0]["guid"]
    ] * 2
