"""What was deployed to production at Vercel, asked for.

https://vercel.com/docs/rest-api/reference/endpoints/deployments/list-deployments
"""

from datetime import datetime
from itertools import islice

from integrations.errors import NeedsReconnect, Refused
from integrations.sources.base import Event, Fetched, Fields, Follow, OutOfReach, Renamed, trimmed
from integrations.sources.vercel.account import ask, each_page, understood
from integrations.sources.vercel.webhook import deployed
from integrations.tables import Connection

MOST_PAGES = 5


def fetch(follow: Follow, now: datetime) -> Fetched:
    """The deployments that have reached production since, and what the project is called."""
    if follow.connection is None:
        raise NeedsReconnect("Only a connected Vercel account shows a project: connect it again.")
    try:
        with understood():
            project = Fields(ask(follow.connection, f"/v9/projects/{follow.id}", now).body, "")
            name = trimmed(project.text("name"), 100)
            events, was_cut = _deployments(follow.connection, follow, now)
    except Refused as failure:
        status = failure.answer.status if failure.answer else 0
        if status not in (403, 404):
            raise
        return Fetched(upkeep=(OutOfReach("Vercel no longer shows this project to you."),))
    return Fetched(
        events=events,
        upkeep=(Renamed(name),) if name != follow.name else (),
        note="Of many deployments only the newest were read." if was_cut else "",
    )


def _deployments(
    connection: Connection, follow: Follow, now: datetime
) -> tuple[tuple[Event, ...], bool]:
    """What was deployed since, newest first, and whether there was more."""
    pages = each_page(
        connection,
        "/v7/deployments",
        "until",
        now,
        projectId=follow.id,
        target="production",
        state="READY",
        since=int(follow.since.timestamp() * 1000),
    )
    events: list[Event] = []
    more = False
    for page in islice(pages, MOST_PAGES):
        events += [_event(found) for found in page.each("deployments")]
        more = page.maybe("pagination").has("next")
    return tuple(events), more


def _event(found: Fields) -> Event:
    when = "ready" if found.has("ready") else "created"
    return deployed(
        number=found.identifier("uid" if found.has("uid") else "id"),
        at=found.moment(when, per_second=1000),
        host=found.text("url", ""),
        meta=found.maybe("meta"),
    )
