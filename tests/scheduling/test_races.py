"""Two ticks at once, and ticks that are killed between any two writes."""

import os
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from integrations.outlets import changelog
from products import activity, posts
from products.tables import Post, Product
from scheduling.due import run_due_products
from scheduling.publishing import run_due_posts
from slothpost_site import dynamo
from tests.builders import at, make_event, make_product, planned_product, reread
from tests.conftest import empty_tables

pytestmark = pytest.mark.usefixtures("store")

NOW = at("2026-01-06 09:01")
WRITES = {"PutItem", "UpdateItem", "DeleteItem"}


def tick(now: datetime) -> None:
    run_due_products(now)
    run_due_posts(now)


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process; its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


def how_it_ended(pid: int) -> int:
    """The exit status, or minus the signal, of a child."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def die_after(writes: int) -> None:
    """Kill this process, as the machine would, right after so many writes were answered."""
    left = writes

    def count(model: Any, **_: Any) -> None:
        nonlocal left
        left -= model.name in WRITES
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    dynamo.client().meta.events.register("after-call.dynamodb", count)


def set_the_scene() -> list[Product]:
    """Products with slots on three outlets and stories, an unreviewed draft of the week before,
    and an approved post that is due now."""
    products = []
    for user_id in ("1", "2"):
        product = planned_product(
            *((1, "09:00", outlet) for outlet in ("changelog", "x", "bluesky")),
            user_id=user_id,
            now=at("2025-12-29 12:00"),
        )
        for number in (1, 2):
            when = at("2025-12-29 15:00") + timedelta(days=number * 3)
            event = make_event(id=f"pr:{number}", refs=(f"pr:{number}",), occurred_at=when)
            activity.record(product.product_id, event, when)
            if number == 1:
                tick(at("2025-12-30 09:01") + timedelta(days=4))
        products.append(product)
    first = next(post for post in Post.query("1") if post.outlet == "changelog")
    posts.approve(first, seen=posts.text_hash(first), send_at=NOW, now=NOW, by="1")
    return products


def outcome(products: list[Product]) -> list[object]:
    """Everything that people would see, without the ids and times that differ by nature."""
    seen: list[object] = []
    for product in products:
        product = reread(product)
        seen.append((product.user_id, product.next_slot_at, product.drafted_slots))
        seen += [
            (post.outlet, post.slot_at, str(post.state), post.text, len(post.evidence or []))
            for post in Post.query(product.user_id)
        ]
        seen.append([entry.text for entry in changelog.entries(product.slug).items])
        assert product.next_run_at > NOW.timestamp() * 1000
    return seen


def afterwards() -> None:
    """The ticks of the next minutes, which finish what was left."""
    for minute in (1, 2, 3, 4, 5):
        tick(NOW + timedelta(minutes=minute))


def undisturbed() -> list[object]:
    products = set_the_scene()
    tick(NOW)
    afterwards()
    expected = outcome(products)
    empty_tables()
    return expected


def test_a_tick_killed_after_any_of_its_writes_ends_like_an_undisturbed_one() -> None:
    expected = undisturbed()
    writes = 0
    while True:
        writes += 1
        products = set_the_scene()

        def dying(writes: int = writes) -> None:
            die_after(writes)
            tick(NOW)

        ended = how_it_ended(in_child(dying))
        afterwards()
        assert outcome(products) == expected, f"killed after write {writes}"
        empty_tables()
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert writes > 15  # posts, advances, drafts, replacements, a claim, an entry, an outcome


@pytest.mark.parametrize("racers", [2, 4])
def test_ticks_at_the_same_moment_in_several_processes_end_like_one(racers: int) -> None:
    expected = undisturbed()
    products = set_the_scene()
    reader, writer = os.pipe()

    def racing() -> None:
        dynamo.client()
        os.close(writer)
        os.read(reader, 1)  # all start when the parent closes its end
        tick(NOW)

    children = [in_child(racing) for _ in range(racers)]
    os.close(writer)
    assert [how_it_ended(child) for child in children] == [0] * racers
    os.close(reader)
    afterwards()
    assert outcome(products) == expected


def test_racing_ticks_over_many_products_put_each_slots_post_once() -> None:
    products = [planned_product(user_id=str(number)) for number in range(40)]

    def racing() -> None:
        tick(NOW)

    children = [in_child(racing) for _ in range(3)]
    assert [how_it_ended(child) for child in children] == [0, 0, 0]
    assert [len(list(Post.query(str(number)))) for number in range(40)] == [1] * 40
    assert {reread(product).next_slot_at for product in products} == {
        int(at("2026-01-13 09:00").timestamp() * 1000)
    }


def test_two_approvals_at_the_same_moment_are_one() -> None:
    product = make_product()
    posts.begin(
        "1", product.product_id, "changelog", 1_000_000, work_at=0,
        previous_slot_at=None, missed_slots=[], now=NOW,
    )  # fmt: skip
    post = posts.find("1", 1_000_000, product.product_id, "changelog")
    assert post is not None
    posts.fill(post, now=NOW, text="Hello.", evidence=[], timezone="UTC")

    def approving() -> None:
        mine = reread(post)
        posts.approve(mine, seen=posts.text_hash(mine), send_at=NOW, now=NOW, by="1")

    children = [in_child(approving) for _ in range(4)]
    assert sorted(how_it_ended(child) for child in children) == [0, 1, 1, 1]
    assert [line.count('"to": "approved"') for line in reread(post).history] == [0, 0, 1]
