"""What is new in a repository is what was not there when last read, whenever it was made."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from integrations.errors import NeedsReconnect
from integrations.sources import github as source
from integrations.sources.base import Fetched, Follow
from integrations.standins.github import SLOWTIDE, Repository, add_commit, add_release
from integrations.standins.server import Fault
from products import activity
from tests.builders import make_product
from tests.conftest import Outside

pytestmark = pytest.mark.usefixtures("store")

COMPARED = "/github/api/v3/repos/slothpost-demo/slowtide/compare/.*"
LISTED = "/github/api/v3/repos/slothpost-demo/slowtide/.*"


@pytest.fixture
def now(outside: Outside) -> datetime:
    moment = timezone.now().replace(microsecond=0)
    outside.github.clock = lambda: moment
    return moment


@pytest.fixture
def repository(outside: Outside) -> Repository:
    return outside.github.repositories[SLOWTIDE]


def first_read(now: datetime) -> Follow:
    """What the next fetch begins from."""
    follow = Follow(str(SLOWTIDE), "slothpost-demo/slowtide", None, now - timedelta(days=14))
    return after(source.fetch(follow, now), follow, now)


def after(found: Fetched, follow: Follow, now: datetime) -> Follow:
    return replace(follow, since=now, seen=found.seen)


def push(repository: Repository, message: str, made: datetime, now: datetime) -> dict[str, Any]:
    """A commit that was made then, and comes to the default branch now."""
    commit = add_commit(repository, message, made)
    repository.pushed_at = now
    return commit


def put_tag(repository: Repository, name: str, sha: str, now: datetime) -> None:
    repository.tags.append({"name": name, "commit": {"sha": sha}})
    repository.pushed_at = now


def told(found: Fetched) -> list[tuple[str, datetime]]:
    return [(event.title, event.occurred_at) for event in found.events]


# -- commits ---------------------------------------------------------------------------------------


def test_a_commit_that_was_made_long_before_it_was_pushed_is_told(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    made = now - timedelta(days=2)
    push(repository, "Add the harbour map, made on the train", made, later)
    found = source.fetch(follow, later)
    assert told(found) == [("Add the harbour map, made on the train", made)]
    product = make_product(now=now)
    activity.record_all(product, found.events, later)
    assert [item.title for item in activity.window(product.product_id, later)] == [
        "Add the harbour map, made on the train"
    ]
    assert source.fetch(after(found, follow, later), later).events == ()


def test_a_merge_brings_the_whole_of_an_old_branch(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    trunk = repository.commits[0]["sha"]
    old = push(repository, "Draw the moon", now - timedelta(days=50), later)
    merge = push(repository, "Merge pull request #7 from acme/moon", later, later)
    merge["parents"] = [{"sha": trunk}, {"sha": old["sha"]}]
    found = source.fetch(follow, later)
    assert [(event.title, event.refs[1:]) for event in found.events] == [
        ("Draw the moon", ("pr:7",)),
        ("Merge pull request #7 from acme/moon", ("pr:7",)),
    ]


def test_one_question_tells_that_no_commit_is_new(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow = first_read(now)
    outside.standins.calls.clear()
    source.fetch(follow, now)
    asked = sorted(call.path.rpartition("/")[2] for call in outside.standins.calls)
    assert asked == [str(SLOWTIDE), "commits", "pulls", "releases", "tags"]


def test_more_commits_than_a_page_holds_are_all_told(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    for n in range(7):
        push(repository, f"Show the moon {n}", now - timedelta(days=20 - n), later)
    outside.github.most_per_page = 3
    found = source.fetch(follow, later)
    assert [title for title, _ in told(found)] == [f"Show the moon {n}" for n in range(7)]
    assert outside.standins.count("GET", COMPARED) == 3


def test_of_more_commits_than_are_read_the_newest_are_told(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    for n in range(8):
        push(repository, f"Show the moon {n}", later - timedelta(hours=8 - n), later)
    outside.github.most_per_page = 1
    found = source.fetch(follow, later)
    assert [title for title, _ in told(found)] == [f"Show the moon {n}" for n in range(3, 8)]
    assert found.note == "GitHub lists more commits than we read at once: the newest were read."


@pytest.mark.parametrize("happens", ["written anew", "diverged", "refused"])
def test_where_github_cannot_compare_dates_tell_what_is_new(
    outside: Outside, now: datetime, repository: Repository, happens: str
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    if happens == "written anew":
        repository.commits.clear()
    push(repository, "Begin anew", now - timedelta(days=30), later)
    if happens == "diverged":
        repository.commits[0]["parents"] = repository.commits[-1]["parents"]
    if happens == "refused":
        outside.standins.faults.append(Fault(COMPARED, status=422))
    new = push(repository, "Show the moon", later - timedelta(hours=1), later)
    found = source.fetch(follow, later)
    assert [title for title, _ in told(found)] == ["Show the moon"]
    assert found.seen["head"] == new["sha"]


@pytest.mark.parametrize("fault", [Fault(status=502), Fault(hang_up=True)], ids=["502", "hangs up"])
def test_a_comparison_that_fails_for_now_holds_up_nothing_and_is_made_up_for(
    outside: Outside, now: datetime, repository: Repository, fault: Fault
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    push(repository, "Add the harbour map", now - timedelta(days=2), later)
    push(repository, "Show the moon", later, later)
    outside.standins.faults.append(Fault(**{**vars(fault), "path": COMPARED}))
    found = source.fetch(follow, later)
    assert [title for title, _ in told(found)] == ["Show the moon"]
    again = source.fetch(after(found, follow, later), later)
    assert [title for title, _ in told(again)] == ["Add the harbour map", "Show the moon"]


def test_a_comparison_that_needs_another_token_says_so(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow = first_read(now)
    push(repository, "Show the moon", now, now)
    outside.standins.faults.append(Fault(COMPARED, status=401))
    with pytest.raises(NeedsReconnect):
        source.fetch(follow, now)


def test_what_was_kept_before_heads_were_is_gone_on_from_by_dates(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    follow = replace(follow, seen={name: follow.seen[name] for name in ("commits", "tags")})
    push(repository, "Add the harbour map", now - timedelta(days=2), later)
    sha = push(repository, "Show the moon", later, later)["sha"]
    put_tag(repository, "v3.0.0", sha, later)
    found = source.fetch(follow, later)
    assert sorted(title for title, _ in told(found)) == ["Show the moon", "v3.0.0"]


# -- tags ------------------------------------------------------------------------------------------


def test_a_tag_that_is_put_on_an_old_commit_is_told_when_it_is_put_there(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=4)
    sha = repository.commits[-1]["sha"]
    put_tag(repository, "v9.0.0", sha, later)
    found = source.fetch(follow, later)
    (event,) = found.events
    assert (event.id, event.occurred_at, event.refs) == (
        "tag:v9.0.0",
        later,
        ("tag:v9.0.0", f"sha:{sha}"),
    )
    assert source.fetch(after(found, follow, later), later).events == ()


def test_a_tag_of_a_new_commit_is_told_at_its_time(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=4)
    made = now + timedelta(days=1)
    sha = push(repository, "Show the moon", made, later)["sha"]
    put_tag(repository, "v9.0.0", sha, later)
    assert told(source.fetch(follow, later)) == [("Show the moon", made), ("v9.0.0", made)]


def test_the_first_look_at_a_repository_floods_nobody_with_its_old_tags(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    for n in range(30):
        put_tag(repository, f"v0.{n}.0", repository.commits[-1]["sha"], now)
    follow = Follow(str(SLOWTIDE), "x", None, now - timedelta(days=14))
    found = source.fetch(follow, now)
    assert [e.title for e in found.events if e.kind == "tag"] == ["v2.1.0"]
    put_tag(repository, "v0.30.0", repository.commits[-1]["sha"], now)
    again = source.fetch(after(found, follow, now), now)
    assert [e.title for e in again.events if e.kind == "tag"] == ["v0.30.0"]


def test_the_first_tag_of_all_is_told(outside: Outside, now: datetime) -> None:
    repository = outside.github.repositories[912346000]
    push(repository, "Begin", now - timedelta(days=90), now)
    follow = Follow(str(repository.id), repository.full_name, None, now - timedelta(days=14))
    follow = after(source.fetch(follow, now), follow, now)
    put_tag(repository, "v1.0.0", repository.commits[0]["sha"], now)
    assert [event.title for event in source.fetch(follow, now).events] == ["v1.0.0"]


def test_a_tag_is_found_on_whichever_page_it_is_listed(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    for n in range(150):
        put_tag(repository, f"v1.{n}.0", repository.commits[-1]["sha"], now)
    follow = first_read(now)
    put_tag(repository, "v0.9.1", repository.commits[-1]["sha"], now)  # listed after all others
    found = source.fetch(follow, now)
    assert [event.title for event in found.events] == ["v0.9.1"]
    assert len(found.seen["tags_known"]) <= 3_000


def test_of_more_tags_than_are_read_only_dates_tell_which_are_new(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    for n in range(8):
        put_tag(repository, f"v0.{n}.0", repository.commits[-1]["sha"], now)
    outside.github.most_per_page = 1
    follow, later = first_read(now), now + timedelta(days=3)
    del repository.tags[1]  # so that an old one moves up to where it is read
    sha = push(repository, "Show the moon", later, later)["sha"]
    repository.tags.insert(0, {"name": "v3.0.0", "commit": {"sha": sha}})
    found = source.fetch(follow, later)
    assert sorted(title for title, _ in told(found)) == ["Show the moon", "v3.0.0"]
    assert found.note == "GitHub lists more tags than we read at once: the newest were read."


# -- releases and pull requests --------------------------------------------------------------------


def test_a_release_of_an_old_commit_and_a_pull_request_of_long_ago_are_told(
    outside: Outside, now: datetime, repository: Repository
) -> None:
    follow, later = first_read(now), now + timedelta(days=3)
    release = add_release(repository, "v9.0.0", later)
    # GitHub says so of the commit that it is made from.
    release["created_at"] = repository.commits[-1]["commit"]["committer"]["date"]
    outside.github.clock = lambda: later
    pull = outside.github.merge(repository, "Show the moon")
    pull["number"] = 3
    found = source.fetch(follow, later)
    assert {"release:" + str(release["id"]), "pr:3"} < {event.id for event in found.events}
