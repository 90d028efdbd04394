from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from integrations import connections
from integrations.errors import NeedsReconnect
from products import app_hooks, catalogue


class Command(BaseCommand):
    help = (
        "Seal the secrets of all connected accounts, and have the App Store sign its webhooks, with"
        " the first of TOKEN_KEYS."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        sealed, left, unsigned = 0, [], []
        for user_id in map(str, get_user_model().objects.values_list("pk", flat=True).iterator()):
            for connection in connections.every_one_of(user_id):
                try:
                    connections.reseal(connection)
                    sealed += 1
                except NeedsReconnect:
                    left.append(f"{connection.user_id}/{connection.key}")
            unsigned += list(_sign_hooks(user_id))
        self.stdout.write(f"Accounts sealed with the first of TOKEN_KEYS: {sealed}.")
        for sentence in unsigned:
            self.stdout.write(sentence)
        if left:
            raise CommandError(
                f"No key of TOKEN_KEYS opens these accounts: {', '.join(left)}. Put back the key"
                " that sealed them and run this again, or have their owners connect them again."
            )


def _sign_hooks(user_id: str) -> Iterator[str]:
    """What kept an app's webhook as it was. Its app is asked before each draft all the same."""
    for product in catalogue.every_one_of(user_id):
        why = app_hooks.set_up(product, timezone.now())
        if why:
            yield f"The webhook of {product.user_id}/{product.product_id} was not changed: {why}"
