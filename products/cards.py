"""What the review pages show of posts: one card per slot, one draft per outlet."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.urls import reverse

from integrations.outlets import OUTLETS, text_length, text_limit
from integrations.outlets.base import Piece, Price
from integrations.tables import Connection
from products import posts, spending
from products.forms import TextForm, tidy
from products.states import NEEDS_A_PERSON, State
from products.tables import Post, Product
from slothpost_site.moments import as_key, from_ms

OVERDUE = timedelta(minutes=5)


@dataclass(frozen=True)
class Step:
    """One move of a post's history, in words."""

    at: float
    what: str
    why: str
    by: str


@dataclass(frozen=True)
class Draft:
    """One post as its owner sees it. `error` says why the decision in `form` was refused; what
    was typed there stays in its fields."""

    post: Post
    now: datetime
    product: Product | None = None
    error: str = ""
    form: TextForm | None = None
    account: Connection | None = None  # that it goes to, as it is now

    @property
    def slot(self) -> str:
        return as_key(self.post.slot_at)

    @property
    def url(self) -> str:
        return reverse("post", args=[self.slot, self.post.product_id, self.post.outlet])

    @property
    def element_id(self) -> str:
        return f"post-{self.slot}-{self.post.product_id}-{self.post.outlet}"

    @property
    def name(self) -> str:
        return self.product.name if self.product else self.post.product_name or "A product"

    @property
    def zone(self) -> str:
        return self.post.timezone or (self.product.timezone if self.product else "UTC")

    @property
    def label(self) -> str:
        return OUTLETS[self.post.outlet].label

    @property
    def place(self) -> str:
        """The outlet as the end of a sentence: "on X", "on its changelog"."""
        return "on its changelog" if self.post.outlet == "changelog" else f"on {self.label}"

    @property
    def unit(self) -> str:
        return OUTLETS[self.post.outlet].unit

    @property
    def by_hand(self) -> bool:
        outlet = OUTLETS[self.post.outlet]
        return outlet.publish is None or (outlet.needs_account and not self.post.account)

    @property
    def account_trouble(self) -> str:
        """Why its account would not take it now, or ""."""
        if not self.post.account:
            return ""
        if self.account is None:
            return "Its account is not connected any more."
        return str(self.account.broken or "")

    @property
    def price(self) -> Price | None:
        """What it costs to publish it as it is stored, where that costs anything."""
        return None if self.by_hand else spending.price_of(self.post)

    @property
    def pieces(self) -> list[Piece]:
        """The stored text as its outlet shows it."""
        return OUTLETS[self.post.outlet].pieces(self.stored_text)

    @property
    def stored_text(self) -> str:
        return self.post.text or ""

    @property
    def text(self) -> str:
        """The text in its field: as it was typed if it was, else as it is stored."""
        if self.form and self.form.was_edited():
            return str(self.form["text"].value() or "")
        return self.stored_text

    @property
    def differs(self) -> bool:
        """Whether a typed text and the stored one are to be compared."""
        return bool(self.stored_text) and tidy(self.text) != self.stored_text

    @property
    def limit(self) -> int:
        limit_of = OUTLETS[self.post.outlet].limit_of
        if limit_of is not None and self.account is not None:
            return limit_of(self.account)
        return text_limit(self.post.outlet)

    @property
    def length(self) -> int:
        return text_length(self.post.outlet, tidy(self.text))

    @property
    def too_many(self) -> int:
        return max(0, self.length - self.limit)

    @property
    def seen(self) -> str:
        """The hash of the text as this page shows it, which a decision binds to."""
        return posts.text_hash(self.post)

    @property
    def is_over(self) -> bool:
        """Whether its slot has passed."""
        return from_ms(self.post.slot_at) <= self.now

    @property
    def takes_next_slot(self) -> bool:
        """Whether an approval now leaves the time to the plan, by the product's choice."""
        waits = self.post.state == State.AWAITING_REVIEW
        return bool(
            self.is_over and waits and self.product and self.product.late_approval == "next_slot"
        )

    @property
    def goes_out_now(self) -> bool:
        """Whether an approved post is sent by the next tick."""
        return bool(self.post.send_at) and from_ms(self.post.send_at) <= self.now

    @property
    def is_overdue(self) -> bool:
        """Whether an approved post should have been sent minutes ago: the clock has stopped."""
        return self.goes_out_now and self.now - from_ms(self.post.work_at) > OVERDUE

    @property
    def waits(self) -> bool:
        return self.post.state == State.AWAITING_REVIEW

    @property
    def went_astray(self) -> bool:
        return needs_a_person(self.post)

    @property
    def in_the_works(self) -> bool:
        """Whether a machine is at it now, so that it will look different in a moment."""
        return self.post.state in {State.DRAFTING, State.PUBLISHING}

    @property
    def approvable(self) -> bool:
        return self.waits and bool(self.text) and not self.too_many

    @property
    def history(self) -> list[Step]:
        """Every move of the post, oldest first."""
        return [self._step(json.loads(str(line))) for line in self.post.history]

    @property
    def attempts(self) -> list[Step]:
        """What became of each attempt to send it, oldest first."""
        lines = [json.loads(str(line)) for line in self.post.history]
        return [self._step(line) for line in lines if line.get("from") == State.PUBLISHING]

    def _step(self, line: dict[str, str]) -> Step:
        owner, machine = f"person {self.post.user_id}", posts.MACHINE
        by = {owner: "you", machine: "SlothPost"}.get(line["by"], "staff")
        origin, to = line.get("from"), line["to"]
        what = "Text edited" if origin == to else _MOVES.get((origin, to)) or _STATES[State(to)]
        return Step(float(line["at"]), what, line.get("why", ""), by)


_STATES = {
    State.DRAFTING: "Sent back to be written again",
    State.AWAITING_REVIEW: "Draft written",
    State.APPROVED: "Approved",
    State.PUBLISHING: "Being sent",
    State.PUBLISHED: "Published",
    State.REJECTED: "Rejected",
    State.SKIPPED: "Skipped",
    State.SUPERSEDED: "Replaced by a newer draft",
    State.MISSED: "Held for you",
    State.FAILED: "Failed",
    State.UNCONFIRMED: "Sent, perhaps",
}
_MOVES: dict[tuple[str | None, str], str] = {
    (None, State.DRAFTING): "Begun",
    (State.APPROVED, State.AWAITING_REVIEW): "Back to review",
    (State.PUBLISHING, State.APPROVED): "Not sent yet",
}


@dataclass(frozen=True)
class SlotCard:
    """The drafts of one product and slot, side by side."""

    drafts: list[Draft]

    @property
    def first(self) -> Draft:
        """Any of the slot's drafts, for what they share."""
        return self.drafts[0]

    @property
    def element_id(self) -> str:
        return f"slot-{self.first.slot}-{self.first.post.product_id}"

    @property
    def zone(self) -> str:
        return self.first.zone

    @property
    def waiting(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.waits]

    @property
    def approvable(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.approvable]

    @property
    def too_long(self) -> list[Draft]:
        return [draft for draft in self.waiting if draft.too_many]


def by_slot(drafts: Iterable[Draft]) -> list[SlotCard]:
    """One card per slot and product, in the order of the slots, outlets in their usual order."""
    order = list(OUTLETS)
    ordered = sorted(drafts, key=lambda draft: (*_slot_of(draft), order.index(draft.post.outlet)))
    return [SlotCard(list(group)) for _, group in groupby(ordered, key=_slot_of)]


def _slot_of(draft: Draft) -> tuple[float, str]:
    return draft.post.slot_at, draft.post.product_id


def needs_a_person(post: Post) -> bool:
    """Whether the post went off its way and waits for its owner to say what now."""
    return post.state in NEEDS_A_PERSON - {State.AWAITING_REVIEW}
