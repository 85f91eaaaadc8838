"""Federal income tax: withholding by Publication 15-T, and the tax of the year."""

from fractions import Fraction

from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed_tax._payroll.input import Payment
from qwed_tax._payroll.line_item import PayslipLine, bracket_tax, schedule_step
from qwed_tax.money import money, percent, rounded
from qwed_tax.tables.federal import (
    LINE_1G,
    SOURCES,
    WITHHOLDING_YEARS,
    YEARS,
    federal,
    on_w4,
    schedule,
    withholding,
)


def federal_withholding(payment: Payment) -> PayslipLine:
    """Compute worksheet 1A for a Form W-4 of 2020 or later, each line in cents."""
    if payment.year not in WITHHOLDING_YEARS:
        raise unknown_name_error("year of withholding", payment.year, map(str, WITHHOLDING_YEARS))
    adjusted, first = _adjusted(payment)
    line = schedule_step(withholding(payment.year, payment.status, payment.checked), adjusted)
    annual = line.base + line.rate * (adjusted - line.start)
    tentative, credit = annual / payment.periods, payment.credits / payment.periods
    lined = max(Fraction(0), _cents(tentative) - _cents(credit)) + payment.extra
    exact = max(Fraction(0), tentative - credit) + payment.extra
    steps = (
        *first,
        f"2: {money(line.base)} + {percent(line.rate)} of what is over {line.start:,} = {money(annual)}",
        f"2h: {money(annual)} / {payment.periods} = {money(rounded(tentative))}",
        f"3: less credits of {money(payment.credits)} / {payment.periods} = {money(rounded(credit))}",
        f"4: with {money(payment.extra)} extra: {money(lined)}",
    )
    return _part(payment, lined, exact, steps)


def _part(payment: Payment, lined: Fraction, exact: Fraction, steps: tuple[str, ...]) -> PayslipLine:
    table = "step 2(c) checked" if payment.checked else "standard"
    schedule_name = f"{table} schedule of {on_w4(payment.status)}"
    rule = f"IRS Publication 15-T ({payment.year}), worksheet 1A, percentage method, {schedule_name}"
    if payment.whole_dollars:
        dollars = Fraction(rounded(exact, 0))
        return PayslipLine(dollars, rule, (*steps, f"in whole dollars: {money(dollars)}"))
    return PayslipLine(lined, rule, steps, () if _cents(exact) == lined else (rounded(exact),))


def _adjusted(payment: Payment) -> tuple[Fraction, tuple[str, ...]]:
    wages = payment.gross - payment.pretax
    yearly = wages * payment.periods + payment.other_income
    allowed = Fraction(0 if payment.checked else LINE_1G[on_w4(payment.status)])
    adjusted = max(Fraction(0), yearly - payment.deductions - allowed)
    return adjusted, (
        f"1: {money(wages)} x {payment.periods} + {money(payment.other_income)} = {money(yearly)} a year",
        f"1i: less {money(payment.deductions)} and {money(allowed)} of line 1g = {money(adjusted)}",
    )


def _cents(exact: Fraction) -> Fraction:
    return Fraction(rounded(exact))


def income_tax(payment: Payment, taxable: Fraction | None) -> PayslipLine:
    """Compute the year's tax on `taxable`, or on the year's wages less the standard deduction."""
    if payment.year not in YEARS:
        raise unknown_name_error("year of income tax", payment.year, map(str, YEARS))
    steps: tuple[str, ...] = ()
    if taxable is None:
        taxable, steps = _taxable(payment)
    tax, lines = bracket_tax(schedule(payment.year, payment.status), taxable)
    rule = f"26 U.S.C. 1(j), {SOURCES[payment.year]}: tax rate schedule of {payment.status} for {payment.year}"
    return PayslipLine(tax, rule, (*steps, *lines))


def _taxable(payment: Payment) -> tuple[Fraction, tuple[str, ...]]:
    if payment.periods != 1:
        raise UnreadableInputError("the income tax of a year needs `taxable_income`, or `pay_frequency` `annual`")
    deduction = federal(payment.year, payment.status).deduction
    taxable = max(Fraction(0), payment.gross - payment.pretax - deduction)
    return taxable, (
        f"{money(payment.gross - payment.pretax)} less the standard deduction of {deduction:,} = {money(taxable)}",
    )
