"""Which stories a post tells: each once per outlet, none lost, noise never."""

from datetime import datetime, timedelta

import pytest

from integrations.sources.base import Choice
from products import activity, catalogue, following, posts
from products.states import State
from products.tables import Post, Product
from scheduling import plans
from scheduling.due import run_due_products
from scheduling.publishing import run_due_posts
from slothpost_site.dynamo import change
from slothpost_site.moments import to_ms
from tests.builders import at, make_event, make_plan, make_product, planned_product, reread

pytestmark = pytest.mark.usefixtures("store")

WEEKS = [at("2026-01-06 09:01") + timedelta(weeks=week) for week in range(4)]


def happen(product: Product, number: int, when: datetime, **fields: object) -> str:
    """Record a merged pull request; its key."""
    event = make_event(
        id=f"pr:{number}", refs=(f"pr:{number}",), occurred_at=when,
        title=f"Add feature number {number}", **fields,
    )  # fmt: skip
    activity.record(product.product_id, event, when)
    return next(
        item.key
        for item in activity.list_for(product.product_id).items
        if item.key.endswith(f"#pr:{number}")
    )


def tick(now: datetime) -> None:
    run_due_products(now)
    run_due_posts(now)


def post_of(week: int, outlet: str = "changelog", user_id: str = "1") -> Post:
    slot_at = to_ms(WEEKS[week] - timedelta(minutes=1))
    return next(p for p in Post.query(user_id) if (p.slot_at, p.outlet) == (slot_at, outlet))


def told(post: Post) -> set[str]:
    return {item["key"] for item in post.evidence or []}


def approve(post: Post, now: datetime) -> None:
    posts.approve(post, seen=posts.text_hash(post), send_at=now, now=now, by="1")


def test_a_draft_rests_on_the_stories_since_the_outlet_was_last_told() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    assert told(post_of(0)) == {first}
    approve(post_of(0), WEEKS[0])
    tick(WEEKS[0] + timedelta(minutes=1))
    second = happen(product, 2, at("2026-01-08 15:00"))
    tick(WEEKS[1])
    assert told(post_of(1)) == {second}


def test_an_unreviewed_draft_is_replaced_by_one_that_tells_its_stories_too() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    second = happen(product, 2, at("2026-01-08 15:00"))
    tick(WEEKS[1])
    assert (post_of(0).state, post_of(1).state) == (State.SUPERSEDED, State.AWAITING_REVIEW)
    assert told(post_of(1)) == {first, second}
    third = happen(product, 3, at("2026-01-15 15:00"))
    tick(WEEKS[2])
    assert told(post_of(2)) == {first, second, third}
    assert len(list(Post.open_for.query("1"))) == 1


def test_a_rejected_drafts_stories_are_not_told_again() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    posts.reject(post_of(0), "Not interesting.", now=WEEKS[0], by="1")
    second = happen(product, 2, at("2026-01-08 15:00"))
    tick(WEEKS[1])
    assert told(post_of(1)) == {second}


def test_what_one_outlet_was_told_is_still_new_to_another() -> None:
    product = planned_product((1, "09:00", "changelog"), (1, "09:00", "x"))
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    assert told(post_of(0, "changelog")) == told(post_of(0, "x")) == {first}
    approve(post_of(0, "changelog"), WEEKS[0])
    second = happen(product, 2, at("2026-01-08 15:00"))
    tick(WEEKS[1])
    assert told(post_of(1, "changelog")) == {second}
    assert told(post_of(1, "x")) == {first, second}


def test_a_story_that_arrives_late_is_told_in_the_next_post_and_once() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    approve(post_of(0), WEEKS[0])
    late = make_event(
        id="pr:9", refs=("pr:9",), occurred_at=at("2026-01-05 16:00"), title="Added late"
    )
    activity.record(product.product_id, late, at("2026-01-07 10:00"))
    tick(WEEKS[1])
    assert {key[-4:] for key in told(post_of(1))} == {"pr:9"}
    approve(post_of(1), WEEKS[1])
    tick(WEEKS[2])
    assert post_of(2).state == State.SKIPPED


def test_a_story_written_while_the_draft_was_drawn_up_is_not_lost() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    approve(post_of(0), WEEKS[0])
    event = make_event(id="pr:8", refs=("pr:8",), occurred_at=WEEKS[0], title="Added just now")
    activity.record(product.product_id, event, WEEKS[0] - timedelta(seconds=20))
    tick(WEEKS[1])
    assert {key[-4:] for key in told(post_of(1))} == {"pr:8"}


def test_a_quiet_week_is_skipped_and_says_so() -> None:
    planned_product()
    tick(WEEKS[0])
    post = post_of(0)
    assert (post.state, post.reason) == (
        State.SKIPPED,
        "A quiet week: nothing new since the last draft.",
    )
    assert (list(Post.open_for.query("1")), list(Post.work.query("active"))) == ([], [])


def test_only_noise_is_a_quiet_week() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"), ignored="made by a bot (dependabot)")
    tick(WEEKS[0])
    assert post_of(0).state == State.SKIPPED


def test_a_quiet_week_can_bring_an_evergreen_instead() -> None:
    product = planned_product(
        quiet_week="evergreen", pitch="Tide tables for sailors.", link="https://tide.example"
    )
    tick(WEEKS[0])
    post = post_of(0)
    assert (post.state, told(post)) == (State.AWAITING_REVIEW, set())
    assert "https://tide.example" in post.text
    assert reread(product).quiet_week == "evergreen"


def test_an_overruled_activity_becomes_a_story_of_the_next_post() -> None:
    product = planned_product()
    key = happen(product, 1, at("2026-01-05 15:00"), ignored="chore")
    tick(WEEKS[0])
    item = activity.find(product.product_id, key)
    assert item is not None
    activity.tell(item, "ignored: chore", at("2026-01-07 10:00"))
    tick(WEEKS[1])
    assert told(post_of(1)) == {key}


def test_a_story_that_its_owner_ignores_is_not_told() -> None:
    product = planned_product()
    key = happen(product, 1, at("2026-01-05 15:00"))
    item = activity.find(product.product_id, key)
    assert item is not None
    activity.leave_out(item)
    tick(WEEKS[0])
    assert post_of(0).state == State.SKIPPED


def test_a_rewrite_tells_the_same_stories_and_those_that_came_since() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    second = happen(product, 2, at("2026-01-06 09:30"))
    posts.rewrite(post_of(0), now=at("2026-01-06 10:00"), by="1")
    run_due_posts(at("2026-01-06 10:00"))
    assert post_of(0).state == State.AWAITING_REVIEW
    assert told(post_of(0)) == {first, second}


def test_a_draft_approved_at_the_moment_it_would_be_replaced_is_not_told_twice() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    second = happen(product, 2, at("2026-01-08 15:00"))
    run_due_products(WEEKS[1])
    approve(post_of(0), WEEKS[1])
    run_due_posts(WEEKS[1])
    assert (told(post_of(0)), told(post_of(1))) == ({first}, {second})


def test_a_post_written_late_leaves_its_stories_to_the_newer_one() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    run_due_products(WEEKS[0])
    run_due_products(WEEKS[1])
    run_due_posts(WEEKS[1])
    run_due_posts(WEEKS[1] + timedelta(minutes=1))
    assert (post_of(0).state, post_of(1).state) == (State.SUPERSEDED, State.AWAITING_REVIEW)
    assert told(post_of(1)) == {first}


def test_a_slot_added_before_a_drafted_one_tells_what_is_new_and_nothing_twice() -> None:
    product = planned_product((3, "09:00", "changelog"), lead=timedelta(days=1))
    first = happen(product, 1, at("2026-01-06 15:00"))
    tick(at("2026-01-07 09:01"))
    second = happen(product, 2, at("2026-01-07 09:30"))
    plan = make_plan((2, "18:00", "changelog"), (3, "09:00", "changelog"))
    plans.set_plan(
        product, plan, lead=timedelta(days=1), version_seen=1, now=at("2026-01-07 10:00")
    )
    tick(at("2026-01-07 10:01"))
    found = {str(post.key)[:8]: post for post in Post.query("1")}
    assert {key: told(post) for key, post in found.items()} == {
        "20260107": {second},
        "20260108": {first},
    }
    for post in found.values():
        approve(post, at("2026-01-07 11:00"))
    third = happen(product, 3, at("2026-01-09 15:00"))
    tick(at("2026-01-13 18:01"))
    assert told(next(post for post in Post.query("1") if post.key[:8] == "20260114")) == {third}


def test_a_draft_whose_slot_is_to_come_keeps_its_stories_from_the_next_one() -> None:
    """With a lead longer than the gap between slots, two drafts wait: each for its own slot."""
    product = planned_product(
        (1, "09:00", "changelog"), (2, "09:00", "changelog"), lead=timedelta(days=2),
        now=at("2026-01-04 09:00"),
    )  # fmt: skip
    first = happen(product, 1, at("2026-01-04 10:00"))
    tick(at("2026-01-04 11:00"))
    second = happen(product, 2, at("2026-01-05 08:00"))
    tick(at("2026-01-05 09:02"))
    found = {str(post.key)[:8]: post for post in Post.query("1")}
    assert {key: (str(post.state), told(post)) for key, post in found.items()} == {
        "20260106": ("awaiting_review", {first}),
        "20260107": ("awaiting_review", {second}),
    }


def test_several_slots_within_the_lead_time_all_get_their_posts_in_order() -> None:
    every_day = [(day, "09:00", "changelog") for day in range(7)]
    product = make_product()
    first = happen(product, 1, at("2026-01-05 13:00"))
    plans.set_plan(
        product, make_plan(*every_day), lead=timedelta(days=2), version_seen=0,
        now=at("2026-01-05 14:00"),
    )  # fmt: skip
    tick(at("2026-01-05 14:01"))
    found = [(str(post.key)[:8], str(post.state), told(post)) for post in Post.query("1")]
    assert found == [
        ("20260106", "awaiting_review", {first}),
        ("20260107", "skipped", set()),
    ]
    assert [post.missed_slots for post in Post.query("1")] == [None, None]


def test_the_post_of_a_product_that_is_gone_ends() -> None:
    product = planned_product()
    run_due_products(WEEKS[0])
    product.delete()
    assert catalogue.find("1", product.product_id) is None
    run_due_posts(WEEKS[0])
    assert post_of(0).state == State.SKIPPED


def test_a_draft_that_cannot_be_written_is_its_owners_after_three_tries() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    run_due_products(WEEKS[0])
    product.update(actions=[Product.plan.set("broken")])
    for minute in range(5):
        run_due_posts(WEEKS[0] + timedelta(minutes=minute))
    post = post_of(0)
    assert post.state == State.FAILED
    assert post.reason.startswith("This draft could not be written")
    assert [p.key for p in Post.open_for.query("1")] == [post.key]


# -- each story once per outlet, and none lost, whatever people and machines do -------------------


def settle(number: int, state: str, product: Product) -> None:
    """Bring the draft of a week to a state."""
    post = post_of(number)
    if state == "rejected":
        posts.reject(post, "No.", now=WEEKS[number], by="1")
        return
    approve(post, WEEKS[number])
    if state == "missed":
        posts.miss(post, "Late.", now=WEEKS[number])
    if state == "failed":
        posts.claim(post, lease="a", until=WEEKS[number], now=WEEKS[number])
        posts.mark_failed(post, "No.", now=WEEKS[number])


def test_a_draft_sent_back_right_before_the_next_slot_loses_no_story() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    posts.rewrite(post_of(0), now=WEEKS[1] - timedelta(seconds=10), by="1")
    for minute in range(3):
        tick(WEEKS[1] + timedelta(minutes=minute))
    assert told(post_of(0)) | told(post_of(1)) == {first}
    assert [str(p.state) for p in Post.open_for.query("1")].count("awaiting_review") == 1


@pytest.mark.parametrize("state", ["missed", "failed"])
def test_a_held_post_is_written_again_from_its_own_stories(state: str) -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    settle(0, state, product)
    second = happen(product, 2, at("2026-01-08 15:00"))
    tick(WEEKS[1])
    happen(product, 3, at("2026-01-14 15:00"))
    posts.rewrite(post_of(0), now=WEEKS[1] + timedelta(days=2), by="1")
    run_due_posts(WEEKS[1] + timedelta(days=2))
    assert (told(post_of(0)), told(post_of(1))) == ({first}, {second})
    assert post_of(0).state == State.AWAITING_REVIEW


def test_a_post_between_that_could_not_be_written_leads_to_no_second_telling() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    run_due_products(WEEKS[1])
    posts.fail_writing(post_of(1), "No luck.", now=WEEKS[1])
    tick(WEEKS[2])
    assert [str(post_of(week).state) for week in range(3)] == [
        "superseded",
        "failed",
        "awaiting_review",
    ]
    assert told(post_of(2)) == {first}


def test_a_draft_behind_a_quiet_week_is_replaced_all_the_same() -> None:
    product = planned_product()
    first = happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    posts.reject(post_of(0), "No.", now=WEEKS[0], by="1")
    tick(WEEKS[1])
    second = happen(product, 2, at("2026-01-15 15:00"))
    tick(WEEKS[2])
    third = happen(product, 3, at("2026-01-22 15:00"))
    tick(WEEKS[3])
    assert (post_of(1).state, post_of(2).state) == (State.SKIPPED, State.SUPERSEDED)
    assert told(post_of(3)) == {second, third}
    assert first not in told(post_of(3))


def test_what_is_about_a_change_that_was_told_is_not_told_again() -> None:
    """The deployment of a merged pull request comes after the post that told of it."""
    product = planned_product()
    sha = "sha:" + "a" * 40
    merged = make_event(id="pr:1", refs=("pr:1", sha), occurred_at=at("2026-01-05 15:00"))
    activity.record(product.product_id, merged, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    approve(post_of(0), WEEKS[0])
    deployed = make_event(
        source="vercel", kind="deployment", id="deployment:dpl_1", refs=(sha,),
        occurred_at=at("2026-01-06 09:30"),
    )  # fmt: skip
    activity.record(product.product_id, deployed, at("2026-01-06 09:30"))
    tick(WEEKS[1])
    assert post_of(1).state == State.SKIPPED


def test_three_slots_within_minutes_tell_a_story_once() -> None:
    slots = [(1, f"09:0{minute}", "changelog") for minute in (0, 3, 6)]
    product = planned_product(*slots)
    first = happen(product, 1, at("2026-01-05 15:00"))
    for minute in range(1, 9):
        tick(at("2026-01-06 09:00") + timedelta(minutes=minute))
        for post in Post.open_for.query("1"):
            if post.state == State.AWAITING_REVIEW:
                approve(post, at("2026-01-06 09:00") + timedelta(minutes=minute))
    assert [told(post) for post in Post.query("1")] == [{first}, set(), set()]


def test_a_rewrite_ends_what_was_approved_before() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    settle(0, "missed", product)
    post = post_of(0)
    posts.rewrite(post, now=WEEKS[0], by="1")
    posts.fail_writing(post, "No luck.", now=WEEKS[0])
    with pytest.raises(posts.TextRefused, match="has not approved"):
        posts.retry(post_of(0), now=WEEKS[0], by="staff 9")


# -- stories of several facts ----------------------------------------------------------------------


def record(product: Product, when: datetime, **fields: object) -> None:
    activity.record(product.product_id, make_event(occurred_at=when, **fields), when)


def record_release(product: Product, when: datetime, **fields: object) -> None:
    release = {"kind": "release", "id": "release:1", "version": "v1.5", "title": "Summer"}
    record(product, when, refs=("tag:v1.5",), **{**release, **fields})


def told_facts(post: Post) -> list[str]:
    return sorted(key.split("#", 2)[2] for key in told(post))


def test_a_release_is_told_though_its_pull_requests_were_and_without_them() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    approve(post_of(0), WEEKS[0])
    notes = "* Add feature number 1 (#1)\n* Export every trip (#2)"
    record_release(product, at("2026-01-08 15:00"), body=notes)
    happen(product, 2, at("2026-01-08 14:00"))
    tick(WEEKS[1])
    assert told_facts(post_of(1)) == ["release:1"]
    assert "number 1" not in post_of(1).text
    assert "exports every trip" in post_of(1).text
    approve(post_of(1), WEEKS[1])
    happen(product, 3, at("2026-01-14 15:00"))
    tick(WEEKS[2])
    assert told_facts(post_of(2)) == ["pr:3"]


def test_a_version_that_reaches_the_store_after_its_release_was_told_is_not_told_again() -> None:
    product = planned_product()
    record_release(product, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    assert told_facts(post_of(0)) == ["release:1"]
    approve(post_of(0), WEEKS[0])
    store = {"source": "app_store", "kind": "version", "id": "version:9:1.5", "version": "1.5"}
    record(product, at("2026-01-08 15:00"), **store, refs=("version:1.5",), stage="in the store")
    tick(WEEKS[1])
    assert post_of(1).state == State.SKIPPED


def test_a_source_edited_after_publishing_makes_no_new_post() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"))
    tick(WEEKS[0])
    approve(post_of(0), WEEKS[0])
    edited = {"title": "Add the first feature, at last", "body": "Now with a body."}
    record(product, at("2026-01-08 15:00"), id="pr:1", refs=("pr:1",), **edited)
    tick(WEEKS[1])
    assert post_of(1).state == State.SKIPPED


def test_a_story_is_told_in_its_authors_own_words() -> None:
    product = planned_product()
    happen(product, 1, at("2026-01-05 15:00"), body="Post: Sail by night with the dark theme")
    tick(WEEKS[0])
    assert "ail by night with the dark theme" in post_of(0).text


# -- what the sources are still to tell ------------------------------------------------------------


def test_a_first_draft_waits_a_quarter_of_an_hour_for_the_sources_and_no_longer() -> None:
    product = planned_product()
    following.follow(product, "github", Choice(id="42", name="acme/app"), at("2026-01-05 13:00"))
    change(product, None, **following.NOT_ASKED)
    happen(product, 1, at("2026-01-05 15:00"))
    run_due_products(WEEKS[0])
    run_due_posts(WEEKS[0])
    assert (post_of(0).state, reread(product).fetch_asked_at) == (State.DRAFTING, to_ms(WEEKS[0]))
    run_due_posts(WEEKS[0] + timedelta(minutes=15))
    assert post_of(0).state == State.DRAFTING
    run_due_posts(WEEKS[0] + timedelta(minutes=16))
    assert post_of(0).state == State.AWAITING_REVIEW


def test_a_draft_is_written_at_once_after_the_sources_were_asked() -> None:
    product = planned_product()
    following.follow(product, "github", Choice(id="42", name="acme/app"), at("2026-01-05 13:00"))
    fetched_at = to_ms(WEEKS[0] - timedelta(minutes=9))
    change(product, None, fetched_at=fetched_at, **following.NOT_ASKED)
    happen(product, 1, at("2026-01-05 15:00"))
    run_due_products(WEEKS[0])
    run_due_posts(WEEKS[0])
    assert post_of(0).state == State.AWAITING_REVIEW
