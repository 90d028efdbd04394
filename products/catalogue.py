"""Verbs on products."""

import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils.text import slugify

from products.tables import Product, Slug
from slothpost_site.dynamo import change, get, put_new
from slothpost_site.moments import to_ms
from slothpost_site.paging import Page, read_page


def create(user_id: str, *, name: str, now: datetime, **details: Any) -> Product:
    """A new product of this user, with a public address of its own."""
    product_id = secrets.token_hex(8)
    product = Product(
        user_id=user_id,
        product_id=product_id,
        name=name,
        slug=_reserve_slug(name, user_id, product_id),
        created_at=to_ms(now),
    )
    for field, value in details.items():
        setattr(product, field, value or None)
    put_new(product)
    return product


def _reserve_slug(name: str, user_id: str, product_id: str) -> str:
    wanted = slugify(name)[:40].strip("-") or "product"
    while True:
        for slug in (wanted, f"{wanted}-{secrets.token_hex(3)}"):
            if put_new(Slug(slug=slug, user_id=user_id, product_id=product_id)):
                return slug


def find(user_id: str, product_id: str) -> Product | None:
    return get(Product, user_id, product_id)


def find_by_slug(slug: str) -> Product | None:
    """The product behind a public address."""
    owner = get(Slug, slug)
    return find(owner.user_id, owner.product_id) if owner else None


def list_for(user_id: str, cursor: str = "") -> Page[Product]:
    return read_page(Product, user_id, cursor=cursor, newest_first=False)


def every_one_of(user_id: str) -> Iterator[Product]:
    """All of a person's products, page by page."""
    page = list_for(user_id)
    yield from page.items
    while page.next_cursor:
        page = list_for(user_id, page.next_cursor)
        yield from page.items


def describe(product: Product, **details: Any) -> None:
    """Change what the product is: name, link, pitch, audience, voice and the person's choices."""
    change(product, None, **{field: value or None for field, value in details.items()})
