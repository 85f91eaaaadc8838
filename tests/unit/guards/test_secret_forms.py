"""Secrets in many forms, made from fixed seeds: encoded, split, stated in other languages, wallets, accounts."""

import base64
import codecs
import gzip
import hashlib
import json
import random
import string
from collections.abc import Callable, Iterator
from importlib.resources import files
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qwed.guards._secrets.public_examples import is_public_example
from qwed.guards._secrets.token_rules import TOKEN_RULES, vendor_rules
from qwed.guards._secrets.wallet_checksums import decode_base58, is_base58_check, is_wallet_key
from qwed.guards.secrets import find_secrets, mask
from tests.support.case_tables import each, rows

LETTERS = string.ascii_letters + string.digits
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
PASSWORDS = ("Zebra!Quilt77", "mK9#vLq2x", "S0mmer%Regen", "kJ8fQ2mZpL", "xT7_qWz!91", "Vq3!nnRt")


def made(size: int, seed: str, letters: str = LETTERS) -> str:
    return "".join(random.Random(seed).choices(letters, k=size))


TOKENS = {
    "github": "ghp_" + made(36, "github"),
    "gitlab": "glpat-" + made(20, "gitlab"),
    "stripe": "sk_live_" + made(24, "stripe"),
    "aws": "AKIA" + made(16, "aws", string.ascii_uppercase + "234567"),
    "npm": "npm_" + made(36, "npm"),
    "google": "AIza" + made(35, "google"),
    "anthropic": "sk-ant-api03-" + made(93, "anthropic") + "AA",
}
DISGUISES: dict[str, Callable[[str], str]] = {
    "line end": lambda token: token[:15] + "\n" + token[15:],
    "two line ends": lambda token: token[:14] + "\n" + token[14:18] + "\n" + token[18:],
    "blank": lambda token: token[:16] + " " + token[16:],
    "quoted printable line": lambda token: token[:18] + "=\n" + token[18:],
    "concatenation": lambda token: f'x = "{token[:14]}" + "{token[14:]}"',
    "base64": lambda token: base64.b64encode(token.encode()).decode(),
    "base64 three times": lambda token: base64.b64encode(base64.b64encode(base64.b64encode(token.encode()))).decode(),
    "base64 in lines": lambda token: base64.encodebytes(
        f"the token for production is {token}, keep it".encode()
    ).decode(),
    "base64 of UTF-16": lambda token: base64.b64encode(token.encode("utf-16le")).decode(),
    "base64 of gzip": lambda token: base64.b64encode(gzip.compress(f"token {token}".encode())).decode(),
    "base32": lambda token: base64.b32encode(token.encode()).decode(),
    "base85": lambda token: base64.b85encode(token.encode()).decode(),
    "hexadecimal": lambda token: token.encode().hex(),
    "spaced hexadecimal": lambda token: token.encode().hex(" "),
    "character codes": lambda token: ", ".join(str(ord(sign)) for sign in token),
    "octal": lambda token: "".join(f"\\{ord(sign):03o}" for sign in token),
    "binary": lambda token: " ".join(f"{ord(sign):08b}" for sign in token),
    "percent": lambda token: "".join(f"%{ord(sign):02X}" for sign in token),
    "backwards": lambda token: token[::-1],
    "ROT13": lambda token: codecs.encode(token, "rot13"),
    "a blank between": " ".join,
    "a dot between": ".".join,
    "invisible": "\u200b".join,
    "placeholder appended": lambda token: token + "xxxxxxxx",
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("vendor", TOKENS)
def test_a_disguised_token_is_found(vendor, disguise):
    assert find_secrets(DISGUISES[disguise](TOKENS[vendor]))


@each("row", rows("secrets_stated.jsonl"), ids=lambda row: row["text"])
def test_a_stated_password_is_found_in_every_language(row):
    for password in PASSWORDS:
        text = row["text"].format(password)
        assert password not in mask(text)


def with_checksum(payload: bytes) -> str:
    return base58(payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4])


def base58(raw: bytes) -> str:
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return text


_WORDS_FILE = (files("qwed.guards._secrets") / "data" / "bip39_words.txt").read_text(encoding="utf-8")
WORD_LISTS = [line.split()[1:] for line in _WORDS_FILE.splitlines() if not line.startswith("#")]


def seed_phrase(language: int, words: int, seed: str) -> list[str]:
    listed = WORD_LISTS[language]
    entropy = random.Random(seed).randbytes(words * 4 // 3)
    bits = "".join(f"{byte:08b}" for byte in entropy)
    bits += f"{hashlib.sha256(entropy).digest()[0]:08b}"[: len(bits) // 32]
    return [listed[int(bits[index : index + 11], 2)] for index in range(0, len(bits), 11)]


@pytest.mark.parametrize("language", range(10))
@pytest.mark.parametrize("words", [12, 18, 24])
def test_a_seed_phrase_is_found_by_its_checksum(language, words):
    phrase = " ".join(seed_phrase(language, words, f"{language} {words}"))
    assert [finding.kind for finding in find_secrets(phrase)] == ["seed_phrase"]


@pytest.mark.parametrize("form", [", ".join, "\n".join, "-".join, json.dumps, lambda words: " ".join(words).upper()])
def test_a_seed_phrase_is_found_however_its_words_are_separated(form):
    assert find_secrets(form(seed_phrase(0, 12, "form")))


def test_words_of_the_list_without_the_checksum_are_no_phrase():
    phrase = seed_phrase(0, 12, "swapped")
    phrase[-1] = "zoo" if phrase[-1] != "zoo" else "zone"
    assert find_secrets(" ".join(phrase)) == ()


@pytest.mark.parametrize("prefix", ["80", "ef", "0488ade4", "04358394", "049d7878", "04b2430c"])
def test_a_key_of_a_wallet_is_found_by_its_checksum(prefix):
    version = bytes.fromhex(prefix)
    key = with_checksum(version + random.Random(prefix).randbytes(32 if len(version) == 1 else 74))
    assert is_base58_check(key)
    assert [finding.kind for finding in find_secrets(f"key {key}")] == ["wallet_key"]
    broken = key[:-1] + ("2" if key[-1] != "2" else "3")
    assert not is_base58_check(broken)


def test_base58_refuses_other_letters():
    assert decode_base58("0OIl") == b""


@pytest.mark.parametrize(("name", "start"), [("nostr key", "nsec1"), ("stellar seed", "S"), ("ripple seed", "sEd")])
def test_a_key_with_a_wrong_checksum_is_no_key(name, start):
    row = next(row for row in rows("secrets_attacks.jsonl") if row["name"] == name)
    key = next(word for word in "".join(row["text"]).split() if word.startswith(start))
    assert is_wallet_key(key)
    assert not is_wallet_key(key[:-1] + ("a" if key[-1] != "a" else "c"))
    assert not is_wallet_key(key[:-3])


def test_a_signature_is_no_key_pair():
    seed = random.Random("pair").randbytes(32)
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    assert [finding.kind for finding in find_secrets(base58(seed + public))] == ["wallet_key"]
    assert find_secrets(base58(seed + seed)) == ()


def test_key_files_of_wallets_are_found():
    numbers = list(random.Random("solana").randbytes(64))
    assert [finding.kind for finding in find_secrets(json.dumps(numbers))] == ["wallet_key"]
    assert find_secrets(json.dumps(list(range(64)))) == ()
    store = {"crypto": {"ciphertext": made(64, "store", "0123456789abcdef"), "kdf": "scrypt"}}
    assert [finding.kind for finding in find_secrets(json.dumps(store))] == ["wallet_key"]


HEX = "0123456789abcdef"
ACCOUNTS = {
    "shadow": "root:$6$" + made(16, "salt") + "$" + made(86, "shadow") + ":19000:0:99999:7:::",
    "yescrypt": "bob:$y$j9T$" + made(22, "salt") + "$" + made(43, "y") + ":19500:0:99999:7:::",
    "htpasswd": "bob:$apr1$" + made(8, "salt") + "$" + made(22, "apr"),
    "htpasswd bcrypt": "bob:$2y$05$" + made(53, "bcrypt"),
    "htpasswd SHA": "bob:{SHA}" + base64.b64encode(random.Random("sha").randbytes(20)).decode(),
    "dump": "Administrator:500:" + made(32, "lm", HEX) + ":" + made(32, "nt", HEX) + ":::",
    "session cookie": "Cookie: theme=dark; sessionid=" + made(32, "cookie"),
    "set-cookie": "Set-Cookie: SID=" + made(40, "sid") + "; Path=/; HttpOnly",
    "curl cookie": "curl -b 'sessionid=" + made(32, "curl", HEX) + "' https://example.com",
    "netrc": "machine ftp.example.net login bob password swordfishy",
    "pgpass": "db.internal:5432:app:bob:" + made(12, "pgpass"),
}


@pytest.mark.parametrize("name", ACCOUNTS)
def test_a_secret_of_an_account_is_found(name):
    assert find_secrets(ACCOUNTS[name])


CONTEXTS = (
    "here is the api token you asked for: {}",
    "The key for the staging cluster, as promised: {}",
    "{} is the new deploy token",
    'x = "{}"  # api key',
    "X-Auth: {}",
    '[auth]\nsecret = "{}"',
    "deploy --signing-key {}",
    "Der API-Schl\u00fcssel lautet {}",
    "la cl\u00e9 API est {}",
    "\u5bc6\u94a5\u662f {}",
    "<apiToken>\n    {}\n</apiToken>",
)


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_random_value_beside_a_word_for_a_secret_is_found(context):
    for seed in range(5):
        value = made(40, f"value {seed}")
        assert value not in mask(context.format(value))


def test_a_random_value_alone_is_no_secret():
    for seed in range(50):
        value = made(40, f"alone {seed}")
        assert find_secrets(f"image {value} was built, cache key {value}") == ()


@pytest.mark.parametrize("vendor", sorted(vendor_rules()))
def test_the_rules_of_vendors_match_whole_values(vendor):
    assert all(rule.pattern.fullmatch("") is None for rule in vendor_rules()[vendor])


def repeats(items: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield the upper bound and the body of every repetition of a parsed pattern."""
    for operator, argument in items:
        if operator in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            yield int(argument[1]), list(argument[2])
            yield from repeats(argument[2])
        elif operator is codes.SUBPATTERN:
            yield from repeats(argument[3])
        elif operator is codes.BRANCH:
            for branch in argument[1]:
                yield from repeats(branch)


@pytest.mark.parametrize("rule", TOKEN_RULES, ids=lambda rule: rule.source[:40])
def test_every_token_rule_is_bounded_and_repeats_no_repetition_often(rule):
    for high, body in repeats(parser.parse(rule.source)):
        assert high <= 10_000
        assert high <= 10 or not list(repeats(body))


def test_published_examples_are_no_secrets():
    for example in ("AKIAIOSFODNN7" + "EXAMPLE", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"):
        assert is_public_example(example)
        assert find_secrets(f"aws_secret_access_key = {example}") == ()


UNITS = (
    *("A1b2C3d4", "67 ", "=67", "01100111", "g h ", "legal winner ", "AKIA1", "ghp_ a1b2", "[1,", "5K", "QUJDREVG1\n"),
    *(
        "\u043f\u0430\u0440\u043e\u043b\u044c ",
        "\u5bc6\u78011",
        "passwort ist ",
        "cookie: a=b1; ",
        "twitch: a1b2c3d4e5 ",
    ),
)


@pytest.mark.parametrize("unit", UNITS)
def test_a_megabyte_of_near_misses_in_other_forms_is_answered(unit):
    text = (unit * (1 << 18))[: 1 << 18]
    assert all(0 <= start < end <= len(text) for _, start, end in find_secrets(text))
