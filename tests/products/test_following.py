"""Who gets what is told of a thing that products follow, and what becomes of the link to it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from integrations import connections
from integrations.sources.base import (
    Choice,
    Gone,
    Hidden,
    Opened,
    OutOfReach,
    Received,
    Renamed,
    Wanted,
)
from products import activity, following
from products.states import State
from products.tables import Activity, Product
from slothpost_site.dynamo import change
from slothpost_site.moments import to_ms
from tests.builders import NOW, approved_post, make_event, make_product, reread

pytestmark = pytest.mark.usefixtures("store")

EVENTS = (make_event(),)
REPOSITORY = Choice(id="42", name="acme/app")


def follower(user_id: str = "1", choice: Choice = REPOSITORY, source: str = "github") -> Product:
    product = make_product(user_id)
    following.follow(product, source, choice, NOW)
    return product


def received(**fields: object) -> Received:
    return Received(
        **{"delivery_id": "d1", "event": "pull_request.closed", "follow_id": "42", **fields}  # type: ignore[arg-type]
    )


def of(product: Product) -> list[Activity]:
    return activity.list_for(product.product_id).items


def said(source: str, delivery: Received) -> list[str]:
    return [taken.what for taken in following.take(source, delivery, NOW)]


def test_every_product_of_every_user_that_follows_the_repository_gets_it() -> None:
    followers = [follower("1"), follower("1"), follower("2")]
    other = follower("2", replace(REPOSITORY, id="43"))
    taken = following.take("github", received(events=EVENTS), NOW)
    assert {(t.user_id, t.product_id, t.what) for t in taken} == {
        (p.user_id, p.product_id, "1 story") for p in followers
    }
    assert [len(of(product)) for product in [*followers, other]] == [1, 1, 1, 0]


def test_a_redelivery_adds_nothing_and_says_so() -> None:
    product = follower()
    assert said("github", received(events=EVENTS)) == ["1 story"]
    assert said("github", received(events=EVENTS)) == ["1 known already"]
    assert len(of(product)) == 1


def test_noise_is_kept_with_its_reason() -> None:
    product = follower()
    noise = received(events=(make_event(ignored="made by a bot (dependabot)"),))
    assert said("github", noise) == ["ignored: made by a bot (dependabot)"]
    assert [item.story_at for item in of(product)] == [None]


def test_a_vercel_project_is_followed_by_its_own_index() -> None:
    follower(choice=Choice(id="prj_1", name="app"), source="vercel")
    assert said("vercel", received(follow_id="prj_1", events=EVENTS)) == ["1 story"]
    assert said("vercel", received(follow_id="prj_2", events=EVENTS)) == []
    assert said("github", received(follow_id="prj_1", events=EVENTS)) == []


def test_what_is_private_reaches_only_who_has_shown_that_they_may_see_it() -> None:
    account = connections.Account(id="7", name="acme")
    connection = connections.connect(
        "1", "github", account, connections.Grant({"token": "t"}), now=NOW
    )
    allowed = follower("1", replace(REPOSITORY, via=connection.key, private=True))
    stranger = follower("2")
    foreign = follower("2", replace(REPOSITORY, via=connection.key, private=True))
    taken = following.take("github", received(events=EVENTS, private=True), NOW)
    assert [item.product_id for item in taken] == [allowed.product_id]
    assert [len(of(product)) for product in (stranger, foreign)] == [0, 0]


def test_a_rename_keeps_the_link_and_a_deletion_ends_it() -> None:
    product = follower()
    assert said("github", received(upkeep=Renamed("acme/new"))) == ["now called acme/new"]
    assert (reread(product).github_repo_name, reread(product).github_repo_id) == ("acme/new", "42")
    gone = received(upkeep=Gone("deleted on GitHub"))
    assert said("github", gone) == ["no longer followed: deleted on GitHub"]
    assert reread(product).github_repo_id is None
    assert said("github", received(events=EVENTS)) == []


def test_what_was_open_and_is_private_takes_approved_posts_back() -> None:
    product = follower()
    following.allow_private(product, "github", product.github_repo_id, NOW)
    resting, other = approved_post(product), approved_post(product, outlet="x")
    change(resting, None, evidence=[{"key": "k", "source": "github"}])
    what = said("github", received(upkeep=Hidden("It is private now.")))
    assert what == ["private now; approved posts that wait for you again: 1"]
    assert reread(resting).state == State.AWAITING_REVIEW
    assert reread(other).state == State.APPROVED
    found = reread(product)
    assert (following.is_private(found, "github"), following.is_allowed(found, "github")) == (
        True,
        False,
    )
    assert said("github", received(upkeep=Opened())) == ["open to everybody now"]
    assert not following.is_private(reread(product), "github")


def test_what_its_account_may_no_longer_see_stays_linked_and_says_why() -> None:
    product = follower(choice=replace(REPOSITORY, via="github#7"))
    assert said("github", received(upkeep=OutOfReach("Not yours."))) == ["Not yours."]
    found = reread(product)
    assert (found.github_repo_id, found.github_via) == ("42", None)
    assert following.state_of(found, "github")["error"] == "Not yours."


def test_a_delivery_can_say_what_is_so_of_several_things_at_once() -> None:
    first, second = follower(), follower("2", replace(REPOSITORY, id="43"))
    upkeep_of = (("42", Renamed("acme/one")), ("43", Renamed("acme/two")), ("44", Renamed("x")))
    taken = following.take("github", received(follow_id="", upkeep_of=upkeep_of), NOW)
    assert [item.product_id for item in taken] == [first.product_id, second.product_id]
    assert [reread(p).github_repo_name for p in (first, second)] == ["acme/one", "acme/two"]


def test_a_delivery_that_tells_too_little_has_the_sources_asked() -> None:
    product = follower()
    change(product, None, **following.NOT_ASKED)
    later = NOW + timedelta(minutes=5)
    following.take("github", received(upkeep=Wanted()), later)
    assert reread(product).fetch_at == to_ms(later)
    following.take("github", received(upkeep=Wanted()), later + timedelta(minutes=1))
    assert reread(product).fetch_at == to_ms(later)
