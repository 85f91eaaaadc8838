"""Parser of counts in contracts: `30`, `1,000`, `thirty`, `one hundred and eighty`, `a`, `10th`, `tenth`."""

import re
from collections.abc import Callable

NumberReader = Callable[[tuple[str, ...]], tuple[int, int] | None]

MAX_COUNT = 36_500
"""Largest count in a term: a hundred years of days."""
MAX_MONTHS = 1_200

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TENTHS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"

_UNITS = {word: value for value, word in enumerate(_SMALL.split())}
_BY_TEN = {word: 20 + 10 * index for index, word in enumerate(_TENS.split())} | {"fourty": 40}
_ORDINAL_UNITS = {word: value for value, word in enumerate(_ORDINALS.split())}
_ORDINAL_TENS = {word: 20 + 10 * index for index, word in enumerate(_TENTHS.split())}
_DIGITS = re.compile(r"[0-9]{1,6}|[0-9]{1,3}(?:,[0-9]{3})")
_ORDINAL_DIGITS = re.compile(r"([0-9]{1,3})(st|nd|rd|th)")

COUNT_WORDS = frozenset({*_UNITS, *_BY_TEN, "hundred", "thousand", "a", "an"})
"""Words that may be part of a count."""


def parse_digits(word: str) -> int | None:
    """Return the value of a number in digits, or None."""
    return int(word.replace(",", "")) if _DIGITS.fullmatch(word) else None


def parse_spelled(words: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the number that the first words spell and how many words it takes, or None."""
    if words[:1] in (("a",), ("an",)):
        more = words[1:2] in (("hundred",), ("thousand",))
        return _parse_thousands(("one", *words[1:])) if more else (1, 1)
    return _parse_thousands(words)


def parse_ordinal(words: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the ordinal that the first words name (`10th`, `tenth`, `twenty first`) and how many words it takes."""
    first, second = (*words[:2], "", "")[:2]
    written = _ORDINAL_DIGITS.fullmatch(first)
    if written:
        return (int(written[1]), 1) if written[2] == _ordinal_suffix(int(written[1])) else None
    if first in _BY_TEN and 1 <= _ORDINAL_UNITS.get(second, 0) <= 9:
        return _BY_TEN[first] + _ORDINAL_UNITS[second], 2
    value = _ORDINAL_UNITS.get(first) or _ORDINAL_TENS.get(first)
    return None if value is None else (value, 1)


def _ordinal_suffix(value: int) -> str:
    return "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def _parse_thousands(words: tuple[str, ...]) -> tuple[int, int] | None:
    head = _parse_hundreds(words)
    if head is None or words[head[1] : head[1] + 1] != ("thousand",):
        return head
    value, used = head[0] * 1000, head[1] + 1
    rest = _parse_after_and(words, used, _parse_hundreds)
    return (value, used) if rest is None or not head[0] else (value + rest[0], rest[1])


def _parse_hundreds(words: tuple[str, ...]) -> tuple[int, int] | None:
    head = _parse_below_hundred(words)
    if head is None or not 1 <= head[0] <= 99 or words[head[1] : head[1] + 1] != ("hundred",):
        return head
    value, used = head[0] * 100, head[1] + 1
    rest = _parse_after_and(words, used, _parse_below_hundred)
    return (value, used) if rest is None else (value + rest[0], rest[1])


def _parse_after_and(words: tuple[str, ...], used: int, read: NumberReader) -> tuple[int, int] | None:
    """Parse what follows, with or without `and`; return its value and its end."""
    start = used + (words[used : used + 1] == ("and",))
    rest = read(words[start:])
    return None if rest is None or not rest[0] else (rest[0], start + rest[1])


def _parse_below_hundred(words: tuple[str, ...]) -> tuple[int, int] | None:
    first, second = (*words[:2], "", "")[:2]
    if first in _UNITS:
        return _UNITS[first], 1
    if first not in _BY_TEN:
        return None
    unit = _UNITS.get(second, 0)
    return (_BY_TEN[first] + unit, 2) if 1 <= unit <= 9 else (_BY_TEN[first], 1)
