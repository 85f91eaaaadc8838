"""Social Security and Medicare of one payment: 26 U.S.C. 3101, 3102(f) and 3121(a)(1)."""

from fractions import Fraction

from qwed.packs.result import unknown_name_error
from qwed_tax._payroll.input import Payment
from qwed_tax._payroll.line_item import PayslipLine, rate_line, sum_lines
from qwed_tax.money import money
from qwed_tax.tables.payroll import (
    ADDITIONAL_MEDICARE,
    ADDITIONAL_SINCE,
    LIABILITY_THRESHOLD,
    MEDICARE,
    WAGE_BASE,
    WITHHOLDING_THRESHOLD,
    social_security_rate,
)


def wage_base(year: int) -> int:
    """Return the maximum wages subject to Social Security."""
    if year not in WAGE_BASE:
        raise unknown_name_error("year", year, map(str, sorted(WAGE_BASE, reverse=True)))
    return WAGE_BASE[year]


def social_security(payment: Payment) -> PayslipLine:
    """Compute Social Security on the remaining wage base."""
    base = wage_base(payment.year)
    left = max(Fraction(0), base - payment.earlier)
    taxed = min(payment.gross, left)
    rule = f"26 U.S.C. 3101(a), 3121(a)(1): the wage base of {payment.year} is {base:,} (42 U.S.C. 430)"
    why = f", the lesser of {money(payment.gross)} and {base:,} - {money(payment.earlier)} already paid"
    return rate_line(
        "social security", social_security_rate(payment.year), taxed, rule, why if taxed < payment.gross else ""
    )


def regular_medicare(payment: Payment) -> PayslipLine:
    """Compute Medicare on all wages."""
    return rate_line("medicare", MEDICARE, payment.gross, "26 U.S.C. 3101(b)(1): all wages")


def additional_medicare(payment: Payment) -> PayslipLine:
    """Compute Additional Medicare on wages above 200,000 from this employer in the year."""
    since = payment.year >= ADDITIONAL_SINCE
    over = payment.earlier + payment.gross - WITHHOLDING_THRESHOLD
    taxed = max(Fraction(0), min(payment.gross, over)) if since else Fraction(0)
    rule = "26 U.S.C. 3101(b)(2), 3102(f): withheld from wages over 200,000 in the year, whatever the filing status"
    return rate_line("additional medicare", ADDITIONAL_MEDICARE, taxed, rule, " over 200,000 in the year")


def medicare(payment: Payment) -> PayslipLine:
    """Compute both Medicare parts, as most payslips print them."""
    parts = (regular_medicare(payment), additional_medicare(payment))
    if not parts[1].exact:
        return parts[0]
    total = sum_lines("medicare", parts, "26 U.S.C. 3101(b)(1) and (2)")
    return total._replace(steps=(*parts[0].steps, *parts[1].steps, *total.steps))


def fica(payment: Payment) -> PayslipLine:
    """Compute Social Security and all of Medicare."""
    parts = (social_security(payment), regular_medicare(payment), additional_medicare(payment))
    total = sum_lines("FICA", parts, "26 U.S.C. 3101(a) and (b)")
    return total._replace(steps=(*(line for part in parts for line in part.steps), *total.steps))


def additional_medicare_liability(payment: Payment) -> PayslipLine:
    """Compute the employee's liability of the year on Form 8959, from these wages alone."""
    threshold = LIABILITY_THRESHOLD[payment.status]
    since = payment.year >= ADDITIONAL_SINCE
    taxed = max(Fraction(0), payment.earlier + payment.gross - threshold) if since else Fraction(0)
    rule = f"26 U.S.C. 3101(b)(2), Form 8959: the threshold of {payment.status} is {threshold:,}"
    return rate_line("additional medicare of the year", ADDITIONAL_MEDICARE, taxed, rule, f" over {threshold:,}")
