"""Real servers for the tests: dynalite for everything, moto's server as the second opinion."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from integrations.standins import app_store, github, vercel
from integrations.standins.app_store import AppStoreConnect
from integrations.standins.github import GitHub
from integrations.standins.server import StandIns
from integrations.standins.vercel import Vercel
from slothpost_site import dynamo, provisioning

# A slow hash guards real passwords; here it would only make every test wait.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# No test leaves the machine: what leads outside leads to a port that nothing listens on.
for outside in ("GITHUB", "GITHUB_API", "VERCEL", "VERCEL_API", "APP_STORE_API", "ITUNES_LOOKUP"):
    setattr(settings, f"{outside}_URL", "http://127.0.0.1:9")

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
    settings.DYNAMODB_ENDPOINT_URL = url
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


@dataclass(frozen=True)
class Outside:
    """The stand-ins, and the services among them that a test can set up and look at."""

    standins: StandIns
    github: GitHub
    vercel: Vercel
    app_store: AppStoreConnect


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
    )
    settings.SITE_URL = standins.site_url
    for service in (github, vercel, app_store):
        for name, value in service.settings_for(standins).items():
            setattr(settings, name, value)
    yield found
    standins.stop()


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
