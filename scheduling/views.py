"""The plan page: what is planned, said back before it is saved; pause and resume."""

from datetime import timedelta

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

LABELS = {name: outlet.label for name, outlet in OUTLETS.items()}


@require_http_methods(["GET", "POST"])
@login_required
def plan(request: HttpRequest, product_id: str) -> HttpResponse:
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
    request: HttpRequest,
    product: Product,
    form: PlanForm,
    wanted: WeeklyPlan | None = None,
    *,
    previewed: str = "",
    status: int = 200,
) -> HttpResponse:
    now = timezone.now()
    saved = _saved(product)
    shown = wanted or saved
    context = {
        "product": product,
        "form": form,
        "paused": plans.is_paused(product, now),
        "pause_form": PauseForm(saved, now),
        "previewed": previewed,
        "sentence": describe(shown, LABELS),
        "zone": shown.timezone,
        "occurrences": [
            {
                "at": run.at,
                "labels": [LABELS.get(s.outlet, s.outlet) for s in run.slots],
                "note": run.note,
            }
            for run in upcoming(shown, now)
        ],
        "moves": [move.describe(LABELS) for move in moved(saved, wanted, now)] if wanted else [],
    }
    template = "scheduling/_preview.html" if request.htmx and previewed else "scheduling/plan.html"
    return render(request, template, context, status=status)


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
        messages.error(request, " ".join(form.errors["until"]))
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
