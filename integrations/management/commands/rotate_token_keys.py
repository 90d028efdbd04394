from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from integrations import connections
from integrations.errors import NeedsReconnect


class Command(BaseCommand):
    help = "Seal the secrets of all connected accounts with the first of TOKEN_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        sealed, left = 0, []
        for user_id in get_user_model().objects.values_list("pk", flat=True).iterator():
            for connection in connections.every_one_of(str(user_id)):
                try:
                    connections.reseal(connection)
                    sealed += 1
                except NeedsReconnect:
                    left.append(f"{connection.user_id}/{connection.key}")
        self.stdout.write(f"Accounts sealed with the first of TOKEN_KEYS: {sealed}.")
        if left:
            raise CommandError(
                f"No key of TOKEN_KEYS opens these accounts: {', '.join(left)}. Put back the key"
                " that sealed them and run this again, or have their owners connect them again."
            )
