"""What a product follows at each source: choose it, leave it, and say what of it may be told."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from integrations import connections
from integrations.errors import Failure, NeedsReconnect
from integrations.sources import SOURCES, app_store
from integrations.sources.base import Choice, Source
from products import app_hooks, following
from products.access import product_or_404, source_or_404
from products.forms import PUBLIC_FORMS
from products.tables import Product
from slothpost_site.dynamo import Conflict

MOST_SHOWN = 100


@dataclass(frozen=True)
class Listening:
    """What a product hears from one source, for its page."""

    source: Source
    product: Product

    @property
    def id(self) -> str:
        return getattr(self.product, following.LINKS[self.source.NAME].id) or ""

    @property
    def name(self) -> str:
        return getattr(self.product, following.LINKS[self.source.NAME].name) or self.id

    @property
    def why_cut_off(self) -> str:
        """Why the account that shows it does not."""
        key = getattr(self.product, following.LINKS[self.source.NAME].via)
        connection = connections.find(self.product.user_id, key)
        return connections.broken_of(connection) if connection else connections.UNSHOWN

    @property
    def has_via(self) -> bool:
        return bool(getattr(self.product, following.LINKS[self.source.NAME].via))

    @property
    def works(self) -> bool:
        return following.connection_of(self.product, self.source.NAME) is not None

    @property
    def state(self) -> dict[str, Any]:
        return following.state_of(self.product, self.source.NAME)

    @property
    def is_private(self) -> bool:
        return following.is_private(self.product, self.source.NAME)

    @property
    def is_allowed(self) -> bool:
        return following.is_allowed(self.product, self.source.NAME)


def listening(product: Product) -> list[Listening]:
    return [Listening(source, product) for source in SOURCES.values()]


@require_http_methods(["GET", "POST"])
@login_required
def source(request: HttpRequest, product_id: str, source: str) -> HttpResponse:
    """Choose what a product follows at a source, or change what holds for it."""
    product = product_or_404(request.user.pk, product_id)
    found = source_or_404(source)
    if request.method == "GET":
        return _choose_page(request, product, found)
    action = request.POST.get("action", "")
    if action == "choose":
        return _choose(request, product, found)
    if action == "public":
        return _follow_public(request, product, found)
    _change(request, product, found, action)
    return redirect(reverse("product", args=[product_id]) + "#sources")


def _change(request: HttpRequest, product: Product, found: Source, action: str) -> None:
    """The buttons that need nothing but a press."""
    now = timezone.now()
    if action == "unfollow":
        _say(request, app_hooks.take_away(product, now) if found.NAME == app_store.NAME else "")
        following.unfollow(product, found.NAME)
        messages.success(request, f"{product.name} hears nothing from {found.LABEL} any more.")
    elif action == "ask":
        _ask(request, product, now)
    elif action in ("allow", "forbid"):
        _permit(request, product, found, action, now)


def _ask(request: HttpRequest, product: Product, now: datetime) -> None:
    if following.ask_for_fetch(product, now):
        messages.success(request, "Asked: what is new shows up under Activity within a minute.")
    elif following.followed(product):
        messages.info(request, "It is being asked already: what is new shows up under Activity.")
    else:
        messages.error(request, f"{product.name} follows nothing yet: choose what, first.")


def _permit(
    request: HttpRequest, product: Product, found: Source, action: str, now: datetime
) -> None:
    """Say whether posts may be written from what the page has shown, and from nothing else."""
    shown = request.POST.get("follow", "")
    try:
        if action == "allow":
            following.allow_private(product, found.NAME, shown, now)
            messages.success(request, "Posts may be written from it.")
        else:
            following.forbid_private(product, found.NAME, shown, now)
            messages.success(request, "No post will be written from it.")
    except Conflict as conflict:
        messages.error(request, f"Nothing was changed. {conflict}")


def _say(request: HttpRequest, sentence: str) -> None:
    if sentence:
        messages.info(request, sentence)


# -- choosing --------------------------------------------------------------------------------------


def _choose_page(
    request: HttpRequest, product: Product, found: Source, form: Any = None
) -> HttpResponse:
    wanted = request.GET.get("q", "").strip().casefold()
    choices, problem = _choices(request, found)
    matching = [choice for choice in choices if wanted in choice.name.casefold()]
    public = PUBLIC_FORMS.get(found.NAME)
    context = {
        "product": product,
        "source": found,
        "configured": found.is_configured(),
        "has_account": bool(connections.of_provider(product.user_id, found.NAME)),
        "choices": matching[:MOST_SHOWN],
        "total": len(choices),
        "more": max(0, len(matching) - MOST_SHOWN),
        "q": request.GET.get("q", ""),
        "problem": problem,
        "reconnect": isinstance(problem, NeedsReconnect),
        "form": form or (public() if public and _is_open(found) else None),
        "at": Listening(found, product),
    }
    status = 422 if form is not None else 200
    return render(request, "products/sources/choose.html", context, status=status)


def _is_open(found: Source) -> bool:
    """Whether something there can be followed without an account; by its id alone only where every
    user may see everything."""
    return found.NAME != "vercel" or settings.FOLLOW_PRIVATE_REPOSITORIES


def _choices(request: HttpRequest, found: Source) -> tuple[list[Choice], Failure | None]:
    if not found.is_configured():
        return [], None
    try:
        return found.choices(str(request.user.pk), timezone.now()), None
    except Failure as failure:
        return [], failure


def _choose(request: HttpRequest, product: Product, found: Source) -> HttpResponse:
    """Follow what was chosen, if the person's accounts show it still."""
    choices, problem = _choices(request, found)
    chosen = next((c for c in choices if c.id == request.POST.get("choice")), None)
    if problem is not None or chosen is None:
        reason = problem.reason if problem else "Choose one of the list."
        messages.error(request, f"Nothing was changed. {reason}")
        return redirect("source", product.product_id, found.PATH)
    now = timezone.now()
    _follow(request, product, found, chosen, now)
    if chosen.private:
        _permit_chosen(request, product, found, now)
    if found.NAME == app_store.NAME:
        _say(request, app_hooks.set_up(product, now))
    return redirect(reverse("product", args=[product.product_id]) + "#sources")


def _follow(
    request: HttpRequest, product: Product, found: Source, chosen: Choice, now: datetime
) -> None:
    """Follow what was chosen; an app that is left for it, or followed openly now, need not tell."""
    is_left = product.app_store_id != chosen.id or not chosen.via
    if found.NAME == app_store.NAME and is_left:
        _say(request, app_hooks.take_away(product, now))
    following.follow(product, found.NAME, chosen, now)
    messages.success(request, f"{product.name} follows {chosen.name}.")


def _permit_chosen(request: HttpRequest, product: Product, found: Source, now: datetime) -> None:
    """What the tick beside the list says of what was chosen from it."""
    chosen = request.POST.get("choice", "")
    try:
        if "allow" in request.POST:
            following.allow_private(product, found.NAME, chosen, now)
        else:
            following.forbid_private(product, found.NAME, chosen, now)
    except Conflict as conflict:
        messages.error(request, f"Whether posts may be written was not kept. {conflict}")


def _follow_public(request: HttpRequest, product: Product, found: Source) -> HttpResponse:
    """Follow what everybody can see."""
    if found.NAME not in PUBLIC_FORMS or not _is_open(found):
        messages.error(request, f"Connect {found.LABEL} first.")
        return redirect("source", product.product_id, found.PATH)
    form = PUBLIC_FORMS[found.NAME](request.POST)
    if not form.is_valid():
        return _choose_page(request, product, found, form)
    _follow(request, product, found, form.chosen(), timezone.now())
    return redirect(reverse("product", args=[product.product_id]) + "#sources")
