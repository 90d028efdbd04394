"""System checks: an unsafe or broken setting stops every command and the web server, in a sentence.

`slothpost.E…` stop; `slothpost.W…` are said and go on. What is wrong only in production is looked
at only when DEBUG is off.
"""

import re
import zoneinfo
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1", "[::1]"}
MINIMUM_SECRET_LENGTH = 50
MINIMUM_TOKEN_KEY_LENGTH = 32
MAXIMUM_SHARDS = 1000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
# A table's name has at most 255 characters; ours add less than 55 to the prefix.
TABLE_PREFIX = re.compile(r"[A-Za-z0-9_.-]{0,200}")


def tzdata_version() -> str:
    """The version of the time zones in force, such as "2026.6"."""
    return metadata.version("tzdata")


def check_site(**_: Any) -> list[checks.CheckMessage]:
    """Who we are and where, for a site that others can reach."""
    if settings.DEBUG:
        return _debug_on_a_public_site()
    found: list[checks.CheckMessage] = []
    if len(settings.SECRET_KEY) < MINIMUM_SECRET_LENGTH:
        found.append(
            checks.Error(
                f"SECRET_KEY is not set, or has fewer than {MINIMUM_SECRET_LENGTH} characters.",
                hint="Make one with: python -c 'import secrets; print(secrets.token_hex(40))'",
                id="slothpost.E001",
            )
        )
    hosts = set(settings.ALLOWED_HOSTS)
    if hosts <= LOCAL_HOSTS or "*" in hosts:
        found.append(
            checks.Error(
                "ALLOWED_HOSTS does not name the site's own hosts.",
                hint="Set it to the names the site is reached by, such as slothpost.example;"
                ' "*" would let anybody choose where a password reset link leads.',
                id="slothpost.E002",
            )
        )
    site = urlsplit(settings.SITE_URL)
    if site.scheme != "https" or not site.hostname:
        found.append(
            checks.Error(
                f"SITE_URL is {settings.SITE_URL!r}, which is not an https address.",
                hint="Set it to the site's address, such as https://slothpost.example.",
                id="slothpost.E003",
            )
        )
    return found


def _debug_on_a_public_site() -> list[checks.CheckMessage]:
    if set(settings.ALLOWED_HOSTS) <= LOCAL_HOSTS and not settings.HTTPS:
        return []
    return [
        checks.Warning(
            "DEBUG is on, and the site is reached from outside this machine.",
            hint="Set DEBUG=false: error pages show settings and code to every visitor.",
            id="slothpost.W001",
        )
    ]


def check_secrets_of_sources(**_: Any) -> list[checks.CheckMessage]:
    """Without its secret a source's every delivery is refused, and no activity comes in."""
    return [
        checks.Warning(
            f"{name} is not set, so every webhook delivery from {source} is refused.",
            hint=f"Set it to the secret that {source} signs its deliveries with.",
            id=check_id,
        )
        for name, source, check_id in (
            ("GITHUB_WEBHOOK_SECRET", "GitHub", "slothpost.W002"),
            ("VERCEL_CLIENT_SECRET", "Vercel", "slothpost.W003"),
        )
        if not getattr(settings, name)
    ]


def check_token_keys(**_: Any) -> list[checks.CheckMessage]:
    """What seals the tokens of connected accounts must be there and hard to guess."""
    keys = settings.TOKEN_KEYS
    if keys and min(map(len, keys)) >= MINIMUM_TOKEN_KEY_LENGTH:
        return []
    return [
        checks.Error(
            "TOKEN_KEYS is not set, or has a key of fewer than"
            f" {MINIMUM_TOKEN_KEY_LENGTH} characters.",
            hint="Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'."
            " Keep it: without it every account has to be connected again.",
            id="slothpost.E014",
        )
    ]


CREDENTIALS = {
    "GitHub": (
        "GITHUB_APP_ID",
        "GITHUB_APP_SLUG",
        "GITHUB_CLIENT_ID",
        "GITHUB_CLIENT_SECRET",
        "GITHUB_PRIVATE_KEY",
    ),
    "Vercel": ("VERCEL_CLIENT_ID", "VERCEL_INTEGRATION_SLUG"),
    "X": ("X_CLIENT_ID", "X_CLIENT_SECRET"),
    "Threads": ("THREADS_CLIENT_ID", "THREADS_CLIENT_SECRET"),
    "LinkedIn": ("LINKEDIN_CLIENT_ID", "LINKEDIN_CLIENT_SECRET"),
}


def check_credentials(**_: Any) -> list[checks.CheckMessage]:
    """A service that is half set up fails at the first person who connects it."""
    return [
        checks.Error(
            f"{service} is set up in part: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set.",
            hint=f"Set all of {', '.join(names)}, or none; README.md says where they come from.",
            id="slothpost.E015",
        )
        for service, names in CREDENTIALS.items()
        if (missing := [name for name in names if not getattr(settings, name)])
        and len(missing) < len(names)
    ]


def check_hosts(**_: Any) -> list[checks.CheckMessage]:
    """Tokens go to these addresses: in production over https only."""
    names = (
        *("GITHUB_URL", "GITHUB_API_URL", "VERCEL_URL", "VERCEL_API_URL"),
        *("APP_STORE_API_URL", "ITUNES_LOOKUP_URL", "X_URL", "X_API_URL"),
        *("THREADS_URL", "THREADS_API_URL", "LINKEDIN_URL", "LINKEDIN_API_URL"),
    )
    return [
        checks.Error(
            f"{name} is {getattr(settings, name)!r}, which is not an http or https address that"
            " tokens may be sent to.",
            hint="Leave it out for the real service. In production it has to begin with https.",
            id="slothpost.E016",
        )
        for name in names
        if not _may_get_tokens(getattr(settings, name))
    ]


def _may_get_tokens(address: str) -> bool:
    parts = urlsplit(address)
    schemes = {"https", "http"} if settings.DEBUG else {"https"}
    return parts.scheme in schemes and bool(parts.hostname)


def check_metrics(**_: Any) -> list[checks.CheckMessage]:
    if settings.DEBUG or settings.METRICS_TOKEN:
        return []
    return [
        checks.Warning(
            "METRICS_TOKEN is not set, so nobody can read /metrics.",
            hint="Set it to a random text, and have Prometheus send it as a bearer token.",
            id="slothpost.W004",
        )
    ]


def check_mail(**_: Any) -> list[checks.CheckMessage]:
    """Signing up and a forgotten password send mail: without a server both fail."""
    if settings.DEBUG or settings.EMAIL_HOST:
        return []
    return [
        checks.Error(
            "EMAIL_URL names no mail server, so nobody can sign up or reset a password.",
            hint="Set it, such as smtp+tls://user:password@mail.example:587.",
            id="slothpost.E013",
        )
    ]


def check_database(**_: Any) -> list[checks.CheckMessage]:
    """SQLite is fine on one machine, if writers wait for each other and no deploy removes it."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] != "django.db.backends.sqlite3":
        return []
    found: list[checks.CheckMessage] = []
    options = database.get("OPTIONS", {})
    wal = "journal_mode=wal" in options.get("init_command", "").lower()
    if options.get("transaction_mode") != "IMMEDIATE" or not wal:
        found.append(
            checks.Error(
                "SQLite is not in WAL mode with IMMEDIATE transactions.",
                hint='Otherwise two workers that schedule at once fail with "database is locked".',
                id="slothpost.E004",
            )
        )
    if not settings.DEBUG and Path(database["NAME"]).is_relative_to(settings.BASE_DIR):
        found.append(
            checks.Warning(
                "The users' database is a file inside the folder of the code.",
                hint="A deploy that replaces the folder loses every account: set DATA_DIR to a"
                " folder elsewhere, or DATABASE_URL to a PostgreSQL.",
                id="slothpost.W005",
            )
        )
    return found


def check_dynamodb(**_: Any) -> list[checks.CheckMessage]:
    found: list[checks.CheckMessage] = []
    endpoint = urlsplit(settings.DYNAMODB_ENDPOINT_URL)
    if settings.DYNAMODB_ENDPOINT_URL and not (
        endpoint.scheme in {"http", "https"} and endpoint.hostname
    ):
        found.append(
            checks.Error(
                f"DYNAMODB_ENDPOINT_URL is {settings.DYNAMODB_ENDPOINT_URL!r}, which is not an"
                " http or https address.",
                hint="Leave it empty for AWS, or set it to a server such as http://127.0.0.1:4567.",
                id="slothpost.E005",
            )
        )
    elif not settings.DEBUG and endpoint.scheme == "http" and endpoint.hostname not in LOCAL_HOSTS:
        found.append(
            checks.Error(
                "DYNAMODB_ENDPOINT_URL leads to another machine without https.",
                hint="Posts and people's data would cross the network in the open: use https,"
                " or leave it empty for AWS.",
                id="slothpost.E006",
            )
        )
    if not TABLE_PREFIX.fullmatch(settings.DYNAMODB_TABLE_PREFIX):
        found.append(
            checks.Error(
                f"DYNAMODB_TABLE_PREFIX is {settings.DYNAMODB_TABLE_PREFIX!r}, which no table's"
                " name can start with.",
                hint="Use at most 200 letters, digits, dots, dashes and underscores.",
                id="slothpost.E007",
            )
        )
    if not 1 <= settings.SCHEDULE_SHARDS <= MAXIMUM_SHARDS:
        found.append(
            checks.Error(
                f"SCHEDULE_SHARDS is {settings.SCHEDULE_SHARDS}, not a number from 1 to"
                f" {MAXIMUM_SHARDS}.",
                hint="Every tick asks every shard; 1 is right below a thousand products a minute.",
                id="slothpost.E008",
            )
        )
    return found


def check_queue(**_: Any) -> list[checks.CheckMessage]:
    """django-q2 is a clock here, and safe as one only with these values."""
    queue: dict[str, Any] = settings.Q_CLUSTER
    rules = (
        (
            0 < queue["timeout"] < 60,
            "timeout is not under a minute",
            "A tick must be over before the next one starts.",
        ),
        (
            queue["retry"] > 2 * queue["timeout"],
            "retry is not more than twice timeout",
            "A tick that waits for another, and then runs its full time, would run a second time.",
        ),
        (
            queue["queue_limit"] == queue["workers"],
            "queue_limit is not the number of workers",
            "A task's wait in the worker's memory counts towards retry, so it would run twice.",
        ),
        (
            queue["bulk"] == 1,
            "bulk is not 1",
            "Tasks taken in bulk wait in memory, and are lost or run twice when a worker dies.",
        ),
        (
            queue["catch_up"] is False,
            "catch_up is not off",
            "After an hour's outage sixty ticks would be replayed, two a minute.",
        ),
        (
            queue["ack_failures"] is True,
            "ack_failures is not on",
            "A tick that failed would be repeated for ever; the next minute's tick is the retry.",
        ),
        (
            queue["max_attempts"] == 1,
            "max_attempts is not 1",
            "The next minute's tick is the retry.",
        ),
        (
            queue["orm"] == "default",
            'orm is not "default"',
            "A queue outside the database of its schedule makes the tick fire every 30 seconds.",
        ),
    )
    return [
        checks.Error(f"Q_CLUSTER: {wrong}.", hint=reason, id="slothpost.E009")
        for holds, wrong, reason in rules
        if not holds
    ]


def check_time_zones(**_: Any) -> list[checks.CheckMessage]:
    """The zones must be those of the pinned package: one that is off by an hour posts at 8:00."""
    found: list[checks.CheckMessage] = []
    if zoneinfo.TZPATH:
        found.append(
            checks.Error(
                f"Time zones come from this machine's files ({', '.join(zoneinfo.TZPATH)}).",
                hint="Something called zoneinfo.reset_tzpath() after slothpost_site/__init__.py"
                " emptied the search path: the tzdata package has to be the only source.",
                id="slothpost.E010",
            )
        )
    if _numbers(tzdata_version()) < _numbers(_pinned_tzdata()):
        found.append(
            checks.Error(
                f"tzdata {tzdata_version()} is installed and {_pinned_tzdata()} is pinned.",
                hint="Install requirements.lock again: plans in zones that changed would be off.",
                id="slothpost.E011",
            )
        )
    return found


def check_rate_limit(**_: Any) -> list[checks.CheckMessage]:
    """A limit of another form would fail at the first unsigned delivery."""
    if re.fullmatch(r"[0-9]+/[0-9]*[smhd]", settings.WEBHOOK_RATE_LIMIT):
        return []
    return [
        checks.Error(
            f"WEBHOOK_RATE_LIMIT is {settings.WEBHOOK_RATE_LIMIT!r}, which is no rate.",
            hint="Write it as a number a second, minute, hour or day, such as 60/m.",
            id="slothpost.E012",
        )
    ]


def _pinned_tzdata() -> str:
    lock = (settings.BASE_DIR / "requirements.lock").read_text()
    pin = re.search(r"^tzdata==([0-9.]+)", lock, re.MULTILINE)
    if pin is None:
        raise LookupError("requirements.lock pins no tzdata: make it anew with `make lock`.")
    return pin[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


CHECKS = (
    check_site,
    check_secrets_of_sources,
    check_token_keys,
    check_credentials,
    check_hosts,
    check_metrics,
    check_mail,
    check_database,
    check_dynamodb,
    check_queue,
    check_time_zones,
    check_rate_limit,
)
