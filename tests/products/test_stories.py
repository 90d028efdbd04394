"""Which activity is one story, part of another, or none; the same in whatever order it is read."""

import itertools
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from products import stories
from products.stories import Verdict
from products.tables import Activity
from slothpost_site.moments import as_key, to_ms
from tests.builders import at

NOON = at("2026-01-05 12:00")
SHA = {name: "sha:" + name * 40 for name in "abcdef"}


def happened(
    fact: str, hours: float = 0, title: str = "Add offline maps", **fields: Any
) -> Activity:
    """An activity of the kind that its id says, some hours after noon."""
    kinds = {"pr": "merge", "prerelease": "release", "preview": "deployment"}
    kind = kinds.get(fact.split(":")[0], fact.split(":")[0])
    when: datetime = NOON + timedelta(hours=hours)
    sources = {"deployment": "vercel", "version": "app_store"}
    source = sources.get(kind, "github")
    return Activity(
        **{
            "product_id": "p1",
            "key": f"{as_key(to_ms(when))}#{source}#{fact}",
            "source": source,
            "kind": kind,
            "title": title,
            "occurred_at": to_ms(when),
            "recorded_at": to_ms(when),
            **fields,
        }
    )


def pull_request(number: int, hours: float = 0, title: str = "Add offline maps", **fields: Any):
    refs = [f"pr:{number}", *fields.pop("refs", [])]
    return happened(f"pr:{number}", hours, title, refs=refs, **fields)


def release(version: str, hours: float = 0, **fields: Any) -> Activity:
    refs = [f"tag:v{version}", f"version:{version}"]
    return happened(
        f"release:{version}", hours, f"v{version}", **{"refs": refs, "version": version, **fields}
    )


def said(items: Iterable[Activity], never_mention: str = "") -> dict[str, str]:
    """The verdict on each, by the id of the fact, in short."""

    def words(verdict: Verdict) -> str:
        if verdict.ignored:
            return verdict.ignored
        return f"part of {fact(verdict.part_of)}" if verdict.part_of else "story"

    return {fact(v.item): words(v) for v in stories.judge(items, never_mention)}


def fact(item: Activity) -> str:
    return str(item.key).split("#", 2)[2]


def stage(items: Iterable[Activity]) -> dict[str, str]:
    return {fact(verdict.item): verdict.stage for verdict in stories.judge(items)}


def one_change() -> list[Activity]:
    """A pull request with a commit, its merge commit, and the deployments of that."""
    return [
        happened("commit:a", -1, "wip: maps", refs=[SHA["a"], "pr:7"], ignored="unfinished work"),
        pull_request(7, refs=[SHA["b"]]),
        happened("commit:b", 0, "Merge pull request #7", refs=[SHA["b"]], ignored="a merge commit"),
        happened("deployment:d1", 1, refs=[SHA["b"]]),
        happened("preview:d0", -1, refs=[SHA["b"]], ignored="a preview deployment"),
    ]


# -- what is one story -----------------------------------------------------------------------------


def test_all_that_tells_of_one_change_is_one_story() -> None:
    assert said(one_change()) == {
        "pr:7": "story",
        "commit:a": "part of pr:7",
        "commit:b": "part of pr:7",
        "deployment:d1": "part of pr:7",
        "preview:d0": "a preview deployment",
    }


def test_the_verdicts_do_not_depend_on_the_order() -> None:
    expected = said(one_change())
    for order in itertools.permutations(one_change()):
        assert said(order) == expected


def test_a_tag_a_release_and_the_version_in_the_store_are_one_story() -> None:
    tag = happened("tag:v1.5", 0, "v1.5", refs=["tag:v1.5", "version:1.5.0"])
    version = happened("version:9:1.5", 9, "1.5", refs=["version:1.5", "version:1.5.0"])
    found = [tag, release("1.5", 1, refs=["tag:v1.5", "version:1.5.0"])]
    assert said(found) == {"tag:v1.5": "part of release:1.5", "release:1.5": "story"}
    assert said([*found, version]) == {
        "tag:v1.5": "part of version:9:1.5",
        "release:1.5": "part of version:9:1.5",
        "version:9:1.5": "story",
    }


def test_a_version_in_review_leaves_the_lead_to_its_release() -> None:
    version = happened(
        "version:9:1.5",
        9,
        refs=["version:1.5.0"],
        ignored="not in the store yet",
        stage="in review",
    )
    found = [release("1.5", refs=["version:1.5.0"]), version]
    assert said(found) == {"release:1.5": "story", "version:9:1.5": "part of release:1.5"}
    assert stage(found)["release:1.5"] == "in review"


def test_the_tag_of_a_prerelease_is_no_story_though_it_looks_final() -> None:
    tag = happened("tag:v2.0", 0, "v2.0", refs=["tag:v2.0"])
    early = happened("prerelease:1", 1, "v2.0", refs=["tag:v2.0"], ignored="a prerelease")
    assert said([tag, early]) == {"tag:v2.0": "a prerelease", "prerelease:1": "a prerelease"}


def test_the_pull_requests_that_a_releases_notes_name_are_part_of_it_and_others_are_not() -> None:
    found = [
        pull_request(7),
        pull_request(8, title="Export every trip"),
        pull_request(9, title="Share a trip by link"),
        release("1.4.0", 5, about={"tells": ["pr:7", "pr:8"]}),
    ]
    assert said(found) == {
        "pr:7": "part of release:1.4.0",
        "pr:8": "part of release:1.4.0",
        "pr:9": "story",
        "release:1.4.0": "story",
    }


def test_two_pull_requests_of_a_prerelease_stay_stories_of_their_own() -> None:
    early = release("1.4.0", 5, about={"tells": ["pr:7", "pr:8"]}, ignored="a prerelease")
    found = [pull_request(7), pull_request(8, title="Export every trip"), early]
    assert said(found) == {"pr:7": "story", "pr:8": "story", "release:1.4.0": "a prerelease"}


def test_two_releases_one_after_the_other_are_two_stories() -> None:
    assert set(said([release("1.4.0"), release("1.4.1", 2)]).values()) == {"story"}


def test_a_mere_tag_is_part_of_the_change_that_it_is_put_on() -> None:
    tag = happened("tag:v1", 1, "v1", refs=["tag:v1", SHA["b"]])
    assert said([pull_request(7, refs=[SHA["b"]]), tag]) == {
        "pr:7": "story",
        "tag:v1": "part of pr:7",
    }


def test_a_change_without_its_pull_request_is_led_by_what_is_known_of_it() -> None:
    commit = happened("commit:a", 0, refs=[SHA["a"]])
    deployment = happened("deployment:d1", 1, refs=[SHA["a"]])
    assert said([commit, deployment]) == {
        "deployment:d1": "story",
        "commit:a": "part of deployment:d1",
    }


def test_a_commit_does_not_make_a_story_of_a_chore_that_it_is_part_of() -> None:
    chore = pull_request(7, title="chore: tidy up", ignored="a chore")
    commit = happened("commit:a", 0, "Move the helpers", refs=[SHA["a"], "pr:7"])
    assert said([chore, commit]) == {"pr:7": "a chore", "commit:a": "a chore"}


def test_the_squashed_whole_of_a_pull_request_may_say_better_what_it_is() -> None:
    vague = pull_request(7, title="wip", ignored="unfinished work")
    whole = happened("commit:a", 0, "Add offline maps (#7)", refs=[SHA["a"], "pr:7"])
    assert said([vague, whole]) == {"commit:a": "story", "pr:7": "part of commit:a"}


@pytest.mark.parametrize(
    "reason",
    ["labelled “nopost”", "its author said so", "made by a bot (renovate)", "you said so"],
)
def test_a_refusal_holds_for_everything_that_tells_of_the_same_change(reason: str) -> None:
    refused = pull_request(7, refs=[SHA["b"]], ignored=reason)
    deployment = happened("deployment:d1", 1, refs=[SHA["b"]])
    assert said([refused, deployment]) == {"pr:7": reason, "deployment:d1": reason}


# -- stages ----------------------------------------------------------------------------------------


def test_a_story_has_got_as_far_as_the_furthest_of_what_tells_of_it() -> None:
    assert stage([pull_request(7, refs=[SHA["b"]])]) == {"pr:7": "merged"}
    assert stage(one_change())["pr:7"] == "live"


def test_what_was_merged_before_a_deployed_commit_is_live_and_what_came_after_is_not() -> None:
    before = pull_request(6, -2, "Export every trip")
    after = pull_request(8, 0.5, "Share a trip by link")
    stages = stage([*one_change(), before, after])
    assert (stages["pr:6"], stages["pr:8"]) == ("live", "merged")


def test_a_preview_makes_nothing_live() -> None:
    preview = happened("preview:d0", 1, refs=[SHA["b"]], ignored="a preview deployment")
    assert stage([pull_request(7, refs=[SHA["b"]]), preview])["pr:7"] == "merged"


def test_what_a_version_in_the_store_brings_is_in_the_store() -> None:
    version = happened("version:9:1.5", 9, refs=["version:1.5.0"], stage="in the store")
    named = release("1.5.0", 1, about={"tells": ["pr:7"]})
    assert stage([pull_request(7), named, version]) == {
        "pr:7": "in the store",
        "release:1.5.0": "in the store",
        "version:9:1.5": "in the store",
    }


# -- what is no story ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "about", [["pr:7"], [SHA["b"]], ["sha:bbbbbbb"], ["title:add offline maps"]]
)
def test_what_was_reverted_and_its_revert_are_no_stories(about: list[str]) -> None:
    work = pull_request(7, refs=[SHA["b"]])
    revert = pull_request(8, 1, 'Revert "Add offline maps"', about={"reverts": about})
    assert said([work, revert]) == {"pr:7": "it was reverted", "pr:8": "a revert"}


def test_a_revert_that_was_reverted_gives_the_work_back() -> None:
    work = pull_request(7)
    revert = pull_request(8, 1, 'Revert "Add offline maps"', about={"reverts": ["pr:7"]})
    again = pull_request(9, 2, 'Reapply "Add offline maps"', about={"reverts": ["pr:8"]})
    assert said([again, work, revert]) == {
        "pr:7": "story",
        "pr:8": "a revert",
        "pr:9": "a revert",
    }


def test_a_revert_by_title_takes_back_only_the_last_of_that_title() -> None:
    first, second = pull_request(5, -9), pull_request(7)
    revert = happened("commit:a", 1, "revert", about={"reverts": ["title:add offline maps"]})
    verdicts = said([first, second, revert])
    assert (verdicts["pr:5"], verdicts["pr:7"]) == ("story", "it was reverted")


def test_what_is_done_again_after_a_revert_is_a_story() -> None:
    revert = pull_request(8, 1, 'Revert "Add offline maps"', about={"reverts": ["pr:7"]})
    again = pull_request(9, 2)
    assert said([pull_request(7), revert, again])["pr:9"] == "story"


def test_a_fix_of_what_nobody_has_yet_is_part_of_it() -> None:
    work = pull_request(7)
    fix = pull_request(8, 1, "Fix the legend", about={"fixes": ["pr:7"]})
    assert said([release("1.0.0", -9), work, fix])["pr:8"] == "part of pr:7"
    assert said([release("1.0.0", -9), work, fix, release("1.1.0", 0.5)])["pr:8"] == "story"
    deployment = happened("deployment:d1", 0.5, "Something else", refs=[SHA["f"]])
    assert said([work, fix, deployment])["pr:8"] == "story"


def test_a_fix_is_a_story_where_nothing_is_ever_released() -> None:
    fix = pull_request(8, 1, "Fix the legend", about={"fixes": ["pr:7"]})
    assert said([pull_request(7), fix])["pr:8"] == "story"


@pytest.mark.parametrize(
    ("title", "verdict"),
    [("fix(map): the legend is readable", "part of pr:7"), ("fix(ui): wrong colours", "story")],
)
def test_a_fix_of_the_same_scope_is_part_of_the_feature_that_is_not_out(
    title: str, verdict: str
) -> None:
    work = pull_request(7, title="feat(map): offline maps")
    assert said([release("1.0.0", -9), work, pull_request(8, 1, title)])["pr:8"] == verdict


def test_a_fix_of_a_fix_is_part_of_the_same_story() -> None:
    fix = pull_request(8, 1, "Fix the legend", about={"fixes": ["pr:7"]})
    second = pull_request(9, 2, "Fix it again", about={"fixes": ["pr:8"]})
    found = said([release("1.0.0", -9), pull_request(7), fix, second])
    assert (found["pr:8"], found["pr:9"]) == ("part of pr:7", "part of pr:7")


def test_a_commit_that_mends_its_own_repeat_goes_round_in_no_circle() -> None:
    first = happened("commit:a", 0, "fix(map): the legend", refs=[SHA["a"]])
    merged = pull_request(8, 1, "fix(map): the legend", about={"fixes": [SHA["a"]]})
    found = said([release("1.0.0", -9), first, merged])
    assert (found["commit:a"], found["pr:8"]) == ("part of pr:8", "story")


def test_the_same_commit_under_another_hash_is_part_of_the_first() -> None:
    first = happened("commit:a", 0, refs=[SHA["a"]], author="octo-dev")
    again = happened("commit:b", 1, refs=[SHA["b"]], author="octo-dev")
    other = happened("commit:c", 2, refs=[SHA["c"]], author="somebody-else")
    assert said([again, other, first]) == {
        "commit:a": "story",
        "commit:b": "part of commit:a",
        "commit:c": "story",
    }


def test_two_pull_requests_of_one_title_are_two_stories() -> None:
    assert said([pull_request(7), pull_request(8, 1)]) == {"pr:7": "story", "pr:8": "story"}


@pytest.mark.parametrize("title", ["Theme", "Add PWA", "✨ Maps", "feat: theme (#7)"])
def test_a_title_of_a_word_or_a_few_letters_says_too_little(title: str) -> None:
    assert said([pull_request(7, title=title)]) == {"pr:7": stories.TOO_SMALL}


@pytest.mark.parametrize(
    "fields",
    [{"said": "You can install it."}, {"body": "It can be installed."}, {"title": "地図を追加"}],
)
def test_a_short_title_with_more_to_it_is_a_story(fields: dict[str, str]) -> None:
    assert said([pull_request(7, **{"title": "Add PWA", **fields})]) == {"pr:7": "story"}


def test_what_mentions_a_word_that_is_kept_out_is_no_story_nor_what_tells_of_the_same() -> None:
    merged = pull_request(7, refs=[SHA["b"]], body="As Acme Corp asked for.")
    deployment = happened("deployment:d1", 1, refs=[SHA["b"]])
    reason = "mentions “acme corp”, which you keep out of posts"
    assert said([merged, deployment], "something\n\nacme corp\n") == {
        "pr:7": reason,
        "deployment:d1": reason,
    }


# -- a person's verdict ----------------------------------------------------------------------------


def test_a_persons_verdict_wins_over_every_other() -> None:
    chosen = {"overruled": "was ignored"}
    revert = pull_request(8, 1, "revert", about={"reverts": ["pr:7"]})
    assert said([pull_request(7, **chosen), revert])["pr:7"] == "story"
    assert said([pull_request(7, title="Theme", **chosen)], "theme")["pr:7"] == "story"
    fix = pull_request(9, 1, "Fix the legend", about={"fixes": ["pr:7"]}, **chosen)
    assert said([release("1.0.0", -9), pull_request(7), fix])["pr:9"] == "story"
    named = release("1.4.0", 5, about={"tells": ["pr:7"]})
    assert said([pull_request(7, **chosen), named])["pr:7"] == "story"


def test_a_part_that_a_person_wants_told_is_a_story_beside_the_one_it_was_part_of() -> None:
    found = one_change()
    found[3].overruled = "was part of another story"
    assert (said(found)["deployment:d1"], said(found)["pr:7"]) == ("story", "story")


def test_what_a_person_left_out_stays_out_though_its_deployment_comes_later() -> None:
    left_out = pull_request(7, refs=[SHA["b"]], ignored="you said so", overruled="was a story")
    deployment = happened("deployment:d1", 1, refs=[SHA["b"]])
    assert said([left_out, deployment]) == {"pr:7": "you said so", "deployment:d1": "you said so"}


def test_a_story_keeps_what_it_rests_on() -> None:
    named = release("1.4.0", 5, about={"tells": ["pr:7"]})
    tag = happened("tag:v1.4.0", 4, "v1.4.0", refs=["tag:v1.4.0"])
    [story] = [v for v in stories.judge([*one_change(), named, tag]) if v.is_story]
    assert [fact(item) for item in story.same] == ["tag:v1.4.0"]
    assert [fact(item) for item in story.parts] == [
        "commit:a", "commit:b", "pr:7", "deployment:d1",
    ]  # fmt: skip
    assert story.refs == {"tag:v1.4.0", "version:1.4.0"}
