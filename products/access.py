"""The only doors from an address to what it names. Whatever is not the person's is a 404."""

from django.http import Http404

from integrations import connections
from integrations.accounts import Provider
from integrations.providers import PROVIDERS
from integrations.sources import SOURCES
from integrations.sources.base import Source
from integrations.tables import Connection
from products import activity, catalogue, posts
from products.tables import Activity, Post, Product
from slothpost_site.moments import parse_key


def product_or_404(user_id: int | None, product_id: str) -> Product:
    product = catalogue.find(str(user_id), product_id)
    if product is None:
        raise Http404("There is no such product.")
    return product


def post_or_404(user_id: int | None, slot: str, product_id: str, outlet: str) -> Post:
    try:
        slot_at = parse_key(slot)
    except ValueError as error:
        raise Http404("There is no such slot.") from error
    post = posts.find(str(user_id), slot_at, product_id, outlet)
    if post is None:
        raise Http404("There is no such post.")
    return post


def activity_or_404(product: Product, key: str) -> Activity:
    found = activity.find(product.product_id, key)
    if found is None:
        raise Http404("There is no such activity.")
    return found


def connection_or_404(user_id: int | None, key: str) -> Connection:
    found = connections.find(str(user_id), key)
    if found is None or found.provider not in PROVIDERS:
        raise Http404("There is no such account.")
    return found


def provider_or_404(path: str) -> Provider:
    """The service, by its name in addresses, at which an account can be connected."""
    found = next((provider for provider in PROVIDERS.values() if path == provider.PATH), None)
    if found is None:
        raise Http404("There is no such service.")
    return found


def source_or_404(path: str) -> Source:
    """The source by its name in addresses."""
    found = next((source for source in SOURCES.values() if path == source.PATH), None)
    if found is None:
        raise Http404("There is no such source.")
    return found
