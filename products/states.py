"""The life of a post, as data. Pure: checked when it is imported, shown in CONTRIBUTING.md."""

from enum import StrEnum


class State(StrEnum):
    DRAFTING = "drafting"
    AWAITING_REVIEW = "awaiting_review"
    APPROVED = "approved"
    PUBLISHING = "publishing"
    PUBLISHED = "published"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"
    MISSED = "missed"
    FAILED = "failed"
    UNCONFIRMED = "unconfirmed"


_PERSON_DECIDES = frozenset({State.APPROVED, State.DRAFTING, State.REJECTED, State.PUBLISHED})

MOVES: dict[State, frozenset[State]] = {
    State.DRAFTING: frozenset({State.AWAITING_REVIEW, State.SKIPPED, State.FAILED}),
    State.AWAITING_REVIEW: frozenset(
        {State.APPROVED, State.REJECTED, State.SUPERSEDED, State.DRAFTING}
    ),
    State.APPROVED: frozenset({State.PUBLISHING, State.AWAITING_REVIEW, State.MISSED}),
    State.PUBLISHING: frozenset({State.PUBLISHED, State.APPROVED, State.FAILED, State.UNCONFIRMED}),
    State.MISSED: _PERSON_DECIDES,
    State.FAILED: _PERSON_DECIDES,
    State.UNCONFIRMED: _PERSON_DECIDES,
    State.PUBLISHED: frozenset(),
    State.REJECTED: frozenset(),
    State.SKIPPED: frozenset(),
    State.SUPERSEDED: frozenset(),
}

FIRST = State.DRAFTING
FINAL = frozenset(state for state, moves in MOVES.items() if not moves)
# A person has something to decide, or may still take back what they decided.
NEEDS_A_PERSON = frozenset({State.AWAITING_REVIEW, State.MISSED, State.FAILED, State.UNCONFIRMED})
# Staff should look: the machine could not do what was asked of it.
TROUBLE = frozenset({State.FAILED, State.UNCONFIRMED})
# States in which a machine has the next step.
WORKING = frozenset({State.DRAFTING, State.APPROVED, State.PUBLISHING})
# States that a machine left a post in and its owner has to hear of.
TOLD = frozenset({State.MISSED, State.FAILED, State.UNCONFIRMED})


def check_allowed(origin: State, to: State) -> None:
    """Raise ValueError unless the table has this move."""
    if to not in MOVES[origin]:
        raise ValueError(f"a post cannot go from {origin} to {to}")


def _check_table() -> None:
    """Every state is in the table, can be reached, and can be left for a final one."""
    if set(MOVES) != set(State):
        raise ValueError("every state needs a row in MOVES")
    reached = {FIRST}
    while grown := set().union(*(MOVES[state] for state in reached)) - reached:
        reached |= grown
    if reached != set(State):
        raise ValueError(f"no way leads to {sorted(set(State) - reached)}")
    ending = set(FINAL)
    while grown := {state for state, moves in MOVES.items() if moves & ending} - ending:
        ending |= grown
    if ending != set(State):
        raise ValueError(f"no way leads out of {sorted(set(State) - ending)}")


_check_table()
