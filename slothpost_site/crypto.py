"""Secrets at rest: sealed with the first of TOKEN_KEYS, opened with any of them.

A new key is put in front; `manage.py rotate_token_keys` seals everything anew, and then the old
one can go. What is sealed is bound to its place, so that a copy elsewhere does not open.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unreadable(Exception):
    """No key of TOKEN_KEYS opens this here."""


def seal(values: dict[str, str], place: str) -> str:
    """The values as one opaque text that opens only at `place`, such as an item's key."""
    content = json.dumps({"place": place, "values": values})
    return _keys(tuple(settings.TOKEN_KEYS)).encrypt(content.encode()).decode()


def unseal(sealed: str, place: str) -> dict[str, str]:
    """The values that were sealed at this place. Raises Unreadable."""
    try:
        content = json.loads(_keys(tuple(settings.TOKEN_KEYS)).decrypt(sealed.encode()))
    except InvalidToken as error:
        raise Unreadable("no key of TOKEN_KEYS opens this") from error
    if content["place"] != place:
        raise Unreadable("this was sealed for another place")
    values: dict[str, str] = content["values"]
    return values


@lru_cache(maxsize=4)
def _keys(texts: tuple[str, ...]) -> MultiFernet:
    """Fernet (AES-CBC with HMAC, https://github.com/fernet/spec) under keys made of the texts."""
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return MultiFernet([Fernet(urlsafe_b64encode(digest)) for digest in digests])
