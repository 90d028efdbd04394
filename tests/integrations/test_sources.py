"""What holds for every registered source, whatever a stranger sends."""

from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.sources import SOURCES
from integrations.sources.base import BadPayload, Received, Source
from tests.integrations.recorded import delivery, vercel, vercel_names

BODY = b'{"id": "1"}'
every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@every_source
def test_a_signature_of_the_very_bytes_is_accepted(source: Source) -> None:
    signed = {source.SIGNATURE_HEADER: source.signature(BODY, "secret")}
    assert source.verify(BODY, signed, "secret")
    assert not source.verify(BODY + b" ", signed, "secret")
    assert not source.verify(BODY, signed, "another")


@every_source
@pytest.mark.parametrize("claimed", [None, "", "sha256=", "né", "sha1=00"])
def test_a_missing_or_made_up_signature_is_refused(source: Source, claimed: str | None) -> None:
    headers = {} if claimed is None else {source.SIGNATURE_HEADER: claimed}
    assert not source.verify(BODY, headers, "secret")


@every_source
def test_an_empty_secret_refuses_even_what_was_signed_with_it(source: Source) -> None:
    signed = {source.SIGNATURE_HEADER: source.signature(BODY, "")}
    assert not source.verify(BODY, signed, "")


@every_source
def test_a_source_is_known_by_its_name(source: Source) -> None:
    assert SOURCES[source.NAME] is source


# -- whatever is sent ----------------------------------------------------------------------------

SAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("github", "release", delivery("release", action="published")),
    ("github", "push", delivery("push", ref="refs/heads/master")),
    ("github", "push", delivery("push", ref="refs/tags/simple-tag", created=True)),
    ("github", "create", delivery("create")),
    ("github", "ping", delivery("ping")),
    ("github", "star", delivery("star")),
    ("github", "repository", delivery("repository", action="renamed")),
    ("github", "pull_request", delivery("pull_request", action="closed")),
    *(("vercel", "", vercel(name)) for name in vercel_names()),
]
SAMPLES[0][2]["release"] |= {"name": "Dark mode", "body": "It follows the system."}
SAMPLES[7][2]["pull_request"] |= {"merged": True, "merged_at": "2026-11-30T20:15:00Z"}

UNFIT: list[object] = [
    *(None, True, 0, -1, 2**63, 10**400, 1e308, float("inf"), [], [None], {}, {"id": {}}, [[[]]]),
    *("", " ", "\n", "\x00", "\ud800", "#", "a#b", "[]", "x" * 5_000, "\U0001d54f" * 5_000),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31T00:00:00Z"),
]
HOSTILE = st.one_of(
    st.sampled_from(UNFIT),
    st.text(st.characters(), max_size=50),
    st.integers(),
    st.recursive(st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
)


def paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def altered(value: Any, path: tuple[Any, ...], replacement: object) -> Any:
    """A copy with another value in one place; as it was if the place is no longer there."""
    if not path:
        return replacement
    key, *rest = path
    if isinstance(value, dict) and key in value:
        return {**value, key: altered(value[key], tuple(rest), replacement)}
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return [*value[:key], altered(value[key], tuple(rest), replacement), *value[key + 1 :]]
    return value


def parse(name: str, event: str, payload: dict[str, Any]) -> Received | str:
    """What a source makes of a payload: a delivery, or the reason for refusing it."""
    try:
        return SOURCES[name].parse(
            payload, {"X-GitHub-Event": event, "X-GitHub-Delivery": "guid-1"}
        )
    except BadPayload as refused:
        return str(refused)


def places_that_matter(sample: tuple[str, str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The few places of a payload that are looked at: another value there changes the answer."""
    name, event, payload = sample
    usual = parse(*sample)
    return [
        place
        for place in paths(payload)
        if parse(name, event, altered(payload, place, [["?"]])) != usual
    ]


PLACES = [places_that_matter(sample) for sample in SAMPLES]


@st.composite
def hostile_deliveries(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """A delivery with one to three of the values that are looked at replaced."""
    number = draw(st.integers(0, len(SAMPLES) - 1))
    name, event, payload = SAMPLES[number]
    for place in draw(st.lists(st.sampled_from(PLACES[number]), min_size=1, max_size=3)):
        payload = altered(payload, place, draw(HOSTILE))
    return name, event, payload


def assert_storable(received: Received) -> None:
    """Everything in it fits the tables and the pages."""
    for event in received.events:
        texts = [event.id, event.title, event.body, event.link, event.version, event.author]
        for text in [*texts, *event.refs, event.ignored]:
            text.encode()
            assert "\x00" not in text
        assert 1 <= len(event.title) <= 300
        assert event.title == " ".join(event.title.split())
        assert len(event.body) <= 4_000
        assert len(event.id.encode()) <= 850
        assert len(event.author) <= 200
        assert event.link == "" or event.link.startswith("https://")
        assert event.occurred_at.utcoffset() == timedelta(0)
        assert event.occurred_at.year >= 1970
        assert event.occurred_at.tzinfo is UTC
    for text in [received.delivery_id, received.event, received.follow_id]:
        assert len(text) <= 201
        assert text.isascii()
    received.note.encode()
    assert received.delivery_id


@settings(max_examples=600, deadline=None)
@given(hostile_deliveries())
def test_whatever_is_sent_is_read_or_refused_in_one_line(
    sent: tuple[str, str, dict[str, Any]],
) -> None:
    answer = parse(*sent)
    if isinstance(answer, Received):
        assert_storable(answer)
    else:
        assert 0 < len(answer) < 200
        assert "\n" not in answer


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_no_unfit_value_anywhere_gets_through(number: int) -> None:
    name, event, payload = SAMPLES[number]
    for place in PLACES[number]:
        for value in UNFIT:
            answer = parse(name, event, altered(payload, place, value))
            if isinstance(answer, Received):
                assert_storable(answer)
