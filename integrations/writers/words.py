"""The composer's own words. Whatever else stands in a post comes from its evidence."""

from collections.abc import Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# -- verbs: base -> what it does ("shows"), what was done ("showed") -------------------------------

_IRREGULAR = {
    "bring": ("brings", "brought"),
    "build": ("builds", "built"),
    "cut": ("cuts", "cut"),
    "drop": ("drops", "dropped"),
    "hide": ("hides", "hid"),
    "keep": ("keeps", "kept"),
    "let": ("lets", "let"),
    "make": ("makes", "made"),
    "put": ("puts", "put"),
    "read": ("reads", "read"),
    "rebuild": ("rebuilds", "rebuilt"),
    "redo": ("redoes", "redid"),
    "rewrite": ("rewrites", "rewrote"),
    "run": ("runs", "ran"),
    "send": ("sends", "sent"),
    "ship": ("ships", "shipped"),
    "show": ("shows", "showed"),
    "speed": ("speeds", "sped"),
    "split": ("splits", "split"),
    "stop": ("stops", "stopped"),
    "swap": ("swaps", "swapped"),
    "trim": ("trims", "trimmed"),
    "understand": ("understands", "understood"),
    "write": ("writes", "wrote"),
}


def _third(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _past(verb: str) -> str:
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}ed"


def _forms(verbs: str) -> dict[str, tuple[str, str]]:
    return {verb: _IRREGULAR.get(verb, (_third(verb), _past(verb))) for verb in verbs.split()}


# What a developer does to the product. "Add dark mode" is news of dark mode.
NEWS = _forms("add introduce implement")
FIXES = _forms("fix correct resolve repair")
WORK = _forms(
    "improve update upgrade remove drop rename move replace change make rework redesign redo"
    " rebuild rewrite simplify polish refine reduce increase speed tweak extend expand enable"
    " disable switch adjust align raise lower shorten unify split restyle tighten harden cut trim"
    " swap localise localize optimise optimize stop modernise modernize bring ship create"
)
# What the product does from now on: "Show distances in miles".
DEEDS = _forms(
    "support use allow let show hide remember warn handle keep respect accept validate prevent"
    " protect detect notify suggest highlight preserve restore recognise recognize understand"
    " require send avoid"
)
# The same, where the word is as often a noun: only before a word that a verb takes.
DEEDS_OR_THINGS = _forms(
    "display sync work load open save export import sort filter group run start offer"
    " include render track retry resume return report ask confirm translate convert count play"
    " pause follow block cache generate calculate read write log link list print expose search"
    " scroll zoom refresh"
)
AFTER_A_VERB = _words(
    "the a an all any your their its it this that these those to from by in into on at when with"
    " without as only every each more less fewer both across while until if before after up"
    " multiple several new one two"
)
# "Option to hide finished trips" is a thing; "dark mode toggle to the settings" is not.
TAKES_AN_INFINITIVE = _words(
    "option options button way ways setting settings command shortcut flag link ability switch"
    " toggle action"
)
BEFORE_A_PLACE = _words("the a an all any every each your their its")
# "Support for passkeys" is a thing as well.
BEFORE_A_THING = _words("for of page pages team email chat form ticket tickets")
# Not lowered in the middle of a sentence.
PROPER = _words(
    "Android Apple Arabic Bluesky British Chinese Chrome Discord Django Docker Dutch Edge English"
    " Firefox French Friday German Gmail Google Hindi Instagram Italian Japanese Korean Linux Mac"
    " Mastodon Microsoft Monday Netlify Node Notion Outlook Polish Portuguese Python Rails React"
    " Redis Russian Rust Safari Saturday Slack Spanish Stripe Sunday Svelte Swift Swedish Telegram"
    " Threads Thursday Tuesday Turkish Ubuntu Ukrainian Vercel Vue Wednesday Windows Zapier"
)
# Not raised at the beginning of one.
LOWER = _words("curl git npm npx nginx pip pnpm ssh systemd uv vim webpack yarn")

# -- sentences -------------------------------------------------------------------------------------
# {p} product, {v} version, {x} what is told. As many to choose from as no plan repeats at once:
# never five or seven.

RELEASE_WITH = (
    "{p} {v} is out: {x}.",
    "New in {p} {v}: {x}.",
    "{p} {v} is here, with {x}.",
    "Released: {p} {v}, with {x}.",
)
RELEASE = (
    "{p} {v} is out.",
    "{p} {v} is here.",
    "Released: {p} {v}.",
)
RELEASE_OURS = (
    "{i} released {p} {v}.",
    "{p} {v} is out.",
    "{i} shipped {p} {v}.",
)
RELEASE_ABOUT = (
    "{p} {v} is out: {x}.",
    "{p} {v} is here: {x}.",
    "Released: {p} {v}. {X}.",
)
TAG = (
    "{p} {v} is tagged.",
    "Tagged: {p} {v}.",
)
NEW = (
    "New in {p}: {x}.",
    "{p} now has {x}.",
    "{X}, now in {p}.",
    "Shipped in {p}: {x}.",
)
NEW_OURS = (
    "{i} added {x} to {p}.",
    "New in {p}: {x}.",
    "{p} now has {x}.",
)
DEED = (
    "{p} now {x}.",
    "From now on, {p} {x}.",
    "New: {p} now {x}.",
)
DONE = (
    "{p} update: {x}.",
    "What changed in {p}: {x}.",
    "Latest in {p}: {x}.",
)
DONE_OURS = (
    "In {p}, {i_low} {x}.",
    "{p} update: {x}.",
    "Latest in {p}: {i_low} {x}.",
)
FIX = (
    "Fixed in {p}: {x}.",
    "{p} fix: {x}.",
    "A fix in {p}: {x}.",
)
FIXES_IN = (
    "Fixed in {p}: {x}.",
    "Fixes in {p}: {x}.",
    "{p} fixes: {x}.",
)
PLAIN = (
    "{p} update: {x}.",
    "Latest in {p}: {x}.",
    "New in {p}: {x}.",
)
NAMED = ("{X}.",)  # what is told names the product itself
OPENINGS = {
    "release": RELEASE,
    "tag": TAG,
    "new": NEW,
    "deed": DEED,
    "done": DONE,
    "fix": FIX,
    "plain": PLAIN,
}
OPENINGS_OURS = OPENINGS | {"release": RELEASE_OURS, "new": NEW_OURS, "done": DONE_OURS}

EVERGREEN = (
    "{p}: {x}",
    "{p} in short: {x}",
    "Meet {p}: {x}",
)
FOR = "Made for {x}."
CLOSINGS = (
    "Try it: {link}",
    "Have a look: {link}",
    "More here: {link}",
)
ALSO = "Also:"
MORE = "Plus {n} more."
HEADING = "Version {v}"
LIST_WORDS = ("and", "Also", "also", "new", "New", "It", "it", "now", "Now", "Fixed", "fixed", "no")
PEOPLE = ("I", "We", "we")
MARKS = {"release": "🚀", "tag": "🏷️", "new": "✨", "fix": "🐛"}


def _templates() -> Iterator[str]:
    for group in (
        *OPENINGS.values(),
        *OPENINGS_OURS.values(),
        RELEASE_WITH,
        RELEASE_ABOUT,
        FIXES_IN,
    ):
        yield from group
    yield from (*NAMED, *EVERGREEN, *CLOSINGS, FOR, ALSO, MORE, HEADING, *LIST_WORDS, *PEOPLE)


def _vocabulary() -> Iterator[str]:
    for template in _templates():
        yield from template.replace("{", " {").replace("}", "} ").split()
    for verbs in (NEWS, FIXES, WORK, DEEDS, DEEDS_OR_THINGS):
        for base, forms in verbs.items():
            yield from (base, *forms)
    yield "lets you no longer"


# Every word that the composer may use of its own accord.
VOCABULARY = frozenset(
    word.strip(".,:;").casefold()
    for phrase in _vocabulary()
    for word in phrase.split()
    if not word.startswith("{")
)
