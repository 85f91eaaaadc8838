"""A name compared with a number, decided here: which claims leave no value for a name.

The logic engine says the same of plain names and numbers. Of names such as `cpu.load`, and of numbers in a unit, it
reads nothing; numbers in two units are never held against each other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from qwed.words.currency import CURRENCIES
from qwed_a2a.guards._logic.propositions import Proposition, names_apart

# ruff: noqa: RUF001  # the signs are the notation
_OPERATORS = {
    **dict.fromkeys(("<", "≱"), "<"),
    **dict.fromkeys((">", "≰"), ">"),
    **dict.fromkeys(("<=", "≤", "⩽", "≯", "=<"), "<="),
    **dict.fromkeys((">=", "≥", "⩾", "≮"), ">="),
    **dict.fromkeys(("=", "=="), "="),
    **dict.fromkeys(("!=", "≠", "<>"), "!="),
}
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "!=", "!=": "="}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_OPERATOR = "|".join(sorted(map(re.escape, _OPERATORS), key=len, reverse=True))
_NAME = r"(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)"
_NUMBER = r"(?P<minus>[-−]?)\s*(?P<sign>[$€£¥₹]?)(?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)"
_UNIT = r"(?:\s*(?P<unit>%|[°µ]?[A-Za-z]{1,8}(?:/[a-z]{1,3})?))?"
_UNITS = frozenset(
    {*CURRENCIES, "", "%", "ns", "us", "µs", "ms", "sec", "secs", "second", "seconds", "min", "mins", "minutes", "hour"}
    | {"hours", "day", "days", "weeks", "months", "years", "bytes", "bits", "kb", "KB", "MB", "GB", "TB", "KiB", "MiB"}
    | {"GiB", "TiB", "mm", "cm", "km", "mg", "kg", "lbs", "°C", "°F", "Hz", "kHz", "MHz", "GHz", "kW", "MW", "kWh"}
    | {"req/s", "rps", "qps", "users", "items", "requests", "errors", "points", "px"}
)
"""A letter behind a number may as well be a name it is multiplied with: `x = 2y` and `x = 3y` agree where y is 0."""
_FORWARD = re.compile(rf"{_NAME}\s*(?P<operator>{_OPERATOR})\s*{_NUMBER}{_UNIT}")
_BACKWARD = re.compile(rf"{_NUMBER}{_UNIT}\s*(?P<operator>{_OPERATOR})\s*{_NAME}")
_RESERVED = frozenset(
    ("and", "or", "xor", "iff", "implies", "not", "if", "then", "mod", "in", "v", "true", "false", "forall", "exists")
)


class Comparison(NamedTuple):
    """What a claim says of one name."""

    number: int
    """Of the claim."""
    about: tuple[str, str]
    """The name, and the unit of its number."""
    operator: str
    value: Decimal

    @property
    def is_plain(self) -> bool:
        """Whether the logic engine reads it too."""
        name, unit = self.about
        return not unit and "." not in name


class Bound(NamedTuple):
    """The end of what is left for a name, and the claim that says so."""

    value: Decimal
    open: bool
    number: int


def comparisons_of(propositions: Sequence[Proposition]) -> dict[int, Comparison]:
    """The comparisons among the claims, by the number of the claim."""
    apart: set[str] = set().union(*(names_apart(each.text) for each in propositions))
    found = (_comparison(number, each, apart) for number, each in enumerate(propositions))
    return {each.number: each for each in found if each is not None}


def _comparison(number: int, said: Proposition, apart: set[str]) -> Comparison | None:
    forward = _FORWARD.fullmatch(said.core)
    found = forward or _BACKWARD.fullmatch(said.core)
    if found is None or found["name"].casefold() in _RESERVED or (found["unit"] or "") not in _UNITS:
        return None
    name = found["name"] if found["name"].casefold() in apart else found["name"].casefold()
    operator = _OPERATORS[found["operator"]]
    operator = operator if forward else _TURNED[operator]
    value = Decimal(("-" if found["minus"] else "") + found["number"])
    unit = f"{found['sign']}{found['unit'] or ''}"
    return Comparison(number, (name, unit), _OPPOSITE[operator] if said.negative else operator, value)


def left_open(said: Sequence[Proposition], comparisons: Mapping[int, Comparison]) -> int:
    """How many comparisons are about a name that others speak of in another unit, or in words not read here."""
    elsewhere = [each.text.casefold() for number, each in enumerate(said) if number not in comparisons]
    units = {each.about for each in comparisons.values()}
    return sum(
        not each.is_plain and (_times(each.about[0], units) > 1 or any(each.about[0] in text for text in elsewhere))
        for each in comparisons.values()
    )


def _times(name: str, about: Iterable[tuple[str, str]]) -> int:
    return sum(each == name for each, _ in about)


def contradiction_in(comparisons: Iterable[Comparison]) -> tuple[int, ...] | None:
    """The claims that leave no value for a name, or None where each name has one left."""
    names: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        names.setdefault(each.about, []).append(each)
    return next(filter(None, map(_without_value, names.values())), None)


def _without_value(comparisons: Sequence[Comparison]) -> tuple[int, ...] | None:
    lows = [Bound(each.value, each.operator == ">", each.number) for each in comparisons if each.operator in _LOW]
    highs = [Bound(each.value, each.operator == "<", each.number) for each in comparisons if each.operator in _HIGH]
    if not lows or not highs:
        return None
    low = max(lows, key=lambda bound: (bound.value, bound.open))
    high = min(highs, key=lambda bound: (bound.value, not bound.open))
    if low.value > high.value or (low.value == high.value and (low.open or high.open)):
        return _numbers(low.number, high.number)
    # One value is left: whoever rules that out leaves none.
    ruled = [each.number for each in comparisons if each.operator == "!=" and each.value == low.value == high.value]
    return _numbers(low.number, high.number, ruled[0]) if ruled else None


def _numbers(*numbers: int) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))


_LOW, _HIGH = frozenset({">", ">=", "="}), frozenset({"<", "<=", "="})
