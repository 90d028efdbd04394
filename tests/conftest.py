"""Real servers for the tests: dynalite for everything, moto's server as the second opinion."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, sync_playwright
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from integrations.outlets import OUTLETS
from integrations.providers import CONSENTING, PROVIDERS
from integrations.standins import SERVICES, app_store, bluesky, github, mastodon, vercel, webhook
from integrations.standins.app_store import AppStoreConnect
from integrations.standins.github import GitHub
from integrations.standins.server import StandIns
from integrations.standins.vercel import Vercel
from integrations.tables import Connection
from slothpost_site import dynamo, provisioning
from tests.pages import fields

# A slow hash guards real passwords; here it would only make every test wait.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Static files are looked for when they are asked for, not anew for each of the tests' clients.
settings.WHITENOISE_AUTOREFRESH = True

# No test leaves the machine: what leads outside leads to a port that nothing listens on.
OUTSIDE = (
    *("GITHUB", "GITHUB_API", "VERCEL", "VERCEL_API", "APP_STORE_API", "ITUNES_LOOKUP"),
    *("X", "X_API", "THREADS", "THREADS_API", "LINKEDIN", "LINKEDIN_API"),
)
for service in OUTSIDE:
    setattr(settings, f"{service}_URL", "http://127.0.0.1:9")

DYNALITE = Path(settings.BASE_DIR) / ".dynamodb/node_modules/dynalite/cli.js"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serving(command: list[str], port: int) -> Iterator[str]:
    """A local server as a process, from when it accepts connections until the fixture ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
                assert time.monotonic() < deadline, f"{command[0]} does not answer on {port}"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def node() -> str:
    beside = Path(sys.executable).parent / "node"
    return str(beside) if beside.exists() else shutil.which("node") or "node"


@pytest.fixture(scope="session")
def dynalite_url() -> Iterator[str]:
    port = free_port()
    instant = ["--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"]
    yield from serving([node(), str(DYNALITE), "--port", str(port), *instant], port)


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    port = free_port()
    yield from serving([sys.executable, "-m", "moto.server", "-p", str(port)], port)


def use_server(url: str) -> None:
    """Have DynamoDB be there. To make a client takes longer than most tests: it is kept."""
    settings.DYNAMODB_ENDPOINT_URL = url
    if dynamo.client().meta.endpoint_url != url:
        dynamo.forget_connections()


@pytest.fixture(scope="session")
def _tables(dynalite_url: str) -> str:
    use_server(dynalite_url)
    list(provisioning.create_tables())
    return dynalite_url


def empty_tables() -> None:
    """Remove every item, by its keys."""
    for table in dynamo.all_tables():
        keys = [
            a.attr_name for a in table.get_attributes().values() if a.is_hash_key or a.is_range_key
        ]
        pages = dynamo.client().get_paginator("scan").paginate(TableName=table.Meta.table_name)
        for page in pages:
            for item in page["Items"]:
                dynamo.client().delete_item(
                    TableName=table.Meta.table_name, Key={key: item[key] for key in keys}
                )


@pytest.fixture
def store(_tables: str) -> Iterator[str]:
    """Empty tables on dynalite; the URL of the server."""
    use_server(_tables)
    yield _tables
    use_server(_tables)
    empty_tables()


@pytest.fixture(params=["dynalite", "moto"])
def either_store(request: pytest.FixtureRequest, _tables: str) -> Iterator[str]:
    """Empty tables, once on dynalite and once on moto's server."""
    url = _tables if request.param == "dynalite" else request.getfixturevalue("moto_url")
    use_server(url)
    list(provisioning.create_tables())
    yield url
    empty_tables()
    use_server(_tables)


# -- the services of others, played on this machine -----------------------------------------------


# By the names of the outlets whose posts go there.
OUTLET_SERVICES = {
    name: service
    for service in SERVICES
    if (name := service.__name__.rpartition(".")[2]) in OUTLETS
}


@dataclass(frozen=True)
class Outside:
    """The stand-ins, and the services among them that a test can set up and look at."""

    standins: StandIns
    github: GitHub
    vercel: Vercel
    app_store: AppStoreConnect
    outlets: dict[str, Any]  # the services that posts go to, by the names of their outlets


@pytest.fixture(scope="session")
def standin_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the stand-ins keep the keys that they make once."""
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def outside(standin_keys: Path, settings: Settings) -> Iterator[Outside]:
    """Everybody's service as it is at first, with the settings that lead there."""
    standins = StandIns(site_url="http://127.0.0.1:9").start()
    found = Outside(
        standins,
        github.add_to(standins, standin_keys),
        vercel.add_to(standins, standin_keys),
        app_store.add_to(standins, standin_keys),
        {name: service.add_to(standins, standin_keys) for name, service in OUTLET_SERVICES.items()},
    )
    settings.SITE_URL = standins.site_url
    hosts: dict[str, str] = {}
    for service in SERVICES:
        for name, value in service.settings_for(standins).items():
            if name == "OPERATOR_HOSTS":
                hosts |= json.loads(value)
            else:
                setattr(settings, name, value)
    settings.OPERATOR_HOSTS = hosts
    yield found
    standins.stop()


# What is typed to connect an account where there is no consent page, by the name of its outlet.
TYPED: dict[str, dict[str, str]] = {
    "bluesky": {"handle": bluesky.HANDLE, "password": bluesky.APP_PASSWORD},
    "mastodon": {"instance": mastodon.HOST},
    "webhook": {"url": webhook.URL},
}


def connected_to(outside: Outside, name: str, user_id: str, now: datetime) -> Connection:
    """An account at an outlet, connected as a person's browser would."""
    provider = PROVIDERS[name]
    if name not in CONSENTING:
        return provider.finish(user_id, TYPED[name], {}, now).connection
    callback = f"{outside.standins.site_url}/connections/{provider.PATH}/callback/"
    begun = CONSENTING[name].start("a-state", callback, TYPED.get(name, {}), now)
    shown = fields(requests.get(begun.url, timeout=5))
    asked = {key: values[0] for key, values in parse_qs(urlsplit(begun.url).query).items()}
    form = {**asked, **{key: values[0] for key, values in shown.items()}, "answer": "allow"}
    back = requests.post(begun.url, data=form, timeout=5, allow_redirects=False)
    came = {k: v[0] for k, v in parse_qs(urlsplit(back.headers["Location"]).query).items()}
    assert came.pop("state") == "a-state"
    return provider.finish(user_id, came, {**begun.kept, "callback_url": callback}, now).connection


# -- a site and a browser --------------------------------------------------------------------------

BROWSER_ZONE = "Europe/Berlin"


@pytest.fixture
def site(live_server: LiveServer, settings: Settings) -> str:
    settings.SITE_URL = live_server.url
    settings.CSRF_TRUSTED_ORIGINS = [live_server.url]
    return str(live_server.url)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """A phone's browser in Berlin; any error on its console fails the test."""
    # Playwright runs an event loop in this thread, which Django takes for asynchronous code.
    monkeypatch.setitem(os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    errors: list[str] = []

    def note(kind: str, text: str) -> None:
        # A page that says what went wrong has a status that says so too: that is no error of ours.
        if kind == "error" and not text.startswith("Failed to load resource"):
            errors.append(text)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        context = browser.new_context(
            timezone_id=BROWSER_ZONE, viewport={"width": 390, "height": 844}
        )
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: note(message.type, message.text))
        yield page
        browser.close()
    assert errors == []


# -- the cast: Alice owns, Bob is another customer, Sam is staff -----------------------------------


def person(name: str, **extra: bool) -> User:
    return User.objects.create_user(name, f"{name}@example.com", "correct horse", **extra)


@pytest.fixture
def alice(db: None) -> User:
    return person("alice")


@pytest.fixture
def bob(db: None) -> User:
    return person("bob")


@pytest.fixture
def sam(db: None) -> User:
    return person("sam", is_staff=True, is_superuser=True)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
