"""A product's public changelog: a page, its entries, and an Atom feed. No account, no cookie."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape, urlize
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from integrations.outlets import changelog
from integrations.tables import ChangelogEntry
from products import catalogue
from products.tables import Product
from slothpost_site.moments import from_ms

FEED_SIZE = 30
POINTS = ("- ", "• ")

cacheable = cache_control(public=True, max_age=60)


@dataclass(frozen=True)
class Entry:
    """A published text as its readers see it."""

    item: ChangelogEntry
    product: Product

    @property
    def title(self) -> str:
        """The first line: an entry begins with what it is about."""
        return str(self.item.text).strip().partition("\n")[0].lstrip("# ")

    @property
    def body(self) -> SafeString:
        """The rest as HTML: paragraphs, lists of lines that begin with a dash, links."""
        return render_text(str(self.item.text).strip().partition("\n")[2])

    @property
    def summary(self) -> str:
        rest = " ".join(str(self.item.text).split())
        return rest if len(rest) <= 200 else rest[:199].rsplit(" ", 1)[0] + "…"

    @property
    def published_at(self) -> datetime:
        return from_ms(self.item.published_at)

    @property
    def path(self) -> str:
        return reverse("changelog_entry", args=[self.item.slug, self.item.entry_id])

    @property
    def url(self) -> str:
        return f"{settings.SITE_URL}{self.path}"


def render_text(text: str) -> SafeString:
    """Plain text as HTML, escaped: blank lines part paragraphs, "- " begins a point of a list."""
    html = []
    for block in text.strip().split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        for are_points, group in groupby(lines, key=lambda line: line.startswith(POINTS)):
            if are_points:
                points = (f"<li>{_linked(line[2:])}</li>" for line in group)
                html.append(f"<ul>{''.join(points)}</ul>")
            else:
                html.append(f"<p>{'<br>'.join(map(_linked, group))}</p>")
    return mark_safe("".join(html))  # noqa: S308  every line went through escape


def _linked(line: str) -> str:
    return urlize(escape(line), nofollow=True)


@require_safe
@cacheable
def page(request: HttpRequest, slug: str) -> HttpResponse:
    product = _product_or_404(slug)
    found = changelog.entries(slug, request.GET.get("cursor", ""))
    context = {
        "product": product,
        "entries": [Entry(item, product) for item in found.items],
        "page": found,
        "host": urlsplit(product.link or "").hostname,
        "url": settings.SITE_URL + reverse("changelog", args=[slug]),
    }
    return render(request, "products/changelog.html", context)


@require_safe
@cacheable
def entry(request: HttpRequest, slug: str, entry_id: str) -> HttpResponse:
    product = _product_or_404(slug)
    item = changelog.entry(slug, entry_id)
    if item is None:
        raise Http404("There is no such entry.")
    shown = Entry(item, product)
    context = {"product": product, "entry": shown, "url": shown.url}
    return render(request, "products/changelog_entry.html", context)


@require_safe
@cacheable
def feed(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest entries as Atom (RFC 4287)."""
    product = _product_or_404(slug)
    url = settings.SITE_URL + reverse("changelog", args=[slug])
    atom = Atom1Feed(
        title=f"{product.name}: what is new",
        link=url,
        description=product.pitch or f"What is new in {product.name}",
        author_name=product.name,
        feed_url=settings.SITE_URL + reverse("changelog_feed", args=[slug]),
        feed_guid=url,
    )
    for item in changelog.entries(slug, size=FEED_SIZE).items:
        shown = Entry(item, product)
        atom.add_item(
            title=shown.title,
            link=shown.url,
            unique_id=shown.url,
            description=shown.body,
            pubdate=shown.published_at,
            updateddate=shown.published_at,
        )
    return HttpResponse(atom.writeString("utf-8"), content_type=atom.content_type)


def _product_or_404(slug: str) -> Product:
    product = catalogue.find_by_slug(slug)
    if product is None:
        raise Http404("There is no such changelog.")
    return product
