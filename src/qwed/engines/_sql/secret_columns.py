"""Columns that hold secrets, by the words of their names; the words are in `data/secret_columns.toml`."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from qwed.model.unicode_normal import normalize

_LONGEST_NAME = 200
"""Part of a name that is looked at: its end, where a secret is named."""
_PREFIXES = (
    "hashed encrypted enc user usr member customer employee patient admin root db database account login app service "
    "client api auth oauth bearer access refresh session reset remember signing shared webhook master primary smtp "
    "email wifi old new current temp plain raw totp otp mfa card aws gcp azure jwt token personal github slack stripe"
)
_SUFFIXES = "pem hash hashed digest salt encrypted enc plain plaintext text value md5 sha1 sha256 bcrypt"
_JOINED = {
    "password": "userpass passhash passphrase",
    "secret": "secretkey secretaccesskey",
    "ssn": "socialsecuritynumber socialsecurityno",
    "cvv": "cvc cvv2 cvc2",
    "credit_card": "creditcardnumber creditcardno ccnumber",
    "private_key": "privkey",
    "token": "",
    "pin": "",
    "passwd": "",
    "pwd": "",
    "api_key": "",
    "card_number": "cardno",
}
"""Words of a name without separators, such as `userpasswordhash`."""
_WORDS = re.compile(r"[A-Za-z0-9]+")
_NUMBERED = re.compile(r"(?<=[a-z]{3})v?\d{1,2}$")
"""Number of a version behind a word."""


class SecretWords(NamedTuple):
    """Contents of the data file, split into words."""

    names: dict[str, tuple[tuple[str, ...], ...]]
    """For each sensitive name, the last words of columns that belong to it."""
    endings: frozenset[str]
    beginnings: frozenset[str]


@cache
def _words() -> SecretWords:
    data = tomllib.loads(files(__package__).joinpath("data", "secret_columns.toml").read_text(encoding="utf-8"))
    names = {name: tuple(tuple(row.split("_")) for row in rows.split()) for name, rows in data["names"].items()}
    words = data["words"]
    return SecretWords(names, frozenset(words["endings"].split()), frozenset(words["beginnings"].split()))


@lru_cache(maxsize=64)
def _joined_names(sensitive: frozenset[str]) -> re.Pattern[str]:
    words = [word.replace("_", "") for name in sensitive & _JOINED.keys() for word in (name, *_JOINED[name].split())]
    inner = "|".join(sorted(words)) or r"(?!)"
    return re.compile(rf"(?:{'|'.join(_PREFIXES.split())})*(?:{inner})(?:{'|'.join(_SUFFIXES.split())})*")


@lru_cache(maxsize=8192)
def is_sensitive(column: str, sensitive: frozenset[str]) -> bool:
    """Return True if a folded name is listed, or is that of a secret which belongs to a listed name."""
    if column in sensitive:
        return True
    column = _plain_letters(column[-_LONGEST_NAME:])
    if column in sensitive:
        return True
    if _joined_names(sensitive).fullmatch(column.replace("_", "")) is not None:
        return True
    return any(_ends_in_secret(words, sensitive) for words in _forms(column))


def _plain_letters(column: str) -> str:
    """Return a name without accents and other forms of letters, which some databases take for the plain ones."""
    if column.isascii():
        return column
    return "".join(letter for letter in normalize("NFKD", column) if letter.isascii()).lower()


def _forms(column: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a name, with and without those that only say in which form the secret is."""
    words = tuple(_WORDS.findall(column.replace("_", " ").lower()))
    words = tuple(_NUMBERED.sub("", word) or word for word in words)
    if not words or (len(words) > 1 and words[0] in _words().beginnings):
        return
    yield words
    while len(words) > 1 and words[-1] in _words().endings:
        words = words[:-1]
        yield words


def _ends_in_secret(words: tuple[str, ...], sensitive: frozenset[str]) -> bool:
    rows = (row for name, rows in _words().names.items() if name in sensitive for row in rows)
    return any(words[-len(row) :] == row for row in rows)
