"""One payment of wages as the caller describes it, read and bounded."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.reading import whole_of
from qwed.packs.result import Unreadable, unknown
from qwed_tax.money import not_negative
from qwed_tax.tables.federal import HEAD, JOINT, SEPARATE, SINGLE, STATUSES, SURVIVING

USD = "USD"
PERIODS = {
    "annual": 1,
    "semiannual": 2,
    "quarterly": 4,
    "monthly": 12,
    "semimonthly": 24,
    "biweekly": 26,
    "weekly": 52,
    "daily": 260,
}
"""Publication 15-T, worksheet 1A, table 3; a year is one period."""
_PERIOD_ALSO = {
    "annually": "annual",
    "yearly": "annual",
    "year": "annual",
    "semiannually": "semiannual",
    "month": "monthly",
    "fortnightly": "biweekly",
    "week": "weekly",
}
_STATUS_ALSO = {
    "married": JOINT,
    "marriedjoint": JOINT,
    "marriedjointly": JOINT,
    "joint": JOINT,
    "mfj": JOINT,
    "marriedseparate": SEPARATE,
    "marriedseparately": SEPARATE,
    "separate": SEPARATE,
    "mfs": SEPARATE,
    "singleormarriedfilingseparately": SINGLE,
    "hoh": HEAD,
    "head": HEAD,
    "qss": SURVIVING,
    "survivingspouse": SURVIVING,
    "qualifyingwidow": SURVIVING,
    "qualifyingwidower": SURVIVING,
}
_SQUEEZED = str.maketrans("", "", " -_/().")


class Payment(NamedTuple):
    """What the computation needs; amounts in dollars."""

    gross: Fraction
    year: int
    status: str
    periods: int
    frequency: str
    earlier: Fraction
    """Wages of this year and employer that were paid before this payment."""
    pretax: Fraction
    """Of this payment, what is no wages for income tax: 401(k), for example. FICA is on all of it."""
    checked: bool
    other_income: Fraction
    deductions: Fraction
    credits: Fraction
    extra: Fraction
    other: Fraction
    """What else is taken from the pay, state tax included; it only matters to the net."""
    whole_dollars: bool


def _name_of(what: str, given: Any, known: Mapping[str, Any], also: Mapping[str, str]) -> str:
    if isinstance(given, str) and len(given) <= 60:
        squeezed = given.casefold().translate(_SQUEEZED)
        for name in known:
            if name.replace("_", "") == squeezed:
                return name
        if squeezed in also:
            return also[squeezed]
    raise unknown(what, given, known)


def status_of(given: Any) -> str:
    """A filing status by one of its usual names."""
    return _name_of("filing status", given, dict.fromkeys(STATUSES), _STATUS_ALSO)


def frequency_of(given: Any) -> str:
    """A pay frequency by its name, or by how many periods a year has."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = next((name for name, periods in PERIODS.items() if periods == given), given)
    return _name_of("pay frequency", given, PERIODS, _PERIOD_ALSO)


def year_of(given: Any) -> int:
    """The calendar year in which the wages are paid."""
    if given is None:
        raise Unreadable("`year` is needed, write the calendar year in which the wages are paid as in `2025`")
    return whole_of("year", given, 1900, 2999)


def flag_of(name: str, given: Any) -> bool:
    """True or false, and nothing that merely looks like it."""
    if not isinstance(given, bool):
        raise Unreadable(f"`{name}` must be true or false")
    return given


def payment_of(gross: Any, values: Mapping[str, Any]) -> Payment:
    """The payment; Unreadable says which of the values cannot be read."""
    frequency = frequency_of(values["pay_frequency"])
    read = {name: not_negative(name, values[name], USD) for name in _AMOUNTS}
    payment = Payment(
        gross=not_negative("gross_pay", gross, USD),
        year=year_of(values["year"]),
        status=status_of(values["filing_status"]),
        periods=PERIODS[frequency],
        frequency=frequency,
        earlier=read["ytd_wages"],
        pretax=read["pretax_deductions"],
        checked=flag_of("multiple_jobs", values["multiple_jobs"]),
        other_income=read["other_income"],
        deductions=read["deductions"],
        credits=read["dependent_credits"],
        extra=read["extra_withholding"],
        other=read["other_deductions"],
        whole_dollars=flag_of("whole_dollars", values["whole_dollars"]),
    )
    if payment.pretax > payment.gross:
        raise Unreadable("`pretax_deductions` are more than `gross_pay`")
    return payment


_AMOUNTS = (
    "ytd_wages",
    "pretax_deductions",
    "other_income",
    "deductions",
    "dependent_credits",
    "extra_withholding",
    "other_deductions",
)
