"""Somebody's webhook on this machine: it takes what comes, and shows it.

It verifies nothing by itself: whoever tests signatures has the raw bytes and the headers.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from integrations.standins.server import (
    Request,
    Response,
    Service,
    StandIns,
    act,
    page,
    redirect,
)

REAL_WHEN_SET = ""  # there are no credentials to set
HOST, TOKEN = "webhook.standin", "inbox-2f9c"
URL = f"https://{HOST}/{TOKEN}"


def settings_for(standins: StandIns) -> dict[str, str]:
    return {"OPERATOR_HOSTS": json.dumps({HOST: f"{standins.url}{Receiver.prefix}"})}


def add_to(standins: StandIns, keys: Path) -> "Receiver":
    receiver = Receiver(standins)
    standins.services.append(receiver)
    return receiver


@dataclass(frozen=True)
class Delivery:
    token: str
    headers: Mapping[str, str]
    raw: bytes
    at: datetime

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found


@dataclass(frozen=True)
class Post:
    id: str
    text: str


class Receiver(Service):
    prefix = "/webhook"
    label = "A webhook"
    kept = ("deliveries", "tokens", "gone")
    routes = (("GET", "/", "front"), ("POST", "/do", "do"), ("POST", "/([^/]+)", "receive"))

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.deliveries: list[Delivery] = []  # oldest first
        self.tokens = {TOKEN}  # what stands last in the addresses that there are
        self.gone: set[str] = set()  # and in those that there were
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def posts(self) -> list[Post]:
        """What people see, newest first: what came twice is seen twice, as in Slack or Discord."""
        bodies = [delivery.body for delivery in reversed(self.deliveries)]
        return [Post(b["id"], b["text"]) for b in bodies if b["type"] == "post.published"]

    def receive(self, request: Request, token: str) -> Response:
        if token in self.gone:
            return Response(410, "Gone")
        if token not in self.tokens:
            return Response(404, "No such hook")
        if not {"id", "type", "text"} <= set(request.json()):
            return Response(400, "invalid_payload")
        # Headers as a plain dict: what survives a restart is pickled.
        headers = {name.lower(): value for name, value in request.headers.items()}
        delivery = Delivery(token, headers, request.body, self.clock())
        with self.lock:
            self.deliveries.append(delivery)
        return Response(200, "ok")

    def front(self, request: Request) -> Response:
        items = "".join(
            f"<li><b>{escape(str(each.body['type']))}</b> <code>{escape(each.body['id'])}</code>"
            f"<p style='white-space:pre-wrap' dir='auto'>{escape(each.body['text'])}</p></li>"
            for each in reversed(self.deliveries)
        )
        addresses = "".join(
            f"<li><code>https://{HOST}/{token}</code>"
            f" {act('/webhook/do', token, 'delete', 'Delete this address')}</li>"
            for token in sorted(self.tokens)
        )
        body = (
            f"<h2>Addresses</h2><ul>{addresses or '<li>none any more</li>'}</ul>"
            f"<h2>Deliveries</h2><ul>{items or '<li>none yet</li>'}</ul>"
        )
        return Response(200, page("a webhook", "A webhook", body))

    def do(self, request: Request) -> Response:
        token = request.form()["number"]
        self.tokens.discard(token)
        self.gone.add(token)
        return redirect(f"{self.url}/")
