"""Results: what people made of posts, by outlet and by the kind of story."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from products.results import FEW, Results, summed_up
from products.tables import Post, Product
from slothpost_site.dynamo import change
from tests.builders import NOW, make_post, make_product
from tests.conftest import signed_in
from tests.pages import words

pytestmark = pytest.mark.usefixtures("store")


def read(outlet: str, *kinds: str, **numbers: int) -> Post:
    evidence = [{"kind": kind, "title": "x"} for kind in kinds]
    return Post(outlet=outlet, evidence=evidence, numbers=numbers)


def rows(found: Results) -> list[tuple[str, int, dict[str, float | None]]]:
    return [(row.kind, row.posts, dict(row.numbers)) for row in found.rows]


def test_each_kind_of_story_has_the_middle_of_its_numbers() -> None:
    posts_read = [
        read("x", "release", likes=1, views=10),
        read("x", "release", likes=3, views=30),
        read("x", "release", "release", likes=100, views=20),
        read("x", "merge", "release", likes=7),
        read("x", likes=0),
        read("x", "podcast", likes=5),
        Post(outlet="x", evidence=[], numbers=None),
    ]
    (found,) = summed_up(posts_read)
    assert (found.outlet.name, found.names, found.posts) == ("x", ["likes", "views"], 6)
    assert rows(found) == [
        ("Release", 3, {"likes": 3, "views": 20}),
        ("Several in one post", 1, {"likes": 7, "views": None}),
        ("About the product itself", 1, {"likes": 0, "views": None}),
        ("Podcast", 1, {"likes": 5, "views": None}),
    ]


def test_outlets_are_never_counted_together() -> None:
    found = summed_up([read("bluesky", "tag", likes=2), read("x", "tag", likes=4)])
    assert [(one.outlet.name, rows(one)) for one in found] == [
        ("x", [("Tag", 1, {"likes": 4})]),
        ("bluesky", [("Tag", 1, {"likes": 2})]),
    ]


def test_few_posts_are_called_few() -> None:
    (found,) = summed_up(
        [read("x", "tag", likes=1)] * (FEW - 1) + [read("x", "merge", likes=1)] * FEW
    )
    assert [(row.kind, row.are_few) for row in found.rows] == [
        ("Merged change", False),
        ("Tag", True),
    ]


def with_numbers(product: Product, hour: int, **numbers: int) -> None:
    at = NOW + timedelta(hours=hour)
    post = make_post(product, slot_at=at, outlet="x", now=at)
    change(post, None, numbers=numbers)


def test_the_page_says_what_its_numbers_rest_on_and_shows_nobody_elses(
    alice: User, bob: User
) -> None:
    with_numbers(make_product(str(alice.pk)), 1, likes=3, replies=2)
    with_numbers(make_product(str(bob.pk)), 1, likes=77)
    page = words(signed_in(alice).get("/history/results/"))
    shown = " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "from 1 post " in shown
    assert "About the product itself 1 post (too few to go by) 3 2" in shown
    assert "77" not in shown


def test_without_numbers_the_page_says_when_they_come(alice: User) -> None:
    make_post(make_product(str(alice.pk)))
    assert "No results yet" in words(signed_in(alice).get("/history/results/"))
