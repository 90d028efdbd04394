"""A webhook: an approved post as signed JSON, to any https address that a person names.

    POST <address>
    Content-Type: application/json
    X-SlothPost-Delivery: <id>
    X-SlothPost-Signature: sha256=<hex of HMAC-SHA256 of the raw body, with the address's secret>

    {"id", "type": "post.published", "product": {"name", "link"}, "text", "content", "slotAt",
     "sentAt"}

The id of a post is always the same, so that a receiver can drop what it has already. Times are ISO
8601 in UTC. `text` is what Slack shows and `content` what Discord shows; both are the post. The
first delivery, when the address is connected, is of type "ping".
https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
https://docs.discord.com/developers/resources/webhook#execute-webhook
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from integrations import connections
from integrations.accounts import Finish
from integrations.addresses import api_at, https_address
from integrations.api import wait_of
from integrations.connections import Account, Grant
from integrations.errors import Failure, NeedsReconnect, Refused, TryLater, Unknown
from integrations.outlets.base import Approved, Outlet, Published
from integrations.sources.base import UNPRINTABLE, trimmed
from integrations.tables import Connection

NAME, LABEL, PATH = "webhook", "Webhook", "webhook"
SLACK = ("hooks.slack.com", "hooks.slack-gov.com")
PING = "SlothPost is connected: posts that you approve arrive here."


def is_configured() -> bool:
    return True


# -- connecting ------------------------------------------------------------------------------------


def finish(
    user_id: str, answer: Mapping[str, str], kept: Mapping[str, str], now: datetime
) -> Finish:
    """Connect an address (`url`), called `name` or by its host, once it has taken a ping. The
    address may be all that it takes to post there, so that it is kept as a secret.

    Raises a Failure.
    """
    url = https_address(answer.get("url", ""))
    host = urlsplit(url).netloc
    number = hashlib.sha256(url.encode()).hexdigest()[:16]
    secret = _known_secret(user_id, number) or secrets.token_hex(32)
    _ping(url, secret, now)
    name = trimmed(answer.get("name", ""), 100) or host
    account = Account(number, name, details={"host": host})
    grant = Grant({"url": url, "secret": secret})
    connection = connections.connect(user_id, NAME, account, grant, now=now)
    return Finish(
        connection,
        note=f"Deliveries are signed with this secret, in case you check that: {secret}. To see it"
        " again, connect the same address again.",
    )


def _known_secret(user_id: str, number: str) -> str:
    """The secret of an address that is connected again: its receiver knows that one."""
    known = connections.find(user_id, f"{NAME}#{number}")
    try:
        return connections.secrets_of(known).get("secret", "") if known else ""
    except NeedsReconnect:  # no key opens it any more
        return ""


def _ping(url: str, secret: str, now: datetime) -> None:
    number = secrets.token_hex(16)
    about = {"type": "ping", **_shown(url, PING), "sentAt": _iso(now)}
    _deliver(url, secret, number, about, now, creates=False)


def check(connection: Connection, now: datetime) -> None:
    """One more ping: there is nothing to read at an address that only takes."""
    with connections.noted(connection, now):
        kept = connections.secrets_of(connection)
        _ping(kept["url"], kept["secret"], now)
    connections.mark_working(connection, now)


def renew(connection: Connection, now: datetime) -> None:
    """Nothing of it lapses."""
    check(connection, now)


def disconnect(connection: Connection, now: datetime) -> str:
    connections.disconnect(connection)
    return ""


# -- delivering ------------------------------------------------------------------------------------


def publish(approved: Approved, now: datetime) -> Published:
    """Deliver it. A receiver that says that it took nothing (429, 503) is asked again; of one that
    says nothing, or fails over it, nobody could tell what became of it."""
    account = approved.account
    if account is None:
        raise Refused("Connect a webhook first.")
    if approved.is_repeat:
        raise Unknown("A webhook cannot be asked what it received.")
    kept = connections.secrets_of(account)
    number = hashlib.sha256(approved.key.encode()).hexdigest()[:32]
    about = {
        "type": "post.published",
        "product": {"name": approved.product_name, "link": approved.product_link},
        **_shown(kept["url"], approved.text),
        "slotAt": _iso(approved.slot_at),
        "sentAt": _iso(now),
    }
    try:
        _deliver(kept["url"], kept["secret"], number, about, now, creates=True)
    except NeedsReconnect as failure:
        connections.mark_broken(account, failure.reason, now)
        raise
    return Published(number, permalink="")


def _shown(url: str, text: str) -> dict[str, Any]:
    """The text for whoever reads it: Slack takes three characters for marks of its own unless they
    are escaped. https://docs.slack.dev/messaging/formatting-message-text"""
    if urlsplit(url).netloc not in SLACK:
        return {"text": text, "content": text}
    for mark, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, escaped)
    return {"text": text, "mrkdwn": False}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _deliver(
    url: str, secret: str, number: str, about: Mapping[str, Any], now: datetime, *, creates: bool
) -> None:
    """Send one delivery, and take any 2xx for its receipt. Raises a Failure: TryLater where the
    receiver took nothing; where a post may have arrived, Unknown."""
    parts = urlsplit(url)
    api = api_at(parts.netloc, parts.netloc)
    body = json.dumps({"id": number, **about}).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-SlothPost-Delivery": number,
        "X-SlothPost-Signature": f"sha256={signature}",
    }
    address = f"{api.base}{url.removeprefix(f'https://{parts.netloc}')}"
    try:
        api.ask("POST", address, now=now, creates=creates, raw=True, headers=headers, data=body)
    except Failure as failure:
        raise _in_its_terms(failure, url, now) from failure


def _in_its_terms(failure: Failure, url: str, now: datetime) -> Failure:
    answer, host = failure.answer, urlsplit(url).netloc
    if answer is None or isinstance(failure, TryLater):
        return failure
    if answer.status == 503:
        return TryLater(f"{host} takes nothing just now (503).", wait_of(answer.headers, now))
    if isinstance(failure, Unknown):
        return Unknown(
            f"{host} says that it failed ({answer.status}), and may have it all the same."
        )
    if answer.status == 410:
        return NeedsReconnect(f"{host} says that this address is gone: connect another.")
    if answer.status < 400:
        return Refused(f"{host} points elsewhere: connect the address that it leads to.")
    words = _words(answer.body, url)
    return Refused(f"{host} refused it ({answer.status}){words}. Is its address still right?")


def _words(body: Any, url: str) -> str:
    """What the receiver says about it, where that is a plain line that repeats nothing of its
    address, which is secret."""
    said = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
    line = trimmed(" ".join(UNPRINTABLE.sub("", said).split()), 200)
    parts = re.split(r"[/?&=]", url.partition("://")[2])[1:]
    if not line or "<" in line or any(len(part) > 3 and part in line for part in parts):
        return ""
    return f": “{line}”"


OUTLET = Outlet(
    name=NAME,
    label=LABEL,
    unit="characters",
    limit=20_000,
    count=len,
    publish=publish,
    needs_account=True,
    per_minute=30,
)
