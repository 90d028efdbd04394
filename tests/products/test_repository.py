"""A repository's numeric id is looked up at GitHub, over real HTTP to a stand-in."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pytest_django import Settings

from integrations.sources.base import Choice
from products.forms import RepositoryForm


class GitHub(BaseHTTPRequestHandler):
    """Knows acme/app, which was once acme/old; is broken for acme/broken."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        answers = {
            "/repos/acme/app": (200, {"id": 42, "full_name": "acme/app"}),
            "/repositories/42": (200, {"id": 42, "full_name": "acme/app"}),
            "/repos/acme/broken": (200, {"id": "42"}),
            "/repos/acme/down": (502, {}),
        }
        if self.path in ("/repos/acme/old", "/repos/acme/away"):
            away = "http://127.0.0.1:9/repositories/42"
            here = f"http://127.0.0.1:{self.server.server_address[1]}/repositories/42"
            self.send_response(301)
            self.send_header("Location", away if self.path.endswith("away") else here)
            self.end_headers()
            return
        status, body = answers.get(self.path, (404, {"message": "Not Found"}))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *args: object) -> None: ...


@pytest.fixture(autouse=True)
def github(settings: Settings) -> Iterator[type[GitHub]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.GITHUB_API_URL = f"http://127.0.0.1:{server.server_address[1]}"
    GitHub.asked = []
    yield GitHub
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "text",
    ["acme/app", "https://github.com/acme/app", "https://github.com/acme/app.git", "acme/old"],
)
def test_a_repository_is_found_by_name_by_address_and_by_its_old_name(text: str) -> None:
    form = RepositoryForm({"repository": text})
    assert form.is_valid(), form.errors
    assert form.chosen() == Choice("42", "acme/app")


def test_a_numeric_id_is_taken_only_where_everybody_may_see_everything(
    github: type[GitHub], settings: Settings
) -> None:
    form = RepositoryForm({"repository": " 12345 "})
    assert not form.is_valid()
    settings.FOLLOW_PRIVATE_REPOSITORIES = True
    form = RepositoryForm({"repository": " 12345 "})
    assert form.is_valid()
    assert (form.chosen(), github.asked) == (Choice("12345", "repository 12345"), [])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("acme/nothing", "GitHub shows no public repository acme/nothing"),
        ("acme/broken", "GitHub did not answer"),
        ("acme/down", "GitHub did not answer"),
        ("acme/away", "GitHub did not answer"),
        ("acme", "Write it as owner/name"),
        ("../..", "Write it as owner/name"),
        ("acme/..", "Write it as owner/name"),
        ("https://evil.example/acme/app", "Write it as owner/name"),
        ("acme/app?x=1", "Write it as owner/name"),
        ("acme/app/../../user", "Write it as owner/name"),
    ],
)
def test_what_cannot_be_followed_is_said_in_a_sentence(text: str, sentence: str) -> None:
    form = RepositoryForm({"repository": text})
    assert not form.is_valid()
    assert form.errors["repository"][0].startswith(sentence)


def test_a_github_that_is_away_is_said_in_a_sentence(settings: Settings) -> None:
    settings.GITHUB_API_URL = "http://127.0.0.1:9"
    form = RepositoryForm({"repository": "acme/app"})
    assert form.errors["repository"][0].startswith("GitHub did not answer")
