"""No token, key or webhook secret is shown, logged, mailed or stored in the open. Marked ones are
planted, everything is done that can be done with them, and everything is searched."""

import copy
import io
import logging
import logging.config
import traceback
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.views.debug import ExceptionReporter
from pytest_django import Settings

from integrations import connections
from integrations.connections import Account, Grant
from integrations.errors import Failure
from integrations.sources import SOURCES, app_store
from integrations.sources.base import Choice, Follow
from integrations.standins.github import SLOWTIDE
from integrations.standins.server import Fault
from integrations.tables import Connection
from products import following
from products.tables import Product
from scheduling.tick import run_tick
from slothpost_site.dynamo import all_tables, client
from tests.builders import planned_product
from tests.conftest import Outside, signed_in
from tests.site.test_staff import every_page

pytestmark = pytest.mark.usefixtures("store")

MARK = "PLANTED"
KEYS = ["PLANTED-token-key-0123456789abcdef", "PLANTED-token-key-fedcba9876543210"]
LAPSED = timedelta(hours=1)


@pytest.fixture
def planted(outside: Outside, sam: User, settings: Settings) -> list[Connection]:
    """An account of each source that holds a marked secret, on a site whose own are marked too."""
    settings.TOKEN_KEYS = KEYS
    settings.GITHUB_CLIENT_SECRET = settings.VERCEL_CLIENT_SECRET = f"{MARK}-client"
    settings.GITHUB_WEBHOOK_SECRET = settings.APP_STORE_WEBHOOK_SECRET = f"{MARK}-webhook"
    settings.GITHUB_PRIVATE_KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{MARK}\n-----END-----"
    settings.SECRET_KEY = f"{MARK}-secret-key-{'0123456789' * 5}"
    settings.METRICS_TOKEN = f"{MARK}-metrics"
    now = timezone.now()
    lapsed = {"expires_at": now - LAPSED, "refresh_at": now - LAPSED}
    secrets = {name: f"{MARK}-{name}" for name in ("token", "refresh_token", "private_key")}
    accounts = {
        "github": Account("7001", "slothpost-demo", "github#user:7001"),
        "vercel": Account("icfg_1", "Slow Boats", "vercel#icfg_1", {"teamId": "team_slowboats"}),
        "app_store": Account("SLOTHDEMO1", "Key", details={"issuer": ""}),
    }
    return [
        connections.connect(
            str(sam.pk), source, account, Grant(secrets, **lapsed), now=now - LAPSED
        )
        for source, account in accounts.items()
    ]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Every line that anything logs, at the finest level, as the site writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    configured = logging.config.DictConfigurator(site_settings.LOGGING)
    handler.setFormatter(
        configured.configure_formatter(copy.deepcopy(site_settings.LOGGING["formatters"]["json"]))
    )
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    # What is asked of DynamoDB in the test's own set-up is not what a person's log would hold.
    logging.getLogger("botocore").setLevel(logging.INFO)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def use_everything(planted: list[Connection], outside: Outside, now: datetime) -> list[str]:
    """Do with the accounts whatever there is to do, and fail in every way; what was said of it."""
    said = []
    for fault in (None, Fault(status=500, times=99), Fault(status=401, times=99)):
        outside.standins.faults[:] = [fault] if fault else []
        for connection in planted:
            source = SOURCES[connection.provider]
            follow = Follow(str(SLOWTIDE), "slowtide", connection, now - timedelta(days=9))
            for do in (
                lambda s=source, c=connection: s.choices(c.user_id, now),
                lambda s=source, c=connection: s.check(c, now),
                lambda s=source, c=connection: s.renew(c, now),
                lambda s=source, f=follow: s.fetch(f, now),
            ):
                try:
                    do()
                except Failure as failure:
                    said.append("".join(traceback.format_exception(failure)))
                    said.append(repr(failure.__dict__))
    return said


def every_answer(user: User, product: Product, planted: list[Connection]) -> Iterator[str]:
    """Every page that a person and staff can see, also those that say what failed."""
    visitor = signed_in(user)
    parts = [product.product_id]
    pages = [reverse(name) for name in ("review", "products", "history", "connections")]
    pages += [reverse(name, args=parts) for name in ("product", "product_edit", "plan", "activity")]
    pages += [reverse("source", args=[*parts, source.PATH]) for source in SOURCES.values()]
    pages += [reverse("disconnect") + f"?key={c.key.replace('#', '%23')}" for c in planted]
    pages += [reverse("connect_callback", args=["github"]) + f"?code={MARK}-code&state=x"]
    pages += [*every_page(str(user.pk)), "/admin/", "/readyz", "/healthz", "/metrics"]
    for page in pages:
        answer = visitor.get(page)
        yield answer.content.decode() + str(answer.headers)
    for connection in planted:
        answer = visitor.post(reverse("connection_check"), {"key": connection.key}, follow=True)
        yield answer.content.decode()
    form = {"issuer_id": "", "key_id": "ABCDE12345", "private_key": f"{MARK}-typed"}
    yield visitor.post(reverse("connect_form", args=["app-store"]), form).content.decode()


def test_nothing_that_is_secret_is_seen_anywhere(
    planted: list[Connection], outside: Outside, sam: User, log: io.StringIO
) -> None:
    now = timezone.now()
    product = planned_product(user_id=str(sam.pk), now=now)
    for source, connection in zip(("github", "vercel", "app_store"), planted, strict=True):
        choice = Choice(str(SLOWTIDE), "slowtide", via=connection.key, private=True)
        following.follow(product, source, choice, now)
    said = use_everything(planted, outside, now)
    outside.standins.faults[:] = [Fault(status=401, times=99)]
    run_tick(now)
    run_tick(now + timedelta(minutes=1))
    said += every_answer(sam, product, planted)
    outside.standins.faults.clear()
    said += [str(message.message()) for message in mail.outbox]
    out = io.StringIO()
    for command in ("doctor", "rotate_token_keys"):
        try:
            call_command(command, stdout=out, stderr=out)
        except CommandError as error:
            out.write(str(error))
    said.append(out.getvalue())
    for connection in planted:
        said.append(repr(connection))
        said.append(SOURCES[connection.provider].disconnect(connection, now))
    said.append(log.getvalue())

    assert len(said) > 60
    assert len(mail.outbox) >= 1
    assert [text[max(0, text.find(MARK) - 200) :][:300] for text in said if MARK in text] == []


def test_what_is_stored_holds_no_secret_in_the_open(planted: list[Connection]) -> None:
    stored = [
        str(item)
        for table in all_tables()
        for item in client().scan(TableName=table.Meta.table_name)["Items"]
    ]
    assert len(stored) >= len(planted)
    assert [text for text in stored if MARK in text] == []
    assert {connections.secrets_of(c)["token"] for c in planted} == {f"{MARK}-token"}


def test_an_error_page_for_developers_hides_the_way_back_and_the_key(
    outside: Outside, alice: User, settings: Settings
) -> None:
    """Django's own page of an error shows what every function had at hand."""
    settings.DEBUG = False
    visitor = signed_in(alice)
    visitor.raise_request_exception = False
    outside.standins.faults.append(Fault(status=200, body="[]"))
    started = visitor.post(reverse("connect", args=["github"]))
    state = started.headers["Location"].split("state=")[1].split("&")[0]
    answer = visitor.get(
        reverse("connect_callback", args=["github"]), {"state": state, "code": f"{MARK}-code"}
    )
    assert answer.status_code == 502
    assert MARK not in answer.content.decode()
    report = ExceptionReporter(None, RuntimeError, RuntimeError("x"), None)
    assert MARK not in report.get_traceback_html()


def test_the_secret_of_an_apps_hook_is_not_its_address(settings: Settings) -> None:
    settings.TOKEN_KEYS = KEYS
    hook = app_store.hook_of("1", "6441234567")
    assert len(set(app_store.hook_secrets(hook))) == 2
    assert [secret for secret in app_store.hook_secrets(hook) if secret in hook] == []
    assert MARK not in "".join(app_store.hook_secrets(hook))


def test_a_stranger_gets_no_connections() -> None:
    assert Client().get(reverse("connections")).status_code == 302
