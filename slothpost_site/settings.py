"""One settings file. Works with an empty environment in development; every value that differs
between machines comes from the environment or `.env` (see the table in README.md)."""

import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from pythonjsonlogger.core import RESERVED_ATTRS


class Env(environ.Env):  # type: ignore[misc]  # django-environ has no types
    """The environment; a value of a wrong form is one sentence, not a traceback."""

    def get_value(self, var: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().get_value(var, *args, **kwargs)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"The setting {var} cannot be read ({error}): README.md says what it takes."
            ) from error


env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent
environ.Env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=True)
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / ".data")))


def development_secret(name: str) -> str:
    """A random secret of this machine, made once and kept in DATA_DIR; empty in production.

    Nothing that is checked in can sign a webhook or a session, not even in development, and a
    production site without its own secret is refused by the system checks.
    """
    if not DEBUG:
        return ""
    path = DATA_DIR / "secrets" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with path.open("x") as file:
                path.chmod(0o600)
                file.write(secrets.token_urlsafe(50))
        except FileExistsError:  # another process of the same first start was quicker
            pass
    return path.read_text()


# -- who and where -------------------------------------------------------------------------------

# In production without one: random and, on purpose, too short for the system checks, which say so
# in a sentence. At an empty one Django itself stops with a traceback before any check.
SECRET_KEY = (
    env.str("SECRET_KEY", default="")
    or development_secret("secret-key")
    or secrets.token_urlsafe(20)
)
PORT = env.int("PORT", default=8000)
SITE_URL = env.str("SITE_URL", default=f"http://localhost:{PORT}").rstrip("/")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = [SITE_URL]

# -- the product's own ground: DynamoDB ----------------------------------------------------------

DYNAMODB_ENDPOINT_URL = env.str(
    "DYNAMODB_ENDPOINT_URL", default="http://127.0.0.1:4567" if DEBUG else ""
)
DYNAMODB_REGION = env.str("DYNAMODB_REGION", default="us-east-1")
DYNAMODB_TABLE_PREFIX = env.str("DYNAMODB_TABLE_PREFIX", default="slothpost-")
SCHEDULE_SHARDS = env.int("SCHEDULE_SHARDS", default=1)

# -- accounts of others, and what signs for them ---------------------------------------------------

# Seal the secrets of connected accounts: the first seals, each opens.
TOKEN_KEYS = env.list("TOKEN_KEYS", default=[]) or [
    key for key in (development_secret("token-key"),) if key
]

# -- sources -------------------------------------------------------------------------------------
# A secret that signs webhooks may have several values, separated by commas: the newest first.

GITHUB_URL = env.str("GITHUB_URL", default="https://github.com").rstrip("/")
GITHUB_API_URL = env.str("GITHUB_API_URL", default="https://api.github.com").rstrip("/")
GITHUB_APP_ID = env.str("GITHUB_APP_ID", default="")
GITHUB_APP_SLUG = env.str("GITHUB_APP_SLUG", default="")
GITHUB_CLIENT_ID = env.str("GITHUB_CLIENT_ID", default="")
GITHUB_CLIENT_SECRET = env.str("GITHUB_CLIENT_SECRET", default="")
GITHUB_PRIVATE_KEY = env.str("GITHUB_PRIVATE_KEY", default="", multiline=True)
GITHUB_WEBHOOK_SECRET = env.str("GITHUB_WEBHOOK_SECRET", default="") or development_secret(
    "github-webhook-secret"
)
VERCEL_URL = env.str("VERCEL_URL", default="https://vercel.com").rstrip("/")
VERCEL_API_URL = env.str("VERCEL_API_URL", default="https://api.vercel.com").rstrip("/")
VERCEL_INTEGRATION_SLUG = env.str("VERCEL_INTEGRATION_SLUG", default="")
VERCEL_CLIENT_ID = env.str("VERCEL_CLIENT_ID", default="")
VERCEL_CLIENT_SECRET = env.str("VERCEL_CLIENT_SECRET", default="") or development_secret(
    "vercel-client-secret"
)
APP_STORE_API_URL = env.str(
    "APP_STORE_API_URL", default="https://api.appstoreconnect.apple.com"
).rstrip("/")
ITUNES_LOOKUP_URL = env.str("ITUNES_LOOKUP_URL", default="https://itunes.apple.com/lookup")
APP_STORE_WEBHOOK_SECRET = env.str("APP_STORE_WEBHOOK_SECRET", default="") or development_secret(
    "app-store-webhook-secret"
)
# `manage.py run` starts GitHub, Vercel and the App Store as stand-ins on this machine, for each of
# them that has no real credentials here.
STANDINS = env.bool("STANDINS", default=DEBUG)
STANDINS_PORT = env.int("STANDINS_PORT", default=PORT + 1)
# A repository's id is no secret, so by id alone anybody could follow anybody's private work. Only
# where every user may see every repository, such as a developer's own installation, turn this on.
FOLLOW_PRIVATE_REPOSITORIES = env.bool("FOLLOW_PRIVATE_REPOSITORIES", default=False)
WEBHOOK_RATE_LIMIT = env.str("WEBHOOK_RATE_LIMIT", default="60/m")  # unsigned ones, per address

# -- Django --------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "slothpost_site.apps.SlothPostSiteConfig",
    "scheduling.apps.SchedulingConfig",
    "products.apps.ProductsConfig",
    "integrations.apps.IntegrationsConfig",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "django_htmx",
    "django_q",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "slothpost_site.privacy.private_pages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "slothpost_site.urls"
WSGI_APPLICATION = "slothpost_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.db_url("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'django.sqlite3'}")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # WAL lets readers go on while the queue writes; IMMEDIATE takes the write lock at BEGIN, so
    # that two schedulers wait for each other instead of failing with "database is locked".
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }

CACHES = {"default": env.cache_url("CACHE_URL", default="locmemcache://")}

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / ".static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG

# -- accounts ------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_LOGOUT_REDIRECT_URL = "/accounts/login/"
ACCOUNT_PRESERVE_USERNAME_CASING = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"

# Signing in with GitHub uses the GitHub App's own client. An account is never matched by e-mail
# address alone: whoever signs in with GitHub first, connects it in the settings of the account.
SOCIALACCOUNT_PROVIDERS = {
    "github": {
        "APPS": [{"client_id": GITHUB_CLIENT_ID, "secret": GITHUB_CLIENT_SECRET}]
        if GITHUB_CLIENT_ID
        else [],
        "SCOPE": [],
        "OAUTH_PKCE_ENABLED": True,
        # Named only where it is another than GitHub's: allauth takes it for an Enterprise server.
        **({} if GITHUB_URL == "https://github.com" else {"GITHUB_URL": GITHUB_URL}),
    }
}

X_URL = env.str("X_URL", default="https://x.com")
X_API_URL = env.str("X_API_URL", default="https://api.x.com")
X_CLIENT_ID = env.str("X_CLIENT_ID", default="")
X_CLIENT_SECRET = env.str("X_CLIENT_SECRET", default="")
# What X charges whoever runs this site for a post, in US dollars, and the day of that price list.
X_POST_PRICE = env.str("X_POST_PRICE", default="0.015")
X_LINK_POST_PRICE = env.str("X_LINK_POST_PRICE", default="0.20")
X_PRICES_AS_OF = env.str("X_PRICES_AS_OF", default="2026-08-22")

THREADS_URL = env.str("THREADS_URL", default="https://threads.com")
THREADS_API_URL = env.str("THREADS_API_URL", default="https://graph.threads.net")
THREADS_CLIENT_ID = env.str("THREADS_CLIENT_ID", default="")
THREADS_CLIENT_SECRET = env.str("THREADS_CLIENT_SECRET", default="")

LINKEDIN_URL = env.str("LINKEDIN_URL", default="https://www.linkedin.com")
LINKEDIN_API_URL = env.str("LINKEDIN_API_URL", default="https://api.linkedin.com")
LINKEDIN_CLIENT_ID = env.str("LINKEDIN_CLIENT_ID", default="")
LINKEDIN_CLIENT_SECRET = env.str("LINKEDIN_CLIENT_SECRET", default="")
# LinkedIn ends each version of its API after about a year.
LINKEDIN_VERSION = env.str("LINKEDIN_VERSION", default="202606")

# Where people sign in at Bluesky who do not name a server, and where anybody may read.
BLUESKY_SERVER = env.str("BLUESKY_SERVER", default="bsky.social")
BLUESKY_PUBLIC_HOST = env.str("BLUESKY_PUBLIC_HOST", default="public.api.bsky.app")

# Hosts that users may name, and where they are found: {"social.example": "http://10.0.0.5:3000"}.
# Every other host that a user names is called by https at a public address, or not at all.
OPERATOR_HOSTS = env.json("OPERATOR_HOSTS", default={})

EMAIL_CONFIG = env.email_url("EMAIL_URL", default="consolemail://" if DEBUG else "smtp://")
vars().update(EMAIL_CONFIG)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="SlothPost <hello@localhost>")

# -- the queue is a clock ------------------------------------------------------------------------
# What each value prevents is said in slothpost_site/checks.py, which holds them in place.

Q_CLUSTER = {
    "name": "slothpost",
    "orm": "default",
    "workers": 2,
    "queue_limit": 2,
    "bulk": 1,
    "timeout": 50,
    "retry": 180,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "poll": 1,
    "recycle": 200,
    "save_limit": 50,
}

# -- security ------------------------------------------------------------------------------------

HTTPS = SITE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if env.bool("BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    RATELIMIT_IP_META_KEY = "HTTP_X_REAL_IP"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        # Browsers look at where an answer to a form sends them, too: connecting an account does.
        "form-action": [
            "'self'",
            *map(_origin, (GITHUB_URL, VERCEL_URL, X_URL, THREADS_URL, LINKEDIN_URL)),
        ],
        "frame-ancestors": ["'none'"],
    }
}

# The per-process memory cache counts requests per process: good enough to stop a flood on one
# machine. Several machines share one count through CACHE_URL.
SILENCED_SYSTEM_CHECKS = ["django_ratelimit.E003", "django_ratelimit.W001"]

METRICS_TOKEN = env.str("METRICS_TOKEN", default="")

# -- logs: one JSON line each, with ids, never with tokens or post bodies -------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "rename_fields": {"asctime": "at", "levelname": "level", "name": "logger"},
            # Django hands on the whole request, whose address may carry a code.
            "reserved_attrs": [*RESERVED_ATTRS, "request"],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    # Said once a minute for as long as all is well: the tick's own record says more.
    "loggers": {"pynamodb": {"level": "WARNING"}, "django-q": {"level": "WARNING"}},
}
