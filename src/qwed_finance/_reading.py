"""What a check is given, read into what is computed with."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from qwed.packs.reading import whole_of
from qwed.packs.result import Unreadable, unknown
from qwed_finance._exact import FINE, MOST_MONTHS, MOST_YEARS, Worked, amount_of, plain, rate_of, years_of
from qwed_finance.bonds import FREQUENCIES, ICMA, Bond
from qwed_finance.day_counts import day_count_of
from qwed_finance.loans import Loan

_WHEN = ("end", "begin")
_VALUES = ("amount", "interest")
_ICMA = frozenset({"ACT/ACT ICMA", "ACTUAL/ACTUAL ICMA", "ACT/ACT ISMA", "ACT/ACT (ICMA)", "ACTUAL/ACTUAL (ICMA)"})


def loan_of(principal: Any, annual_rate: Any, months: Any) -> Loan:
    """A loan."""
    lent = amount_of("principal", principal)
    if lent <= 0:
        raise Unreadable("`principal` must be above 0")
    return Loan(lent, rate_of("annual_rate", annual_rate), whole_of("months", plain(months), 1, MOST_MONTHS))


def bond_of(face: Any, coupon_rate: Any, years: Any, frequency: Any) -> Bond:
    """A bond whose coupons to come are a whole number."""
    value, coupon = amount_of("face", face), rate_of("coupon_rate", coupon_rate)
    if value <= 0 or coupon < 0:
        raise Unreadable("`face` must be above 0 and `coupon_rate` not below it")
    often = whole_of("frequency", plain(frequency), 1, 12)
    if often not in FREQUENCIES:
        raise unknown("frequency", frequency, map(str, FREQUENCIES))
    periods = FINE.multiply(years_of("years", years), Decimal(often))
    if periods != int(periods) or not periods:
        raise Unreadable("`years` must be a whole number of coupon periods: a bond is priced just after a coupon")
    return Bond(value, coupon, often, int(periods))


def annuity_of(
    value: Any, rate: Any, periods: Any, payment: Any, when: Any
) -> tuple[Decimal, Decimal, int, Decimal, bool]:
    """A value, the rate of a period, how many, the payment of each, and whether it is due when the period begins."""
    if not isinstance(when, str) or when not in _WHEN:
        raise unknown("`when`", when, _WHEN)
    many = whole_of("periods", plain(periods), 0, MOST_YEARS * 365)
    return amount_of("value", value), rate_of("rate", rate), many, amount_of("payment", payment), when == "begin"


def chosen(readings: tuple[Worked, Worked], value: Any) -> Sequence[Worked]:
    """The readings that `value` names; both where it names none."""
    if value is None:
        return readings
    if not isinstance(value, str) or value not in _VALUES:
        raise unknown("`value`", value, _VALUES)
    return [each for each in readings if value in each.called.split(" with ")[0]]


def coupon_count_of(value: Any) -> str:
    """The day count of a coupon; Actual/Actual of ICMA needs the period, which is known here."""
    if isinstance(value, str) and " ".join(value.upper().split()) in _ICMA:
        return ICMA
    return day_count_of(value)
