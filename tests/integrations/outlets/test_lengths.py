"""Every outlet's count, on known vectors, against twitter-text, and on text made to hurt."""

import time
from datetime import timedelta

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from twitter_text import parse_tweet

from integrations.outlets import OUTLETS, text_length, text_limit

FAMILY = "👨‍👩‍👧‍👦"
X_VECTORS = {
    "": 0,
    "Hi http://test.co": 26,
    f"H🐱☺{FAMILY}": 7,
    "🙋🏽👨‍🎤": 4,
    "cafe\u0301": 4,
    "日本語": 6,
    "1️⃣": 2,
    "🇬🇧": 2,
    "❤️‍🔥🐻‍❄️": 4,
    "Ship 🚀 v2 → https://acme.dev/x?y=1 #indie": 44,
    "acme.dev": 23,
    "readme.md": 23,
    "see example.com now": 31,
    "node.js": 7,
    "foo.ts": 6,
    "v1.2.0": 6,
    "…": 2,
    "→": 2,
    "™": 2,
    "©": 2,
    "—": 1,
    "\u2019": 1,
    "a@acme.dev": 10,
    "#acme.dev": 9,
    "https://localhost:8000/x": 24,
    "https://acme.dev.": 24,
    "(https://acme.dev/a_(b)_c)": 25,
    "日本語https://acme.dev": 29,
    "acme.dev日本語": 29,
    "https://t.co/abc/def": 27,
    "two acme.dev/a and acme.dev/b": 55,
    "e" + "\u0301" * 100: 100,
}


@pytest.mark.parametrize(("text", "length"), X_VECTORS.items(), ids=range(len(X_VECTORS)))
def test_x_weighs_as_twitter_text_does(text: str, length: int) -> None:
    assert text_length("x", text) == length


def test_a_long_link_counts_23_on_x() -> None:
    link = "https://acme.dev/" + "b" * 103
    assert [text_length("x", "a" * words + " " + link) for words in (250, 260)] == [274, 284]
    assert text_limit("x") == 280


LINKS = ["acme.dev", "https://acme.dev/a?b=1", "http://a.io", "sub.acme.co.uk/p", "acme.dev/a_(b)"]
LINK_LIKE = ["readme.md?x", "README.MD", "example.com:80/(a)", "a@b.com", "foo_bar.com", "日本.jp"]
OTHERS = ["node.js", "v1.2.0", "localhost", "word", "日本", "é", "e\u0301", "©"]
EMOJI = ["🚀", "👩‍💻", "👍🏽", "1️⃣", "🇬🇧"]
WORDS = st.sampled_from([*LINKS, *LINK_LIKE, *OTHERS, *EMOJI])
GAPS = st.sampled_from([" ", "\n", ", ", ": ", " (", ") ", "“", "” ", " — ", "…", "!", "", " #"])


@given(st.lists(st.tuples(WORDS, GAPS).map("".join), max_size=8).map("".join))
@settings(deadline=None)
def test_x_agrees_with_the_port_of_twitter_text(text: str) -> None:
    assert text_length("x", text) == parse_tweet(text).weightedLength


@pytest.mark.parametrize(
    ("text", "length"),
    [("🚀", 4), ("✅", 3), (FAMILY, 25), ("abc é 日本", 8), ("https://acme.dev/" + "b" * 20, 37)],
)
def test_threads_counts_an_emoji_by_its_bytes(text: str, length: int) -> None:
    assert text_length("threads", text) == length


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("a" * 301, 301),
        (FAMILY, 3),  # 25 bytes are more of 3,000 than one grapheme is of 300
        ("🇬🇧" * 10, 10),
        ("e\u0301", 1),
        (FAMILY * 120, 300),
        (FAMILY * 121, 303),
        ("https://acme.dev/" + "b" * 20, 37),
    ],
)
def test_bluesky_counts_graphemes_or_the_share_of_its_bytes(text: str, length: int) -> None:
    assert text_length("bluesky", text) == length


@given(st.lists(st.sampled_from(["a", "日", FAMILY, "🇬", "\u0301"])).map("".join))
@settings(deadline=None)
def test_bluesky_is_over_its_limit_exactly_when_one_of_the_two_is(text: str) -> None:
    text *= 40
    over = len(regex.findall(r"\X", text)) > 300 or len(text.encode()) > 3000
    assert (text_length("bluesky", text) > text_limit("bluesky")) == over


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("https://acme.dev/" + "b" * 100, 23),
        ("see http://a.io.", 28),
        ("(https://acme.dev/a)", 25),
        ("acme.dev/" + "b" * 20, 29),
        ("@ada@hachyderm.io", 4),
        ("hi @ada@hachyderm.io!", 8),
        ("ada@example.com", 15),
        ("@ada", 4),
        ("https://acme.dev/@ada@hachyderm.io", 23),
        (FAMILY, 1),
    ],
)
def test_mastodon_counts_links_23_and_a_mention_without_its_host(text: str, length: int) -> None:
    assert text_length("mastodon", text) == length


@pytest.mark.parametrize("outlet", ["linkedin", "changelog"])
def test_others_count_code_points(outlet: str) -> None:
    assert text_length(outlet, "🚀 https://acme.dev") == 18


@pytest.mark.parametrize("outlet", OUTLETS)
def test_a_line_end_counts_one_however_the_browser_sends_it(outlet: str) -> None:
    assert [text_length(outlet, f"a{end}b") for end in ("\n", "\r\n", "\r")] == [3, 3, 3]


HOSTILE = [
    "a.",
    "é.",
    "a.com ",
    "日.com",
    "https://a.",
    "https://acme.dev/(a)",
    "@a",
    "@a.",
    "🇬",
    "👨‍",
    "a\u0301",
    "\ud800",
    "xn--",
    "_a.",
]


@pytest.mark.parametrize("outlet", OUTLETS)
@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_a_hundred_kilobytes_of_hostile_text_are_counted(outlet: str, unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    started = time.process_time()
    assert text_length(outlet, text) > 0
    # What a naive pattern does here takes minutes; the margin is for slow machines.
    assert timedelta(seconds=time.process_time() - started) < timedelta(seconds=20)


def test_stacked_accents_in_the_wrong_order_are_counted() -> None:
    started = time.process_time()
    assert text_length("x", "a" + "\u0301" * 50_000 + "\u0316" * 50_000) > 280
    assert time.process_time() - started < 20


@pytest.mark.parametrize("ask", [text_limit, lambda outlet: text_length(outlet, "a")])
def test_an_unknown_outlet_is_named(ask) -> None:
    with pytest.raises(ValueError, match="There is no outlet 'myspace': choose one of x, threads"):
        ask("myspace")
