"""Numbers exactly, as they stand in JSON or in a plain text; what is no plain number hears what to write instead."""

import re
from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow, Underflow
from typing import Any

WHOLE_DIGITS = 24
DECIMALS = 18
EXACT = Context(prec=160, traps=[DivisionByZero, Inexact, InvalidOperation, Overflow, Underflow])
"""The products and sums of numbers within our bounds fit; whatever would be rounded raises instead."""

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


class NotANumber(ValueError):
    """Says of a value what is wrong with it, in words that follow its name."""


def number(value: Any) -> Decimal:
    """`value` exactly: a JSON number by its shortest digits, or a decimal text; NotANumber says what to write."""
    read = _READERS.get(type(value))
    if read is None:
        raise NotANumber(next((said for kind, said in _KINDS if isinstance(value, kind)), "must be a number"))
    return read(value)


def fits(exact: Decimal, unit: Decimal) -> bool:
    """Whether it is a whole number of `unit`, a power of ten."""
    try:
        EXACT.quantize(exact, unit)
    except Inexact:
        return False
    return True


def shown(exact: Decimal) -> str:
    """Its digits, never an exponent and never a negative zero."""
    return format(EXACT.plus(exact), "f")


def _whole(value: int) -> Decimal:
    if -_BOUND < value < _BOUND:
        return Decimal(value)
    raise NotANumber(_TOO_LONG)


def _floating(value: float) -> Decimal:
    if not -_FLOAT_BOUND < value < _FLOAT_BOUND:
        raise NotANumber(_TOO_LONG if abs(value) < float("inf") else _NOT_FINITE)
    # repr is the shortest decimal that means this double: 0.1 is a tenth, as whoever wrote it meant. Without the zero
    # of whole ones: a quantity of 3, which A2A carries as 3.0, is no more exact than that, nor is what it comes to.
    text = repr(value).removesuffix(".0")
    exact = Decimal(text)
    if (len(text) > DECIMALS or "e" in text) and not fits(exact, _FINEST):
        raise NotANumber(_TOO_LONG)
    return exact


def _text(value: str) -> Decimal:
    if _PLAIN.fullmatch(value):
        return Decimal(value)
    if len(value) > _LONGEST:
        raise NotANumber("is too long for a number")
    raise NotANumber(next((said for pattern, said in _WRONG if pattern.search(value)), _NOT_PLAIN))


_READERS: dict[type, Callable[[Any], Decimal]] = {int: _whole, float: _floating, str: _text}
"""By the exact type: `true` is an int to Python, and no number to anybody else."""
