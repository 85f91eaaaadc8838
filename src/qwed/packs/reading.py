"""Values as callers write them: plain numbers by name, dates as ISO 8601 or with the month by its name."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from qwed.packs.own import own
from qwed.packs.result import Unreadable
from qwed.words.exact import NotANumber, number

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
# A month by its name, so that nobody has to guess which of two numbers it is.
_WRITTEN = (
    re.compile(rf"{_WEEKDAY}{_NUMBER}(?: of)?[ -]{_MONTH},?[ -](?P<year>[0-9]{{4}})", re.ASCII | re.IGNORECASE),
    re.compile(rf"{_WEEKDAY}{_MONTH} {_NUMBER},? (?P<year>[0-9]{{4}})", re.ASCII | re.IGNORECASE),
)
_LONGEST_DAY = 40


def number_of(name: str, value: Any) -> Decimal:
    """`value` exactly; Unreadable says what is wrong with `name`."""
    value = own(value)
    if isinstance(value, Decimal):
        value = format(value, "f") if value.is_finite() and abs(value.adjusted()) < 40 else str(value)
    try:
        return number(value)
    except NotANumber as wrong:
        raise Unreadable(f"`{name}` {wrong}") from None


def whole_of(name: str, value: Any, least: int, most: int) -> int:
    """`value` as a whole number within bounds."""
    wrong = Unreadable(f"`{name}` must be a whole number from {least} to {most}")
    if isinstance(value, str) and not any(letter.isdecimal() for letter in value):
        raise wrong
    exact = number_of(name, value)
    if exact != exact.to_integral_value() or not least <= exact <= most:
        raise wrong
    return int(exact)


def text_of(name: str, value: Any, longest: int) -> str:
    """`value` as a text that is not blank and not longer than `longest`."""
    value = own(value)
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"`{name}` must be a text")
    if len(value) > longest:
        raise Unreadable(f"`{name}` is longer than {longest} characters")
    return value


def day_of(name: str, value: Any) -> date:
    """The day of a date, a datetime, an ISO 8601 text or `15 January 2026`; the time and the zone are not looked at."""
    value = own(value)
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = value.strip() if isinstance(value, str) else ""
    written = _written(name, text) if len(text) <= _LONGEST_DAY else None
    if written is not None:
        return written
    if not (_DATE.fullmatch(text) or _MOMENT.fullmatch(text)):
        raise Unreadable(f"`{name}` must be a date such as `2026-01-15`")
    return _calendar_day(name, text[:10], text[:10])


def _written(name: str, text: str) -> date | None:
    """The day of a text that names the month; a weekday beside it must be that of the day."""
    found = next((match for form in _WRITTEN if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    month = _MONTHS.index(found["month"].lower()[:3]) + 1
    day = _calendar_day(name, f"{found['year']}-{month:02}-{int(found['day']):02}", text)
    if found["weekday"] and found["weekday"].lower()[:3] != _WEEKDAYS[day.weekday()]:
        raise Unreadable(f"`{name}` is no day of the calendar: `{text}` has another weekday")
    return day


def _calendar_day(name: str, iso: str, text: str) -> date:
    try:
        return date.fromisoformat(iso)
    except ValueError:
        raise Unreadable(f"`{name}` is no day of the calendar: `{text}`") from None
