"""The door for machines: one view for every source of webhooks.

verify the raw body, parse it, note it, hand it on, settle it, answer. Nothing is believed before
the signature is checked, and no body, however made, ends in a 500.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NoReturn, Protocol

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django_ratelimit.core import is_ratelimited
from prometheus_client import Counter

from integrations import connections, deliveries
from integrations.deliveries import Taken
from integrations.sources.base import BadPayload, Received, Source
from slothpost_site.dynamo import Conflict, StoreError

logger = logging.getLogger(__name__)

LARGEST_BODY = 25 * 1024 * 1024  # bytes; GitHub sends no more

WEBHOOKS = Counter(
    "slothpost_webhooks",
    "Webhook deliveries by source and by what became of them.",
    ["source", "result"],
)

Take = Callable[[str, Received, datetime], list[Taken]]


class Refusal(Exception):
    """A request that is answered with an error status and one line of reason."""

    def __init__(self, status: int, result: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.result = result


class Hooks(Protocol):
    """A source that has a webhook, with a secret of its own, for each thing that is followed."""

    def hook_secrets(self, hook: str) -> tuple[str, ...]:
        """What its deliveries may be signed with, the newest first; none for what is no hook."""

    def followed_by(self, hook: str) -> str:
        """The follow id of what a hook is about; "" for what is no hook."""


def receiver(source: Source, take: Take, hooks: Hooks | None = None) -> Callable[..., HttpResponse]:
    """The view for a source's deliveries, or with `hooks` for those of its hooks.

    `take(source name, received, now)` does with a delivery what the product wants done and says
    what became of it for each product. It may be called again with the same delivery.
    """

    @csrf_exempt
    def receive(request: HttpRequest, hook: str = "") -> HttpResponse:
        try:
            secrets = hooks.hook_secrets(hook) if hooks else source.secrets()
            received = _read(request, source, secrets)
            if hooks:
                received = replace(received, follow_id=hooks.followed_by(hook))
            return _answer(source, take, received, timezone.now())
        except Refusal as refusal:
            return _refuse(request, source, refusal)

    return receive


def _read(request: HttpRequest, source: Source, secrets: tuple[str, ...]) -> Received:
    """A verified delivery; raises Refusal. Nothing is parsed before the signature is checked."""
    if request.method not in source.METHODS:
        raise Refusal(405, "method", f"send deliveries by {' or '.join(source.METHODS)}")
    body = _body(request)
    if not secrets:
        raise _unsigned(request, source, "no webhook secret is configured here")
    if not any(source.verify(body, request.headers, secret) for secret in secrets):
        reason = f"the signature in {source.SIGNATURE_HEADER} is not right"
        raise _unsigned(request, source, reason)
    try:
        return source.parse(_json_object(request, body), request.headers)
    except BadPayload as error:
        raise Refusal(400, "malformed", str(error)) from error


def _unsigned(request: HttpRequest, source: Source, reason: str) -> Refusal:
    """The refusal of an unsigned delivery; of the hundredth from one address, without a reason.

    Only those are counted: a source sends everybody's deliveries from the same few addresses, and
    a stranger who aims a wrong secret at us from there must not shut out the right ones.
    """
    limited = is_ratelimited(
        request,
        group=f"webhooks.{source.NAME}",
        key=_sender,
        rate=settings.WEBHOOK_RATE_LIMIT,
        increment=True,
    )
    if limited:
        return Refusal(429, "limited", "too many unsigned deliveries from this address")
    return Refusal(401, "unsigned", reason)


def _body(request: HttpRequest) -> bytes:
    """The raw body. Read from the stream, because `request.body` has a limit of its own."""
    too_large = Refusal(413, "oversize", f"a body has at most {LARGEST_BODY} bytes")
    if _content_length(request) > LARGEST_BODY:
        raise too_large
    try:
        body = request.read(LARGEST_BODY + 1)
    except UnreadablePostError as error:
        raise Refusal(400, "malformed", "the body ended early") from error
    if len(body) > LARGEST_BODY:
        raise too_large
    return body


def _content_length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError as error:
        raise Refusal(400, "malformed", "Content-Length is not a number") from error


def _json_object(request: HttpRequest, body: bytes) -> dict[str, object]:
    try:
        payload = json.loads(body.decode(), parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        reason = "the body is not JSON"
        if request.content_type == "application/x-www-form-urlencoded":
            reason = "the body is a form: set the webhook's content type to application/json"
        raise Refusal(400, "malformed", reason) from error
    if not isinstance(payload, dict):
        raise Refusal(400, "malformed", "the body is not a JSON object")
    return payload


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _answer(source: Source, take: Take, received: Received, now: datetime) -> HttpResponse:
    """Do a delivery's work once and say what came of it. Raises Refusal if the store is down."""
    ids = {"source": source.NAME, "delivery": received.delivery_id, "event": received.event}
    try:
        if not deliveries.take_in(received, source.NAME, now):
            WEBHOOKS.labels(source.NAME, "repeat").inc()
            logger.info("webhook repeated", extra=ids)
            return _said(received, 0, "seen before")
        if received.account is not None:
            connections.hear(received.account, now)
        taken = take(source.NAME, received, now)
        deliveries.settle(received, source.NAME, taken, now)
    except (StoreError, Conflict) as error:
        logger.exception("webhook not stored", extra=ids)
        raise Refusal(
            503, "unavailable", "the delivery could not be stored: send it again"
        ) from error
    WEBHOOKS.labels(source.NAME, "taken" if taken else "nothing").inc()
    logger.info("webhook received", extra={**ids, "products": len(taken), "note": received.note})
    return _said(received, len(taken), received.note)


def _said(received: Received, products: int, note: str) -> HttpResponse:
    return JsonResponse({"delivery": received.delivery_id, "taken": products, "note": note})


def _refuse(request: HttpRequest, source: Source, refusal: Refusal) -> HttpResponse:
    WEBHOOKS.labels(source.NAME, refusal.result).inc()
    logger.warning(
        "webhook refused",
        extra={"source": source.NAME, "reason": str(refusal), "ip": _sender("", request)},
    )
    response = HttpResponse(f"{refusal}\n", "text/plain; charset=utf-8", refusal.status)
    if refusal.status == 405:
        response["Allow"] = ", ".join(source.METHODS)
    return response


def _sender(group: str, request: HttpRequest) -> str:
    """The address a request came from, never refused for its form: a proxy may write any text."""
    header = getattr(settings, "RATELIMIT_IP_META_KEY", "REMOTE_ADDR")
    return str(request.META.get(header, ""))
