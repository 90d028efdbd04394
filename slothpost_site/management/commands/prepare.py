import os
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

PATIENCE_SECONDS = 30


class Command(BaseCommand):
    help = "Bring Django's database and the DynamoDB tables to what the code needs."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.DYNAMODB_ENDPOINT_URL:
            _wait_for(settings.DYNAMODB_ENDPOINT_URL)
        self.stdout.write(f"database: {_migrate()}")
        call_command("create_tables", stdout=self.stdout)
        if run_dir := os.environ.get("RUN_DIR"):  # `manage.py run` waits for this mark
            (Path(run_dir) / "prepared").touch()


def _migrate() -> str:
    """Apply what the database lacks, and say how much that was."""
    executor = MigrationExecutor(connection)
    lacking = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not lacking:
        return "in place"
    call_command("migrate", interactive=False, verbosity=0)
    return f"{len(lacking)} migrations applied"


def _wait_for(endpoint_url: str) -> None:
    """Return when the endpoint takes connections. Raises CommandError after half a minute."""
    endpoint = urlsplit(endpoint_url)
    port = endpoint.port or {"http": 80, "https": 443}[endpoint.scheme]
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection((endpoint.hostname or "", port), timeout=2).close()
        except OSError as error:
            if time.monotonic() > give_up_at:
                raise CommandError(
                    f"DynamoDB does not answer at {endpoint_url} ({error}): start it there, or"
                    " change DYNAMODB_ENDPOINT_URL."
                ) from error
            time.sleep(0.1)
        else:
            return
