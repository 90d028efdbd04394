"""What must not get out is found, and normal words are not taken for it."""

import pytest

from products import posts, secrecy
from products.states import State
from slothpost_site.dynamo import change
from tests.builders import NOW, make_post, make_product, reread

TOKEN = "ghp_" + "0123456789" * 4
HOST = secrecy.INNER_HOST


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        "github_pat_" + "11ABCDEFG0" * 8,
        "AKIA" + "IOSFODNN7EXAMPLE",
        "sk_live_" + "4eC39HqLyjWDarjtT1",
        "xoxb-" + "123456789012-abcdefghij",
        "sk-proj-" + "abcdefghijklmnopqrstuvwx",
        "AIza" + "A1234567890abcdefghijklmnopqrstuv-_",
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "password=hunter2hunter2",
        "API_KEY='abcdefgh'",
    ],
)
def test_a_secret_is_removed_and_named(text: str) -> None:
    cleaned, reason = secrecy.cleaned(f"Rotate {text} now")
    assert reason == secrecy.SECRET
    assert cleaned.startswith("Rotate ")
    assert cleaned.endswith("[removed] now") or cleaned.endswith("[removed]' now")
    assert text not in cleaned


def test_the_user_and_password_of_an_address_are_removed() -> None:
    cleaned = secrecy.cleaned("Move to postgres://app:s3cr3tpw@db.example.com/app")
    assert cleaned == ("Move to postgres://[removed]@db.example.com/app", secrecy.SECRET)


@pytest.mark.parametrize(
    "host",
    [
        "db1.prod.internal",
        "wiki.corp",
        "printer.local",
        "http://localhost:3000/x",
        "10.0.3.7",
        "192.168.1.10:8080",
        "172.16.0.1",
        "169.254.169.254",
        "fe80::1",
    ],
)
def test_the_name_of_an_inner_host_is_removed_and_named(host: str) -> None:
    assert secrecy.cleaned(f"Ask {host} first") == ("Ask [removed] first", HOST)


@pytest.mark.parametrize(
    "text",
    [
        "Fix the password reset: it came twice",
        "feat(auth): password = at least 12 characters",
        "Reset password: now works in Safari",
        "Token: renewed ahead of time",
        "Support API keys: create and revoke them",
        "Read the password from password=$DB_PASSWORD",
        "See https://github.com/acme/app/compare/v1.4.0...v1.5.0",
        "Revert 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "Upgrade to Node 20.11.1 and v10.0.3.7",
        "Works on localhost as well, at 12:30",
        "Visit tidewater.local.example.com",
        "Support .local names",
        "It listens on 172.15.0.1 and 8.8.8.8",
    ],
)
def test_normal_words_are_left_as_they_are(text: str) -> None:
    assert secrecy.cleaned(text) == (text, "")


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("Acme Corp", "for the ACME  corp", "Acme Corp"),
        ("acme corp", "for acme-corp", "acme corp"),
        ("cafe", "Ｃａｆé opens", "cafe"),
        ("café", "the CAFE", "café"),
        ("cat", "by category", ""),
        ("C++", "now in C++!", "C++"),
        ("ac\u200bme", "by acme", "ac\u200bme"),
    ],
)
def test_a_word_is_found_whole_whatever_its_case_accents_and_width(
    word: str, text: str, found: str
) -> None:
    assert secrecy.mentioned([word], text) == found


def test_a_word_or_phrase_stands_on_a_line_of_its_own() -> None:
    assert secrecy.kept_words(" Acme  Corp \r\n\nProject X\n") == ["Acme Corp", "Project X"]
    assert secrecy.kept_words(None) == []


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Made with Acme Corp.", "It mentions “acme corp”, which you keep out of posts"),
        (f"The key is {TOKEN}.", "It seems to hold a secret"),
        ("Now at http://localhost:3000.", "It names a host that is not open to everybody"),
    ],
)
def test_a_text_that_must_not_get_out_cannot_be_approved(text: str, why: str) -> None:
    product = make_product()
    change(product, None, never_mention="acme corp")
    post = make_post(product, text=text)
    with pytest.raises(posts.TextRefused, match=why):
        posts.approve(post, seen=posts.text_hash(post), send_at=NOW, now=NOW, by="1")
    assert reread(post).state == State.AWAITING_REVIEW
    posts.edit(post, "Something else.", seen=posts.text_hash(post), now=NOW, by="1")
    posts.approve(post, seen=posts.text_hash(post), send_at=NOW, now=NOW, by="1")
    assert reread(post).state == State.APPROVED
