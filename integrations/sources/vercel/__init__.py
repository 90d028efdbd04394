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
    "parse",
    "secrets",
    "signature",
    "verify",
]
