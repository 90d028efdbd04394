"""What Vercel's deliveries say."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pytest_django import Settings

from integrations.sources import vercel as source
from integrations.sources.base import (
    AccountNews,
    BadPayload,
    Event,
    Gone,
    Received,
    Renamed,
    Wanted,
)
from tests.integrations.recorded import vercel, vercel_names

SHA = "9f2c1d7be04a6b83c5d1e0f7a29384756b1c0d2e"


def parse(payload: dict[str, Any]) -> Received:
    return source.parse(payload, {})


def promoted(**meta: Any) -> Event:
    """The promoted deployment, of a commit that is described by `meta` alone."""
    payload = vercel("deployment.promoted")
    payload["payload"]["deployment"]["meta"] = meta
    (event,) = parse(payload).events
    return event


def test_the_signature_vector_is_accepted() -> None:
    body, signed = (
        b'{"id":"evt_1","type":"deployment.ready"}',
        "d7f15dccc0c940b1bb2155c94f021b2d25df4975",
    )
    assert source.signature(body, "shhh") == signed
    assert source.verify(body, {"x-vercel-signature": signed}, "shhh")


def test_every_kind_of_delivery_is_told_or_says_why_not() -> None:
    said = {name: parse(vercel(name)) for name in vercel_names()}
    assert {name: r.note or [(e.id, e.ignored) for e in r.events] for name, r in said.items()} == {
        "deployment.error": "SlothPost does not track `deployment.error` events",
        "deployment.promoted": [("deployment:dpl_1", "")],
        "deployment.ready": [("deployment:dpl_1", "")],
        "deployment.ready.preview": [("preview:dpl_2", "a preview deployment")],
        "deployment.rollback": "A rollback is no news",
        "deployment.succeeded": [("deployment:dpl_1", "")],
        "integration-configuration.removed": "The integration was removed on Vercel",
        "project.removed": "The project was removed on Vercel",
        "project.renamed": "The project is app now",
        "test-webhook": "Vercel says hello: the webhook works",
    }
    assert {name: r.follow_id for name, r in said.items() if r.follow_id != "prj_1"} == {
        "integration-configuration.removed": "",
        "test-webhook": "",
    }


def test_a_promoted_deployment_is_a_story() -> None:
    assert parse(vercel("deployment.promoted")) == Received(
        delivery_id="uev_2",
        event="deployment.promoted",
        follow_id="prj_1",
        events=(
            Event(
                source="vercel",
                kind="deployment",
                id="deployment:dpl_1",
                occurred_at=datetime(2026, 11, 30, 12, 0, 2, tzinfo=UTC),
                title="Add dark mode (#12)",
                body="It follows the system's setting.",
                link="https://app-k3x9-acme.vercel.app",
                author="octocat",
                refs=(f"sha:{SHA}",),
                private=True,
                stage="live",
            ),
        ),
        private=True,
    )


@pytest.mark.parametrize(
    ("visibility", "private"), [("public", False), ("private", True), ("Public", True)]
)
@pytest.mark.parametrize("host", ["github", "gitlab", "bitbucket"])
def test_a_deployment_is_private_unless_its_repository_is_said_to_be_public(
    host: str, visibility: str, private: bool
) -> None:
    event = promoted(**{f"{host}RepoVisibility": visibility})
    assert event.private is private


@pytest.mark.parametrize("name", vercel_names())
def test_only_who_has_shown_access_hears_of_a_delivery(name: str) -> None:
    assert parse(vercel(name)).private


def test_a_preview_has_reached_no_stage() -> None:
    (event,) = parse(vercel("deployment.ready.preview")).events
    assert event.stage == ""


def test_a_staging_deployment_is_ignored_and_not_linked() -> None:
    payload = vercel("deployment.ready")
    payload["payload"]["target"] = "staging"
    (event,) = parse(payload).events
    assert (event.ignored, event.link) == ("a staging deployment", "")


def test_a_preview_that_is_promoted_later_is_a_story_then() -> None:
    payload = vercel("deployment.ready.preview")
    (preview,) = parse(payload).events
    (live,) = parse(payload | {"type": "deployment.promoted"}).events
    assert (preview.id, live.id, live.ignored) == ("preview:dpl_2", "deployment:dpl_2", "")


def test_a_deployment_from_the_command_line_says_nothing() -> None:
    event = promoted()
    assert event.title == "New production deployment"
    assert event.ignored == "a deployment that does not say what changed"


@pytest.mark.parametrize(
    ("message", "title", "ignored"),
    [
        ("Merge pull request #12 from acme/dark\n\nAdd dark mode", "Add dark mode", ""),
        (
            "Merge branch 'dark' into 'main'\n\nAdd dark mode\n\nSee merge request acme/app!5",
            "Add dark mode",
            "",
        ),
        (
            "Merge branch 'main' of x\n\n# Conflicts: a",
            "Merge branch 'main' of x",
            "a merge commit",
        ),
        (
            "Merge pull request #9 from acme/d\n\nBump a from 1.0 to 1.1",
            "Bump a from 1.0 to 1.1",
            "an update of dependencies",
        ),
        ("chore: tidy", "chore: tidy", "a chore"),
    ],
)
def test_a_deployment_is_told_by_what_was_merged(message: str, title: str, ignored: str) -> None:
    event = promoted(githubCommitMessage=message)
    assert (event.title, event.ignored) == (title, ignored)


@pytest.mark.parametrize("host", ["github", "gitlab", "bitbucket"])
def test_the_commit_can_come_from_any_git_host(host: str) -> None:
    event = promoted(
        **{
            f"{host}CommitMessage": "Add dark mode",
            f"{host}CommitSha": SHA,
            f"{host}CommitAuthorLogin": "renovate[bot]",
        }
    )
    assert (event.title, event.refs) == ("Add dark mode", (f"sha:{SHA}",))
    assert (event.author, event.ignored) == ("renovate[bot]", "made by a bot (renovate)")


def test_an_abbreviated_hash_is_no_reference() -> None:
    assert promoted(githubCommitSha="9f2c1d7").refs == ()


def test_an_address_with_a_path_is_not_linked() -> None:
    payload = vercel("deployment.promoted")
    payload["payload"]["deployment"]["url"] = "acme.example/@evil"
    assert parse(payload).events[0].link == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("deployment-promoted", "deployment.promoted"),
        ("project-removed", "project.removed"),
        ("integration-configuration-removed", "integration-configuration.removed"),
        ("integration-resource.project-connected", "integration-resource.project-connected"),
    ],
)
def test_the_older_spelling_of_an_event_is_understood(old: str, new: str) -> None:
    name = new if new in vercel_names() else "project.removed"
    assert parse(vercel(name) | {"type": old}).event == new


def test_a_removed_project_is_gone() -> None:
    assert parse(vercel("project.removed")).upkeep == Gone("The project was removed on Vercel")


def test_a_renamed_project_is_called_by_its_new_name() -> None:
    assert parse(vercel("project.renamed")).upkeep == Renamed("app")


def test_a_new_name_that_is_not_told_is_asked_for() -> None:
    payload = vercel("project.renamed")
    del payload["payload"]["project"]["name"]
    assert parse(payload).upkeep == Wanted()


@pytest.mark.parametrize(
    "details", [{"configuration": {"id": "icfg_1"}}, {"configurationId": "icfg_1"}]
)
def test_a_removed_installation_is_named_in_both_shapes(details: dict[str, Any]) -> None:
    payload = vercel("integration-configuration.removed") | {"payload": details}
    assert parse(payload).account == AccountNews(
        "vercel#icfg_1", broken="SlothPost was removed at Vercel: install it again to go on."
    )


def test_a_secret_may_have_several_values(settings: Settings) -> None:
    settings.VERCEL_CLIENT_SECRET = "new, old"
    assert source.secrets() == ("new", "old")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": None}, "id is not a text"),
        ({"id": ""}, "id is not an id"),
        ({"id": "a#b"}, "id is not an id"),
        ({"type": 5}, "type is not a text"),
        ({"createdAt": "soon"}, "createdAt is not a time"),
        ({"createdAt": 10**400}, "createdAt is not a time"),
        ({"payload": None}, "payload is not an object"),
        ({"payload": {"project": {"id": "prj 1"}}}, "payload.project.id is not an id"),
        ({"payload": {"deployment": []}}, "payload.deployment is not an object"),
    ],
)
def test_what_vercel_would_never_send_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadPayload) as refused:
        parse(vercel("deployment.promoted") | fields)
    assert str(refused.value) == reason
