"""Staff see which posts need attention or are due, and try again what got stuck.

The page of products is in scheduling/admin.py: its verbs are those of the plan.
"""

import json
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.template.defaultfilters import urlize
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from integrations.outlets import OUTLETS
from products import models, posts
from products.posts import TextRefused
from products.states import State
from products.tables import Post
from slothpost_site.dynamo import shards
from slothpost_site.moments import from_ms, parse_key, to_ms
from slothpost_site.paging import read_page
from slothpost_site.staff import Listing, TableAdmin, Verb, late, link, owner, when


def _title(post: Post) -> str:
    slot, _, outlet = post.key.split("#")
    label = OUTLETS[outlet].label if outlet in OUTLETS else outlet
    return f"{label}, {from_ms(parse_key(slot)):%a %-d %b %Y, %-H:%M} (UTC)"


def _state(post: Post) -> str:
    return post.state.replace("_", " ")


@admin.register(models.Post)
class PostAdmin(TableAdmin):
    table = Post
    keys = ("user_id", "key")
    refusals = (*TableAdmin.refusals, TextRefused)
    searches_users = True
    verbs = (
        Verb(
            "retry",
            "Try again",
            "This sends the text that its owner approved, or has one written if there is none."
            " If it may be out already, look at the account first: it would be out twice.",
            "It will be tried again within a couple of minutes.",
            lambda post, now, by: posts.retry(post, now=now, by=by),
            lambda post, now: post.state in {State.MISSED, State.FAILED, State.UNCONFIRMED},
        ),
        Verb(
            "release",
            "Release",
            "This ends the wait for whoever began to publish it, and the next tick finds out what"
            " became of it. Do it when that process is dead for certain.",
            "Released: the next tick takes it up.",
            lambda post, now, by: posts.release(post, now=now),
            lambda post, now: post.state == State.PUBLISHING,
        ),
    )

    def listings(self, wanted: str, now: datetime) -> list[Listing]:
        attention = Listing(
            "attention",
            "Needs attention",
            partial(read_page, Post.in_trouble, "open"),
            {
                "Post": _title,
                "User": lambda post: post.user_id,
                "State": _state,
                "Since": lambda post: when(post.trouble_at),
                "Reason": lambda post: post.reason,
            },
        )
        return [attention, *(_due(partition, now) for partition in shards("active"))]

    def of_user(self, user_id: str) -> Listing:
        return Listing(
            "user",
            f"Of user {user_id}",
            partial(read_page, Post, user_id),
            {
                "Post": _title,
                "Product": lambda post: post.product_name or post.product_id,
                "State": _state,
                "Reason": lambda post: post.reason,
            },
        )

    def title(self, item: Any) -> str:
        return _title(item)

    def details(self, item: Any, now: datetime) -> list[tuple[str, object]]:
        product = f"{item.user_id}/{item.product_id}"
        return [
            ("State", _state(item)),
            ("Reason", item.reason),
            ("Product", link("products.product", product, item.product_name or item.product_id)),
            ("Owner", owner(item.user_id, "products.post")),
            ("Slot", when(item.slot_at)),
            ("Next step", when(item.work_at)),
            ("Attempts", int(item.attempts)),
            ("Approved", when(item.approved_at)),
            ("To be sent", when(item.send_at)),
            ("Published", when(item.published_at)),
            ("Permalink", urlize(item.permalink or "")),
            ("Text", item.text),
            ("Rests on", "\n".join(fact["title"] for fact in item.evidence or ())),
            ("History", _history(item)),
        ]


def _due(partition: str, now: datetime) -> Listing:
    """What a shard has for a machine to do by now, the oldest first."""
    _, _, shard = partition.partition("#")
    due = Post.work_at <= to_ms(now)
    return Listing(
        f"due{shard}",
        f"Due, shard {shard}" if shard else "Due",
        partial(read_page, Post.work, partition, newest_first=False, condition=due),
        {
            "Post": _title,
            "User": lambda post: post.user_id,
            "Due": lambda post: when(post.work_at),
            "Late by": lambda post: late(post.work_at, now),
        },
    )


def _history(post: Post) -> SafeString:
    moves = [json.loads(str(line)) for line in post.history]
    return format_html_join("\n", "{}: {}", ((when(move["at"]), _in_words(move)) for move in moves))


def _in_words(move: dict[str, Any]) -> str:
    """One move: "approved → publishing, by slothpost (its slot came up)"."""
    states = " → ".join(move[end].replace("_", " ") for end in ("from", "to") if end in move)
    by = f"user {move['by']}" if move["by"].isdigit() else move["by"]
    return f"{states}, by {by}" + (f" ({move['why']})" if "why" in move else "")
