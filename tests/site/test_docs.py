"""What the files for newcomers say is what the code does."""

import re
from pathlib import Path

from django.conf import settings

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
