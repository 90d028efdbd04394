"""What links in a post at Bluesky, by its bytes; and how long hostile text takes."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.outlets.base import Piece
from integrations.outlets.bluesky_facets import facets, first_link, handles, pieces

ADA = {"ada.example.com": "did:plc:ada"}


def links(text: str) -> list[tuple[str, str]]:
    return [(piece.text, piece.url) for piece in pieces(text) if piece.kind == "link"]


def test_offsets_are_bytes_and_end_after_what_links() -> None:
    link = {"$type": "app.bsky.richtext.facet#link", "uri": "https://acme.dev/x?y=1"}
    tag = {"$type": "app.bsky.richtext.facet#tag", "tag": "indie"}
    assert facets("Ship 🚀 v2 → https://acme.dev/x?y=1 #indie", {}) == [
        {"index": {"byteStart": 17, "byteEnd": 39}, "features": [link]},
        {"index": {"byteStart": 40, "byteEnd": 46}, "features": [tag]},
    ]


def test_right_after_an_emoji_the_offset_is_the_emojis_end() -> None:
    (facet,) = facets("shipped 🎉 https://x.example", {})
    assert facet["index"] == {"byteStart": 13, "byteEnd": 30}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see acme.dev.", [("acme.dev", "https://acme.dev")]),
        ("see https://acme.dev/a_(b), ok", [("https://acme.dev/a_(b)", "https://acme.dev/a_(b)")]),
        ("(http://acme.dev/a)", [("http://acme.dev/a", "http://acme.dev/a")]),
        ("“https://acme.dev”", [("https://acme.dev", "https://acme.dev")]),
        ("acme.dev/a?b=1&c=2#d", [("acme.dev/a?b=1&c=2#d", "https://acme.dev/a?b=1&c=2#d")]),
        ("HTTPS://ACME.DEV", [("HTTPS://ACME.DEV", "HTTPS://ACME.DEV")]),
        ("https://bücher.example/ä", [("https://bücher.example/ä", "https://bücher.example/ä")]),
        ("node.js v1.2.0 foo.ts e.g. 3.5", []),
        ("sam@acme.dev", []),
        ("sam.sloth@acme.dev", []),
        ("https://localhost", []),
        ("ftp://acme.dev", []),
        ("@acme.dev", []),
        ("acme.dev-and-more", []),
    ],
)
def test_links(text: str, found: list[tuple[str, str]]) -> None:
    assert links(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#indie", ["#indie"]),
        ("(#indie, #dev!)", ["#indie", "#dev"]),
        ("＃日本語", ["＃日本語"]),  # noqa: RUF001 -- full width
        ("#2026 #v2", ["#v2"]),
        ("issue#5 a&#39; /#a", []),
        ("#" + "a" * 64, ["#" + "a" * 64]),
        ("#" + "a" * 65, []),
    ],
)
def test_tags(text: str, found: list[str]) -> None:
    assert [piece.text for piece in pieces(text) if piece.kind == "tag"] == found


def test_only_known_handles_are_mentions() -> None:
    text = "Thanks @Ada.example.com, @bob.example.com and @nobody"
    mention = {"$type": "app.bsky.richtext.facet#mention", "did": "did:plc:ada"}
    index = {"byteStart": 7, "byteEnd": 23}
    assert facets(text, ADA) == [{"index": index, "features": [mention]}]
    assert handles(text + " @ada.example.com") == ["ada.example.com", "bob.example.com"]


def test_no_fediverse_handle_is_a_mention() -> None:
    assert pieces("@ada@hachyderm.io") == [Piece("@ada@hachyderm.io")]


def test_the_first_link_is_the_cards() -> None:
    assert first_link("at node.js: acme.dev and https://b.example") == "https://acme.dev"
    assert first_link("none") == ""


BITS = [
    "https://acme.dev/a",
    "acme.dev",
    "@ada.example.com",
    "#tag",
    "🚀",
    "\u202e",
    "é",
    " ",
    "\n",
]


@given(
    st.lists(st.sampled_from([*BITS, "(", ")", ".", "@", "#", "/", "\u0301", "👨‍👩‍👧‍👦"])).map(
        "".join
    )
)
@settings(deadline=None)
def test_joined_the_pieces_are_the_text_and_facets_cut_out_what_links(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text
    raw = text.encode()
    cut = [
        raw[facet["index"]["byteStart"] : facet["index"]["byteEnd"]].decode()
        for facet in facets(text, ADA)
    ]
    marked = [piece for piece in pieces(text) if piece.kind != "text"]
    known = [p for p in marked if p.kind != "mention" or p.text == "@ada.example.com"]
    assert cut == [piece.text for piece in known]


@pytest.mark.parametrize(
    "unit",
    [
        "a.",
        "a-",
        "https://",
        "https://a.",
        "https://a.b/(",
        "@a.",
        "#a",
        "#1",
        "é.",
        "-",
        "@",
        "a.dev/(",
    ],
    ids=ascii,
)
def test_hostile_text_takes_no_time(unit: str) -> None:
    started = time.process_time()
    pieces((unit * 100_000)[:100_000])
    assert time.process_time() - started < 20
