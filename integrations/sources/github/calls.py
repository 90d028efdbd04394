"""How GitHub is asked: as its app, with a token or as anybody; and how its lists are read.

The REST API: https://docs.github.com/en/rest
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

import jwt
from django.conf import settings

from integrations.api import Api
from integrations.errors import Answer, TryLater
from integrations.sources.base import BadPayload, Fields
from integrations.sources.github.facts import LABEL

logger = logging.getLogger(__name__)

# GitHub takes at most ten minutes and is strict about clocks that are ahead of its own:
# https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
JWT_BEFORE = timedelta(seconds=60)
JWT_AFTER = timedelta(seconds=540)

OPERATORS_FAULT = (
    "GitHub does not accept what SlothPost identifies itself by: whoever runs this SlothPost has"
    " to mend that."
)


def rest(token: str = "") -> Api:
    """GitHub's REST API, with somebody's token or as anybody."""
    headers = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    return Api(LABEL, settings.GITHUB_API_URL, headers)


def web() -> Api:
    """GitHub's website, which hands out tokens."""
    return Api(LABEL, settings.GITHUB_URL, {"Accept": "application/json"})


def app_token(now: datetime) -> str:
    """What shows for some minutes that it is our app that asks. Raises TryLater."""
    claims = {
        "iat": int((now - JWT_BEFORE).timestamp()),
        "exp": int((now + JWT_AFTER).timestamp()),
        "iss": settings.GITHUB_APP_ID,
    }
    # One line of an environment file holds a key with its line ends written out.
    key = settings.GITHUB_PRIVATE_KEY.replace("\\n", "\n")
    try:
        return jwt.encode(claims, key, algorithm="RS256")
    except (jwt.PyJWTError, ValueError) as error:
        logger.error("the app's private key cannot be used", extra={"service": LABEL})
        raise TryLater(OPERATORS_FAULT) from error


def each_page(
    api: Api,
    path: str,
    now: datetime,
    *,
    params: Mapping[str, str | int] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Answer]:
    """The pages of a list, as far as they are taken. `headers` go with the first one only."""
    answer = api.ask(
        "GET", path, now=now, params={"per_page": 100, **(params or {})}, headers=headers
    )
    yield answer
    while answer.next_url:
        answer = api.ask("GET", answer.next_url, now=now)
        yield answer


def items_of(answer: Answer, name: str = "") -> list[Fields]:
    """The objects of a page: a list, or the list `name` of an object. Raises BadPayload."""
    return Fields(answer.body if name else {"": answer.body}, "").each(name)


@contextmanager
def understood() -> Iterator[None]:
    """What GitHub answers and nobody can read is no answer. Raises TryLater."""
    try:
        yield
    except BadPayload as error:
        logger.warning("an answer of another shape", extra={"service": LABEL, "what": str(error)})
        raise TryLater(f"{LABEL} answered with something that is no answer.") from error
