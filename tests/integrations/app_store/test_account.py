"""Connecting an App Store Connect key, and what it shows."""

from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from integrations import connections
from integrations.errors import NeedsReconnect, NotFound, Refused, TryLater
from integrations.sources import app_store as source
from integrations.sources.base import Choice
from integrations.standins import app_store as standin
from integrations.standins.server import Fault
from tests.integrations.app_store.conftest import APP, NOW, World, another_key

pytestmark = pytest.mark.usefixtures("store")

API = "/app-store-connect/v1/.*"


def refused(world: World, **fields: str) -> str:
    """Why the form is refused; nothing was connected then."""
    with pytest.raises(Refused) as failure:
        source.finish("1", world.form(**fields), {}, NOW)
    assert connections.of_provider("1", "app_store") == []
    return failure.value.reason


# -- connecting ------------------------------------------------------------------------------------


def test_anybody_can_connect_a_key_and_begins_at_our_own_form() -> None:
    assert source.is_configured()


def test_a_key_that_reads_the_apps_is_connected(world: World) -> None:
    made = world.connection()
    found = connections.find("1", f"app_store#{standin.KEY_ID}")
    assert found is not None
    assert (found.account_name, found.details) == ("Key SLOTHDEMO1", {"issuer": standin.ISSUER})
    assert connections.secrets_of(found) == {"private_key": world.connect.demo_pem}
    assert made.key == found.key
    assert found.works


def test_a_key_can_be_given_a_name(world: World) -> None:
    form = world.form(name=" Work ")
    assert source.finish("1", form, {}, NOW).connection.account_name == "Work"


def test_a_name_is_one_line(world: World) -> None:
    done = source.finish("1", world.form(name="My\nkey\u202e "), {}, NOW)
    assert done.connection.account_name == "My key"


def test_a_key_is_taken_however_it_was_pasted(world: World) -> None:
    untidy = "  \r\n" + world.connect.demo_pem.replace("\n", "\r\n  ") + "\t"
    flat = world.connect.demo_pem.replace("\n", " ")
    escaped = world.connect.demo_pem.replace("\n", "\\n")
    for pasted in (untidy, flat, escaped):
        source.finish("1", world.form(private_key=pasted, key_id="slothdemo1 "), {}, NOW)
    assert len(connections.of_provider("1", "app_store")) == 1


def test_an_individual_key_has_no_issuer(world: World) -> None:
    world.key.issuer = ""
    source.finish("1", world.form(issuer_id=""), {}, NOW)
    assert source.choices("1", NOW)[0].id == APP


def test_connecting_again_can_turn_a_team_key_into_an_individual_one(world: World) -> None:
    world.connection()
    world.key.issuer = ""
    again = source.finish("1", world.form(issuer_id=""), {}, NOW).connection
    source.check(again, NOW)
    assert again.details == {"issuer": ""}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"issuer_id": "me"}, "The issuer ID looks like 57246542-96fe-1a63-e053-0824d011072a"),
        ({"key_id": "SHORT"}, "The key ID has ten letters and digits, such as 2X9R4HXF34."),
        ({"private_key": ""}, "Paste the whole .p8 file"),
        (
            {"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"},
            "The key's text is damaged",
        ),
    ],
)
def test_a_form_says_what_is_wrong_without_asking_apple(
    world: World, fields: dict[str, str], reason: str
) -> None:
    assert refused(world, **fields).startswith(reason)
    assert world.standins.calls == []


def test_another_kind_of_key_is_called_what_it_is(world: World) -> None:
    plain, pkcs8 = NoEncryption(), PrivateFormat.PKCS8
    p256, p384 = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
    )
    locked = p256.private_bytes(Encoding.PEM, pkcs8, BestAvailableEncryption(b"x"))
    pasted = {
        "“encrypted private key”": locked,
        "“ec private key”": p256.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, plain
        ),
        "“public key”": p256.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        ),
        "key on another curve (secp384r1)": p384.private_bytes(Encoding.PEM, pkcs8, plain),
        "key of another kind (RSAPrivateKey)": rsa.generate_private_key(65537, 2048).private_bytes(
            Encoding.PEM, pkcs8, plain
        ),
    }
    for what, pem in pasted.items():
        assert refused(world, private_key=pem.decode()) == (
            f"This is a {what}. App Store Connect gives a .p8 file with a plain private key on"
            " P-256."
        )


@pytest.mark.parametrize(
    "fields",
    [
        {"private_key": "another"},
        {"key_id": "AAAAAAAAAA"},
        {"issuer_id": "00000000-0000-0000-0000-000000000000"},
        {"issuer_id": ""},
    ],
)
def test_a_key_that_apple_does_not_know_is_not_connected(
    world: World, fields: dict[str, str]
) -> None:
    if fields.get("private_key"):
        fields = {"private_key": another_key()}
    assert refused(world, **fields).startswith("App Store Connect does not accept this key. Check")


@pytest.mark.parametrize("off", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_token_by_a_wrong_clock_is_refused(world: World, off: timedelta) -> None:
    world.connect.clock = lambda: NOW + off
    assert refused(world).startswith("App Store Connect does not accept this key. Check")


def test_a_role_that_is_too_low_is_told_apart_from_an_unsigned_agreement(world: World) -> None:
    world.standins.faults = [Fault(API, status=403, body='{"errors": []}')]
    assert refused(world).startswith("App Store Connect does not let this key do that")
    world.key.agreement_unsigned = True
    assert refused(world).startswith("App Store Connect waits for its Account Holder to sign")


# -- asking ----------------------------------------------------------------------------------------


def test_one_token_serves_many_questions_and_a_new_one_comes_in_time(world: World) -> None:
    connection = world.connection()
    source.check(connection, NOW + timedelta(minutes=9))
    assert len(world.connect.tokens) == 1
    later = NOW + timedelta(minutes=11)
    world.connect.clock = lambda: later
    source.check(connection, later)
    assert len(world.connect.tokens) == 2


def test_a_401_now_and_then_is_no_news(world: World) -> None:
    connection = world.connection()
    for times in (1, 2):
        world.standins.faults = [Fault(API, status=401, times=times)]
        source.check(connection, NOW)
    assert connection.works
    assert world.standins.count("GET", API) == 1 + 2 + 3
    assert len(world.connect.tokens) == 2  # the third try came with a fresh one


def test_a_revoked_key_marks_its_connection(world: World) -> None:
    connection = world.connection()
    del world.connect.keys[standin.KEY_ID]
    with pytest.raises(NeedsReconnect) as failure:
        source.check(connection, NOW)
    found = connections.find("1", connection.key)
    assert found is not None
    assert found.broken == failure.value.reason
    assert failure.value.reason.startswith("App Store Connect no longer accepts this key")
    asked = len(world.standins.calls)
    with pytest.raises(NeedsReconnect):
        source.check(found, NOW)
    assert len(world.standins.calls) == asked  # nobody is asked in vain


@pytest.mark.parametrize(
    "fault",
    [
        Fault(API, status=500),
        Fault(API, hang_up=True),
        Fault(API, status=200, body="<html>Maintenance</html>"),
        Fault(API, status=429, headers={"Retry-After": "30"}),
    ],
    ids=["500", "hang up", "HTML", "429"],
)
def test_what_may_pass_is_trouble_and_breaks_nothing(world: World, fault: Fault) -> None:
    connection = world.connection()
    world.standins.faults = [fault]
    with pytest.raises(TryLater) as failure:
        source.check(connection, NOW)
    assert (connection.works, connection.trouble) == (True, failure.value.reason)
    source.renew(connection, NOW)
    assert connection.trouble is None


def test_an_hours_allowance_that_is_spent_is_waited_for(world: World) -> None:
    connection = world.connection()
    world.connect.allowance = 0
    with pytest.raises(TryLater) as failure:
        source.check(connection, NOW)
    assert failure.value.after == timedelta(minutes=15)


def test_a_retry_after_comes_first(world: World) -> None:
    connection = world.connection()
    headers = {"Retry-After": "30", "X-Rate-Limit": "user-hour-lim:3600;user-hour-rem:0;"}
    world.standins.faults = [Fault(API, status=429, headers=headers)]
    with pytest.raises(TryLater) as failure:
        source.check(connection, NOW)
    assert failure.value.after == timedelta(seconds=30)


def test_a_403_later_on_says_what_is_missing(world: World) -> None:
    connection = world.connection()
    world.key.agreement_unsigned = True
    with pytest.raises(Refused) as failure:
        source.check(connection, NOW)
    assert (connection.works, connection.trouble) == (True, failure.value.reason)


def test_disconnecting_forgets_the_key_and_says_what_is_left_to_do(world: World) -> None:
    said = source.disconnect(world.connection(), NOW)
    assert said.endswith("revoke it in App Store Connect: Users and Access, Integrations.")
    assert connections.of_provider("1", "app_store") == []


# -- choices ---------------------------------------------------------------------------------------


def test_all_apps_are_listed_page_after_page(world: World) -> None:
    for number in range(5):
        app_id = f"700000000{number}"
        world.connect.apps[app_id] = standin.App(app_id, f"App {number}", f"com.example.a{number}")
    world.connect.most_per_page = 2
    connection = world.connection()
    assert [choice.name for choice in source.choices("1", NOW)] == [
        *(f"App {number}" for number in range(5)),
        "Slowtide",
    ]
    assert source.choices("1", NOW)[-1] == Choice(
        id=APP, name="Slowtide", via=connection.key, detail="com.example.slowtide"
    )


def test_what_has_no_apps_id_is_not_listed_and_a_long_name_is_cut(world: World) -> None:
    world.connection()
    world.connect.apps = {
        app_id: standin.App(app_id, name, "com.example")
        for app_id, name in (("abc", "Odd"), ("7000000001", "A" * 1_000_000), ("7000000002", " "))
    }
    assert [(choice.id, choice.name) for choice in source.choices("1", NOW)] == [
        ("7000000002", "7000000002"),
        ("7000000001", "A" * 199 + "…"),
    ]


def test_an_app_that_two_keys_show_is_listed_once(world: World) -> None:
    world.connection()
    world.connect.keys["ANOTHERKEY"] = standin.Key(standin.ISSUER, another_key())
    form = world.form(key_id="ANOTHERKEY", private_key=another_key())
    source.finish("1", form, {}, NOW)
    assert [choice.id for choice in source.choices("1", NOW)] == [APP]


def test_a_next_page_elsewhere_is_not_followed(world: World) -> None:
    world.connection()
    body = '{"data": [], "links": {"next": "https://evil.example/v1/apps"}}'
    world.standins.faults = [Fault(API, status=200, body=body)]
    with pytest.raises(Refused) as failure:
        source.choices("1", NOW)
    assert "an address that is not its own" in failure.value.reason


def test_a_list_of_the_wrong_shape_is_no_answer(world: World) -> None:
    world.connection()
    for body in ('{"data": {}, "x": 1}', '{"data": [{"id": 5}]}', "[]"):
        world.standins.faults = [Fault(API, status=200, body=body.replace("{}", '"?"'))]
        with pytest.raises(TryLater) as failure:
            source.choices("1", NOW)
        assert failure.value.reason == (
            "App Store Connect answered with something that is no answer."
        )


# -- an app without an account ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "country"),
    [
        (APP, "us"),
        (f" id{APP} ", "us"),
        (f"https://apps.apple.com/app/id{APP}", "us"),
        (f"https://apps.apple.com/us/app/slowtide/id{APP}?mt=8", "us"),
        (f"apps.apple.com/DE/app/slowtide-f%C3%BCr-alle/id{APP}#top", "de"),
        (f"http://itunes.apple.com/de/app/slowtide/id{APP}", "de"),
    ],
)
def test_an_app_is_found_by_id_and_by_link(world: World, text: str, country: str) -> None:
    expected = Choice(APP, "Slowtide", detail=country, seen={"country": country})
    assert source.find_app(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    ["", "Slowtide", "0", "-5", "9" * 19, "https://example.com/app/id5", "https://apps.apple.com/"],
)
def test_what_names_no_app_is_refused_without_asking(world: World, text: str) -> None:
    with pytest.raises(Refused) as failure:
        source.find_app(text, NOW)
    assert failure.value.reason.startswith("Paste the link to your app's page")
    assert world.standins.calls == []


@pytest.mark.parametrize("text", ["123", f"https://apps.apple.com/jp/app/id{APP}"])
def test_an_app_that_is_not_sold_there_is_not_found(world: World, text: str) -> None:
    with pytest.raises(NotFound) as failure:
        source.find_app(text, NOW)
    assert "If it is sold elsewhere, paste the link to its page there." in failure.value.reason


def test_itunes_that_is_asked_too_much_asks_us_to_wait(world: World) -> None:
    world.itunes.is_limited = True
    for _ in range(20):
        source.find_app(APP, NOW)
    with pytest.raises(TryLater) as failure:
        source.find_app(APP, NOW)
    assert failure.value.after == timedelta(minutes=2)


@pytest.mark.parametrize(
    "body", ["<html></html>", "[]", '{"results": 5}', '{"results": [{"trackId": "x"}]}']
)
def test_an_odd_answer_of_itunes_is_none(world: World, body: str) -> None:
    world.standins.faults = [Fault("/itunes/lookup", status=200, body=body)]
    with pytest.raises(TryLater) as failure:
        source.find_app(APP, NOW)
    assert failure.value.reason == "iTunes answered with something that is no answer."


# -- webhooks --------------------------------------------------------------------------------------


def hook(world: World, site: str = "") -> tuple[str, str]:
    """The address and the secret of the first person's hook."""
    name = source.hook_of("1", APP)
    return f"{site or world.standins.url}/webhooks/app-store/{name}/", source.hook_secrets(name)[0]


def test_a_webhook_is_set_up_once_and_pinged(world: World) -> None:
    connection = world.connection()
    url, secret = hook(world)
    for _ in range(2):
        source.set_up_webhook(connection, APP, url, secret, NOW)
    (made,) = world.connect.hooks.values()
    assert (made.app_id, made.url, made.secret, made.enabled) == (APP, url, secret, True)
    ping, _again = world.receiver.received
    assert source.verify(ping.body, ping.headers, secret)
    assert source.parse(ping.json(), {}).note == "The App Store says hello: the webhook works"


def test_a_changed_secret_or_site_is_brought_to_the_same_webhook(world: World) -> None:
    connection = world.connection()
    source.set_up_webhook(connection, APP, hook(world, "http://localhost:1")[0], "old", NOW)
    url, secret = hook(world)
    source.set_up_webhook(connection, APP, url, secret, NOW)
    (made,) = world.connect.hooks.values()
    assert (made.url, made.secret) == (url, secret)


def test_somebody_elses_webhook_is_left_alone(world: World) -> None:
    connection = world.connection()
    others = standin.Hook("h1", APP, "CI", "https://ci.example/hook", "s", [])
    world.connect.hooks["h1"] = others
    url, secret = hook(world)
    source.set_up_webhook(connection, APP, url, secret, NOW)
    assert len(world.connect.hooks) == 2
    source.remove_webhook(connection, APP, url, NOW)
    assert world.connect.hooks == {"h1": others}
    assert (others.url, others.secret) == ("https://ci.example/hook", "s")


def test_a_webhook_or_an_app_that_went_first_is_no_trouble(world: World) -> None:
    connection = world.connection()
    source.remove_webhook(connection, APP, hook(world)[0], NOW)
    world.connect.apps.clear()
    source.remove_webhook(connection, APP, hook(world)[0], NOW)
    assert world.connect.hooks == {}


def test_a_key_that_may_not_manage_webhooks_is_told_what_happens_instead(world: World) -> None:
    connection = world.connection()
    world.key.may_manage_webhooks = False
    with pytest.raises(Refused) as failure:
        source.set_up_webhook(connection, APP, *hook(world), NOW)
    assert "SlothPost asks the App Store before each draft instead" in failure.value.reason
    assert connection.works


def test_a_release_reaches_the_hook_signed(world: World) -> None:
    url, secret = hook(world)
    source.set_up_webhook(world.connection(), APP, url, secret, NOW)
    version = world.connect.put_in_review(APP, "1.6.0", "Widgets.")
    world.connect.release(APP, version.id)
    _ping, in_review, released = world.receiver.received
    assert [source.parse(sent.json(), {}).note for sent in (in_review, released)] == [
        "A version is in review",
        "A version is in the store",
    ]
    assert source.verify(released.body, released.headers, secret)
