"""Counts as contracts write them: `30`, `1,000`, `thirty`, `one hundred and eighty`, `a`, `10th`, `tenth`."""

import re
from collections.abc import Callable

Reader = Callable[[tuple[str, ...]], tuple[int, int] | None]

MOST = 36_500
"""A hundred years of days: no count of a term is larger."""
MOST_MONTHS = 1_200

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
_BY_TEN = {word: 20 + 10 * place for place, word in enumerate(_TENS.split())} | {"fourty": 40}
_ORDINAL_UNITS = {word: value for value, word in enumerate(_ORDINALS.split())}
_ORDINAL_TENS = {word: 20 + 10 * place for place, word in enumerate(_TENTHS.split())}
_DIGITS = re.compile(r"[0-9]{1,6}|[0-9]{1,3}(?:,[0-9]{3})")
_ORDINAL_DIGITS = re.compile(r"([0-9]{1,3})(st|nd|rd|th)")

COUNTS = frozenset({*_UNITS, *_BY_TEN, "hundred", "thousand", "a", "an"})
"""Every word that may be part of a count."""


def digits(word: str) -> int | None:
    """The value of a number in digits."""
    return int(word.replace(",", "")) if _DIGITS.fullmatch(word) else None


def spelled(words: tuple[str, ...]) -> tuple[int, int] | None:
    """The number that the first words spell and how many words that takes."""
    if words[:1] in (("a",), ("an",)):
        more = words[1:2] in (("hundred",), ("thousand",))
        return _scaled(("one", *words[1:])) if more else (1, 1)
    return _scaled(words)


def ordinal(words: tuple[str, ...]) -> tuple[int, int] | None:
    """The place that the first words name (`10th`, `tenth`, `twenty first`) and how many words that takes."""
    first, second = (*words[:2], "", "")[:2]
    written = _ORDINAL_DIGITS.fullmatch(first)
    if written:
        return (int(written[1]), 1) if written[2] == _ending(int(written[1])) else None
    if first in _BY_TEN and 1 <= _ORDINAL_UNITS.get(second, 0) <= 9:
        return _BY_TEN[first] + _ORDINAL_UNITS[second], 2
    value = _ORDINAL_UNITS.get(first) or _ORDINAL_TENS.get(first)
    return None if value is None else (value, 1)


def _ending(value: int) -> str:
    return "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def _scaled(words: tuple[str, ...]) -> tuple[int, int] | None:
    head = _hundreds(words)
    if head is None or words[head[1] : head[1] + 1] != ("thousand",):
        return head
    value, used = head[0] * 1000, head[1] + 1
    rest = _after_and(words, used, _hundreds)
    return (value, used) if rest is None or not head[0] else (value + rest[0], rest[1])


def _hundreds(words: tuple[str, ...]) -> tuple[int, int] | None:
    head = _below_hundred(words)
    if head is None or not 1 <= head[0] <= 99 or words[head[1] : head[1] + 1] != ("hundred",):
        return head
    value, used = head[0] * 100, head[1] + 1
    rest = _after_and(words, used, _below_hundred)
    return (value, used) if rest is None else (value + rest[0], rest[1])


def _after_and(words: tuple[str, ...], used: int, read: Reader) -> tuple[int, int] | None:
    """What follows, with or without `and`: its value, and the place where it ends."""
    start = used + (words[used : used + 1] == ("and",))
    rest = read(words[start:])
    return None if rest is None or not rest[0] else (rest[0], start + rest[1])


def _below_hundred(words: tuple[str, ...]) -> tuple[int, int] | None:
    first, second = (*words[:2], "", "")[:2]
    if first in _UNITS:
        return _UNITS[first], 1
    if first not in _BY_TEN:
        return None
    unit = _UNITS.get(second, 0)
    return (_BY_TEN[first] + unit, 2) if 1 <= unit <= 9 else (_BY_TEN[first], 1)
