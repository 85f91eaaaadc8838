"""Loans with equal monthly instalments."""

from decimal import Decimal
from typing import NamedTuple

from qwed.packs.plural import pluralize
from qwed.packs.result import UnreadableInputError
from qwed_finance._decimal import FINE, ONE, TWELVE, ZERO, Computation, format_step, require_max_value, round_half_up
from qwed_finance._irr_roots import find_root

PAYMENT_RULE = (
    "level payment in arrears at a twelfth of the nominal annual rate a month "
    "(ordinary annuity; Excel PMT, numpy-financial pmt without their sign)"
)
INTEREST_RULE = "total interest of a level-payment loan: what is paid in all less what was lent"
APR_RULE = (
    "annual percentage rate: twelve times the monthly rate at which the payments are worth the amount financed, "
    "principal less prepaid finance charges (US Regulation Z, 12 CFR 1026 Appendix J, equal monthly periods)"
)
OF_SCHEDULE = "of a schedule in cents whose last instalment clears the balance"
CONVENTIONS = ("payments", "schedule")
LINE_PARTS = ("balance", "interest", "principal")


class Loan(NamedTuple):
    """Loan; `rate` is the nominal annual rate."""

    principal: Decimal
    rate: Decimal
    months: int

    @property
    def monthly(self) -> Decimal:
        """Monthly rate."""
        return FINE.divide(self.rate, TWELVE)


class ScheduleLine(NamedTuple):
    """One month of an amortisation schedule."""

    interest: Decimal
    principal: Decimal
    balance: Decimal


def level_payment(loan: Loan) -> Decimal:
    """Return the monthly payment, unrounded."""
    if loan.rate == 0:
        return FINE.divide(loan.principal, Decimal(loan.months))
    shrunk = FINE.power(FINE.add(ONE, loan.monthly), -loan.months)
    return FINE.divide(FINE.multiply(loan.principal, loan.monthly), FINE.subtract(ONE, shrunk))


def monthly_payment(loan: Loan) -> Computation:
    """Compute the monthly payment."""
    exact = require_max_value(level_payment(loan))
    if loan.rate == 0:
        step = f"without interest: {loan.principal:f} / {loan.months} = {format_step(exact)}"
        return Computation(exact, "P / n", PAYMENT_RULE, (step,), loan.principal, period="month")
    shrunk = FINE.power(FINE.add(ONE, loan.monthly), -loan.months)
    steps = (
        f"i = {loan.rate:f} / 12 = {format_step(loan.monthly)}",
        f"(1 + i)^-{loan.months} = {format_step(shrunk)}",
        f"{loan.principal:f} x i / (1 - {format_step(shrunk)}) = {format_step(exact)}",
    )
    formula = "P * i / (1 - (1 + i)^-n), i = annual rate / 12"
    return Computation(exact, formula, PAYMENT_RULE, steps, loan.principal, period="month")


def total_interest(loan: Loan, decimals: int) -> tuple[Computation, Computation]:
    """Compute the total interest: of the exact payment, and of the payment rounded to cents."""
    exact, count = level_payment(loan), Decimal(loan.months)
    rows = (
        ("of the unrounded payment", "n * payment - P", exact),
        ("of the payment rounded to the cent", "n * round(payment) - P", round_half_up(exact, decimals)),
    )
    of_exact, of_cents = (
        Computation(
            require_max_value(FINE.subtract(FINE.multiply(instalment, count), loan.principal)),
            formula,
            INTEREST_RULE,
            (*monthly_payment(loan).steps, f"{loan.months} x {format_step(instalment)} - {loan.principal:f}"),
            FINE.multiply(exact, count),
            label=label,
        )
        for label, formula, instalment in rows
    )
    return of_exact, of_cents


def interest_of_schedule(loan: Loan, decimals: int) -> Computation:
    """Compute the interest of a schedule in cents whose last instalment clears the balance."""
    paid, charged = round_half_up(level_payment(loan), decimals), ZERO
    for row in schedule(loan, decimals):
        charged = FINE.add(charged, row.interest)
    steps = (
        *monthly_payment(loan).steps,
        f"each month: interest = balance x i, to the cent; the rest of {paid:f} repays; the last instalment clears",
        f"the interest of all {loan.months} months is {charged:f}",
    )
    return Computation(charged, "sum of round(balance * i)", INTEREST_RULE, steps, loan.principal, label=OF_SCHEDULE)


def schedule(loan: Loan, decimals: int) -> list[ScheduleLine]:
    """Return the monthly lines, each amount in cents; the last instalment clears the balance."""
    paid, balance = round_half_up(level_payment(loan), decimals), loan.principal
    lines = []
    for month in range(1, loan.months + 1):
        interest = round_half_up(FINE.multiply(balance, loan.monthly), decimals)
        repaid = balance if month == loan.months else FINE.subtract(paid, interest)
        balance = FINE.subtract(balance, repaid)
        lines.append(ScheduleLine(interest, repaid, balance))
    return lines


def balance_after(loan: Loan, month: int) -> Decimal:
    """Return the balance after `month` payments, unrounded."""
    paid = level_payment(loan)
    if loan.rate == 0:
        return FINE.subtract(loan.principal, FINE.multiply(paid, Decimal(month)))
    grown = FINE.power(FINE.add(ONE, loan.monthly), month)
    owed = FINE.multiply(loan.principal, grown)
    return FINE.subtract(owed, FINE.multiply(paid, FINE.divide(FINE.subtract(grown, ONE), loan.monthly)))


def schedule_line(loan: Loan, month: int, part: str, decimals: int) -> tuple[Computation, ...]:
    """Compute one part of one line of the schedule: from the exact payment, and from a schedule in cents."""
    before, after = balance_after(loan, month - 1), balance_after(loan, month)
    interest = FINE.multiply(before, loan.monthly)
    exact = ScheduleLine(interest, FINE.subtract(level_payment(loan), interest), after)
    in_cents = schedule(loan, decimals)[month - 1]
    rule = "amortisation: interest is the balance times a twelfth of the annual rate, the rest of the payment repays"
    steps = (
        *monthly_payment(loan).steps,
        f"balance after {pluralize(month - 1, 'payment')} = {format_step(before)}",
        f"interest of month {month} = {format_step(before)} x {format_step(loan.monthly)} = {format_step(interest)}",
        f"principal of month {month} = {format_step(exact.principal)}, balance after it = {format_step(after)}",
    )
    return tuple(
        Computation(
            require_max_value(getattr(row, part)),
            _LINE_FORMULAS[part],
            rule,
            steps,
            loan.principal,
            label=label,
            period="" if part == "balance" else "month",
        )
        for row, label in ((exact, "of the unrounded payment"), (in_cents, "of a schedule in cents"))
    )


_LINE_FORMULAS = {
    "balance": "P(1+i)^k - payment * ((1+i)^k - 1) / i",
    "interest": "balance before * i",
    "principal": "payment - balance before * i",
}


def apr(loan: Loan, fees: Decimal, decimals: int) -> tuple[Computation, ...]:
    """Compute the annual percentage rate with deducted `fees`, of the exact payment and of the payment in cents."""
    financed = FINE.subtract(loan.principal, fees)
    if financed <= 0:
        raise UnreadableInputError("`fees` must be less than `principal`")
    rows = (
        (level_payment(loan), "of the unrounded payment"),
        (round_half_up(level_payment(loan), decimals), "of the payment rounded to the cent"),
    )
    return tuple(_apr_computation(loan, financed, instalment, label) for instalment, label in rows)


def _apr_computation(loan: Loan, financed: Decimal, paid: Decimal, label: str) -> Computation:
    monthly = find_root([FINE.minus(financed), *([paid] * loan.months)])
    yearly = FINE.multiply(monthly, TWELVE)
    steps = (
        *monthly_payment(loan).steps,
        f"amount financed = {financed:f}",
        f"the rate at which {loan.months} payments of {format_step(paid)} are worth {financed:f} "
        f"is {format_step(monthly)} a month",
        f"x 12 = {format_step(yearly)}",
    )
    return Computation(yearly, "12 * IRR(-financed, payment, ...)", APR_RULE, steps, rate=True, label=label)
