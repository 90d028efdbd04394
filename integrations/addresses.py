"""Hosts that a user names: a Mastodon instance, a Bluesky server, where a webhook leads."""

import re
from urllib.parse import urlsplit

from django.conf import settings

from integrations.api import Api
from integrations.errors import Refused

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)+(?!\d+$){_LABEL}")
LONGEST_HOST = 253


def host_of(text: str) -> str:
    """The name of the host in what a person typed or pasted: `social.example`, `@me@social.example`
    or an address there; in lower case, an international one in its ASCII form.

    Raises Refused with what to mend: an IP address and a port name no public service.
    """
    typed = text.strip().rstrip("/")
    if "://" in typed:
        typed = _parts(typed)[0]
    host = typed.rpartition("@")[2].partition("/")[0].lower()
    try:
        host = host.encode("idna").decode()
    except UnicodeError:
        host = ""
    if not _HOST.fullmatch(host) or len(host) > LONGEST_HOST:
        raise Refused(
            f"“{text.strip()[:100]}” is no public host: write its name, as in its address."
        )
    return host


def https_address(text: str) -> str:
    """An https address of a public host, as a person typed it. Raises Refused with what to mend."""
    typed = text.strip()
    netloc, rest = _parts(typed)
    if not typed.lower().startswith("https://") or "@" in netloc or not typed.isprintable():
        raise Refused("Write the whole address, beginning with https://.")
    return f"https://{host_of(netloc)}{rest}"


def _parts(address: str) -> tuple[str, str]:
    """Host (and whatever surrounds it), and everything after it."""
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise Refused("This is no address.") from error
    query = f"?{parts.query}" if parts.query else ""
    return parts.netloc, f"{parts.path}{query}"


def api_at(label: str, host: str, headers: dict[str, str] | None = None) -> Api:
    """Calls to a host that a user named (`host_of`). Where the operator says that a host is found
    elsewhere (OPERATOR_HOSTS), it may also be an inner address."""
    base = settings.OPERATOR_HOSTS.get(host)
    if base:
        return Api(label, base, headers or {})
    return Api(label, f"https://{host}", headers or {}, named_by_user=True)
