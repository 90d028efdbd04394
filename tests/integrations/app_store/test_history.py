"""What happened to an app, by its owner's key and as everybody sees it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from integrations.errors import NeedsReconnect, Refused, TryLater
from integrations.sources import app_store as source
from integrations.sources.base import Event, Fetched, Follow, OutOfReach, Renamed
from integrations.standins import app_store as standin
from integrations.standins.server import Fault
from integrations.tables import Connection
from products import activity
from tests.builders import make_product
from tests.integrations.app_store.conftest import APP, NOW, World

pytestmark = pytest.mark.usefixtures("store")

API = "/app-store-connect/v1/.*"
TWO_WEEKS = timedelta(days=14)


def fetch(
    connection: Connection | None = None,
    since: datetime = NOW - TWO_WEEKS,
    seen: Mapping[str, str] | None = None,
    name: str = "Slowtide",
    now: datetime = NOW,
) -> Fetched:
    return source.fetch(Follow(APP, name, connection, since, seen or {}), now)


def of_kind(fetched: Fetched, kind: str) -> list[Event]:
    return [event for event in fetched.events if event.kind == kind]


def in_store(version: str, notes: str, days_ago: int) -> Event:
    return Event(
        source="app_store",
        kind="version",
        id=f"version:{APP}:{version}",
        occurred_at=NOW - timedelta(days=days_ago),
        title=f"Slowtide {version}",
        body=notes,
        link=f"https://apps.apple.com/app/id{APP}",
        version=version,
        refs=(f"version:{version}",),
        stage="in the store",
    )


# -- one fact by every road ------------------------------------------------------------------------


def test_a_version_is_the_same_story_by_key_and_by_the_store(world: World) -> None:
    expected = in_store("1.5.0", "Dark mode follows the system.", days_ago=2)
    (by_key, *_) = fetch(world.connection()).events
    assert by_key == expected
    assert fetch().events == (expected,)


def test_a_webhook_has_the_same_version_fetched(world: World) -> None:
    connection = world.connection()
    hook = source.hook_of("1", APP)
    url, (secret, *_) = f"{world.standins.url}/webhooks/{hook}/", source.hook_secrets(hook)
    source.set_up_webhook(connection, APP, url, secret, NOW)
    seen = fetch(connection).seen
    world.connect.release(APP, world.connect.put_in_review(APP, "1.6.0", "Widgets.").id)
    told = source.parse(world.receiver.received[-1].json(), {})
    assert told.events == ()  # it does not say which version
    expected = (in_store("1.6.0", "Widgets.", days_ago=0),)
    since = NOW - timedelta(hours=1)
    assert fetch(connection, since, seen).events == expected
    assert fetch(None, since, seen).events == expected


def test_a_number_on_two_platforms_is_one_version(world: World) -> None:
    found = of_kind(fetch(world.connection()), "version")
    assert [(event.version, event.stage) for event in found] == [
        ("1.5.0", "in the store"),
        ("1.4.1", "in the store"),
        ("1.4.0", "in the store"),
    ]


def test_a_version_is_out_when_it_is_out_on_one_platform(world: World) -> None:
    mac = world.connect.put_in_review(APP, "1.6.0", "Widgets.", "MAC_OS")
    phone = world.connect.put_in_review(APP, "1.6.0", "Widgets.")
    world.connect.release(APP, phone.id)
    assert mac.state == "IN_REVIEW"
    (event, *_) = of_kind(fetch(world.connection()), "version")
    assert (event.version, event.stage, event.ignored) == ("1.6.0", "in the store", "")


# -- not in the store yet --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "stage", "ignored"),
    [
        ("WAITING_FOR_REVIEW", "in review", "not in the store yet (waiting for review)"),
        ("IN_REVIEW", "in review", "not in the store yet (in review)"),
        (
            "PENDING_DEVELOPER_RELEASE",
            "in review",
            "not in the store yet (pending developer release)",
        ),
        ("REJECTED", "", "not in the store yet (rejected)"),
        ("PREPARE_FOR_SUBMISSION", "", "not in the store yet (prepare for submission)"),
        ("READY_FOR_DISTRIBUTION", "in the store", ""),
        ("READY_FOR_SALE", "in the store", ""),
        ("REPLACED_WITH_NEW_VERSION", "in the store", ""),
    ],
)
def test_a_version_is_a_story_once_people_can_have_it(
    world: World, state: str, stage: str, ignored: str
) -> None:
    world.connect.put_in_review(APP, "1.6.0", "Widgets.").state = state
    (event, *_) = of_kind(fetch(world.connection()), "version")
    assert (event.version, event.stage, event.ignored) == ("1.6.0", stage, ignored)


def test_nobody_but_its_owner_hears_of_a_version_in_review(world: World) -> None:
    world.connect.put_in_review(APP, "1.6.0", "Widgets.")
    assert [event.version for event in fetch().events] == ["1.5.0"]


# -- since when ------------------------------------------------------------------------------------


def test_only_what_happened_since_is_told(world: World) -> None:
    connection = world.connection()
    since = NOW - timedelta(days=3)
    assert [event.title for event in fetch(connection, since).events] == [
        "Slowtide 1.5.0",
        "5 of 5: Dark at last",
    ]
    assert fetch(None, NOW - timedelta(days=1)).events == ()


def test_a_version_made_long_ago_is_told_when_it_comes_out(world: World) -> None:
    version = world.connect.put_in_review(APP, "1.6.0", "Widgets.")
    version.created = NOW - timedelta(days=60)
    since, connection = NOW - timedelta(hours=1), world.connection()
    assert fetch(connection, since).events == ()
    world.connect.release(APP, version.id)
    assert fetch(connection, since).events == (in_store("1.6.0", "Widgets.", days_ago=0),)


@pytest.mark.parametrize("in_store_says", [Fault("/itunes/lookup", status=403), None])
def test_a_version_that_the_store_does_not_show_yet_is_dated_by_when_it_was_found(
    world: World, in_store_says: Fault | None
) -> None:
    """Its lookup may be a day behind, or ask us to wait, or have the app in other countries."""
    version = world.connect.put_in_review(APP, "1.6.0", "Widgets.")
    version.created = NOW - timedelta(days=60)
    connection = world.connection()
    seen = fetch(connection).seen
    assert seen == {"live": "1.5.0"}
    world.connect.release(APP, version.id)
    world.app.countries = ("jp",)
    world.standins.faults = [in_store_says] if in_store_says else []
    found = fetch(connection, NOW - timedelta(hours=1), seen)
    assert found.events == (in_store("1.6.0", "Widgets.", days_ago=0),)
    assert found.seen == {"live": "1.5.0 1.6.0"}  # 1.5.0 is still what Macs get
    assert fetch(connection, NOW - timedelta(hours=1), found.seen).events == ()


def test_a_version_that_a_cache_kept_from_us_is_told_late(world: World) -> None:
    since = NOW - timedelta(hours=1)
    found = fetch(None, since, {"live": "1.4.1"})
    assert found.events == (in_store("1.5.0", "Dark mode follows the system.", days_ago=2),)
    assert fetch(None, since, found.seen).events == ()


# -- reviews and texts -----------------------------------------------------------------------------


def test_reviews_are_told_without_their_writers_and_are_no_stories(world: World) -> None:
    newest, *_ = of_kind(fetch(world.connection()), "review")
    assert newest == Event(
        source="app_store",
        kind="review",
        id="review:review-3",
        occurred_at=NOW - timedelta(days=1),
        title="5 of 5: Dark at last",
        body="Thank you for dark mode.",
        link=f"https://apps.apple.com/app/id{APP}",
        ignored="a review: yours to tell",
    )


def test_reviews_are_read_back_to_since_and_no_further(world: World) -> None:
    world.app.reviews = [
        standin.Review(f"r{n}", 4, f"Review {n}", "", NOW - timedelta(hours=n)) for n in range(10)
    ]
    world.connect.most_per_page = 2
    found = of_kind(fetch(world.connection(), NOW - timedelta(hours=4)), "review")
    assert [event.id for event in found] == [f"review:r{n}" for n in range(5)]
    assert world.standins.count("GET", ".*/customerReviews") == 3


def test_a_key_that_may_not_read_reviews_still_reads_versions(world: World) -> None:
    connection = world.connection()
    world.key.may_read_reviews = False
    found = fetch(connection)
    assert [event.kind for event in found.events] == ["version"] * 3
    assert found.note.startswith("This key's role may not read reviews")


@pytest.mark.parametrize(
    ("notes", "body"),
    [
        ({"de-DE": "Neu", "en-US": "New"}, "New"),
        ({"de-DE": "Neu", "en-US": ""}, "Neu"),
        ({}, ""),
    ],
)
def test_release_notes_come_in_the_apps_own_language_if_they_can(
    world: World, notes: dict[str, str], body: str
) -> None:
    for version in world.app.versions:
        version.notes = notes
    assert fetch(world.connection()).events[0].body == body


# -- names, countries, and what is gone ------------------------------------------------------------


def test_an_app_with_a_new_name_is_noticed_by_both_roads(world: World) -> None:
    for connection in (world.connection(), None):
        found = fetch(connection, name="Tideslow")
        assert found.upkeep == (Renamed("Slowtide"),)
        assert found.events[0].title == "Tideslow 1.5.0"  # one title for the fact, whoever asks


@pytest.mark.parametrize(
    ("name", "version", "kept"),
    [
        ("A" * 500_000, "2.0", "2.0"),
        ("Slowtide", "9" * 5_000, "9" * 49 + "…"),
        ("Slowtide", "9." * 3_000, "9." * 24 + "9…"),
        ("Slowtide", " 2.0\nbeta ", "2.0 beta"),
    ],
)
def test_what_is_called_as_nobody_calls_it_is_cut(
    world: World, name: str, version: str, kept: str
) -> None:
    newest = world.app.in_store()
    assert newest is not None
    world.app.name, newest.text = name, version
    product = make_product(now=NOW)
    for connection in (world.connection(), None):
        found = fetch(connection, seen={"live": "1.4.1"})
        assert found.events[0].version == kept
        assert all(len(upkeep.name) == 200 for upkeep in found.upkeep)
        activity.record_all(product, found.events, NOW)
    assert len(activity.list_for(product.product_id).items[0].title) <= 300


def test_the_country_of_the_link_is_asked(world: World) -> None:
    world.app.countries = ("de",)
    found = fetch(seen={"country": "de"})
    assert [event.version for event in found.events] == ["1.5.0"]
    assert found.seen == {"country": "de", "live": "1.5.0"}


def test_an_app_that_a_country_does_not_show_is_out_of_reach(world: World) -> None:
    world.app.countries = ()
    reason = "The App Store of the country “us” does not show this app."
    assert fetch().upkeep == (OutOfReach(reason),)


def test_an_app_that_the_key_does_not_show_is_out_of_reach(world: World) -> None:
    connection = world.connection()
    world.connect.apps.clear()
    found = fetch(connection, seen={"live": "1.5.0"})
    reason = "App Store Connect no longer shows this app to your key."
    assert found == Fetched(seen={"live": "1.5.0"}, upkeep=(OutOfReach(reason),))


# -- when it fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [".*/apps/[0-9]+", ".*Versions", ".*Localizations", ".*Reviews"])
@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 429, "headers": {"Retry-After": "60"}},
        {"hang_up": True},
        {"status": 200, "body": "<html>Soon back</html>"},
        {"status": 200, "body": '{"data": [{"id": "v1", "attributes": 5}]}'},
    ],
    ids=["500", "429", "hang up", "HTML", "odd"],
)
def test_a_fetch_that_fails_half_way_is_tried_later(
    world: World, path: str, fault: dict[str, object]
) -> None:
    connection = world.connection()
    world.standins.faults = [Fault(path, **fault)]  # type: ignore[arg-type]
    with pytest.raises(TryLater):
        fetch(connection)
    assert len(of_kind(fetch(connection), "version")) == 3
    assert connection.works


def test_a_403_says_what_is_missing(world: World) -> None:
    connection = world.connection()
    world.key.agreement_unsigned = True
    with pytest.raises(Refused) as failure:
        fetch(connection)
    assert "sign an agreement" in failure.value.reason


def test_a_revoked_key_needs_its_owner(world: World) -> None:
    connection = world.connection()
    del world.connect.keys[standin.KEY_ID]
    with pytest.raises(NeedsReconnect):
        fetch(connection)
    assert not connection.works


@pytest.mark.parametrize(
    "fault",
    [{"status": 403}, {"status": 429}, {"status": 500}, {"hang_up": True}],
    ids=["403", "429", "500", "hang up"],
)
def test_a_store_that_does_not_answer_is_asked_later(
    world: World, fault: dict[str, object]
) -> None:
    world.standins.faults = [Fault("/itunes/lookup", **fault)]  # type: ignore[arg-type]
    with pytest.raises(TryLater):
        fetch()
    assert len(fetch().events) == 1
