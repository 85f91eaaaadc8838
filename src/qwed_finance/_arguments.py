"""Argument parsing of the finance checks."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed.packs.value_parsing import whole_of
from qwed_finance._decimal import (
    FINE,
    MAX_MONTHS,
    MAX_YEARS,
    Computation,
    parse_amount,
    parse_rate,
    parse_years,
    to_builtin_number,
)
from qwed_finance.bonds import FREQUENCIES, ICMA, Bond
from qwed_finance.day_counts import parse_day_count
from qwed_finance.loans import Loan

_WHEN = ("end", "begin")
_VALUES = ("amount", "interest")
_ICMA = frozenset({"ACT/ACT ICMA", "ACTUAL/ACTUAL ICMA", "ACT/ACT ISMA", "ACT/ACT (ICMA)", "ACTUAL/ACTUAL (ICMA)"})


def parse_loan(principal: Any, annual_rate: Any, months: Any) -> Loan:
    """Parse a loan."""
    amount = parse_amount("principal", principal)
    if amount <= 0:
        raise UnreadableInputError("`principal` must be above 0")
    return Loan(
        amount, parse_rate("annual_rate", annual_rate), whole_of("months", to_builtin_number(months), 1, MAX_MONTHS)
    )


def parse_bond(face: Any, coupon_rate: Any, years: Any, frequency: Any) -> Bond:
    """Parse a bond with a whole number of remaining coupons."""
    value, coupon = parse_amount("face", face), parse_rate("coupon_rate", coupon_rate)
    if value <= 0 or coupon < 0:
        raise UnreadableInputError("`face` must be above 0 and `coupon_rate` not below it")
    per_year = whole_of("frequency", to_builtin_number(frequency), 1, 12)
    if per_year not in FREQUENCIES:
        raise unknown_name_error("frequency", frequency, map(str, FREQUENCIES))
    periods = FINE.multiply(parse_years("years", years), Decimal(per_year))
    if periods != int(periods) or not periods:
        raise UnreadableInputError(
            "`years` must be a whole number of coupon periods: a bond is priced just after a coupon"
        )
    return Bond(value, coupon, per_year, int(periods))


def parse_annuity(
    value: Any, rate: Any, periods: Any, payment: Any, when: Any
) -> tuple[Decimal, Decimal, int, Decimal, bool]:
    """Parse a value, the rate of a period, the number of periods, the payment, and whether it is due at the start."""
    if not isinstance(when, str) or when not in _WHEN:
        raise unknown_name_error("`when`", when, _WHEN)
    count = whole_of("periods", to_builtin_number(periods), 0, MAX_YEARS * 365)
    return (
        parse_amount("value", value),
        parse_rate("rate", rate),
        count,
        parse_amount("payment", payment),
        when == "begin",
    )


def select_readings(readings: tuple[Computation, Computation], value: Any) -> Sequence[Computation]:
    """Return the readings that `value` names; both if it is None."""
    if value is None:
        return readings
    if not isinstance(value, str) or value not in _VALUES:
        raise unknown_name_error("`value`", value, _VALUES)
    return [reading for reading in readings if value in reading.label.split(" with ")[0]]


def parse_coupon_day_count(value: Any) -> str:
    """Parse the day count of a coupon; Actual/Actual ICMA is allowed because the coupon period is known."""
    if isinstance(value, str) and " ".join(value.upper().split()) in _ICMA:
        return ICMA
    return parse_day_count(value)
