"""Calls to the services of others: one door, with limits, for all of them.

A call leaves for its service's own address and for no other: not by a link in an answer, not by a
redirect. An address that a user named (`named_by_user`) is only called by https, on the usual
port, at a public address: names are resolved once, and what they resolved to is what is called.
Whatever comes back that is no answer becomes one of integrations.errors.
"""

import json
import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests_hardened.ip_filter import InvalidIPAddress
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from integrations.errors import (
    Answer,
    Failure,
    NeedsReconnect,
    NotFound,
    Refused,
    TryLater,
    Unknown,
)

logger = logging.getLogger(__name__)

TIMEOUT = (3, 10)  # seconds to connect, and between two bytes of the answer
LONGEST_ANSWER = 20.0  # seconds for the whole of it
LARGEST_ANSWER = 10 * 1024 * 1024  # bytes
MOST_REDIRECTS = 3
REDIRECTS = (301, 302, 303, 307, 308)
LONGEST_WAIT = timedelta(days=1)


@dataclass(frozen=True)
class Api:
    """A service at `base`. `label` is its name in sentences."""

    label: str
    base: str
    headers: Mapping[str, str] = field(default_factory=dict)
    named_by_user: bool = False  # else the operator has set it, and may mean an inner address
    patience: float = LONGEST_ANSWER  # seconds for the whole of an answer

    def ask(
        self,
        method: str,
        path: str,
        *,
        now: datetime,
        headers: Mapping[str, str] | None = None,
        creates: bool = False,
        raw: bool = False,
        **content: Any,
    ) -> Answer:
        """The answer to one request; `path` may be a whole address of the same service.

        `content` is what requests takes: params, json, data, files, auth. Raises NeedsReconnect at
        401, TryLater when limited, unreachable or broken, NotFound at 404 and 410, else Refused;
        the failure carries the Answer as `answer`, for those who know the service better.

        The body of an answer is its JSON, or with `raw` its bytes, whatever they are.

        Of a request that `creates` what may not be there twice, TryLater says that it provably did
        not: where it may have, because the answer was lost, unreadable or of a server's fault,
        Unknown is raised.
        """
        url = self._inside(path)
        sent = {"User-Agent": "SlothPost", **self.headers, **(headers or {})}
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._send(method, url, sent, content, creates, raw)
            moved_to = answer.headers.get("Location", "")
            # Only what is read is asked for again elsewhere: a code or a token is good once.
            if method != "GET" or answer.status not in REDIRECTS or not moved_to:
                return self._judge(answer, now, creates)
            url = self._inside(moved_to, beside=url)
            content.pop("params", None)
        raise TryLater(f"{self.label} sent us in circles.")

    def _inside(self, path: str, beside: str = "") -> str:
        """The whole address, if it is one of this service's. Raises Refused."""
        try:
            url = urljoin(beside, path) if beside or "://" in path else f"{self.base}{path}"
            base, wanted = urlsplit(self.base), urlsplit(url)
        except ValueError as error:
            raise Refused(f"{self.label} pointed to an address that is none.") from error
        if (wanted.scheme, wanted.netloc) != (base.scheme, base.netloc):
            raise Refused(f"{self.label} pointed to an address that is not its own.")
        return url

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: Mapping[str, Any],
        creates: bool,
        raw: bool,
    ) -> Answer:
        try:
            with (
                self._session() as session,
                session.request(
                    method,
                    url,
                    headers=headers,
                    timeout=(TIMEOUT[0], min(TIMEOUT[1], self.patience)),
                    allow_redirects=False,
                    stream=True,
                    **content,
                ) as response,
            ):
                read = _read(response, self.patience)
        except InvalidIPAddress as error:
            raise Refused(f"{self.label} is not at a public address.") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            logger.warning("a service did not answer", extra={"service": self.label})
            if creates and not _never_left(error):
                raise Unknown(f"{self.label} did not answer: it may have done it.") from error
            raise TryLater(f"{self.label} did not answer.") from error
        except ValueError as error:  # requests looks at where a redirect leads, also unasked
            raise Refused(f"{self.label} pointed to an address that is none.") from error
        return Answer(
            status=response.status_code,
            body=self._parsed(read, response.status_code, creates, raw),
            headers=response.headers,
            next_url=response.links.get("next", {}).get("url", ""),
        )

    def _session(self) -> requests.Session:
        """One for this call: what the operator has set may be anywhere, what a user named not."""
        session = requests.Session()
        if self.named_by_user:
            session.trust_env = False  # a proxy would resolve the name by itself
            session.mount("http://", _NoPlainHttp())
            session.mount("https://", IPFilterAdapter(is_https_proto=True))
        return session

    def _parsed(self, read: bytes, status: int, creates: bool, raw: bool) -> Any:
        """JSON; an answer that is none is told apart from one that is empty."""
        lost = Unknown if creates else TryLater
        if len(read) > LARGEST_ANSWER:
            raise lost(f"{self.label} answered with more than we can take.")
        if raw:
            return read
        if not read.strip() or status == 304:
            return None
        try:
            return json.loads(read)
        except (ValueError, RecursionError) as error:
            if status < 300:
                raise lost(f"{self.label} answered with something that is no answer.") from error
            return None

    def _judge(self, answer: Answer, now: datetime, creates: bool) -> Answer:
        if answer.status < 300 or answer.is_unchanged:
            return answer
        failure = self._failure(answer, now)
        if creates and (answer.status >= 500 or answer.status == 408):
            failure = Unknown(f"{failure.reason[:-1]}, and may have done it all the same.")
        failure.answer = answer
        logger.warning("a service refused", extra={"service": self.label, "status": answer.status})
        raise failure

    def _failure(self, answer: Answer, now: datetime) -> Failure:
        wait = wait_of(answer.headers, now)
        if answer.status == 429 or (answer.status == 403 and wait is not None):
            return TryLater(f"{self.label} asks us to wait.", wait or timedelta(minutes=1))
        if answer.status >= 500 or answer.status in (408, 425):
            return TryLater(f"{self.label} has a fault of its own ({answer.status}).", wait)
        if answer.status == 401:
            return NeedsReconnect(f"{self.label} no longer accepts this account's authorisation.")
        if answer.status in (404, 410):
            return NotFound(f"{self.label} does not show this to your account.")
        return Refused(f"{self.label} refused ({answer.status}).")


class _NoPlainHttp(HTTPAdapter):
    def send(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise requests.exceptions.InvalidSchema("Only https is called.")


def _never_left(error: Exception) -> bool:
    """Whether nothing of the request reached the service: no connection came about."""
    if isinstance(
        error,
        requests.exceptions.ConnectTimeout
        | requests.exceptions.SSLError
        | requests.exceptions.InvalidSchema,
    ):
        return True
    if isinstance(error.__cause__, socket.gaierror):
        return True
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def _read(response: requests.Response, patience: float) -> bytes:
    """The body up to a byte more than we take. Raises OSError when it drips in too slowly."""
    give_up_at = time.monotonic() + patience
    raw = b""
    # Part by part as it arrives: waiting for a full buffer, nobody would look at the clock.
    while part := response.raw.read1(65_536, decode_content=True):
        raw += part
        if len(raw) > LARGEST_ANSWER:
            break
        if time.monotonic() > give_up_at:
            raise TimeoutError("the answer took too long")
    return raw


def wait_of(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long a limited answer asks us to wait, at most a day; None where it does not say.

    Retry-After (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after) first, then the reset of
    an allowance that is used up.
    """
    wait = _retry_after(headers.get("Retry-After", ""), now)
    if wait is None and headers.get("X-RateLimit-Remaining") == "0":
        wait = _until(headers.get("X-RateLimit-Reset", ""), now) or timedelta(minutes=1)
    return None if wait is None else min(max(wait, timedelta(seconds=1)), LONGEST_WAIT)


def _retry_after(value: str, now: datetime) -> timedelta | None:
    if _is_number(value):
        return timedelta(seconds=min(int(value), 10**6))
    try:
        return parsedate_to_datetime(value).replace(tzinfo=UTC) - now
    except (TypeError, ValueError):
        return None


def _is_number(value: str) -> bool:
    """Whether it is a whole number that an honest service would write."""
    return value.isascii() and value.isdigit() and len(value) <= 12


def _until(value: str, now: datetime) -> timedelta | None:
    """From now to a moment in seconds since 1970."""
    if not _is_number(value):
        return None
    return timedelta(seconds=min(int(value), 10**11) - int(now.timestamp()))
