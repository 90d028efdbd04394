"""What happened to a product, and whether it is a story."""

import logging

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from products import activity
from products.access import activity_or_404, product_or_404
from slothpost_site.dynamo import Conflict
from slothpost_site.htmx import HtmxRequest

logger = logging.getLogger(__name__)

QUEUE_SIZE = 60


@require_GET
@login_required
def activities(request: HttpRequest, product_id: str) -> HttpResponse:
    found = product_or_404(request.user.pk, product_id)
    page = activity.list_for(product_id, request.GET.get("cursor", ""))
    return render(request, "products/activity.html", {"product": found, "page": page})


@require_POST
@login_required
def judge(request: HtmxRequest, product_id: str) -> HttpResponse:
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
        context = {"product": found, "item": item, "answer": True}
        return render(request, "products/_activity.html", context)
    return HttpResponseRedirect(reverse("activity", args=[product_id]))
