"""A tick may have to tell somebody something, and asks Django's database who that is."""

import pytest


@pytest.fixture(autouse=True)
def users(db: None) -> None:
    """Django's database, empty."""
