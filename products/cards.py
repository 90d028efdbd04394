"""What the review pages show of posts: one card per slot, one draft per outlet."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from integrations.outlets import OUTLETS, text_length, text_limit
from products import posts
from products.states import NEEDS_A_PERSON, State
from products.tables import Post
from slothpost_site.moments import as_key


@dataclass(frozen=True)
class Draft:
    """One post as a person sees it. `typed` is a text that was refused, kept in its field."""

    post: Post
    error: str = ""
    typed: str | None = None

    @property
    def text(self) -> str:
        return self.post.text or "" if self.typed is None else self.typed

    @property
    def slot(self) -> str:
        return as_key(self.post.slot_at)

    @property
    def element_id(self) -> str:
        return f"post-{self.slot}-{self.post.product_id}-{self.post.outlet}"

    @property
    def label(self) -> str:
        return OUTLETS[self.post.outlet].label

    @property
    def unit(self) -> str:
        return OUTLETS[self.post.outlet].unit

    @property
    def by_hand(self) -> bool:
        return OUTLETS[self.post.outlet].publish is None

    @property
    def limit(self) -> int:
        return text_limit(self.post.outlet)

    @property
    def length(self) -> int:
        return text_length(self.post.outlet, self.text)

    @property
    def too_many(self) -> int:
        return max(0, self.length - self.limit)

    @property
    def seen(self) -> str:
        """The hash of the text as this page shows it, which a decision binds to."""
        return posts.text_hash(self.post)

    @property
    def approvable(self) -> bool:
        return self.post.state == State.AWAITING_REVIEW and bool(self.text) and not self.too_many


@dataclass(frozen=True)
class SlotCard:
    """The drafts of one product and slot, side by side."""

    drafts: list[Draft]

    @property
    def post(self) -> Post:
        """Any of the slot's posts, for what they share."""
        return self.drafts[0].post

    @property
    def slot(self) -> str:
        return self.drafts[0].slot

    @property
    def element_id(self) -> str:
        return f"slot-{self.slot}-{self.post.product_id}"

    @property
    def approvable(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.approvable]

    @property
    def waiting(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.post.state == State.AWAITING_REVIEW]


def by_slot(found: Iterable[Post]) -> list[SlotCard]:
    """One card per slot and product, in the order of the slots, outlets in their usual order."""
    order = list(OUTLETS)
    ordered = sorted(
        found, key=lambda post: (post.slot_at, post.product_id, order.index(post.outlet))
    )
    return [
        SlotCard([Draft(post) for post in group])
        for _, group in groupby(ordered, key=lambda post: (post.slot_at, post.product_id))
    ]


def needs_a_person(post: Post) -> bool:
    """Whether the post went off its way and waits for its owner to say what now."""
    return post.state in NEEDS_A_PERSON - {State.AWAITING_REVIEW}
