"""Names whose values are secrets, as patterns for lower-cased text."""

import re

from qwed.guards._secrets.languages import LANGUAGES, alternation, positions

_ENGLISH = ("pass", "pw")
_AMBIGUOUS = ("clave", "sandi")
FOREIGN_PASSWORDS = tuple(
    word for word in LANGUAGES.password if not word.startswith(_ENGLISH) and word not in _AMBIGUOUS
)
"""Words for "password" in other languages."""
PASSWORD = (
    r"(?:passw(?:or)?d|passwort|passphrase|passcode"
    r"|pass(?<!by.{4})(?<!com.{4})(?<!tres.{4})(?<!sur.{4})(?<!ver.{4})(?<!der.{4})"
    r"|pwd|pw(?<![a-z].{2})|pw(?<=bindpw)"
    rf"|{alternation(FOREIGN_PASSWORDS)})"
)
_STRONG_KEYS = "private signing encryption master hmac jwt fernet aes secret"
_KEYS = (
    "api app application access auth account storage service role subscription consumer session shared license deploy"
    " admin write server integration aws azure gcp google github gitlab stripe twilio sendgrid mailgun openai anthropic"
    " slack datadog dd newrelic heroku cloudflare shopify algolia sentry okta splunk pagerduty"
)


def _after(prefixes: str, name: str) -> str:
    """Return a pattern for the name preceded by one of the prefixes, as lookbehinds, so that a scan only has to search
    for the name."""
    behind = "|".join(f"(?<={prefix}[_. -]{name})|(?<={prefix}{name})" for prefix in prefixes.split())
    return f"{name}(?:{behind})"


KEY = rf"(?:{_after(_KEYS, 'key')}|{_after(_STRONG_KEYS, 'key')}|key(?<=_key)|credentials?)"
SECRET = r"(?:secret(?:[_-]?(?:access[_-]?)?key(?:[_-]?base)?)?)"  # noqa: S105 - a pattern
TOKEN = (
    r"token(?<!page.{6})(?<!page.{5})(?<!next.{6})(?<!next.{5})(?<!tion.{6})(?<!tion.{5})"  # noqa: S105 - a pattern
    r"(?<!sync.{6})(?<!cursor.{6})"
)
STARTS = ("pass", "pw", "secret", "key", "token", "credential", *FOREIGN_PASSWORDS, *_AMBIGUOUS)
"""Literals of which each pattern begins with one."""


def name_positions(lowered: str) -> list[int]:
    """Return where the name of a secret may begin, in order."""
    words = _ASCII_STARTS
    if not lowered.isascii():
        # A letter is found many times faster than a word.
        words += tuple(word for letter, words in _BY_LETTER.items() if letter in lowered for word in words)
    return positions(words, lowered)


# The start of a word that begins with another one is found with that.
_SHORT_STARTS = tuple(word for word in STARTS if not any(word != other and word.startswith(other) for other in STARTS))
_ASCII_STARTS = tuple(word for word in _SHORT_STARTS if word.isascii())
_RARE_LETTERS = {word: max(word) for word in _SHORT_STARTS if not word.isascii()}
_BY_LETTER = {
    letter: tuple(word for word, rarest in _RARE_LETTERS.items() if rarest == letter)
    for letter in dict.fromkeys(_RARE_LETTERS.values())
}
KEY_OR_TOKEN = rf"(?:{KEY}|{SECRET}|{TOKEN})"

_PASSWORDS = (*_ENGLISH, *FOREIGN_PASSWORDS)
_CREDENTIAL_PREFIX = re.compile(
    r"(?:jwt|session|cookie|app|flask|hmac|shared|auth|oauth|api|token|webhook|signing|client|consumer|access|refresh"
    r"|bearer|security|sas|personal|bot|id|deploy|github|gitlab|slack|npm|pypi|user|admin)[_. -]?\Z"
)
_KEY_PREFIX = re.compile(rf"(?:{'|'.join((_KEYS + ' ' + _STRONG_KEYS).split())})[_. -]?\Z")
_STRONG_PREFIX = re.compile(rf"(?:{'|'.join(_STRONG_KEYS.split())})[_. -]?\Z")
_LONGEST_PREFIX = 16


def is_password(name: str) -> bool:
    """Return True if any value assigned to the name is a secret."""
    return name.startswith(_PASSWORDS)


def is_strong(name: str, lowered: str, start: int) -> bool:
    """Return True if even a plain word assigned to the name is a secret, like a weak password."""
    before = lowered[max(0, start - _LONGEST_PREFIX) : start]
    if name == "secret":
        return _CREDENTIAL_PREFIX.search(before) is not None
    return name.startswith("secret") or (name == "key" and _STRONG_PREFIX.search(before) is not None)


def is_any_key(name: str, lowered: str, start: int) -> bool:
    """Return True if the name only says that some key follows, which may be the key of a table row."""
    return name == "key" and _KEY_PREFIX.search(lowered[max(0, start - _LONGEST_PREFIX) : start]) is None


def is_bare(name: str, lowered: str, start: int) -> bool:
    """Return True if the name alone does not imply a secret, such as `token`."""
    before = lowered[max(0, start - _LONGEST_PREFIX) : start]
    return name in _BARE and _CREDENTIAL_PREFIX.search(before) is None


_BARE = frozenset({"token", "secret", "credential", "credentials"})
