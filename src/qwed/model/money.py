"""Money: integer micro-dollars inside, decimals in JSON."""

import re
from decimal import Context, Decimal, Inexact

MICROS_PER_USD = 1_000_000
MAX_MICROS = 10**15
"""One thousand million dollars: above any budget, and still exact as a double."""


_PLAIN = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")
"""Accepted text; Decimal would also accept `1_000`, `Infinity` and digits of other scripts."""

_EXACT = Context(prec=40, traps=[Inexact])
"""Context that raises Inexact instead of rounding a long fraction."""


class MoneyError(ValueError):
    """The amount cannot be charged exactly."""


def micros_from(amount: object) -> int:
    """Return `amount` in micro-dollars; raise MoneyError with what is wrong."""
    exact = _exact(amount)
    if not exact.is_finite() or exact < 0:
        raise MoneyError("must be zero or more")
    if exact.adjusted() > 12:
        raise MoneyError("is too large")
    micros = _whole_micros(exact)
    if micros > MAX_MICROS:
        raise MoneyError("is too large")
    return micros


def _whole_micros(exact: Decimal) -> int:
    try:
        micros = _EXACT.multiply(exact, Decimal(MICROS_PER_USD))
    except Inexact:
        raise MoneyError("has more than six decimals") from None
    if micros != int(micros):
        raise MoneyError("has more than six decimals")
    return int(micros)


def _exact(amount: object) -> Decimal:
    if isinstance(amount, float):
        # repr is the shortest decimal that denotes this double, so 0.01 is one cent and not 0.01000000000000000020816
        return Decimal(repr(amount))
    if isinstance(amount, str) and _PLAIN.fullmatch(amount):
        return Decimal(amount)
    if isinstance(amount, int | Decimal) and not isinstance(amount, bool):
        return Decimal(amount)
    raise MoneyError("must be a number")


def usd_from(micros: int) -> int | float:
    """Return the JSON number for `micros`, an integer if it is whole."""
    whole, rest = divmod(micros, MICROS_PER_USD)
    return whole if rest == 0 else micros / MICROS_PER_USD
