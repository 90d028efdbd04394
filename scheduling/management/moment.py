"""The `--now` option of the commands that run the clock by hand."""

import argparse
from datetime import UTC, datetime

from django.core.management.base import CommandParser


def add_now(parser: CommandParser) -> None:
    parser.add_argument(
        "--now",
        type=_moment,
        default=None,
        help="act as if it were this time, in ISO 8601 with a zone (2026-12-01T09:00:00Z)",
    )


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not a time in ISO 8601") from error
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} has no zone: add Z for UTC")
    return moment.astimezone(UTC)
