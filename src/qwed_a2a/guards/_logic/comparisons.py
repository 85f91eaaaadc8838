"""Decision procedure for comparisons of a name with a number: finds claims that leave no value for a name.

The logic engine decides the same for plain names and numbers. It does not read names such as `cpu.load` or numbers with
a unit; numbers in different units are never compared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from qwed.model.currency import CURRENCIES
from qwed_a2a.guards._logic.propositions import Proposition, case_sensitive_names

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
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
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
"""A single letter is not a unit, because it may be a factor: `x = 2y` and `x = 3y` agree if y is 0."""
_FORWARD = re.compile(rf"{_NAME}\s*(?P<operator>{_OPERATOR})\s*{_NUMBER}{_UNIT}")
_BACKWARD = re.compile(rf"{_NUMBER}{_UNIT}\s*(?P<operator>{_OPERATOR})\s*{_NAME}")
_RESERVED = frozenset(
    ("and", "or", "xor", "iff", "implies", "not", "if", "then", "mod", "in", "v", "true", "false", "forall", "exists")
)


class Comparison(NamedTuple):
    """Comparison of one name with a number."""

    number: int
    """Index of the claim."""
    about: tuple[str, str]
    """The name, and the unit of its number."""
    operator: str
    value: Decimal

    @property
    def is_plain(self) -> bool:
        """True if the logic engine reads it too."""
        name, unit = self.about
        return not unit and "." not in name


class NumericBound(NamedTuple):
    """End of the range of a name, and the claim that sets it."""

    value: Decimal
    open: bool
    number: int


def parse_comparisons(propositions: Sequence[Proposition]) -> dict[int, Comparison]:
    """Return the comparisons among the claims by the index of the claim."""
    case_sensitive: set[str] = set().union(*(case_sensitive_names(item.text) for item in propositions))
    comparisons = (_parse_comparison(number, item, case_sensitive) for number, item in enumerate(propositions))
    return {item.number: item for item in comparisons if item is not None}


def _parse_comparison(number: int, proposition: Proposition, case_sensitive: set[str]) -> Comparison | None:
    forward = _FORWARD.fullmatch(proposition.core)
    match = forward or _BACKWARD.fullmatch(proposition.core)
    if match is None or match["name"].casefold() in _RESERVED or (match["unit"] or "") not in _UNITS:
        return None
    name = match["name"] if match["name"].casefold() in case_sensitive else match["name"].casefold()
    operator = _OPERATORS[match["operator"]]
    operator = operator if forward else _MIRRORED[operator]
    value = Decimal(("-" if match["minus"] else "") + match["number"])
    unit = f"{match['sign']}{match['unit'] or ''}"
    return Comparison(number, (name, unit), _OPPOSITE[operator] if proposition.negative else operator, value)


def count_undecided(propositions: Sequence[Proposition], comparisons: Mapping[int, Comparison]) -> int:
    """Return the number of comparisons whose name also appears with another unit or in an unparsed claim."""
    elsewhere = [item.text.casefold() for number, item in enumerate(propositions) if number not in comparisons]
    units = {item.about for item in comparisons.values()}
    return sum(
        not item.is_plain
        and (_count_name(item.about[0], units) > 1 or any(item.about[0] in text for text in elsewhere))
        for item in comparisons.values()
    )


def _count_name(name: str, about: Iterable[tuple[str, str]]) -> int:
    return sum(other == name for other, _ in about)


def find_contradiction(comparisons: Iterable[Comparison]) -> tuple[int, ...] | None:
    """Return the claims that leave no value for a name, or None."""
    names: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        names.setdefault(comparison.about, []).append(comparison)
    return next(filter(None, map(_contradicting_claims, names.values())), None)


def _contradicting_claims(comparisons: Sequence[Comparison]) -> tuple[int, ...] | None:
    lows = [
        NumericBound(comparison.value, comparison.operator == ">", comparison.number)
        for comparison in comparisons
        if comparison.operator in _LOW
    ]
    highs = [
        NumericBound(comparison.value, comparison.operator == "<", comparison.number)
        for comparison in comparisons
        if comparison.operator in _HIGH
    ]
    if not lows or not highs:
        return None
    low = max(lows, key=lambda bound: (bound.value, bound.open))
    high = min(highs, key=lambda bound: (bound.value, not bound.open))
    if low.value > high.value or (low.value == high.value and (low.open or high.open)):
        return _sorted_numbers(low.number, high.number)
    # One value is left: a claim that excludes it leaves none.
    excluded = [
        comparison.number
        for comparison in comparisons
        if comparison.operator == "!=" and comparison.value == low.value == high.value
    ]
    return _sorted_numbers(low.number, high.number, excluded[0]) if excluded else None


def _sorted_numbers(*numbers: int) -> tuple[int, ...]:
    return tuple(sorted(set(numbers)))


_LOW, _HIGH = frozenset({">", ">=", "="}), frozenset({"<", "<=", "="})
