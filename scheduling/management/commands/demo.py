import json
import re
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import requests
from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from integrations.sources import SOURCES
from products import catalogue
from products.tables import Product
from scheduling import plans
from scheduling.tick import run_tick
from scheduling.weekly import Slot, WeeklyPlan

EMAIL = "demo@example.com"
ZONE = "Europe/Berlin"
PAYLOADS = Path(__file__).parent.parent / "demo"
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Command(BaseCommand):
    help = "Make a demo account with a product, and send it deliveries, signed, over HTTP."

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
        if product.plan is None:
            lead = timedelta(days=1)
            plans.set_plan(product, _plan(now), lead=lead, version_seen=0, now=now)
        for path in sorted(PAYLOADS.glob("*.json")):
            _send(path, now)
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
    product = catalogue.create(
        user_id,
        name="Slowtide",
        now=now - timedelta(days=7),
        link="https://slowtide.example",
        pitch="Tide tables that load before the tide turns, for people who sail and paddle.",
        audience="sailors and paddlers",
        voice="plain and warm, no emoji",
    )
    catalogue.follow_repository(product, "912345678", "slothpost-demo/slowtide")
    catalogue.follow_vercel_project(product, "prj_SlowtideDemo", "slowtide")
    plans.set_plan(product, _plan(now), lead=timedelta(days=1), version_seen=0, now=timezone.now())
    return product


def _plan(now: datetime) -> WeeklyPlan:
    """9:00 on the next day that has one and three days later: the first draft is due at once."""
    local = now.astimezone(ZoneInfo(ZONE))
    first = (local + timedelta(days=0 if local.hour < 9 else 1)).weekday()
    days = (first, (first + 3) % 7)
    slots = [Slot(day, "09:00", outlet) for day in days for outlet in ("changelog", "bluesky", "x")]
    return WeeklyPlan(ZONE, tuple(slots))


def _send(path: Path, now: datetime) -> None:
    """Deliver a recorded payload, moved to the last days and signed as its source signs."""
    _, name, event, _ = path.name.split(".")
    source = SOURCES[name]
    body = json.dumps(_moved(json.loads(path.read_text()), now)).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": f"demo-{path.stem}",
        source.SIGNATURE_HEADER: source.signature(body, source.secrets()[0]),
    }
    address = f"http://127.0.0.1:{settings.PORT}/webhooks/{name}/"
    answer = requests.post(address, data=body, headers=headers, timeout=10)
    if answer.status_code != 200:
        raise CommandError(f"{path.name} was answered {answer.status_code}: {answer.text.strip()}")


def _moved(payload: Any, now: datetime) -> Any:
    """The payload with its times moved, so that the newest recorded one was an hour ago."""
    recorded = datetime(2026, 11, 29, 17, 0, tzinfo=UTC)
    delta = now.replace(microsecond=0) - timedelta(hours=1) - recorded
    match payload:
        case dict():
            return {
                key: value + int(delta.total_seconds() * 1000)
                if key == "createdAt"
                else _moved(value, now)
                for key, value in payload.items()
            }
        case list():
            return [_moved(value, now) for value in payload]
        case str() if ISO.fullmatch(payload):
            return f"{datetime.fromisoformat(payload) + delta:%Y-%m-%dT%H:%M:%SZ}"
    return payload
