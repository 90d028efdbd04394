"""What GitHub's deliveries say, by the recorded ones."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from integrations.sources import github
from integrations.sources.base import (
    AccountNews,
    BadPayload,
    Event,
    Gone,
    Hidden,
    Opened,
    OutOfReach,
    Reachable,
    Received,
    Renamed,
)
from integrations.sources.github.webhook import SUSPENDED
from tests.integrations.recorded import deliveries, delivery

REPOSITORY = "186853002"
SHA = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"


def parse(event: str, payload: dict[str, Any]) -> Received:
    return github.parse(payload, {"X-GitHub-Event": event, "X-GitHub-Delivery": "guid-1"})


def only_event(event: str, payload: dict[str, Any]) -> Event:
    (found,) = parse(event, payload).events
    return found


def push(*messages: str, **fields: Any) -> dict[str, Any]:
    """The recorded push to the default branch, with other commits."""
    payload = delivery("push", ref="refs/heads/master")
    first = payload["commits"][0]
    payload["commits"] = [
        {**first, "id": f"{number:040x}", "message": message}
        for number, message in enumerate(messages)
    ]
    payload["head_commit"] = payload["commits"][-1] if messages else None
    return {**payload, **fields}


def merged(**fields: Any) -> dict[str, Any]:
    """The recorded pull request, as if it had been merged."""
    payload = delivery("pull_request", action="closed")
    payload["pull_request"] |= {
        "merged": True,
        "merged_at": "2026-11-30T20:15:00Z",
        "title": "Add dark mode",
        **fields,
    }
    return payload


def test_the_published_signature_vector_is_accepted() -> None:
    signed = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    secret = "It's a Secret to Everybody"
    assert github.signature(b"Hello, World!", secret) == signed
    assert github.verify(b"Hello, World!", {"X-Hub-Signature-256": signed}, secret)


# -- all that was ever recorded ------------------------------------------------------------------


def test_every_recorded_delivery_is_read_or_named() -> None:
    assert len(deliveries()) > 250
    told = {
        received.event
        for event, payload in deliveries()
        if (received := parse(event, payload)).events
    }
    assert told == {"create", "push", "release.published", "release.released"}


def test_a_recorded_delivery_that_brings_nothing_says_why() -> None:
    silent = [
        received
        for event, payload in deliveries()
        if not (received := parse(event, payload)).events and not received.note
    ]
    assert silent == []


def test_an_untracked_event_is_named() -> None:
    assert parse("star", delivery("star", action="created")) == Received(
        delivery_id="guid-1",
        event="star.created",
        follow_id=REPOSITORY,
        note="SlothPost does not track `star` events",
    )


# -- releases ------------------------------------------------------------------------------------

RELEASE = Event(
    source="github",
    kind="release",
    id="release:17372790",
    occurred_at=datetime(2019, 5, 15, 15, 20, 53, tzinfo=UTC),
    title="0.0.1",
    link="https://github.com/Codertocat/Hello-World/releases/tag/0.0.1",
    version="0.0.1",
    author="Codertocat",
    refs=("tag:0.0.1",),
    stage="released",
)


def test_a_published_release_is_a_story() -> None:
    assert parse("release", delivery("release", action="published")) == Received(
        delivery_id="guid-1", event="release.published", follow_id=REPOSITORY, events=(RELEASE,)
    )


def test_released_is_the_same_fact_as_published() -> None:
    assert only_event("release", delivery("release", action="released")) == RELEASE


@pytest.mark.parametrize("action", ["created", "edited", "deleted", "prereleased"])
def test_other_moves_of_a_release_are_not_told(action: str) -> None:
    received = parse("release", delivery("release", action=action))
    assert received.events == ()
    assert received.note == f"A release is told once it is published, not when {action}"


def test_a_draft_is_not_told() -> None:
    payload = delivery("release", action="published")
    payload["release"]["draft"] = True
    assert parse("release", payload).events == ()


def test_a_prerelease_is_ignored_and_does_not_hide_the_release_it_becomes() -> None:
    payload = delivery("release", action="published")
    payload["release"]["prerelease"] = True
    early = only_event("release", payload)
    assert (early.id, early.ignored) == ("prerelease:17372790", "a prerelease")
    assert only_event("release", delivery("release", action="released")).id == "release:17372790"


def test_a_promoted_prerelease_happens_when_it_is_promoted() -> None:
    payload = delivery("release", action="released")
    payload["release"]["updated_at"] = "2026-11-30T20:15:00Z"
    assert only_event("release", payload).occurred_at == datetime(2026, 11, 30, 20, 15, tzinfo=UTC)


def test_a_release_made_by_a_workflow_is_still_the_developers_news() -> None:
    payload = delivery("release", action="published")
    payload["release"]["author"] = {"login": "github-actions[bot]", "type": "Bot"}
    assert only_event("release", payload).ignored == ""


def test_a_release_has_its_own_name_and_notes_within_limits() -> None:
    payload = delivery("release", action="published")
    payload["release"] |= {"name": "  Dark\nmode ", "body": "x" * 5_000}
    event = only_event("release", payload)
    assert (event.title, len(event.body), event.body[-1]) == ("Dark", 4_000, "…")


def test_a_private_repositorys_pages_are_not_linked() -> None:
    payload = delivery("release", action="published")
    payload["repository"]["private"] = True
    assert only_event("release", payload).link == ""


# -- tags ----------------------------------------------------------------------------------------


def test_a_tag_is_one_fact_whether_created_or_pushed() -> None:
    created = delivery("create", ref_type="tag")
    pushed = delivery("push", ref="refs/tags/simple-tag", created=True)
    moment = datetime(2026, 11, 30, 20, 15, tzinfo=UTC)
    created["ref"], pushed["ref"] = "v1.2.0", "refs/tags/v1.2.0"
    created["repository"]["pushed_at"] = "2026-11-30T20:15:00Z"
    pushed["repository"]["pushed_at"] = int(moment.timestamp())
    pushed["head_commit"] = {"id": SHA}
    tag = Event(
        source="github",
        kind="tag",
        id="tag:v1.2.0",
        occurred_at=moment,
        title="v1.2.0",
        link="https://github.com/Codertocat/Hello-World/releases/tag/v1.2.0",
        version="v1.2.0",
        refs=("tag:v1.2.0",),
        stage="released",
    )
    assert parse("create", created).events == (tag,)
    # Only a push says which commit the tag names.
    of_commit = replace(tag, refs=("tag:v1.2.0", f"sha:{SHA}"))
    assert parse("push", pushed).events == (of_commit,)


def test_a_tag_that_is_no_version_is_ignored() -> None:
    assert only_event("create", delivery("create")).ignored == "a tag that is not a version"


def test_a_moved_tag_and_a_deleted_one_are_not_told() -> None:
    moved = delivery("push", ref="refs/tags/simple-tag", created=True) | {"created": False}
    assert parse("push", moved).note == "A tag that was there before was moved"
    deleted = parse("push", delivery("push", deleted=True))
    assert (deleted.events, deleted.note) == ((), "Something was deleted, nothing was added")


def test_a_new_branch_is_not_told() -> None:
    received = parse("create", delivery("create") | {"ref_type": "branch"})
    assert (received.events, received.note) == ((), "A new branch is told once it is merged")


# -- pushes --------------------------------------------------------------------------------------


def test_a_push_to_the_default_branch_is_its_commits() -> None:
    payload = push("Add dark mode\n\nIt follows the system.", "chore: tidy")
    first, second = parse("push", payload).events
    assert first == Event(
        source="github",
        kind="commit",
        id=f"commit:{0:040x}",
        occurred_at=datetime(2019, 5, 15, 15, 19, 25, tzinfo=UTC),
        title="Add dark mode",
        body="It follows the system.",
        link=f"https://github.com/Codertocat/Hello-World/commit/{SHA}",
        author="Codertocat",
        refs=(f"sha:{0:040x}",),
        stage="merged",
    )
    assert (second.id, second.ignored) == (f"commit:{1:040x}", "a chore")


def test_the_recorded_first_push_is_no_news() -> None:
    event = only_event("push", delivery("push", ref="refs/heads/master"))
    assert (event.id, event.ignored) == (f"commit:{SHA}", "the first commit")


def test_another_branch_is_not_followed() -> None:
    received = parse("push", push("Add dark mode", ref="refs/heads/dark-mode"))
    assert received.events == ()
    assert received.note == "Only the default branch, master, is followed"


def test_a_push_without_commits_says_so() -> None:
    assert parse("push", push()).note == "The push brought no commits"


def test_work_pushed_to_another_branch_before_counts_once_it_reaches_the_default_branch() -> None:
    payload = push("Add dark mode")
    payload["commits"][0]["distinct"] = False
    assert only_event("push", payload).ignored == ""


def test_what_a_merged_pull_request_brings_is_told_with_it() -> None:
    payload = push("Add a switch", "Add colours", "Merge pull request #12 from acme/dark-mode")
    events = parse("push", payload).events
    assert [event.ignored for event in events] == ["", "", "a merge commit"]
    assert [event.refs[1] for event in events] == ["pr:12"] * 3


def test_a_squashed_pull_request_is_told_with_it_and_its_neighbours_are_not_lost() -> None:
    one, two = parse("push", push("Add colours", "Add dark mode (#12)")).events
    assert (one.refs[1:], two.refs[1:]) == ((), ("pr:12",))


def test_a_forced_push_tells_what_the_list_of_commits_tells() -> None:
    forced = parse("push", push("Add dark mode", forced=True)).events
    assert forced == parse("push", push("Add dark mode")).events


def test_commits_of_a_bot_are_ignored() -> None:
    payload = push("Add dark mode")
    payload["commits"][0]["author"] = {"name": "acme", "username": "acme-release[bot]"}
    assert only_event("push", payload).ignored == "made by a bot (acme-release)"
    payload["commits"][0]["author"] = {"name": "github-actions", "email": "a@example.com"}
    assert only_event("push", payload).ignored == "made by a bot (github-actions)"


def test_a_person_whose_work_a_bot_pushes_is_not_a_bot() -> None:
    payload = push("Add dark mode")
    payload["sender"]["type"] = "Bot"
    assert only_event("push", payload).ignored == ""


def test_a_commit_late_on_monday_in_california_is_of_that_moment() -> None:
    payload = push("Add dark mode")
    payload["commits"][0]["timestamp"] = "2026-03-30T20:00:00-07:00"
    payload["repository"]["pushed_at"] = 1_790_000_000
    assert only_event("push", payload).occurred_at == datetime(2026, 3, 31, 3, 0, tzinfo=UTC)


def test_a_clock_that_is_wrong_does_not_put_a_commit_into_the_future() -> None:
    payload = push("Add dark mode")
    payload["commits"][0]["timestamp"] = "2099-01-01T00:00:00Z"
    payload["repository"]["pushed_at"] = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp())
    assert only_event("push", payload).occurred_at == datetime(2026, 11, 30, tzinfo=UTC)


def test_of_a_huge_push_the_newest_commits_are_kept_and_the_rest_is_said() -> None:
    received = parse("push", push(*(f"Add colour {number}" for number in range(250))))
    assert [event.title for event in received.events] == [
        f"Add colour {n}" for n in range(150, 250)
    ]
    assert received.note == "Of 250 commits the newest 100 were kept"


def test_a_commit_without_a_message_is_shown_as_such() -> None:
    event = only_event("push", push(""))
    assert (event.title, event.ignored) == ("(no message)", "a message that says nothing")


# -- pull requests -------------------------------------------------------------------------------


def test_a_merged_pull_request_is_a_story() -> None:
    assert only_event("pull_request", merged()) == Event(
        source="github",
        kind="merge",
        id="pr:2",
        occurred_at=datetime(2026, 11, 30, 20, 15, tzinfo=UTC),
        title="Add dark mode",
        body="This is a pretty simple change that we need to pull into master.",
        link="https://github.com/Codertocat/Hello-World/pull/2",
        author="Codertocat",
        refs=(
            "pr:2",
            "sha:c4295bd74fb0f4fda03689c3df3f2803b658fd85",
            "sha:ec26c3e57ca3a959ca5aad62de7213c562f8c821",
        ),
        stage="merged",
    )


def test_a_pull_request_is_told_once_it_is_merged_into_the_default_branch() -> None:
    notes = [
        parse("pull_request", payload).note
        for payload in (
            delivery("pull_request", action="opened"),
            delivery("pull_request", action="closed"),
            merged(base={"ref": "next"}),
        )
    ]
    assert notes == [
        "A pull request is told once it is merged",
        "The pull request was closed without being merged",
        "Only the default branch, master, is followed",
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"user": {"login": "dependabot[bot]", "type": "Bot"}}, "made by a bot (dependabot)"),
        ({"user": {"login": "Copilot", "type": "Bot"}}, ""),
        ({"user": None}, ""),
        ({"labels": [{"name": "nopost"}]}, "labelled “nopost”"),
        ({"title": "chore: tidy"}, "a chore"),
    ],
)
def test_a_merged_pull_request_can_be_noise(fields: dict[str, Any], reason: str) -> None:
    assert only_event("pull_request", merged(**fields)).ignored == reason


def test_a_pull_request_and_its_commit_share_what_they_changed() -> None:
    squashed = push("Add dark mode (#2)")
    squashed["commits"][0]["id"] = "c4295bd74fb0f4fda03689c3df3f2803b658fd85"
    shared = set(only_event("push", squashed).refs) & set(only_event("pull_request", merged()).refs)
    assert shared == {"pr:2", "sha:c4295bd74fb0f4fda03689c3df3f2803b658fd85"}


@pytest.mark.parametrize("action", ["labeled", "edited"])
def test_a_merged_pull_request_that_is_labelled_late_is_the_same_fact(action: str) -> None:
    late = merged(labels=[{"name": "nopost"}]) | {"action": action}
    event = only_event("pull_request", late)
    assert (event.id, event.ignored) == ("pr:2", "labelled “nopost”")


def test_what_comes_from_a_private_repository_says_so() -> None:
    payloads = [
        ("release", delivery("release", action="published")),
        ("push", push("Add dark mode")),
        ("pull_request", merged()),
        ("create", delivery("create", ref_type="tag")),
    ]
    for _, payload in payloads:
        payload["repository"]["private"] = True
    found = [(parse(event, p).private, only_event(event, p)) for event, p in payloads]
    assert [(private, event.private, event.link) for private, event in found] == [
        (True, True, "")
    ] * 4


# -- upkeep --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["renamed", "transferred"])
def test_a_repository_that_moves_is_followed_under_its_new_name(action: str) -> None:
    received = parse("repository", delivery("repository", action=action))
    assert (received.follow_id, received.upkeep) == ("186853261", Renamed("Octocoders/Hello-World"))


def test_a_deleted_repository_is_gone() -> None:
    received = parse("repository", delivery("repository", action="created") | {"action": "deleted"})
    assert received.upkeep == Gone("The repository was deleted on GitHub")


def test_a_repository_that_becomes_private_is_hidden_from_whoever_saw_it_in_public() -> None:
    payload = delivery("repository", action="privatized")
    payload["repository"]["private"] = True
    received = parse("repository", payload)
    assert (received.follow_id, received.private) == (REPOSITORY, False)
    assert received.upkeep == Hidden("The repository was made private on GitHub")


def test_a_repository_that_becomes_public_is_open_by_either_event() -> None:
    assert parse("repository", delivery("repository", action="publicized")).upkeep == Opened()
    assert parse("public", delivery("public")).upkeep == Opened()


# -- accounts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "news"),
    [
        ("created", None),
        (
            "deleted",
            AccountNews(
                "github#installation:2",
                broken="SlothPost was uninstalled from octocat at GitHub: install it again to go"
                " on.",
            ),
        ),
        (
            "suspend",
            AccountNews("github#installation:16598467", broken=SUSPENDED),
        ),
        ("unsuspend", AccountNews("github#installation:16598467", lifted=SUSPENDED)),
    ],
)
def test_what_becomes_of_an_installation_is_news_of_its_account(
    action: str, news: AccountNews | None
) -> None:
    received = parse("installation", delivery("installation", action=action))
    assert (received.account, received.follow_id, received.events) == (news, "", ())


def test_repositories_that_were_taken_away_are_out_of_reach_each() -> None:
    payload = delivery("installation_repositories", action="removed")
    payload["repositories_removed"].append({"id": 7, "full_name": "acme/app"})
    assert parse("installation_repositories", payload).upkeep_of == (
        (
            "1296269",
            OutOfReach(
                "SlothPost's access to octocat/Hello-World was taken away at GitHub: give it back"
                " there to go on.",
                via="github#installation:2",
            ),
        ),
        (
            "7",
            OutOfReach(
                "SlothPost's access to acme/app was taken away at GitHub: give it back there to"
                " go on.",
                via="github#installation:2",
            ),
        ),
    )


def test_repositories_that_were_added_can_be_read_each() -> None:
    payload = delivery("installation_repositories", action="added")
    payload["repositories_added"].append({"id": 7, "full_name": "acme/app"})
    received = parse("installation_repositories", payload)
    assert received.upkeep_of == (
        ("186853007", Reachable("github#installation:957387")),
        ("7", Reachable("github#installation:957387")),
    )
    assert received.note == "More repositories can be read now"


def test_an_organisation_that_is_renamed_gives_its_installation_another_name() -> None:
    payload = {
        "action": "renamed",
        "account": {"login": "acme-labs", "id": 5},
        "installation": {"id": 9},
        "target_type": "Organization",
    }
    received = parse("installation_target", payload)
    assert received.account == AccountNews("github#installation:9", name="acme-labs")


def test_a_person_who_takes_the_authorisation_back_has_to_connect_again() -> None:
    payload = delivery("github_app_authorization", action="revoked")
    payload["sender"]["id"] = 21031067
    assert parse("github_app_authorization", payload).account == AccountNews(
        "github#user:21031067",
        broken="You took SlothPost's authorisation back at GitHub: connect it again to go on.",
    )


def test_a_ping_is_answered_in_kind() -> None:
    received = parse("ping", delivery("ping"))
    assert (received.events, received.note) == ((), "GitHub says hello: the webhook works")


# -- what GitHub would never send ----------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-GitHub-Event": "push"},
        {"X-GitHub-Delivery": "guid-1"},
        {"X-GitHub-Event": "push", "X-GitHub-Delivery": "a#b"},
        {"X-GitHub-Event": "push", "X-GitHub-Delivery": "x" * 101},
    ],
)
def test_a_delivery_without_usable_headers_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadPayload, match=r"^the header X-GitHub-"):
        github.parse(push("Add dark mode"), headers)


@pytest.mark.parametrize("number", [None, "186853002", 0, -1, True, 1.5, 2**63, 10**400])
def test_a_repository_without_a_usable_number_is_refused(number: object) -> None:
    payload = push("Add dark mode")
    payload["repository"]["id"] = number
    with pytest.raises(BadPayload, match=r"^repository.id is not a positive whole number$"):
        parse("push", payload)


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        ("2026-03-30T20:00:00", "commits.0..timestamp has no time zone"),
        ("yesterday", "commits.0..timestamp is not a time"),
        ("0001-01-01T00:00:00+14:00", "commits.0..timestamp is not a time"),
        ("1969-12-31T23:59:59Z", "commits.0..timestamp is before 1970"),
        (10**400, "commits.0..timestamp is not a time"),
        (None, "commits.0..timestamp is not a text"),
    ],
)
def test_a_time_that_is_none_is_refused(moment: object, reason: str) -> None:
    payload = push("Add dark mode")
    payload["commits"][0]["timestamp"] = moment
    with pytest.raises(BadPayload, match=f"^{reason}$"):
        parse("push", payload)


def test_what_cannot_be_stored_or_shown_is_taken_out_of_texts() -> None:
    payload = push("Add\x00 dark\ud800 \u202emode\r\n\r\nIt\x1b[1m follows")
    event = only_event("push", payload)
    assert (event.title, event.body) == ("Add dark mode", "It[1m follows")
