"""What is told and what is left out, by its message and its author."""

import pytest

from integrations.sources.noise import (
    bot,
    pull_request_of,
    reverted_by,
    version_ref,
    why_ignored,
    why_tag_ignored,
)

STORIES = [
    "Add dark mode",
    "feat(ui): add dark mode",
    "fix: invoices no longer lose their last line",
    "perf(api)!: stream exports",
    "refactor!: drop the v1 API",
    "Merge multiple accounts into one",
    "Merge duplicate contacts automatically",
    "Release notes are shown after an update",
    "Format dates in the visitor's own language",
    "Fix formatting of long invoices",
    "Test your plan before saving it",
    "Update limits: projects grow from 5 to 10",
    "Upgrade to the new editor",
    "Version history for every document",
    "Fix export of documents in Safari",
    "Bump the free plan from 3 to 5 projects",
    "Build a page for each product",
    "Save drafts while typing",
    "Minor planets are drawn in their true colours",
    "Styles: choose your own colours",
    "Search: find posts by their evidence",
    "✨ Dark mode",
    ":sparkles: Dark mode",
    "Add Node.js client",
    "Ajoute le mode sombre",
    "ダークモードを追加",
    "Docker image for self-hosting",
    "WIPO patent search",
]

NOISE = {
    "a chore": ["chore: tidy", "chore(deps-dev): bump x", "Chore: move files"],
    "a change of the build": ["ci: cache npm", "build(deps): pin", "Fix CI", "Update .gitignore"],
    "tests": ["test: cover the plan", "tests: more", "Add tests", "Fix the missing unit tests"],
    "code style": [
        "style: sort imports",
        "Fix lint",
        "fix: lint errors",
        "Run prettier",
        "black",
        "Format code",
        "fix formatting",
        "Reformat with prettier",
    ],
    "documentation": ["docs: explain lead time", "Update README.md", "Fix the changelog wording"],
    "a refactoring": ["refactor: split views", "refactor(api): rename"],
    "a revert": ['Revert "Add dark mode"', "revert: feat(ui): add dark mode", "Reverts dark mode"],
    "an update of dependencies": [
        "Bump lodash from 4.17.20 to 4.17.21",
        "Bump the npm_and_yarn group across 1 directory with 2 updates",
        "Update dependency react to v18",
        "Upgrade Django to 5.2",
        "fix(deps): update dependency vite to v5.1.2",
        "Update dependencies",
        "deps: everything",
    ],
    "a version bump": [
        "v1.2.3",
        "1.2.3",
        "1.2.3-beta.1",
        "release 1.2.3",
        "Release v2.0",
        "release: 2.0",
        "Prepare for 1.2.3",
        "Bump version",
        "Bump version to 1.2.3",
        "🔖 v1.2.3",
    ],
    "unfinished work": ["WIP", "wip: dark mode", "[WIP] dark mode", "🚧 WIP dark mode"],
    "a fixup of another commit": ["fixup! Add dark mode", "squash! Add dark mode", "amend! x"],
    "a merge commit": [
        "Merge branch 'main' into dark-mode",
        "Merge branch 'main' of github.com:acme/app",
        "Merge remote-tracking branch 'origin/main'",
        "Merge pull request #12 from acme/dark-mode",
        "Merge main into dark-mode",
        "Merged in dark-mode (pull request #3)",
        "Merge tag 'v1.2.3'",
    ],
    "a typo": ["Fix typo", "fix: typos", "typo in the footer", "Fix a typo in the checkout page"],
    "the first commit": ["Initial commit", "initial import"],
    "a message that says nothing": [
        "",
        "...",
        "fix",
        "Update",
        "stuff",
        "minor changes",
        "bugfix",
        "Update index.html",
        "Add files via upload",
        "🎉",
    ],
}


@pytest.mark.parametrize("title", STORIES)
def test_work_that_people_notice_is_a_story(title: str) -> None:
    assert why_ignored(title, "octocat") == ""


@pytest.mark.parametrize(
    ("title", "reason"), [(title, reason) for reason, titles in NOISE.items() for title in titles]
)
def test_noise_is_named_for_what_it_is(title: str, reason: str) -> None:
    assert why_ignored(title, "octocat") == reason


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        ("dependabot[bot]", "made by a bot (dependabot)"),
        ("dependabot", "made by a bot (dependabot)"),
        ("renovate-bot", "made by a bot (renovate-bot)"),
        ("github-actions", "made by a bot (github-actions)"),
        ("acme-deploys[bot]", "made by a bot (acme-deploys)"),
        ("Copilot", ""),
        ("devin-ai-integration[bot]", ""),
        ("robot-builder", ""),
        ("", ""),
    ],
)
def test_a_bot_is_told_from_a_person_by_its_login(login: str, reason: str) -> None:
    assert why_ignored("Add dark mode", login) == reason


def test_the_source_can_say_that_an_author_is_a_bot() -> None:
    assert bot("acme", says_bot=True) == "made by a bot (acme)"
    assert bot("", says_bot=True) == "made by a bot"
    assert bot("Copilot", says_bot=True) == ""


def test_a_label_keeps_work_out_of_the_posts() -> None:
    assert why_ignored("Add dark mode", labels=["ui", "NoPost"]) == "labelled “NoPost”"
    assert why_ignored("Add dark mode", labels=["ui"]) == ""


@pytest.mark.parametrize(
    ("title", "number"),
    [
        ("Add dark mode (#12)", 12),
        ("Merge pull request #12 from acme/dark-mode", 12),
        ("Add dark mode, see #12", None),
        ("Add dark mode (#12) at last", None),
        ("Add dark mode (#123456789012)", None),
    ],
)
def test_a_commit_names_the_pull_request_it_came_with(title: str, number: int | None) -> None:
    assert pull_request_of(title) == number


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("v1.2.3", ""),
        ("1.2", ""),
        ("v2", ""),
        ("app@1.2.3", ""),
        ("app-v1.2.3", ""),
        ("release/1.2.3", ""),
        ("v1.2.3-hotfix", ""),
        ("v1.2.3-beta.1", "a prerelease"),
        ("v1.2.3-rc1", "a prerelease"),
        ("1.2.3rc1", "a prerelease"),
        ("1.2b1", "a prerelease"),
        ("v2-alpha", "a prerelease"),
        ("nightly", "a tag that is not a version"),
        ("simple-tag", "a tag that is not a version"),
        ("build-123", "a tag that is not a version"),
        ("2026-11-30", "a tag that is not a version"),
    ],
)
def test_only_the_tags_of_final_versions_are_stories(tag: str, reason: str) -> None:
    assert why_tag_ignored(tag) == reason


@pytest.mark.parametrize(
    ("version", "ref"),
    [
        ("v1.5", "version:1.5.0"),
        ("1.5.0", "version:1.5.0"),
        ("release-2.0", "version:2.0.0"),
        ("v2", "version:2.0.0"),
        ("2026.12.1.4", "version:2026.12.1.4"),
        ("1.5.0-rc.1", ""),
        ("web@1.5.0", ""),
        ("20", ""),
        ("9" * 5_000, ""),
        ("1." + "9" * 5_000, ""),
    ],
)
def test_a_final_version_is_one_ref_however_it_is_written(version: str, ref: str) -> None:
    assert version_ref(version) == ref


def test_what_a_revert_takes_back_is_named_by_title_number_or_hash() -> None:
    sha = "a" * 40
    assert reverted_by('Revert "Add maps"', f"This reverts commit {sha}.") == {
        "title:add maps",
        f"sha:{sha}",
    }
    assert reverted_by('Reapply "Add maps"', "") == {'title:revert "add maps"'}
    assert reverted_by("revert: feat(ui): add maps", "") == {"title:feat(ui): add maps"}
    assert reverted_by("Convert maps", "It reverts to nothing, see #4.") == set()
