"""The verbs on posts: each is one conditional write, and a lost race says what it found."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from products import posts
from products.posts import TextRefused, WrongState
from products.states import State
from products.tables import Post
from slothpost_site.moments import from_ms, to_ms
from tests.builders import NOW, approved_post, at, make_post, make_product, reread

pytestmark = pytest.mark.usefixtures("store")

LATER = NOW + timedelta(hours=1)


def approve(post: Post, **fields: object) -> None:
    posts.approve(
        post, **{"seen": posts.text_hash(post), "send_at": LATER, "now": NOW, "by": "1", **fields}
    )


def open_posts(user_id: str = "1") -> list[Post]:
    return list(Post.open_for.query(user_id))


def work() -> list[str]:
    return [post.key for post in Post.work.query("active")]


def test_a_filled_post_waits_for_its_owner_and_for_no_machine() -> None:
    post = make_post(make_product())
    assert (reread(post).state, work()) == (State.AWAITING_REVIEW, [])
    assert [p.key for p in open_posts()] == [post.key]


def test_an_approved_post_waits_for_a_machine_at_its_time() -> None:
    post = make_post(make_product(), slot_at=LATER)
    approve(post)
    found = reread(post)
    assert (found.state, from_ms(found.work_at)) == (State.APPROVED, LATER)
    assert found.approved_hash == posts.text_hash(found)
    assert work() == [post.key]


def test_a_second_approval_changes_nothing_and_says_when_the_first_was() -> None:
    post = make_post(make_product())
    twin = reread(post)
    approve(post)
    history = reread(post).history
    with pytest.raises(WrongState, match=r"was already approved at 12:00 on 5 January \(UTC\)"):
        approve(twin)
    assert reread(post).history == history


def test_an_approval_binds_to_the_text_that_was_seen() -> None:
    post = make_post(make_product())
    seen = posts.text_hash(post)
    posts.edit(post, "Another text.", seen=seen, now=NOW, by="1")
    with pytest.raises(TextRefused, match="The text changed"):
        approve(post, seen=seen)
    assert reread(post).state == State.AWAITING_REVIEW


def test_a_text_edited_in_another_window_is_not_approved_unseen() -> None:
    post = make_post(make_product())
    mine = reread(post)
    posts.edit(post, "Another text.", seen=posts.text_hash(post), now=NOW, by="1")
    with pytest.raises(WrongState):
        approve(mine)
    assert reread(post).state == State.AWAITING_REVIEW


def test_an_edit_returns_an_approved_post_to_review() -> None:
    post = approved_post(make_product(), slot_at=LATER)
    posts.edit(post, "Better words.", seen=posts.text_hash(post), now=NOW, by="1")
    found = reread(post)
    assert (found.state, found.text, found.approved_hash) == (
        State.AWAITING_REVIEW,
        "Better words.",
        None,
    )
    assert work() == []


def test_the_text_is_kept_to_the_byte_but_for_the_browsers_line_ends() -> None:
    post = make_post(make_product())
    text = "Ünï 🦥  two  spaces\n\n- a point"
    typed = "  " + text.replace("\n", "\r\n") + "\r\n"
    posts.edit(post, typed, seen=posts.text_hash(post), now=NOW, by="1")
    assert reread(post).text == text


@pytest.mark.parametrize(
    ("outlet", "text", "sentence"),
    [
        ("x", "a" * 281, "X takes 280 characters and this has 281"),
        ("bluesky", "a" * 301, "Bluesky takes 300"),
        ("x", "   ", "There is no text yet"),
    ],
)
def test_a_text_that_its_outlet_cannot_carry_is_refused(
    outlet: str, text: str, sentence: str
) -> None:
    post = make_post(make_product(), outlet=outlet)
    with pytest.raises(TextRefused, match=sentence):
        posts.edit(post, text, seen=posts.text_hash(post), now=NOW, by="1")
    assert reread(post).text == post.text


def test_a_post_taken_back_is_neither_sent_nor_lost() -> None:
    post = approved_post(make_product(), slot_at=LATER)
    posts.take_back(post, now=NOW, by="1")
    assert (reread(post).state, work(), len(open_posts())) == (State.AWAITING_REVIEW, [], 1)


def test_a_post_that_is_on_its_way_cannot_be_taken_back_edited_or_approved_again() -> None:
    post = approved_post(make_product())
    stale = reread(post)
    posts.claim(post, lease="mine", until=LATER, now=NOW)
    for attempt in (
        lambda: posts.take_back(stale, now=NOW, by="1"),
        lambda: posts.edit(stale, "x", seen=posts.text_hash(stale), now=NOW, by="1"),
        lambda: approve(stale),
        lambda: posts.claim(stale, lease="theirs", until=LATER, now=NOW),
    ):
        with pytest.raises(WrongState, match=r"is being published|was already approved"):
            attempt()
    found = reread(post)
    assert (found.state, found.lease) == (State.PUBLISHING, "mine")


def test_a_claim_whose_answer_was_lost_is_still_ours() -> None:
    post = approved_post(make_product())
    again = reread(post)
    posts.claim(post, lease="mine", until=LATER, now=NOW)
    posts.claim(again, lease="mine", until=LATER, now=NOW)
    assert again.state == State.PUBLISHING


def test_only_the_holder_of_the_lease_writes_the_outcome() -> None:
    post = approved_post(make_product())
    posts.claim(post, lease="mine", until=LATER, now=NOW)
    other = reread(post)
    other.lease = "theirs"
    with pytest.raises(WrongState):
        posts.mark_published(other, permalink="https://x.example", external_id="1", now=NOW)
    posts.mark_published(post, permalink="https://y.example", external_id="2", now=NOW)
    assert reread(post).permalink == "https://y.example"


FINAL: dict[str, Callable[[Post], None]] = {
    "rejected": lambda post: posts.reject(post, "Too salesy.", now=NOW, by="1"),
    "superseded": lambda post: posts.supersede(post, "newer", now=NOW),
}


@pytest.mark.parametrize("name", FINAL)
def test_a_final_post_is_in_no_index_and_keeps_its_reason(name: str) -> None:
    post = make_post(make_product())
    FINAL[name](post)
    found = reread(post)
    assert (found.state, found.reason) == (name, {"rejected": "Too salesy."}.get(name, "newer"))
    assert (open_posts(), work()) == ([], [])


@pytest.mark.parametrize("settle", [posts.mark_failed, posts.mark_unconfirmed])
def test_trouble_waits_for_the_owner_and_for_staff(settle: Callable[..., None]) -> None:
    post = approved_post(make_product())
    posts.claim(post, lease="mine", until=LATER, now=NOW)
    settle(post, "It said no.", now=NOW)
    assert [p.key for p in Post.in_trouble.query("open")] == [post.key]
    assert ([p.key for p in open_posts()], work()) == ([post.key], [post.key])
    posts.note_told(post)
    assert work() == []
    posts.confirm_published(post, permalink="https://x.example/1", now=NOW, by="1")
    assert list(Post.in_trouble.query("open")) == []
    assert reread(post).state == State.PUBLISHED


def test_a_rewrite_goes_back_to_the_writer_under_another_variation() -> None:
    post = make_post(make_product())
    posts.rewrite(post, now=LATER, by="1")
    found = reread(post)
    assert (found.state, found.variation, from_ms(found.work_at)) == (State.DRAFTING, 1, LATER)


def test_staff_retry_sends_only_what_its_owner_approved() -> None:
    post = approved_post(make_product())
    posts.claim(post, lease="mine", until=LATER, now=NOW)
    posts.mark_failed(post, "It said no.", now=NOW)
    posts.retry(post, now=LATER, by="staff 9")
    assert (reread(post).state, from_ms(reread(post).work_at)) == (State.APPROVED, LATER)

    edited = approved_post(make_product(), slot_at=at("2026-01-06 09:00"))
    posts.miss(edited, "late", now=NOW)
    posts.edit(edited, "Other words.", seen=posts.text_hash(edited), now=NOW, by="1")
    with pytest.raises(TextRefused, match="has not approved"):
        posts.retry(edited, now=LATER, by="staff 9")


def test_a_release_ends_the_lease_at_once() -> None:
    post = approved_post(make_product())
    posts.claim(post, lease="mine", until=LATER, now=NOW)
    posts.release(post, now=NOW)
    assert reread(post).work_at == to_ms(NOW)


def test_the_history_tells_the_whole_life_in_order() -> None:
    post = approved_post(make_product())
    posts.take_back(post, now=LATER, by="person 1")
    moves = [
        tuple(json.loads(line).get(key) for key in ("from", "to", "by"))
        for line in reread(post).history
    ]
    assert moves == [
        (None, "drafting", "slothpost"),
        ("drafting", "awaiting_review", "slothpost"),
        ("awaiting_review", "approved", "1"),
        ("approved", "awaiting_review", "person 1"),
    ]
