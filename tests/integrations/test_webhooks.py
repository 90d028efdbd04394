"""The door for machines, over HTTP."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from itertools import count
from typing import Any

import pytest
from django.core.cache import cache
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django.test import Client
from django.urls import path
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from prometheus_client import REGISTRY
from pytest_django import Settings

from integrations import deliveries, webhooks
from integrations.deliveries import Taken
from integrations.sources import SOURCES
from integrations.sources.base import Received
from products import activity
from slothpost_site.dynamo import StoreError
from tests.conftest import free_port, use_server
from tests.integrations.recorded import delivery, vercel
from tests.integrations.test_sources import hostile_deliveries

PING = delivery("ping")
CLIENT = Client(enforce_csrf_checks=True)


@dataclass
class Door:
    """The views, with a product behind them that takes whatever comes."""

    taken: list[Received] = field(default_factory=list)
    fails: bool = False
    turns: Iterator[int] = field(default_factory=count)

    def take(self, source: str, received: Received, now: datetime) -> list[Taken]:
        if self.fails:
            raise StoreError("no answer")
        self.taken.append(received)
        for event in received.events:
            activity.record("p1", event, now)
        return [Taken("alice", "p1", "recorded")] if received.follow_id else []

    def send(
        self,
        source: str,
        body: bytes,
        *,
        event: str = "ping",
        guid: str = "guid-1",
        method: str = "POST",
        **extra: Any,
    ) -> HttpResponse:
        """A delivery, signed unless `headers` say otherwise."""
        sender = SOURCES[source]
        headers = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": guid,
            sender.SIGNATURE_HEADER: sender.signature(body, "the secret"),
        } | extra.pop("headers", {})
        response: HttpResponse = CLIENT.generic(
            method,
            f"/webhooks/{sender.PATH}/",
            body,
            extra.pop("content_type", "application/json"),
            headers={name: value for name, value in headers.items() if value is not None},
            **extra,
        )
        return response


@pytest.fixture
def door(store: str, settings: Settings) -> Iterator[Door]:
    cache.clear()
    settings.GITHUB_WEBHOOK_SECRET = settings.VERCEL_CLIENT_SECRET = "the secret"
    settings.APP_STORE_WEBHOOK_SECRET = "the secret"
    door = Door()
    settings.ROOT_URLCONF = tuple(
        path(f"webhooks/{source.PATH}/", webhooks.receiver(source, door.take))
        for source in SOURCES.values()
    )
    yield door
    cache.clear()


def as_json(payload: object) -> bytes:
    return json.dumps(payload).encode()


def log() -> list[tuple[str, str | None]]:
    """What staff see of today."""
    return [(d.event, d.outcome) for d in deliveries.list_for_day(timezone.now().date()).items]


def assert_refused(response: HttpResponse, status: int, reason: str) -> None:
    assert (response.status_code, response.content.decode()) == (status, f"{reason}\n")
    assert log() == []


# -- what is let in ------------------------------------------------------------------------------


def test_a_delivery_is_taken_logged_and_answered(door: Door) -> None:
    payload = delivery("release", action="published")
    response = door.send("github", as_json(payload), event="release")
    assert (response.status_code, json.loads(response.content)) == (
        200,
        {"delivery": "guid-1", "taken": 1, "note": ""},
    )
    assert [received.event for received in door.taken] == ["release.published"]
    assert log() == [("release.published", "Products reached: 1")]
    (line,) = deliveries.list_for_product("p1").items
    assert (line.event, line.outcome) == ("release.published", "recorded")


def test_a_repeat_has_no_second_effect(door: Door) -> None:
    body = as_json(vercel("deployment.promoted"))
    assert json.loads(door.send("vercel", body).content)["taken"] == 1
    again = door.send("vercel", body)
    assert (again.status_code, json.loads(again.content)) == (
        200,
        {"delivery": "uev_2", "taken": 0, "note": "seen before"},
    )
    assert len(door.taken) == 1
    assert log() == [("deployment.promoted", "Products reached: 1")]


def test_an_event_that_nobody_tracks_is_accepted_and_logged(door: Door) -> None:
    response = door.send("github", as_json({"zen": "?"}), event="never_heard_of")
    note = "SlothPost does not track `never_heard_of` events"
    assert (response.status_code, json.loads(response.content)) == (
        200,
        {"delivery": "guid-1", "taken": 0, "note": note},
    )
    assert log() == [("never_heard_of", note)]


def test_an_uninstall_may_come_by_delete(door: Door) -> None:
    body = as_json(vercel("integration-configuration.removed"))
    assert door.send("vercel", body, method="DELETE").status_code == 200
    assert [event for event, _ in log()] == ["integration-configuration.removed"]


def test_a_body_larger_than_djangos_own_limit_is_taken(door: Door) -> None:
    assert door.send("github", as_json(PING | {"padding": "x" * 3_000_000})).status_code == 200
    assert [event for event, _ in log()] == ["ping"]


def test_an_interrupted_delivery_is_finished_by_the_next(door: Door) -> None:
    door.fails = True
    body = as_json(PING)
    response = door.send("github", body)
    assert (response.status_code, response.content) == (
        503,
        b"the delivery could not be stored: send it again\n",
    )
    assert log() == [("ping", None)]
    door.fails = False
    assert door.send("github", body).status_code == 200
    assert log() == [("ping", "GitHub says hello: the webhook works")]


# -- what is not ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("signature", [None, "", "sha256=00", "né"])
@pytest.mark.parametrize("body", [as_json(PING), b"not JSON"])
def test_a_wrong_signature_is_refused_before_the_body_is_read_as_anything(
    door: Door, source: str, signature: str | None, body: bytes
) -> None:
    header = SOURCES[source].SIGNATURE_HEADER
    response = door.send(source, body, headers={header: signature})
    assert_refused(response, 401, f"the signature in {header} is not right")


@pytest.mark.parametrize("source", SOURCES)
def test_an_empty_secret_refuses_all(door: Door, source: str, settings: Settings) -> None:
    settings.GITHUB_WEBHOOK_SECRET = settings.VERCEL_CLIENT_SECRET = ""
    settings.APP_STORE_WEBHOOK_SECRET = ""
    signed = {SOURCES[source].SIGNATURE_HEADER: SOURCES[source].signature(as_json(PING), "")}
    response = door.send(source, as_json(PING), headers=signed)
    assert_refused(response, 401, "no webhook secret is configured here")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        '{"id": 1}'.encode("utf-16"),
        b'\xef\xbb\xbf{"id": 1}',
        b'{"id": "\xed\xa0\x80"}',
        b'{"id": NaN}',
        b'{"id": -Infinity}',
        b'{"id": ' + b"9" * 5_000 + b"}",
        b"[" * 200_000,
        b'{"a":' * 200_000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_is_not_json_is_refused(door: Door, source: str, body: bytes) -> None:
    assert_refused(door.send(source, body), 400, "the body is not JSON")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"{}"', b"1", b"1e400"])
def test_json_that_is_no_object_is_refused(door: Door, body: bytes) -> None:
    assert_refused(door.send("github", body), 400, "the body is not a JSON object")


def test_a_form_is_refused_with_what_to_change(door: Door) -> None:
    assert_refused(
        door.send("github", b"payload=%7B%7D", content_type="application/x-www-form-urlencoded"),
        400,
        "the body is a form: set the webhook's content type to application/json",
    )


@pytest.mark.parametrize("name", ["X-GitHub-Event", "X-GitHub-Delivery"])
def test_a_delivery_without_its_headers_is_refused(door: Door, name: str) -> None:
    response = door.send("github", as_json(PING), headers={name: None})
    assert_refused(response, 400, f"the header {name} is missing or malformed")


def test_a_payload_of_another_shape_is_refused_by_the_name_of_the_field(door: Door) -> None:
    response = door.send("github", as_json({"repository": {"id": "1"}}))
    assert_refused(response, 400, "repository.id is not a positive whole number")


def test_an_oversize_body_is_refused_unread(door: Door) -> None:
    response = door.send("github", as_json(PING), CONTENT_LENGTH=str(webhooks.LARGEST_BODY + 1))
    assert_refused(response, 413, "a body has at most 26214400 bytes")


def test_an_oversize_body_of_unknown_length_is_refused(door: Door) -> None:
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    request = ASGIRequest(scope, BytesIO(b" " * (webhooks.LARGEST_BODY + 1)))
    response = webhooks.receiver(SOURCES["github"], door.take)(request)
    assert_refused(response, 413, "a body has at most 26214400 bytes")


def test_a_length_that_is_no_number_is_refused(door: Door) -> None:
    response = door.send("github", as_json(PING), CONTENT_LENGTH="many")
    assert_refused(response, 400, "Content-Length is not a number")


@pytest.mark.parametrize(
    ("source", "method", "allowed"),
    [("github", "GET", "POST"), ("github", "DELETE", "POST"), ("vercel", "PUT", "POST, DELETE")],
)
def test_another_method_is_refused(door: Door, source: str, method: str, allowed: str) -> None:
    response = door.send(source, as_json(PING), method=method)
    assert response["Allow"] == allowed
    assert_refused(response, 405, f"send deliveries by {allowed.replace(', ', ' or ')}")


def test_a_flood_of_unsigned_deliveries_is_cut_off_and_signed_ones_pass(
    door: Door, settings: Settings
) -> None:
    settings.WEBHOOK_RATE_LIMIT = "2/h"
    unsigned = {"headers": {"X-Hub-Signature-256": "sha256=0"}, "REMOTE_ADDR": "192.0.2.1"}
    sent = [door.send("github", as_json(PING), **unsigned).status_code for _ in range(4)]
    assert sent == [401, 401, 429, 429]
    signed = door.send("github", as_json(PING), REMOTE_ADDR="192.0.2.1")
    elsewhere = door.send("github", as_json(PING), **unsigned | {"REMOTE_ADDR": "192.0.2.2"})
    assert (signed.status_code, elsewhere.status_code) == (200, 401)


@pytest.mark.parametrize("address", [{}, {"HTTP_X_REAL_IP": "not an address, é"}])
def test_an_address_of_any_form_is_served(
    door: Door, settings: Settings, address: dict[str, str]
) -> None:
    settings.RATELIMIT_IP_META_KEY = "HTTP_X_REAL_IP"
    assert door.send("github", as_json(PING), **address).status_code == 200


def test_a_store_that_is_down_is_said_so_that_the_sender_tries_again(door: Door) -> None:
    use_server(f"http://127.0.0.1:{free_port()}")
    response = door.send("vercel", as_json(vercel("deployment.promoted")))
    assert (response.status_code, response.content) == (
        503,
        b"the delivery could not be stored: send it again\n",
    )
    assert door.taken == []


# -- what is said about it -----------------------------------------------------------------------


def counted(source: str, result: str) -> float:
    labels = {"source": source, "result": result}
    return REGISTRY.get_sample_value("slothpost_webhooks_total", labels) or 0


def test_deliveries_are_counted_by_what_became_of_them(door: Door) -> None:
    results = ["taken", "nothing", "repeat", "unsigned", "malformed", "oversize", "method"]
    before = {result: counted("github", result) for result in results}
    release = as_json(delivery("release", action="published"))
    door.send("github", release, event="release")
    door.send("github", release, event="release")
    door.send("github", as_json({}), guid="guid-2")
    door.send("github", release, headers={"X-Hub-Signature-256": None})
    door.send("github", b"{")
    door.send("github", b"{}", CONTENT_LENGTH=str(webhooks.LARGEST_BODY + 1))
    door.send("github", b"", method="GET")
    after = {result: counted("github", result) - before[result] for result in results}
    assert after == dict.fromkeys(results, 1)


def test_the_log_has_ids_and_reasons_and_never_the_body(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="integrations.webhooks")
    body = as_json(PING | {"zen": "a private thought"})
    door.send("github", body)
    door.send("github", body, headers={"X-Hub-Signature-256": "sha256=abc"})
    said = [record for record in caplog.records if record.name == "integrations.webhooks"]
    assert [record.getMessage() for record in said] == ["webhook received", "webhook refused"]
    received, refused = (vars(record) for record in said)
    assert (received["delivery"], received["event"], received["products"]) == ("guid-1", "ping", 1)
    assert refused["reason"] == "the signature in X-Hub-Signature-256 is not right"
    assert refused["ip"] == "127.0.0.1"
    everything = repr([vars(record) for record in said])
    assert [
        secret for secret in ("private thought", "the secret", "sha256=abc") if secret in everything
    ] == []


# -- whatever is sent ----------------------------------------------------------------------------


@hypothesis_settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sent=hostile_deliveries())
def test_no_signed_delivery_ends_in_a_500(
    door: Door, sent: tuple[str, str, dict[str, Any]]
) -> None:
    source, event, payload = sent
    turn = next(door.turns)
    if str(payload.get("id")).startswith("uev_"):
        payload = payload | {"id": f"uev_{turn}"}  # else it would be a repeat
    response = door.send(source, as_json(payload), event=event or "ping", guid=f"guid-{turn}")
    assert response.status_code in (200, 400)
    assert b"\n" not in response.content[:-1]
