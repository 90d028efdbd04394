"""A person's products: what each is, and what it follows."""

import logging

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from integrations import deliveries
from products import catalogue
from products.access import product_or_404
from products.forms import (
    ProductForm,
)
from products.views.outlets import posting_of
from products.views.sources import listening

logger = logging.getLogger(__name__)

QUEUE_SIZE = 60


@require_GET
@login_required
def products(request: HttpRequest) -> HttpResponse:
    page = catalogue.list_for(str(request.user.pk), request.GET.get("cursor", ""))
    return render(request, "products/products.html", {"page": page, "now": timezone.now()})


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
    context = {
        "product": found,
        "now": timezone.now(),
        "site_url": settings.SITE_URL,
        "listening": listening(found),
        "posting": posting_of(found),
        "deliveries": deliveries.list_for_product(found.product_id, request.GET.get("cursor", "")),
    }
    return render(request, "products/product.html", context)


def _status(form: ProductForm) -> int:
    return 422 if form.is_bound else 200
