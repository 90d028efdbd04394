import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Run this machine's own DynamoDB (dynalite), with its data in DATA_DIR."

    def handle(self, *args: Any, **options: Any) -> None:
        endpoint = urlsplit(settings.DYNAMODB_ENDPOINT_URL)
        node = Path(sys.prefix) / "bin" / "node"
        dynalite = settings.BASE_DIR / ".dynamodb" / "node_modules" / "dynalite" / "cli.js"
        if not (node.exists() and dynalite.exists()):
            raise CommandError(
                "dynalite or its Node is not installed (any more): remove .venv, then run"
                " `make install`."
            )
        # A table that is ready at once is the one thing in which it may differ from AWS here.
        delays = [f"--{verb}TableMs=0" for verb in ("create", "update", "delete")]
        place = f"--path={settings.DATA_DIR / 'dynamodb'}"
        os.execv(  # noqa: S606 -- becomes dynalite, so that a signal to stop reaches it
            node,
            [
                *(str(node), str(dynalite), place, *delays),
                *(f"--host={endpoint.hostname}", f"--port={endpoint.port or 80}"),
            ],
        )
