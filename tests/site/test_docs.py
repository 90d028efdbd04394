"""What the files for newcomers say is what the code does."""

import re
from pathlib import Path

from django.conf import settings

from integrations.outlets import OUTLETS
from integrations.sources import SOURCES

ROOT = Path(settings.BASE_DIR)


def settings_from_the_environment() -> set[str]:
    source = (ROOT / "slothpost_site" / "settings.py").read_text()
    return set(re.findall(r"\benv\.\w+\(\s*\"(\w+)\"", source))


def test_the_example_environment_names_every_setting_and_no_other() -> None:
    example = (ROOT / ".env.example").read_text()
    named = re.findall(r"^#?([A-Z][A-Z0-9_]*)=", example, re.MULTILINE)
    assert sorted(named) == sorted(settings_from_the_environment())


def test_the_example_environment_changes_nothing_as_it_is() -> None:
    example = (ROOT / ".env.example").read_text().splitlines()
    assert [line for line in example if line and not line.startswith("#")] == []


def test_the_readme_has_a_row_for_every_setting_and_no_other() -> None:
    rows = re.findall(r"^\| `([A-Z][A-Z0-9_]*)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(settings_from_the_environment())


def test_contributing_lists_every_outlet_and_source() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    for intro, registry in (
        ("The outlets there are: ", OUTLETS),
        ("The sources there are: ", SOURCES),
    ):
        listed = text.split(intro)[1].split(".")[0]
        assert re.findall(r"`(\w+)`", listed) == list(registry)


def test_the_pictures_that_the_readme_shows_are_there() -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert pictures
    assert [path for path in pictures if not (ROOT / path).is_file()] == []
