"""What is private reaches a draft only as its owner allowed, of what is followed now."""

from datetime import timedelta

import pytest

from integrations import connections
from integrations.connections import Account, Grant
from integrations.sources.base import Choice, Event, Opened, OutOfReach, Reachable, Received
from integrations.tables import Connection
from products import activity, following, posts
from products.states import State
from products.tables import Post, Product
from scheduling.due import run_due_products
from scheduling.publishing import run_due_posts
from scheduling.writing import PRIVATE, UNSEEN
from slothpost_site.dynamo import change
from slothpost_site.moments import to_ms
from tests.builders import NOW, at, make_event, planned_product, reread

pytestmark = pytest.mark.usefixtures("store")

WEEKS = [at("2026-01-06 09:01") + timedelta(weeks=week) for week in range(3)]
EVENING = at("2026-01-05 18:00")


def installation(number: str = "5") -> Connection:
    """An installation of the app, and the account that shows it."""
    shows = connections.connect(
        "1", "github", Account("7001", "dev"), Grant({"token": "t"}), now=NOW
    )
    account = Account(f"installation:{number}", "acme", details={"account": shows.key})
    return connections.connect("1", "github", account, Grant({"token": "t"}), now=NOW)


def repository(number: str, via: Connection | None = None, *, private: bool = True) -> Choice:
    return Choice(number, f"acme/r{number}", via.key if via else "", private=private)


def follow(product: Product, choice: Choice, *, allowed: bool = False) -> None:
    """Follow it, with its sources asked already."""
    fresh = reread(product)
    following.follow(fresh, "github", choice, NOW)
    if allowed:
        following.allow_private(fresh, "github", choice.id, NOW)
    change(fresh, None, fetched_at=to_ms(WEEKS[2]), **following.NOT_ASKED)


def work(title: str, *, number: int = 7, private: bool = True, **fields: object) -> Event:
    return make_event(
        id=f"pr:{number}", refs=(f"pr:{number}",), title=title, private=private,
        stage="merged", occurred_at=EVENING, **fields,
    )  # fmt: skip


def hear(choice: Choice, *events: Event) -> None:
    received = Received("d", "push", choice.id, events, private=choice.private)
    following.take("github", received, EVENING)


def tick(week: int) -> Post:
    run_due_products(WEEKS[week])
    run_due_posts(WEEKS[week])
    slot_at = to_ms(WEEKS[week] - timedelta(minutes=1))
    return next(post for post in Post.query("1") if post.slot_at == slot_at)


def test_nothing_is_written_before_its_owner_says_so() -> None:
    product, secret = planned_product(), repository("1", installation())
    follow(product, secret)
    hear(secret, work("Add a secret harbour"))
    skipped = tick(0)
    assert (skipped.state, skipped.reason) == (State.SKIPPED, PRIVATE)
    following.allow_private(reread(product), "github", "1", WEEKS[0])
    assert "secret harbour" in str(tick(1).text)


def test_what_is_open_is_told_without_what_is_private() -> None:
    product, mixed = planned_product(), repository("1", installation())
    follow(product, mixed)
    hear(mixed, work("Add a secret harbour"))
    deployed = make_event(
        source="vercel", kind="deployment", id="deployment:1", title="Show the moon", refs=(),
        stage="live", occurred_at=EVENING,
    )  # fmt: skip
    following.follow(fresh := reread(product), "vercel", Choice("prj_1", "tide"), NOW)
    change(fresh, None, fetched_at=to_ms(WEEKS[2]), **following.NOT_ASKED)
    following.record(fresh, "vercel", "prj_1", [deployed], EVENING)
    text = str(tick(0).text)
    assert ("moon" in text, "harbour" in text) == (True, False)


def test_consent_for_one_repository_is_none_for_the_one_before() -> None:
    product, via = planned_product(), installation()
    first, second = repository("1", via), repository("2", via)
    follow(product, first)
    hear(first, work("Add the takeover screen"))
    follow(product, second, allowed=True)
    assert tick(0).state == State.SKIPPED


def test_pull_requests_of_two_repositories_are_never_taken_for_one() -> None:
    product, via = planned_product(), installation()
    secret, public = repository("1", via), repository("2", private=False)
    follow(product, secret)
    hear(secret, work("Zap: acquire a rival in secret"))
    follow(product, public)
    hear(public, work("Add a dark theme", private=False))
    post = tick(0)
    assert "dark theme" in str(post.text)
    assert "rival" not in str(post.text)
    assert [item["title"] for item in post.evidence] == ["Add a dark theme"]


def test_what_a_new_repository_counts_anew_is_told() -> None:
    product = planned_product()
    old, new = (repository(number, private=False) for number in ("1", "2"))
    version = {"kind": "release", "refs": ("tag:v1.0.0",), "version": "v1.0.0", "private": False}
    follow(product, old)
    hear(old, make_event(id="release:1", title="The old one", occurred_at=EVENING, **version))
    first = tick(0)
    posts.approve(first, seen=posts.text_hash(first), send_at=WEEKS[0], now=WEEKS[0], by="1")
    follow(product, new)
    later = WEEKS[0] + timedelta(days=1)
    again = make_event(id="release:2", title="Quite another", occurred_at=later, **version)
    following.take("github", Received("d2", "release", "2", (again,)), later)
    assert [item["title"] for item in tick(1).evidence] == ["Quite another"]


def test_back_at_the_first_repository_its_facts_are_known() -> None:
    product = planned_product()
    old, new = (repository(number, private=False) for number in ("1", "2"))
    for choice in (old, new, old):
        follow(product, choice)
        hear(choice, work("Add a dark theme", private=False))
    found = activity.list_for(product.product_id).items
    assert sorted(str(item.scope) for item in found) == ["2", "None"]


def test_notes_that_are_private_are_not_told_by_what_is_open() -> None:
    product, secret = planned_product(private_detail="full"), repository("1", installation())
    follow(product, secret)
    hear(
        secret,
        make_event(
            kind="release", id="release:1", title="v1.2.0", version="v1.2.0", private=True,
            body="- Prepares a takeover", refs=("tag:v1.2.0",), occurred_at=EVENING,
        ),
    )  # fmt: skip
    in_store = make_event(
        source="app_store", kind="version", id="version:6:1.2.0", title="Tidewater 1.2.0",
        version="1.2.0", refs=("version:1.2.0",), stage="in the store", occurred_at=EVENING,
    )  # fmt: skip
    following.follow(fresh := reread(product), "app_store", Choice("6", "Tidewater"), NOW)
    change(fresh, None, fetched_at=to_ms(WEEKS[2]), **following.NOT_ASKED)
    following.record(fresh, "app_store", "6", [in_store], EVENING)
    post = tick(0)
    assert "1.2.0" in str(post.text)
    assert "takeover" not in str(post.text)


@pytest.mark.parametrize("broken", [True, False])
def test_nothing_private_is_written_once_its_owner_is_not_seen_to_see_it(broken: bool) -> None:
    product, via = planned_product(), installation()
    secret = repository("1", via)
    follow(product, secret, allowed=True)
    hear(secret, work("Add the takeover screen"))
    if broken:
        connections.mark_broken(via, "It was uninstalled.", EVENING)
    else:
        gone = OutOfReach("GitHub no longer shows it to your account.")
        following.keep_up(reread(product), "github", "1", gone, EVENING)
    skipped = tick(0)
    assert (skipped.state, skipped.reason) == (State.SKIPPED, UNSEEN)


def test_what_was_approved_waits_again_when_consent_is_withdrawn() -> None:
    product, secret = planned_product(), repository("1", installation())
    follow(product, secret, allowed=True)
    hear(secret, work("Add the takeover screen"))
    post = tick(0)
    later = WEEKS[0] + timedelta(minutes=30)
    posts.approve(post, seen=posts.text_hash(post), send_at=later, now=WEEKS[0], by="1")
    following.forbid_private(reread(product), "github", "1", WEEKS[0])
    run_due_posts(later)
    assert reread(post).state == State.AWAITING_REVIEW


def test_only_titles_means_only_titles_also_of_what_was_kept_whole() -> None:
    product, secret = planned_product(private_detail="full"), repository("1", installation())
    follow(product, secret, allowed=True)
    hear(secret, work("Add a dark theme", body="It was made for a takeover."))
    change(reread(product), None, private_detail=None)
    assert "takeover" not in str(tick(0).text)


def test_what_was_private_can_be_told_once_it_is_open() -> None:
    product, secret = planned_product(), repository("1", installation())
    follow(product, secret)
    hear(secret, work("Add a dark theme"))
    following.keep_up(reread(product), "github", "1", Opened(), EVENING)
    assert "dark theme" in str(tick(0).text)


# -- what is followed changes meanwhile ------------------------------------------------------------


@pytest.mark.parametrize("upkeep", [OutOfReach("gone"), Opened(), Reachable("github#5")])
def test_what_is_said_of_the_one_followed_before_changes_nothing(upkeep: object) -> None:
    product, via = planned_product(), installation()
    follow(product, repository("1", via))
    stale = reread(product)
    follow(product, repository("2", via))
    before = reread(product).serialize()
    following.keep_up(stale, "github", "1", upkeep, EVENING)  # type: ignore[arg-type]
    assert reread(product).serialize() == before


def test_access_that_is_given_back_goes_on_by_itself() -> None:
    product, via = planned_product(), installation()
    secret = repository("1", via)
    follow(product, secret, allowed=True)
    for upkeep in (OutOfReach("Access was taken away.", via.key), Reachable(via.key)):
        received = Received("d", "installation", upkeep_of=(("1", upkeep),))
        following.take("github", received, EVENING)
    fresh = reread(product)
    assert (fresh.github_via, following.state_of(fresh, "github").get("error")) == (via.key, None)
    assert fresh.fetch_at == to_ms(EVENING)
    hear(secret, work("Add a dark theme"))
    assert len(activity.list_for(product.product_id).items) == 1


def test_an_app_that_is_installed_anew_goes_on_where_the_old_one_was() -> None:
    product, old = planned_product(), installation("5")
    follow(product, repository("1", old), allowed=True)
    connections.mark_broken(old, "It was uninstalled.", EVENING)
    new = installation("6")
    gone_on = following.go_on("1", "github", [repository("1", new)], EVENING)
    assert [each.product_id for each in gone_on] == [product.product_id]
    fresh = reread(product)
    assert fresh.github_via == new.key
    assert following.is_allowed(fresh, "github")
