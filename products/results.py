"""What people made of a person's posts, summed up by outlet and by the kind of story they told.

Pure: posts in, tables out. The middle one of the numbers is shown and not their mean, which one
post that took off would carry with it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from integrations.outlets import OUTLETS
from integrations.outlets.base import Outlet
from products.tables import Post

# The kinds of story, in the order in which they are shown, as people call them.
KINDS = {
    "version": "App Store version",
    "release": "Release",
    "merge": "Merged change",
    "commit": "Commit",
    "tag": "Tag",
    "deployment": "Deployment",
    "several": "Several in one post",
    "none": "About the product itself",
}
FEW = 5  # posts of which nothing can be said yet


@dataclass(frozen=True)
class Row:
    """The posts of one kind at one outlet."""

    kind: str
    posts: int
    numbers: list[tuple[str, float | None]]  # by name the middle one; None where none was read

    @property
    def are_few(self) -> bool:
        return self.posts < FEW


@dataclass(frozen=True)
class Results:
    """One outlet's posts whose numbers were read."""

    outlet: Outlet
    names: list[str]
    rows: list[Row]

    @property
    def posts(self) -> int:
        return sum(row.posts for row in self.rows)


def summed_up(posts: Iterable[Post]) -> list[Results]:
    """The outlets and kinds that have numbers, both in the order in which they are listed."""
    read: defaultdict[str, defaultdict[str, list[dict[str, int]]]]
    read = defaultdict(lambda: defaultdict(list))
    for post in posts:
        if post.numbers:
            read[post.outlet][kind_of(post)].append(post.numbers)
    return [_results(OUTLETS[name], read[name]) for name in OUTLETS if name in read]


def kind_of(post: Post) -> str:
    """What kind of story a post tells."""
    kinds = {item["kind"] for item in post.evidence or []}
    if len(kinds) > 1:
        return "several"
    return kinds.pop() if kinds else "none"


def _results(outlet: Outlet, read: dict[str, list[dict[str, int]]]) -> Results:
    names = list(dict.fromkeys(name for kind in read.values() for one in kind for name in one))
    kinds = [*(kind for kind in KINDS if kind in read), *sorted(read.keys() - KINDS.keys())]
    rows = [
        Row(
            KINDS.get(kind, kind.capitalize()),
            len(read[kind]),
            [(name, _middle(read[kind], name)) for name in names],
        )
        for kind in kinds
    ]
    return Results(outlet, names, rows)


def _middle(read: list[dict[str, int]], name: str) -> float | None:
    values = [one[name] for one in read if name in one]
    return median(values) if values else None
