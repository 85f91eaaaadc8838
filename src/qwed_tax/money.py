"""Amounts as exact fractions, rounded half up to the smallest unit of their currency, and whether a claim agrees."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.packs.claimed import Claimed, claimed_of
from qwed.packs.result import Unreadable
from qwed.words.currency import CurrencyError, decimals_of
from qwed.words.exact import EXACT, shown

_WHOLE = 100
_FINER = Fraction(1, 2_000_000)
"""A claim that is finer than the currency is the product itself, as precise as six decimals say."""


def places_of(currency: Any) -> int:
    """How many decimals amounts of the currency have."""
    try:
        return decimals_of(currency)
    except CurrencyError as wrong:
        raise Unreadable(f"`currency` {wrong}") from None


def amount_of(name: str, value: Any, currency: str) -> Fraction:
    """An amount of `currency`, or of any where none is given, exactly."""
    read = claimed_of(name, value)
    if read.percent:
        raise Unreadable(f"`{name}` is a percentage, write the amount that it comes to")
    if currency and read.currency not in ("", currency):
        raise Unreadable(f"`{name}` is in {read.currency}, write it in {currency}")
    return Fraction(read.value)


def not_negative(name: str, value: Any, currency: str) -> Fraction:
    """An amount that is zero or more."""
    exact = amount_of(name, value, currency)
    if exact < 0:
        raise Unreadable(f"`{name}` is negative, write an amount of zero or more")
    return exact


def rate_of(name: str, value: Any) -> Fraction:
    """A rate as a fraction: `0.0825` or `8.25%`; from one to 100 it is a percentage, no sales tax is of 100 %."""
    read: Claimed = claimed_of(name, value)
    rate = Fraction(read.value)
    if read.currency or rate < 0:
        raise Unreadable(f"`{name}` is no rate, write it as in `0.0825` or `8.25%`")
    if read.percent or rate < 1:
        return rate
    if rate > _WHOLE:
        raise Unreadable(f"`{name}` is above 100 %, write it as in `0.0825` or `8.25%`")
    return rate / _WHOLE


def rounded(exact: Fraction, places: int = 2) -> Decimal:
    """Half up: from half a unit on, away from zero."""
    units = (abs(exact) * 10**places * 2 + 1) // 2
    return Decimal(-units if exact < 0 else units).scaleb(-places, EXACT)


def agrees(claimed: Fraction, exact: Fraction, places: int = 2, also: Iterable[Decimal] = ()) -> bool:
    """Whether the claim is the rounded amount, one that is rounded in another permitted way, or the unrounded one."""
    if (claimed * 10**places).denominator != 1:
        return abs(claimed - exact) <= _FINER
    return claimed in (Fraction(rounded(exact, places)), *map(Fraction, also))


def plain(exact: Fraction) -> str:
    """Its digits, as many as it has up to eight decimals."""
    text = shown(rounded(exact, 8)).rstrip("0")
    return text.rstrip(".")


def money(exact: Fraction | Decimal, places: int = 2) -> str:
    """An amount in its currency's decimals, with what is finer shown too."""
    exact = Fraction(exact)
    if (exact * 10**places).denominator == 1:
        return shown(rounded(exact, places))
    return plain(exact)


def percent(rate: Fraction) -> str:
    """A fraction as `8.25 %`."""
    return f"{plain(rate * 100)} %"


def exactly(value: Fraction, places: int = 2) -> Decimal:
    """The amount as it is written: in its currency's decimals, or in six where it is finer."""
    return rounded(value, places if (value * 10**places).denominator == 1 else max(places, 6))
