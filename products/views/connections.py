"""A person's accounts at the sources: what works, connect, check, disconnect.

Connecting sends the browser away with a `state` that only this session knows, once and for ten
minutes. Whoever comes back without one has begun at the source, or was sent by somebody: they are
asked first, so that nobody plants an account of theirs in somebody else's.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from integrations import connections, deliveries
from integrations.accounts import Cancelled, Consenting, ExpiredLink, Provider
from integrations.connections import UNSHOWN
from integrations.errors import Failure
from integrations.outlets import OUTLETS
from integrations.providers import CONSENTING, PROVIDERS
from integrations.sources import SOURCES, app_store, github
from integrations.sources.base import Source
from integrations.tables import Connection, Delivery
from products import app_hooks, catalogue, following, posting
from products.access import connection_or_404, product_or_404, provider_or_404
from products.forms import CONNECT_FORMS
from products.tables import Product
from products.views import outlets
from slothpost_site.moments import from_ms, to_ms

STATE_LIFE = timedelta(minutes=10)
ARRIVAL_LIFE = timedelta(minutes=30)
MOST_BEGUN = 5
BEGUN, ARRIVED = "connecting", "arrived"


# -- the page --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """A product that follows something through an account, and what arrived last for it; or one
    that posts there, where `name` is ""."""

    product: Product
    name: str = ""
    last: Delivery | None = None


@dataclass(frozen=True)
class Row:
    connection: Connection
    uses: list[Use]
    broken: str = ""  # why it does not work, be it for the account that shows it
    shows_others: bool = False  # whether installations are read through it
    lapses_soon: bool = False

    @property
    def is_installation(self) -> bool:
        return str(self.connection.account_id).startswith("installation:")

    @property
    def is_posted_to(self) -> bool:
        return self.connection.provider in OUTLETS

    @property
    def lapses(self) -> bool:
        return connections.lapses(self.connection)

    @property
    def lacks_repositories(self) -> bool:
        """Whether it is a GitHub account at which the app is installed nowhere yet."""
        connection = self.connection
        is_account = connection.provider == github.NAME and not self.is_installation
        return is_account and connection.works and not self.shows_others

    @property
    def waits_for_account(self) -> bool:
        """Whether nothing is wrong with it but the account that shows it, which is listed too."""
        return bool(self.broken) and not self.connection.broken and self.broken != UNSHOWN


@dataclass(frozen=True)
class Card:
    source: Provider
    rows: list[Row]


@require_GET
@login_required
def connections_page(request: HttpRequest) -> HttpResponse:
    """Every account with its health, and what goes through it."""
    user_id = str(request.user.pk)
    page = connections.list_for(user_id, request.GET.get("cursor", ""))
    products = list(catalogue.every_one_of(user_id))
    uses = _uses(products)
    shown = {(c.details or {}).get("account") for c in page.items}
    now = timezone.now()
    rows = [
        Row(
            connection,
            uses[connection.key],
            connections.broken_of(connection),
            connection.key in shown,
            connections.lapses_soon(connection, now),
        )
        for connection in page.items
    ]
    cards = [
        Card(source, [row for row in rows if row.connection.provider == name])
        for name, source in PROVIDERS.items()
    ]
    context = {
        "hears": [card for card in cards if card.source.NAME in SOURCES],
        "posts": [card for card in cards if card.source.NAME in OUTLETS],
        "page": page,
        "timezone": products[0].timezone if products else "UTC",
        "stand_ins": _stand_ins(),
    }
    return render(request, "products/connections/connections.html", context)


def _uses(products: Iterable[Product]) -> defaultdict[str, list[Use]]:
    """What goes through each account, by the account's key."""
    uses: defaultdict[str, list[Use]] = defaultdict(list)
    for product in products:
        for key in (product.accounts or {}).values():
            uses[key].append(Use(product))
        through = [
            (source, link)
            for source, link in following.LINKS.items()
            if getattr(product, link.via) and getattr(product, link.id)
        ]
        listed = deliveries.list_for_product(product.product_id).items if through else []
        for source, link in through:
            last = next((delivery for delivery in listed if delivery.source == source), None)
            use = Use(product, getattr(product, link.name) or "", last)
            uses[getattr(product, link.via)].append(use)
    return uses


def _stand_ins() -> str:
    """The page that leads to those services that this machine plays, or ""."""
    playing = settings.DEBUG and settings.STANDINS
    return f"http://127.0.0.1:{settings.STANDINS_PORT}/" if playing else ""


# -- there and back --------------------------------------------------------------------------------


@require_POST
@login_required
def connect(request: HttpRequest, provider: str) -> HttpResponse:
    """Send the browser to a source to connect an account."""
    found = provider_or_404(provider)
    if not found.is_configured():
        messages.error(request, f"{found.LABEL} is not set up here yet.")
        return redirect("connections")
    product = _named_product(request)
    if found.NAME in CONNECT_FORMS:
        query = f"?{urlencode({'product': product})}" if product else ""
        return HttpResponseRedirect(reverse("connect_form", args=[found.PATH]) + query)
    try:
        return _set_out(request, CONSENTING[found.NAME], {}, product)
    except Failure as failure:
        return _failed(request, found, failure, product)


def _set_out(
    request: HttpRequest, found: Consenting, answer: Mapping[str, str], product: str
) -> HttpResponse:
    """Send the browser to where the service asks the person. Raises a Failure."""
    state = secrets.token_urlsafe(32)
    start = found.start(state, _callback_url(found), answer, timezone.now())
    _begin(request, found, state, start.kept, product)
    if answer:  # a host that a person named: no browser lets a form lead to just any
        host = urlsplit(start.url).netloc
        context = {"source": found, "url": start.url, "host": host}
        return render(request, "products/connections/onward.html", context)
    return HttpResponseRedirect(start.url)


def _failed(request: HttpRequest, found: Provider, failure: Failure, product: str) -> HttpResponse:
    context = {"source": found, "reason": failure.reason, "product": product}
    return render(request, "products/connections/failed.html", context, status=502)


@require_POST
@login_required
def more(request: HttpRequest) -> HttpResponse:
    """Send the browser to GitHub to choose what SlothPost may read there."""
    if not github.is_configured():
        messages.error(request, f"{github.LABEL} is not set up here yet.")
        return redirect("connections")
    state = secrets.token_urlsafe(32)
    _begin(request, PROVIDERS[github.NAME], state, {}, _named_product(request))
    return HttpResponseRedirect(github.install_url(state))


def _named_product(request: HttpRequest) -> str:
    """The product whose page sent the person here, or ""."""
    product_id = request.POST.get("product", "") or request.GET.get("product", "")
    return str(product_or_404(request.user.pk, product_id).product_id) if product_id else ""


@require_GET
@sensitive_variables()
def callback(request: HttpRequest, provider: str) -> HttpResponse:
    """Where a source sends the browser back to."""
    found = provider_or_404(provider)
    if found.NAME not in CONSENTING:
        raise Http404("Nobody is sent away to this service, so nobody comes back.")
    answer = request.GET.dict()
    state = answer.pop("state", "")
    begun = _taken(request, found, state)
    if begun is not None and _is_young(begun["at"], STATE_LIFE):
        return _finish(request, found, answer, begun)
    if begun is not None:
        return _expired(request, found, product=begun["product"])
    if found.NAME in SOURCES and not state and {"code", "installation_id"} & set(answer):
        return _arrive(request, found, answer)
    return _expired(request, found)


@sensitive_variables()
def _finish(
    request: HttpRequest, found: Provider, answer: Mapping[str, str], begun: Mapping[str, Any]
) -> HttpResponse:
    """Connect what the browser brought, and go on where it makes sense."""
    state = secrets.token_urlsafe(32)
    product = str(begun.get("product", ""))
    kept = {**begun["kept"], "callback_url": _callback_url(found), "state": state}
    try:
        done = found.finish(str(request.user.pk), answer, kept, timezone.now())
    except Cancelled as cancelled:
        messages.info(request, str(cancelled))
        return _back(found, product)
    except ExpiredLink as expired:
        return _expired(request, found, str(expired), product)
    except Failure as failure:
        return _failed(request, found, failure, product)
    if not (done.next_url and done.note):  # else it is said when the next step is done
        name = done.connection.account_name or found.LABEL
        messages.success(request, f"{found.LABEL} is connected: {name}.")
    if found.NAME in SOURCES:
        _go_on_following(request, SOURCES[found.NAME])
    if done.note and not done.next_url:
        messages.info(request, done.note)
    if done.next_url:
        _begin(request, found, state, {}, product)  # if it leads back here, it brings this state
        return HttpResponseRedirect(done.next_url)
    return _connected(request, found, done.connection, product)


def _connected(
    request: HttpRequest, found: Provider, account: Connection, product: str
) -> HttpResponse:
    """Go on after an account was connected: with what it held up, or where this was begun."""
    if found.NAME in OUTLETS:
        _post_there(request, account, product)
        if outlets.held_for(account.user_id, account.key):
            query = urlencode({"key": account.key})
            return HttpResponseRedirect(f"{reverse('held')}?{query}")
    return _back(found, product)


def _post_there(request: HttpRequest, account: Connection, product_id: str) -> None:
    """Have the product from whose page an outlet's account was connected post there."""
    if not product_id:
        return
    product = product_or_404(request.user.pk, product_id)
    posting.choose(product, account.provider, account, timezone.now())
    messages.success(request, f"{product.name} posts there from now on.")


def _go_on_following(request: HttpRequest, source: Source) -> None:
    """What products followed through an account that is gone, through the one that shows it now."""
    user_id, now = str(request.user.pk), timezone.now()
    if not following.left_behind(user_id, source.NAME):
        return
    try:
        choices = source.choices(user_id, now)
    except Failure:  # the products' own pages say that they are cut off
        return
    for product in following.go_on(user_id, source.NAME, choices, now):
        messages.info(request, f"{product.name} is heard of again.")


def _back(found: Provider, product: str) -> HttpResponse:
    if product and found.NAME in SOURCES:
        return redirect("source", product, found.PATH)
    if product:
        return redirect(reverse("product", args=[product]) + "#outlets")
    return redirect("connections")


def _expired(
    request: HttpRequest, found: Provider, reason: str = "", product: str = ""
) -> HttpResponse:
    """The way back was too old, or used before. Nothing is exchanged."""
    signed_in = request.user.is_authenticated
    accounts = connections.of_provider(str(request.user.pk), found.NAME) if signed_in else []
    context = {
        "source": found,
        "reason": reason,
        "product": product,
        "connected": sorted({str(account.account_name) for account in accounts if account.works}),
    }
    return render(request, "products/connections/expired.html", context, status=400)


def _callback_url(found: Provider) -> str:
    return f"{settings.SITE_URL}{reverse('connect_callback', args=[found.PATH])}"


# -- what the session keeps meanwhile --------------------------------------------------------------


@sensitive_variables()
def _begin(
    request: HttpRequest, found: Provider, state: str, kept: Mapping[str, str], product: str
) -> None:
    begun: dict[str, Any] = request.session.get(BEGUN, {})
    begun[state] = {
        "source": found.NAME,
        "user": str(request.user.pk),
        "at": to_ms(timezone.now()),
        "kept": dict(kept),
        "product": product,
    }
    request.session[BEGUN] = dict(list(begun.items())[-MOST_BEGUN:])


@sensitive_variables()
def _taken(request: HttpRequest, found: Provider, state: str) -> dict[str, Any] | None:
    """What was begun with this state, which is good once and for its person."""
    begun: dict[str, Any] = request.session.get(BEGUN, {})
    taken: dict[str, Any] | None = begun.pop(state, None)
    request.session[BEGUN] = begun
    if taken is None or taken["source"] != found.NAME or taken["user"] != str(request.user.pk):
        return None
    return taken


def _is_young(at: int, life: timedelta) -> bool:
    return from_ms(at) + life > timezone.now()


# -- whoever began at the source -------------------------------------------------------------------


@sensitive_variables()
def _arrive(request: HttpRequest, found: Provider, answer: Mapping[str, str]) -> HttpResponse:
    """Keep what was brought out of the address, have the person sign in, and ask them."""
    arrived = {"source": found.NAME, "answer": dict(answer), "at": to_ms(timezone.now())}
    request.session[ARRIVED] = arrived
    confirm = reverse("connect_confirm", args=[found.PATH])
    if not request.user.is_authenticated:
        return redirect_to_login(confirm)
    return HttpResponseRedirect(confirm)


@require_http_methods(["GET", "POST"])
@login_required
@sensitive_variables()
def confirm(request: HttpRequest, provider: str) -> HttpResponse:
    """Ask whether an account that the browser came with is to be connected here."""
    found = provider_or_404(provider)
    arrived: dict[str, Any] = request.session.get(ARRIVED, {})
    valid = arrived.get("source") == found.NAME
    if not (valid and _is_young(arrived["at"], ARRIVAL_LIFE)):
        return _expired(request, found)
    if request.method == "GET":
        return render(request, "products/connections/confirm.html", {"source": found})
    del request.session[ARRIVED]
    if "cancel" in request.POST:
        messages.info(request, "Nothing was connected.")
        return redirect("connections")
    return _finish(request, found, arrived["answer"], {"kept": {}})


# -- a service's own form --------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
@login_required
@sensitive_post_parameters()
@sensitive_variables()
def form(request: HttpRequest, provider: str) -> HttpResponse:
    """What a service has to be told before: a key, a password, an instance. What was typed as a
    secret is never shown again."""
    found = provider_or_404(provider)
    if found.NAME not in CONNECT_FORMS:
        raise Http404("This service has no form.")
    product = _named_product(request)
    posted = request.method == "POST"
    given = CONNECT_FORMS[found.NAME](*((request.POST, request.FILES) if posted else ()))
    if posted and given.is_valid():
        try:
            return _connect_with(request, found, given.answer(), product)
        except Failure as failure:
            given.add_error(None, failure.reason)
    context = {"source": found, "form": given, "product": product, "stand_ins": _stand_ins()}
    status = 422 if given.errors else 200
    return render(request, "products/connections/form.html", context, status=status)


@sensitive_variables()
def _connect_with(
    request: HttpRequest, found: Provider, answer: Mapping[str, str], product: str
) -> HttpResponse:
    """Go on with what the form said: to the service's own page, or connect at once."""
    if found.NAME in CONSENTING:
        return _set_out(request, CONSENTING[found.NAME], answer, product)
    done = found.finish(str(request.user.pk), answer, {}, timezone.now())
    messages.success(request, f"{found.LABEL} is connected: {done.connection.account_name}.")
    if done.note:
        messages.info(request, done.note)
    return _connected(request, found, done.connection, product)


# -- one account -----------------------------------------------------------------------------------


@require_POST
@login_required
def check(request: HttpRequest) -> HttpResponse:
    """One real read of an account, now."""
    connection = connection_or_404(request.user.pk, request.POST.get("key", ""))
    now = timezone.now()
    try:
        PROVIDERS[connection.provider].check(connection, now)
    except Failure as failure:
        messages.error(request, f"{_name(connection)}: {failure.reason}")
        return redirect("connections")
    messages.success(request, f"{_name(connection)} works.")
    if connection.provider == app_store.NAME:
        for sentence in app_hooks.set_up_all(connection, now):
            messages.info(request, sentence)
    return redirect("connections")


@require_http_methods(["GET", "POST"])
@login_required
def disconnect(request: HttpRequest) -> HttpResponse:
    """Say what would stop, and on a POST forget the account."""
    given = request.POST if request.method == "POST" else request.GET
    connection = connection_or_404(request.user.pk, given.get("key", ""))
    if request.method == "GET":
        uses = _uses(catalogue.every_one_of(connection.user_id))
        ended = [connection, *connections.shown_by(connection)]
        context = {
            "connection": connection,
            "uses": [use for gone in ended for use in uses[gone.key]],
            "name": _name(connection),
        }
        return render(request, "products/connections/disconnect.html", context)
    now, left = timezone.now(), []
    if connection.provider == app_store.NAME:
        left.append(app_hooks.take_away_all(connection, now))
        following.follow_openly(connection)
    left.append(PROVIDERS[connection.provider].disconnect(connection, now))
    said = " ".join(sentence for sentence in left if sentence)
    messages.success(request, f"{_name(connection)} is disconnected. {said}".strip())
    return redirect("connections")


def _name(connection: Connection) -> str:
    label = PROVIDERS[connection.provider].LABEL
    whose = connection.account_name or connection.account_id
    of = "repositories of " if Row(connection, []).is_installation else ""
    return f"{label} ({of}{whose})"
