from typing import Any

from django.core.management.base import BaseCommand

from slothpost_site import provisioning


class Command(BaseCommand):
    help = "Create the DynamoDB tables and whatever index they lack. Can be repeated at any time."

    def handle(self, *args: Any, **options: Any) -> None:
        for line in provisioning.create_tables():
            self.stdout.write(line)
