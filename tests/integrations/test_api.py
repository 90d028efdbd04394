"""One door for calls: what leaves it, what it takes for an answer, and how long it waits."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from integrations import api
from integrations.api import Api, wait_of
from integrations.errors import Failure, NeedsReconnect, NotFound, Refused, TryLater

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class Service(BaseHTTPRequestHandler):
    """Answers by what `answers` has for a path: status, headers and body."""

    answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
    asked: list[str] = []

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, body = self.answers.get(self.path, (404, {}, b"{}"))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 -- http.server's

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 -- http.server's


@pytest.fixture
def service() -> Iterator[Callable[..., Api]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    Service.answers, Service.asked = {}, []
    address = f"http://127.0.0.1:{server.server_address[1]}"

    def answering(path: str, status: int = 200, body: object = b"{}", **headers: str) -> Api:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): v.format(here=address) for name, v in headers.items()}
        Service.answers[path] = (status, named, raw)
        return Api("Acme", address)

    yield answering
    server.shutdown()
    server.server_close()


def failure_of(api: Api, method: str = "GET", path: str = "/a") -> Failure:
    with pytest.raises(Failure) as raised:
        api.ask(method, path, now=NOW)
    return raised.value


def test_an_answer_is_its_json_and_the_next_page(service: Callable[..., Api]) -> None:
    acme = service("/a", body={"id": 1}, Link='<{here}/b>; rel="next"')
    answer = acme.ask("GET", "/a", now=NOW)
    assert (answer.status, answer.body) == (200, {"id": 1})
    service("/b", body=[2])
    assert acme.ask("GET", answer.next_url, now=NOW).body == [2]


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (400, Refused, "Acme refused (400)."),
        (401, NeedsReconnect, "Acme no longer accepts this account's authorisation."),
        (403, Refused, "Acme refused (403)."),
        (404, NotFound, "Acme does not show this to your account."),
        (410, NotFound, "Acme does not show this to your account."),
        (408, TryLater, "Acme has a fault of its own (408)."),
        (429, TryLater, "Acme asks us to wait."),
        (500, TryLater, "Acme has a fault of its own (500)."),
        (503, TryLater, "Acme has a fault of its own (503)."),
    ],
)
def test_every_status_is_one_kind_of_failure(
    service: Callable[..., Api], status: int, kind: type[Failure], reason: str
) -> None:
    failure = failure_of(service("/a", status, {"message": "no"}))
    assert (type(failure), failure.reason) == (kind, reason)
    assert failure.answer is not None
    assert (failure.answer.status, failure.answer.body) == (status, {"message": "no"})


@pytest.mark.parametrize(
    "body",
    [b"<html>Hello</html>", b'{"id": ', b"\xff\xfe\x00", b"[" * 100_000, b'{"n": ' + b"9" * 9000],
    ids=["html", "half", "bytes", "deep", "number"],
)
def test_what_is_no_json_is_no_answer(service: Callable[..., Api], body: bytes) -> None:
    failure = failure_of(service("/a", body=body))
    assert (type(failure), failure.reason) == (
        TryLater,
        "Acme answered with something that is no answer.",
    )


def test_an_error_page_in_html_is_still_its_status(service: Callable[..., Api]) -> None:
    assert type(failure_of(service("/a", 404, b"<html>"))) is NotFound


def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    service: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "LARGEST_ANSWER", 100)
    failure = failure_of(service("/a", body=b"[" + b" " * 100_000 + b"]"))
    assert failure.reason == "Acme answered with more than we can take."


def test_nobody_there_and_a_hang_up_are_no_answer(service: Callable[..., Api]) -> None:
    assert failure_of(Api("Acme", "http://127.0.0.1:9")).reason == "Acme did not answer."
    acme = service("/a", body=b"{}", Content_Length="99")
    assert failure_of(acme).reason == "Acme did not answer."


# -- where calls go --------------------------------------------------------------------------------


def test_a_redirect_within_the_service_is_followed(service: Callable[..., Api]) -> None:
    service("/b", body={"id": 2})
    for location in ("{here}/b", "/b", "b"):
        assert service("/a", 301, Location=location).ask("GET", "/a", now=NOW).body == {"id": 2}


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:9/b",
        "//example.com/b",
        "https://user@example.com/",
        "file:///etc/passwd",
        "http://[bad",
        "javascript:alert(1)",
    ],
)
def test_a_redirect_or_a_next_page_elsewhere_is_not_followed(
    service: Callable[..., Api], location: str
) -> None:
    acme = service("/a", 302, Location=location)
    assert type(failure_of(acme)) is Refused
    if "://" in location:
        assert type(failure_of(acme, path=location)) is Refused
    assert Service.asked == ["GET /a"]


def test_circles_end(service: Callable[..., Api]) -> None:
    assert failure_of(service("/a", 302, Location="/a")).reason == "Acme sent us in circles."
    assert len(Service.asked) == 4


@pytest.mark.parametrize("location", ["/b", ""])
def test_what_was_sent_once_is_not_sent_again_by_a_redirect(
    service: Callable[..., Api], location: str
) -> None:
    service("/b", body={"id": 2})
    failure = failure_of(service("/a", 307, Location=location), "POST")
    assert failure.reason == "Acme refused (307)."
    assert Service.asked == ["POST /a"]


# -- how long to wait ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"Retry-After": "120"}, timedelta(minutes=2)),
        ({"Retry-After": "Mon, 05 Jan 2026 12:05:00 GMT"}, timedelta(minutes=5)),
        ({"Retry-After": "Mon, 05 Jan 2026 11:00:00 GMT"}, timedelta(seconds=1)),
        ({"Retry-After": "0"}, timedelta(seconds=1)),
        ({"Retry-After": "1000000000"}, timedelta(days=1)),
        ({"Retry-After": "9" * 5000}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "NaN"}, None),
        (
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW.timestamp()) + 60)},
            timedelta(minutes=1),
        ),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9" * 5000}, timedelta(minutes=1)),
        ({"X-RateLimit-Remaining": "0"}, timedelta(minutes=1)),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, timedelta(seconds=1)),
        ({"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "1"}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], wait: timedelta | None) -> None:
    assert wait_of(headers, NOW) == wait


def test_a_403_that_says_how_long_is_a_limit_and_no_refusal(service: Callable[..., Api]) -> None:
    failure = failure_of(service("/a", 403, Retry_After="60"))
    assert isinstance(failure, TryLater)
    assert failure.after == timedelta(minutes=1)


def test_no_token_stands_in_a_failure_or_a_log(
    service: Callable[..., Api], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    acme = Api("Acme", service("/a", 401).base, {"Authorization": "Bearer PLANTED"})
    failure = failure_of(acme)
    assert "PLANTED" not in caplog.text + repr(failure) + repr(failure.answer)


def test_what_is_no_json_may_be_wanted_as_it_is(service: Callable[..., Api]) -> None:
    acme = service("/a", body=b"ok")
    assert acme.ask("POST", "/a", now=NOW, creates=True, raw=True).body == b"ok"
    service("/a", 404, b"no such hook")
    with pytest.raises(NotFound) as raised:
        acme.ask("POST", "/a", now=NOW, raw=True)
    assert raised.value.answer is not None
    assert raised.value.answer.body == b"no such hook"
