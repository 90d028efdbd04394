"""The second half of the tick: what was approved goes out once, or its owner is told why not."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from integrations.errors import NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import OUTLETS, changelog
from integrations.outlets.base import Approved, Published
from integrations.tables import ChangelogEntry
from products import catalogue, posts
from products.states import State
from products.tables import Post, Product
from scheduling import plans, publishing
from scheduling.publishing import run_due_posts
from slothpost_site.dynamo import change
from slothpost_site.moments import from_ms, to_ms
from tests.builders import (
    NOW,
    approved_post,
    at,
    make_plan,
    make_post,
    make_product,
    planned_product,
    reread,
)

pytestmark = pytest.mark.usefixtures("store")

SLOT = at("2026-01-06 09:00")


class Calls(list[Approved]):
    """A stand-in outlet: it keeps what it was given and answers as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Exception | None = None

    def publish(self, approved: Approved, now: datetime) -> Published:
        self.append(approved)
        if self.answer:
            raise self.answer
        return Published("id-1", "https://bluesky.example/1")


@pytest.fixture
def bluesky() -> Iterator[Calls]:
    """Bluesky as an outlet that can publish and cannot tell a repeat."""
    calls, real = Calls(), OUTLETS["bluesky"]
    OUTLETS["bluesky"] = replace(
        real, publish=calls.publish, needs_account=False, can_find_out=False, numbers=None
    )
    yield calls
    OUTLETS["bluesky"] = real


def entries(product: Product) -> list[ChangelogEntry]:
    return changelog.entries(product.slug).items


def test_an_approved_post_goes_out_at_its_time_exactly_as_approved_and_once() -> None:
    product = make_product()
    text = "Dark theme 🦥\n\n- it is dark"
    post = approved_post(product, slot_at=SLOT, text=text)
    assert run_due_posts(SLOT - timedelta(seconds=1)).found == 0
    assert run_due_posts(SLOT).done == 1
    assert run_due_posts(SLOT + timedelta(minutes=1)).found == 0
    found = reread(post)
    assert (found.state, from_ms(found.published_at)) == (State.PUBLISHED, SLOT)
    assert [entry.text for entry in entries(product)] == [text]
    assert found.permalink.endswith(f"/c/{product.slug}/{entries(product)[0].entry_id}/")


@pytest.mark.parametrize("state", ["awaiting_review", "rejected", "taken back"])
def test_nothing_unapproved_goes_out(state: str) -> None:
    product = make_product()
    post = make_post(product, slot_at=SLOT)
    if state == "rejected":
        posts.reject(post, "no", now=NOW, by="1")
    if state == "taken back":
        posts.approve(post, seen=posts.text_hash(post), send_at=SLOT, now=NOW, by="1")
        posts.take_back(post, now=NOW, by="1")
    run_due_posts(SLOT + timedelta(hours=1))
    assert entries(product) == []


def test_a_text_that_is_not_the_approved_one_returns_to_review() -> None:
    """Somebody wrote past the verbs: what goes out is still only what was approved."""
    product = make_product()
    post = approved_post(product, slot_at=SLOT)
    change(post, None, text="Something else.")
    run_due_posts(SLOT)
    assert (reread(post).state, entries(product)) == (State.AWAITING_REVIEW, [])


def test_ten_minutes_down_is_sent_late_and_two_hours_down_is_asked() -> None:
    product = make_product()
    soon = approved_post(product, slot_at=SLOT)
    run_due_posts(SLOT + timedelta(minutes=10))
    assert reread(soon).state == State.PUBLISHED

    post = approved_post(product, slot_at=SLOT + timedelta(days=1))
    run_due_posts(SLOT + timedelta(days=1, hours=2, minutes=1))
    found = reread(post)
    assert (found.state, len(entries(product))) == (State.MISSED, 1)
    assert "2.0 hours late" in found.reason
    assert [p.key for p in Post.open_for.query("1")] == [post.key]


def test_the_limit_for_late_posts_is_the_products_choice() -> None:
    product = make_product()
    catalogue.describe(product, late_limit_minutes=30)
    post = approved_post(product, slot_at=SLOT)
    run_due_posts(SLOT + timedelta(minutes=31))
    assert reread(post).state == State.MISSED


def test_a_missed_post_is_sent_when_its_owner_says_so() -> None:
    product = make_product()
    post = approved_post(product, slot_at=SLOT)
    late = SLOT + timedelta(days=1)
    run_due_posts(late)
    post = reread(post)
    posts.approve(post, seen=posts.text_hash(post), send_at=late, now=late, by="1")
    run_due_posts(late)
    assert (reread(post).state, len(entries(product))) == (State.PUBLISHED, 1)


def test_a_post_approved_late_can_wait_for_its_outlets_next_slot() -> None:
    product = planned_product((1, "09:00", "changelog"), (2, "09:00", "x"))
    post = make_post(product, slot_at=SLOT)
    late = SLOT + timedelta(hours=3)
    posts.approve(post, seen=posts.text_hash(post), send_at=None, now=late, by="1")
    run_due_posts(late)
    found = reread(post)
    assert (found.state, from_ms(found.send_at)) == (State.APPROVED, SLOT + timedelta(weeks=1))
    run_due_posts(SLOT + timedelta(weeks=1))
    assert reread(post).state == State.PUBLISHED


def test_a_post_without_a_next_slot_is_asked_about() -> None:
    product = planned_product((2, "09:00", "x"))
    post = make_post(product, slot_at=SLOT)
    posts.approve(post, seen=posts.text_hash(post), send_at=None, now=SLOT, by="1")
    run_due_posts(SLOT)
    assert reread(post).state == State.MISSED


def test_an_outlet_that_is_posted_by_hand_asks_its_owner_at_the_slot() -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="linkedin")
    run_due_posts(SLOT)
    found = reread(post)
    assert found.state == State.MISSED
    assert found.reason.startswith("Yours to post")
    assert list(Post.in_trouble.query("open")) == []
    posts.confirm_published(found, permalink="", now=SLOT, by="1")
    assert reread(post).state == State.PUBLISHED


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (Refused("Too many links."), State.FAILED, "Too many links."),
        (NeedsReconnect("Sign in again."), State.FAILED, "Sign in again."),
        (Unknown("No answer."), State.UNCONFIRMED, "No answer."),
        (RuntimeError("reset"), State.UNCONFIRMED, "The call broke off. It may be out"),
    ],
)
def test_what_is_not_clearly_sent_or_safe_to_repeat_is_never_sent_again(
    bluesky: Calls, answer: Exception, state: State, reason: str
) -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="bluesky")
    bluesky.answer = answer
    for minute in range(5):
        run_due_posts(SLOT + timedelta(minutes=minute))
    found = reread(post)
    assert (found.state, len(bluesky)) == (state, 1)
    assert found.reason.startswith(reason)


def test_a_first_failure_is_not_repeated_within_the_minute_and_then_with_growing_waits(
    bluesky: Calls,
) -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="bluesky")
    bluesky.answer = TryLater("Busy.")
    run_due_posts(SLOT)
    run_due_posts(SLOT + timedelta(seconds=59))
    assert len(bluesky) == 1
    assert from_ms(reread(post).work_at) >= SLOT + timedelta(minutes=1)
    moments, now = [], SLOT
    while reread(post).state == State.APPROVED:
        now = from_ms(reread(post).work_at)
        moments.append(now)
        run_due_posts(now)
    gaps = [later - sooner for sooner, later in pairwise(moments)]
    assert gaps == sorted(gaps) or max(gaps) <= timedelta(minutes=144)
    assert reread(post).state == State.FAILED
    assert moments[-1] <= SLOT + timedelta(days=1)


def test_the_outlets_own_wait_is_honoured(bluesky: Calls) -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="bluesky")
    bluesky.answer = TryLater("Busy.", after=timedelta(minutes=30))
    run_due_posts(SLOT)
    assert from_ms(reread(post).work_at) >= SLOT + timedelta(minutes=30)
    bluesky.answer = None
    run_due_posts(SLOT + timedelta(minutes=40))
    assert (reread(post).state, len(bluesky)) == (State.PUBLISHED, 2)


def test_a_lapsed_lease_is_unconfirmed_where_a_repeat_is_not_safe(bluesky: Calls) -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="bluesky")
    posts.claim(post, lease="dead", until=SLOT + timedelta(minutes=2), now=SLOT)
    run_due_posts(SLOT + timedelta(minutes=1))
    assert reread(post).state == State.PUBLISHING
    run_due_posts(SLOT + timedelta(minutes=3))
    assert (reread(post).state, len(bluesky)) == (State.UNCONFIRMED, 0)


def test_a_lapsed_lease_is_finished_where_a_repeat_is_safe() -> None:
    product = make_product()
    post = approved_post(product, slot_at=SLOT)
    posts.claim(post, lease="dead", until=SLOT + timedelta(minutes=2), now=SLOT)
    for minute in (3, 4, 5):
        run_due_posts(SLOT + timedelta(minutes=minute))
    assert (reread(post).state, len(entries(product))) == (State.PUBLISHED, 1)


def test_a_failing_post_in_the_middle_stops_no_other(bluesky: Calls) -> None:
    product = make_product()
    bluesky.answer = RuntimeError("boom")
    broken = approved_post(product, slot_at=SLOT, outlet="bluesky")
    fine = [approved_post(product, slot_at=SLOT + timedelta(minutes=minute)) for minute in range(4)]
    report = run_due_posts(SLOT + timedelta(minutes=4))
    assert (report.found, report.done, report.failed) == (5, 4, 1)
    assert {reread(post).state for post in fine} == {State.PUBLISHED}
    assert reread(broken).state == State.UNCONFIRMED


def test_a_plan_that_cannot_be_read_holds_its_post_and_says_so() -> None:
    product = planned_product()
    post = make_post(product, slot_at=SLOT)
    posts.approve(post, seen=posts.text_hash(post), send_at=None, now=SLOT, by="1")
    change(product, None, plan="broken")
    for minute in range(5):
        run_due_posts(SLOT + timedelta(minutes=minute))
    assert reread(post).state == State.MISSED


def test_changing_the_plan_leaves_approved_times_alone() -> None:
    product = planned_product((1, "09:00", "changelog"))
    post = approved_post(product, slot_at=SLOT)
    plans.set_plan(product, make_plan((0, "10:00", "x")), lead=timedelta(), version_seen=1, now=NOW)
    assert reread(post).work_at == to_ms(SLOT)


def test_a_second_try_that_is_days_late_asks_first(bluesky: Calls) -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="bluesky")
    bluesky.answer = TryLater("Busy.")
    run_due_posts(SLOT)
    bluesky.answer = None
    run_due_posts(SLOT + timedelta(days=5))
    assert (reread(post).state, len(bluesky)) == (State.MISSED, 1)


def test_a_lease_that_lapsed_days_ago_asks_first() -> None:
    product = make_product()
    post = approved_post(product, slot_at=SLOT)
    posts.claim(post, lease="dead", until=SLOT + timedelta(minutes=2), now=SLOT)
    run_due_posts(SLOT + timedelta(days=5))
    assert (reread(post).state, entries(product)) == (State.UNCONFIRMED, [])


def test_the_page_shows_the_text_that_was_approved_last() -> None:
    """The entry was written and its answer lost; its owner then approved other words."""
    product = make_product()
    post = approved_post(product, slot_at=SLOT, text="The first words.")
    posts.claim(post, lease="dead", until=SLOT + timedelta(minutes=2), now=SLOT)
    outlet = OUTLETS["changelog"]
    assert outlet.publish is not None
    outlet.publish(publishing._approved(post, product, None), SLOT)
    posts.mark_unconfirmed(post, "It may be out.", now=SLOT)
    posts.edit(post, "Better words.", seen=posts.text_hash(post), now=SLOT, by="1")
    posts.approve(post, seen=posts.text_hash(post), send_at=SLOT, now=SLOT, by="1")
    run_due_posts(SLOT + timedelta(minutes=3))
    assert (reread(post).state, [entry.text for entry in entries(product)]) == (
        State.PUBLISHED,
        ["Better words."],
    )


def test_a_post_whose_outcome_is_not_known_yet_cannot_be_taken_back() -> None:
    product = make_product()
    post = approved_post(product, slot_at=SLOT)
    posts.claim(post, lease="dead", until=SLOT + timedelta(minutes=2), now=SLOT)
    with pytest.raises(posts.WrongState):
        posts.take_back(reread(post), now=SLOT, by="1")
    run_due_posts(SLOT + timedelta(minutes=3))
    assert reread(post).state == State.PUBLISHED
