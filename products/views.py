"""The pages of the developer: review queue, products, activity, history."""

import logging
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from integrations import deliveries
from integrations.outlets import text_length, text_limit
from products import activity, catalogue, posts
from products.access import activity_or_404, post_or_404, product_or_404
from products.cards import Draft, by_slot, needs_a_person
from products.forms import (
    DecisionForm,
    ProductForm,
    RepositoryForm,
    TextLengthForm,
    VercelProjectForm,
)
from products.posts import TextRefused
from products.states import FINAL, State
from products.tables import Post, Product
from slothpost_site.dynamo import Conflict
from slothpost_site.moments import from_ms
from slothpost_site.paging import read_page

logger = logging.getLogger(__name__)

QUEUE_SIZE = 60


# -- review ----------------------------------------------------------------------------------------


@require_GET
@login_required
def review(request: HttpRequest) -> HttpResponse:
    """The first page: what waits for this person, and what they decided that is not yet sent."""
    page = read_page(
        Post.open_for,
        str(request.user.pk),
        cursor=request.GET.get("cursor", ""),
        size=QUEUE_SIZE,
        newest_first=False,
    )
    cards = by_slot(post for post in page.items if not needs_a_person(post))
    context = {
        "asks": [Draft(post) for post in page.items if needs_a_person(post)],
        "cards": cards,
        "waiting": sum(len(card.waiting) for card in cards),
        "page": page,
        "has_products": bool(cards) or bool(catalogue.list_for(str(request.user.pk)).items),
    }
    return render(request, "products/review.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def post(request: HttpRequest, slot: str, product_id: str, outlet: str) -> HttpResponse:
    """One post: shown with its whole history on GET, decided on by POST."""
    found = post_or_404(request.user.pk, slot, product_id, outlet)
    if request.method == "GET":
        return render(request, "products/post.html", {"draft": Draft(found)})
    form = DecisionForm(request.POST)
    if not form.is_valid():
        error = "That could not be read: open the post again and decide anew."
        return _show(request, Draft(found, error), status=422)
    try:
        said = _decide(request, found, form.cleaned_data)
    except TextRefused as refused:
        typed = form.cleaned_data["text"] or None
        return _show(request, Draft(found, str(refused), typed), status=422)
    except Conflict as conflict:
        now_found = post_or_404(request.user.pk, slot, product_id, outlet)
        return _show(request, Draft(now_found, str(conflict)), status=409)
    if request.htmx:
        return _show(request, Draft(found))
    messages.success(request, said)
    return redirect("review")


def _decide(request: HttpRequest, found: Post, asked: dict[str, str]) -> str:
    """Carry out one decision. Returns what was done, in words."""
    now, by = timezone.now(), f"person {request.user.pk}"
    seen = asked["seen"]
    text = asked["text"].replace("\r\n", "\n").strip()
    edited = bool(text) and text != found.text
    match asked["action"]:
        case "save":
            posts.edit(found, text, seen=seen, now=now, by=by)
            return "Saved. It goes out once you approve it."
        case "approve":
            if edited:
                posts.edit(found, text, seen=seen, now=now, by=by)
                seen = posts.text_hash(found)
            send_at = _send_at(found, now)
            posts.approve(found, seen=seen, send_at=send_at, now=now, by=by)
            return "Approved."
        case "reject":
            reason = asked["reason"].strip()
            if not reason:
                raise TextRefused("Say in a few words what is wrong with it, then reject it.")
            posts.reject(found, reason, now=now, by=by)
            return "Rejected. Its stories will not be told there again."
        case "rewrite":
            posts.rewrite(found, now=now, by=by)
            return "It is being written again: look again in a minute."
        case "take-back":
            posts.take_back(found, now=now, by=by)
            return "Taken back: it waits for review again."
        case _:
            posts.confirm_published(found, permalink=asked["permalink"], now=now, by=by)
            return "Marked as published."


def _send_at(found: Post, now: datetime) -> datetime | None:
    """When an approved post goes out: at its slot; if that is over, by the product's choice."""
    slot_at = from_ms(found.slot_at)
    if slot_at > now:
        return slot_at
    product = catalogue.find(found.user_id, found.product_id)
    late = product.late_approval if product else "hold"
    return None if late == "next_slot" and found.state == State.AWAITING_REVIEW else now


def _show(request: HttpRequest, draft: Draft, status: int = 200) -> HttpResponse:
    """The draft as it now stands: alone for htmx, else on its page."""
    template = "products/_draft.html" if request.htmx else "products/post.html"
    return render(request, template, {"draft": draft}, status=status)


@require_POST
@login_required
def approve_slot(request: HttpRequest, slot: str, product_id: str) -> HttpResponse:
    """Approve every text of a slot that was shown, each bound to what was seen."""
    now, by = timezone.now(), f"person {request.user.pk}"
    approved, problems = 0, []
    for outlet, seen in zip(
        request.POST.getlist("outlet"), request.POST.getlist("seen"), strict=False
    ):
        found = post_or_404(request.user.pk, slot, product_id, outlet)
        try:
            posts.approve(found, seen=seen, send_at=_send_at(found, now), now=now, by=by)
            approved += 1
        except (TextRefused, Conflict) as problem:
            problems.append(f"{Draft(found).label}: {problem}")
    if approved:
        messages.success(request, f"Approved {approved} text{'s' if approved > 1 else ''}.")
    for problem in problems:
        messages.error(request, problem)
    if not approved and not problems:
        messages.error(request, "Nothing was chosen: open the slot again.")
    return redirect("review")


@require_POST
@login_required
def count_text(request: HttpRequest) -> HttpResponse:
    """The length of a text as its outlet counts it, for the live counter."""
    form = TextLengthForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"error": "This text cannot be counted."}, status=400)
    outlet, text = form.cleaned_data["outlet"], form.cleaned_data["text"]
    counted = text_length(outlet, text.replace("\r\n", "\n").strip())
    return JsonResponse({"length": counted, "limit": text_limit(outlet)})


@require_GET
@login_required
def history(request: HttpRequest) -> HttpResponse:
    """Every post of this person, newest slot first: what went out, and what did not and why."""
    page = read_page(Post, str(request.user.pk), cursor=request.GET.get("cursor", ""), size=30)
    ended = [Draft(found) for found in page.items if found.state in FINAL]
    return render(request, "products/history.html", {"drafts": ended, "page": page})


# -- products --------------------------------------------------------------------------------------


@require_GET
@login_required
def products(request: HttpRequest) -> HttpResponse:
    page = catalogue.list_for(str(request.user.pk), request.GET.get("cursor", ""))
    return render(request, "products/products.html", {"page": page})


@require_http_methods(["GET", "POST"])
@login_required
def product_new(request: HttpRequest) -> HttpResponse:
    form = ProductForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        created = catalogue.create(str(request.user.pk), now=timezone.now(), **form.cleaned_data)
        messages.success(request, f"{created.name} is here. Now say what it follows and when.")
        return redirect("product", created.product_id)
    return render(request, "products/product_form.html", {"form": form}, status=_status(form))


@require_http_methods(["GET", "POST"])
@login_required
def product_edit(request: HttpRequest, product_id: str) -> HttpResponse:
    found = product_or_404(request.user.pk, product_id)
    form = ProductForm(request.POST or None, initial=ProductForm.initial_of(found))
    if request.method == "POST" and form.is_valid():
        catalogue.describe(found, **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("product", product_id)
    context = {"form": form, "product": found}
    return render(request, "products/product_form.html", context, status=_status(form))


@require_GET
@login_required
def product(request: HttpRequest, product_id: str) -> HttpResponse:
    found = product_or_404(request.user.pk, product_id)
    return _product_page(request, found)


def _product_page(request: HttpRequest, found: Product, **forms: object) -> HttpResponse:
    context = {
        "product": found,
        "repository_form": RepositoryForm(),
        "vercel_form": VercelProjectForm(),
        "deliveries": deliveries.list_for_product(found.product_id, request.GET.get("cursor", "")),
        **forms,
    }
    return render(request, "products/product.html", context, status=422 if forms else 200)


@require_POST
@login_required
def follow_repository(request: HttpRequest, product_id: str) -> HttpResponse:
    """Follow a GitHub repository, or none."""
    found = product_or_404(request.user.pk, product_id)
    if "unlink" in request.POST:
        catalogue.follow_repository(found, None, None)
        messages.success(request, "No repository is followed any more.")
        return redirect("product", product_id)
    form = RepositoryForm(request.POST)
    if not form.is_valid():
        return _product_page(request, found, repository_form=form)
    repo_id, name = form.cleaned_data["repository"]
    catalogue.follow_repository(found, repo_id, name)
    messages.success(request, f"{found.name} follows {name}.")
    return redirect("product", product_id)


@require_POST
@login_required
def follow_vercel(request: HttpRequest, product_id: str) -> HttpResponse:
    """Follow a Vercel project, or none."""
    found = product_or_404(request.user.pk, product_id)
    if "unlink" in request.POST:
        catalogue.follow_vercel_project(found, None, None)
        messages.success(request, "No Vercel project is followed any more.")
        return redirect("product", product_id)
    form = VercelProjectForm(request.POST)
    if not form.is_valid():
        return _product_page(request, found, vercel_form=form)
    project_id = form.cleaned_data["project_id"]
    catalogue.follow_vercel_project(found, project_id, form.cleaned_data["project_name"])
    messages.success(request, f"{found.name} follows {project_id}.")
    return redirect("product", product_id)


# -- activity --------------------------------------------------------------------------------------


@require_GET
@login_required
def activities(request: HttpRequest, product_id: str) -> HttpResponse:
    found = product_or_404(request.user.pk, product_id)
    page = activity.list_for(product_id, request.GET.get("cursor", ""))
    return render(request, "products/activity.html", {"product": found, "page": page})


@require_POST
@login_required
def judge(request: HttpRequest, product_id: str) -> HttpResponse:
    """Overrule whether one activity is a story."""
    found = product_or_404(request.user.pk, product_id)
    item = activity_or_404(found, request.POST.get("key", ""))
    try:
        if item.ignored:
            activity.make_story(item, timezone.now())
        else:
            activity.ignore(item)
    except Conflict:
        item = activity_or_404(found, item.key)
    if request.htmx:
        return render(request, "products/_activity.html", {"product": found, "item": item})
    return HttpResponseRedirect(reverse("activity", args=[product_id]))


def _status(form: ProductForm) -> int:
    return 422 if form.is_bound else 200
