"""The product's own changelog page and feed: a real outlet that needs no account."""

import hashlib
from datetime import datetime

from django.conf import settings

from integrations.errors import Refused
from integrations.outlets.base import Approved, Outlet, Published
from integrations.tables import ChangelogEntry
from slothpost_site import dynamo
from slothpost_site.moments import to_ms
from slothpost_site.paging import Page, read_page


def publish(approved: Approved, now: datetime) -> Published:
    """Put the entry on the page. The same post twice is one entry with one address, and its text
    is the one approved last.

    Raises Refused when the product has no public page. A StoreError passes: whether or not the
    write arrived, repeating it is safe.
    """
    if not approved.slug:
        raise Refused("This product has no public page yet: give it an address, then retry.")
    entry_id = _entry_id(approved)
    written = ChangelogEntry(
        slug=approved.slug,
        entry_id=entry_id,
        text=approved.text,
        published_at=to_ms(now),
        post_key=approved.key,
    )
    if not dynamo.put_new(written):
        dynamo.change(written, None, text=approved.text)
    return Published(entry_id, permalink(approved.slug, entry_id))


def _entry_id(approved: Approved) -> str:
    """In order of the slots, and the same whenever this post is published."""
    digest = hashlib.sha256(approved.key.encode()).hexdigest()
    return f"{approved.slot_at:%Y%m%d%H%M}-{digest[:12]}"


def permalink(slug: str, entry_id: str) -> str:
    return f"{settings.SITE_URL}/c/{slug}/{entry_id}/"


def entries(slug: str, cursor: str = "", size: int = 25) -> Page[ChangelogEntry]:
    """A page of a product's entries, newest slot first. Raises Http404 on a made-up cursor."""
    return read_page(ChangelogEntry, slug, cursor=cursor, size=size)


def entry(slug: str, entry_id: str) -> ChangelogEntry | None:
    return dynamo.get(ChangelogEntry, slug, entry_id)


OUTLET = Outlet(
    name="changelog",
    label="Changelog",
    unit="characters",
    limit=5000,
    count=len,
    publish=publish,
    can_find_out=True,
)
