"""A plain text skips the scans, which must change nothing: neither finds a secret or personal data in one."""

import random
import string
from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from qwed.guards import pii, secrets
from qwed.guards._secrets.languages import LANGUAGES
from qwed.guards._secrets.secret_names import STARTS
from qwed.guards._secrets.token_rules import TOKEN_RULES
from qwed.guards.text_scan import is_plain
from tests.support.case_tables import rows

WORD, SUM = string.ascii_lowercase + "_", string.digits + " +*/().^=<>-"
TABLES = ("secrets_attacks", "secrets_honest", "secrets_stated", "pii_attacks", "pii_honest", "tokens", "math_true")
LONGEST = 15
BEGINNINGS = (
    *(anchor for rule in TOKEN_RULES for anchor in rule.anchors),
    *STARTS,
    *LANGUAGES.password,
    *LANGUAGES.key,
    *("ssn", "pan", "dl", "cvc", "tel", "dob", "run", "00", "+1", "-", "(", "=", "192.168."),
)


@pytest.fixture
def full_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    for guard in (secrets, pii):
        monkeypatch.setattr(guard, "is_plain", lambda _text: None)


def found_in_plain(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if is_plain(text) and (secrets.find_secrets(text) or pii.find_pii(text))]


def pieces_of(text: str) -> Iterator[str]:
    for start in range(len(text)):
        yield from (text[start : start + length] for length in (4, 7, 9, 11, 13, LONGEST))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.usefixtures("full_scan")
def test_no_piece_of_a_row_of_the_tables_is_missed(table: str) -> None:
    for row in rows(f"{table}.jsonl"):
        values = [value for value in row.values() if isinstance(value, str | list)]
        text = " ".join(value if isinstance(value, str) else "".join(map(str, value)) for value in values)[:600]
        assert found_in_plain({*text.split(), *pieces_of(text)}) == [], row


@pytest.mark.usefixtures("full_scan")
def test_no_short_text_is_missed() -> None:
    chance = random.Random(23)
    texts = {
        "".join(chance.choices(letters, k=chance.randint(1, LONGEST))) for letters in (WORD, SUM) for _ in range(10_000)
    }
    assert sum(map(bool, map(is_plain, texts))) > 15_000
    assert found_in_plain(texts) == []
    assert found_in_plain("".join(signs) for signs in product("0179 +-.()=/", repeat=4)) == []


@pytest.mark.usefixtures("full_scan")
def test_nothing_that_begins_like_a_secret_or_a_label_is_missed() -> None:
    chance = random.Random(24)
    for beginning in dict.fromkeys(BEGINNINGS):
        room = LONGEST - len(beginning)
        for letters in (WORD, SUM):
            rest = "".join(chance.choices(letters, k=max(0, room)))
            assert found_in_plain((beginning + rest, (rest + beginning)[:LONGEST], beginning)) == [], beginning


@pytest.mark.parametrize(
    "text",
    ["", "calculate", "2+2", "150*0.2 + 20", "(1.5 - 2)^3 = 4", "a_b"],
)
def test_words_and_short_calculations_are_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    ["hunter2", "A", "123-45-678 9", "12345678", "a b", "2%2", "\\x41", "&#65", "a@b", "1:2", "a" * 16, "+" * 16, "\n"],
)
def test_everything_else_is_scanned(text: str) -> None:
    assert not is_plain(text)
