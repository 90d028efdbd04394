"""The developer's pages over HTTP: review, products, activity, history."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from integrations.sources.base import Choice
from products import catalogue, following, posts
from products.states import State
from products.tables import Post, Product
from slothpost_site.dynamo import change
from slothpost_site.moments import as_key, from_ms, to_ms
from tests.builders import (
    NOW,
    approved_post,
    at,
    make_post,
    make_product,
    make_story,
    planned_product,
    reread,
)
from tests.conftest import signed_in
from tests.pages import HTMX, fields, send, words

pytestmark = pytest.mark.usefixtures("store")

# The pages ask the clock: these are on the same side of it on every machine.
PAST = at("2020-01-07 09:00")
FUTURE = at("2900-01-07 09:00")
HOSTILE = "<script>alert(1)</script> " + "W" * 150 + " 👩‍👩‍👧 שלום"


@pytest.fixture
def client(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def product(alice: User) -> Product:
    return make_product(str(alice.pk))


def address(post: Post) -> str:
    return reverse("post", args=[as_key(post.slot_at), post.product_id, post.outlet])


def slot_address(post: Post) -> str:
    return reverse("approve_slot", args=[as_key(post.slot_at), post.product_id])


def astray(post: Post, state: State) -> Post:
    """The post after it was approved and went off its way."""
    posts.approve(post, seen=posts.text_hash(post), send_at=PAST, now=PAST, by="1")
    if state == State.MISSED:
        posts.miss(post, "It is late.", now=PAST)
        return post
    posts.claim(post, lease="a", until=FUTURE, now=PAST)
    if state == State.UNCONFIRMED:
        posts.mark_unconfirmed(post, "It may be out.", now=PAST)
    else:
        posts.mark_failed(post, "Not that.", now=PAST)
    return post


# -- the queue -------------------------------------------------------------------------------------


def test_somebody_without_a_product_is_asked_for_one(client: Client) -> None:
    page = words(client.get("/"))
    assert "What are you building?" in page
    assert reverse("product_new") in page


def test_an_empty_queue_names_the_next_draft(client: Client, alice: User) -> None:
    planned_product(user_id=str(alice.pk), name="Quietude", timezone="Europe/London")
    page = words(client.get("/"))
    assert "Nothing waits for you" in page
    assert "Quietude is next" in page


def test_an_empty_queue_without_a_plan_sends_to_the_products(
    client: Client, product: Product
) -> None:
    assert "until a product has a plan that runs" in words(client.get("/"))


def test_a_draft_shows_its_text_length_and_evidence(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE, outlet="x", text="Dark & light")
    story = {"key": "k", "source": "github", "kind": "merge", "title": "Add a dark theme"}
    story |= {"link": "https://github.com/acme/app/pull/7", "occurredAt": to_ms(NOW)}  # type: ignore[dict-item]
    change(post, None, evidence=[story], missed_slots=[to_ms(NOW)])
    page = client.get("/")
    assert fields(page)["x-text"] == ["Dark & light"]
    text = words(page)
    assert "12 / 280 characters" in text
    assert '<a href="https://github.com/acme/app/pull/7" rel="noreferrer">Add a dark theme' in text
    assert "Also stands in for 1 slot missed" in text
    assert "1 text waits for you" in text


def test_a_slot_offers_to_approve_all_that_fit(client: Client, product: Product) -> None:
    for outlet, text in (("x", "Short"), ("bluesky", "b" * 301), ("changelog", "Short")):
        make_post(product, slot_at=FUTURE, outlet=outlet, text=text)
    page = words(client.get("/"))
    assert "Approve the 2 that fit" in page
    assert "Bluesky: too long to approve." in page


def test_a_draft_in_the_making_names_its_product_and_asks_again(
    client: Client, product: Product
) -> None:
    post = make_post(product, slot_at=FUTURE, text=None)
    page = words(client.get("/"))
    assert product.name in page
    assert "Being written…" in page
    assert f'hx-get="{address(post)}?slot" hx-trigger="every 5s"' in page


# -- deciding --------------------------------------------------------------------------------------


def test_an_approved_text_goes_out_at_its_slot(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    answer = send(client, address(post), client.get("/"), changelog__action="approve")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert (reread(post).state, from_ms(reread(post).send_at)) == (State.APPROVED, FUTURE)
    assert "Take back" in words(client.get("/"))


def test_an_approved_post_that_nobody_sends_is_shown_as_overdue(
    client: Client, product: Product
) -> None:
    approved_post(product, slot_at=timezone.now() - timedelta(minutes=4))
    assert "Overdue" not in words(client.get("/"))
    approved_post(product, slot_at=timezone.now() - timedelta(minutes=6), outlet="x")
    assert "<strong>Overdue</strong> since" in words(client.get("/"))


def test_what_stands_in_the_field_is_what_is_approved(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    send(
        client, address(post), page, changelog__action="approve", changelog__text="Two\r\nlines \n"
    )
    found = reread(post)
    assert (found.state, found.text) == (State.APPROVED, "Two\nlines")
    assert found.approved_hash == posts.text_hash(found)


def test_a_cleared_field_does_not_approve_the_old_text(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    answer = send(
        client, address(post), client.get("/"), changelog__action="approve", changelog__text=" "
    )
    assert (answer.status_code, reread(post).state) == (422, State.AWAITING_REVIEW)
    assert "There is no text yet" in words(answer)


def test_a_text_that_changed_since_is_shown_instead_of_approved(
    client: Client, product: Product
) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    posts.edit(post, "The newer text", seen=posts.text_hash(post), now=NOW, by="1")
    answer = send(client, address(post), page, changelog__action="approve")
    assert (answer.status_code, reread(post).state) == (422, State.AWAITING_REVIEW)
    assert fields(answer)["changelog-text"] == ["The newer text"]


def test_an_edit_of_a_text_that_changed_since_is_kept_beside_it(
    client: Client, product: Product
) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    posts.edit(post, "The newer text", seen=posts.text_hash(post), now=NOW, by="1")
    answer = send(client, address(post), page, changelog__action="save", changelog__text="Mine")
    assert (answer.status_code, reread(post).text) == (422, "The newer text")
    assert fields(answer)["changelog-text"] == ["Mine"]
    assert "The newer text</p>" in words(answer)


def test_saving_what_was_not_changed_leaves_no_trace(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    send(client, address(post), client.get("/"), changelog__action="save")
    assert reread(post).history == post.history


def test_a_rejection_needs_a_reason_and_keeps_it(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    refused = send(client, address(post), page, changelog__action="reject")
    assert (refused.status_code, reread(post).state) == (422, State.AWAITING_REVIEW)
    send(client, address(post), page, changelog__action="reject", changelog__reason="Too dry")
    assert (reread(post).state, reread(post).reason) == (State.REJECTED, "Too dry")
    assert "You said: Too dry" in words(client.get(reverse("history")))


def test_a_second_approval_says_when_the_first_was(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    send(client, address(post), page, changelog__action="approve")
    answer = send(client, address(post), page, changelog__action="approve")
    assert answer.status_code == 409
    assert "this post was already approved at" in words(answer)


def test_an_approval_is_taken_back(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    send(client, address(post), client.get("/"), changelog__action="approve")
    send(client, address(post), client.get("/"), changelog__action="take-back")
    assert reread(post).state == State.AWAITING_REVIEW


def test_a_rewrite_sends_the_draft_back_to_the_writer(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    send(client, address(post), client.get("/"), changelog__action="rewrite")
    assert (reread(post).state, reread(post).variation) == (State.DRAFTING, 1)
    assert "Being written again…" in words(client.get("/"))


@pytest.mark.parametrize(
    ("late_approval", "label", "leaves_it_to_the_plan"),
    [("hold", "Approve and send now", False), ("next_slot", "Approve for the next slot", True)],
)
def test_an_approval_after_the_slot_does_what_its_button_says(
    client: Client, alice: User, late_approval: str, label: str, leaves_it_to_the_plan: bool
) -> None:
    product = make_product(str(alice.pk), late_approval=late_approval)
    post = make_post(product, slot_at=PAST)
    page = client.get("/")
    assert label in words(page)
    send(client, address(post), page, changelog__action="approve")
    assert (reread(post).state, reread(post).send_at is None) == (
        State.APPROVED,
        leaves_it_to_the_plan,
    )


# -- htmx ------------------------------------------------------------------------------------------


def test_htmx_gets_the_draft_as_it_now_stands_and_the_foot_of_its_slot(
    client: Client, product: Product
) -> None:
    for outlet in ("x", "threads", "changelog"):
        post = make_post(product, slot_at=FUTURE, outlet=outlet)
    sent = fields(client.get("/")) | {"changelog-action": "approve"}
    answer = client.post(f"{address(post)}?slot", sent, headers=HTMX)
    text = words(answer)
    assert "<html" not in text
    assert text.count("<article") == 1
    assert "Approved at" in text
    assert 'hx-swap-oob="true"' in text
    assert "Approve all 2" in text
    assert "data-focus" in text


def test_htmx_gets_a_refusal_with_the_card(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE, outlet="x")
    sent = fields(client.get("/")) | {"x-action": "save", "x-text": "y" * 281}
    answer = client.post(f"{address(post)}?slot", sent, headers=HTMX)
    assert answer.status_code == 422
    assert "X takes 280 characters and this has 281: shorten it." in words(answer)
    assert fields(answer)["x-text"] == ["y" * 281]


def test_a_look_moves_no_focus(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE, text=None)
    answer = client.get(f"{address(post)}?slot", headers=HTMX)
    assert "Being written…" in words(answer)
    assert "data-focus" not in words(answer)


# -- a whole slot ----------------------------------------------------------------------------------


def test_a_slot_is_approved_as_it_stands_on_the_page(client: Client, product: Product) -> None:
    x = make_post(product, slot_at=FUTURE, outlet="x", text="As written")
    log = make_post(product, slot_at=FUTURE, text="As written")
    page = client.get("/")
    answer = send(client, slot_address(x), page, changelog__text="As edited")
    assert answer.status_code == 302
    assert [(reread(p).state, reread(p).text) for p in (x, log)] == [
        (State.APPROVED, "As written"),
        (State.APPROVED, "As edited"),
    ]
    assert "Approved 2 texts." in words(client.get("/"))


def test_a_text_that_is_too_long_waits_while_the_others_are_approved(
    client: Client, product: Product
) -> None:
    long = make_post(product, slot_at=FUTURE, outlet="x", text="y" * 281)
    fits = make_post(product, slot_at=FUTURE)
    answer = send(client, slot_address(long), client.get("/"))
    assert answer.status_code == 302
    assert (reread(long).state, reread(fits).state) == (State.AWAITING_REVIEW, State.APPROVED)


def test_what_a_slot_refuses_is_shown_with_what_was_typed(client: Client, product: Product) -> None:
    x = make_post(product, slot_at=FUTURE, outlet="x", text="Short")
    log = make_post(product, slot_at=FUTURE)
    answer = send(client, slot_address(x), client.get("/"), x__text="y" * 281)
    assert (answer.status_code, reread(x).text, reread(log).state) == (
        422,
        "Short",
        State.APPROVED,
    )
    assert fields(answer)["x-text"] == ["y" * 281]


def test_a_slot_decided_in_another_window_says_so(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    posts.reject(post, "no", now=NOW, by="1")
    answer = send(client, slot_address(post), page)
    assert answer.status_code == 422
    assert "this post was already rejected at" in words(answer)


# -- posts that went astray ------------------------------------------------------------------------


def test_a_missed_post_is_sent_now(client: Client, product: Product) -> None:
    post = astray(make_post(product, slot_at=PAST), State.MISSED)
    page = client.get("/")
    assert "It is late." in words(page)
    send(client, address(post), page, changelog__action="approve")
    assert reread(post).state == State.APPROVED


def test_a_post_by_hand_is_marked_as_published_with_its_address(
    client: Client, product: Product
) -> None:
    post = astray(make_post(product, slot_at=PAST, outlet="x"), State.MISSED)
    page = client.get("/")
    assert "Send it now" not in words(page)
    wrong = send(client, address(post), page, x__action="posted", x__permalink="not an address")
    assert (wrong.status_code, fields(wrong)["x-permalink"]) == (422, ["not an address"])
    send(client, address(post), page, x__action="posted", x__permalink="https://x.com/a/status/1")
    assert (reread(post).state, reread(post).permalink) == (
        State.PUBLISHED,
        "https://x.com/a/status/1",
    )


@pytest.mark.parametrize(
    ("action", "state"), [("posted", State.PUBLISHED), ("approve", State.APPROVED)]
)
def test_its_owner_says_whether_an_unconfirmed_post_is_out(
    client: Client, product: Product, action: str, state: State
) -> None:
    post = astray(make_post(product, slot_at=PAST), State.UNCONFIRMED)
    send(client, address(post), client.get("/"), changelog__action=action)
    assert reread(post).state == state


def test_a_failed_post_is_edited_and_approved_again(client: Client, product: Product) -> None:
    post = astray(make_post(product, slot_at=PAST), State.FAILED)
    send(
        client,
        address(post),
        client.get("/"),
        changelog__action="approve",
        changelog__text="Better",
    )
    assert (reread(post).state, reread(post).text) == (State.APPROVED, "Better")


# -- one post and the history ----------------------------------------------------------------------


def test_a_posts_page_tells_its_whole_history(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=FUTURE)
    page = client.get("/")
    send(client, address(post), page, changelog__action="save", changelog__text="Better")
    send(client, address(post), client.get("/"), changelog__action="approve")
    steps = re.findall(
        r"<strong>([^<]+)</strong> <span class=\"soft\">by (\w+)", words(client.get(address(post)))
    )
    assert steps == [
        ("Begun", "SlothPost"),
        ("Draft written", "SlothPost"),
        ("Text edited", "you"),
        ("Approved", "you"),
    ]


def test_history_shows_what_was_skipped_and_why(client: Client, product: Product) -> None:
    post = make_post(product, slot_at=PAST, text=None)
    posts.skip(post, "A quiet week.", now=PAST)
    page = words(client.get(reverse("history")))
    assert "A quiet week." in page
    assert "Skipped" in page


def test_an_empty_history_says_what_will_stand_there(client: Client) -> None:
    assert "No history yet" in words(client.get(reverse("history")))


# -- products and activity -------------------------------------------------------------------------


def test_a_product_form_keeps_what_was_typed(client: Client) -> None:
    answer = client.post(reverse("product_new"), {"name": "", "pitch": "Kept words"})
    assert answer.status_code == 422
    assert fields(answer)["pitch"] == ["Kept words"]
    assert "This field is required." in words(answer)


def test_a_new_product_leads_to_its_page(client: Client, alice: User) -> None:
    page = client.get(reverse("product_new"))
    sent = {"name": "Tern", "quiet_week": "skip", "late_approval": "hold"}
    answer = send(client, reverse("product_new"), page, **sent)
    made = catalogue.list_for(str(alice.pk)).items[0]
    assert (answer.headers["Location"], made.name) == (
        reverse("product", args=[made.product_id]),
        "Tern",
    )


def test_a_vercel_project_is_followed_by_its_id_where_that_is_enough_and_left(
    client: Client, product: Product, settings: Settings
) -> None:
    path = reverse("source", args=[product.product_id, "vercel"])
    client.post(path, {"action": "public", "project_id": "prj_9fK2"})
    assert reread(product).vercel_project_id is None
    settings.FOLLOW_PRIVATE_REPOSITORIES = True
    wrong = client.post(path, {"action": "public", "project_id": "nope"})
    assert (wrong.status_code, reread(product).vercel_project_id) == (422, None)
    assert fields(wrong)["project_id"] == ["nope"]
    client.post(path, {"action": "public", "project_id": "prj_9fK2"})
    assert reread(product).vercel_project_id == "prj_9fK2"
    client.post(path, {"action": "unfollow"})
    assert reread(product).vercel_project_id is None


def test_a_product_that_was_set_aside_says_why_and_what_to_do(
    client: Client, product: Product
) -> None:
    broken = '{"timezone": "Mars/Olympus", "slots": []}'
    why = "Mars/Olympus is not a time zone."
    change(product, None, plan=broken, schedule_error=why, trouble_status="open")
    for path in (reverse("products"), reverse("product", args=[product.product_id])):
        page = words(client.get(path))
        assert "Set aside" in page
        assert why in page
        assert reverse("plan", args=[product.product_id]) in page


@pytest.mark.parametrize("plan", [None, "", "[]", "x", '{"timezone": 5}', '{"timezone": "Europe"}'])
def test_a_product_without_a_zone_that_can_be_read_shows_utc(plan: str | None) -> None:
    assert Product(plan=plan).timezone == "UTC"


def test_activity_stands_under_the_day_it_was_in_the_products_zone(
    client: Client, alice: User
) -> None:
    product = planned_product(user_id=str(alice.pk), timezone="America/Los_Angeles")
    make_story(product, now=at("2026-01-06 04:00"))  # Monday, 20:00 there
    page = words(client.get(reverse("activity", args=[product.product_id])))
    assert '<h2 class="day">Monday 5 January 2026</h2>' in page
    assert ">20:00</time>" in page


def test_a_story_is_left_out_and_told_after_all(client: Client, product: Product) -> None:
    story = make_story(product)
    path = reverse("judge", args=[product.product_id])
    answer = client.post(path, {"key": story.key}, headers=HTMX)
    assert "Ignored: you said so" in words(answer)
    assert reread(story).ignored == "you said so"
    client.post(path, {"key": story.key})
    assert reread(story).ignored is None


def test_a_product_that_follows_nothing_is_asked_where_it_is_made(
    client: Client, product: Product
) -> None:
    page = words(client.get(reverse("activity", args=[product.product_id])))
    assert f"{reverse('product', args=[product.product_id])}#sources" in page


def test_hostile_words_are_words_on_every_page(client: Client, alice: User) -> None:
    product = planned_product(user_id=str(alice.pk), name=HOSTILE, pitch=HOSTILE)
    following.follow(product, "github", Choice("1", HOSTILE), timezone.now())
    make_story(product, title=HOSTILE)
    post = make_post(product, slot_at=FUTURE, text=HOSTILE)
    astray(make_post(product, slot_at=PAST, text=HOSTILE), State.FAILED)
    own = [reverse(name, args=[product.product_id]) for name in ("product", "activity", "plan")]
    for path in ("/", reverse("history"), reverse("products"), address(post), *own):
        page = client.get(path).content.decode()
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert(1)" not in page


def test_the_counter_counts_as_the_outlet_counts(client: Client) -> None:
    path = reverse("text_length")
    link = "https://example.com/" + "y" * 120
    answer = client.post(path, {"outlet": "x", "text": f"{'a' * 250} {link}"})
    assert answer.json() == {"length": 274, "limit": 280}
    assert client.post(path, {"outlet": "nowhere", "text": "a"}).status_code == 400


# -- what an attack found --------------------------------------------------------------------------


def test_a_control_character_reaches_neither_a_text_nor_the_feed(
    client: Client, product: Product
) -> None:
    post = make_post(product, slot_at=FUTURE)
    send(
        client, address(post), client.get("/"),
        changelog__action="save", changelog__text="Tidy\x01 words\x0b here\u202e",
    )  # fmt: skip
    assert reread(post).text == "Tidy words here"


@pytest.mark.parametrize(
    "path",
    [
        "/c/{long}/",
        "/c/{slug}/{long}/",
        "/products/{long}/",
        "/posts/20260106T090000Z/{long}/changelog/",
        "/posts/20260106T090000Z/{product_id}/{long}/",
    ],
)
def test_a_name_that_no_item_can_have_is_not_there(
    client: Client, product: Product, path: str
) -> None:
    long = "x" * 3000
    parts = {"long": long, "slug": product.slug, "product_id": product.product_id}
    assert client.get(path.format(**parts)).status_code == 404


@pytest.mark.parametrize("key", ["", "x" * 2000])
def test_an_activity_that_cannot_be_is_not_there(
    client: Client, product: Product, key: str
) -> None:
    judge = reverse("judge", args=[product.product_id])
    assert client.post(judge, {"key": key}).status_code == 404


def test_an_outlet_that_is_not_there_stops_the_whole_approval(
    client: Client, product: Product
) -> None:
    post = make_post(product, slot_at=FUTURE)
    answer = client.post(
        slot_address(post),
        {
            "outlet": ["changelog", "nope"],
            "changelog-seen": posts.text_hash(post),
            "changelog-text": post.text,
        },
    )
    assert (answer.status_code, reread(post).state) == (404, State.AWAITING_REVIEW)


def test_what_a_signed_in_person_sees_is_stored_nowhere(client: Client) -> None:
    assert client.get("/").headers["Cache-Control"] == "private, no-store"
