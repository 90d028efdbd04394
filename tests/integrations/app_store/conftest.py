"""App Store Connect and iTunes over real HTTP, and an account that is connected there."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pytest_django import Settings

from integrations.sources import app_store as source
from integrations.standins import app_store as standin
from integrations.standins.server import Request, Response, Service, StandIns
from integrations.tables import Connection

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
APP = standin.APP_ID


@cache
def another_key() -> str:
    """A good key that App Store Connect does not know."""
    made = ec.generate_private_key(ec.SECP256R1())
    return made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@cache
def _demo_key() -> str:
    with TemporaryDirectory() as folder:
        return standin.demo_key(Path(folder))


class Receiver(Service):
    """Where webhooks arrive, in place of SlothPost."""

    prefix = "/webhooks"

    def __init__(self, standins: StandIns) -> None:
        super().__init__(standins)
        self.received: list[Request] = []

    def handle(self, request: Request) -> Response:
        self.received.append(request)
        return Response(200, {})


@dataclass
class World:
    """The services, with a clock that stands still."""

    standins: StandIns
    connect: standin.AppStoreConnect
    itunes: standin.ITunes
    receiver: Receiver
    now: datetime = field(default=NOW)

    @property
    def app(self) -> standin.App:
        return self.connect.apps[APP]

    @property
    def key(self) -> standin.Key:
        return self.connect.keys[standin.KEY_ID]

    def form(self, **fields: str) -> dict[str, str]:
        """The form for connecting, filled in."""
        return {
            "issuer_id": standin.ISSUER,
            "key_id": standin.KEY_ID,
            "private_key": self.connect.demo_pem,
            "name": "",
            **fields,
        }

    def connection(self, user_id: str = "1") -> Connection:
        return source.finish(user_id, self.form(), {}, self.now).connection


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    standins = StandIns().start()
    connect = standin.AppStoreConnect(standins, _demo_key())
    connect.clock = lambda: NOW
    standin.seed(connect)
    itunes, receiver = standin.ITunes(standins, connect), Receiver(standins)
    standins.services += [connect, itunes, receiver]
    for name, value in standin.settings_for(standins).items():
        setattr(settings, name, value)
    yield World(standins, connect, itunes, receiver)
    standins.stop()
