from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from scheduling.management.moment import add_now
from scheduling.publishing import run_due_posts


class Command(BaseCommand):
    help = "One step of the minute, for an outside cron: work on the due posts."

    def add_arguments(self, parser: CommandParser) -> None:
        add_now(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        report = run_due_posts(options["now"] or timezone.now())
        self.stdout.write(", ".join(f"{name} {value}" for name, value in asdict(report).items()))
