"""One fact is one activity, whoever tells it and however often, for every product that follows."""

from datetime import timedelta

import pytest

from integrations.sources.base import Gone, Received, Renamed
from products import activity, catalogue
from products.tables import Activity, Product
from tests.builders import NOW, make_event, make_product, make_story, reread

pytestmark = pytest.mark.usefixtures("store")


def following(user_id: str = "1", **links: str) -> Product:
    product = make_product(user_id)
    if "repo" in links:
        catalogue.follow_repository(product, links["repo"], "acme/app")
    if "project" in links:
        catalogue.follow_vercel_project(product, links["project"], "app")
    return product


def received(**fields: object) -> Received:
    return Received(
        **{"delivery_id": "d1", "event": "pull_request.closed", "follow_id": "42", **fields}  # type: ignore[arg-type]
    )


def of(product: Product) -> list[Activity]:
    return activity.list_for(product.product_id).items


def test_every_product_of_every_user_that_follows_the_repository_gets_it() -> None:
    followers = [following("1", repo="42"), following("1", repo="42"), following("2", repo="42")]
    other = following("2", repo="43")
    taken = activity.take("github", received(events=(make_event(),)), NOW)
    assert {(t.user_id, t.product_id, t.what) for t in taken} == {
        (p.user_id, p.product_id, "1 story") for p in followers
    }
    assert [len(of(product)) for product in [*followers, other]] == [1, 1, 1, 0]


def test_a_redelivery_adds_nothing_and_says_so() -> None:
    product = following(repo="42")
    for what in ("1 story", "1 known already"):
        taken = activity.take("github", received(events=(make_event(),)), NOW)
        assert [t.what for t in taken] == [what]
    assert len(of(product)) == 1


def test_two_events_about_one_fact_with_two_times_are_one_activity() -> None:
    product = make_product()
    assert activity.record(product.product_id, make_event(), NOW)
    later = make_event(occurred_at=NOW - timedelta(hours=3))
    assert not activity.record(product.product_id, later, NOW)
    assert len(of(product)) == 1


def test_a_record_broken_off_between_its_two_writes_is_completed_by_the_next() -> None:
    product = make_product()
    activity.record(product.product_id, make_event(), NOW)
    of(product)[0].delete()
    assert activity.record(product.product_id, make_event(occurred_at=NOW), NOW)
    assert len(of(product)) == 1


def test_what_happened_in_the_future_happened_now() -> None:
    product = make_product()
    event = make_event(occurred_at=NOW + timedelta(days=900))
    activity.record(product.product_id, event, NOW)
    assert of(product)[0].key.startswith("20260105T120000Z#")


def test_noise_is_kept_with_its_reason_and_is_no_story() -> None:
    product = following(repo="42")
    events = (make_event(ignored="made by a bot (dependabot)"),)
    taken = activity.take("github", received(events=events), NOW)
    assert [t.what for t in taken] == ["ignored: made by a bot (dependabot)"]
    item = of(product)[0]
    assert (item.ignored, item.story_at) == ("made by a bot (dependabot)", None)


def test_a_rename_keeps_the_link_and_a_deletion_ends_it() -> None:
    product = following(repo="42")
    activity.take("github", received(upkeep=Renamed("acme/new")), NOW)
    assert (reread(product).github_repo_name, reread(product).github_repo_id) == ("acme/new", "42")
    taken = activity.take("github", received(upkeep=Gone("deleted on GitHub")), NOW)
    assert [t.what for t in taken] == ["no longer followed: deleted on GitHub"]
    assert reread(product).github_repo_id is None
    assert activity.take("github", received(events=(make_event(),)), NOW) == []


def test_what_is_said_of_a_repository_no_longer_followed_changes_nothing() -> None:
    """The index still named the product when it had turned to another repository."""
    product = following(repo="42")
    stale = reread(product)
    catalogue.follow_repository(product, "43", "acme/other")
    for upkeep in (Gone("deleted on GitHub"), Renamed("acme/new")):
        said = activity._keep_up(stale, "github", received(upkeep=upkeep), upkeep)
        assert said == "no longer followed"
    assert (reread(product).github_repo_id, reread(product).github_repo_name) == (
        "43",
        "acme/other",
    )


def test_a_vercel_project_is_followed_by_its_own_index() -> None:
    product = following(project="prj_1")
    event = make_event(source="vercel", kind="deployment", id="deployment:dpl_1")
    taken = activity.take("vercel", received(follow_id="prj_1", events=(event,)), NOW)
    assert [t.product_id for t in taken] == [product.product_id]
    assert activity.take("vercel", received(follow_id="prj_2", events=(event,)), NOW) == []


def test_a_verdict_can_be_overruled_and_overruled_again() -> None:
    item = make_story(make_product(), ignored="chore")
    activity.make_story(item, NOW)
    assert (reread(item).ignored, reread(item).overruled) == (None, "was ignored: chore")
    activity.ignore(item)
    assert (reread(item).ignored, reread(item).story_at) == ("you said so", None)


def test_two_products_of_one_name_have_two_addresses() -> None:
    slugs = {make_product(name="Tidewater").slug for _ in range(3)}
    assert len(slugs) == 3
    assert {slug[:9] for slug in slugs} == {"tidewater"}


@pytest.mark.parametrize("name", ["🦥", "   ", "日本語", "../..", "<script>"])
def test_any_name_has_an_address_that_is_safe(name: str) -> None:
    slug = make_product(name=name).slug
    assert slug.replace("-", "").isalnum()
    assert slug.isascii()


def test_the_product_behind_an_address_is_found() -> None:
    product = make_product()
    found = catalogue.find_by_slug(product.slug)
    assert found is not None
    assert found.product_id == product.product_id
    assert catalogue.find_by_slug("nobody") is None
