"""What people made of a published post: its outlet is asked ever more seldom, then no more."""

import logging
from datetime import datetime, timedelta

from integrations import connections
from integrations.errors import Failure
from integrations.outlets import OUTLETS
from integrations.outlets.base import Outlet, Published, Sent
from products import posts
from products.tables import Post
from slothpost_site.moments import from_ms

logger = logging.getLogger(__name__)

RETRY = timedelta(hours=6)


def first_look(outlet: Outlet, published: Published, now: datetime) -> datetime | None:
    """When to ask first, if this outlet counts anything of a post that it can name."""
    if not (outlet.numbers and outlet.numbers_after and published.external_id):
        return None
    return now + outlet.numbers_after[0]


def look(post: Post, now: datetime) -> None:
    """Ask once, and say when to ask next. What fails is not asked for again before its next time:
    numbers are no news."""
    outlet = OUTLETS[post.outlet]
    account = connections.find(post.user_id, post.account) if post.account else None
    found: dict[str, int] = {}
    if outlet.numbers and post.external_id:
        sent = Sent(post.external_id, post.permalink or "", account)
        try:
            found = outlet.numbers([sent], now).get(post.external_id, {})
        except Failure as failure:
            ids = {"post": post.key, "user_id": post.user_id, "reason": failure.reason}
            logger.info("no numbers", extra=ids)
    read = int(post.numbers_read) + 1
    later = outlet.numbers_after[read:]
    next_at = from_ms(post.published_at) + later[0] if later else None
    if next_at is not None and next_at <= now:
        next_at = now + RETRY
    posts.keep_numbers(post, found, now=now, next_at=next_at)
