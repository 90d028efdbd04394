"""A service that answers with garbage is a failure that says so, never a fault of ours."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from integrations import connections
from integrations.errors import Failure
from integrations.sources import SOURCES
from integrations.sources.base import NAME_LIMIT, Choice, Follow
from integrations.standins.app_store import APP_ID, ISSUER, KEY_ID
from integrations.standins.github import PERSON, SLOWTIDE
from integrations.standins.server import Response
from integrations.tables import Connection
from products import activity
from tests.builders import make_product
from tests.conftest import Outside

pytestmark = pytest.mark.usefixtures("store")

GARBAGE: list[Any] = [
    *(None, 0, -1, 10**30, 1.5, True, "", "x" * 5000, "\x00\u202e", [], {}, [None], {"a": 1}),
    *("2026-99-99", "9999-12-31T23:59:59-14:00", "javascript:alert(1)", "../../x"),
    *("9" * 5_000, "9." * 3_000, "x" * 500_000, "a\nb"),
]
FOLLOWED = {"github": str(SLOWTIDE), "vercel": "prj_SlowtideDemo", "app_store": APP_ID}


def garbled(dice: random.Random, value: Any) -> Any:
    """The JSON with a part here and there replaced or left out."""
    if dice.random() < 0.03:
        return dice.choice(GARBAGE)
    if isinstance(value, dict):
        return {k: garbled(dice, v) for k, v in value.items() if dice.random() > 0.01}
    if isinstance(value, list):
        return [garbled(dice, part) for part in value]
    return value


def connected(outside: Outside, source: str) -> Connection:
    """The account that reads for somebody at a source."""
    now, here = timezone.now(), outside.standins.site_url
    callback = f"{here}/connections/{source}/callback/"
    if source == "github":
        outside.github.install_for(PERSON)
        answer = {"code": outside.github.code(callback)}
    elif source == "vercel":
        answer = {"code": outside.vercel.install()[0]}
    else:
        answer = {"issuer_id": ISSUER, "key_id": KEY_ID, "private_key": outside.app_store.demo_pem}
    SOURCES[source].finish("1", answer, {"callback_url": callback}, now)
    return connections.of_provider("1", source)[-1]


def assert_fit(choices: list[Choice]) -> None:
    """Every one of them can be followed and shown."""
    for choice in choices:
        assert 0 < len(choice.id) <= 100
        for text in (choice.name, choice.detail):
            assert len(text) <= NAME_LIMIT
            assert "\n" not in text


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("seed", range(3))
def test_garbage_is_a_failure_or_is_left_out(outside: Outside, source: str, seed: int) -> None:
    account, module = connected(outside, source), SOURCES[source]
    now = timezone.now()
    dice = random.Random(seed)  # noqa: S311 -- it guards nothing
    product = make_product(now=now)

    def alter(response: Response) -> Response:
        if response.status >= 300 or not isinstance(response.body, dict | list):
            return response
        return replace(response, body=garbled(dice, response.body), headers={})

    outside.standins.alter = alter
    follow = Follow(FOLLOWED[source], "x", account, now - timedelta(days=14))
    uses: list[Callable[[], Any]] = [
        lambda: assert_fit(module.choices("1", now)),
        lambda: module.check(account, now),
        lambda: activity.record_all(product, module.fetch(follow, now).events, now),
    ]
    outcomes = set()
    for use in uses * 15:
        account.broken = None  # whatever it was taken for, it is asked again
        try:
            use()
            outcomes.add("understood")
        except Failure:
            outcomes.add("failed")
    assert outcomes == {"understood", "failed"}
