"""The stand-ins of `make run`: who is connected stays so when they are started again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from integrations.standins import app_store, github, vercel
from integrations.standins.server import StandIns


@contextmanager
def playing(tmp_path: Path) -> Iterator[tuple[StandIns, github.GitHub]]:
    standins = StandIns(memory=tmp_path / "standins.pickle")
    played = github.add_to(standins, tmp_path)
    vercel.add_to(standins, tmp_path)
    app_store.add_to(standins, tmp_path)
    standins.recall()
    standins.start()
    yield standins, played
    standins.stop()


def token_for(standins: StandIns, played: github.GitHub) -> str:
    answer = requests.post(
        f"{standins.url}/github/login/oauth/access_token",
        {
            "client_id": github.CLIENT_ID,
            "client_secret": github.CLIENT_SECRET,
            "code": played.code("http://localhost/callback"),
        },
        timeout=5,
    )
    return str(answer.json()["access_token"])


def test_a_token_works_after_a_restart(tmp_path: Path) -> None:
    with playing(tmp_path) as (standins, played):
        headers = {"Authorization": f"Bearer {token_for(standins, played)}"}
    with playing(tmp_path) as (standins, _):
        user = requests.get(f"{standins.url}/github/api/v3/user", headers=headers, timeout=5)
    assert user.json()["login"] == github.PERSON


@pytest.mark.parametrize("content", [b"", b"\x00", b"cno.such.module\nthing\n.", b"garbage"])
def test_what_cannot_be_read_of_the_last_run_is_left_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "standins.pickle").write_bytes(content)
    with playing(tmp_path) as (standins, played):
        assert token_for(standins, played)
