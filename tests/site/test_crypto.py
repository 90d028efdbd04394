"""Secrets at rest."""

import pytest
from pytest_django.fixtures import Settings

from slothpost_site import crypto

VALUES = {"token": "t0ken", "refresh": "é\n"}


def test_what_is_sealed_opens_at_its_place_and_does_not_show() -> None:
    sealed = crypto.seal(VALUES, "1/github#5")
    assert crypto.unseal(sealed, "1/github#5") == VALUES
    assert "t0ken" not in sealed


def test_a_copy_elsewhere_does_not_open() -> None:
    sealed = crypto.seal(VALUES, "1/github#5")
    with pytest.raises(crypto.Unreadable):
        crypto.unseal(sealed, "2/github#5")


def test_any_of_the_keys_opens_and_the_first_seals(settings: Settings) -> None:
    settings.TOKEN_KEYS = ["old"]
    by_old = crypto.seal(VALUES, "p")
    settings.TOKEN_KEYS = ["new", "old"]
    assert crypto.unseal(by_old, "p") == VALUES
    by_new = crypto.seal(VALUES, "p")
    settings.TOKEN_KEYS = ["new"]
    assert crypto.unseal(by_new, "p") == VALUES
    with pytest.raises(crypto.Unreadable):
        crypto.unseal(by_old, "p")


@pytest.mark.parametrize("sealed", ["", "x", "é", "gAAAAA=="])
def test_what_was_never_sealed_does_not_open(sealed: str) -> None:
    with pytest.raises(crypto.Unreadable):
        crypto.unseal(sealed, "p")
