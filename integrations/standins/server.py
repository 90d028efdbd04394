"""What the stand-ins share: a small server that hands requests to services and fails on demand."""

import json
import pickle
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from requests.structures import CaseInsensitiveDict


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # below the service's own prefix
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode(), True).items()}

    def forms(self) -> dict[str, list[str]]:
        """Fields that may repeat, such as ticks."""
        return parse_qs(self.body.decode(), True)

    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    def bearer(self) -> str:
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        return token if kind.lower() in ("bearer", "token") else ""


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: Any = None  # text is sent as HTML, bytes as they are, everything else as JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def redirect(url: str) -> Response:
    return Response(302, "", {"Location": url})


def hidden(name: str, value: str) -> str:
    """A field of a form that nobody sees."""
    return f"<input type='hidden' name='{name}' value='{escape(value)}'>"


def act(action: str, number: object, what: str, label: str) -> str:
    """A button that does something to a thing."""
    return (
        f"<form method='post' action='{action}' style='display:inline'>"
        f"{hidden('number', str(number))}{hidden('what', what)}<button>{label}</button></form>"
    )


def page(service: str, title: str, body: str) -> str:
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>:root{{color-scheme:light dark;font:1rem/1.6 system-ui}}"
        "body{max-width:44rem;margin:2rem auto;padding:0 1rem}button{min-height:2rem}"
        "a{color:LinkText}</style><body>"
        f"<p><small>A stand-in for {service} on this machine: nothing here is real."
        f" <a href='{settings.SITE_URL}'>Back to SlothPost</a></small></p>"
        f"<h1>{title}</h1>{body}</body></html>"
    )


Handler = Callable[..., Response]


class Service:
    """One outside service. Subclasses list `routes`: (method, pattern of the path, handler's name);
    the pattern's groups are the handler's further arguments."""

    prefix = ""  # "/github"
    label = ""  # what people call it, where it has a page for them at its "/"
    kept: tuple[str, ...] = ()  # what survives a restart: attributes that hold who is connected
    routes: tuple[tuple[str, str, str], ...] = ()

    def __init__(self, standins: "StandIns") -> None:
        self.standins = standins
        self.lock = Lock()

    @property
    def url(self) -> str:
        return self.standins.url + self.prefix

    def handle(self, request: Request) -> Response:
        for method, pattern, name in self.routes:
            found = re.fullmatch(pattern, request.path)
            if method == request.method and found:
                handler: Handler = getattr(self, name)
                return handler(request, *found.groups())
        return self.not_found()

    def not_found(self) -> Response:
        return Response(404, {"message": "Not Found"})


@dataclass
class Fault:
    """What a service does instead of its work, for so many of the requests that match."""

    path: str = ".*"  # a pattern of the whole path, with the service's prefix
    method: str = ".*"
    status: int = 503
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    after: int = 0  # so many that match are let pass first
    delay: float = 0.0  # seconds before it answers
    hang_up: bool = False  # after the request was read, without an answer
    does_the_work: bool = False  # and then fails all the same: the answer is lost


@dataclass(frozen=True)
class Call:
    """A request that arrived, without anything secret."""

    method: str
    path: str
    query: str


class StandIns:
    """All the services behind one port."""

    def __init__(
        self, port: int = 0, site_url: str = "http://localhost:8000", memory: Path | None = None
    ) -> None:
        self.site_url = site_url  # where webhooks are sent
        self.memory = memory  # the file that holds what survives a restart
        self.services: list[Service] = []
        self.faults: list[Fault] = []
        self.calls: list[Call] = []
        self.alter: Callable[[Response], Response] = lambda response: response
        self._lock, self._remembering = Lock(), Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> "StandIns":
        Thread(target=self.serve, args=(0.005,), daemon=True).start()
        return self

    def serve(self, interval: float = 0.5) -> None:
        """Answer until it is stopped, which takes up to an interval, in seconds."""
        self._server.serve_forever(interval)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, method: str, path: str) -> int:
        """How many requests came whose path matches the pattern."""
        return sum(
            call.method == method and bool(re.fullmatch(path, call.path)) for call in self.calls
        )

    def answer(self, request: Request) -> Response | None:
        """The response, or None to hang up."""
        with self._lock:
            self.calls.append(Call(request.method, request.path, "&".join(request.query)))
            fault = next((f for f in self.faults if _matches(f, request)), None)
            if fault and fault.after:
                fault.after, fault = fault.after - 1, None
            if fault:
                fault.times -= 1
        if fault is None:
            return self._work(request)
        time.sleep(fault.delay)
        if fault.does_the_work:
            self._work(request)
        if fault.hang_up:
            return None
        return Response(fault.status, fault.body, fault.headers)

    def _work(self, request: Request) -> Response:
        for service in self.services:
            if request.path == service.prefix or request.path.startswith(f"{service.prefix}/"):
                below = request.path.removeprefix(service.prefix) or "/"
                inner = Request(request.method, below, request.query, request.headers, request.body)
                response = service.handle(inner)
                if self.memory and request.method != "GET":
                    self._remember(self.memory)
                return self.alter(response)
        return self._front() if request.path == "/" else Response(404, "There is no such service.")

    def _front(self) -> Response:
        """Every service that has a page for people."""
        items = "".join(
            f"<li><a href='{service.url}/'>{service.label}</a></li>"
            for service in self.services
            if service.label
        )
        body = f"<p>Sign in there, and make things happen.</p><ul>{items}</ul>"
        return Response(200, page("services of others", "Services on this machine", body))

    def _remember(self, memory: Path) -> None:
        with self._remembering, ExitStack() as still:
            for service in self.services:
                still.enter_context(service.lock)
            kept = {s.prefix: {name: getattr(s, name) for name in s.kept} for s in self.services}
            new = memory.with_suffix(".new")
            new.write_bytes(pickle.dumps(kept))
            new.chmod(0o600)
            new.replace(memory)

    def recall(self) -> None:
        """Have the services go on with whoever was connected; a file of an older version, which
        knows other things, is left aside."""
        if self.memory is None or not self.memory.exists():
            return
        try:
            known = pickle.loads(self.memory.read_bytes())  # noqa: S301 -- this class wrote it
        except (pickle.UnpicklingError, AttributeError, ImportError, EOFError, TypeError):
            return
        for service in self.services:
            for name in service.kept:
                if name in known.get(service.prefix, {}):
                    setattr(service, name, known[service.prefix][name])


def _matches(fault: Fault, request: Request) -> bool:
    return (
        fault.times > 0
        and bool(re.fullmatch(fault.method, request.method))
        and bool(re.fullmatch(fault.path, request.path))
    )


def _handler(standins: StandIns) -> type[BaseHTTPRequestHandler]:
    class OneRequest(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            query = {name: values[0] for name, values in parse_qs(parts.query, True).items()}
            response = standins.answer(
                Request(
                    self.command,
                    parts.path,
                    query,
                    CaseInsensitiveDict(self.headers.items()),
                    self.rfile.read(length),
                )
            )
            if response is None:
                self.close_connection = True
                return
            content, kind = _content(response.body)
            self.send_response(response.status)
            for name, value in {"Content-Type": kind, **response.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD" and response.status not in (204, 304):
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 -- http.server's

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- http.server's
            """Say nothing: addresses carry codes."""

    return OneRequest


def _content(body: Any) -> tuple[bytes, str]:
    if body is None:
        return b"", "text/plain"
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if isinstance(body, str):
        return body.encode(), "text/html; charset=utf-8"
    return json.dumps(body).encode(), "application/json"
