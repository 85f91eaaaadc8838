"""The simple types of ISO 20022: what a value may look like. Each check says what is wrong, or nothing."""

import re
from collections.abc import Callable
from datetime import date

Check = Callable[[str], str]
"""Of a value, what is wrong with it in words that follow its name; empty where nothing is."""

_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}){_ZONE}")
_TIME = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,12})?|24:00:00(?:\.0{1,12})?)"
_MOMENT = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})T{_TIME}{_ZONE}")
_DAYTIME = re.compile(_TIME + _ZONE)
_PERIOD = re.compile(r"[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*+={0,2}\s*+")
_DECIMAL = re.compile(r"(-?)0*+([0-9]{0,40})(?:\.([0-9]{1,40}))?")
_DECIMAL_TYPE = re.compile(r"decimal([0-9]+)\.([0-9]+)(\+?)")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def checker(token: str, patterns: dict[str, str]) -> Check:
    """The check that a token of the tables stands for: `1..35`, `decimal18.5+`, `date`, the name of a pattern."""
    if token in _FIXED:
        return _FIXED[token]
    if token in patterns:
        return _pattern(patterns[token])
    found = _DECIMAL_TYPE.fullmatch(token)
    if found:
        return _decimal(int(found[1]), int(found[2]), bool(found[3]))
    least, _, most = token.partition("..")
    return _text(int(least), int(most) if most else None)


def codes(listed: frozenset[str]) -> Check:
    """The check of a closed list of codes."""

    def check(value: str) -> str:
        return "" if value in listed else f"must be one of {', '.join(sorted(listed))}"

    return check


def _text(least: int, most: int | None) -> Check:
    def check(value: str) -> str:
        if _CONTROLS.search(value):
            return "has characters in it that no XML may hold"
        if len(value) < least:
            return f"must have at least {least} character{'s' * (least > 1)}"
        return "" if most is None or len(value) <= most else f"has {len(value)} characters, {most} are allowed"

    return check


def _pattern(pattern: str) -> Check:
    form, _, bounds = pattern.partition(" ")
    compiled = re.compile(form, re.ASCII)
    length = _text(*_bounds(bounds))

    def check(value: str) -> str:
        # A pattern without an upper bound is of texts whose length is bounded besides.
        return length(value) or ("" if compiled.fullmatch(value) else f"does not have the form `{form}`")

    return check


def _bounds(bounds: str) -> tuple[int, int | None]:
    least, _, most = bounds.partition("..")
    return int(least or 0), int(most) if most else None


def _decimal(total: int, fraction: int, not_negative: bool) -> Check:
    def check(value: str) -> str:
        found = _DECIMAL.fullmatch(value)
        if found is None or not (found[2] or "0" in value.partition(".")[0]):
            return "must be a plain decimal number such as `1234.50`"
        whole, rest = found[2], (found[3] or "").rstrip("0")
        if len(rest) > fraction:
            return f"has more than {fraction} decimals"
        if len(whole) + len(rest) > total:
            return f"has more than {total} digits"
        return "must not be negative" if found[1] and not_negative and (whole or rest) else ""

    return check


def _date(value: str) -> str:
    found = _DATE.fullmatch(value)
    return _day(found[1]) if found else "must be a date such as `2026-01-15`"


def _moment(value: str) -> str:
    found = _MOMENT.fullmatch(value)
    return _day(found[1]) if found else "must be a date and time such as `2026-01-15T10:30:00` or with `Z` or `+01:00`"


def _day(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        return f"`{text}` is no day of the calendar"
    return ""


def _form(pattern: re.Pattern[str], says: str) -> Check:
    return lambda value: "" if pattern.fullmatch(value) else says


_FIXED: dict[str, Check] = {
    "date": _date,
    "datetime": _moment,
    "time": _form(_DAYTIME, "must be a time such as `10:30:00`"),
    "period": _form(_PERIOD, "must be a year or a month such as `2026` or `2026-01`"),
    "boolean": _form(re.compile("true|false|1|0"), "must be `true` or `false`"),
    "base64": _form(_BASE64, "must be base64"),
}
