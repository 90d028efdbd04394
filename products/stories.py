"""Which activity is one story, and which is none. Pure: activities in, a verdict on each out.

Nothing of this is stored: it is said anew whenever it is read, and does not depend on the order
in which the activities arrived.

What tells of one change (a merged pull request, its commits, its deployments) shares `sha:` or
`pr:`; what tells of one version (a tag, a release, a version in the store) shares `tag:` or
`version:`. The two are never taken for one: a version is made of changes. A change is *part of*
the version whose notes name it or whose tag is put on it, of the change that it mends before
anybody had it, or of the same change under another hash. Part of means: told by the other's
telling.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from integrations.sources import noise
from integrations.sources.base import STAGES
from products import secrecy
from products.activity import is_sure
from products.tables import Activity

CHANGES = {"commit", "deployment", "merge"}
VERSIONS = {"release", "tag", "version"}
# What leads a story is what says most of it.
PRECEDENCE = ("version", "release", "merge", "tag", "deployment", "commit")
_OWN_REFS = {
    **dict.fromkeys(CHANGES, ("sha:", "pr:")),
    **dict.fromkeys(VERSIONS, ("tag:", "version:")),
}
_STAGE_OF = {"merge": "merged", "commit": "merged", "release": "released"}
REVERTED = "it was reverted"
REVERT = "a revert"
TOO_SMALL = "too small to say anything"


@dataclass(frozen=True)
class Verdict:
    """What one activity is: a story, part of another one, or ignored."""

    item: Activity
    stage: str = ""  # one of STAGES
    ignored: str = ""  # why, in words; else ""
    part_of: Activity | None = None  # what leads the story that tells of it
    same: tuple[Activity, ...] = ()  # of a story: what else tells of the same change or version
    parts: tuple[Activity, ...] = ()  # of a story: whatever is part of it

    @property
    def is_story(self) -> bool:
        return not self.ignored and self.part_of is None

    @property
    def everything(self) -> tuple[Activity, ...]:
        return (self.item, *self.same, *self.parts)

    @property
    def refs(self) -> set[str]:
        """The refs of the change or version itself, without those of its parts."""
        return {ref for item in (self.item, *self.same) for ref in _own_refs(item)}


@dataclass(eq=False)
class _Group:
    """What tells of one change or one version."""

    members: list[Activity]
    lead: Activity
    ignored: str = ""
    parent: "_Group | None" = None
    refs: set[str] = field(default_factory=set)

    @property
    def is_story(self) -> bool:
        return not self.ignored and self.parent is None

    @property
    def chosen(self) -> bool:
        """Whether a person said that this is a story."""
        return _is_chosen(self.lead)

    @property
    def is_change(self) -> bool:
        return self.lead.kind in CHANGES

    @property
    def at(self) -> tuple[int, str]:
        """When the work was done."""
        work = [item for item in self.members if item.kind in {"merge", "commit"}]
        return min(map(_at, work or self.members))

    def about(self, what: str) -> set[str]:
        return {ref for item in self.members for ref in (item.about or {}).get(what, ())}

    @property
    def root(self) -> "_Group":
        return self.parent.root if self.parent else self


def judge(activities: Iterable[Activity], never_mention: str | None = None) -> list[Verdict]:
    """A verdict on each activity, in the order in which they happened.

    `never_mention`: the product's words to keep out of posts, one a line. A person's own verdict
    wins over everything.
    """
    items = sorted(activities, key=_at)
    groups = [_group(members) for members in _united(items)]
    _ignore_unfit(groups, secrecy.kept_words(never_mention))
    _ignore_reverted(groups)
    _find_versions(groups)
    _find_repeats(groups)
    _find_mends(groups)
    return sorted(_verdicts(groups), key=lambda verdict: _at(verdict.item))


# -- what is one -----------------------------------------------------------------------------------


def _at(item: Activity) -> tuple[int, str]:
    """When it happened, and its id: not its key, whose time depends on who told it first."""
    return int(item.occurred_at), item.key.partition("#")[2]


def _own_refs(item: Activity) -> set[str]:
    kinds = _OWN_REFS.get(item.kind, ())
    is_preview = item.kind == "deployment" and not _is_live(item)
    return set() if is_preview else {ref for ref in item.refs or () if ref.startswith(kinds)}


def _is_live(item: Activity) -> bool:
    """Whether a deployment reached production; a preview of the same commit has its own id."""
    return item.kind == "deployment" and "#deployment:" in item.key


def _united(items: Sequence[Activity]) -> list[list[Activity]]:
    """What shares a ref, through however many others, is together."""
    found: list[tuple[set[str], list[Activity]]] = []
    for item in items:
        refs, members, apart = _own_refs(item), [item], []
        for group in found:
            if group[0] & refs:
                refs |= group[0]
                members += group[1]
            else:
                apart.append(group)
        found = [*apart, (refs, members)]
    return [sorted(members, key=_at) for _, members in found]


def _group(members: list[Activity]) -> _Group:
    """Who leads, and why it is no story if all that is known of it says so, or one thing surely."""
    chosen = [item for item in members if _is_chosen(item)]
    refused = [item for item in members if is_sure(item.ignored or "")]
    fit = [item for item in members if not item.ignored and not _is_detail(item, members)]
    candidates = chosen if refused else [*chosen, *fit]
    lead = min(candidates or refused or members, key=_precedence)
    refs = {ref for item in members for ref in _own_refs(item)}
    ignored = "" if candidates else next(i.ignored for i in (lead, *members) if i.ignored)
    return _Group(members, lead, ignored or "", refs=refs)


def _is_detail(item: Activity, members: list[Activity]) -> bool:
    """Whether another one knows better what this is: the pull request of one of its commits (which
    is not the whole of it), the release of a tag, which knows of prereleases."""
    kinds = {member.kind for member in members}
    if item.kind == "commit":
        return "merge" in kinds and not noise.pull_request_of(item.title)
    return item.kind == "tag" and "release" in kinds


def _is_chosen(item: Activity) -> bool:
    return bool(item.overruled and not item.ignored)


def _precedence(item: Activity) -> tuple[int, tuple[int, str]]:
    known = item.kind in PRECEDENCE
    return PRECEDENCE.index(item.kind) if known else len(PRECEDENCE), _at(item)


# -- what is no story by itself --------------------------------------------------------------------


def _ignore_unfit(groups: list[_Group], kept_words: list[str]) -> None:
    for group in groups:
        if group.ignored or group.chosen:
            continue
        texts = [
            text
            for item in group.members
            for text in (item.title, item.body, item.said, item.version)
            if text
        ]
        if word := secrecy.mentioned(kept_words, *texts):
            group.ignored = f"mentions “{word}”, which you keep out of posts"
        elif group.is_change and not any(item.said or item.body for item in group.members):
            group.ignored = TOO_SMALL if noise.is_small(group.lead.title) else ""


def _ignore_reverted(groups: list[_Group]) -> None:
    """What was taken back, unless the taking back was itself taken back."""
    undone: set[int] = set()
    for group in sorted(groups, key=lambda group: group.at, reverse=True):
        reverts = group.about("reverts")
        if not reverts:
            continue
        if id(group) not in undone:
            undone |= {id(other) for other in _named(reverts, groups, before=group)}
        if not group.ignored and not group.chosen and not any(i.said for i in group.members):
            group.ignored = REVERT
    for group in groups:
        if id(group) in undone and not group.ignored and not group.chosen:
            group.ignored = REVERTED


def _named(refs: set[str], groups: list[_Group], before: _Group) -> list[_Group]:
    """The earlier changes that refs name; by its title only the last one of that title."""
    earlier = [group for group in groups if group.is_change and group.at < before.at]
    found = [group for group in earlier if _names(refs, group.refs)]
    titled = [
        group for group in earlier if refs & {noise.title_ref(item.title) for item in group.members}
    ]
    return found or sorted(titled, key=lambda group: group.at)[-1:]


def _names(refs: set[str], others: set[str]) -> bool:
    """Whether one of the refs is among others; a hash may be cut short."""
    if refs & others:
        return True
    hashes = tuple(ref for ref in refs if ref.startswith("sha:"))
    return bool(hashes) and any(other.startswith(hashes) for other in others)


# -- what is part of another story -----------------------------------------------------------------


def _open(groups: list[_Group]) -> list[_Group]:
    """The changes that may still become part of something, in the order in which they happened."""
    found = [group for group in groups if group.is_change and group.is_story and not group.chosen]
    return sorted(found, key=lambda group: group.at)


def _find_versions(groups: list[_Group]) -> None:
    """A version's notes name what it brings, and its tag the last of it. A mere tag says less than
    the change that it is put on, and is part of that instead."""
    versions = [group for group in groups if group.lead.kind in VERSIONS and group.is_story]
    for version in sorted(versions, key=lambda group: group.at):
        refs = {ref for item in version.members for ref in item.refs or ()}
        brought = [group for group in _open(groups) if group.refs & (refs | version.about("tells"))]
        if version.lead.kind == "tag" and brought and not version.chosen:
            version.parent = brought[-1]
            continue
        for group in brought:
            group.parent = version


def _find_repeats(groups: list[_Group]) -> None:
    """The same commit again under another hash: rebased, or forced upon what was there."""
    first: dict[str, _Group] = {}
    for group in sorted(_open(groups), key=lambda group: (group.lead.kind != "merge", group.at)):
        head = first.setdefault(noise.title_ref(group.lead.title), group)
        authors = {item.author for item in (head.lead, group.lead) if item.author}
        if head is not group and group.lead.kind != "merge" and len(authors) < 2:
            group.parent = head


def _find_mends(groups: list[_Group]) -> None:
    """What mends a change that nobody has yet is part of it, where there are versions to have."""
    outs = [
        _at(item)
        for group in groups
        for item in group.members
        if _is_live(item) or (item.kind in VERSIONS and not item.ignored)
    ]
    changes = [group for group in groups if group.lead.kind in {"merge", "commit"}]
    for group in _open(changes) if outs else []:
        mended = [
            other
            for other in _mended(group, changes)
            if not any(other.at <= out < group.at for out in outs) and other.root is not group
        ]
        if mended:
            group.parent = max(mended, key=lambda other: other.at).root


def _mended(group: _Group, changes: list[_Group]) -> list[_Group]:
    """The earlier changes that a change names as what it mends, or that brought what it mends:
    `fix(map)` mends `feat(map)`."""
    fixes = group.about("fixes")
    kind, scope = noise.scope_of(group.lead.title)
    brought = ("feat", scope) if kind == "fix" and scope else None
    if not fixes and not brought:
        return []
    return [
        other
        for other in changes
        if other.at < group.at
        and not other.ignored
        and (_names(fixes, other.refs) or noise.scope_of(other.lead.title) == brought)
    ]


# -- the verdicts ----------------------------------------------------------------------------------


def _verdicts(groups: list[_Group]) -> Iterable[Verdict]:
    live_until = _live_until(groups)
    parts: dict[int, list[Activity]] = {}
    for group in groups:
        if group.parent:
            parts.setdefault(id(group.root), []).extend(group.members)
    for group in groups:
        stage = max(_stage(group, live_until), _version_stage(group), key=STAGES.index)
        for item in group.members:
            if item is group.lead and group.is_story:
                same = tuple(other for other in group.members if other is not item)
                brought = sorted(parts.get(id(group), ()), key=_at)
                yield Verdict(item, stage, same=same, parts=tuple(brought))
            elif _is_chosen(item):
                yield Verdict(item, stage)
            elif group.ignored or is_sure(item.ignored or ""):
                yield Verdict(item, stage, ignored=item.ignored or group.ignored)
            else:
                yield Verdict(item, stage, part_of=group.root.lead)


def _live_until(groups: list[_Group]) -> int:
    """Up to when work has reached people: the last commit that a production deployment is of."""
    return max(
        (
            int(item.occurred_at)
            for group in groups
            if any(map(_is_live, group.members))
            for item in group.members
            if item.kind in {"merge", "commit"}
        ),
        default=-1,
    )


def _stage(group: _Group, live_until: int) -> str:
    stages = [item.stage or _STAGE_OF.get(item.kind, "") for item in group.members]
    worked = group.lead.kind in {"merge", "commit"} and group.at[0] <= live_until
    if worked or any(map(_is_live, group.members)):
        stages.append("live")
    return max(stages, key=STAGES.index)


def _version_stage(group: _Group) -> str:
    """What a version brings has got as far as the version."""
    return _stage(group.root, -1) if group.root.lead.kind in VERSIONS else ""
