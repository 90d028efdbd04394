"""Writes posts from stories, offline: picks, groups, words and fits. Pure.

A post leads with the most notable story (a release, else something new, else a fix) and folds in
as many others as its outlet has room for. It says nothing that its stories, the product's own
fields or `words.VOCABULARY` do not say. Stories that found no room are not evidence: they stay
to be told.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from integrations.writers import plain, words
from integrations.writers.base import Brief, Story, Written

# The telling of one change that says most comes first.
RICHEST = ("version", "release", "merge", "deployment", "commit", "tag")
VERSIONS = frozenset(("version", "release"))
NOTABLE = ("release", "tag", "new", "deed", "done", "plain", "fix")
# How many things a post of each outlet tells at most, and from how many on it lists them.
MOST = {"x": 4, "threads": 5, "bluesky": 5, "mastodon": 6, "linkedin": 9, "changelog": 40}
LISTS_FROM = {"threads": 4, "bluesky": 4, "mastodon": 4, "linkedin": 2, "changelog": 1}
TOLD_TOGETHER = frozenset(("new", "deed", "done", "fix"))
FIX_MARKS = frozenset(("fix", "bugfix", "hotfix"))
LONGEST_WORD = 40
LONGEST_FOLDED = 120
ELLIPSIS = "…"


@dataclass(frozen=True)
class Fact:
    """One thing to tell, in the forms that sentences need."""

    kind: str  # one of NOTABLE
    phrase: str  # for the middle of a sentence: "dark mode", "shows distances in miles"
    bullet: str  # on its own: "Dark mode", "Now shows distances in miles"
    keys: tuple[str, ...] = ()
    version: str = ""
    parts: tuple["Fact", ...] = ()  # what a release brings
    occurred_at: float = 0.0
    quiet: bool = False  # a story for its owner's sake: told after all others
    link: str = ""


def write(brief: Brief) -> Written | None:
    """A post from the brief's stories, or None when there is nothing to tell."""
    facts = _facts(brief)
    if not facts:
        return None
    lead = facts[0]
    others = [fact for fact in facts[1:] if _foldable(fact, brief.outlet)]
    foldable = [part for part in lead.parts if _foldable(part, brief.outlet)]
    link = _link(brief, lead)
    room = MOST.get(brief.outlet, MOST["bluesky"]) - (not lead.parts)
    for told in range(min(room, len(foldable) + len(others)), -1, -1):
        parts = foldable[:told]
        folded = others[: told - len(parts)]
        for text in _layouts(brief, lead, parts, folded, link):
            if brief.length(text) <= brief.limit:
                return Written(text, _keys(lead, *folded))
    return _shortened(brief, _opening(brief, lead), link, lead.keys)


def evergreen(brief: Brief) -> Written | None:
    """A post from the product's own pitch, audience and link, or None when it has no pitch."""
    pitch = plain.line(brief.pitch)
    if not pitch:
        return None
    product = _product(brief)
    named = product.casefold() in pitch.casefold()
    template = "{x}" if named or not product else _pick(words.EVERGREEN, brief)
    told = plain.capitalised(pitch) if template == "{x}" else _lowered(pitch)
    opening = _filled(template, p=product, x=_stopped(told))
    audience = plain.line(brief.audience).strip(" .")
    link = _usable(brief.link)
    if audience and len(audience.split()) <= 10:
        text = _closed(f"{opening} {_filled(words.FOR, x=_lowered(audience))}", link)
        if brief.length(text) <= brief.limit:
            return Written(text, ())
    return _shortened(brief, opening, link, ())


# -- picking -------------------------------------------------------------------------------------


def _facts(brief: Brief) -> list[Fact]:
    """One fact per change, the most notable first, later ones before earlier ones."""
    facts: dict[str, Fact] = {}
    for group in _groups(brief.stories):
        fact = _told(group, brief)
        if fact is None:
            continue
        same = fact.bullet.casefold()
        if same in facts:  # the same words from two sides, without a common ref
            fact = replace(facts[same], keys=_keys(facts[same], fact))
        facts[same] = fact
    facts_in_order = sorted(
        facts.values(),
        key=lambda fact: (fact.quiet, NOTABLE.index(fact.kind), -fact.occurred_at),
    )
    return _without_repeats(facts_in_order)


def _without_repeats(facts: list[Fact]) -> list[Fact]:
    """Fold a change into the release that already lists it in the same words."""
    if not facts or not facts[0].parts:
        return facts
    lead = facts[0]
    listed = {part.phrase.casefold() for part in lead.parts}
    repeats = [fact for fact in facts[1:] if fact.phrase.casefold() in listed]
    others = [fact for fact in facts[1:] if fact.phrase.casefold() not in listed]
    return [replace(lead, keys=_keys(lead, *repeats)), *others]


def _keys(*facts: Fact) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for fact in facts for key in fact.keys))


def _groups(stories: Sequence[Story]) -> list[list[Story]]:
    """The stories by change: those that share a ref, through however many others, are one."""
    groups: list[tuple[set[str], list[Story]]] = []
    for story in stories:
        refs = {story.key, *story.refs}
        if story.kind in VERSIONS:
            refs |= plain.pulls(story.body)
        members = [story]
        apart = []
        for group in groups:
            if group[0] & refs:
                refs |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (refs, members)]
    return [sorted(members, key=_richness) for _, members in groups]


def _richness(story: Story) -> int:
    return RICHEST.index(story.kind) if story.kind in RICHEST else len(RICHEST)


def _told(group: list[Story], brief: Brief) -> Fact | None:
    """What a group of tellings of one change says, or None when that is nothing for readers."""
    best = group[0]
    if best.kind in VERSIONS:
        fact = _release(best, group[1:], brief)
    elif best.kind == "tag":
        version = _version(best)
        fact = Fact("tag", version, version, version=version) if version else None
    else:
        items = [item for story in group if (item := plain.item(story.title)).text]
        items.sort(key=plain.is_news, reverse=True)
        fact = replace(_fact(items[0]), quiet=not plain.is_news(items[0])) if items else None
    if fact is None:
        return None
    keys = tuple(dict.fromkeys(story.key for story in group))
    return replace(fact, keys=keys, occurred_at=best.occurred_at.timestamp(), link=best.link)


def _release(story: Story, merged: list[Story], brief: Brief) -> Fact | None:
    version = _version(story)
    items = list(plain.notes(story.body))
    if not items and not plain.has_bullets(story.body):
        merges = (
            plain.item(other.title) for other in merged if other.kind not in {*VERSIONS, "tag"}
        )
        items = [item for item in merges if plain.is_news(item)]
    parts = list(dict.fromkeys(_fact(item) for item in items))
    about = _about(story, version, brief) or ("" if parts else plain.prose(story.body))
    parts.sort(key=lambda part: NOTABLE.index(part.kind))
    if not version and not about:
        return replace(parts[0], parts=tuple(parts[1:])) if parts else None
    return Fact(
        "release", about, " ".join((version, about)).strip(), version=version, parts=tuple(parts)
    )


_VERSION = regex.compile(r"\d+(?:\.\d+)+(?:[-+.][0-9A-Za-z.+-]*[0-9A-Za-z])?|\d+(?![\w.])")


def _version(story: Story) -> str:
    """The bare number of a release or tag (`app@v1.2.0` is 1.2.0), or its name as it is."""
    name = plain.line(story.version)
    number = _VERSION.search(name)
    return number[0] if number else name


def _about(story: Story, version: str, brief: Brief) -> str:
    """What a release's title says beyond the version and the product's name."""
    text = plain.item(story.title).text
    short = version.removesuffix(".0")
    numbers = (plain.line(story.version), version, short, short.removesuffix(".0"))
    for known in (*(f"v{n}" for n in numbers if n), *numbers, _product(brief), "release"):
        if known:
            shape = rf"(?<![\p{{L}}\p{{N}}.]){regex.escape(known)}(?![\p{{L}}\p{{N}}])"
            text = regex.sub(shape, " ", text, flags=regex.I)
    text = " ".join(text.split()).strip(" -–—:|,.()[]v")  # noqa: RUF001
    return plain.capitalised(text) if len(text) > 2 else ""


# -- wording -------------------------------------------------------------------------------------


def _fact(item: plain.Item) -> Fact:
    """What kind of thing a title tells, by the verb that it begins with."""
    first, _, rest = item.text.partition(" ")
    verb = _base(first)
    if verb and rest:
        if verb in words.NEWS:
            return _news(verb, rest)
        if verb in words.FIXES:
            return Fact("fix", rest, f"Fixed: {rest}")
        if verb in words.WORK:
            phrase = f"{words.WORK[verb][1]} {rest}"
            return Fact("done", phrase, plain.capitalised(phrase))
        if _is_deed(verb, rest.split(" ")[0].lower(), item):
            return _deed(f"{(words.DEEDS | words.DEEDS_OR_THINGS)[verb][0]} {rest}")
    low = _lowered(item.text)
    if item.mark in FIX_MARKS:
        return Fact("fix", low, f"Fixed: {low}")
    if item.mark in {"feat", "feature"}:
        return Fact("new", _lowered(item.short) or low, item.text)
    return Fact("plain", low, item.text)


def _is_deed(verb: str, after: str, item: plain.Item) -> bool:
    """Whether the title says what the product does, not what it has ("Search results page")."""
    if verb in words.DEEDS:
        return after not in words.BEFORE_A_THING
    return item.mark not in FIX_MARKS and after in words.AFTER_A_VERB


def _deed(phrase: str) -> Fact:
    return Fact("deed", phrase, f"Now {phrase}")


def _news(verb: str, rest: str) -> Fact:
    """ "Add dark mode" is news of dark mode; "Add a toggle to the toolbar" is something done."""
    able = regex.match(r"(?:the |an )?(?:ability|option|possibility) to (?=\w)", rest, regex.I)
    if able and rest[able.end() :]:
        return _deed(f"lets you {rest[able.end() :]}")
    if rest.lower().startswith("support for "):
        return _deed(f"supports {rest[len('support for ') :]}")
    before, found, after = rest.partition(" to ")
    thing = before.split(" ")[-1].lower() in words.TAKES_AN_INFINITIVE
    thing = thing and after.split(" ")[0].lower() not in words.BEFORE_A_PLACE
    if (found and not thing) or " into " in rest:
        phrase = f"{words.NEWS[verb][1]} {rest}"
        return Fact("done", phrase, plain.capitalised(phrase))
    return Fact("new", rest, plain.capitalised(rest))


_BASES = {
    form: base
    for verbs in (words.NEWS, words.FIXES, words.WORK, words.DEEDS, words.DEEDS_OR_THINGS)
    for base, forms in verbs.items()
    for form in (base, *forms)
}


def _base(word: str) -> str:
    return _BASES.get(word.lower(), "")


def _lowered(text: str) -> str:
    """As in the middle of a sentence: "Dark mode" is lowered, "GPX export" and "Safari" are not."""
    first, _, rest = text.partition(" ")
    name = first in words.PROPER or first[1:] != first[1:].lower() or not first.isalpha()
    if name or rest[:1].isupper() or (len(first) == 1 and first != "A"):
        return text
    return text[:1].lower() + text[1:]


def _opening(
    brief: Brief, lead: Fact, parts: Sequence[Fact] = (), alike: Sequence[Fact] = ()
) -> str:
    """The first sentence; it takes in a release's news, or other facts of the lead's own kind."""
    product, ours = _product(brief), _person(brief.voice)
    openings = words.OPENINGS_OURS if ours else words.OPENINGS
    options = openings[lead.kind]
    told = _joined([fact.phrase for fact in (lead, *alike)])
    if lead.kind == "fix" and alike:
        options = words.FIXES_IN
    if lead.kind == "release":
        if taken := [part.phrase for part in _taken(lead, parts)]:
            news = parts[0].kind == "new"
            options, told = (words.RELEASE_WITH if news else words.RELEASE_ABOUT), _joined(taken)
        elif lead.phrase:
            options = words.RELEASE_ABOUT
        if not lead.version:
            options = words.PLAIN
    if product and lead.kind != "release" and product.casefold() in told.casefold():
        options = words.NAMED
    if lead.kind == "new" and ours and len(told.split()) > 3:
        options = words.OPENINGS["new"]
    mark = words.MARKS.get(lead.kind, "") if _wants_emoji(brief.voice) else ""
    text = _filled(
        _pick(options, brief),
        p=product,
        v=lead.version,
        x=told,
        X=plain.capitalised(told),
        i=ours,
        i_low="we" if ours == "We" else "I",
    )
    return f"{mark} {text}".strip()


def _taken(lead: Fact, parts: Sequence[Fact]) -> list[Fact]:
    """The parts of a release that its opening can take in: its news, else what has no verb."""
    news = [part for part in parts if part.kind == "new"]
    plainly = [part for part in parts if part.kind == "plain"] if not lead.phrase else []
    return news or (plainly if plainly == list(parts[: len(plainly)]) else [])


def _sentences(facts: Sequence[Fact], also: bool) -> str:
    """Other facts, by kind, as short sentences."""
    by_kind: dict[str, list[str]] = {}
    for fact in facts:
        by_kind.setdefault(fact.kind, []).append(
            fact.bullet if fact.kind in {"plain", "release", "tag"} else fact.phrase
        )
    found = []
    for kind, shape, shape_also in (
        ("new", "New: {x}.", "Also new: {x}."),
        ("deed", "It now {x}.", "It also {x}."),
        ("done", "{X}.", "Also {x}."),
        ("fix", "Fixed: {x}.", "Also fixed: {x}."),
        ("plain", "{X}.", "Also: {x}."),
        ("tag", "{X}.", "Also: {x}."),
        ("release", "{X}.", "Also: {x}."),
    ):
        if told := by_kind.get(kind):
            joined = _joined(told)
            found.append(_filled(shape_also if also else shape, x=joined, X=joined))
            also = False
    return " ".join(found)


def _joined(phrases: Sequence[str]) -> str:
    """ "a, b and c"; with semicolons where the phrases themselves have commas."""
    *start, last = phrases
    if not start:
        return last
    comma = "; " if any("," in phrase for phrase in phrases) else ", "
    between = comma if comma == "; " or any(" and " in phrase for phrase in phrases) else " and "
    return comma.join(start) + between + last


# -- layout --------------------------------------------------------------------------------------


def _layouts(
    brief: Brief, lead: Fact, parts: Sequence[Fact], folded: Sequence[Fact], link: str
) -> Iterator[str]:
    """The texts that could tell these facts on this outlet, the best first."""
    more = len(lead.parts) - len(parts)
    rest = _filled(words.MORE, n=str(more)) if parts and more else ""
    if brief.outlet == "changelog":
        yield _entry(brief, lead, parts, folded, rest, link)
        return
    if len(parts) + len(folded) >= LISTS_FROM.get(brief.outlet, MOST["x"] + 1):
        yield _list(brief, lead, parts, folded, rest, link)
    alike = [fact for fact in folded if fact.kind == lead.kind and fact.kind in TOLD_TOGETHER]
    folded = [fact for fact in folded if fact not in alike]
    opening = _opening(brief, lead, parts, alike)
    taken = _taken(lead, parts)
    unsaid = [part for part in parts if part not in taken]
    body = " ".join(
        filter(None, (opening, _sentences(unsaid, False), rest, _sentences(folded, True)))
    )
    if brief.outlet == "linkedin" and (about := _introduced(brief, body)):
        yield _closed(f"{body}\n\n{about}", link, brief)
    yield _closed(body, link, brief)


def _list(
    brief: Brief, lead: Fact, parts: Sequence[Fact], folded: Sequence[Fact], rest: str, link: str
) -> str:
    blocks = [_opening(brief, lead)]
    if parts:
        blocks.append(_bullets(parts, "•", rest))
    if folded:
        several = f"{words.ALSO}\n{_bullets(folded, '•')}"
        blocks.append(several if folded[1:] else _sentences(folded, also=True))
    if brief.outlet == "linkedin":
        blocks.append(_introduced(brief, " ".join(blocks)))
    return _closed("\n\n".join(filter(None, blocks)), link, brief)


def _entry(
    brief: Brief, lead: Fact, parts: Sequence[Fact], folded: Sequence[Fact], rest: str, link: str
) -> str:
    """A changelog's entry: a heading and a list."""
    heading = lead.bullet
    if lead.version:
        about = lead.phrase if lead.kind == "release" else ""
        heading = ": ".join(filter(None, (_filled(words.HEADING, v=lead.version), about)))
    also = words.ALSO if parts and folded else ""
    others = "\n".join(filter(None, (also, _bullets(folded, "-"))))
    blocks = [heading, _bullets(parts, "-", rest), others]
    return _closed("\n\n".join(filter(None, blocks)), link)


def _bullets(facts: Sequence[Fact], mark: str, rest: str = "") -> str:
    lines = [f"{mark} {fact.bullet}" for fact in facts]
    return "\n".join([*lines, rest] if rest else lines)


def _introduced(brief: Brief, text: str) -> str:
    """The product in a sentence, for readers who do not know it, unless the text has it."""
    product, pitch = _product(brief), plain.first_sentence(plain.line(brief.pitch))
    if not pitch or len(pitch) > 200 or pitch in text:
        return ""
    named = product.casefold() in pitch.casefold()
    return _stopped(pitch if named else f"{product}: {_lowered(pitch)}")


def _closed(text: str, link: str, brief: Brief | None = None) -> str:
    if not link:
        return text
    if brief and brief.outlet == "linkedin":
        link = _filled(_pick(words.CLOSINGS, brief), link=link)
    return f"{text}\n\n{link}"


def _foldable(fact: Fact, outlet: str) -> bool:
    """Short enough, made of words, and of interest enough to stand beside others."""
    if fact.quiet and outlet != "changelog":
        return False
    longest = max(map(len, fact.bullet.split()))
    return len(fact.bullet) <= LONGEST_FOLDED and longest <= LONGEST_WORD


def _shortened(brief: Brief, text: str, link: str, keys: tuple[str, ...]) -> Written | None:
    """As many words as fit before the whole link; the link goes only if it fills the limit."""
    for ending in dict.fromkeys((link, "")):
        whole = _closed(text, ending)
        if brief.length(whole) <= brief.limit:
            return Written(whole, keys)
        for cut in _cuts(text, most_words=brief.limit // 2 + 1):
            shorter = _closed(cut, ending)
            if brief.length(shorter) <= brief.limit:
                return Written(shorter, keys)
    return None


def _cuts(text: str, most_words: int) -> Iterator[str]:
    """Ever fewer words, and of a first word that fills everything ever fewer graphemes."""
    split = text.split()
    for count in range(min(len(split) - 1, most_words), 0, -1):
        yield " ".join(split[:count]).rstrip(" ,.;:–—-") + ELLIPSIS  # noqa: RUF001
    graphemes = regex.findall(r"\X", split[0][:10_000])
    size = len(graphemes)
    while size := size // 2:
        yield "".join(graphemes[:size]) + ELLIPSIS


# -- the product's own fields ----------------------------------------------------------------------


def _product(brief: Brief) -> str:
    return plain.line(brief.product)


def _link(brief: Brief, lead: Fact) -> str:
    """The product's link, else the release's."""
    return _usable(brief.link) or (_usable(lead.link) if lead.kind == "release" else "")


def _usable(link: str) -> str:
    return link.strip() if regex.fullmatch(r"https?://[^\s\p{C}]+", link.strip()) else ""


def _person(voice: str) -> str:
    """Who speaks, if the voice says so: "We", "I" or nobody."""
    if regex.search(r"\bwe\b|\bour\b|\bplural\b", voice, regex.I):
        return "We"
    return "I" if regex.search(r"\bI\b|\bfirst person\b|\bmy\b", voice) else ""


def _wants_emoji(voice: str) -> bool:
    """Only if the voice asks for emoji and does not ask for none."""
    refused = regex.search(
        r"\b(?:no|not|never|without|avoid|zero|don.?t|skip|hate|free of)\b[^.;\n]{0,40}\bemojis?\b",
        voice,
        regex.I,
    )
    return bool(regex.search(r"\bemojis?\b", voice, regex.I)) and not refused


def _pick(options: Sequence[str], brief: Brief) -> str:
    start = zlib.crc32(f"{brief.product}/{brief.outlet}".encode("utf-8", "replace"))
    return options[(start + brief.variation) % len(options)]


def _filled(template: str, **values: str) -> str:
    """The template with its places filled, in one pass: braces in a value mean nothing."""
    return regex.sub(r"\{(\w+)\}", lambda place: values[place[1]], template)


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
