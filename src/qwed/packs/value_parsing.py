"""Parsers of argument values: numbers, texts, and dates as ISO 8601 or with the month by name."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from qwed.model.decimals import NumberFormatError, parse_number
from qwed.packs.result import UnreadableInputError
from qwed.packs.unwrap import unwrap

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r"(?: ?(?:Z|[+-](?:0[0-9]|1[0-4]):?[0-5][0-9]))?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_NUMBER = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
# The month by name: a numeric month would be ambiguous.
_WRITTEN = (
    re.compile(rf"{_WEEKDAY}{_NUMBER}(?: of)?[ -]{_MONTH},?[ -](?P<year>[0-9]{{4}})", re.ASCII | re.IGNORECASE),
    re.compile(rf"{_WEEKDAY}{_MONTH} {_NUMBER},? (?P<year>[0-9]{{4}})", re.ASCII | re.IGNORECASE),
)
_LONGEST_DAY = 40


def number_of(name: str, value: Any) -> Decimal:
    """Return `value` exactly; raise UnreadableInputError that names `name`."""
    value = unwrap(value)
    if isinstance(value, Decimal):
        value = format(value, "f") if value.is_finite() and abs(value.adjusted()) < 40 else str(value)
    try:
        return parse_number(value)
    except NumberFormatError as wrong:
        raise UnreadableInputError(f"`{name}` {wrong}") from None


def whole_of(name: str, value: Any, least: int, most: int) -> int:
    """Return `value` as an integer within bounds."""
    wrong = UnreadableInputError(f"`{name}` must be a whole number from {least} to {most}")
    if isinstance(value, str) and not any(letter.isdecimal() for letter in value):
        raise wrong
    exact = number_of(name, value)
    if exact != exact.to_integral_value() or not least <= exact <= most:
        raise wrong
    return int(exact)


def text_of(name: str, value: Any, longest: int) -> str:
    """Return `value` if it is a non-blank text of at most `longest` characters."""
    value = unwrap(value)
    if not isinstance(value, str) or not value.strip():
        raise UnreadableInputError(f"`{name}` must be a text")
    if len(value) > longest:
        raise UnreadableInputError(f"`{name}` is longer than {longest} characters")
    return value


def day_of(name: str, value: Any) -> date:
    """Return the day of a date, a datetime, an ISO 8601 text or `15 January 2026`; time and zone are ignored."""
    value = unwrap(value)
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = value.strip() if isinstance(value, str) else ""
    named = _parse_named_month(name, text) if len(text) <= _LONGEST_DAY else None
    if named is not None:
        return named
    if not (_DATE.fullmatch(text) or _MOMENT.fullmatch(text)):
        raise UnreadableInputError(f"`{name}` must be a date such as `2026-01-15`")
    return _calendar_day(name, text[:10], text[:10])


def _parse_named_month(name: str, text: str) -> date | None:
    """Return the day of a text that names the month; a weekday in it must match."""
    parsed = next((candidate for form in _WRITTEN if (candidate := form.fullmatch(text))), None)
    if parsed is None:
        return None
    month = _MONTHS.index(parsed["month"].lower()[:3]) + 1
    day = _calendar_day(name, f"{parsed['year']}-{month:02}-{int(parsed['day']):02}", text)
    if parsed["weekday"] and parsed["weekday"].lower()[:3] != _WEEKDAYS[day.weekday()]:
        raise UnreadableInputError(f"`{name}` is not a calendar day: `{text}` has another weekday")
    return day


def _calendar_day(name: str, iso: str, text: str) -> date:
    try:
        return date.fromisoformat(iso)
    except ValueError:
        raise UnreadableInputError(f"`{name}` is not a calendar day: `{text}`") from None
