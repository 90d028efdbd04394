from integrations.sources.github.account import (
    check,
    choices,
    disconnect,
    finish,
    install_url,
    is_configured,
    renew,
    start,
)
from integrations.sources.github.facts import LABEL, NAME
from integrations.sources.github.history import NoSuchRepository, fetch, find_repository
from integrations.sources.github.webhook import (
    FOLLOW_ATTRIBUTE,
    METHODS,
    PATH,
    SIGNATURE_HEADER,
    parse,
    secrets,
    signature,
    verify,
)

__all__ = [
    "FOLLOW_ATTRIBUTE",
    "LABEL",
    "METHODS",
    "NAME",
    "PATH",
    "SIGNATURE_HEADER",
    "NoSuchRepository",
    "check",
    "choices",
    "disconnect",
    "fetch",
    "find_repository",
    "finish",
    "install_url",
    "is_configured",
    "parse",
    "renew",
    "secrets",
    "signature",
    "start",
    "verify",
]
