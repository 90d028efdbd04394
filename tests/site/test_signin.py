"""Signing in with GitHub: one press, and never into somebody else's account."""

from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialToken
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from integrations.standins.github import CLIENT_ID, CLIENT_SECRET, PERSON
from tests.conftest import Outside, signed_in
from tests.pages import words

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]

LOGIN = "/accounts/github/login/"


@pytest.fixture
def github(outside: Outside, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """A site that signs in at the stand-in; allauth reads its addresses when it is imported."""
    app = {"client_id": CLIENT_ID, "secret": CLIENT_SECRET}
    settings.SOCIALACCOUNT_PROVIDERS = {
        "github": {**settings.SOCIALACCOUNT_PROVIDERS["github"], "APPS": [app]}
    }
    here = outside.github.url
    for name, path in {
        "access_token_url": "/login/oauth/access_token",
        "authorize_url": "/login/oauth/authorize",
        "profile_url": "/api/v3/user",
        "emails_url": "/api/v3/user/emails",
    }.items():
        monkeypatch.setattr(GitHubOAuth2Adapter, name, f"{here}{path}")
    return outside


def come_back(
    client: Client, github: Outside, process: str = "login", **answer: str
) -> HttpResponse:
    """Go to GitHub and come back with a code, or with what else is given."""
    gone = client.post(f"{LOGIN}?process={process}")
    query = {k: v[0] for k, v in parse_qs(urlsplit(gone.headers["Location"]).query).items()}
    assert gone.headers["Location"].startswith(f"{github.github.url}/login/oauth/authorize")
    code = github.github.code(query["redirect_uri"], query["code_challenge"])
    answer = answer or {"code": code}
    back = {**answer, "state": query["state"]}
    return client.get(f"{LOGIN}callback/", back, follow=True)


def test_the_button_is_there_only_where_it_works(github: Outside, settings: Settings) -> None:
    for page in ("/accounts/login/", "/accounts/signup/"):
        assert "with GitHub</button>" in words(Client().get(page))
    settings.SOCIALACCOUNT_PROVIDERS = {"github": {"APPS": []}}
    for page in ("/accounts/login/", "/accounts/signup/"):
        assert "with GitHub</button>" not in words(Client().get(page))


def test_the_first_time_makes_an_account_and_the_second_finds_it(github: Outside) -> None:
    for _ in range(2):
        client = Client()
        page = come_back(client, github)
        assert (page.status_code, page.redirect_chain[-1][0]) == (200, "/")
        assert "_auth_user_id" in client.session
    assert [user.email for user in User.objects.all()] == [f"{PERSON}@example.com"]
    assert SocialToken.objects.count() == 0  # nothing of it is kept


def test_an_address_that_has_an_account_is_not_taken_over(github: Outside, alice: User) -> None:
    alice.email = f"{PERSON}@example.com"
    alice.save()
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    client = Client()
    page = come_back(client, github)
    assert "One more thing" in words(page)
    assert "_auth_user_id" not in client.session
    assert SocialAccount.objects.count() == 0


def test_who_is_signed_in_adds_github_and_signs_in_with_it(github: Outside, alice: User) -> None:
    page = come_back(signed_in(alice), github, "connect")
    assert PERSON in words(page)
    client = Client()
    come_back(client, github)
    assert client.session["_auth_user_id"] == str(alice.pk)


def test_a_no_and_a_failure_are_told_apart_and_sign_nobody_in(github: Outside) -> None:
    client = Client()
    assert "You said no at GitHub" in words(come_back(client, github, error="access_denied"))
    assert "did not answer as expected" in words(come_back(client, github, code="made-up"))
    assert "_auth_user_id" not in client.session


def test_a_way_back_that_this_browser_did_not_begin_signs_nobody_in(github: Outside) -> None:
    client = Client()
    code = github.github.code("http://testserver/accounts/github/login/callback/")
    page = client.get(f"{LOGIN}callback/", {"code": code, "state": "planted"}, follow=True)
    assert "did not answer as expected" in words(page)
    assert "_auth_user_id" not in client.session


def test_every_page_of_it_wears_our_dress(github: Outside, alice: User) -> None:
    visitor = signed_in(alice)
    for page in (
        visitor.get("/accounts/3rdparty/"),
        Client().get(LOGIN),
        Client().get("/accounts/3rdparty/login/cancelled/"),
        Client().get("/accounts/3rdparty/login/error/"),
    ):
        assert "slothpost/app.css" in words(page)
        assert "hird-party" not in words(page).lower()
