"""The page of connections: what it says, and that no way back from a source can be misused."""

import io
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from integrations import connections
from integrations.connections import Account, Grant
from integrations.sources.base import Choice
from integrations.standins.app_store import ISSUER, KEY_ID
from integrations.standins.server import Fault
from integrations.tables import Connection
from products import following
from products.views.connections import BEGUN
from slothpost_site.dynamo import metered
from tests.builders import NOW, make_product, reread
from tests.conftest import Outside, person, signed_in
from tests.pages import fields, words

pytestmark = [pytest.mark.usefixtures("store"), pytest.mark.django_db]

PAGE = "/connections/"
BACK = "/connections/github/callback/"
FORM = "/connections/app-store/form/"
EXCHANGE = "/github/login/oauth/access_token"


def account(user: User, name: str = "slothpost-demo", **grant: Any) -> Connection:
    return connections.connect(
        str(user.pk), "vercel", Account("icfg_1", name), Grant({"token": "t"}, **grant), now=NOW
    )


def begin(client: Client, source: str = "github") -> str:
    """Set out for a source; the state that comes back."""
    gone = client.post(f"/connections/{source}/connect/")
    return parse_qs(urlsplit(gone.headers["Location"]).query)["state"][0]


def code_of(outside: Outside) -> str:
    return outside.github.code(f"{outside.standins.site_url}{BACK}")


def expired(answer: HttpResponse, outside: Outside) -> bool:
    """Whether the page says so, and nothing was exchanged."""
    said = answer.status_code == 400 and "This link has expired" in words(answer)
    return said and outside.standins.count("POST", EXCHANGE) == 0


# -- there and back --------------------------------------------------------------------------------


def test_a_way_back_is_good_once(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    state = begin(client)
    first = client.get(BACK, {"state": state, "error": "access_denied"})
    assert (first.status_code, first.headers["Location"]) == (302, PAGE)
    assert expired(client.get(BACK, {"state": state, "code": code_of(outside)}), outside)


def test_a_way_back_that_nobody_began_is_no_way(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    for query in ({"state": "made-up", "code": "x"}, {"state": ""}, {}):
        assert expired(client.get(BACK, query), outside)


def test_a_way_back_of_another_browser_or_person_is_no_way(
    outside: Outside, alice: User, bob: User
) -> None:
    began = signed_in(alice)
    state = begin(began)
    answer = {"state": state, "code": code_of(outside)}
    assert expired(signed_in(bob).get(BACK, answer), outside)
    assert expired(signed_in(alice).get(BACK, answer), outside)
    began.force_login(bob)  # somebody else signs in to the same browser
    assert expired(began.get(BACK, answer), outside)


def test_a_way_back_of_another_source_is_no_way(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    state = begin(client, "vercel")
    assert expired(client.get(BACK, {"state": state, "code": code_of(outside)}), outside)


def test_a_way_back_to_a_product_that_is_not_there_is_no_way(
    outside: Outside, alice: User, bob: User
) -> None:
    client, his = signed_in(alice), make_product(str(bob.pk))
    for product in (his.product_id, "\x00", "../..", "x" * 3000):
        for address in ("/connections/github/connect/", "/connections/github/more/"):
            assert client.post(address, {"product": product}).status_code == 404
    assert BEGUN not in client.session


def test_an_expired_way_back_starts_again_for_its_product(outside: Outside, alice: User) -> None:
    client, product = signed_in(alice), make_product(str(alice.pk))
    gone = client.post("/connections/github/connect/", {"product": product.product_id})
    state = parse_qs(urlsplit(gone.headers["Location"]).query)["state"][0]
    page = words(client.get(BACK, {"state": state, "code": "too-old"}))
    assert f'name="product" value="{product.product_id}"' in page


def test_a_way_back_lapses_after_ten_minutes(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    state = begin(client)
    session = client.session
    session[BEGUN][state]["at"] -= 10 * 60 * 1000
    session.save()
    assert expired(client.get(BACK, {"state": state, "code": code_of(outside)}), outside)


def test_a_no_and_a_failure_are_told_apart(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    no = client.get(BACK, {"state": begin(client), "error": "access_denied"}, follow=True)
    assert "You did not allow it at GitHub: nothing was connected." in words(no)
    outside.standins.faults.append(Fault(path=EXCHANGE, status=503, times=9))
    failed = client.get(BACK, {"state": begin(client), "code": code_of(outside)})
    assert failed.status_code == 502
    assert "GitHub was not connected" in words(failed)
    assert connections.of_provider(str(alice.pk), "github") == []


def test_only_the_last_few_are_kept(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    states = [begin(client) for _ in range(7)]
    assert list(client.session[BEGUN]) == states[2:]


def test_a_source_that_is_not_set_up_or_not_there_leads_nowhere(
    outside: Outside, alice: User, settings: Settings
) -> None:
    settings.GITHUB_APP_ID = ""
    client = signed_in(alice)
    answer = client.post("/connections/github/connect/", follow=True)
    assert "GitHub is not set up here yet." in words(answer)
    assert "Connect GitHub</button>" not in words(answer)
    answer = client.post("/connections/github/more/", follow=True)
    assert "GitHub is not set up here yet." in words(answer)
    assert client.post("/connections/gitlab/connect/").status_code == 404
    assert client.get("/connections/github/connect/").status_code == 405
    assert client.get("/connections/gitlab/callback/").status_code == 404


# -- whoever began at the source -------------------------------------------------------------------


def test_an_account_that_comes_by_itself_is_connected_only_when_its_person_says_so(
    outside: Outside, alice: User
) -> None:
    code, made = outside.vercel.install()
    client = Client()
    arrived = client.get(
        "/connections/vercel/callback/", {"code": code, "configurationId": made.id}
    )
    assert arrived.headers["Location"] == "/accounts/login/?next=/connections/vercel/confirm/"
    client.force_login(alice)
    page = client.get("/connections/vercel/confirm/")
    assert f"the account of {alice.email}" in words(page)
    assert code not in words(page)
    assert connections.of_provider(str(alice.pk), "vercel") == []
    assert client.post("/connections/vercel/confirm/", {"connect": ""}).status_code == 302
    assert [c.account_id for c in connections.of_provider(str(alice.pk), "vercel")] == [made.id]
    assert client.post("/connections/vercel/confirm/", {"connect": ""}).status_code == 400


def test_an_account_that_comes_by_itself_can_be_sent_away(outside: Outside, alice: User) -> None:
    code, _ = outside.vercel.install()
    client = signed_in(alice)
    client.get("/connections/vercel/callback/", {"code": code})
    answer = client.post("/connections/vercel/confirm/", {"cancel": ""}, follow=True)
    assert "Nothing was connected." in words(answer)
    assert code in outside.vercel.codes  # it was not even looked at


def test_what_came_by_itself_lapses_and_is_of_its_source(outside: Outside, alice: User) -> None:
    client = signed_in(alice)
    client.get("/connections/vercel/callback/", {"code": "x"})
    assert client.get("/connections/github/confirm/").status_code == 400
    session = client.session
    session["arrived"]["at"] -= 30 * 60 * 1000
    session.save()
    assert client.post("/connections/vercel/confirm/").status_code == 400


# -- what the page says ----------------------------------------------------------------------------


def test_an_empty_page_says_what_to_do(outside: Outside, alice: User) -> None:
    page = words(signed_in(alice).get(PAGE))
    for label in ("GitHub", "Vercel", "App Store"):
        assert f"Connect {label}</button>" in page


def test_an_account_that_works_in_trouble_and_broken(outside: Outside, alice: User) -> None:
    found = account(alice, "Slow <b>Boats</b>")
    client = signed_in(alice)
    page = words(client.get(PAGE))
    assert "Slow &lt;b&gt;Boats&lt;/b&gt;" in page
    assert (page.count(">Works<"), page.count("Check now")) == (1, 1)
    connections.mark_trouble(found, "Vercel did not answer.", NOW)
    page = words(client.get(PAGE))
    assert page.count(">Trouble<") == 1
    assert "Vercel did not answer." in page
    assert "tries again by itself" in page
    connections.mark_broken(found, "It was removed at Vercel.", NOW)
    page = words(client.get(PAGE))
    assert page.count(">Needs you<") == 1
    assert "It was removed at Vercel." in page
    assert "Connect again" in page


def test_a_product_is_named_with_its_last_webhook(outside: Outside, alice: User) -> None:
    found = account(alice)
    product = make_product(str(alice.pk), name="Slowtide")
    following.follow(product, "vercel", Choice("prj_1", "slowtide", via=found.key), NOW)
    page = words(signed_in(alice).get(PAGE))
    assert "Slowtide</a> follows slowtide." in page
    assert "No webhook lately." in page


def test_the_page_costs_a_request_for_each_product_and_two(outside: Outside, alice: User) -> None:
    accounts = [
        connections.connect(str(alice.pk), source, Account("1", "acme"), Grant({}), now=NOW)
        for source in following.LINKS
    ]
    for _ in range(3):
        product = make_product(str(alice.pk))
        for found in accounts:
            choice = Choice("1", "slowtide", via=found.key)
            following.follow(product, found.provider, choice, NOW)
    client = signed_in(alice)
    client.get(PAGE)
    with metered() as meter:
        page = words(client.get(PAGE))
    assert (page.count("follows slowtide."), meter.requests) == (9, 2 + 3)


def test_nothing_of_it_is_kept_by_a_browser(outside: Outside, alice: User) -> None:
    client, by = signed_in(alice), {"key": account(alice).key}
    state = begin(client)
    for page in (
        client.get(PAGE),
        client.post("/connections/github/connect/"),
        client.post("/connections/github/more/"),
        client.get(BACK, {"state": state, "error": "access_denied"}),
        client.get(BACK, {"state": state, "code": "again"}),
        Client().get(BACK, {"state": "made-up", "code": "x"}),
        Client().get("/connections/vercel/callback/", {"code": "x"}),
        client.get("/connections/vercel/callback/", {"code": "x"}),
        client.get("/connections/vercel/confirm/"),
        client.get("/connections/app-store/form/"),
        client.post("/connections/app-store/form/", {"private_key": "x"}),
        client.get("/connections/disconnect/", by),
        client.post("/connections/check/", by),
        client.post("/connections/disconnect/", by),
    ):
        assert page.headers["Cache-Control"] == "private, no-store"
        assert page.headers["Referrer-Policy"] == "same-origin"


# -- one account -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["connection_check", "disconnect"])
def test_another_persons_account_is_not_there(
    outside: Outside, alice: User, bob: User, name: str
) -> None:
    found = account(alice)
    for key in (found.key, "", "vercel#", "x" * 5000, "\x00"):
        assert signed_in(bob).post(reverse(name), {"key": key}).status_code == 404
    assert reread(found).works
    assert "slothpost-demo" not in words(signed_in(bob).get(PAGE))


def test_checking_says_what_came_of_it(outside: Outside, alice: User) -> None:
    found = account(alice)
    client = signed_in(alice)
    page = client.post(reverse("connection_check"), {"key": found.key}, follow=True)
    assert "install it again" in words(page)  # Vercel does not know this token
    assert reread(found).broken


def test_disconnecting_says_first_what_stops_and_is_done_by_post_alone(
    outside: Outside, alice: User
) -> None:
    found = account(alice)
    product = make_product(str(alice.pk), name="Slowtide")
    following.follow(product, "vercel", Choice("prj_1", "slowtide", via=found.key), NOW)
    client = signed_in(alice)
    page = client.get(reverse("disconnect"), {"key": found.key})
    assert "Slowtide follows slowtide" in words(page)
    assert reread(found) is not None
    client.post(reverse("disconnect"), {"key": found.key})
    assert reread(found) is None
    assert client.post(reverse("disconnect"), {"key": found.key}).status_code == 404


def installed(user: User) -> tuple[Connection, Connection]:
    """A GitHub account, and an installation that it shows."""
    shows = connections.connect(str(user.pk), "github", Account("7", "acme"), Grant({}), now=NOW)
    details = {"account": shows.key}
    through = Account("installation:8", "acme-org", details=details)
    return shows, connections.connect(str(user.pk), "github", through, Grant({}), now=NOW)


def test_disconnecting_an_account_names_what_is_followed_by_its_installations(
    outside: Outside, alice: User
) -> None:
    shows, through = installed(alice)
    for number in range(30):  # more than a page of them
        product = make_product(str(alice.pk), name=f"Boat {number}")
        following.follow(product, "github", Choice("1", "acme-org/boat", via=through.key), NOW)
    client = signed_in(alice)
    page = words(client.get(reverse("disconnect"), {"key": shows.key}))
    assert page.count("follows acme-org/boat") == 30
    assert words(client.get(PAGE)).count("follows acme-org/boat") == 30


def test_an_installation_does_not_work_without_the_account_that_shows_it(
    outside: Outside, alice: User
) -> None:
    shows, through = installed(alice)
    product = make_product(str(alice.pk))
    following.follow(product, "github", Choice("1", "acme-org/boat", via=through.key), NOW)
    connections.mark_broken(shows, "It was taken back at GitHub.", NOW)
    client = signed_in(alice)
    page = words(client.get(PAGE))
    assert (page.count(">Needs you<"), page.count(">Works<")) == (2, 0)
    own = words(client.get(reverse("product", args=[product.product_id])))
    assert "It was taken back at GitHub." in own


def test_a_github_account_without_repositories_says_what_is_missing(
    outside: Outside, alice: User
) -> None:
    connections.connect(str(alice.pk), "github", Account("7", "acme"), Grant({}), now=NOW)
    page = words(signed_in(alice).get(PAGE))
    assert (page.count(">No repositories yet<"), page.count(">Works<")) == (1, 0)


def test_what_was_followed_through_an_account_goes_on_once_it_is_connected_again(
    outside: Outside, alice: User
) -> None:
    client = signed_in(alice)
    code, _ = outside.vercel.install()
    client.get("/connections/vercel/callback/", {"state": begin(client, "vercel"), "code": code})
    product = make_product(str(alice.pk), name="Slowtide")
    chooser = reverse("source", args=[product.product_id, "vercel"])
    client.post(chooser, {"action": "choose", "choice": "prj_SlowtideDemo", "allow": "on"})
    (old,) = connections.of_provider(str(alice.pk), "vercel")
    client.post(reverse("disconnect"), {"key": old.key})
    assert following.connection_of(reread(product), "vercel") is None
    code, _ = outside.vercel.install()
    answer = {"state": begin(client, "vercel"), "code": code}
    page = client.get("/connections/vercel/callback/", answer, follow=True)
    assert "Slowtide is heard of again." in words(page)
    fresh = reread(product)
    assert following.connection_of(fresh, "vercel") is not None
    assert following.is_allowed(fresh, "vercel")


# -- the App Store's key ---------------------------------------------------------------------------


def test_a_key_can_be_a_file_and_is_never_shown_again(
    outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    client, pem = signed_in(person("carol")), outside.app_store.demo_pem
    form = {"issuer_id": ISSUER, "key_id": "WRONG12345"}
    for extra in ({"private_key": pem}, {"file": SimpleUploadedFile("key.p8", pem.encode())}):
        page = client.post(FORM, {**form, **extra})
        assert page.status_code == 422
        assert pem.splitlines()[1] not in words(page)
    upload = SimpleUploadedFile("key.p8", pem.encode())
    done = client.post(FORM, {**form, "key_id": KEY_ID, "file": upload})
    assert (done.status_code, done.headers["Location"]) == (302, PAGE)
    assert pem.splitlines()[1] not in caplog.text + words(client.get(PAGE))


def test_a_key_leads_back_to_the_product_that_it_was_begun_from(
    outside: Outside, alice: User, bob: User
) -> None:
    client, product = signed_in(alice), make_product(str(alice.pk))
    answer = {"key_id": KEY_ID, "issuer_id": ISSUER, "private_key": outside.app_store.demo_pem}
    for begun, end in (
        (
            {"product": product.product_id},
            reverse("source", args=[product.product_id, "app-store"]),
        ),
        ({}, PAGE),
    ):
        form = client.post("/connections/app-store/connect/", begun).headers["Location"]
        given = {name: values[-1] for name, values in fields(client.get(form)).items()}
        done = client.post(form, {**given, **answer})
        assert done.headers["Location"] == end
    his = make_product(str(bob.pk)).product_id
    assert client.get(FORM, {"product": his}).status_code == 404


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "This field is required."),
        ({"key_id": "ABCDE12345"}, "Paste the key, or choose its file."),
        ({"key_id": "short", "private_key": "x"}, "key ID"),
        ({"key_id": "ABCDE12345", "private_key": "x" * 6000}, "at most 5000 characters"),
        ({"key_id": "ABCDE12345", "private_key": "\x00\u202e<script>"}, ""),
        ({"key_id": "ABCDE12345", "issuer_id": "no", "private_key": "x"}, "issuer ID"),
    ],
)
def test_a_key_that_is_none_is_said_at_once(
    outside: Outside, alice: User, form: dict[str, str], said: str
) -> None:
    page = signed_in(alice).post(FORM, form)
    assert page.status_code == 422
    assert said in words(page)
    assert outside.standins.calls == []


def test_a_huge_file_is_not_read(outside: Outside, alice: User) -> None:
    upload = io.BytesIO(b"x" * 3_000_000)
    upload.name = "key.p8"
    form = {"key_id": "ABCDE12345", "file": upload}
    assert signed_in(alice).post(FORM, form).status_code == 422


def test_an_expiry_is_said_with_its_zone(outside: Outside, alice: User) -> None:
    ends = timezone.now() + timedelta(days=9)
    account(alice, expires_at=ends, refresh_at=ends)
    page = words(signed_in(alice).get(PAGE))
    assert "Expires" in page
    assert "Ends soon" not in page
    assert "Times in UTC" in page
    assert "ends on" not in words(signed_in(alice).get("/"))


def test_what_only_its_owner_can_prolong_is_said_in_its_last_week(
    outside: Outside, alice: User
) -> None:
    ends = timezone.now() + timedelta(days=6)
    account(alice, expires_at=ends, refresh_at=ends)
    page = words(signed_in(alice).get(PAGE))
    assert "Ends soon" in page
    assert "Connect again" in page
    assert "Connect it again before then" in words(signed_in(alice).get("/"))


def test_what_a_machine_renews_is_never_said_to_end(outside: Outside, alice: User) -> None:
    now = timezone.now()
    account(alice, expires_at=now + timedelta(hours=2), refresh_at=now + timedelta(days=100))
    page = words(signed_in(alice).get(PAGE))
    assert "Renewed by itself" in page
    assert "Expires" not in page
    assert "ends on" not in words(signed_in(alice).get("/"))
