"""What posts cost whoever pays for them, and the cap that a product's owner set."""

from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from integrations.outlets import OUTLETS
from integrations.outlets.base import Price
from products.states import State
from products.tables import Post, Product
from slothpost_site import dynamo
from slothpost_site.moments import to_ms

LONGEST_DELAY = timedelta(days=60)  # between a post's slot and its publishing


def price_of(post: Post) -> Price | None:
    """What publishing it as it is would cost, where its outlet costs anything."""
    price = OUTLETS[post.outlet].price
    return price(post.text or "") if price else None


def without_links(post: Post) -> str:
    """Its text without what its outlet takes for links, which cost more."""
    pieces = OUTLETS[post.outlet].pieces(post.text or "")
    lines = "".join("" if piece.kind == "link" else piece.text for piece in pieces).splitlines()
    return "\n".join(" ".join(line.split(" ")).rstrip(" :→") for line in lines).strip()


def spent(product: Product, now: datetime) -> Decimal:
    """What the product's posts of this month, in its own zone, have cost so far."""
    month = now.astimezone(ZoneInfo(product.timezone)).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    total = Decimal(0)
    for name, outlet in OUTLETS.items():
        if outlet.price is None:
            continue
        entries = Post.of_outlet.query(
            f"{product.product_id}#{name}", Post.slot_at >= to_ms(month - LONGEST_DELAY)
        )
        for entry in entries:
            post = dynamo.get(Post, entry.user_id, entry.key)
            if post and post.state == State.PUBLISHED and (post.published_at or 0) >= to_ms(month):
                total += Decimal(post.price or "0")
    return total


def why_over(product: Product, post: Post, now: datetime) -> str:
    """Why the product's cap does not allow this post now, in a sentence, or ""."""
    price = price_of(post)
    if price is None or not product.monthly_cap:
        return ""
    cap, used = Decimal(product.monthly_cap), spent(product, now)
    if used + price.amount <= cap:
        return ""
    return (
        f"It would cost ${price.amount}, and ${used} of this month's ${cap} for {product.name} are"
        " spent. Raise the cap, take the link out, or post it by hand."
    )
