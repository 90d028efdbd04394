"""gunicorn's settings. GUNICORN_CMD_ARGS goes before them: "--bind 0.0.0.0:8000" in a container."""

import os
from pathlib import Path
from typing import Any

from slothpost_site.settings import PORT

bind = f"127.0.0.1:{PORT}"
workers = 2
threads = 4
# Each worker loads the site by itself: nothing that talks to a store may be shared by a fork.
preload_app = False
accesslog = None
loglevel = "warning"
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Tell `manage.py run` that the port is open."""
    if run_dir := os.environ.get("RUN_DIR"):
        (Path(run_dir) / "web").touch()
