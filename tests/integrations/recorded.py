"""Deliveries to test with: real ones of GitHub's, recorded, and Vercel's as documented."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

_EXAMPLES = ".dynamodb/node_modules/@octokit/webhooks-examples/api.github.com/index.json"


@cache
def _everything() -> dict[str, list[dict[str, Any]]]:
    listed = json.loads((Path(settings.BASE_DIR) / _EXAMPLES).read_text())
    return {entry["name"]: entry["examples"] for entry in listed}


def deliveries() -> list[tuple[str, dict[str, Any]]]:
    """Every recorded delivery, with its event."""
    return [(event, payload) for event, payloads in _everything().items() for payload in payloads]


def delivery(event: str, **fields: Any) -> dict[str, Any]:
    """The first recorded delivery of an event that has these top-level fields, to be altered."""
    found = (p for p in _everything()[event] if fields.items() <= p.items())
    return copy.deepcopy(next(found))


_VERCEL = Path(__file__).parent.parent / "fixtures" / "vercel"


def vercel(name: str) -> dict[str, Any]:
    """A delivery in the shape that Vercel documents, by its file's name."""
    found: dict[str, Any] = json.loads((_VERCEL / f"{name}.json").read_text())
    return found


def vercel_names() -> list[str]:
    return sorted(path.stem for path in _VERCEL.glob("*.json"))
