import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


class Command(BaseCommand):
    help = "Run DynamoDB, web server and worker on this machine, until Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        _refuse_taken_port(settings.PORT, "the web server", "PORT")
        dynamodb = urlsplit(settings.DYNAMODB_ENDPOINT_URL)
        dynamodb_is_ours = dynamodb.hostname in LOCAL_HOSTS
        if dynamodb_is_ours:
            _refuse_taken_port(dynamodb.port or 80, "DynamoDB", "DYNAMODB_ENDPOINT_URL")

        run_dir = settings.DATA_DIR / "run"
        shutil.rmtree(run_dir, ignore_errors=True)
        run_dir.mkdir(parents=True)
        (run_dir / "running").touch()
        os.environ.update(
            RUN_DIR=str(run_dir),
            RUN_PYTHON=sys.executable,
            RUN_DYNAMODB=str(dynamodb_is_ours).lower(),
        )
        if settings.STANDINS:
            _refuse_taken_port(settings.STANDINS_PORT, "the stand-ins", "STANDINS_PORT")
            os.environ.update(_stand_in_settings())
        os.environ["RUN_STANDINS"] = str(settings.STANDINS).lower()
        self.stdout.write("Starting SlothPost. Ctrl-C stops everything.")
        _supervise(str(settings.BASE_DIR / "supervisord.conf"), run_dir / "running")
        if not (run_dir / "prepared").exists():
            raise CommandError("Stopped before DynamoDB and the database were ready.")


def _stand_in_settings() -> dict[str, str]:
    """The environment that leads to the stand-ins, for every service without real credentials."""
    command = [sys.executable, "manage.py", "standins", "--environment"]
    printed = subprocess.run(command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, check=True)  # noqa: S603 -- no part of the command comes from outside
    environment: dict[str, str] = json.loads(printed.stdout)
    return environment


def _supervise(configuration: str, running: Path) -> None:
    """Run supervisord until it is told to stop and nothing is left running.

    It gets a session and an output of its own: it would start everything anew when the terminal
    is closed, and leave everything running when it cannot write.
    """
    user = ["-u", "0"] if os.getuid() == 0 else []  # said outright, or it warns about root
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", configuration, *user]
    with subprocess.Popen(  # noqa: S603 -- no part of the command comes from outside
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as supervisord:

        def stop(*_: object) -> None:
            running.unlink(missing_ok=True)
            supervisord.terminate()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, stop)
        for line in supervisord.stdout or ():
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except OSError:  # nobody reads on: the terminal or the pipe is gone
                stop()


def _refuse_taken_port(port: int, who: str, setting: str) -> None:
    """Raise CommandError, in one sentence, when something else listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(
                f"Port {port}, for {who}, cannot be used ({error.strerror}): stop the program"
                f" that has it, or choose another by {setting}."
            ) from error
