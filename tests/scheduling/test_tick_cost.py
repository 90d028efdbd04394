"""What a tick costs: what is due, and nothing for what is not. No code path scans."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

import products.urls
import scheduling.urls
from integrations import connections
from integrations.connections import Account, Grant
from integrations.sources import SOURCES
from integrations.sources.base import Choice
from integrations.tables import ChangelogEntry
from products import following, posts
from products.states import State
from products.tables import Product
from scheduling import plans
from scheduling.due import run_due_products
from scheduling.tick import run_tick
from slothpost_site import dynamo, provisioning
from slothpost_site.dynamo import shard_of
from slothpost_site.moments import as_key, to_ms
from tests.builders import (
    approved_post,
    at,
    make_plan,
    make_post,
    make_story,
    planned_product,
    reread,
)
from tests.conftest import DYNALITE, free_port, node, serving, signed_in, use_server
from tests.integrations.recorded import delivery, vercel
from tests.site.test_staff import LISTS, every_page

TUESDAY = at("2026-01-06 09:00")
FAR_OFF = at("2027-01-05 09:00")
PRODUCT: dict[str, Any] = {
    "name": "Tidewater",
    "slug": "tidewater",
    "created_at": 1,
    "lead_minutes": 0,
    "plan": make_plan((1, "09:00", "x")).to_json(),
    "plan_version": 1,
}


@contextmanager
def roomy_server() -> Iterator[None]:
    """Empty tables on a dynalite of one's own: to rid a shared one of thousands of items would take
    longer than what is done with them."""
    port = free_port()
    command = [node(), str(DYNALITE), "--port", str(port), "--createTableMs", "0"]
    with contextmanager(serving)(command, port) as url:
        use_server(url)
        list(provisioning.create_tables())
        yield


def load(user_ids: Sequence[str], slot_at: datetime, **details: Any) -> None:
    """A product of each user, due at its slot.

    The nth product of every call has the same id, and with it the same jitter and the same size.
    """
    item = Product("", "", **{**PRODUCT, **details}, next_slot_at=to_ms(slot_at)).serialize()
    requests = []
    for number, user_id in enumerate(user_ids):
        product_id = f"{number:016x}"
        run_at = to_ms(slot_at + plans.jitter(product_id))
        own = {
            "userId": {"S": user_id},
            "productId": {"S": product_id},
            "scheduleStatus": {"S": shard_of("active", product_id)},
            "nextRunAt": {"N": str(run_at)},
        }
        requests.append({"PutRequest": {"Item": {**item, **own}}})
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(put, (requests[at : at + 25] for at in range(0, len(requests), 25))))


def put(requests: list[dict[str, Any]]) -> None:
    """One BatchWriteItem, until the server has taken all of it."""
    left = {Product.Meta.table_name: requests}
    while left:
        left = dynamo.client().batch_write_item(RequestItems=left)["UnprocessedItems"]


def users(group: str, number: int) -> list[str]:
    """Ids of the same length."""
    return [f"{group}-{user:05}" for user in range(number)]


@pytest.fixture
def roomy_store(_tables: str) -> Iterator[None]:
    with roomy_server():
        yield
    use_server(_tables)


@pytest.mark.usefixtures("roomy_store")
def test_two_hundred_due_cost_the_same_among_twenty_thousand_as_alone() -> None:
    now = TUESDAY + timedelta(minutes=1)
    load(users("first", 200), TUESDAY)
    alone = run_due_products(now)
    load(users("idles", 19_600), FAR_OFF)
    load(users("other", 200), TUESDAY)
    among = run_due_products(now)
    assert (alone.found, alone.done) == (among.found, among.done) == (200, 200)
    assert (among.requests, among.capacity_units) == (alone.requests, alone.capacity_units)
    assert alone.requests == 1 + 200 * 2  # one query; for each product its post and its next run


# -- no code path scans ----------------------------------------------------------------------------

# PynamoDB's and botocore's names for reading a whole table; PartiQL reads one without saying so.
SCANS = {"scan", "rate_limited_scan", "execute_statement", "batch_execute_statement"}


def scans_in(path: Path) -> Iterator[str]:
    """The functions of a file that name a scan, as a method or as a text."""
    tree = ast.parse(path.read_text())
    functions = [part for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)]
    for part in ast.walk(tree):
        named = getattr(part, "attr", None) or getattr(part, "value", None)
        if isinstance(named, str) and named.lower() in SCANS:
            around = [f.name for f in functions if f.lineno <= part.lineno <= (f.end_lineno or 0)]
            yield f"{path.relative_to(settings.BASE_DIR)}: {around[-1] if around else 'module'}"


def test_only_the_rebuild_of_a_local_table_scans() -> None:
    packages = ["slothpost_site", "products", "scheduling", "integrations"]
    files = [path for name in packages for path in (settings.BASE_DIR / name).rglob("*.py")]
    scans = [scan for path in files for scan in scans_in(path)]
    assert scans == ["slothpost_site/provisioning.py: _rebuild"]


# What is posted to a page to have it do its work.
ABOUT = {"name": "Slow", "quiet_week": "skip", "late_approval": "hold", "late_limit_minutes": "30"}
FORMS: dict[str, dict[str, str]] = {
    "post": {"x-action": "approve"},
    "approve_slot": {"outlet": "bluesky"},
    "text_length": {"outlet": "x", "text": "Slow."},
    "product_new": ABOUT,
    "product_edit": ABOUT,
    "source": {"action": "unfollow"},
    "outlet": {"account": ""},
    "held": {},
    "connection_check": {},
    "disconnect": {},
    "connect": {},
    "connect_more": {},
    "connect_form": {"key_id": "ABCDE12345", "private_key": "no key"},
    "connect_confirm": {},
    "judge": {},
    "plan": {"timezone": "UTC", "lead_minutes": "0", "version": "1", "x-1": "09:00", "save": ""},
    "plan_pause": {},
    "plan_resume": {},
}


# What a page answers that has nothing to go on with, or a form that was filled in badly.
REFUSALS = {"connect_callback": {400, 404}, "connect_confirm": {400}, "connect_form": {422}}


@pytest.fixture
def operations(store: str) -> Iterator[set[str]]:
    """What is asked of DynamoDB from now on, by the names of its operations."""
    asked: set[str] = set()

    def note(model: Any, **_: Any) -> None:
        asked.add(model.name)

    events = dynamo.client().meta.events
    events.register("before-call.dynamodb", note)
    yield asked
    events.unregister("before-call.dynamodb", note)


def test_deliveries_and_the_tick_ask_by_key(
    operations: set[str], client: Client, settings: Settings
) -> None:
    settings.GITHUB_WEBHOOK_SECRET = settings.VERCEL_CLIENT_SECRET = "the secret"
    release, deployed = delivery("release", action="published"), vercel("deployment.promoted")
    choice = Choice(str(release["repository"]["id"]), "acme/app")
    following.follow(planned_product(), "github", choice, TUESDAY)
    for name, payload, taken in (("github", release, 1), ("vercel", deployed, 0)):
        body = json.dumps(payload).encode()
        headers = {
            "X-GitHub-Event": "release",
            "X-GitHub-Delivery": "guid-1",
            SOURCES[name].SIGNATURE_HEADER: SOURCES[name].signature(body, "the secret"),
        }
        address = reverse(f"webhook_{name}")
        answer = client.post(address, body, "application/json", headers=headers)
        assert answer.json()["taken"] == taken
    reports = run_tick(TUESDAY + timedelta(minutes=1))
    assert [(report.found, report.error) for report in reports.values()] == [
        *((1, ""), (1, "")),
        *((0, ""), (1, "")),
    ]
    assert operations == {"GetItem", "Query", "PutItem", "UpdateItem"}


def test_pages_and_what_is_posted_there_ask_by_key(operations: set[str], sam: User) -> None:
    client, user_id = signed_in(sam), str(sam.pk)
    product = planned_product(user_id=user_id)
    approved_post(product, slot_at=TUESDAY)
    run_tick(TUESDAY)
    waiting = [make_post(product, slot_at=TUESDAY, outlet=outlet) for outlet in ("x", "bluesky")]
    account = connections.connect(user_id, "vercel", Account("icfg_1", "x"), Grant({}), now=TUESDAY)
    parts = {
        "source": "github",
        "provider": "app-store",
        "product_id": product.product_id,
        "slot": as_key(to_ms(TUESDAY)),
        "outlet": "x",
        "service": "x",
        "slug": product.slug,
        "entry_id": next(iter(ChangelogEntry.query(product.slug))).entry_id,
    }
    forms = {name: dict(form) for name, form in FORMS.items()}
    forms["judge"]["key"] = make_story(product).key
    for name in ("held", "connection_check", "disconnect"):
        forms[name]["key"] = account.key
    forms["plan"]["previewed"] = f"0 {PRODUCT['plan']}"
    for post, name in zip(waiting, ("post", "approve_slot"), strict=True):
        seen = {f"{post.outlet}-seen": posts.text_hash(post), f"{post.outlet}-text": post.text}
        forms[name] |= seen
    # A route with a part that has no value above is an error here: a new one is to be walked too.
    for route in (*products.urls.urlpatterns, *scheduling.urls.urlpatterns):
        address = reverse(
            route.name, kwargs={part: parts[part] for part in route.pattern.converters}
        )
        fine = {200, 302, *REFUSALS.get(route.name, ())}
        page = client.get(address, {"key": account.key})
        assert page.status_code in {*fine, 405}, address
        if route.name in forms:
            assert client.post(address, forms.pop(route.name)).status_code in fine, address
    assert forms == {}
    assert {post.state for post in map(reread, waiting)} == {State.APPROVED}
    assert operations == {"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}


def links(client: Client, address: str) -> set[str]:
    """Where a page leads to among the nouns in the admin site."""
    page = client.get(address)
    assert page.status_code == 200, address
    found = (urljoin(address, unescape(link)) for link in re.findall(r'href="(.+?)"', page.text))
    return {link for link in found if re.match("/admin/(products|integrations|scheduling)/.", link)}


def test_staff_and_those_who_watch_ask_by_key(
    operations: set[str], sam: User, settings: Settings
) -> None:
    client = signed_in(sam)
    seen: set[str] = set()
    coming = set(every_page(str(sam.pk))) | {f"{LISTS['product']}?q=1", f"{LISTS['post']}?q=1"}
    while coming:
        seen |= coming
        coming = {link for page in coming for link in links(client, page)} - seen
    verbs = [page for page in seen if re.search("/(pause|resume|retry|release)/$", page)]
    assert [client.post(verb).status_code for verb in verbs] == [302, 302]
    assert operations == {"GetItem", "Query", "PutItem", "UpdateItem"}

    settings.METRICS_TOKEN = "token"
    watched = [
        client.get("/healthz"),
        client.get("/readyz"),
        client.get("/metrics", headers={"Authorization": "Bearer token"}),
    ]
    assert [page.status_code for page in watched] == [200, 503, 200]
    with pytest.raises(CommandError, match="to mend"):
        call_command("doctor")
    assert operations == {"GetItem", "Query", "PutItem", "UpdateItem", "DescribeTable"}
