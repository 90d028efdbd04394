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
from integrations.connections import UNSHOWN
from integrations.errors import Failure
from integrations.sources import SOURCES, app_store, github
from integrations.sources.base import Cancelled, ExpiredLink, Source
from integrations.tables import Connection, Delivery
from products import app_hooks, catalogue, following
from products.access import connection_or_404, product_or_404, source_or_404
from products.forms import AppStoreKeyForm
from products.tables import Product
from slothpost_site.moments import from_ms, to_ms

STATE_LIFE = timedelta(minutes=10)
ARRIVAL_LIFE = timedelta(minutes=30)
MOST_BEGUN = 5
BEGUN, ARRIVED = "connecting", "arrived"


# -- the page --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """A product that follows something through an account, and what arrived last for it."""

    product: Product
    name: str
    last: Delivery | None


@dataclass(frozen=True)
class Row:
    connection: Connection
    uses: list[Use]
    broken: str = ""  # why it does not work, be it for the account that shows it

    @property
    def is_installation(self) -> bool:
        return str(self.connection.account_id).startswith("installation:")

    @property
    def waits_for_account(self) -> bool:
        """Whether nothing is wrong with it but the account that shows it, which is listed too."""
        return bool(self.broken) and not self.connection.broken and self.broken != UNSHOWN


@dataclass(frozen=True)
class Card:
    source: Source
    rows: list[Row]


@require_GET
@login_required
def connections_page(request: HttpRequest) -> HttpResponse:
    """Every account with its health, and what goes through it."""
    user_id = str(request.user.pk)
    page = connections.list_for(user_id, request.GET.get("cursor", ""))
    products = list(catalogue.every_one_of(user_id))
    uses = _uses(products)
    rows = [Row(c, uses[c.key], connections.broken_of(c)) for c in page.items]
    cards = [
        Card(source, [row for row in rows if row.connection.provider == name])
        for name, source in SOURCES.items()
    ]
    context = {
        "cards": cards,
        "page": page,
        "timezone": products[0].timezone if products else "UTC",
        "stand_ins": _stand_ins() if settings.DEBUG and settings.STANDINS else [],
    }
    return render(request, "products/connections/connections.html", context)


def _uses(products: Iterable[Product]) -> defaultdict[str, list[Use]]:
    """What goes through each account, by the account's key."""
    uses: defaultdict[str, list[Use]] = defaultdict(list)
    for product in products:
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


def _stand_ins() -> list[tuple[str, str]]:
    """The front pages of those services that this machine plays."""
    addresses = {
        "GitHub": settings.GITHUB_URL,
        "Vercel": settings.VERCEL_URL,
        "App Store Connect": settings.APP_STORE_API_URL,
    }
    here = f"http://127.0.0.1:{settings.STANDINS_PORT}/"
    return [(name, f"{url}/") for name, url in addresses.items() if url.startswith(here)]


# -- there and back --------------------------------------------------------------------------------


@require_POST
@login_required
def connect(request: HttpRequest, source: str) -> HttpResponse:
    """Send the browser to a source to connect an account."""
    found = source_or_404(source)
    if not found.is_configured():
        messages.error(request, f"{found.LABEL} is not set up here yet.")
        return redirect("connections")
    product = _named_product(request)
    state = secrets.token_urlsafe(32)
    start = found.start(state, _callback_url(found))
    _begin(request, found, state, start.kept, product)
    return HttpResponseRedirect(start.url)


@require_POST
@login_required
def more(request: HttpRequest, source: str) -> HttpResponse:
    """Send the browser to GitHub to choose what SlothPost may read there."""
    found = source_or_404(source)
    if found.NAME != github.NAME:
        raise Http404("Only GitHub has such a page.")
    if not found.is_configured():
        messages.error(request, f"{found.LABEL} is not set up here yet.")
        return redirect("connections")
    state = secrets.token_urlsafe(32)
    _begin(request, found, state, {}, _named_product(request))
    return HttpResponseRedirect(github.install_url(state))


def _named_product(request: HttpRequest) -> str:
    """The product whose page sent the person here, or ""."""
    product_id = request.POST.get("product", "")
    return str(product_or_404(request.user.pk, product_id).product_id) if product_id else ""


@require_GET
@sensitive_variables()
def callback(request: HttpRequest, source: str) -> HttpResponse:
    """Where a source sends the browser back to."""
    found = source_or_404(source)
    answer = request.GET.dict()
    state = answer.pop("state", "")
    begun = _taken(request, found, state)
    if begun is not None and _is_young(begun["at"], STATE_LIFE):
        return _finish(request, found, answer, begun)
    if begun is not None:
        return _expired(request, found, product=begun["product"])
    if not state and {"code", "installation_id"} & set(answer):
        return _arrive(request, found, answer)
    return _expired(request, found)


@sensitive_variables()
def _finish(
    request: HttpRequest, found: Source, answer: Mapping[str, str], begun: Mapping[str, Any]
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
        context = {"source": found, "reason": failure.reason, "product": product}
        return render(request, "products/connections/failed.html", context, status=502)
    if not (done.next_url and done.note):  # else it is said when the next step is done
        name = done.connection.account_name or found.LABEL
        messages.success(request, f"{found.LABEL} is connected: {name}.")
    if done.note and not done.next_url:
        messages.info(request, done.note)
    if done.next_url:
        _begin(request, found, state, {}, product)  # if it leads back here, it brings this state
        return HttpResponseRedirect(done.next_url)
    return _back(found, product)


def _back(found: Source, product: str) -> HttpResponse:
    if product:
        return redirect("source", product, found.PATH)
    return redirect("connections")


def _expired(
    request: HttpRequest, found: Source, reason: str = "", product: str = ""
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


def _callback_url(found: Source) -> str:
    return f"{settings.SITE_URL}{reverse('connect_callback', args=[found.PATH])}"


# -- what the session keeps meanwhile --------------------------------------------------------------


@sensitive_variables()
def _begin(
    request: HttpRequest, found: Source, state: str, kept: Mapping[str, str], product: str
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
def _taken(request: HttpRequest, found: Source, state: str) -> dict[str, Any] | None:
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
def _arrive(request: HttpRequest, found: Source, answer: Mapping[str, str]) -> HttpResponse:
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
def confirm(request: HttpRequest, source: str) -> HttpResponse:
    """Ask whether an account that the browser came with is to be connected here."""
    found = source_or_404(source)
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


# -- the App Store's key ---------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
@login_required
@sensitive_post_parameters("private_key")
@sensitive_variables()
def key(request: HttpRequest) -> HttpResponse:
    """Connect App Store Connect by an API key. What was typed as the key is never shown again."""
    found = SOURCES["app_store"]
    posted = request.method == "POST"
    form = AppStoreKeyForm(request.POST, request.FILES) if posted else AppStoreKeyForm()
    status = 200
    if posted and form.is_valid():
        answer = {name: str(value) for name, value in form.cleaned_data.items()}
        try:
            done = found.finish(str(request.user.pk), answer, {}, timezone.now())
        except Failure as failure:
            form.add_error(None, failure.reason)
        else:
            messages.success(
                request, f"The App Store is connected: {done.connection.account_name}."
            )
            return _back(found, _begun_for(request, found))
    if form.errors:
        status = 422
    return render(request, "products/connections/key.html", {"form": form}, status=status)


def _begun_for(request: HttpRequest, found: Source) -> str:
    """The product from whose page this was begun last, if it was. What was begun at another
    source goes on."""
    begun: dict[str, Any] = request.session.get(BEGUN, {})
    products = [str(b["product"]) for b in begun.values() if b["source"] == found.NAME]
    others = {state: b for state, b in begun.items() if b["source"] != found.NAME}
    request.session[BEGUN] = others
    return products[-1] if products else ""


# -- one account -----------------------------------------------------------------------------------


@require_POST
@login_required
def check(request: HttpRequest) -> HttpResponse:
    """One real read of an account, now."""
    connection = connection_or_404(request.user.pk, request.POST.get("key", ""))
    source = SOURCES[connection.provider]
    try:
        source.check(connection, timezone.now())
    except Failure as failure:
        messages.error(request, f"{_name(connection)}: {failure.reason}")
    else:
        messages.success(request, f"{_name(connection)} works.")
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
    left.append(SOURCES[connection.provider].disconnect(connection, now))
    said = " ".join(sentence for sentence in left if sentence)
    messages.success(request, f"{_name(connection)} is disconnected. {said}".strip())
    return redirect("connections")


def _name(connection: Connection) -> str:
    label = SOURCES[connection.provider].LABEL
    return f"{label} ({connection.account_name or connection.account_id})"
