"""One fact is one activity, whoever tells it and however often, and says what is known of it."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrations.sources.base import Event
from products import activity, catalogue, stories
from products.tables import Activity, Product
from slothpost_site.dynamo import change
from tests.builders import NOW, make_event, make_product, make_story, reread
from tests.conftest import empty_tables

pytestmark = pytest.mark.usefixtures("store")

TOKEN = "ghp_" + "0123456789" * 4
MERGE, COMMIT, PREVIEW_OF = "sha:" + "a" * 40, "sha:" + "b" * 40, "sha:" + "c" * 40


def of(product: Product) -> list[Activity]:
    return activity.list_for(product.product_id).items


def recorded(*events: Event, **product: Any) -> Activity:
    """What is known of one fact after these events."""
    followed = make_product()
    if product:
        change(followed, None, **product)
    activity.record_all(followed, events, NOW)
    [item] = of(followed)
    return item


def test_two_events_about_one_fact_with_two_times_are_one_activity() -> None:
    product = make_product()
    assert activity.record(product.product_id, make_event(), NOW)
    later = make_event(occurred_at=NOW - timedelta(hours=3))
    assert activity.record(product.product_id, later, NOW) is None
    assert [item.occurred_at for item in of(product)] == [
        (NOW - timedelta(hours=3)).timestamp() * 1000
    ]


def test_a_record_broken_off_between_its_two_writes_is_completed_by_the_next() -> None:
    product = make_product()
    activity.record(product.product_id, make_event(), NOW)
    of(product)[0].delete()
    assert activity.record(product.product_id, make_event(occurred_at=NOW), NOW)
    assert len(of(product)) == 1


def test_what_happened_in_the_future_happened_now() -> None:
    product = make_product()
    event = make_event(occurred_at=NOW + timedelta(days=900))
    activity.record(product.product_id, event, NOW)
    assert of(product)[0].key.startswith("20260105T120000Z#")


def test_what_was_recorded_is_said_in_words() -> None:
    product = make_product()
    events = [make_event(), make_event(id="pr:8"), make_event(id="pr:9", ignored="a chore")]
    assert activity.record_all(product, events, NOW) == "2 stories, 1 ignored"
    assert activity.record_all(product, events, NOW) == "3 known already"
    noise = [make_event(id="pr:10", ignored="a chore")]
    assert activity.record_all(product, noise, NOW) == "ignored: a chore"


def test_a_verdict_can_be_overruled_and_overruled_again() -> None:
    item = make_story(make_product(), ignored="a chore")
    activity.tell(item, "ignored: a chore", NOW)
    assert (reread(item).ignored, reread(item).overruled) == (None, "was ignored: a chore")
    activity.leave_out(item)
    assert (reread(item).ignored, reread(item).story_at) == ("you said so", None)


# -- what several tellings of one fact say together ------------------------------------------------


def test_the_refs_of_every_road_are_kept() -> None:
    item = recorded(make_event(refs=("pr:7",)), make_event(refs=(MERGE, "pr:7")))
    assert item.refs == ["pr:7", MERGE]


@pytest.mark.parametrize("turned", [False, True])
def test_a_later_stage_decides_and_fills_what_was_empty(turned: bool) -> None:
    events = [
        make_event(kind="version", stage="in review", ignored="not in the store yet", link=""),
        make_event(kind="version", stage="in the store", body="Maps."),
    ]
    item = recorded(*(reversed(events) if turned else events))
    assert (item.stage, item.ignored, item.body) == ("in the store", None, "Maps.")
    assert item.link == "https://github.com/acme/app/pull/7"
    assert item.story_at is not None


@pytest.mark.parametrize("turned", [False, True])
def test_within_one_stage_a_reason_to_ignore_wins(turned: bool) -> None:
    events = [make_event(), make_event(ignored="labelled “nopost”"), make_event(ignored="tests")]
    item = recorded(*(reversed(events) if turned else events))
    assert (item.ignored, item.story_at) == ("labelled “nopost”", None)


def test_a_persons_verdict_stands_whatever_is_told_afterwards() -> None:
    product = make_product()
    item = make_story(product, ignored="a chore")
    activity.tell(item, "ignored: a chore", NOW)
    activity.record(product.product_id, make_event(ignored="tests", stage="live"), NOW)
    assert (reread(item).ignored, reread(item).stage) == (None, "live")


# -- what its author says --------------------------------------------------------------------------


def test_its_authors_own_words_make_a_story_of_a_chore() -> None:
    item = recorded(make_event(body="Tidy.\r\nPost: It starts faster.", ignored="a chore"))
    assert (item.said, item.ignored) == ("It starts faster.", None)


@pytest.mark.parametrize("no", ["no", "None.", "skip"])
def test_its_author_can_say_that_it_is_no_story(no: str) -> None:
    item = recorded(make_event(body=f"post: {no}"))
    assert (item.said, item.ignored) == (None, "its author said so")


@pytest.mark.parametrize("reason", ["labelled “nopost”", "made by a bot (renovate)"])
def test_a_refusal_is_not_undone_by_words_for_a_post(reason: str) -> None:
    assert recorded(make_event(body="Post: Buy this.", ignored=reason)).ignored == reason


def test_what_a_template_says_of_posts_is_nobodys_word() -> None:
    assert recorded(make_event(body="<!--\nPost: one line for readers\n-->")).said is None


def test_what_it_takes_back_mends_and_names_is_known() -> None:
    revert = make_event(title='Revert "Add maps (#5)" (#7)', body="Reverts acme/app#5")
    assert recorded(revert).about == {"reverts": ["pr:5", "title:add maps"]}
    fix = make_event(body=f"Fixes #5 and the regression from {'b' * 3}1{'b' * 6}.")
    assert recorded(fix).about == {"fixes": ["pr:5", "sha:bbb1bbbbbb"]}
    notes = "* Maps by @octo-dev in https://github.com/acme/app/pull/5\n* A fix (#6)"
    release = make_event(kind="release", id="release:1", version="v1.5", refs=(), body=notes)
    item = recorded(release)
    assert (item.about, item.refs) == ({"tells": ["pr:5", "pr:6"]}, ["version:1.5.0"])


# -- private and secret ----------------------------------------------------------------------------


def test_of_what_is_private_only_the_title_is_kept() -> None:
    event = make_event(private=True, body="Inner workings.\nPost: Maps are here.")
    item = recorded(event)
    assert (item.title, item.body, item.link) == ("Add a dark theme", None, None)
    assert (item.private, item.said) == (True, "Maps are here.")
    assert recorded(event, private_detail="full").body == event.body


def test_a_secret_is_never_stored() -> None:
    item = recorded(make_event(title=f"Use {TOKEN}", body=f"It is {TOKEN}"))
    assert (item.title, item.body) == ("Use [removed]", "It is [removed]")
    assert item.ignored == "it seems to hold a secret"
    in_body = recorded(make_event(body=f"It is {TOKEN}"))
    assert (in_body.ignored, in_body.body) == (None, "It is [removed]")


# -- the same facts, however they come -------------------------------------------------------------


def fact(kind: str, key: str, **fields: Any) -> Event:
    return make_event(kind=kind, id=key, **{"refs": (), **fields})


def facts() -> list[Event]:
    """A change and a version of a product, by webhook and by what is fetched."""
    notes = "* Add a dark theme in https://github.com/acme/app/pull/7"
    early, late = NOW - timedelta(days=2), NOW - timedelta(days=1)
    pull = {"refs": ("pr:7", MERGE), "occurred_at": early, "stage": "merged"}
    ready = {"source": "vercel", "refs": (MERGE,), "occurred_at": late}
    store = {"source": "app_store", "version": "1.5", "refs": ("version:1.5",)}
    return [
        fact("merge", "pr:7", **pull),
        fact("merge", "pr:7", **pull, body="Post: A dark theme is here."),
        fact("merge", "pr:8", refs=("pr:8",), title="Add a map", ignored="labelled “nopost”"),
        fact("merge", "pr:8", refs=("pr:8",), title="Add a map"),
        fact("commit", "commit:1", refs=(COMMIT,), title="wip", ignored="unfinished work"),
        fact("commit", "commit:1", refs=(COMMIT, "pr:7"), title="wip", ignored="unfinished work"),
        fact("commit", "commit:2", refs=(MERGE,), title="Add a dark theme (#7)"),
        fact("release", "prerelease:1", refs=("tag:v1.5",), ignored="a prerelease"),
        fact("release", "release:1", refs=("tag:v1.5",), version="v1.5", title="Summer"),
        fact(
            "release", "release:1", refs=("tag:v1.5",), version="v1.5", title="Summer", body=notes
        ),
        fact("tag", "tag:v1.5", refs=("tag:v1.5",), version="v1.5", occurred_at=late),
        fact("tag", "tag:v1.5", refs=("tag:v1.5", MERGE), version="v1.5", occurred_at=early),
        fact("deployment", "preview:1", **ready, ignored="a preview deployment"),
        fact("deployment", "deployment:1", **ready),
        fact("deployment", "deployment:1", **ready, stage="live", private=True),
        fact("version", "version:9:1.5", **store, stage="in review", ignored="not yet"),
        fact("version", "version:9:1.5", **store, stage="in the store", body="A dark theme."),
        fact("merge", "pr:9", refs=("pr:9",), title='Revert "Add a map"', body="Reverts #8"),
    ]


def known(product: Product) -> list[object]:
    """What is known in the end, without the times that are told first, and what is said of it."""

    def name(item: Activity) -> str:
        return str(item.key).partition("#")[2]

    found = activity.window(product.product_id, NOW)
    names = ("kind", "title", "body", "link", "version", "author", "refs", "said", "about")
    more = ("stage", "ignored", "private", "occurred_at")
    items = [[name(item), *(getattr(item, key) for key in (*names, *more))] for item in found]
    verdicts = [
        [
            name(verdict.item), verdict.ignored, verdict.stage,
            verdict.part_of and name(verdict.part_of), [name(i) for i in verdict.everything],
        ]
        for verdict in stories.judge(found)
    ]  # fmt: skip
    return [sorted(items, key=lambda item: str(item[0])), verdicts]


def together(product: Product, shares: Sequence[Sequence[Event]]) -> None:
    """Record each share in a thread of its own, all at once."""
    failed: list[Exception] = []

    def take(share: Sequence[Event]) -> None:
        try:
            activity.record_all(product, share, NOW)
        except Exception as error:  # handed to the test, which fails with it
            failed.append(error)

    threads = [threading.Thread(target=take, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(order=st.permutations([*facts(), *facts()]), threads=st.integers(1, 4))
def test_the_same_facts_in_any_order_twice_and_at_once_are_the_same_activity_and_stories(
    order: list[Event], threads: int
) -> None:
    expected = make_product()
    activity.record_all(expected, facts(), NOW)
    product = make_product()
    together(product, [order[start::threads] for start in range(threads)])
    assert known(product) == known(expected)
    empty_tables()


# -- products --------------------------------------------------------------------------------------


def test_two_products_of_one_name_have_two_addresses() -> None:
    slugs = {make_product(name="Tidewater").slug for _ in range(3)}
    assert len(slugs) == 3
    assert {slug[:9] for slug in slugs} == {"tidewater"}


@pytest.mark.parametrize("name", ["🦥", "   ", "日本語", "../..", "<script>"])
def test_any_name_has_an_address_that_is_safe(name: str) -> None:
    slug = make_product(name=name).slug
    assert slug.replace("-", "").isalnum()
    assert slug.isascii()


def test_the_product_behind_an_address_is_found() -> None:
    product = make_product()
    found = catalogue.find_by_slug(product.slug)
    assert found is not None
    assert found.product_id == product.product_id
    assert catalogue.find_by_slug("nobody") is None


def test_what_two_tellings_date_far_apart_can_be_looked_at() -> None:
    product = make_product()
    late = make_event(occurred_at=NOW)
    early = make_event(occurred_at=NOW - timedelta(days=70))
    for event in (late, early):
        activity.record(product.product_id, event, NOW)
    (item,) = activity.list_for(product.product_id).items
    assert [found.key for found in activity.around(product.product_id, [item])] == [item.key]
