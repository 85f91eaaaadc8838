"""Money: whole micro-dollars inside, decimals on the wire."""

import re
from decimal import Context, Decimal, Inexact

MICROS_PER_USD = 1_000_000
MAX_MICROS = 10**15
"""A thousand million dollars: above any budget, and still exact as a double."""


_PLAIN = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")
"""Decimal itself also reads `1_000`, `Infinity` and the digits of every script."""

_EXACT = Context(prec=40, traps=[Inexact])
"""The usual context would round a long tail of decimals away, and then find nothing wrong."""


class MoneyError(ValueError):
    """The amount is not one we can charge exactly."""


def micros_from(amount: object) -> int:
    """`amount` in micro-dollars; MoneyError says what is wrong with it."""
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
        # repr is the shortest decimal that means this double, so 0.01 is one cent and not 0.01000000000000000020816
        return Decimal(repr(amount))
    if isinstance(amount, str) and _PLAIN.fullmatch(amount):
        return Decimal(amount)
    if isinstance(amount, int | Decimal) and not isinstance(amount, bool):
        return Decimal(amount)
    raise MoneyError("must be a number")


def usd_from(micros: int) -> int | float:
    """The JSON number for `micros`: a whole number where it is one."""
    whole, rest = divmod(micros, MICROS_PER_USD)
    return whole if rest == 0 else micros / MICROS_PER_USD
