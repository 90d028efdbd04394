"""The activity page: what each thing is, in words, and one tap that overrules it."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from integrations import connections
from integrations.connections import Account, Grant
from products import activity
from tests.builders import NOW, make_event, make_product, make_story
from tests.conftest import signed_in
from tests.pages import HTMX, words

pytestmark = pytest.mark.usefixtures("store")


def test_every_row_says_story_part_of_or_ignored_because(alice: User) -> None:
    product = make_product(str(alice.pk))
    sha = "a" * 40
    for event in (
        make_event(refs=("pr:7", f"sha:{sha}"), stage="merged"),
        make_event(kind="commit", id=f"commit:{sha}", refs=(f"sha:{sha}", "pr:7"), title="Add it"),
        make_event(id="pr:8", refs=("pr:8",), title="chore: tidy", ignored="a chore"),
    ):
        activity.record(product.product_id, event, NOW)
    page = words(signed_in(alice).get(reverse("activity", args=[product.product_id])))
    assert page.count("Story, merged") == 1
    assert page.count("Part of <a") == 1
    assert page.count("Ignored: a chore") == 1


@pytest.mark.parametrize(
    ("tell", "reason"),
    [("no", "you said so"), ("elsewhere", "you announced it elsewhere")],
)
def test_a_story_is_left_out_with_the_reason_and_told_again(
    alice: User, tell: str, reason: str
) -> None:
    product = make_product(str(alice.pk))
    story = make_story(product)
    visitor, address = signed_in(alice), reverse("judge", args=[product.product_id])
    row = words(visitor.post(address, {"key": story.key, "tell": tell}, headers=HTMX))
    assert f"Ignored: {reason}" in row
    row = words(visitor.post(address, {"key": story.key, "tell": "yes"}, headers=HTMX))
    assert "your choice" in row


def test_the_review_page_says_which_account_needs_its_owner(alice: User, bob: User) -> None:
    account = Account("icfg_1", "Slow <b>Boats</b>")
    broken = connections.connect(str(alice.pk), "vercel", account, Grant({"token": "t"}), now=NOW)
    page = words(signed_in(alice).get("/"))
    assert ") needs you. " not in page
    connections.mark_broken(broken, "It was removed at Vercel.", NOW)
    page = words(signed_in(alice).get("/"))
    assert "Vercel (Slow &lt;b&gt;Boats&lt;/b&gt;) needs you. It was removed" in page
    assert ") needs you. " not in words(signed_in(bob).get("/"))
