"""Weeks of made-up products, as their stories reach the writer."""

from datetime import UTC, datetime, timedelta

from integrations.outlets import text_length, text_limit
from integrations.writers.base import Brief, Story

MONDAY = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def story(title: str, kind: str = "merge", hours: int = 0, **facts) -> Story:
    return Story(
        **{
            "key": f"{kind}:{title[:60]}",
            "kind": kind,
            "title": title,
            "body": "",
            "link": "",
            "version": "",
            "occurred_at": MONDAY + timedelta(hours=hours),
            "refs": (),
            "source": "github",
            **facts,
        }
    )


def brief(outlet: str, *stories: Story, variation: int = 0, **facts) -> Brief:
    return Brief(
        **{
            "product": "Fernweh",
            "link": "https://fernweh.app",
            "pitch": "A trip planner for long-distance cyclists that works offline.",
            "audience": "",
            "voice": "",
            "outlet": outlet,
            "stories": stories,
            "variation": variation,
            "limit": text_limit(outlet),
            "length": lambda text: text_length(outlet, text),
            **facts,
        }
    )


GENERATED_NOTES = """<!-- Release notes generated using configuration in .github/release.yml -->

## What's Changed
* feat(map): add offline maps by @mira in https://github.com/fernweh/app/pull/41
* Add GPX export by @mira in https://github.com/fernweh/app/pull/43
* fix: wrong distances after crossing the date line by @tomas-k in https://github.com/fernweh/app/pull/44
* Bump vite from 5.4.1 to 5.4.2 by @dependabot in https://github.com/fernweh/app/pull/45
* chore(ci): cache node modules by @mira in https://github.com/fernweh/app/pull/46

## New Contributors
* @tomas-k made their first contribution in https://github.com/fernweh/app/pull/44

**Full Changelog**: https://github.com/fernweh/app/compare/v1.3.0...v1.4.0
"""
WRITTEN_NOTES = """Time for a bigger one.

### Added
- **Shared inboxes**: read and answer mail together
- Keyboard shortcuts for every action (press `?` to see them)
- Support for passkeys

### Changed
- Search is about twice as fast on large mailboxes
- Remember the last opened folder

### Fixed
- Attachments with umlauts in their names could not be opened
- Crash when the network changes during sync

### Internal
- Moved the build to pnpm
"""
RELEASE = story(
    "v1.4.0",
    "release",
    version="v1.4.0",
    body=GENERATED_NOTES,
    link="https://github.com/fernweh/app/releases/tag/v1.4.0",
    refs=("tag:v1.4.0",),
)
WEEKS: dict[str, tuple[Story, ...]] = {
    "generated release": (
        RELEASE,
        story("feat(map): add offline maps (#41)", refs=("pr:41", "sha:" + "a" * 40)),
        story("Add GPX export", refs=("pr:43",)),
        story("v1.4.0", "tag", version="v1.4.0", refs=("tag:v1.4.0",)),
        story("Show distances in miles (#47)", hours=5, refs=("pr:47",)),
    ),
    "written release": (
        story("Fernweh 3.0: together", "release", version="v3.0.0", body=WRITTEN_NOTES),
    ),
    "bare release": (story("v0.9.1", "release", version="v0.9.1"),),
    "prose release": (
        story(
            "0.5",
            "release",
            version="0.5",
            body="Recipes can now be scaled to any number of guests. Thanks to all who asked!",
        ),
        story("Fix rounding of teaspoons", hours=1),
    ),
    "one feature": (story("feat: dark mode"),),
    "a busy week": (
        story("Add CSV import for bank statements (#210)", hours=1),
        story("feat(budget): weekly budgets", hours=2),
        story("Show the remaining budget on the home screen", hours=3),
        story("fix(sync): duplicate entries after a reconnect (#214)", hours=4),
        story("LED-88: Improve search on slow connections", hours=5),
        story("Fix crash when a category is deleted", hours=6),
        story("Warn before overwriting a backup", hours=7),
    ),
    "only fixes": (
        story("fix: time zone of shared calendars", hours=1),
        story("Fix login loop on Safari", hours=2),
    ),
    "a deed": (story("Remember the last filter"),),
    "plain": (story("Invoices in the customer's own currency"),),
    "deployment": (
        story(
            "Support passkeys at sign-in", "deployment", source="vercel", refs=("sha:" + "c" * 40,)
        ),
        story(
            "feat: support passkeys at sign-in\n\nCo-authored-by: x",
            "commit",
            refs=("sha:" + "c" * 40,),
        ),
    ),
    "tag": (story("v2.1.0", "tag", version="v2.1.0"),),
}
