"""Simple types of ISO 20022. Each check returns the problem, or an empty string."""

import re
from collections.abc import Callable
from datetime import date

ValueCheck = Callable[[str], str]
"""Function that returns the problem of a value, worded to follow its name, or an empty string."""

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


def value_check(token: str, patterns: dict[str, str]) -> ValueCheck:
    """Return the check for a token of the tables: `1..35`, `decimal18.5+`, `date`, the name of a pattern."""
    if token in _FIXED_CHECKS:
        return _FIXED_CHECKS[token]
    if token in patterns:
        return _pattern_check(patterns[token])
    match = _DECIMAL_TYPE.fullmatch(token)
    if match:
        return _decimal_check(int(match[1]), int(match[2]), bool(match[3]))
    least, _, most = token.partition("..")
    return _text_check(int(least), int(most) if most else None)


def code_list_check(listed: frozenset[str]) -> ValueCheck:
    """Return the check for a closed list of codes."""

    def check(value: str) -> str:
        return "" if value in listed else f"must be one of {', '.join(sorted(listed))}"

    return check


def _text_check(least: int, most: int | None) -> ValueCheck:
    def check(value: str) -> str:
        if _CONTROLS.search(value):
            return "contains characters that are not allowed in XML"
        if len(value) < least:
            return f"must have at least {least} character{'s' * (least > 1)}"
        return "" if most is None or len(value) <= most else f"has {len(value)} characters, {most} are allowed"

    return check


def _pattern_check(pattern: str) -> ValueCheck:
    form, _, bounds = pattern.partition(" ")
    compiled = re.compile(form, re.ASCII)
    length = _text_check(*_parse_bounds(bounds))

    def check(value: str) -> str:
        # A pattern without an upper bound comes with a separate length limit.
        return length(value) or ("" if compiled.fullmatch(value) else f"does not have the form `{form}`")

    return check


def _parse_bounds(bounds: str) -> tuple[int, int | None]:
    least, _, most = bounds.partition("..")
    return int(least or 0), int(most) if most else None


def _decimal_check(total: int, fraction: int, not_negative: bool) -> ValueCheck:
    def check(value: str) -> str:
        match = _DECIMAL.fullmatch(value)
        if match is None or not (match[2] or "0" in value.partition(".")[0]):
            return "must be a plain decimal number such as `1234.50`"
        whole, rest = match[2], (match[3] or "").rstrip("0")
        if len(rest) > fraction:
            return f"has more than {fraction} decimals"
        if len(whole) + len(rest) > total:
            return f"has more than {total} digits"
        return "must not be negative" if match[1] and not_negative and (whole or rest) else ""

    return check


def _check_date(value: str) -> str:
    match = _DATE.fullmatch(value)
    return _check_day(match[1]) if match else "must be a date such as `2026-01-15`"


def _check_datetime(value: str) -> str:
    match = _MOMENT.fullmatch(value)
    return (
        _check_day(match[1])
        if match
        else "must be a date and time such as `2026-01-15T10:30:00` or with `Z` or `+01:00`"
    )


def _check_day(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        return f"`{text}` is not a calendar day"
    return ""


def _form_check(pattern: re.Pattern[str], says: str) -> ValueCheck:
    return lambda value: "" if pattern.fullmatch(value) else says


_FIXED_CHECKS: dict[str, ValueCheck] = {
    "date": _check_date,
    "datetime": _check_datetime,
    "time": _form_check(_DAYTIME, "must be a time such as `10:30:00`"),
    "period": _form_check(_PERIOD, "must be a year or a month such as `2026` or `2026-01`"),
    "boolean": _form_check(re.compile("true|false|1|0"), "must be `true` or `false`"),
    "base64": _form_check(_BASE64, "must be base64"),
}
