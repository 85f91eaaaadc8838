"""Exact amounts, rounding half up to the currency's smallest unit, and comparison with a claim."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.model.currency import CurrencyError, decimals_of
from qwed.model.decimals import EXACT, format_decimal
from qwed.packs.amount_parsing import ClaimedAmount, parse_claimed_amount
from qwed.packs.result import UnreadableInputError

_WHOLE = 100
_FINER = Fraction(1, 2_000_000)
"""Tolerance for a claim finer than the currency: exact to six decimals."""


def places_of(currency: Any) -> int:
    """Return the number of decimals of the currency."""
    try:
        return decimals_of(currency)
    except CurrencyError as error:
        raise UnreadableInputError(f"`currency` {error}") from None


def amount_of(name: str, value: Any, currency: str) -> Fraction:
    """Parse an amount of `currency`, or of any currency if that is empty."""
    parsed = parse_claimed_amount(name, value)
    if parsed.percent:
        raise UnreadableInputError(f"`{name}` is a percentage, write the amount that it comes to")
    if currency and parsed.currency not in ("", currency):
        raise UnreadableInputError(f"`{name}` is in {parsed.currency}, write it in {currency}")
    return Fraction(parsed.value)


def not_negative(name: str, value: Any, currency: str) -> Fraction:
    """Parse an amount of zero or more."""
    exact = amount_of(name, value, currency)
    if exact < 0:
        raise UnreadableInputError(f"`{name}` is negative, write an amount of zero or more")
    return exact


def rate_of(name: str, value: Any) -> Fraction:
    """Parse a rate as a fraction: `0.0825` or `8.25%`; a number from 1 to 100 is a percentage."""
    parsed: ClaimedAmount = parse_claimed_amount(name, value)
    rate = Fraction(parsed.value)
    if parsed.currency or rate < 0:
        raise UnreadableInputError(f"`{name}` is not a rate, write it as in `0.0825` or `8.25%`")
    if parsed.percent or rate < 1:
        return rate
    if rate > _WHOLE:
        raise UnreadableInputError(f"`{name}` is above 100 %, write it as in `0.0825` or `8.25%`")
    return rate / _WHOLE


def rounded(exact: Fraction, places: int = 2) -> Decimal:
    """Round half away from zero."""
    units = (abs(exact) * 10**places * 2 + 1) // 2
    return Decimal(-units if exact < 0 else units).scaleb(-places, EXACT)


def agrees(claimed: Fraction, exact: Fraction, places: int = 2, also: Iterable[Decimal] = ()) -> bool:
    """Return True if the claim is the rounded amount, another permitted rounding, or the unrounded amount."""
    if (claimed * 10**places).denominator != 1:
        return abs(claimed - exact) <= _FINER
    return claimed in (Fraction(rounded(exact, places)), *map(Fraction, also))


def plain(exact: Fraction) -> str:
    """Format with up to eight decimals."""
    text = format_decimal(rounded(exact, 8)).rstrip("0")
    return text.rstrip(".")


def money(exact: Fraction | Decimal, places: int = 2) -> str:
    """Format an amount in its currency's decimals, with more if it is finer."""
    exact = Fraction(exact)
    if (exact * 10**places).denominator == 1:
        return format_decimal(rounded(exact, places))
    return plain(exact)


def percent(rate: Fraction) -> str:
    """Format a fraction as `8.25 %`."""
    return f"{plain(rate * 100)} %"


def exactly(value: Fraction, places: int = 2) -> Decimal:
    """Return the amount in its currency's decimals, or in six if it is finer."""
    return rounded(value, places if (value * 10**places).denominator == 1 else max(places, 6))
