"""What waits for a person, what they decide about it, and what became of it."""

import logging
from dataclasses import replace
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from integrations import connections
from integrations.outlets import text_length
from products import catalogue, posts, spending
from products.access import post_or_404, product_or_404
from products.cards import Draft, SlotCard, by_slot
from products.forms import (
    DecisionForm,
    TextForm,
    TextLengthForm,
)
from products.posts import TextRefused
from products.results import summed_up
from products.states import State
from products.tables import Post
from slothpost_site.dynamo import Conflict
from slothpost_site.htmx import HtmxRequest
from slothpost_site.moments import from_ms
from slothpost_site.paging import read_page

logger = logging.getLogger(__name__)

QUEUE_SIZE = 60
NEWEST = 300  # posts that results are read from


@require_GET
@login_required
def review(request: HttpRequest) -> HttpResponse:
    """The first page: what waits for this person, and what they decided that is not yet sent."""
    now = timezone.now()
    page = read_page(
        Post.open_for,
        str(request.user.pk),
        cursor=request.GET.get("cursor", ""),
        size=QUEUE_SIZE,
        newest_first=False,
    )
    accounts = connections.list_for(str(request.user.pk)).items
    drafts = _drafts(page.items, now)
    cards = by_slot(draft for draft in drafts if not draft.went_astray)
    astray = by_slot(draft for draft in drafts if draft.went_astray)
    context = {
        "now": now,
        "asks": [draft for card in astray for draft in card.drafts],
        "cards": cards,
        "waiting": [draft for card in cards for draft in card.waiting],
        "page": page,
        "broken": [account for account in accounts if not account.works],
        "lapsing": [account for account in accounts if connections.lapses_soon(account, now)],
        "owned": [] if drafts else catalogue.list_for(str(request.user.pk)).items,
    }
    return render(request, "products/review.html", context)


def _drafts(found: list[Post], now: datetime) -> list[Draft]:
    """The posts with their products; each product is read once."""
    keys = {(post.user_id, post.product_id) for post in found}
    owners = {key: catalogue.find(*key) for key in keys}
    used = {(post.user_id, post.account) for post in found if post.account}
    accounts = {key: connections.find(*key) for key in used}
    return [
        Draft(
            post,
            now,
            owners[post.user_id, post.product_id],
            account=accounts.get((post.user_id, post.account)),
        )
        for post in found
    ]


@require_http_methods(["GET", "POST"])
@login_required
def post(request: HtmxRequest, slot: str, product_id: str, outlet: str) -> HttpResponse:
    """One post: shown with its whole history on GET, decided on by POST."""
    now = timezone.now()
    found = post_or_404(request.user.pk, slot, product_id, outlet)
    if request.method == "GET":
        return _show(request, found, now)
    form = DecisionForm(request.POST, prefix=outlet)
    if not form.is_valid():
        wrong = " ".join(str(error) for errors in form.errors.values() for error in errors)
        return _show(request, found, now, wrong, form, status=422)
    try:
        said = _decide(request, found, form, now)
    except TextRefused as refused:
        return _show(request, found, now, str(refused), form, status=422)
    except Conflict as conflict:
        now_found = post_or_404(request.user.pk, slot, product_id, outlet)
        return _show(request, now_found, now, str(conflict), status=409)
    if request.htmx:
        return _show(request, found, now, said=said)
    messages.success(request, said)
    return redirect("review")


def _decide(request: HttpRequest, found: Post, form: DecisionForm, now: datetime) -> str:
    """Carry out one decision. Returns what was done, in words."""
    by, asked = f"person {request.user.pk}", form.cleaned_data
    match asked["action"]:
        case "save":
            if not form.was_edited():
                return "Nothing was changed."
            posts.edit(found, asked["text"], seen=asked["seen"], now=now, by=by)
            return "Saved. It goes out once you approve it."
        case "unlink":
            posts.edit(found, spending.without_links(found), seen=asked["seen"], now=now, by=by)
            return "The link is out. Read it again, then approve it."
        case "approve":
            _approve(found, form, now, by)
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


def _approve(found: Post, form: TextForm, now: datetime, by: str) -> None:
    """Approve the text as it stood on the person's page, edits and all."""
    seen = form.cleaned_data["seen"]
    if form.was_edited():
        posts.edit(found, form.cleaned_data["text"], seen=seen, now=now, by=by)
        seen = posts.text_hash(found)
    posts.approve(found, seen=seen, send_at=_send_at(found, now), now=now, by=by)


def _send_at(found: Post, now: datetime) -> datetime | None:
    """When an approved post goes out: at its slot; if that is over, by the product's choice."""
    slot_at = from_ms(found.slot_at)
    if slot_at > now:
        return slot_at
    product = catalogue.find(found.user_id, found.product_id)
    late = product.late_approval if product else "hold"
    return None if late == "next_slot" and found.state == State.AWAITING_REVIEW else now


def _show(
    request: HtmxRequest,
    found: Post,
    now: datetime,
    error: str = "",
    form: DecisionForm | None = None,
    *,
    said: str = "",
    status: int = 200,
) -> HttpResponse:
    """The post as it now stands: on its page, or for htmx alone, with the foot of its slot where
    the page it came from has one."""
    (plain,) = _drafts([found], now)
    draft = replace(plain, error=error, form=form)
    context = {"draft": draft, "now": now, "said": said}
    if not request.htmx:
        return render(request, "products/post.html", context | {"alone": True}, status=status)
    if "slot" in request.GET:
        slot = read_page(
            Post, found.user_id, condition=Post.key.startswith(found.key.removesuffix(found.outlet))
        )
        context["card"] = SlotCard(_drafts(slot.items, now))
    return render(request, "products/_draft_answer.html", context, status=status)


@require_POST
@login_required
def approve_slot(request: HttpRequest, slot: str, product_id: str) -> HttpResponse:
    """Approve every waiting text of a slot as it stood on the person's page. One that is too long
    and was left so keeps waiting; one that is refused is shown with the reason."""
    product = product_or_404(request.user.pk, product_id)
    now, by = timezone.now(), f"person {request.user.pk}"
    approved, refused = 0, []
    outlets = request.POST.getlist("outlet")
    for found in [post_or_404(request.user.pk, slot, product_id, outlet) for outlet in outlets]:
        outlet = found.outlet
        form = TextForm(request.POST, prefix=outlet)
        if not form.is_valid():
            refused.append(Draft(found, now, product, "This text is far too long.", form))
            continue
        if Draft(found, now).too_many and not form.was_edited():
            continue
        try:
            _approve(found, form, now, by)
            approved += 1
        except TextRefused as problem:
            refused.append(Draft(found, now, product, str(problem), form))
        except Conflict as problem:
            found = post_or_404(request.user.pk, slot, product_id, outlet)
            refused.append(Draft(found, now, product, str(problem)))
    if approved:
        messages.success(request, f"Approved {approved} text{'s' if approved > 1 else ''}.")
    if refused:
        context = {"card": SlotCard(refused), "now": now}
        return render(request, "products/slot.html", context, status=422)
    if not approved:
        messages.error(request, "Nothing was approved: look at the slot again.")
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
    meant = Post(user_id=str(request.user.pk), outlet=outlet, account=request.GET.get("account"))
    return JsonResponse({"length": counted, "limit": posts.limit_for(meant)})


@require_GET
@login_required
def history(request: HttpRequest) -> HttpResponse:
    """Every post of this person, newest slot first: what went out, and what did not and why."""
    page = read_page(Post, str(request.user.pk), cursor=request.GET.get("cursor", ""), size=30)
    context = {"drafts": _drafts(page.items, timezone.now()), "page": page}
    return render(request, "products/history.html", context)


@require_GET
@login_required
def results(request: HttpRequest) -> HttpResponse:
    """What people made of this person's newest posts, by outlet and kind of story."""
    newest = read_page(Post, str(request.user.pk), size=NEWEST).items
    context = {"results": summed_up(newest), "newest": NEWEST}
    return render(request, "products/results.html", context)
