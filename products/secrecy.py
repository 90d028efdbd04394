"""What must not get out: secrets, the names of inner hosts, and words that an owner keeps to
themselves. Pure.

Patterns of our own, for tokens whose issuers gave them a shape that nothing else has: what guesses
by entropy takes every word of a normal sentence for a secret.
"""

import re
import unicodedata
from collections.abc import Iterable

REMOVED = "[removed]"
SECRET = "it seems to hold a secret"  # noqa: S105  a reason, no secret
INNER_HOST = "it names a host that is not open to everybody"

_SECRETS = re.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r".*?(?:-----END [A-Z ]{0,30}-----|\Z)",
            r"\bgh[opsur]_[A-Za-z0-9]{30,255}\b|\bgithub_pat_\w{40,255}\b",  # GitHub
            r"\bglpat-[\w-]{20,}",  # GitLab
            r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",  # AWS
            r"\b(?:sk|rk)_(?:live|test)_\w{16,}|\bwhsec_[\w+/=]{16,}",  # Stripe
            r"\bxox[abeoprs]-[\w-]{10,}|\bxapp-\d-[\w-]{20,}"  # Slack
            r"|https://hooks\.slack\.com/services/\w[\w/]{20,}",
            r"\bsk-(?:ant-|proj-|svcacct-)?[\w-]{20,}",  # OpenAI, Anthropic
            r"\bAIza[\w-]{35}(?![\w-])|\bGOCSPX-[\w-]{20,}|\bya29\.[\w-]{20,}",  # Google
            r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[\w-]{40,}|\bhf_[A-Za-z0-9]{30,}\b",
            r"\bSG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
            r"\bey[JI][\w-]{8,}\.ey[JI][\w-]{8,}\.[\w-]{8,}",  # a JSON Web Token
            r"(?<=://)[^\s/:@]{1,100}:[^\s/@]{1,200}(?=@)",  # user and password of a URL
            # password=…, API_KEY="…", "secret": "…"; not `password=$DB_PASSWORD` and the like
            r"(?i:(?<![A-Za-z])(?:passw(?:or)?d|pwd|secret|token|(?:api|access|private)[_-]?key)"
            r"(?:_\w{1,30})?[\"']?)(?:=[\"']?(?=[^\s\"'&]*[\d\W_])|\s{0,3}[:=]\s{0,3}[\"'])"
            r"(?![<$\[{])[^\s\"'&]{6,200}",
        )
    ),
    re.DOTALL,
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HOSTS = re.compile(
    "|".join(
        (
            r"(?:\b[a-z][a-z0-9+.-]{1,20}://)?\b(?:[a-z0-9-]{1,63}\.){1,8}"
            r"(?:internal|intranet|corp|local|localdomain|lan)\b(?![.\w-]*\.[a-z]{2,})\S{0,500}",
            r"\b[a-z][a-z0-9+.-]{1,20}://localhost\b\S{0,500}|\blocalhost:\d{2,5}\b\S{0,500}",
            rf"(?<![\w.])(?:(?:10|127)\.{_OCTET}|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))"
            rf"\.{_OCTET}\.{_OCTET}(?![\w.]*\d)(?::\d+)?",
            r"(?<![\w:])(?:f[cd][0-9a-f]{2}|fe80):[0-9a-f:]{2,40}",
        )
    ),
    re.IGNORECASE,
)


def cleaned(text: str) -> tuple[str, str]:
    """A text with REMOVED where it held a secret or an inner host, and a reason, or ""."""
    without, secrets = _SECRETS.subn(REMOVED, text)
    without, hosts = _HOSTS.subn(REMOVED, without)
    return without, SECRET if secrets else INNER_HOST if hosts else ""


def kept_words(never_mention: str | None) -> list[str]:
    """The words and phrases that an owner keeps out of posts: one a line."""
    return [word for line in (never_mention or "").splitlines() if (word := " ".join(line.split()))]


def mentioned(words: Iterable[str], *texts: str) -> str:
    """The first of the words that a text mentions, or "": whole words, whatever their case,
    accents, width or the space between them."""
    folded = [_folded(text) for text in texts if text]
    for word in words:
        wanted = re.escape(_folded(word)).replace(r"\ ", r"[\s_-]+")
        shape = re.compile(rf"(?<!\w){wanted}(?!\w)")
        if any(shape.search(text) for text in folded):
            return word
    return ""


def why_kept(text: str, words: Iterable[str]) -> str:
    """Why a text must not go out, in a sentence that says what to do, or ""."""
    if word := mentioned(words, text):
        return f"It mentions “{word}”, which you keep out of posts: take that out."
    _, reason = cleaned(text)
    if reason == SECRET:
        return "It seems to hold a secret, such as a password or a key: take that out."
    return "It names a host that is not open to everybody: take that out." if reason else ""


def _folded(text: str) -> str:
    """Without accents, width and case, and without what cannot be seen."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(
        character
        for character in apart
        if not unicodedata.combining(character) and unicodedata.category(character) != "Cf"
    ).casefold()
