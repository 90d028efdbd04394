"""What happened to a product, and whether it is a story."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from products import activity, stories
from products.access import activity_or_404, product_or_404
from products.stories import Verdict
from products.tables import Activity, Product
from slothpost_site.dynamo import Conflict
from slothpost_site.htmx import HtmxRequest


@require_GET
@login_required
def activities(request: HttpRequest, product_id: str) -> HttpResponse:
    found = product_or_404(request.user.pk, product_id)
    page = activity.list_for(product_id, request.GET.get("cursor", ""))
    context = {"product": found, "page": page, "verdicts": _verdicts(found, page.items)}
    return render(request, "products/activity.html", context)


@require_POST
@login_required
def judge(request: HtmxRequest, product_id: str) -> HttpResponse:
    """Overrule what one activity was taken for: `tell` is "yes", "no", "elsewhere"
    (they announced it themselves) or whatever it is not now."""
    found = product_or_404(request.user.pk, product_id)
    item = activity_or_404(found, request.POST.get("key", ""))
    [verdict] = _verdicts(found, [item])
    wanted = request.POST.get("tell", "no" if verdict.is_story else "yes")
    try:
        if wanted == "yes" and not verdict.is_story:
            why_not = f"ignored: {verdict.ignored}" if verdict.ignored else "part of another story"
            activity.tell(item, why_not, timezone.now())
        elif wanted == "no" and verdict.is_story:
            activity.leave_out(item)
        elif wanted == "elsewhere" and verdict.is_story:
            activity.leave_out(item, activity.ELSEWHERE)
    except Conflict:
        # Somebody judged it meanwhile, or another delivery told more of it: shown as it is now.
        item = activity_or_404(found, item.key)
    if request.htmx:
        [verdict] = _verdicts(found, [item])
        context = {"product": found, "verdict": verdict, "answer": True}
        return render(request, "products/_activity.html", context)
    return HttpResponseRedirect(reverse("activity", args=[product_id]))


def _verdicts(product: Product, items: list[Activity]) -> list[Verdict]:
    """What each of these is, in the order in which they are given."""
    around = activity.around(product.product_id, items)
    verdicts = stories.judge(around, product.never_mention)
    of = {verdict.item.key: verdict for verdict in verdicts}
    return [of[item.key] for item in items]
