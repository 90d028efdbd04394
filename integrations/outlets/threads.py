"""Threads: 500 characters, of which an emoji is as many as its UTF-8 bytes.

https://developers.facebook.com/docs/threads/posts
"""

from integrations.outlets.base import Outlet
from integrations.outlets.entities import EMOJI


def count(text: str) -> int:
    """Code points; an emoji sequence counts its UTF-8 bytes. Links count as they are written."""
    emoji = EMOJI.findall(text)
    return len(text) + sum(len(one.encode()) - len(one) for one in emoji)


OUTLET = Outlet(name="threads", label="Threads", unit="characters", limit=500, count=count)
