"""Each unsafe setting is refused in a sentence, and a safe site has nothing said about it."""

import os
import subprocess
import sys
import zoneinfo
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage
from pytest_django import Settings

from slothpost_site import checks
from tests.conftest import OUTSIDE

# The checks only read the setting, so nothing is surprised by another value.
pytestmark = pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")

WAL = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"}


def found() -> list[str]:
    messages: list[CheckMessage] = [message for check in checks.CHECKS for message in check()]
    assert all(message.hint for message in messages)
    return [str(message.id).removeprefix("slothpost.") for message in messages]


@pytest.fixture
def development(settings: Settings) -> Settings:
    """The settings of a developer's machine with an empty environment."""
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["localhost"]
    return settings


@pytest.fixture
def production(settings: Settings) -> Settings:
    """The settings of a site that is as it should be."""
    settings.DEBUG = False
    settings.SECRET_KEY = "k" * 50
    settings.ALLOWED_HOSTS = ["slothpost.example"]
    settings.SITE_URL = "https://slothpost.example"
    settings.DYNAMODB_ENDPOINT_URL = ""
    settings.GITHUB_WEBHOOK_SECRET = settings.VERCEL_CLIENT_SECRET = "a secret"
    settings.TOKEN_KEYS = ["k" * 32]
    for service in OUTSIDE:
        setattr(settings, f"{service}_URL", f"https://{service.lower()}.example")
    settings.METRICS_TOKEN = "a token"
    settings.EMAIL_HOST = "mail.slothpost.example"
    engine = "django.db.backends.postgresql"
    settings.DATABASES = {"default": {"ENGINE": engine, "NAME": "slothpost"}}
    return settings


def test_nothing_is_said_about_a_developers_machine(development: Settings) -> None:
    assert found() == []


def test_nothing_is_said_about_a_safe_production_site(production: Settings) -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SECRET_KEY", "k" * 49, "E001"),
        ("TOKEN_KEYS", [], "E014"),
        ("TOKEN_KEYS", ["k" * 32, "k" * 31], "E014"),
        ("GITHUB_APP_ID", "1", "E015"),
        ("VERCEL_CLIENT_ID", "oac_1", "E015"),
        ("GITHUB_API_URL", "http://api.github.example", "E016"),
        ("VERCEL_API_URL", "api.vercel.example", "E016"),
        ("EMAIL_HOST", "", "E013"),
        ("WEBHOOK_RATE_LIMIT", "lots", "E012"),
        ("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"], "E002"),
        ("ALLOWED_HOSTS", [], "E002"),
        ("ALLOWED_HOSTS", ["slothpost.example", "*"], "E002"),
        ("SITE_URL", "http://slothpost.example", "E003"),
        ("SITE_URL", "slothpost.example", "E003"),
        ("SITE_URL", "https://", "E003"),
        ("DYNAMODB_ENDPOINT_URL", "127.0.0.1:4567", "E005"),
        ("DYNAMODB_ENDPOINT_URL", "http://dynamodb.example:8000", "E006"),
        ("DYNAMODB_TABLE_PREFIX", "sloth post-", "E007"),
        ("DYNAMODB_TABLE_PREFIX", "s" * 201, "E007"),
        ("SCHEDULE_SHARDS", 0, "E008"),
        ("SCHEDULE_SHARDS", 1001, "E008"),
        ("GITHUB_WEBHOOK_SECRET", "", "W002"),
        ("VERCEL_CLIENT_SECRET", "", "W003"),
        ("METRICS_TOKEN", "", "W004"),
    ],
)
def test_one_wrong_setting_in_production_is_named(
    production: Settings, name: str, value: Any, expected: str
) -> None:
    setattr(production, name, value)
    assert found() == [expected]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DYNAMODB_ENDPOINT_URL", "https://dynamodb.example"),
        ("DYNAMODB_ENDPOINT_URL", "http://127.0.0.1:4567"),
        ("DYNAMODB_TABLE_PREFIX", ""),
        ("DYNAMODB_TABLE_PREFIX", "Sloth_post.2-"),
        ("SCHEDULE_SHARDS", 1000),
    ],
)
def test_what_production_may_have(production: Settings, name: str, value: Any) -> None:
    setattr(production, name, value)
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALLOWED_HOSTS", ["slothpost.example"]), ("HTTPS", True)],
)
def test_debugging_a_public_site_is_warned_of(settings: Settings, name: str, value: Any) -> None:
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["localhost"]
    setattr(settings, name, value)
    assert found() == ["W001"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {**WAL, "transaction_mode": "DEFERRED"},
        {**WAL, "init_command": "PRAGMA synchronous=NORMAL;"},
    ],
)
def test_sqlite_that_fails_under_two_writers_is_refused(
    development: Settings, options: dict[str, str]
) -> None:
    engine = "django.db.backends.sqlite3"
    development.DATABASES = {"default": {"ENGINE": engine, "NAME": "/data/x", "OPTIONS": options}}
    assert found() == ["E004"]


@pytest.mark.parametrize(
    ("folder", "expected"), [(Path("/var/lib/slothpost"), []), (None, ["W005"])]
)
def test_sqlite_among_the_code_is_warned_of_in_production(
    production: Settings, folder: Path | None, expected: list[str]
) -> None:
    name = (folder or Path(production.BASE_DIR)) / "django.sqlite3"
    engine = "django.db.backends.sqlite3"
    production.DATABASES = {"default": {"ENGINE": engine, "NAME": name, "OPTIONS": WAL}}
    assert found() == expected


@pytest.mark.parametrize(
    "change",
    [
        {"timeout": 60, "retry": 180},
        {"timeout": 0},
        {"retry": 100},
        {"queue_limit": 3},
        {"workers": 1},
        {"bulk": 2},
        {"catch_up": True},
        {"ack_failures": False},
        {"max_attempts": 0},
        {"orm": "queue"},
    ],
)
def test_a_queue_that_would_run_a_tick_twice_is_refused(
    development: Settings, change: dict[str, Any]
) -> None:
    development.Q_CLUSTER = {**development.Q_CLUSTER, **change}
    assert found() == ["E009"]


def test_the_machines_own_time_zones_are_refused(development: Settings) -> None:
    zoneinfo.reset_tzpath(("/usr/share/zoneinfo",))
    try:
        assert found() == ["E010"]
    finally:
        zoneinfo.reset_tzpath(())


def test_older_time_zones_than_the_pinned_are_refused(
    development: Settings, tmp_path: Path
) -> None:
    (tmp_path / "requirements.lock").write_text("tzdata==9999.1 \\\n    --hash=sha256:00\n")
    development.BASE_DIR = tmp_path
    assert found() == ["E011"]


def test_the_web_server_refuses_to_start_with_the_reasons(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "DEBUG": "false", "DATA_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", "import slothpost_site.wsgi"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    for sentence in (
        "SECRET_KEY is not set",
        "ALLOWED_HOSTS does not name the site's own hosts.",
        "SITE_URL is 'http://localhost:8000', which is not an https address.",
    ):
        assert sentence in ended.stderr
