"""Where a product posts: the account of each outlet, its cap, and what an account held up."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from integrations import connections
from integrations.outlets import OUTLETS
from integrations.outlets.base import Outlet
from integrations.providers import PROVIDERS
from integrations.tables import Connection
from products import catalogue, posting, posts
from products.access import connection_or_404, product_or_404
from products.cards import Draft
from products.forms import CapForm
from products.posts import TextRefused
from products.states import State
from products.tables import Post, Product
from slothpost_site.dynamo import Conflict
from slothpost_site.paging import read_page

HELD = frozenset({State.MISSED, State.FAILED})
LOG_SIZE = 100  # posts that a page of a delivery log looks through


@dataclass(frozen=True)
class Posting:
    """Where one outlet's posts of a product go, for its page."""

    outlet: Outlet
    product: Product
    accounts: list[Connection]  # that it could go to

    @property
    def key(self) -> str:
        return posting.key_of(self.product, self.outlet.name)

    @property
    def account(self) -> Connection | None:
        return next((account for account in self.accounts if account.key == self.key), None)

    @property
    def is_configured(self) -> bool:
        return PROVIDERS[self.outlet.name].is_configured()

    @property
    def path(self) -> str:
        return PROVIDERS[self.outlet.name].PATH

    @property
    def cap(self) -> CapForm | None:
        """The field for the monthly cap, where posts cost anything."""
        if self.outlet.price is None:
            return None
        return CapForm(initial={"monthly_cap": self.product.monthly_cap})


def posting_of(product: Product) -> list[Posting]:
    """Every outlet that takes an account, with the person's accounts there."""
    accounts = list(connections.every_one_of(product.user_id))
    return [
        Posting(outlet, product, [a for a in accounts if a.provider == name])
        for name, outlet in OUTLETS.items()
        if outlet.needs_account
    ]


@require_POST
@login_required
def outlet(request: HttpRequest, product_id: str, service: str) -> HttpResponse:
    """Choose the account of an outlet, or the most that its posts may cost in a month."""
    product = product_or_404(request.user.pk, product_id)
    found = OUTLETS.get(service)
    if found is None or not found.needs_account:
        raise Http404("There is no such outlet.")
    if "account" in request.POST:
        _choose(request, product, found, request.POST["account"])
    else:
        _cap(request, product)
    return redirect(reverse("product", args=[product_id]) + "#outlets")


def _choose(request: HttpRequest, product: Product, outlet: Outlet, key: str) -> None:
    account = connection_or_404(request.user.pk, key) if key else None
    if account is not None and account.provider != outlet.name:
        raise Http404("That account is another service's.")
    back = posting.choose(product, outlet.name, account, timezone.now())
    if account is None:
        messages.success(request, f"{product.name} is posted to {outlet.label} by hand.")
    else:
        messages.success(request, f"{product.name} posts to {outlet.label} as {name_of(account)}.")
    if back:
        one = "one post that was approved waits" if back == 1 else f"{back} approved posts wait"
        messages.info(request, f"Since the account is another, {one} for you again.")


def name_of(account: Connection) -> str:
    return str(account.account_name or account.account_id)


def _cap(request: HttpRequest, product: Product) -> None:
    form = CapForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Write the cap in dollars, such as 5 or 2.50, or leave it empty.")
        return
    catalogue.describe(product, monthly_cap=form.as_text())
    messages.success(request, "Saved.")


# -- what was sent as an account, and what it held up ----------------------------------------------


@require_GET
@login_required
def sent(request: HttpRequest) -> HttpResponse:
    """Every attempt to send something as this account, newest slot first: its delivery log."""
    account = connection_or_404(request.user.pk, request.GET.get("key", ""))
    cursor, now = request.GET.get("cursor", ""), timezone.now()
    page = read_page(Post, account.user_id, cursor=cursor, size=LOG_SIZE)
    drafts = [Draft(post, now) for post in page.items if post.account == account.key]
    context = {
        "account": account,
        "name": name_of(account),
        "drafts": [draft for draft in drafts if draft.attempts],
        "page": page,
    }
    return render(request, "products/connections/sent.html", context)


def held_for(user_id: str, key: str) -> list[Post]:
    """The posts that were not sent since this account did not work."""
    return [
        post
        for post in Post.open_for.query(user_id)
        if post.held_for == key and post.state in HELD and post.text
    ]


@require_http_methods(["GET", "POST"])
@login_required
def held(request: HttpRequest) -> HttpResponse:
    """Offer what an account held up, with ticks: nothing of it goes out by itself."""
    given = request.POST if request.method == "POST" else request.GET
    account = connection_or_404(request.user.pk, given.get("key", ""))
    now = timezone.now()
    waiting = held_for(account.user_id, account.key)
    if request.method == "POST":
        ticked = set(request.POST.getlist("post"))
        _send(request, [post for post in waiting if posts.text_hash(post) in ticked])
        return redirect("review")
    if not waiting:
        return redirect("review")
    drafts = [
        Draft(post, now, catalogue.find(post.user_id, post.product_id), account=account)
        for post in waiting
    ]
    context = {"account": account, "name": name_of(account), "drafts": drafts}
    return render(request, "products/held.html", context)


def _send(request: HttpRequest, ticked: list[Post]) -> None:
    now, by, sent = timezone.now(), f"person {request.user.pk}", 0
    for post in ticked:
        try:
            posts.approve(post, seen=posts.text_hash(post), send_at=now, now=now, by=by)
            sent += 1
        except (TextRefused, Conflict) as problem:
            messages.error(request, str(problem))
    if sent:
        messages.success(request, f"{sent} post{'s go' if sent > 1 else ' goes'} out now.")
    else:
        messages.info(request, "Nothing was sent. What was held still waits for you.")
