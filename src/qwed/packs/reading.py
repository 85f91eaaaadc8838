"""Values as callers write them: plain numbers by name, dates as ISO 8601."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from qwed.packs.result import Unreadable
from qwed.words.exact import NotANumber, number

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})?")


def number_of(name: str, value: Any) -> Decimal:
    """`value` exactly; Unreadable says what is wrong with `name`."""
    if isinstance(value, Decimal):
        value = format(value, "f") if value.is_finite() and abs(value.adjusted()) < 40 else str(value)
    try:
        return number(value)
    except NotANumber as wrong:
        raise Unreadable(f"`{name}` {wrong}") from None


def whole_of(name: str, value: Any, least: int, most: int) -> int:
    """`value` as a whole number within bounds."""
    exact = number_of(name, value)
    if exact != exact.to_integral_value() or not least <= exact <= most:
        raise Unreadable(f"`{name}` must be a whole number from {least} to {most}")
    return int(exact)


def text_of(name: str, value: Any, longest: int) -> str:
    """`value` as a text that is not blank and not longer than `longest`."""
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"`{name}` must be a text")
    if len(value) > longest:
        raise Unreadable(f"`{name}` is longer than {longest} characters")
    return value


def day_of(name: str, value: Any) -> date:
    """The day of a date, a datetime or an ISO 8601 text; the time of day and the zone are not looked at."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not (_DATE.fullmatch(value.strip()) or _MOMENT.fullmatch(value.strip())):
        raise Unreadable(f"`{name}` must be a date such as `2026-01-15`")
    try:
        return date.fromisoformat(value.strip()[:10])
    except ValueError:
        raise Unreadable(f"`{name}` is no day of the calendar: `{value.strip()[:10]}`") from None
