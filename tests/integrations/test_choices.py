"""What several accounts of one person show together."""

from collections.abc import Iterator

import pytest

from integrations.errors import Failure, NeedsReconnect, TryLater
from integrations.sources.base import Choice, choices_of
from integrations.tables import Connection


def account(number: int, broken: str | None = None) -> Connection:
    return Connection("1", f"github#{number}", account_id=str(number), broken=broken)


def show(connection: Connection) -> Iterator[Choice]:
    if connection.account_id == "0":
        raise TryLater("It did not answer.")
    yield Choice(connection.account_id, "its own", via=connection.key)
    yield Choice("shared", "shared", via=connection.key)


def test_one_account_that_fails_leaves_the_others_to_choose_from_each_thing_once() -> None:
    found = choices_of([account(1), account(0), account(2)], show)
    assert [(choice.id, choice.via) for choice in found] == [
        ("1", "github#1"),
        ("shared", "github#1"),
        ("2", "github#2"),
    ]


@pytest.mark.parametrize(
    ("accounts", "kind", "reason"),
    [
        ([account(0), account(0)], TryLater, "It did not answer."),
        ([account(1, "It was taken back.")], NeedsReconnect, "It was taken back."),
        ([account(1, "It was taken back."), account(0)], TryLater, "It did not answer."),
    ],
)
def test_where_no_account_shows_anything_the_reason_is_told(
    accounts: list[Connection], kind: type[Failure], reason: str
) -> None:
    with pytest.raises(kind) as failure:
        choices_of(accounts, show)
    assert failure.value.reason == reason


def test_without_an_account_there_is_nothing_to_choose() -> None:
    assert choices_of([], show) == []
