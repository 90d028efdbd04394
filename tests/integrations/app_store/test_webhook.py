"""What App Store Connect's deliveries say, and whose hook they come by."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from integrations.sources import app_store as source
from integrations.sources.base import BadPayload, Received, Wanted
from tests.integrations.test_sources import UNFIT, altered, assert_storable, paths

FIXTURES = Path(__file__).parents[2] / "fixtures" / "app_store"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.json"))


def fixture(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return found


def parse(payload: dict[str, Any]) -> Received:
    return source.parse(payload, {})


def test_the_signature_vector_is_accepted() -> None:
    signed = "hmacsha256=7f062172b01cb00b53ca068614674a3d982a34062a0f5d37687d5e3377e54657"
    assert source.signature(b"Hello, World!", "This is my secret") == signed
    headers = {"x-apple-signature": signed}
    assert source.verify(b"Hello, World!", headers, "This is my secret")


def test_a_secret_may_have_several_values(settings: Settings) -> None:
    settings.APP_STORE_WEBHOOK_SECRET = "new, old"
    assert source.secrets() == ("new", "old")


def test_every_kind_of_delivery_asks_for_more_or_says_why_not() -> None:
    said = {name: parse(fixture(name)) for name in NAMES}
    untracked = "SlothPost does not track `{}` events"
    hello = "The App Store says hello: the webhook works"
    assert {name: (r.upkeep == Wanted(), r.note) for name, r in said.items()} == {
        "alternative-distribution": (
            False,
            untracked.format("alternativeDistributionPackageAvailableUpdated"),
        ),
        "background-asset": (False, untracked.format("backgroundAssetVersionStateUpdated")),
        "beta-build": (False, untracked.format("buildBetaDetailExternalBuildStateUpdated")),
        "beta-feedback.crash": (False, untracked.format("betaFeedbackCrashSubmissionCreated")),
        "beta-feedback.screenshot": (
            False,
            untracked.format("betaFeedbackScreenshotSubmissionCreated"),
        ),
        "build-upload": (False, untracked.format("buildUploadStateUpdated")),
        "ping.attribute": (False, hello),
        "ping.type": (False, hello),
        "state.in-review": (True, "A version is in review"),
        "state.in-the-store": (True, "A version is in the store"),
        "state.instance-without-data": (True, "A version is in the store"),
        "state.rejected": (True, "A version is rejected"),
        "state.with-its-app": (True, "A version is in the store"),
    }
    assert {name: r.follow_id for name, r in said.items() if r.follow_id} == {
        "state.with-its-app": "6441234567"
    }


def test_a_delivery_is_known_by_its_id() -> None:
    payload = fixture("state.in-review")
    assert parse(payload).delivery_id == payload["data"]["id"]


def test_an_app_can_also_be_named_by_an_attribute() -> None:
    payload = fixture("state.in-review")
    payload["data"]["attributes"]["app_id"] = "6441234567"
    assert parse(payload).follow_id == "6441234567"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({}, "data is not an object"),
        ({"data": {"id": "1"}}, "data.type is not a text"),
        ({"data": {"type": "webhookPings"}}, "data.id is not a text"),
        ({"data": {"type": "a b", "id": "1"}}, "data.type is not an id"),
        (
            {"data": {"type": "webhookPings", "id": "1", "attributes": []}},
            "data.attributes is not an object",
        ),
    ],
)
def test_what_apple_would_never_send_is_refused(payload: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadPayload) as refused:
        parse(payload)
    assert str(refused.value) == reason


@pytest.mark.parametrize("name", NAMES)
def test_no_unfit_value_anywhere_gets_through(name: str) -> None:
    payload = fixture(name)
    for place in paths(payload):
        for value in UNFIT:
            with suppress(BadPayload):
                assert_storable(parse(altered(payload, place, value)))


# -- hooks -----------------------------------------------------------------------------------------


def test_a_hook_knows_its_app() -> None:
    assert source.followed_by(source.hook_of("7", "6441234567")) == "6441234567"


def test_each_person_and_each_app_has_a_hook_and_secrets_of_its_own() -> None:
    hooks = [source.hook_of(user, app) for user in ("1", "2") for app in ("61", "62")]
    assert len(set(hooks)) == 4
    assert len({source.hook_secrets(hook) for hook in hooks}) == 4


def test_a_new_token_key_brings_a_new_secret_and_the_old_one_goes_on(
    settings: Settings,
) -> None:
    settings.TOKEN_KEYS = ["old"]
    hook = source.hook_of("1", "61")
    (old,) = source.hook_secrets(hook)
    settings.TOKEN_KEYS = ["new", "old"]
    assert source.hook_of("1", "61") == hook
    new, *rest = source.hook_secrets(hook)
    assert (rest, new != old) == ([old], True)


@pytest.mark.parametrize(
    "hook", ["", "x", "é", "%00", "MS82MQ==", "LzYx", "MS8w", "MS9hYmM", "gIA", "A" * 5000]
)
def test_what_is_no_hook_has_no_app_and_no_secret(hook: str) -> None:
    assert source.followed_by(hook) == ""
    assert source.hook_secrets(hook) == ()
