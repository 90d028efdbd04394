"""Every service at which an account can be connected: sources, and the outlets that need one."""

from integrations.accounts import Consenting, Provider
from integrations.outlets import (
    bluesky_account,
    linkedin,
    mastodon_account,
    threads_account,
    webhook,
    x_account,
)
from integrations.sources import SOURCES, github, vercel

_POSTED_TO: tuple[Provider, ...] = (
    x_account,
    threads_account,
    bluesky_account,
    mastodon_account,
    linkedin,
    webhook,
)

PROVIDERS: dict[str, Provider] = {**SOURCES, **{service.NAME: service for service in _POSTED_TO}}

# Those among them that ask the person on a page of their own.
CONSENTING: dict[str, Consenting] = {
    service.NAME: service
    for service in (github, vercel, x_account, threads_account, mastodon_account, linkedin)
}
