"""Exact decimal parsing of JSON numbers and plain text, with advice for what cannot be parsed."""

import re
from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow, Underflow
from typing import Any

WHOLE_DIGITS = 24
DECIMALS = 18
EXACT = Context(prec=160, traps=[DivisionByZero, Inexact, InvalidOperation, Overflow, Underflow])
"""Context in which products and sums of numbers within our bounds are exact; rounding raises Inexact."""

_BOUND = 10**WHOLE_DIGITS
_FLOAT_BOUND = float(_BOUND)
_FINEST = Decimal(f"1e-{DECIMALS}")
_PLAIN = re.compile(rf"-?(?:0|[1-9][0-9]{{0,{WHOLE_DIGITS - 1}}})(?:\.[0-9]{{1,{DECIMALS}}})?")
_LONGEST = 200
_TOO_LONG = f"has more than {WHOLE_DIGITS} digits before the point or {DECIMALS} after it"
_NOT_FINITE = "is not finite, write a number"


def _row(pattern: str, message: str) -> tuple[re.Pattern[str], str]:
    return re.compile(pattern, re.IGNORECASE), message


_WRONG = (
    _row(r"\A\s*\Z", "is blank, write a number such as `12.50`"),
    _row(r"\A\s*[+-]?(?:s?nan|inf|infinity)\s*\Z", _NOT_FINITE),
    _row(r"[^\x00-\x7f]", "has signs or digits beyond ASCII, write 0 to 9 with `-` and `.`"),
    _row(r"\s", "has blanks in it, write its digits without them"),
    _row(r"_", "has underscores in it, write its digits without them"),
    _row(r"\A[+-]?0[xob]", "is not decimal, write it as in `255`"),
    _row(r"%", "is a percentage, write the amount that it comes to"),
    _row(r"[,']", "has a separator in it, write it as in `1234.50`"),
    _row(r"[()]", "is in parentheses, write a negative number with `-`"),
    _row(r"\A\+", "has a plus sign, write it without"),
    _row(r"\A-?[0-9.]+e", "has an exponent, write all of its digits"),
    _row(r"\A-?0[0-9]", "starts with a zero, write it without"),
    _row(r"\A-?\.|\.\Z", "has no digit on one side of its point, write it as in `0.50`"),
    _row(r"\A-?[0-9]+(?:\.[0-9]+)?\Z", _TOO_LONG),
)
_NOT_PLAIN = "is not a plain number, write it as in `1234.50` without a sign of its currency"
_KINDS = (
    (bool, "is true or false, write a number"),
    (type(None), "is null, write a number"),
    (list, "is a list, write a number"),
    (dict, "is an object, write a number"),
)


class NumberFormatError(ValueError):
    """The value is not a plain number; the message continues a sentence that begins with its name."""


def parse_number(value: Any) -> Decimal:
    """Return `value` exactly: a JSON number by its shortest digits, or a decimal text."""
    read = _READERS.get(type(value))
    if read is None:
        raise NumberFormatError(
            next((message for kind, message in _KINDS if isinstance(value, kind)), "must be a number")
        )
    return read(value)


def is_multiple_of(exact: Decimal, unit: Decimal) -> bool:
    """Return True if the number is a whole multiple of `unit`, a power of ten."""
    try:
        EXACT.quantize(exact, unit)
    except Inexact:
        return False
    return True


def format_decimal(exact: Decimal) -> str:
    """Format without exponent and without a negative zero."""
    return format(EXACT.plus(exact), "f")


def _from_int(value: int) -> Decimal:
    if -_BOUND < value < _BOUND:
        return Decimal(value)
    raise NumberFormatError(_TOO_LONG)


def _from_float(value: float) -> Decimal:
    if not -_FLOAT_BOUND < value < _FLOAT_BOUND:
        raise NumberFormatError(_TOO_LONG if abs(value) < float("inf") else _NOT_FINITE)
    # repr is the shortest decimal that denotes this double: 0.1 is one tenth, as the sender wrote it. A trailing `.0`
    # is dropped: A2A carries a quantity of 3 as 3.0, which must not count as a more precise number.
    text = repr(value).removesuffix(".0")
    exact = Decimal(text)
    if (len(text) > DECIMALS or "e" in text) and not is_multiple_of(exact, _FINEST):
        raise NumberFormatError(_TOO_LONG)
    return exact


def _from_text(value: str) -> Decimal:
    if _PLAIN.fullmatch(value):
        return Decimal(value)
    if len(value) > _LONGEST:
        raise NumberFormatError("is too long for a number")
    raise NumberFormatError(next((message for pattern, message in _WRONG if pattern.search(value)), _NOT_PLAIN))


_READERS: dict[type, Callable[[Any], Decimal]] = {int: _from_int, float: _from_float, str: _from_text}
"""Keyed by exact type, because `true` is an int in Python but not a JSON number."""
