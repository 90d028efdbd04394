from integrations.sources.vercel.account import (
    check,
    choices,
    disconnect,
    finish,
    is_configured,
    renew,
    start,
)
from integrations.sources.vercel.history import fetch
from integrations.sources.vercel.webhook import (
    FOLLOW_ATTRIBUTE,
    LABEL,
    METHODS,
    NAME,
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
    "check",
    "choices",
    "disconnect",
    "fetch",
    "finish",
    "is_configured",
    "parse",
    "renew",
    "secrets",
    "signature",
    "start",
    "verify",
]
