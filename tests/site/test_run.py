"""`manage.py run`: what it refuses, what its processes may not do, and that it leaves nothing."""

import configparser
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from django.conf import settings
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.conftest import free_port

ROOT = Path(settings.BASE_DIR)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_web_port_is_named_in_one_sentence(settings: Settings, taken_port: int) -> None:
    settings.PORT = taken_port
    with pytest.raises(CommandError) as refusal:
        call_command("run")
    assert str(refusal.value) == (
        f"Port {taken_port}, for the web server, cannot be used (Address already in use):"
        " stop the program that has it, or choose another by PORT."
    )


def test_a_taken_dynamodb_port_is_named_in_one_sentence(
    settings: Settings, taken_port: int
) -> None:
    settings.PORT = free_port()
    settings.DYNAMODB_ENDPOINT_URL = f"http://localhost:{taken_port}"
    with pytest.raises(CommandError) as refusal:
        call_command("run")
    assert str(refusal.value) == (
        f"Port {taken_port}, for DynamoDB, cannot be used (Address already in use):"
        " stop the program that has it, or choose another by DYNAMODB_ENDPOINT_URL."
    )


def test_a_taken_port_of_the_stand_ins_is_named_in_one_sentence(
    settings: Settings, taken_port: int
) -> None:
    settings.PORT = free_port()
    settings.DYNAMODB_ENDPOINT_URL = f"http://localhost:{free_port()}"
    settings.STANDINS_PORT = taken_port
    with pytest.raises(CommandError) as refusal:
        call_command("run")
    assert str(refusal.value) == (
        f"Port {taken_port}, for the stand-ins, cannot be used (Address already in use):"
        " stop the program that has it, or choose another by STANDINS_PORT."
    )


def test_only_the_workers_main_process_is_told_to_stop_and_a_tick_may_finish() -> None:
    conf = configparser.RawConfigParser()
    conf.read(ROOT / "supervisord.conf")
    worker = conf["program:worker"]
    assert (worker["stopsignal"], worker["stopasgroup"]) == ("TERM", "false")
    assert worker["killasgroup"] == "true"
    assert int(worker["stopwaitsecs"]) > settings.Q_CLUSTER["timeout"]


class Running:
    """`manage.py run` on ports and a data folder of its own, as a terminal would start it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "log"
        self.url = f"http://localhost:{self.port}"
        self.data_dir = folder / "data"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run"],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PORT": str(self.port),
                    "DATA_DIR": str(self.data_dir),
                    "DYNAMODB_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}",
                    "STANDINS_PORT": str(free_port()),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def line(self, start: str) -> str:
        """The line of its output that starts like this, once it is there."""
        deadline = time.monotonic() + 120
        while True:
            for line in self.log.read_text().splitlines():
                if line.startswith(start):
                    return line
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def processes(self) -> dict[int, str]:
        """Every process that has this data folder in its environment, with its command."""
        mark = f"DATA_DIR={self.data_dir}\0".encode()
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    found[int(process.name)] = (process / "cmdline").read_text()
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue  # it ended while we looked, or is not ours
        return found

    def cluster(self, but: frozenset[int] = frozenset()) -> frozenset[int]:
        """The worker's processes once they are complete: main, sentinel, pusher, monitor, pool."""
        deadline = time.monotonic() + 60
        while True:
            qcluster = {pid for pid, command in self.processes().items() if "qcluster" in command}
            if len(qcluster - but) == 4 + settings.Q_CLUSTER["workers"]:
                return frozenset(qcluster)
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def stop(self) -> int:
        """Ctrl-C; the exit status."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(60)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_command_brings_up_the_site_keeps_its_data_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    running = Running(tmp_path)
    try:
        signed_in_with = running.line("  Sign in as")
        assert requests.get(f"{running.url}/healthz", timeout=10).status_code == 200

        first = running.cluster()
        os.kill(next(pid for pid in first if os.getpgid(pid) == pid), signal.SIGKILL)
        second = running.cluster(but=first)
        assert first & second == set()
    finally:
        ended = running.stop()
    assert (ended, running.processes()) == (0, {})

    again = Running(tmp_path)
    try:
        assert again.line("  Sign in as") == signed_in_with
    finally:
        ended = again.stop()
    assert (ended, again.processes()) == (0, {})
