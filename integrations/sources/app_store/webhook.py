"""App Store Connect's webhooks: a version changed its state.

Shapes: https://developer.apple.com/documentation/appstoreconnectapi/webhook-notifications
Signature: HMAC-SHA256 over the raw body with the webhook's own secret, `hmacsha256=` and hex.
A delivery names neither the app nor the version's number, so it says only that there is something
to ask for. Which app it is about stands in the address: each person's app has a hook of its own,
and a hook's secret is derived from TOKEN_KEYS, so that nothing of it has to be stored.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings

from integrations.sources.base import Fields, Received, Wanted, secrets_in, trimmed

NAME = "app_store"
LABEL = "App Store"
PATH = "app-store"
FOLLOW_ATTRIBUTE = "appStoreId"
METHODS: tuple[str, ...] = ("POST",)
SIGNATURE_HEADER = "x-apple-signature"

# What is subscribed to, as it is spelt when subscribing; it arrives in camel case.
STATE_UPDATED = "APP_STORE_VERSION_APP_VERSION_STATE_UPDATED"
_STATE_UPDATED = "appStoreVersionAppVersionStateUpdated"
_APP_ID = re.compile(r"[1-9][0-9]{0,17}")


def secrets() -> tuple[str, ...]:
    return secrets_in(settings.APP_STORE_WEBHOOK_SECRET)


def signature(body: bytes, secret: str) -> str:
    return "hmacsha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def verify(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    claimed = headers.get(SIGNATURE_HEADER, "").encode()
    return bool(secret) and hmac.compare_digest(signature(body, secret).encode(), claimed)


def parse(payload: dict[str, object], headers: Mapping[str, str]) -> Received:
    data = Fields(payload, "").fields("data")
    event = data.identifier("type")
    attributes = data.maybe("attributes")
    received = Received(
        delivery_id=data.identifier("id"),
        event=event,
        follow_id=_app(data),
        private=True,  # what is not in the store yet is for those whose own key shows the app
    )
    if event == "webhookPings" or attributes.flag("ping"):
        return replace(received, note="The App Store says hello: the webhook works")
    if event == _STATE_UPDATED:
        state = in_words(trimmed(attributes.text("newValue", ""), 50))
        note = f"A version is {state}" if state else "A version changed its state"
        return replace(received, upkeep=Wanted(), note=note)
    return replace(received, note=f"SlothPost does not track `{event}` events")


def _app(data: Fields) -> str:
    """The app's id where the delivery has it, which is rare."""
    app = data.maybe("relationships").maybe("app").maybe("data")
    found = app.text("id", "") or data.maybe("attributes").text("app_id", "")
    return found if is_app_id(found) else ""


def is_app_id(text: str) -> bool:
    """Whether it is an Apple ID of an app: digits, as in the store page's address."""
    return bool(_APP_ID.fullmatch(text))


def in_words(state: str) -> str:
    """One of App Store Connect's states as a person says it: IN_REVIEW is "in review"."""
    if state in ("READY_FOR_DISTRIBUTION", "READY_FOR_SALE"):
        return "in the store"
    return " ".join(state.replace("_", " ").lower().split())


# -- a hook for each person's app ------------------------------------------------------------------


def hook_of(user_id: str, app_id: str) -> str:
    """The last part of the address of somebody's webhook for an app. It is no secret, and stays
    the same when TOKEN_KEYS change."""
    return urlsafe_b64encode(f"{user_id}/{app_id}".encode()).decode().rstrip("=")


def followed_by(hook: str) -> str:
    """The app that a hook is for; "" for what is no hook."""
    try:
        user_id, _, app_id = (
            urlsafe_b64decode(hook + "=" * (-len(hook) % 4)).decode().rpartition("/")
        )
    except ValueError:  # not Base64, not UTF-8, not ASCII
        return ""
    if not (user_id and is_app_id(app_id) and hook == hook_of(user_id, app_id)):
        return ""
    return app_id


def hook_secrets(hook: str) -> tuple[str, ...]:
    """The secrets that a hook's deliveries may be signed with, one for each of TOKEN_KEYS, the
    newest first; none for what is no hook."""
    if not followed_by(hook):
        return ()
    message = f"app-store-hook/{hook}".encode()
    return tuple(
        hmac.new(key.encode(), message, hashlib.sha256).hexdigest() for key in settings.TOKEN_KEYS
    )
