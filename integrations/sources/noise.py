"""What a message says of its work: that it is nobody's news, whose words to tell it in, and which
other work it is about. Pure: a message and its author in, words and refs out.

The reasons are shown to the person, who can overrule each of them with one tap; so a rule may
be wrong now and then, but it must say plainly what it took the work for.
"""

import re
from collections.abc import Iterable

_BOTS = {
    "dependabot",
    "dependabot-preview",
    "github-actions",
    "greenkeeper",
    "pre-commit-ci",
    "renovate",
    "renovate-bot",
    "semantic-release-bot",
    "snyk-bot",
}
# These write features at the request of a person, whose work it is; GitHub calls them bots too.
_CODING_AGENTS = {
    "chatgpt-codex-connector",
    "claude",
    "copilot",
    "copilot-swe-agent",
    "cursor",
    "devin-ai-integration",
    "google-labs-jules",
}
_SKIP_LABELS = {"nopost", "no-post", "skip-post"}

_CONVENTIONAL = re.compile(r"(?P<type>\w+)(\([^)]*\))?(?P<breaking>!)?:\s*(?P<subject>.*)")
_TYPES = {
    "build": "a change of the build",
    "chore": "a chore",
    "ci": "a change of the build",
    "deps": "an update of dependencies",
    "docs": "documentation",
    "doc": "documentation",
    "refactor": "a refactoring",
    "release": "a version bump",
    "revert": "a revert",
    "style": "code style",
    "test": "tests",
    "tests": "tests",
    "wip": "unfinished work",
}
_LEADING_MARKS = re.compile(r"^(:\w+:|[^\w\[.:])+")  # gitmoji and emoji

_VERSION = r"v?\d+(\.\d+)+[-+.\w]*"
_PATTERNS = [
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"(fixup|squash|amend)!.*", "a fixup of another commit"),
        (r"(\[wip\]|wip\b).*", "unfinished work"),
        (r"revert(s|ed)?\b.*", "a revert"),
        (r"merge (pull request|(remote-tracking )?branch(es)?|tags?|commit) .*", "a merge commit"),
        (r"merge \S+ into \S+", "a merge commit"),
        (r"merged? (in )?\S+ \(pull request #\d+\)", "a merge commit"),
        (
            rf"(bump|set|update|increase) (the )?version( number)?( to {_VERSION})?",
            "a version bump",
        ),
        (
            rf"(bump|update|upgrade) .*\bfrom {_VERSION} to {_VERSION}.*",
            "an update of dependencies",
        ),
        (r"(bump|update) .*\bdependenc(y|ies)\b.*", "an update of dependencies"),
        (rf"(update|upgrade|bump) \S+ to (v\d+|{_VERSION})", "an update of dependencies"),
        (r"bump (the )?\S+ group.*", "an update of dependencies"),
        (
            r"((prepare|cut|publish|tag|bump)( for)?( to)? )?(the )?(release|version)?:? ?"
            rf"{_VERSION}( release)?",
            "a version bump",
        ),
        (
            r"((fix(es|ed)?|run|apply|please|satisfy|appease) )?((all|some|the|minor) )*"
            r"(lint(er|ing|s)?|eslint|ruff|black|prettier|isort|gofmt|rustfmt|clippy)"
            r"( (errors?|issues?|warnings?|fix(es)?))?",
            "code style",
        ),
        (
            r"(fix(es|ed)? |re-?)?(code )?(format(ting|ted)?|indentation|whitespace)"
            r"( (code|files|everything|with \w+))?",
            "code style",
        ),
        (
            r"(fix(es|ed)?|correct(s|ed)?) ((a|some|the|minor|small) )*(typos?|spelling)( in .*)?",
            "a typo",
        ),
        (r"typos?( in .*)?", "a typo"),
        (
            r"(add|create|edit|fix|improve|tweak|update)s? (the )?"
            r"(readme|changelog|license|contributing|docs|documentation)\b.*",
            "documentation",
        ),
        (r"(add|fix|improve|update|extend)s? (more |the |some |missing )*(unit )?tests?", "tests"),
        (
            r"(add|fix|improve|update)s? (the )?"
            r"(ci|build|workflows?|pipeline|github actions?|\.?gitignore)",
            "a change of the build",
        ),
        (r"initial (commit|import)", "the first commit"),
        # What GitHub's own editor proposes.
        (
            r"(create|delete|rename|update) \S+\.\w+|add files via upload",
            "a message that says nothing",
        ),
        (
            r"(fix(es|ed)?|update[sd]?|changes?|stuff|misc|minor|small|tweaks?|clean ?up|test(ing)?"
            r"|temp|tmp|save|bug ?fix(es)?|(minor|small|misc) (fix(es)?|changes|tweaks))?\W*",
            "a message that says nothing",
        ),
    )
]
SAID_NO = "its author said so"
SMALLEST_TITLE = 8  # letters
# Reasons that are somebody's decision or a plain fact, where the others are guesses by the words.
_SURE = ("labelled “", "made by a bot", SAID_NO)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_POST_LINE = re.compile(r"^[ \t]*post:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_NO = {"n/a", "no", "none", "nothing", "skip"}

_REVERTED_SHA = re.compile(r"\breverts? commit ([0-9a-f]{7,64})\b", re.IGNORECASE)
_REVERTED_PULL = re.compile(r"^\W*reverts? (?:[\w.-]+/[\w.-]+)?#(\d{1,9})\b", re.I | re.M)
_REVERTED_TITLE = re.compile(
    r"(?P<verb>revert|reapply):? [\"“](?P<title>.+)[\"”](?: \(#\d+\))?", re.IGNORECASE
)
_REVERTED_PLAINLY = re.compile(r"revert: (?P<title>.+)", re.IGNORECASE)
_FIXED = re.compile(
    r"(?:\bfix(?:e[sd])?|\bfollow[- ]?up(?: (?:to|of|on|for))?|\bregression (?:from|in|of)"
    r"|\b(?:broken|introduced) (?:by|in|with)):? +(?:commit |[\w.-]+/[\w.-]+(?=#))?"
    r"(?:#(?P<pull>\d{1,9})\b|(?P<sha>(?=[a-f]*\d)[0-9a-f]{7,64})\b)",
    re.IGNORECASE,
)
_NAMED_PULL = re.compile(r"(?:/pull/|(?<![\w&/])#)(\d{1,9})\b")
_FINAL_VERSION = re.compile(
    r"(?:v|release|version)?[-_/ ]?(\d{1,18}(?:\.\d{1,18}){0,3})", re.IGNORECASE
)

_MERGE = re.compile(r"Merge pull request #(\d{1,9})\b")
_SQUASH = re.compile(r".*\(#(\d{1,9})\)")
_VERSION_TAG = re.compile(r"(?:^|[^a-z0-9.])(?:v\d+(?:\.\d+)*|\d+(?:\.\d+)+)(.*)$")
_PRERELEASE = re.compile(
    r"(^|[-_.])(alpha|beta|canary|dev|experimental|insiders?|next|nightly|pre|preview|rc|snapshot)"
    r"[\d.]*\b|^[abc]\d+$|^(alpha|beta|rc)"
)


def why_ignored(title: str, author: str = "", labels: Iterable[str] = ()) -> str:
    """Why a piece of work is no story, in words that complete "ignored because it is …", or ""."""
    return bot(author) or _labelled(labels) or _message(title)


def bot(author: str, says_bot: bool = False) -> str:
    """The reason for work by a program; `says_bot` is the source's own word for it."""
    name = author.lower().removesuffix("[bot]")
    if name in _CODING_AGENTS:
        return ""
    if says_bot or author.lower().endswith("[bot]") or name in _BOTS:
        return f"made by a bot ({name})" if name else "made by a bot"
    return ""


def merge_of(message: str) -> int | None:
    """The pull request that a merge commit made by GitHub merges, by its message."""
    found = _MERGE.match(message)
    return int(found[1]) if found else None


def pull_request_of(title: str) -> int | None:
    """The pull request that a commit is the merge, or the squashed whole, of, by its first line."""
    squashed = _SQUASH.fullmatch(title)
    return int(squashed[1]) if squashed else merge_of(title)


def why_tag_ignored(tag: str) -> str:
    """Why a tag is no story: only the tags of final versions are."""
    version = _VERSION_TAG.search(tag.lower())
    if not version:
        return "a tag that is not a version"
    return "a prerelease" if _PRERELEASE.search(version[1]) else ""


def is_sure(reason: str) -> bool:
    """Whether a reason holds for all that is known of the same work, whatever else tells of it."""
    return reason.startswith(_SURE)


def is_small(title: str) -> bool:
    """Whether a title is too short to say anything to a reader. Only for words that are written
    in Latin letters: in other scripts a word or two say a lot."""
    subject = subject_of(title)
    letters = sum(character.isalpha() for character in subject)
    return subject.isascii() and (letters < SMALLEST_TITLE or len(subject.split()) < 2)


def said_in(body: str) -> str:
    """What its author wants to be posted: what a line of the form "Post: …" says, or "".

    "Post: no" is the author's wish that nothing is: `is_no` tells.
    """
    found = _POST_LINE.search(_COMMENT.sub("", body))
    return found[1].strip() if found else ""


def is_no(said: str) -> bool:
    return said.casefold().strip(" .!") in _NO


def subject_of(title: str) -> str:
    """A title without gitmoji, conventional prefix and the number of its pull request."""
    subject = _LEADING_MARKS.sub("", title).strip()
    if conventional := _CONVENTIONAL.fullmatch(subject):
        subject = conventional["subject"]
    return re.sub(r"(?: \(#\d{1,9}\))+$", "", subject).strip()


def scope_of(title: str) -> tuple[str, str]:
    """The type and the scope of a conventional title, "feat" and "ui" of "feat(ui): …", or ""s."""
    found = _CONVENTIONAL.fullmatch(_LEADING_MARKS.sub("", title))
    return (found["type"].lower(), (found[2] or "").strip("()").lower()) if found else ("", "")


def title_ref(title: str) -> str:
    """A title as a ref, for work that is named by nothing else."""
    title = re.sub(r"(?: \(#\d{1,9}\))+$", "", " ".join(title.split()))
    return f"title:{title.casefold()}"


def reverted_by(title: str, body: str) -> set[str]:
    """The refs of the work that this takes back."""
    refs = {f"sha:{sha.lower()}" for sha in _REVERTED_SHA.findall(body)}
    refs |= {f"pr:{number}" for number in _REVERTED_PULL.findall(f"{title}\n{body}")}
    found = _REVERTED_TITLE.fullmatch(title)
    if found and found["verb"].lower() == "reapply":
        refs.add(title_ref(f'Revert "{found["title"]}"'))
    elif found or (found := _REVERTED_PLAINLY.fullmatch(title)):
        refs.add(title_ref(found["title"]))
    if found and (squashed := _SQUASH.fullmatch(found["title"])):
        refs.add(f"pr:{squashed[1]}")
    return refs


def fixed_by(title: str, body: str) -> set[str]:
    """The refs of the work that this mends."""
    return {
        f"pr:{found['pull']}" if found["pull"] else f"sha:{found['sha'].lower()}"
        for found in _FIXED.finditer(f"{title}\n{body}")
    }


def told_in(notes: str) -> set[str]:
    """The refs of the pull requests that a release's notes name."""
    return {f"pr:{number}" for number in _NAMED_PULL.findall(notes)}


def version_ref(version: str) -> str:
    """A final version as a ref that is the same at every source, or "": v1.5 is version:1.5.0.

    A prefix may tell one part of a repository from another, so only plain ones are taken off.
    """
    found = _FINAL_VERSION.fullmatch(version.strip())
    if not found or (found[1] == version.strip() and "." not in version):
        return ""
    numbers = [str(int(number)) for number in found[1].split(".")]
    return "version:" + ".".join([*numbers, "0", "0"][: max(3, len(numbers))])


def _labelled(labels: Iterable[str]) -> str:
    return next((f"labelled “{label}”" for label in labels if label.lower() in _SKIP_LABELS), "")


def _message(title: str) -> str:
    subject = _LEADING_MARKS.sub("", title)
    conventional = _CONVENTIONAL.fullmatch(subject)
    if conventional:
        reason = _TYPES.get(conventional["type"].lower(), "")
        # "refactor!: drop the old API" breaks something for its users: they want to know.
        if reason and not conventional["breaking"]:
            return reason
        if conventional["type"].lower() in {*_TYPES, "feat", "fix", "perf"}:
            subject = conventional["subject"]
    return next((reason for pattern, reason in _PATTERNS if pattern.fullmatch(subject)), "")
