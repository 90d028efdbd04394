"""Posts that go to an account: to the one that was approved, within its limits, and found out."""

import smtplib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend
from django.urls import reverse
from pytest_django import Settings

from integrations import connections
from integrations.connections import Account, Grant
from integrations.errors import NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets import OUTLETS
from integrations.outlets.base import Approved, Piece, Price, Published, Sent
from integrations.tables import Connection
from products import posting, posts, spending
from products.states import State
from products.tables import Post, Product
from scheduling.publishing import MOST_LOOKS, run_due_posts
from slothpost_site.dynamo import change
from slothpost_site.moments import from_ms, to_ms
from tests.builders import NOW, approved_post, at, make_post, make_product, reread
from tests.conftest import signed_in
from tests.pages import words

pytestmark = pytest.mark.usefixtures("store")

SLOT = at("2026-01-06 09:00")
MINUTE = timedelta(minutes=1)


class Scripted(list[Approved]):
    """An outlet that keeps what it was given, and answers what it is told, in that order."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Exception] = []
        self.counted: dict[str, int] = {}

    def publish(self, approved: Approved, now: datetime) -> Published:
        self.append(approved)
        if not approved.kept:
            approved.keep({"container": "17"})
        if self.answers:
            raise self.answers.pop(0)
        return Published("id-1", "https://x.example/1")

    def numbers(self, sent: Sequence[Sent], now: datetime) -> dict[str, dict[str, int]]:
        return {each.external_id: dict(self.counted) for each in sent}


def price(text: str) -> Price:
    cheap, dear = Decimal("0.015"), Decimal("0.20")
    return Price(dear if "https://" in text else cheap, cheap, "2026-08-22")


def pieces(text: str) -> list[Piece]:
    parts = text.split(" ")
    gaps = [" "] * (len(parts) - 1) + [""]
    kinds = ["link" if part.startswith("https://") else "text" for part in parts]
    return [
        piece
        for part, gap, kind in zip(parts, gaps, kinds, strict=True)
        for piece in (Piece(part, kind), Piece(gap))  # type: ignore[arg-type]
    ]


@pytest.fixture
def x() -> Iterator[Scripted]:
    scripted, real = Scripted(), OUTLETS["x"]
    OUTLETS["x"] = replace(
        real,
        publish=scripted.publish,
        can_find_out=True,
        needs_account=True,
        per_minute=2,
        numbers=scripted.numbers,
        numbers_after=(timedelta(hours=1), timedelta(days=1)),
        price=price,
        pieces=pieces,
        limit_of=lambda account: int((account.details or {}).get("limit", real.limit)),
    )
    yield scripted
    OUTLETS["x"] = real


def account(number: str = "1", user_id: str = "1", **details: object) -> Connection:
    made = Account(number, f"@acme{number}", details=details)
    return connections.connect(user_id, "x", made, Grant({"token": "t"}), now=NOW)


def posting_product(to: Connection, **fields: object) -> Product:
    product = make_product(to.user_id, **fields)
    posting.choose(product, "x", to, NOW)
    return product


def approve(product: Product, slot_at: datetime = SLOT, text: str = "Dark theme.") -> Post:
    post = make_post(product, slot_at=slot_at, outlet="x", text=text)
    posting.bind(post, posting.account_of(product, "x"))
    posts.approve(post, seen=posts.text_hash(post), send_at=slot_at, now=NOW, by="1")
    return post


# -- for which account -----------------------------------------------------------------------------


def test_a_post_goes_to_the_account_that_it_was_approved_for(x: Scripted) -> None:
    to = account()
    post = approve(posting_product(to))
    run_due_posts(SLOT)
    assert [(each.account.key, each.text) for each in x if each.account] == [
        (to.key, "Dark theme.")
    ]
    found = reread(post)
    assert (found.state, found.account_name, found.price) == (State.PUBLISHED, "@acme1", "0.015")


def test_another_account_takes_the_approval_back(x: Scripted) -> None:
    product = posting_product(account("1"))
    post = approve(product)
    assert posting.choose(product, "x", account("2"), NOW) == 1
    run_due_posts(SLOT)
    found = reread(post)
    assert (found.state, found.account, x) == (State.AWAITING_REVIEW, "x#2", [])


def test_an_account_swapped_past_the_verbs_is_noticed_before_the_call(x: Scripted) -> None:
    product = posting_product(account("1"))
    post = approve(product)
    change(reread(product), None, accounts={"x": account("2").key})
    run_due_posts(SLOT)
    assert (reread(post).state, x) == (State.AWAITING_REVIEW, [])


def test_without_an_account_a_post_is_its_owners_to_post(x: Scripted) -> None:
    post = approved_post(make_product(), slot_at=SLOT, outlet="x")
    run_due_posts(SLOT)
    found = reread(post)
    assert (found.state, found.reason.startswith("Yours to post"), x) == (State.MISSED, True, [])


def test_an_account_connected_after_the_approval_is_not_taken_for_included(x: Scripted) -> None:
    product = make_product()
    post = approved_post(product, slot_at=SLOT, outlet="x")
    posting.choose(product, "x", account(), NOW)
    run_due_posts(SLOT)
    assert (reread(post).state, reread(post).account, x) == (State.AWAITING_REVIEW, "x#1", [])


def test_the_limit_of_the_account_holds(x: Scripted) -> None:
    product = posting_product(account(limit=5))
    post = make_post(product, outlet="x", text="123456")
    posting.bind(post, posting.account_of(product, "x"))
    with pytest.raises(posts.TextRefused):
        posts.approve(post, seen=posts.text_hash(post), send_at=SLOT, now=NOW, by="1")
    assert (posts.limit_for(post), posting.limit_of(product, "x")) == (5, 5)


# -- an account that does not work -----------------------------------------------------------------


@pytest.fixture
def held(x: Scripted, alice: User) -> tuple[Connection, Post]:
    """A post that a dead token stopped."""
    to = account(user_id=str(alice.pk))
    post = approve(posting_product(to, name="Slowtide"))
    x.answers = [NeedsReconnect("X no longer accepts this account's authorisation.")]
    run_due_posts(SLOT)
    return reread(to), reread(post)


def test_a_dead_account_holds_its_posts_and_is_not_asked_again(
    x: Scripted, held: tuple[Connection, Post]
) -> None:
    to, post = held
    assert (post.state, post.held_for, to.works, len(x)) == (State.FAILED, to.key, False, 1)
    product = posting_product(to)
    later = approve(product, SLOT + timedelta(hours=1))
    run_due_posts(SLOT + timedelta(hours=1))
    assert (reread(later).state, reread(later).held_for, len(x)) == (State.MISSED, to.key, 1)
    assert mail.outbox == []  # the account is told of by itself


def test_after_a_reconnect_what_was_held_is_offered_and_only_what_is_ticked_goes_out(
    x: Scripted, held: tuple[Connection, Post], alice: User
) -> None:
    to, post = held
    other = approve(reread(posting_product(to)), SLOT + timedelta(hours=1), "Another text.")
    run_due_posts(SLOT + timedelta(hours=1))
    account(user_id=str(alice.pk))
    run_due_posts(SLOT + timedelta(hours=2))
    assert len(x) == 1  # nothing by itself
    client = signed_in(alice)
    page = words(client.get(reverse("held"), {"key": to.key}))
    assert (page.count('type="checkbox"'), "Another text." in page) == (2, True)
    client.post(reverse("held"), {"key": to.key, "post": posts.text_hash(post)})
    states = {State(reread(each).state) for each in (post,)}
    assert (states, reread(other).state) == ({State.APPROVED}, State.MISSED)


# -- within its limits -----------------------------------------------------------------------------


def test_posts_of_one_account_are_spread_over_minutes_and_those_of_others_are_not(
    x: Scripted,
) -> None:
    one, other = posting_product(account("1")), posting_product(account("2"))
    waiting = [approve(one, SLOT - timedelta(seconds=n)) for n in range(5)]
    free = approve(other)
    sent = []
    for minute in range(3):
        run_due_posts(SLOT + minute * MINUTE)
        sent.append(sum(reread(post).state == State.PUBLISHED for post in waiting))
    assert (sent, reread(free).state) == ([2, 4, 5], State.PUBLISHED)
    assert len({each.key for each in x}) == len(x) == 6


def test_a_limited_account_is_left_alone_until_its_time(x: Scripted) -> None:
    product = posting_product(account())
    first = approve(product)
    x.answers = [TryLater("X asks us to wait.", timedelta(minutes=10))]
    run_due_posts(SLOT)
    second = approve(product, SLOT + timedelta(minutes=5))
    run_due_posts(SLOT + timedelta(minutes=5))
    assert (reread(first).state, reread(second).state, len(x)) == ("approved", "approved", 1)
    run_due_posts(SLOT + timedelta(minutes=13))
    assert (reread(first).state, reread(second).state) == ("published", "published")


# -- what became of it -----------------------------------------------------------------------------


def test_a_lost_answer_is_asked_about_and_found(x: Scripted) -> None:
    post = approve(posting_product(account()))
    x.answers = [Unknown("X did not answer.")]
    run_due_posts(SLOT)
    assert (reread(post).state, reread(post).kept) == (State.PUBLISHING, {"container": "17"})
    run_due_posts(SLOT + MINUTE)
    assert [each.is_repeat for each in x] == [False, True]
    assert {each.claimed_at for each in x} == {SLOT}
    assert (x[1].kept, reread(post).state) == ({"container": "17"}, State.PUBLISHED)


@pytest.mark.parametrize("answer", [Unknown("Lost."), TryLater("Down."), NeedsReconnect("Gone.")])
def test_what_cannot_be_found_out_is_asked_of_its_owner_in_the_end(
    x: Scripted, answer: Exception
) -> None:
    post = approve(posting_product(account()))
    x.answers = [Unknown("Lost."), *([answer] * 20)]
    for minute in range(121):
        run_due_posts(SLOT + minute * MINUTE)
    found = reread(post)
    assert found.state == State.UNCONFIRMED
    assert len(x) <= MOST_LOOKS + 1
    assert found.reason.endswith("It may be out: look, then say which.")


def test_what_is_refused_when_it_is_tried_again_was_not_sent(x: Scripted) -> None:
    post = approve(posting_product(account()))
    x.answers = [Unknown("Lost."), Refused("X says: too long.")]
    run_due_posts(SLOT)
    run_due_posts(SLOT + MINUTE)
    assert (reread(post).state, reread(post).reason) == (State.FAILED, "X says: too long.")


def test_nothing_is_sent_for_a_post_that_somebody_else_took_over(x: Scripted) -> None:
    post = approve(posting_product(account()))
    posts.claim(post, lease="mine", until=SLOT + MINUTE, now=SLOT)
    stale = reread(post)
    posts.renew(post, lease="other", until=SLOT + 2 * MINUTE)
    with pytest.raises(posts.Conflict):
        posts.keep(stale, {"container": "18"})
    assert reread(post).kept is None


# -- telling ---------------------------------------------------------------------------------------


def failed(x: Scripted, alice: User) -> Post:
    post = approve(
        posting_product(account(user_id=str(alice.pk)), name="Slow\ntide"), text="The text."
    )
    x.answers = [Refused("X says: this is no good.")]
    run_due_posts(SLOT)
    return reread(post)


def test_a_failure_is_told_at_once_and_once(x: Scripted, alice: User) -> None:
    post = failed(x, alice)
    for minute in range(3):
        run_due_posts(SLOT + minute * MINUTE)
    (message,) = mail.outbox
    assert message.to == [alice.email]
    assert message.subject == "Not sent: Slow tide on X"
    for part in ("@acme1", "X says: this is no good.", "The text.", "Tue 6 Jan, 9:00", "/posts/"):
        assert part in message.body
    assert post.work_at is None


class Refusing(BaseEmailBackend):
    def send_messages(self, email_messages: object) -> int:
        raise smtplib.SMTPServerDisconnected


def test_a_mail_that_does_not_leave_is_tried_again_and_nothing_else_is(
    x: Scripted, alice: User, settings: Settings
) -> None:
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = f"{__name__}.Refusing"
    failed(x, alice)
    settings.EMAIL_BACKEND = working
    run_due_posts(SLOT + 6 * MINUTE)
    run_due_posts(SLOT + 12 * MINUTE)
    assert (len(mail.outbox), len(x)) == (1, 1)


# -- what it costs ---------------------------------------------------------------------------------

LINKED = "Dark theme: https://acme.example/dark"


def test_a_cap_holds_what_would_pass_it_and_says_so(x: Scripted) -> None:
    product = posting_product(account(), monthly_cap="0.21")
    first = approve(product, SLOT, LINKED)
    second = approve(product, SLOT + timedelta(hours=1), f"Again. {LINKED}")
    run_due_posts(SLOT)
    run_due_posts(SLOT + timedelta(hours=1))
    assert (reread(first).state, reread(second).state) == (State.PUBLISHED, State.MISSED)
    assert "$0.20 of this month's $0.21" in reread(second).reason
    next_month = SLOT + timedelta(days=31)
    third = approve(product, next_month, LINKED)
    run_due_posts(next_month)
    assert reread(third).state == State.PUBLISHED


def test_the_card_says_the_price_and_offers_the_text_without_its_link(
    x: Scripted, alice: User
) -> None:
    product = posting_product(account(user_id=str(alice.pk)))
    post = make_post(product, slot_at=SLOT, outlet="x", text=LINKED)
    posting.bind(post, posting.account_of(product, "x"))
    client = signed_in(alice)
    address = reverse("post", args=["20260106T090000Z", product.product_id, "x"])
    page = words(client.get(address))
    assert "Costs $0.20 by the prices of 2026-08-22, $0.015 without its link." in page
    assert spending.without_links(post) == "Dark theme"
    client.post(address, {"x-action": "unlink", "x-seen": posts.text_hash(post)})
    assert (reread(post).text, reread(post).state) == ("Dark theme", State.AWAITING_REVIEW)


# -- what people made of it ------------------------------------------------------------------------


def test_numbers_are_read_ever_more_seldom_and_then_no_more(x: Scripted) -> None:
    post = approve(posting_product(account()))
    run_due_posts(SLOT)
    x.counted = {"likes": 3}
    run_due_posts(SLOT + timedelta(minutes=59))
    assert reread(post).numbers is None
    run_due_posts(SLOT + timedelta(hours=1))
    found = reread(post)
    assert (found.numbers, from_ms(found.work_at)) == ({"likes": 3}, SLOT + timedelta(days=1))
    x.counted = {"likes": 4}
    run_due_posts(SLOT + timedelta(days=1))
    found = reread(post)
    assert (found.numbers, found.numbers_at) == ({"likes": 4}, to_ms(SLOT + timedelta(days=1)))
    assert (found.work_at, found.state, len(x)) == (None, State.PUBLISHED, 1)
