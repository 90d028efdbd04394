"""Writes posts from stories, offline."""

from integrations.writers.base import Brief, Written


def write(brief: Brief) -> Written | None:
    """A post from the brief's stories, or None when there is nothing to tell."""
    if not brief.stories:
        return None
    story = brief.stories[-1]
    return Written(f"{story.title[:200]}\n\n{brief.link}".strip(), (story.key,))


def evergreen(brief: Brief) -> Written | None:
    """A post from the product's own pitch, or None when it has none."""
    return Written(f"{brief.pitch}\n\n{brief.link}".strip(), ()) if brief.pitch else None
