"""What was deployed to production at Vercel, asked for.

https://vercel.com/docs/rest-api/reference/endpoints/deployments/list-deployments
"""

from datetime import datetime, timedelta
from itertools import islice

from integrations.errors import NeedsReconnect, Refused
from integrations.sources.base import Event, Fetched, Fields, Follow, OutOfReach, Renamed
from integrations.sources.vercel.account import ask, each_page, understood
from integrations.sources.vercel.webhook import deployed
from integrations.tables import Connection
from slothpost_site.moments import to_ms

MOST_PAGES = 5
STAGED = "staged"  # in `Follow.seen`: when the oldest deployment was created that may yet go live
WAITED_FOR = timedelta(days=30)  # for a staged deployment to be promoted


def fetch(follow: Follow, now: datetime) -> Fetched:
    """The deployments that have reached production since, and what the project is called."""
    if follow.connection is None:
        raise NeedsReconnect("Only a connected Vercel account shows a project: connect it again.")
    try:
        with understood():
            project = Fields(ask(follow.connection, f"/v9/projects/{follow.id}", now).body, "")
            name = project.line("name")
            found, was_cut = _deployments(follow.connection, follow, now)
            staged = [each for each in found if _is_staged(each)]
            events = tuple(_event(each) for each in found if not _is_staged(each))
            oldest = [each.number("created") for each in staged]
    except Refused as failure:
        status = failure.answer.status if failure.answer else 0
        if status not in (403, 404):
            raise
        return Fetched(upkeep=(OutOfReach("Vercel no longer shows this project to you."),))
    return Fetched(
        events=events,
        seen={STAGED: str(min(oldest))} if oldest else {},
        upkeep=(Renamed(name),) if name not in ("", follow.name) else (),
        note="Of many deployments only the newest were read." if was_cut else "",
    )


def _deployments(
    connection: Connection, follow: Follow, now: datetime
) -> tuple[list[Fields], bool]:
    """What was made for production since, newest first, and whether there was more."""
    pages = each_page(
        connection,
        "/v7/deployments",
        "until",
        now,
        projectId=follow.id,
        target="production",
        state="READY",
        since=_since(follow, now),
    )
    found: list[Fields] = []
    more = False
    for page in islice(pages, MOST_PAGES):
        found += page.each("deployments")
        more = page.maybe("pagination").has("next")
    return found, more


def _since(follow: Follow, now: datetime) -> int:
    """The list goes by creation, so that what waited to be promoted stands before what was read."""
    since = to_ms(follow.since)
    waiting = int(follow.seen.get(STAGED, since))
    return min(since, max(waiting, to_ms(now - WAITED_FOR)))


def _is_staged(found: Fields) -> bool:
    """Ready, and not serving anybody before somebody promotes it."""
    return found.text("readySubstate", "") == "STAGED"


def _event(found: Fields) -> Event:
    when = "ready" if found.has("ready") else "created"
    return deployed(
        number=found.identifier("uid" if found.has("uid") else "id"),
        at=found.moment(when, per_second=1000),
        host=found.text("url", ""),
        meta=found.maybe("meta"),
    )
