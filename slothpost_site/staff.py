"""Django's admin site over DynamoDB: lists paged by key, item pages, and verbs with a question.

Django knows each noun by an unmanaged model, its doorway, which has permissions and log entries
but no table and no rows. What is shown comes from DynamoDB by key: never a scan, never a count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.views.decorators.http import require_http_methods, require_safe
from pynamodb.exceptions import AttributeDeserializationError

from slothpost_site import dynamo
from slothpost_site.dynamo import Conflict, Table
from slothpost_site.moments import from_ms
from slothpost_site.paging import Page
from slothpost_site.templatetags.moments import full_moment

if TYPE_CHECKING:
    _ModelAdmin: TypeAlias = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin

# The longest sort key that DynamoDB takes, in bytes.
LONGEST_KEY = 1024
# An attribute of a wrong type, or text that is not the JSON it should be.
UNREADABLE: tuple[type[Exception], ...] = (AttributeDeserializationError, ValueError)


class Doorway(models.Model):
    """A noun of DynamoDB as Django's permissions and admin log know it. Each says in its Meta which
    permissions there are: "view", and "change" where it has verbs."""

    id = models.TextField(primary_key=True)
    title = models.TextField()

    class Meta:
        abstract = True
        managed = False

    def __str__(self) -> str:
        return self.title


@dataclass(frozen=True)
class Listing:
    """One list of a table: `read(cursor=...)` gives a page of it, `columns` maps headings to what
    stands below them. The first column links to the item."""

    name: str
    label: str
    read: Callable[..., Page[Any]]
    columns: Mapping[str, Callable[[Any], object]]


@dataclass(frozen=True)
class Verb:
    """Something that staff can do to an item, after a question.

    `act` gets the item, the time and who asked. `fits` says, at a time, whether to offer it; the
    act itself decides whether it is possible.
    """

    name: str
    label: str
    question: str
    done: str
    act: Callable[[Any, datetime, str], None]
    fits: Callable[[Any, datetime], bool]


class TableAdmin(_ModelAdmin):
    """A table in the admin site.

    Subclasses name the table, the attributes of its key and the verbs, and say in `listings`,
    `of_user`, `title` and `details` what is shown: only what is named there, never all of an item.
    """

    table: type[Table]
    keys: tuple[str, ...]
    verbs: tuple[Verb, ...] = ()
    # What a verb raises, with a sentence, when it changes nothing.
    refusals: tuple[type[Exception], ...] = (Conflict, *UNREADABLE)
    searches_users = False

    def listings(self, wanted: str, now: datetime) -> list[Listing]:
        """The lists to choose from, the default one first; `wanted` is what the address asks."""
        raise NotImplementedError

    def of_user(self, user_id: str) -> Listing:
        """All that a user has. Only asked where `searches_users`."""
        raise NotImplementedError

    def title(self, item: Any) -> str:
        """What the item is called, as plain text; from its key and index attributes alone."""
        raise NotImplementedError

    def details(self, item: Any, now: datetime) -> list[tuple[str, object]]:
        """The rows of the item's page; a value of None or "" is left out."""
        raise NotImplementedError

    # -- who may do what ---------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return bool(self.verbs) and super().has_change_permission(request)

    def get_urls(self) -> list[URLPattern]:
        """Only our own pages: those of ModelAdmin would ask the database for rows."""
        noun = f"{self.opts.app_label}_{self.opts.model_name}"
        wrap = self.admin_site.admin_view
        item = "<path:object_id>/"
        verb_view = require_http_methods(["GET", "POST"])(self.verb_view)
        return [
            path("", wrap(require_safe(self.list_view)), name=f"{noun}_changelist"),
            path(f"{item}change/", wrap(require_safe(self.item_view)), name=f"{noun}_change"),
            path(f"{item}<slug:verb>/", wrap(verb_view), name=f"{noun}_verb"),
        ]

    # -- pages -------------------------------------------------------------------------------------

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """One page of one list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wanted = request.GET.get("list", "")
        listings = self.listings(wanted, timezone.now())
        search = _UserSearch(request.GET)
        listing = self._searched(search)
        chosen = listing or next(
            (one for one in listings if one.name == wanted or not wanted), None
        )
        if chosen is None:
            raise Http404("There is no such list.")
        page, problem = Page[Any]([]), ""
        try:
            page = chosen.read(cursor=request.GET.get("cursor", ""))
        except UNREADABLE as error:
            problem = f"An item on this page cannot be read: {error}"
        here = {"q": search.cleaned_data["q"]} if listing else {"list": chosen.name}
        context = {
            "listings": listings,
            "chosen": chosen,
            "search": search if self.searches_users else None,
            "rows": [
                (self.address(item), [show(item) for show in chosen.columns.values()])
                for item in page.items
            ],
            "problem": problem,
            "first": f"?{urlencode(here)}" if "cursor" in request.GET else "",
            "next": page.next_cursor and f"?{urlencode(here | {'cursor': page.next_cursor})}",
        }
        title = str(self.opts.verbose_name_plural).capitalize()
        return self._page(request, "list", title, context)

    def item_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What an item says, what can be done about it, and what staff did."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = timezone.now()
        title, problem, verbs = unquote(object_id), "", []
        details: list[tuple[str, object]] = []
        try:
            item = self._item_or_404(object_id)
            title, details = self.title(item), self.details(item, now)
            if self.has_change_permission(request):
                verbs = [verb for verb in self.verbs if verb.fits(item, now)]
        except UNREADABLE as error:
            problem = f"This item cannot be read: {error}"
        log = LogEntry.objects.filter(
            content_type=ContentType.objects.get_for_model(self.model),
            object_id=unquote(object_id),
        )
        context = {
            "details": [(label, value) for label, value in details if value not in (None, "")],
            "problem": problem,
            "verbs": verbs,
            "log": log.select_related("user")[:20],
        }
        return self._page(request, "item", title, context)

    def verb_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Ask first; by POST, act and keep who did it. What is not kept is not done."""
        chosen = next((one for one in self.verbs if one.name == verb), None)
        if chosen is None:
            raise Http404("There is no such action.")
        if not self.has_change_permission(request):
            raise PermissionDenied
        try:
            item = self._item_or_404(object_id)
            if request.method != "POST":
                context = {"verb": chosen, "address": self.address(item), "item": self.title(item)}
                return self._page(request, "action", chosen.label, context)
            with transaction.atomic():
                door = self.model(id=self._object_id(item), title=self.title(item))
                self.log_change(request, door, chosen.done)
                chosen.act(item, timezone.now(), f"staff {request.user.pk}")
        except self.refusals as refusal:
            messages.error(request, str(refusal))
        else:
            messages.success(request, chosen.done)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", object_id)

    def _page(
        self, request: HttpRequest, name: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        site = self.admin_site.each_context(request)
        context = {**site, "opts": self.opts, "title": title, **context}
        return TemplateResponse(request, f"admin/table_{name}.html", context)

    # -- keys and addresses ------------------------------------------------------------------------

    def address(self, item: Any) -> str:
        return address(self.opts.label_lower, self._object_id(item))

    def _object_id(self, item: Any) -> str:
        return "/".join(getattr(item, key) for key in self.keys)

    def _item_or_404(self, object_id: str) -> Any:
        """The item as it is now, by what `_object_id` made of its key."""
        parts = unquote(object_id).split("/", len(self.keys) - 1)
        item = None
        if len(parts) == len(self.keys) and all(0 < len(p.encode()) <= LONGEST_KEY for p in parts):
            item = dynamo.get(self.table, *parts)
        if item is None:
            raise Http404("It is gone, or never was.")
        return item

    def _searched(self, search: "_UserSearch") -> Listing | None:
        """The list of the user who is searched for, if one is."""
        if not self.searches_users or not search.is_valid() or not search.cleaned_data["q"]:
            return None
        user_id = search.user_id()
        if user_id is None:
            return Listing("", "Of a user", lambda cursor: Page([]), {})
        return self.of_user(user_id)


class _UserSearch(forms.Form):
    q = forms.CharField(label="E-mail or user id", max_length=254, required=False)

    def user_id(self) -> str | None:
        """The id that was typed (it may be of somebody who left), or the id behind an e-mail
        address; None when nobody has it."""
        typed: str = self.cleaned_data["q"]
        if typed.isascii() and typed.isdigit():
            return typed
        found = get_user_model().objects.filter(email__iexact=typed).values_list("pk", flat=True)
        return str(found[0]) if found else None


# -- what apps show in columns and details ---------------------------------------------------------


def address(model: str, object_id: str) -> str:
    """The page of an item of a doorway, such as "products.post"."""
    return reverse(f"admin:{model.replace('.', '_')}_change", args=[quote(object_id)])


def link(model: str, object_id: str, words: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', address(model, object_id), words)


def when(ms: float | None) -> str | None:
    """Epoch milliseconds as a date and time in UTC; None stays None."""
    return None if ms is None else full_moment(ms)


def late(ms: float, now: datetime) -> str:
    """For how long something is due: "2 hours, 5 minutes"."""
    return timesince(from_ms(ms), now)


def owner(user_id: str, model: str) -> SafeString:
    """Who owns an item, with a link to all that they have of a doorway."""
    users = get_user_model().objects.filter(pk=user_id).values_list("email", flat=True)
    who = f"{users[0]} (user {user_id})" if users else f"user {user_id}, who is gone"
    listed = reverse(f"admin:{model.replace('.', '_')}_changelist")
    return format_html('<a href="{}?q={}">{}</a>', listed, user_id, who)
