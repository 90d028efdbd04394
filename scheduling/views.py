"""The plan page: what is planned, said back before it is saved; pause and resume."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from integrations.outlets import OUTLETS
from products.access import product_or_404
from products.tables import Product
from scheduling import plans
from scheduling.forms import PauseForm, PlanForm
from scheduling.weekly import InvalidPlan, WeeklyPlan, describe, moved, upcoming
from slothpost_site.dynamo import Conflict
from slothpost_site.htmx import HtmxRequest
from slothpost_site.moments import as_key, from_ms, to_ms

LABELS = {name: outlet.label for name, outlet in OUTLETS.items()}


@require_http_methods(["GET", "POST"])
@login_required
def plan(request: HtmxRequest, product_id: str) -> HttpResponse:
    """The plan's form. What is posted is shown back first, and saved when it is posted again as
    it was shown."""
    found = product_or_404(request.user.pk, product_id)
    if request.method == "GET":
        return _page(request, found, PlanForm(found))
    form = PlanForm(found, request.POST)
    if not form.is_valid():
        return _page(request, found, form, status=422)
    wanted: WeeklyPlan = form.cleaned_data["plan"]
    lead = form.cleaned_data["lead_minutes"]
    shown = f"{lead} {wanted.to_json()}"
    if "save" not in request.POST or form.cleaned_data["previewed"] != shown:
        return _page(request, found, form, wanted, previewed=shown)
    try:
        plans.set_plan(
            found,
            wanted,
            lead=timedelta(minutes=lead),
            version_seen=form.cleaned_data["version"],
            now=timezone.now(),
        )
    except Conflict:
        form.add_error(
            None, "This plan was changed in another window: compare, then open this page again."
        )
        return _page(request, found, form, status=409)
    messages.success(request, f"Saved. {describe(wanted, LABELS)}")
    return redirect("product", product_id)


def _page(
    request: HtmxRequest,
    product: Product,
    form: PlanForm,
    wanted: WeeklyPlan | None = None,
    *,
    previewed: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or for htmx its preview alone."""
    now = timezone.now()
    saved = _saved(product)
    shown = wanted or saved
    lead = form.cleaned_data["lead_minutes"] if wanted else product.lead_minutes
    context = {
        "product": product,
        "now": now,
        "form": form,
        "paused": plans.is_paused(product, now),
        "pause_form": PauseForm(saved, now),
        "previewed": previewed,
        "sentence": describe(shown, LABELS) if shown.is_on or wanted else "",
        "zone": shown.timezone,
        "dates": _dates(product, shown, timedelta(minutes=int(lead)), now),
        "moves": [move.describe(LABELS) for move in moved(saved, wanted, now)] if wanted else [],
    }
    template = "scheduling/_preview.html" if request.htmx else "scheduling/plan.html"
    return render(request, template, context, status=status)


@dataclass(frozen=True)
class PlannedDate:
    """One of the next dates: its outlets, a note, and when its draft is written (None: it is)."""

    at: datetime
    labels: list[str]
    note: str
    draft_at: datetime | None


def _dates(product: Product, plan: WeeklyPlan, lead: timedelta, now: datetime) -> list[PlannedDate]:
    """The plan's next dates, from the end of a pause on."""
    after = now
    if plans.is_paused(product, now):
        if product.paused_until is None:
            return []
        after = from_ms(product.paused_until)
    drafted = product.drafted_slots or {}
    return [
        PlannedDate(
            run.at,
            [LABELS.get(slot.outlet, slot.outlet) for slot in run.slots],
            run.note,
            None
            if all(as_key(to_ms(run.at)) in drafted.get(slot.outlet, []) for slot in run.slots)
            else run.at - lead,
        )
        for run in upcoming(plan, after)
    ]


def _saved(product: Product) -> WeeklyPlan:
    """The stored plan; an empty one where there is none or it cannot be read."""
    try:
        return plans.plan_of(product)
    except InvalidPlan:
        return WeeklyPlan("UTC", ())


@require_POST
@login_required
def pause(request: HttpRequest, product_id: str) -> HttpResponse:
    """No new drafts until a date, or until the plan is resumed."""
    found = product_or_404(request.user.pk, product_id)
    now = timezone.now()
    form = PauseForm(_saved(found), now, request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(map(str, form.errors["until"])))
        return redirect("plan", product_id)
    until = form.cleaned_data["until"]
    try:
        plans.pause(found, now=now, until=until)
    except Conflict:
        messages.error(request, "The plan was changed in another window: look at it again.")
    else:
        when = f"until {until:%-d %B %Y}" if until else "until you resume it"
        messages.success(request, f"Paused {when}. Approved posts still go out at their time.")
    return redirect("plan", product_id)


@require_POST
@login_required
def resume(request: HttpRequest, product_id: str) -> HttpResponse:
    found = product_or_404(request.user.pk, product_id)
    try:
        plans.resume(found, now=timezone.now())
    except InvalidPlan as error:
        messages.error(request, f"{error} Save the plan again to mend it.")
    except Conflict:
        messages.error(request, "The plan was changed in another window: look at it again.")
    else:
        messages.success(request, "The plan goes on with its next slot.")
    return redirect("plan", product_id)
