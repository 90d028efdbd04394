"""The webhooks that the App Store keeps for us: one for each app that a person follows by a key.

All of a person's products that follow an app hear by the same one. Without it, the fetch before
each draft finds the same; so what fails here is told and stops nothing.
"""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.urls import reverse

from integrations.errors import Failure
from integrations.sources import app_store
from integrations.tables import Connection
from products import catalogue, following
from products.tables import Product


def set_up(product: Product, now: datetime) -> str:
    """Have the App Store tell of the product's app, signed with the newest secret. "" or a sentence
    that says why it will not."""
    connection, app_id = _key_and_app(product)
    if connection is None:
        return ""
    hook = app_store.hook_of(product.user_id, app_id)
    secret = app_store.hook_secrets(hook)[0]
    try:
        app_store.set_up_webhook(connection, app_id, _url(hook), secret, now)
    except Failure as failure:
        return failure.reason
    return ""


def set_up_all(connection: Connection, now: datetime) -> list[str]:
    """The same for all of the person's products that follow an app by this key: somebody may have
    taken the webhook away at the App Store."""
    said = (set_up(product, now) for product in _followers(connection))
    return [sentence for sentence in said if sentence]


def take_away(product: Product, now: datetime) -> str:
    """Remove the webhook of the product's app, unless another product of the person's hears by it.
    "" or a sentence that says what may be left."""
    connection, app_id = _key_and_app(product)
    if connection is None or next(_others(product, app_id), None) is not None:
        return ""
    return _removed(connection, app_id, now)


def take_away_all(connection: Connection, now: datetime) -> str:
    """Remove the webhooks of all the apps that the person's products follow by this key."""
    apps = {str(product.app_store_id) for product in _followers(connection)}
    left = [_removed(connection, app_id, now) for app_id in sorted(apps)]
    return next((sentence for sentence in left if sentence), "")


def _followers(connection: Connection) -> list[Product]:
    """The person's products that follow an app by this key."""
    return [
        product
        for product in catalogue.every_one_of(connection.user_id)
        if product.app_store_id and product.app_store_via == connection.key
    ]


def _removed(connection: Connection, app_id: str, now: datetime) -> str:
    url = _url(app_store.hook_of(connection.user_id, app_id))
    try:
        app_store.remove_webhook(connection, app_id, url, now)
    except Failure as failure:
        return f"Its webhook may still be there. {failure.reason}"
    return ""


def _key_and_app(product: Product) -> tuple[Connection | None, str]:
    if not product.app_store_id:
        return None, ""
    return following.connection_of(product, app_store.NAME), product.app_store_id


def _others(product: Product, app_id: str) -> Iterator[Product]:
    """The other products of the same person that follow this app by a key."""
    for entry in Product.by_app_store_app.query(app_id):
        if entry.user_id != product.user_id or entry.product_id == product.product_id:
            continue
        other = catalogue.find(entry.user_id, entry.product_id)
        if other is not None and other.app_store_id == app_id and other.app_store_via:
            yield other


def _url(hook: str) -> str:
    return f"{settings.SITE_URL}{reverse('webhook_app_store_hook', args=[hook])}"
