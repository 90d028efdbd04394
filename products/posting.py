"""Where a product posts: the account of each outlet. An approval is for its account."""

from datetime import datetime

from integrations import connections
from integrations.outlets import OUTLETS
from integrations.tables import Connection
from products import catalogue, posts
from products.posts import MACHINE, WrongState
from products.states import State
from products.tables import Post, Product
from slothpost_site.dynamo import Conflict, change, unchanged

MOST_TRIES = 8


def key_of(product: Product, outlet: str) -> str:
    """The key of the account that an outlet's posts of this product go to, or ""."""
    found: str = (product.accounts or {}).get(outlet, "")
    return found


def account_of(product: Product, outlet: str) -> Connection | None:
    """The account that an outlet's posts go to, whether it works or not."""
    key = key_of(product, outlet)
    return connections.find(product.user_id, key) if key else None


def choose(product: Product, outlet: str, account: Connection | None, now: datetime) -> int:
    """Have an outlet's posts go to this account, or to none. Posts that wait go there too; those
    that were approved for another wait to be approved again: how many. Raises Conflict."""
    key = account.key if account else None
    for _ in range(MOST_TRIES):
        accounts = {**(product.accounts or {}), outlet: key}
        kept = {name: each for name, each in accounts.items() if each} or None
        try:
            change(product, unchanged(Product.accounts, product.accounts), accounts=kept)
            break
        except Conflict:
            found = catalogue.find(product.user_id, product.product_id)
            if found is None:
                raise
            product.deserialize(found.serialize())
    return _rebind(product, outlet, account, now)


def _rebind(product: Product, outlet: str, account: Connection | None, now: datetime) -> int:
    back = 0
    for post in Post.open_for.query(product.user_id):
        if (post.product_id, post.outlet) != (product.product_id, outlet):
            continue
        try:
            if post.state == State.APPROVED and post.account != (account.key if account else None):
                why = "its account was changed after it was approved"
                posts.take_back(post, now=now, by=MACHINE, why=why)
                back += 1
            bind(post, account)
        except (Conflict, WrongState):  # it is being sent, or decided: publishing looks again
            continue
    return back


def bind(post: Post, account: Connection | None) -> None:
    """Have a post that waits go to this account. Raises Conflict when it moved meanwhile."""
    key = account.key if account else None
    if post.state in (State.APPROVED, State.PUBLISHING) or post.account == key:
        return
    change(
        post,
        Post.state == post.state,
        account=key,
        account_name=_name(account),
    )


def _name(account: Connection | None) -> str | None:
    return str(account.account_name or account.account_id) if account else None


def limit_of(product: Product, outlet: str) -> int:
    """The most that a text may be long for the account that this outlet's posts go to."""
    account = account_of(product, outlet) if OUTLETS[outlet].limit_of else None
    limit_of = OUTLETS[outlet].limit_of
    return limit_of(account) if limit_of and account else OUTLETS[outlet].limit


def bound(product: Product, outlet: str) -> dict[str, str | None]:
    """The attributes of a new post of this outlet that say where it goes."""
    account = account_of(product, outlet)
    return {"account": account.key if account else None, "account_name": _name(account)}
