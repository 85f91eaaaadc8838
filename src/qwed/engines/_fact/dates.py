"""Dates of the fact engine: as spans of days, or as a recurring part of a date."""

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from qwed.engines._fact.numbers import APART, SAME, UNSURE, ordinal_of
from qwed.engines._fact.text import FactToken

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: number + 1 for number, name in enumerate(_MONTH_NAMES.split())}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()}
_MONTHS["sept"] = 9
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAY_NAMES.split())}
_WEEKDAYS |= {f"{name}s": number for name, number in _WEEKDAYS.items()}
_QUARTERS = {"q1": 1, "q2": 2, "q3": 3, "q4": 4}
_PLAIN = ("in", "on", "at", "during", "of")
_LIMITING = ("since", "until", "by", "before", "after", "from", "through", "early", "late")
_AFTER_YEARS = frozenset(
    {"by", "in", "on", "at", "and", "to", "for", "from", "with", "after", "before", "as", "but", "while", "when"}
    | {"the", "a", "an", "until", "or", "is", "was", "were"}
)


class DateSlot(NamedTuple):
    """A date as a span of days, or a recurring part (`every` is its kind), with its preposition."""

    low: int
    high: int
    every: str = ""
    preposition: str = ""


class ParsedDate(NamedTuple):
    """A date and the tokens it took."""

    slot: DateSlot
    taken: int


def date_at(tokens: Sequence[FactToken], at: int) -> ParsedDate | None:
    """Parse the date that starts here, including its preposition."""
    start = at
    preposition = ""
    if at + 1 < len(tokens) and tokens[at].text in _PLAIN + _LIMITING:
        preposition, at = tokens[at].text, at + 1
        at += tokens[at].text == "the" and at + 1 < len(tokens)
        at += tokens[at].text == "year" and at + 1 < len(tokens)
    for read in (_full, _quarter, _century, _year, _weekday):
        span = read(tokens, at, preposition)
        if span is not None:
            low, high, every, end = span
            return ParsedDate(DateSlot(low, high, every, "" if preposition in _PLAIN else preposition), end - start)
    return None


_Found = tuple[int, int, str, int]


def _number_at(tokens: Sequence[FactToken], at: int, digits: int) -> int | None:
    if (
        at < len(tokens)
        and tokens[at].kind == "number"
        and tokens[at].text.isdecimal()
        and len(tokens[at].text) <= digits
    ):
        return int(tokens[at].text)
    if digits == 2 and at < len(tokens) and tokens[at].kind == "ordinal":
        return int(tokens[at].text[:-2])
    return None


def _year_at(tokens: Sequence[FactToken], at: int) -> tuple[int | None, int]:
    at += at < len(tokens) and tokens[at].text in (",", "of")
    year = _number_at(tokens, at, 4)
    return (year, at + 1) if year is not None and len(tokens[at].text) == 4 and 1000 <= year <= 2200 else (None, at)


def _full(tokens: Sequence[FactToken], at: int, _preposition: str) -> _Found | None:
    """Parse `2020-03-05`, `5 March 2020`, `March 5, 2020`, `March 2020`, `5 March` or `March`."""
    if tokens[at].kind == "iso":
        iso = [int(part) for part in tokens[at].text.split("-")]
        return _days(iso[0], iso[1], iso[2], at + 1)
    day = _number_at(tokens, at, 2)
    middle = at + (day is not None)
    middle += middle < len(tokens) and day is not None and tokens[middle].text == "of"
    month = _MONTHS.get(tokens[middle].text.rstrip(".")) if middle < len(tokens) and tokens[middle].capital else None
    if month is None:
        return None
    end = middle + 1
    end += end < len(tokens) and tokens[end].text == "." and len(tokens[middle].text) <= 4 and end + 1 < len(tokens)
    if day is None:
        day = _number_at(tokens, end, 2)
        end += day is not None
    year, after = _year_at(tokens, end)
    if year is not None:
        return _days(year, month, day, after) if day is not None else _month(year, month, after)
    if day is not None:
        return month * 100 + day, month * 100 + day, "day", end
    return month, month, "month", end


def _days(year: int, month: int, day: int | None, end: int) -> _Found | None:
    try:
        ordinal = datetime.date(year, month, day or 1).toordinal()
    except ValueError:
        return None
    return ordinal, ordinal, "", end


def _month(year: int, month: int, end: int) -> _Found:
    first = datetime.date(year, month, 1).toordinal()
    return first, _next_month(year, month) - 1, "", end


def _next_month(year: int, month: int) -> int:
    return datetime.date(year + month // 12, month % 12 + 1, 1).toordinal()


def _quarter(tokens: Sequence[FactToken], at: int, _preposition: str) -> _Found | None:
    words = [token.text for token in tokens[at : at + 2]] + ["", ""]
    quarter = _QUARTERS.get(words[0])
    end = at + 1
    if quarter is None and words[1] == "quarter":
        number = ordinal_of(tokens[at])
        quarter, end = number if number in (1, 2, 3, 4) else None, at + 2
    if words[0] == "q" and words[1] in ("1", "2", "3", "4"):
        quarter, end = int(words[1]), at + 2
    if quarter is None:
        return None
    year, after = _year_at(tokens, end)
    if year is None:
        return quarter, quarter, "quarter", end
    low = datetime.date(year, 3 * quarter - 2, 1).toordinal()
    return low, _month(year, 3 * quarter, 0)[1], "", after


def _century(tokens: Sequence[FactToken], at: int, _preposition: str) -> _Found | None:
    if tokens[at].kind == "decade":
        year = int(tokens[at].text[:4])
        return _years(year, year + 9, at + 1) if year % 10 == 0 and 1000 <= year <= 2200 else None
    number = ordinal_of(tokens[at])
    if number and 10 < number < 22 and at + 1 < len(tokens) and tokens[at + 1].text == "century":
        return _years(100 * number - 99, 100 * number, at + 2)
    return None


def _years(first: int, last: int, end: int) -> _Found:
    return datetime.date(first, 1, 1).toordinal(), datetime.date(last, 12, 31).toordinal(), "", end


def _year(tokens: Sequence[FactToken], at: int, preposition: str) -> _Found | None:
    year = _number_at(tokens, at, 4)
    if year is None or not preposition or len(tokens[at].text) != 4 or not 1000 <= year <= 2200:
        return None
    follows = tokens[at + 1] if at + 1 < len(tokens) else None
    # `in 2000 cities` is not a year: a counted noun follows.
    if follows is not None and follows.kind == "word" and follows.text not in _AFTER_YEARS:
        return None
    return _years(year, year, at + 1)


def _weekday(tokens: Sequence[FactToken], at: int, _preposition: str) -> _Found | None:
    number = _WEEKDAYS.get(tokens[at].text)
    if number is None:
        return None
    return number, number, "weekdays" if tokens[at].text.endswith("s") else "weekday", at + 1


def compare_dates(evidence: DateSlot, claim: DateSlot) -> str:
    """Compare the evidence's date with the claim's: SAME if within, APART, or UNSURE."""
    if evidence.every or claim.every:
        same_kind = evidence.every == claim.every and evidence.preposition == claim.preposition
        return (SAME if evidence[:2] == claim[:2] else APART) if same_kind else UNSURE
    if evidence == claim:
        return SAME
    if evidence.preposition:
        return UNSURE
    return _COMPARISONS.get(claim.preposition, _unsure)(evidence, claim)


def _unsure(_evidence: DateSlot, _claim: DateSlot) -> str:
    return UNSURE


def _within(evidence: DateSlot, claim: DateSlot) -> str:
    if evidence.low > claim.high or claim.low > evidence.high:
        return APART
    return SAME if claim.low <= evidence.low and evidence.high <= claim.high else UNSURE


def _after(evidence: DateSlot, claim: DateSlot) -> str:
    if evidence.low > claim.high:
        return SAME
    return APART if evidence.high < claim.low else UNSURE


def _before(evidence: DateSlot, claim: DateSlot) -> str:
    if evidence.high < claim.low:
        return SAME
    return APART if evidence.low > claim.high else UNSURE


_COMPARISONS = {"": _within, "after": _after, "before": _before}
