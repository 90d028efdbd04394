import re
from pathlib import Path

import pytest
from django.conf import settings

from products.states import FINAL, MOVES, State, check_allowed


def test_final_states_are_those_of_the_design() -> None:
    assert {State.PUBLISHED, State.REJECTED, State.SKIPPED, State.SUPERSEDED} == FINAL


@pytest.mark.parametrize("origin", State)
@pytest.mark.parametrize("to", State)
def test_a_move_is_allowed_exactly_where_the_table_has_it(origin: State, to: State) -> None:
    if to in MOVES[origin]:
        check_allowed(origin, to)
    else:
        with pytest.raises(ValueError, match=f"cannot go from {origin} to {to}"):
            check_allowed(origin, to)


def test_contributing_shows_the_table_as_it_is() -> None:
    text = (Path(settings.BASE_DIR) / "CONTRIBUTING.md").read_text()
    shown = {
        origin: set(re.findall(r"`(\w+)`", moves))
        for origin, moves in re.findall(r"^\| `(\w+)` \| (.*?) \|$", text, re.MULTILINE)
        if origin in set(State)
    }
    assert shown == {origin: set(moves) for origin, moves in MOVES.items()}
