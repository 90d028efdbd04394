"""The product's own changelog: one entry per post, newest first."""

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.http import Http404

from integrations.errors import Refused
from integrations.outlets import changelog
from integrations.outlets.base import Approved
from slothpost_site.dynamo import StoreError
from tests.conftest import free_port, use_server

MONDAY = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def approved(text: str = "Dark mode is here.", slot_at: datetime = MONDAY, **changes: str):
    facts = {
        "user_id": "1",
        "product_id": "p1",
        "product_name": "Fernweh",
        "product_link": "https://fernweh.app",
        "slug": "fernweh",
        "key": f"{slot_at.isoformat()}#p1#changelog",
    }
    return Approved(text=text, slot_at=slot_at, **(facts | changes))


def test_publishing_twice_gives_one_entry_with_one_address(either_store: str) -> None:
    first = changelog.publish(approved(), MONDAY)
    again = changelog.publish(approved(), MONDAY + timedelta(minutes=5))
    assert again == first
    assert first.permalink == f"{settings.SITE_URL}/c/fernweh/{first.external_id}/"
    (entry,) = changelog.entries("fernweh").items
    assert (entry.text, entry.published_at) == ("Dark mode is here.", MONDAY.timestamp() * 1000)
    found = changelog.entry("fernweh", first.external_id)
    assert found is not None
    assert found.serialize() == entry.serialize()


def test_two_posts_of_one_slot_are_two_entries(store: str) -> None:
    changelog.publish(approved(key="a"), MONDAY)
    changelog.publish(approved(key="b"), MONDAY)
    assert len(changelog.entries("fernweh").items) == 2


def test_entries_come_newest_slot_first_and_page_after_page(store: str) -> None:
    for day in (2, 0, 1):
        changelog.publish(approved(f"day {day}", MONDAY + timedelta(days=day)), MONDAY)
    changelog.publish(approved("another product", slug="other"), MONDAY)
    first = changelog.entries("fernweh", size=2)
    rest = changelog.entries("fernweh", first.next_cursor, size=2)
    assert [entry.text for entry in first.items] == ["day 2", "day 1"]
    assert [entry.text for entry in rest.items] == ["day 0"]
    with pytest.raises(Http404):
        changelog.entries("other", first.next_cursor)


def test_an_unknown_entry_is_none(store: str) -> None:
    assert changelog.entry("fernweh", "202611300900-000000000000") is None


def test_a_store_that_cannot_be_reached_is_the_publishers_to_handle(store: str) -> None:
    use_server(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreError):
        changelog.publish(approved(), MONDAY)


def test_a_product_without_a_page_is_refused_with_advice() -> None:
    with pytest.raises(Refused, match="give it an address"):
        changelog.publish(approved(slug=""), MONDAY)
