"""Numbers that are personal because of their label: identities, passports, phone numbers, dates of birth."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._pii import check_digits
from qwed.guards.text_scan import UNSCANNED, TextFinding
from qwed.model.data_files import read_rows

MAX_CANDIDATES = 2_000
"""Candidates of one kind that are checked in one text; after that the rest is reported as unscanned."""
MAX_WORDS = 20_000
"""Labels in one text after which a number is searched for."""

_GAP = (
    r"[^\w\n]{0,8}(?:(?:no|nr|num|number|numero|n\u00famero|nummer|num\u00e9ro|id|code|card|is|was|are|my|his|her|the|of|on|at|le|am"
    r"|me|us|holder|line|phone|office|home|work|or|ein)\b[^\w\n]{0,6}){0,4}"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE = (
    r"(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH},? (?:19|20)\d\d|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? (?:19|20)\d\d)"
)
_SEPARATED = str.maketrans("", "", " -./()\u00a0")


class _LabelledNumber(NamedTuple):
    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool]


def _labelled(kind: str, words: str, check: str, form: str) -> _LabelledNumber:
    least, _, most = form.partition("-")
    if least.isdecimal():
        form = rf"\d(?:[ ./-]{{0,1}}\d){{{int(least) - 1},{int(most or least) - 1}}}(?![\w-])"
    pattern = re.compile(f"{_GAP}({form.replace('{DATE}', _DATE)})")
    return _LabelledNumber(kind, tuple(words.split("|")), pattern, _CHECKS.get(check) or getattr(check_digits, check))


def _has_digits(value: str) -> bool:
    return sum(map(str.isdigit, value)) >= 4


def _sin(digits: str) -> bool:
    return len(digits) == 9 and digits[0] != "8" and check_digits.luhn(digits)


def _personnummer(digits: str) -> bool:
    return check_digits.luhn(digits[-10:])


_CHECKS: dict[str, Callable[[str], bool]] = {
    "-": lambda _value: True,
    "has_digits": _has_digits,
    "sin": _sin,
    "personnummer": _personnummer,
}
"""Checks of the table that are not functions of `check_digits`."""
_TABLE = tuple(_labelled(*row) for row in read_rows(__file__, "labelled_numbers.txt", 4))
_NUMBERS = re.compile(r"\d\d+")
_LONGEST_CONTEXT = 80
_BY_WORD: dict[str, tuple[_LabelledNumber, ...]] = {
    word: tuple(row for row in _TABLE if word in row.words) for row in _TABLE for word in row.words
}


def find_labelled_numbers(lowered: str) -> Iterator[TextFinding]:
    """Yield every number that the label before it makes personal."""
    tried = 0
    # Only the text before each number is searched for labels: it is a small part of the whole.
    before = "\n".join({part[-_LONGEST_CONTEXT:] for part in _NUMBERS.split(lowered)[:-1] if len(part) > 2})
    for label_text in [label for label in _BY_WORD if label in before]:
        position = lowered.find(label_text)
        while position >= 0:
            tried += 1
            if tried > MAX_WORDS:
                yield TextFinding(UNSCANNED, position, len(lowered))
                return
            end = position + len(label_text)
            if not (lowered[position - 1 : position].isalnum() or lowered[end : end + 1].isalpha()):
                yield from _numbers_after(_BY_WORD[label_text], lowered, end)
            position = lowered.find(label_text, end)


def _numbers_after(rows: tuple[_LabelledNumber, ...], lowered: str, end: int) -> Iterator[TextFinding]:
    for row in rows:
        match = row.pattern.match(lowered, end)
        if match and row.check(match[1].translate(_SEPARATED)):
            yield TextFinding(row.kind, *match.span(1))
            return
