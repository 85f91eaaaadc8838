"""Parsing of one payment of wages."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed.packs.value_parsing import whole_of
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
    """A parsed payment; amounts in dollars."""

    gross: Fraction
    year: int
    status: str
    periods: int
    frequency: str
    earlier: Fraction
    """Wages paid earlier this year by this employer."""
    pretax: Fraction
    """Part of this payment that is exempt from income tax, such as 401(k). FICA applies to all of it."""
    checked: bool
    other_income: Fraction
    deductions: Fraction
    credits: Fraction
    extra: Fraction
    other: Fraction
    """Other deductions, state tax included; they affect only the net."""
    whole_dollars: bool


def _name_of(what: str, value: Any, names: Mapping[str, Any], aliases: Mapping[str, str]) -> str:
    if isinstance(value, str) and len(value) <= 60:
        squeezed = value.casefold().translate(_SQUEEZED)
        for name in names:
            if name.replace("_", "") == squeezed:
                return name
        if squeezed in aliases:
            return aliases[squeezed]
    raise unknown_name_error(what, value, names)


def status_of(value: Any) -> str:
    """Return the filing status with one of its usual names."""
    return _name_of("filing status", value, dict.fromkeys(STATUSES), _STATUS_ALSO)


def frequency_of(value: Any) -> str:
    """Return the pay frequency by name or by number of periods a year."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = next((name for name, periods in PERIODS.items() if periods == value), value)
    return _name_of("pay frequency", value, PERIODS, _PERIOD_ALSO)


def year_of(value: Any) -> int:
    """Return the calendar year in which the wages are paid."""
    if value is None:
        raise UnreadableInputError("`year` is needed, write the calendar year in which the wages are paid as in `2025`")
    return whole_of("year", value, 1900, 2999)


def flag_of(name: str, value: Any) -> bool:
    """Return a boolean; nothing else is accepted."""
    if not isinstance(value, bool):
        raise UnreadableInputError(f"`{name}` must be true or false")
    return value


def payment_of(gross: Any, values: Mapping[str, Any]) -> Payment:
    """Parse a payment; raise UnreadableInputError that names the invalid value."""
    frequency = frequency_of(values["pay_frequency"])
    amounts = {name: not_negative(name, values[name], USD) for name in _AMOUNTS}
    payment = Payment(
        gross=not_negative("gross_pay", gross, USD),
        year=year_of(values["year"]),
        status=status_of(values["filing_status"]),
        periods=PERIODS[frequency],
        frequency=frequency,
        earlier=amounts["ytd_wages"],
        pretax=amounts["pretax_deductions"],
        checked=flag_of("multiple_jobs", values["multiple_jobs"]),
        other_income=amounts["other_income"],
        deductions=amounts["deductions"],
        credits=amounts["dependent_credits"],
        extra=amounts["extra_withholding"],
        other=amounts["other_deductions"],
        whole_dollars=flag_of("whole_dollars", values["whole_dollars"]),
    )
    if payment.pretax > payment.gross:
        raise UnreadableInputError("`pretax_deductions` are more than `gross_pay`")
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
