"""Bluesky: 300 graphemes and 3,000 UTF-8 bytes (lexicon app.bsky.feed.post, field `text`)."""

from integrations.outlets.base import Outlet
from integrations.outlets.entities import grapheme_count

BYTES_PER_GRAPHEME = 10  # 3,000 bytes to 300 graphemes


def count(text: str) -> int:
    """Graphemes, or tenths of the byte limit where those are more (joined-up emoji, stacked
    accents): so the count is over 300 exactly when one of the two limits is passed."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return max(grapheme_count(text), -(-size // BYTES_PER_GRAPHEME))


OUTLET = Outlet(name="bluesky", label="Bluesky", unit="characters", limit=300, count=count)
