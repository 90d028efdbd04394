"""Posts that a person could send as they are: what they pick, how they read, what they never do."""

import html
from itertools import pairwise

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrations.outlets import OUTLETS, text_length, text_limit
from integrations.writers import composer, words
from integrations.writers.base import Brief, Written
from tests.integrations.writers.briefs import RELEASE, WEEKS, brief, story

LINK = "https://fernweh.app"


def written(outlet: str, *stories, **facts) -> Written:
    post = composer.write(brief(outlet, *stories, **facts))
    assert post is not None
    return post


def text(outlet: str, *stories, **facts) -> str:
    return written(outlet, *stories, **facts).text


def told(title: str, **facts) -> str:
    """What a changelog's entry makes of one title."""
    return text("changelog", story(title, **facts), link="")


# -- what it picks -------------------------------------------------------------------------------


def test_nothing_new_is_nothing_to_tell() -> None:
    assert composer.write(brief("x")) is None


def test_a_title_without_words_is_nothing_to_tell() -> None:
    assert composer.write(brief("x", story(":tada: (#12)"), story("\u200b"))) is None


@pytest.mark.parametrize("outlet", OUTLETS)
def test_one_change_told_by_four_sources_is_one_story(outlet: str) -> None:
    sha = "sha:" + "a" * 40
    tellings = (
        story("feat: dark mode", "commit", refs=(sha,)),
        story("Add dark mode to every page", refs=("pr:4", sha)),
        story("dark mode", "deployment", source="vercel", refs=(sha,)),
        story("v1.1", "tag", version="v1.1", refs=(sha, "tag:v1.1")),
    )
    post = written(outlet, *tellings)
    assert "every page" in post.text
    assert post.text.casefold().count("dark mode") == 1
    assert sorted(post.evidence) == sorted(telling.key for telling in tellings)


def test_a_release_leads_and_its_merges_are_part_of_it() -> None:
    week = WEEKS["generated release"]
    post = written("bluesky", *week)
    assert post.text == (
        "Fernweh 1.4.0 is out.\n\n"
        "• Offline maps\n• GPX export\n• Fixed: wrong distances after crossing the date line\n\n"
        "It also shows distances in miles.\n\n"
        "https://fernweh.app"
    )
    assert sorted(post.evidence) == sorted(one.key for one in week)


def test_a_release_without_notes_lists_what_was_merged_for_it() -> None:
    release = story("v2.0", "release", version="v2.0", refs=("tag:v2.0", "sha:" + "b" * 40))
    merged = story("Add dark mode", refs=("pr:7", "sha:" + "b" * 40))
    post = written("changelog", release, merged)
    assert post.text == f"Version 2.0\n\n- Dark mode\n\n{LINK}"
    assert set(post.evidence) == {release.key, merged.key}


def test_a_feature_leads_before_a_fix_whatever_came_last() -> None:
    week = (story("feat: dark mode", hours=1), story("fix: a typing delay", hours=9))
    assert text("changelog", *week, link="") == "Dark mode\n\n- Fixed: a typing delay"


def test_the_same_words_twice_are_told_once_with_both_as_evidence() -> None:
    twice = (story("Add dark mode", "commit"), story("feat: Dark mode", "merge"))
    post = written("x", *twice)
    assert post.text.casefold().count("dark mode") == 1
    assert len(post.evidence) == 2


def test_stories_without_room_are_not_evidence_and_stay_to_be_told() -> None:
    week = [story(f"Add a thing numbered {n} of some length", hours=n) for n in range(12)]
    post = written("x", *week)
    numbers = set(regex.findall(r"numbered (\d+)", post.text))
    assert 1 < len(numbers) < 12
    assert set(post.evidence) == {one.key for n, one in enumerate(week) if str(n) in numbers}


def test_a_story_that_its_owner_insists_on_is_told_when_there_is_no_other() -> None:
    assert told("docs: a guide to self-hosting") == "A guide to self-hosting"
    week = (story("docs: a guide to self-hosting", hours=5), story("Dark mode"))
    assert written("x", *week).evidence == ("merge:Dark mode",)
    assert text("changelog", *week, link="") == "Dark mode\n\n- A guide to self-hosting"


# -- how a title is said -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "said"),
    {
        "feat(map)!: offline maps (#41)": "Offline maps",
        "Add dark mode": "Dark mode",
        "Added dark mode.": "Dark mode",
        "[LED-88] Add dark mode": "Dark mode",
        "LED-88: Improve search": "Improved search",
        "Improve search (LED-88)": "Improved search",
        "UTF-8 file names": "UTF-8 file names",
        ":sparkles: Add dark mode ✨": "Dark mode",
        "Fix login loop, fixes #12": "Fixed: login loop",
        "fix: handle empty trips": "Now handles empty trips",
        "Add support for passkeys": "Now supports passkeys",
        "Support for passkeys": "Support for passkeys",
        "Add ability to export trips as GPX": "Now lets you export trips as GPX",
        "Add option to hide finished trips": "Now lets you hide finished trips",
        "Add a button to hide finished trips": "A button to hide finished trips",
        "Add a dark mode toggle to the toolbar": "Added a dark mode toggle to the toolbar",
        "Search across all notebooks": "Now searches across all notebooks",
        "Search results page": "Search results page",
        "fix: crash when the network changes": "Fixed: crash when the network changes",
        "Speed up start": "Sped up start",
        "Show `@mentions` in **bold**": "Now shows mentions in bold",
        "Thanks @ada for the `--dry-run` flag": "Thanks ada for the --dry-run flag",
        "iOS widget": "iOS widget",
        "npm package": "npm package",
        "ADD DARK MODE": "Dark mode",
        "Add &quot;quiet hours&quot;": '"quiet hours"',
        "See [the docs](https://evil.example/x) for more": "See the docs for more",
        "Visit https://evil.example/x now": "Visit now",
        "<script>alert(1)</script> dark mode": "alert(1) dark mode",
        "&lt;img src=x onerror=alert(1)&gt; dark mode": "Dark mode",
        "Dark \u202emode\u202c with\u200b care": "Dark mode with care",
        "Dark\nIgnore previous instructions": "Dark",
        "Ignore previous instructions": "Ignore previous instructions",
        "Add .env support": ".env support",
        "{p} and {x}": "{p} and {x}",
    }.items(),
)
def test_a_title_is_said_plainly(title: str, said: str) -> None:
    assert told(title) == said


def test_release_notes_give_what_readers_notice() -> None:
    assert text("changelog", *WEEKS["written release"], link="") == (
        "Version 3.0.0: Together\n\n"
        "- Shared inboxes: read and answer mail together\n"
        "- Keyboard shortcuts for every action (press ? to see them)\n"
        "- Support for passkeys\n"
        "- Now remembers the last opened folder\n"
        "- Search is about twice as fast on large mailboxes\n"
        "- Fixed: attachments with umlauts in their names could not be opened\n"
        "- Fixed: crash when the network changes during sync"
    )


def test_notes_that_a_release_tool_wrote_lose_scopes_numbers_and_hashes() -> None:
    notes = (
        "### Bug Fixes\n\n"
        "* **editor:** keep the cursor after undo ([#12](https://x.io/12)) ([abc1234](https://x.io/c))\n"
        "### Features\n\n"
        "* **map:** hand-drawn routes ([#15](https://x.io/15)), closes [#9](https://x.io/9)\n"
    )
    release = story("v1.2.0", "release", version="v1.2.0", body=notes)
    assert text("changelog", release, link="") == (
        "Version 1.2.0\n\n- Hand-drawn routes\n- Now keeps the cursor after undo"
    )


def test_release_notes_in_prose_give_their_first_sentence() -> None:
    assert "Recipes can now be scaled to any number of guests." in text(
        "mastodon", *WEEKS["prose release"]
    )


def test_what_a_release_has_no_room_for_is_counted() -> None:
    post = text("x", *WEEKS["written release"])
    assert post.endswith(f"It now remembers the last opened folder. Plus 3 more.\n\n{LINK}")


@pytest.mark.parametrize(
    ("version", "said"),
    [("v1.2.0", "1.2.0"), ("app@2.0.1", "2.0.1"), ("2024.11", "2024.11"), ("nightly", "nightly")],
)
def test_the_version_is_the_one_in_the_evidence(version: str, said: str) -> None:
    release = story(version, "release", version=version)
    assert text("changelog", release, link="") == f"Version {said}"


# -- how a post reads ----------------------------------------------------------------------------


def test_neighbours_do_not_read_alike() -> None:
    texts = [text("x", story("Add dark mode"), variation=n) for n in range(8)]
    assert all(a != b for a, b in pairwise(texts))
    assert text("x", story("Add dark mode")) != text("x", story("Add dark mode"), variation=7)


def test_the_same_brief_gives_the_same_post() -> None:
    assert written("x", *WEEKS["a busy week"]) == written("x", *WEEKS["a busy week"])


@pytest.mark.parametrize(
    ("voice", "speaker"),
    [("We are two people.", "We added"), ("I write short.", "I added"), ("", "")],
)
def test_the_voice_says_who_speaks(voice: str, speaker: str) -> None:
    texts = [text("x", story("Add dark mode"), voice=voice, variation=n) for n in range(4)]
    assert any(one.startswith(speaker) for one in texts)
    assert any(regex.search(r"\b(?:We|I)\b", one) for one in texts) == bool(speaker)


@pytest.mark.parametrize(
    ("voice", "with_emoji"),
    [
        ("", False),
        ("Friendly, no emoji", False),
        ("Never use emojis.", False),
        ("Emoji welcome", True),
    ],
)
def test_emoji_only_where_the_voice_asks_for_them(voice: str, with_emoji: bool) -> None:
    post = text("mastodon", story("🎉 Add dark mode 🌙"), voice=voice)
    assert bool(regex.search(r"\p{Emoji_Presentation}", post)) == with_emoji


def test_the_product_s_link_stands_before_the_release_s() -> None:
    assert text("x", RELEASE).endswith(f"\n\n{LINK}")
    assert text("x", RELEASE, link="").endswith(
        "\n\nhttps://github.com/fernweh/app/releases/tag/v1.4.0"
    )
    assert "http" not in text("x", story("Add dark mode", link="https://github.com/p/r/1"), link="")


@pytest.mark.parametrize("outlet", OUTLETS)
def test_words_give_way_to_the_link(outlet: str) -> None:
    link = "https://fernweh.app/" + "a" * 150
    long = story("Dark mode " + "for every single page of the planner " * 200)
    post = text(outlet, long, link=link)
    assert post.endswith(link)
    assert text_length(outlet, post) <= text_limit(outlet)
    assert "page of the" in post


def test_a_link_longer_than_the_limit_is_left_out_and_not_cut() -> None:
    post = text("bluesky", story("Add dark mode"), link="https://fernweh.app/" + "a" * 400)
    assert "http" not in post


# -- a quiet week --------------------------------------------------------------------------------


def test_an_evergreen_post_comes_from_the_product_s_own_words() -> None:
    post = composer.evergreen(brief("threads", audience="People who ride far."))
    assert post is not None
    assert post.text.endswith(
        "a trip planner for long-distance cyclists that works offline."
        f" Made for people who ride far.\n\n{LINK}"
    )
    assert post.evidence == ()


def test_without_a_pitch_there_is_no_evergreen_post() -> None:
    assert composer.evergreen(brief("threads", pitch=" ")) is None


# -- what it never does --------------------------------------------------------------------------

WORDS = ["Add", "Fix", "dark", "mode", "export", "w", "日本語", "العربية", "e\u0301", "v1.2", "a/b"]
MARKUP = ["feat:", "fix(api):", "#12", "[ABC-1]", "**bold**", "`code`", "<b>", "</b>", "* ", "## "]
HOSTILE = ["@ada", "acme.dev", "https://x.io/a_(b)", "&lt;", "<script>", "{x}", "\u202e", "\ud800"]
SIGNS = ["🚀", "👨‍👩‍👧‍👦", ":tada:", "\u200b", "&", ",", ".", "—", "…", "- ", "\n", "\r\n"]
FRAGMENTS = st.sampled_from([*WORDS, *MARKUP, *HOSTILE, *SIGNS])
TITLES = (
    st.lists(FRAGMENTS, max_size=25).map(" ".join)
    | st.text(max_size=300)
    | st.text(st.sampled_from("ab.日🚀"), min_size=250, max_size=300)
)
STORIES = st.lists(
    st.builds(
        lambda n, title, body, kind, version, refs: story(
            title[:300], kind, n, key=f"{kind}:{n}", body=body, version=version, refs=refs
        ),
        st.integers(0, 10_000),
        TITLES,
        st.lists(TITLES.map(lambda title: f"* {title}"), max_size=5).map("\n".join),
        st.sampled_from(["release", "merge", "commit", "tag", "deployment"]),
        st.sampled_from(["", "v1.2.0", "x" * 80]),
        st.sampled_from([(), ("pr:1",), ("pr:2", "sha:a"), ("sha:a",)]),
    ),
    max_size=6,
    unique_by=lambda one: one.key,
)
BRIEFS = st.builds(
    lambda outlet, stories, product, pitch, voice, variation, link: brief(
        outlet,
        *stories,
        product=product,
        pitch=pitch,
        audience=pitch,
        voice=voice,
        variation=variation,
        link=link,
    ),
    st.sampled_from(list(OUTLETS)),
    STORIES,
    st.sampled_from(["Fernweh", "日本語アプリ", "x" * 120, "<b>A</b>"]) | st.text(max_size=60),
    TITLES,
    st.sampled_from(["", "we", "I", "Emoji, please", "no emoji"]),
    st.integers(0, 10**6),
    st.sampled_from(["", LINK, "https://fernweh.app/" + "a" * 200]),
)
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def sources(given: Brief) -> str:
    """All that a post may be made of, as a reader of the evidence sees it."""
    fields = [given.product, given.pitch, given.audience, given.link]
    for one in given.stories:
        fields += [one.title, one.body, one.version, one.link]
    return seen(" ".join(fields))


def seen(raw: str) -> str:
    plain = html.unescape(html.unescape(raw))
    return regex.sub(r"[^\p{L}]|\p{C}", "", plain.casefold())


def check(given: Brief, post: Written | None) -> None:
    if post is None:
        return
    assert given.length(post.text) <= given.limit
    assert post.text.strip() == post.text != ""
    assert post.evidence == tuple(dict.fromkeys(post.evidence))
    assert set(post.evidence) <= {one.key for one in given.stories}
    if given.link:
        assert post.text.endswith(given.link) or given.length(f"w…\n\n{given.link}") > given.limit
    words_of_it = post.text.removesuffix(given.link)
    assert not regex.search(
        r"[\p{Cf}\p{Cs}--[\u200c\u200d]]|<script|(?<![A-Za-z0-9_])@\w", words_of_it, regex.V1
    )
    known = sources(given)
    for word in regex.findall(r"\p{L}{4,}", words_of_it):
        assert word.casefold() in words.VOCABULARY or seen(word) in known, word


@given(BRIEFS)
@MANY
def test_whatever_happened_the_post_fits_and_invents_nothing(given_brief: Brief) -> None:
    check(given_brief, composer.write(given_brief))


@given(BRIEFS)
@MANY
def test_an_evergreen_post_fits_and_invents_nothing(given_brief: Brief) -> None:
    check(given_brief, composer.evergreen(given_brief))


@pytest.mark.parametrize(
    "unit", ["(", "[a](", "**a", "<a ", "`", "#1 ", "a.", ":a", "_", "- ", "\u0301", "&lt;"]
)
def test_hostile_titles_and_notes_are_written_up(unit: str) -> None:
    """Each is one that a careless pattern never comes back from."""
    release = story((unit * 300)[:300], "release", version="v1", body=(unit * 4000)[:4000])
    for outlet in OUTLETS:
        check(brief(outlet, release), composer.write(brief(outlet, release)))
