"""Sales tax check: rate of an amount, rounded half up, and the general rate of a state."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.check import PackCheck
from qwed.packs.result import Result, UnreadableInputError, status_of, unknown_name_error, unverifiable_on_error
from qwed.packs.value_parsing import day_of
from qwed_tax.money import agrees, amount_of, exactly, money, percent, places_of, rate_of, rounded
from qwed_tax.tables.sales import HIGHEST, LAST_DAY, RATES, SOURCE, STATES, SalesTaxRate


@dataclass(frozen=True, kw_only=True)
class SalesTaxResult(Result):
    """Claimed and computed sales tax."""

    amount: Decimal | None = None
    rate: Decimal | None = None
    claimed_tax: Decimal | None = None
    computed_tax: Decimal | None = None
    difference: Decimal | None = None
    total: Decimal | None = None
    """Amount including the computed tax."""
    place: str | None = None


_USD = "USD"
_HIGHEST_ABROAD = Fraction(30, 100)
"""No country has a general rate of value added or sales tax above it; the highest is 27 %."""
_NAMES = {name.casefold(): code for code, name in STATES.items()} | {code.casefold(): code for code in STATES}


def state_of(value: Any) -> str:
    """Return the US state with this code or name; `US-TX` is accepted too."""
    code = _NAMES.get(" ".join(value.casefold().split()).removeprefix("us-")) if isinstance(value, str) else None
    if code is None:
        raise unknown_name_error("US state", value, STATES, STATES.values())
    return code


def _general(code: str, on: Any) -> SalesTaxRate:
    rates = RATES[code]
    if on is None and rates[-1].until > LAST_DAY:
        return rates[-1]
    if on is None:
        raise UnreadableInputError(
            f"the general rate of {STATES[code]} may have changed on {rates[-1].until}, write `date`"
        )
    day = day_of("date", on)
    found = next((rate for rate in rates if rate.since <= day < rate.until), None)
    if found is None:
        raise UnreadableInputError(
            f"the general rate of {STATES[code]} on {day} is not in the table: it has {_span(rates)}",
            (f"{rate.since}: {percent(rate.rate)}" for rate in rates),
        )
    return found


def _span(rates: tuple[SalesTaxRate, ...]) -> str:
    last = date.fromordinal(rates[-1].until.toordinal() - 1)
    return f"{rates[0].since} to {last}"


def _anywhere_says(rate: Fraction, currency: Any) -> tuple[bool, str]:
    """Return whether a rate may be charged anywhere, and a sentence about it."""
    if rate > _HIGHEST_ABROAD:
        raise UnreadableInputError(
            f"{percent(rate)} is above every rate that is known, write `place`, a US state", STATES
        )
    if currency == _USD and rate > HIGHEST:
        return False, f"no place in the US has a sales tax of {percent(rate)}, the highest is below {percent(HIGHEST)}"
    return True, ""


def _place_says(code: str, general: SalesTaxRate, rate: Fraction) -> tuple[bool, str]:
    """Return whether a rate may be charged in the state, and a sentence about it."""
    named = f"the general rate of {STATES[code]} is {percent(general.rate)}"
    if rate == general.rate:
        more = "; local rates are not in it" if general.local else ""
        return True, f"{named}{more}"
    if general.rate < rate <= general.highest:
        return (
            True,
            f"{named}, the other {percent(rate - general.rate)} must be local rates, which are not in the table",
        )
    above = f"local rates add {percent(general.local)} at most" if general.local else "there are no local rates"
    why = "lower than that" if rate < general.rate else above
    return False, f"{named}: {percent(rate)} is not charged there, {why}"


@unverifiable_on_error(SalesTaxResult)
def verify_sales_tax(
    amount: Any = None,
    rate: Any = None,
    claimed_tax: Any = None,
    *,
    place: Any = None,
    date: Any = None,
    currency: Any = "USD",
) -> SalesTaxResult:
    """Check that the tax is `rate` of `amount`, and with `place` that the rate is charged there."""
    places = places_of(currency)
    if place is not None and currency != _USD:
        raise UnreadableInputError("`currency` must be USD for a US state")
    base = amount_of("amount", amount, currency)
    code = None if place is None else state_of(place)
    general = None if code is None else _general(code, date)
    chosen = general.rate if rate is None and general is not None else rate_of("rate", rate)
    sale = _Sale(base, chosen, amount_of("claimed_tax", claimed_tax, currency), currency, places, code)
    judged = _anywhere_says(chosen, currency) if code is None or general is None else _place_says(code, general, chosen)
    allowed, said = judged
    return _result(sale, allowed, said)


class _Sale(NamedTuple):
    base: Fraction
    rate: Fraction
    claimed: Fraction
    currency: str
    places: int
    code: str | None


def _result(sale: _Sale, allowed: bool, said: str) -> SalesTaxResult:
    exact, places = sale.base * sale.rate, sale.places
    right, computed = agrees(sale.claimed, exact, places), rounded(exact, places)
    rule = f"tax = amount x rate, rounded half up to {places} decimals of {sale.currency}"
    return SalesTaxResult(
        status=status_of(right and allowed),
        message=_message(sale, computed, right, allowed, said),
        rule=f"{rule}; {SOURCE}" if sale.code else rule,
        by_hand=(
            *((said,) if said else ()),
            f"{money(sale.base, places)} x {percent(sale.rate)} = {money(exact, places)}",
            f"rounded half up: {money(computed, places)}",
        ),
        amount=exactly(sale.base, places),
        rate=rounded(sale.rate, 8),
        claimed_tax=exactly(sale.claimed, places),
        computed_tax=computed,
        difference=exactly(sale.claimed - Fraction(computed), places),
        total=exactly(sale.base + Fraction(computed), places),
        place=sale.code,
    )


def _message(sale: _Sale, computed: Decimal, right: bool, allowed: bool, said: str) -> str:
    """Return the message, errors first."""
    claimed, places = sale.claimed, sale.places
    claim = (
        f"the tax comes to {money(computed, places)}, as claimed"
        if right
        else f"`claimed_tax` is {money(claimed, places)}, but the tax comes to {money(computed, places)}"
    )
    told = (claim, said) if allowed or not right else (said, claim)
    return "; ".join(each for each in told if each)


CHECKS = (
    PackCheck(
        "sales_tax",
        "whether a sales tax is the rate of its amount, and the rate one of its state",
        verify_sales_tax,
        required=("amount", "claimed_tax"),
        optional=("rate", "place", "date", "currency"),
    ),
)
