"""gunicorn's settings. GUNICORN_CMD_ARGS goes before them: "--bind 0.0.0.0:8000" in a container."""

import os
import shutil
from pathlib import Path
from typing import Any

from slothpost_site.settings import DATA_DIR, PORT

bind = f"127.0.0.1:{PORT}"
workers = 2
threads = 4
# Each worker loads the site by itself: nothing that talks to a store may be shared by a fork.
preload_app = False
accesslog = None
loglevel = "warning"
control_socket_disable = True


# Each web process counts by itself; what they leave in this folder, /metrics adds up.
metrics_dir = DATA_DIR / "metrics"
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics_dir)


def on_starting(server: Any) -> None:
    shutil.rmtree(metrics_dir, ignore_errors=True)
    metrics_dir.mkdir(parents=True)


def child_exit(server: Any, worker: Any) -> None:
    from prometheus_client import multiprocess  # looks for the folder when it is imported

    multiprocess.mark_process_dead(worker.pid)


def when_ready(server: Any) -> None:
    """Tell `manage.py run` that the port is open."""
    if run_dir := os.environ.get("RUN_DIR"):
        (Path(run_dir) / "web").touch()
