"""Where posts go: one file per outlet, and this list, in the order in which they are shown."""

from integrations.outlets import bluesky, changelog, linkedin, mastodon, threads, webhook, x
from integrations.outlets.base import Outlet

OUTLETS: dict[str, Outlet] = {
    module.OUTLET.name: module.OUTLET
    for module in (x, threads, bluesky, mastodon, linkedin, webhook, changelog)
}


def text_length(outlet: str, text: str) -> int:
    """The length of a text in the unit that this outlet counts in. Raises ValueError if unknown."""
    return _named(outlet).length(text)


def text_limit(outlet: str) -> int:
    """The most that this outlet takes, in its unit. Raises ValueError if unknown."""
    return _named(outlet).limit


def _named(outlet: str) -> Outlet:
    if outlet not in OUTLETS:
        raise ValueError(f"There is no outlet {outlet!r}: choose one of {', '.join(OUTLETS)}.")
    return OUTLETS[outlet]
