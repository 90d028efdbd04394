"""Hosts that users name: what is taken for one, and that no inner address is ever called."""

import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from threading import Thread

import pytest
from pytest_django import Settings

from integrations.addresses import api_at, host_of, https_address
from integrations.api import Api
from integrations.errors import Refused, TryLater, Unknown
from integrations.standins.server import Fault, StandIns

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "host"),
    [
        ("social.example", "social.example"),
        (" Social.Example/ ", "social.example"),
        ("@me@social.example", "social.example"),
        ("https://social.example/@me", "social.example"),
        ("bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_a_host_is_read_from_what_people_paste(typed: str, host: str) -> None:
    assert host_of(typed) == host


@pytest.mark.parametrize(
    "typed",
    [
        *("", "localhost", "127.0.0.1", "[::1]", "10.0.0.5", "2130706433", "0x7f.1", "1.2.3.4.5"),
        *("social.example:8080", "https://social.example:22/", "a b.example", "exa_mple.org"),
        *(
            "x" * 64 + ".example",
            "-a.example",
            "a..example",
            "https://[",
            "\x00.example",
            "é" * 300,
        ),
    ],
)
def test_what_is_no_public_host_is_refused_with_a_sentence(typed: str) -> None:
    with pytest.raises(Refused) as refused:
        host_of(typed)
    assert refused.value.reason.endswith(".")


@pytest.mark.parametrize(
    "typed",
    [
        *("http://hooks.example/x", "ftp://hooks.example", "hooks.example/x", "https://", ""),
        *("https://me:secret@hooks.example/", "https://hooks.example/\r\nx", "https://10.0.0.1/x"),
    ],
)
def test_only_whole_https_addresses_are_taken(typed: str) -> None:
    with pytest.raises(Refused):
        https_address(typed)


def test_an_address_keeps_its_path_and_query() -> None:
    assert https_address("https://Hooks.example/A/b?c=D") == "https://hooks.example/A/b?c=D"


@pytest.fixture
def listening() -> Iterator[tuple[int, list[object]]]:
    """A port of this machine, and who has connected to it."""
    came: list[object] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def accept() -> None:
            while True:
                try:
                    came.append(server.accept())
                except OSError:
                    return

        Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], came


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "169.254.169.254", "[::1]"])  # noqa: S104 -- where nobody may lead us
def test_an_inner_address_is_never_called_for_a_user(
    host: str, listening: tuple[int, list[object]]
) -> None:
    port, came = listening
    for scheme in ("https", "http"):
        api = Api("The instance", f"{scheme}://{host}:{port}", named_by_user=True)
        with pytest.raises((Refused, TryLater)):
            api.ask("GET", "/", now=NOW)
    assert came == []


def test_a_host_may_be_where_its_operator_says(settings: Settings) -> None:
    standins = StandIns().start()
    settings.OPERATOR_HOSTS = {"social.example": f"{standins.url}/there"}
    standins.faults = [Fault(path="/there/api", status=200, body='{"a": 1}')]
    assert api_at("It", "social.example").ask("GET", "/api", now=NOW).body == {"a": 1}
    standins.stop()
    assert api_at("It", "other.example").named_by_user


# -- requests that create something ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(hang_up=True), Unknown),
        (Fault(status=500), Unknown),
        (Fault(status=503), Unknown),
        (Fault(status=200, body="<html>"), Unknown),
        (Fault(status=429), TryLater),
        (Fault(status=422), Refused),
    ],
)
def test_what_may_have_been_done_is_unknown(fault: Fault, kind: type[Exception]) -> None:
    standins = StandIns().start()
    standins.faults = [fault]
    with pytest.raises(kind) as failure:
        Api("It", standins.url).ask("POST", "/posts", now=NOW, creates=True, json={})
    assert type(failure.value) is kind
    standins.stop()


@pytest.mark.parametrize("base", ["http://127.0.0.1:9", "https://nowhere.invalid"])
def test_what_never_left_was_provably_not_done(base: str) -> None:
    for named in (True, False):
        with pytest.raises((TryLater, Refused)):
            Api("It", base, named_by_user=named).ask("POST", "/", now=NOW, creates=True, json={})
