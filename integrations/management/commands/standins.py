import json
import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from integrations.standins import SERVICES
from integrations.standins.server import StandIns


class Command(BaseCommand):
    help = "Play the services of others on this machine, over real HTTP."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--environment",
            action="store_true",
            help="print as JSON the settings that lead to them, and end",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("Stand-ins accept anybody: they are for development.")
        memory = settings.DATA_DIR / "standins.pickle"
        standins = StandIns(settings.STANDINS_PORT, settings.SITE_URL, memory)
        keys = settings.DATA_DIR / "secrets"
        for service in SERVICES:
            service.add_to(standins, keys)
        if options["environment"]:
            self.stdout.write(json.dumps(_environment(standins)))
            return
        standins.recall()
        standins.serve()


def _environment(standins: StandIns) -> dict[str, str]:
    """What leads to each service that has no real credentials here; all their hosts in one."""
    found: dict[str, str] = {}
    hosts: dict[str, str] = {}
    for service in SERVICES:
        if not os.environ.get(service.REAL_WHEN_SET):
            found |= service.settings_for(standins)
            hosts |= json.loads(found.pop("OPERATOR_HOSTS", "{}"))
    return {**found, "OPERATOR_HOSTS": json.dumps({**settings.OPERATOR_HOSTS, **hosts})}
