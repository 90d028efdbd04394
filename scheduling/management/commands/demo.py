import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from integrations.sources.app_store import find_app
from integrations.sources.base import Choice
from integrations.sources.github import find_repository
from products import catalogue, following
from products.tables import Product
from scheduling import plans
from scheduling.fetching import run_due_fetches
from scheduling.tick import run_tick
from scheduling.weekly import Slot, WeeklyPlan

EMAIL = "demo@example.com"
ZONE = "Europe/Berlin"


class Command(BaseCommand):
    help = "Make a demo account with a product that follows what the stand-ins show."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo is for development: its password is printed.")
        password_file = Path(settings.DATA_DIR) / "secrets" / "demo-password"
        if not User.objects.filter(email=EMAIL).exists():
            _make_account(password_file)
        product = self._product(str(User.objects.get(email=EMAIL).pk))
        self.stdout.write(f"\n  SlothPost is at {settings.SITE_URL}")
        self.stdout.write(f"  Sign in as {EMAIL} with the password {password_file.read_text()}")
        self.stdout.write("  This account is staff too:")
        self.stdout.write(f"    what is late or failing  {settings.SITE_URL}/admin/")
        self.stdout.write(f"    the public changelog     {settings.SITE_URL}/c/{product.slug}/")
        self.stdout.write(
            f"  Ctrl-C stops everything; the data stays in {settings.DATA_DIR.name}\n\n"
        )

    def _product(self, user_id: str) -> Product:
        """The demo's product, what happened to it, and its draft. Every step can be repeated, so a
        first start that was broken off is completed by the next."""
        now = timezone.now()
        found = catalogue.list_for(user_id).items
        product = found[0] if found else _make_product(user_id, now)
        if settings.STANDINS and not following.followed(product):
            _follow(product, now)
        if product.plan is None:
            lead = timedelta(days=1)
            plans.set_plan(product, _plan(now), lead=lead, version_seen=0, now=now)
        run_due_fetches(now)  # first, so that the draft need not wait a minute for it
        run_tick(timezone.now())
        return product


def _make_account(password_file: Path) -> None:
    password = secrets.token_urlsafe(9)
    password_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    password_file.write_text(password)
    password_file.chmod(0o600)
    user = User.objects.create_superuser("demo", EMAIL, password)
    EmailAddress.objects.create(user=user, email=EMAIL, verified=True, primary=True)


def _make_product(user_id: str, now: datetime) -> Product:
    return catalogue.create(
        user_id,
        name="Slowtide",
        now=now - timedelta(days=7),
        link="https://slowtide.example",
        pitch="Tide tables that load before the tide turns, for people who sail and paddle.",
        audience="sailors and paddlers",
        voice="plain and warm, no emoji",
    )


def _follow(product: Product, now: datetime) -> None:
    """What the stand-ins show to everybody; what takes an account is left to click through."""
    repository = Choice(*find_repository("slothpost-demo/slowtide", now))
    following.follow(product, "github", repository, now)
    app = find_app("https://apps.apple.com/us/app/slowtide/id6441234567", now)
    following.follow(product, "app_store", app, now)


def _plan(now: datetime) -> WeeklyPlan:
    """9:00 on the next day that has one and three days later: the first draft is due at once."""
    local = now.astimezone(ZoneInfo(ZONE))
    first = (local + timedelta(days=0 if local.hour < 9 else 1)).weekday()
    days = (first, (first + 3) % 7)
    slots = [Slot(day, "09:00", outlet) for day in days for outlet in ("changelog", "bluesky", "x")]
    return WeeklyPlan(ZONE, tuple(slots))
