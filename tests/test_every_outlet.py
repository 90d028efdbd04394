"""Over every outlet that takes an account: an approved post is out once, or is visibly not.

Whatever fails, and wherever the worker dies: the stand-in shows one post, or none with the post
visibly not sent; `unconfirmed` only where the outlet cannot be asked.
"""

import os
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from integrations import connections
from integrations.connections import Account, Grant
from integrations.outlets import OUTLETS
from integrations.standins.server import Fault
from integrations.tables import Connection
from products import posting, posts
from products.states import WORKING, State
from products.tables import Post, Product
from scheduling.publishing import run_due_posts
from slothpost_site import dynamo
from tests.builders import make_post, make_product, reread
from tests.conftest import Outside, connected_to, signed_in
from tests.scheduling.test_races import WRITES, how_it_ended, in_child

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]

EVERY = [name for name, outlet in OUTLETS.items() if outlet.needs_account]
TEXT = "Dark theme is here 🦥\n\n(and it_is *dark*) é → https://acme.example/dark?a=1&b=2 #indie"
MINUTE = timedelta(minutes=1)


class Stage:
    """An outlet on this machine, an account there, and a clock that stands still."""

    def __init__(self, outside: Outside, name: str, alice: User) -> None:
        self.name, self.service, self.standins = name, outside.outlets[name], outside.standins
        self.now = timezone.now().replace(microsecond=0)
        self.service.clock = lambda: self.now
        self.account: Connection = connected_to(outside, name, str(alice.pk), self.now)
        self.product: Product = make_product(str(alice.pk), now=self.now)
        posting.choose(self.product, name, self.account, self.now)

    def approve_for(self, user_id: str, text: str) -> Post:
        """Of another person, for an account of their own."""
        known = self.account
        who = Account(known.account_id, str(known.account_name), details=known.details or {})
        grant = Grant(connections.secrets_of(known))
        account = connections.connect(user_id, self.name, who, grant, now=self.now)
        product = make_product(user_id, now=self.now)
        posting.choose(product, self.name, account, self.now)
        return self.approve(text, product=product)

    def approve(
        self, text: str = TEXT, at: datetime | None = None, product: Product | None = None
    ) -> Post:
        slot_at, product = at or self.now, product or self.product
        post = make_post(product, slot_at=slot_at, outlet=self.name, text=text, now=self.now)
        posting.bind(post, posting.account_of(product, self.name))
        seen = posts.text_hash(post)
        posts.approve(post, seen=seen, send_at=slot_at, now=self.now, by="1")
        return post

    def run(self, minutes: int = 1) -> None:
        for _ in range(minutes):
            run_due_posts(self.now)
            self.now += MINUTE

    def settle(self, post: Post) -> Post:
        """Let the minutes pass until no machine has a next step."""
        for _ in range(200):
            found: Post = reread(post)
            if found.state not in WORKING:
                return found
            self.run()
        raise AssertionError(f"It never settles: {found.state}, {found.reason}")

    def shown(self) -> list[str]:
        """The texts that people see there."""
        return [post.text for post in self.service.posts]


@pytest.fixture(params=EVERY)
def stage(request: pytest.FixtureRequest, outside: Outside, alice: User) -> Stage:
    return Stage(outside, request.param, alice)


def test_what_was_approved_is_out_to_the_byte_once_with_its_link(stage: Stage) -> None:
    post = stage.approve()
    stage.run(3)
    found = reread(post)
    assert (found.state, stage.shown()) == (State.PUBLISHED, [TEXT])
    assert found.external_id
    assert stage.name == "webhook" or found.permalink.startswith("http")


FAULTS: dict[str, Callable[[], Fault]] = {
    "answer lost": lambda: Fault(does_the_work=True, hang_up=True),
    "half done, then a fault of its own": lambda: Fault(status=500, does_the_work=True),
    "half an answer": lambda: Fault(status=200, body='{"data": {"id"', does_the_work=True),
    "hung up before": lambda: Fault(hang_up=True),
    "down": lambda: Fault(status=503),
    "limited": lambda: Fault(status=429, headers={"Retry-After": "60"}),
    "a page": lambda: Fault(status=502, body="<html>Bad gateway</html>"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_at_whatever_call_it_is_out_once_or_visibly_not(
    stage: Stage, fault: str
) -> None:
    for call in range(5):
        text = f"Number {call}: {TEXT}"
        stage.now += timedelta(hours=1)
        post = stage.approve(text)
        stage.standins.faults = [after(call, FAULTS[fault]())]
        found = stage.settle(post)
        times = stage.shown().count(text)
        if found.state == State.PUBLISHED:
            assert times == 1
        else:
            assert found.state in {State.FAILED, State.UNCONFIRMED}
            assert not OUTLETS[stage.name].can_find_out or found.state == State.FAILED
            assert times <= (found.state == State.UNCONFIRMED)


def after(calls: int, fault: Fault) -> Fault:
    """The fault, once so many calls went by undisturbed."""
    fault.after = calls
    return fault


def die_at(write: int, *, before: bool) -> None:
    """Kill this process right before, or right after, its so-many-th write."""
    left = write

    def count(model: Any, **_: Any) -> None:
        nonlocal left
        left -= model.name in WRITES
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    moment = "before-call.dynamodb" if before else "after-call.dynamodb"
    dynamo.client().meta.events.register(moment, count)


@pytest.mark.parametrize("before", [True, False])
def test_a_worker_killed_at_any_write_leaves_one_post(stage: Stage, before: bool) -> None:
    write = 0
    while True:
        write += 1
        text = f"Number {write}: {TEXT}"
        post = stage.approve(text, stage.now + MINUTE)
        stage.now += MINUTE

        def dying(write: int = write) -> None:
            die_at(write, before=before)
            run_due_posts(stage.now)

        ended = how_it_ended(in_child(dying))
        found = stage.settle(post)
        sure = OUTLETS[stage.name].can_find_out
        assert found.state == State.PUBLISHED or (not sure and found.state == State.UNCONFIRMED)
        assert stage.shown().count(text) == 1 or found.state == State.UNCONFIRMED
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert write > 2  # a turn, a claim, an outcome


def test_a_dead_token_is_told_and_sends_nothing(stage: Stage) -> None:
    post = stage.approve()
    for granted in ("tokens", "refresh_tokens", "sessions"):
        getattr(stage.service, granted, {}).clear()
    stage.run(2)
    found = reread(post)
    assert (found.state, stage.shown()) == (State.FAILED, [])
    works = reread(stage.account).works
    assert (works, found.held_for) == (False, stage.account.key) or stage.name == "webhook"


def test_fifty_posts_of_one_account_in_one_minute_are_all_sent_once(stage: Stage) -> None:
    waiting = [
        stage.approve(f"Number {number} is here.", stage.now - timedelta(seconds=number))
        for number in range(50)
    ]
    assert {stage.settle(post).state for post in waiting} == {State.PUBLISHED}
    assert sorted(stage.shown()) == sorted(f"Number {n} is here." for n in range(50))


def test_every_attempt_and_what_became_of_it_is_listed(stage: Stage, alice: User) -> None:
    post = stage.approve()
    stage.standins.faults = [Fault(status=503)]
    stage.settle(post)
    page = signed_in(alice).get("/connections/sent/", {"key": stage.account.key})
    (draft,) = page.context["drafts"]
    assert [attempt.what for attempt in draft.attempts][-1] == "Published"
    assert all(attempt.why for attempt in draft.attempts[:-1])
    assert draft.post.key == post.key


def test_fifty_posts_of_fifty_people_in_one_minute_are_all_sent_once(stage: Stage) -> None:
    waiting = [stage.approve_for(f"person-{number}", f"It is {number}.") for number in range(50)]
    assert {stage.settle(post).state for post in waiting} == {State.PUBLISHED}
    assert sorted(stage.shown()) == sorted(f"It is {number}." for number in range(50))
