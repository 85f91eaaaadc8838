"""Loans that are paid back in equal monthly instalments."""

from decimal import Decimal
from typing import NamedTuple

from qwed.packs.result import Unreadable
from qwed.packs.wording import counted
from qwed_finance._exact import FINE, ONE, TWELVE, ZERO, Worked, brief, rounded, within
from qwed_finance._roots import root

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
PARTS = ("balance", "interest", "principal")


class Loan(NamedTuple):
    """A loan; `rate` is the nominal rate of a year."""

    principal: Decimal
    rate: Decimal
    months: int

    @property
    def monthly(self) -> Decimal:
        """The rate of a month."""
        return FINE.divide(self.rate, TWELVE)


class Line(NamedTuple):
    """One month of a schedule."""

    interest: Decimal
    principal: Decimal
    balance: Decimal


def level(loan: Loan) -> Decimal:
    """The payment of a month, unrounded."""
    if loan.rate == 0:
        return FINE.divide(loan.principal, Decimal(loan.months))
    shrunk = FINE.power(FINE.add(ONE, loan.monthly), -loan.months)
    return FINE.divide(FINE.multiply(loan.principal, loan.monthly), FINE.subtract(ONE, shrunk))


def payment(loan: Loan) -> Worked:
    """The payment of a month."""
    exact = within(level(loan))
    if loan.rate == 0:
        step = f"without interest: {loan.principal:f} / {loan.months} = {brief(exact)}"
        return Worked(exact, "P / n", PAYMENT_RULE, (step,), loan.principal)
    shrunk = FINE.power(FINE.add(ONE, loan.monthly), -loan.months)
    steps = (
        f"i = {loan.rate:f} / 12 = {brief(loan.monthly)}",
        f"(1 + i)^-{loan.months} = {brief(shrunk)}",
        f"{loan.principal:f} x i / (1 - {brief(shrunk)}) = {brief(exact)}",
    )
    return Worked(exact, "P * i / (1 - (1 + i)^-n), i = annual rate / 12", PAYMENT_RULE, steps, loan.principal)


def total_interest(loan: Loan, decimals: int) -> tuple[Worked, Worked]:
    """The interest in all: of the exact payment, and of the payment in cents."""
    exact, many = level(loan), Decimal(loan.months)
    rows = (
        ("of the unrounded payment", "n * payment - P", exact),
        ("of the payment rounded to the cent", "n * round(payment) - P", rounded(exact, decimals)),
    )
    of_exact, of_cents = (
        Worked(
            within(FINE.subtract(FINE.multiply(each, many), loan.principal)),
            formula,
            INTEREST_RULE,
            (*payment(loan).steps, f"{loan.months} x {brief(each)} - {loan.principal:f}"),
            FINE.multiply(exact, many),
            called=called,
        )
        for called, formula, each in rows
    )
    return of_exact, of_cents


def interest_of_schedule(loan: Loan, decimals: int) -> Worked:
    """The interest of a schedule in cents whose last instalment clears the balance."""
    paid, charged = rounded(level(loan), decimals), ZERO
    for each in schedule(loan, decimals):
        charged = FINE.add(charged, each.interest)
    steps = (
        *payment(loan).steps,
        f"each month: interest = balance x i, to the cent; the rest of {paid:f} repays; the last instalment clears",
        f"the interest of all {loan.months} months is {charged:f}",
    )
    return Worked(charged, "sum of round(balance * i)", INTEREST_RULE, steps, loan.principal, called=OF_SCHEDULE)


def schedule(loan: Loan, decimals: int) -> list[Line]:
    """Month by month, each amount in cents; the last instalment clears the balance."""
    paid, balance = rounded(level(loan), decimals), loan.principal
    lines = []
    for month in range(1, loan.months + 1):
        interest = rounded(FINE.multiply(balance, loan.monthly), decimals)
        repaid = balance if month == loan.months else FINE.subtract(paid, interest)
        balance = FINE.subtract(balance, repaid)
        lines.append(Line(interest, repaid, balance))
    return lines


def balance_after(loan: Loan, month: int) -> Decimal:
    """What is owed after `month` payments, unrounded."""
    paid = level(loan)
    if loan.rate == 0:
        return FINE.subtract(loan.principal, FINE.multiply(paid, Decimal(month)))
    grown = FINE.power(FINE.add(ONE, loan.monthly), month)
    owed = FINE.multiply(loan.principal, grown)
    return FINE.subtract(owed, FINE.multiply(paid, FINE.divide(FINE.subtract(grown, ONE), loan.monthly)))


def line(loan: Loan, month: int, part: str, decimals: int) -> tuple[Worked, ...]:
    """One part of one line of the schedule: from the exact payment, and from a schedule in cents."""
    before, after = balance_after(loan, month - 1), balance_after(loan, month)
    interest = FINE.multiply(before, loan.monthly)
    exact = Line(interest, FINE.subtract(level(loan), interest), after)
    in_cents = schedule(loan, decimals)[month - 1]
    rule = "amortisation: interest is the balance times a twelfth of the annual rate, the rest of the payment repays"
    steps = (
        *payment(loan).steps,
        f"balance after {counted(month - 1, 'payment')} = {brief(before)}",
        f"interest of month {month} = {brief(before)} x {brief(loan.monthly)} = {brief(interest)}",
        f"principal of month {month} = {brief(exact.principal)}, balance after it = {brief(after)}",
    )
    return tuple(
        Worked(within(getattr(each, part)), _LINE[part], rule, steps, loan.principal, called=called)
        for each, called in ((exact, "of the unrounded payment"), (in_cents, "of a schedule in cents"))
    )


_LINE = {
    "balance": "P(1+i)^k - payment * ((1+i)^k - 1) / i",
    "interest": "balance before * i",
    "principal": "payment - balance before * i",
}


def apr(loan: Loan, fees: Decimal, decimals: int) -> tuple[Worked, ...]:
    """The annual percentage rate where `fees` are kept back, of the exact payment and of the payment in cents."""
    financed = FINE.subtract(loan.principal, fees)
    if financed <= 0:
        raise Unreadable("`fees` must be less than `principal`")
    rows = (
        (level(loan), "of the unrounded payment"),
        (rounded(level(loan), decimals), "of the payment rounded to the cent"),
    )
    return tuple(_apr(loan, financed, each, called) for each, called in rows)


def _apr(loan: Loan, financed: Decimal, paid: Decimal, called: str) -> Worked:
    monthly = root([FINE.minus(financed), *([paid] * loan.months)])
    yearly = FINE.multiply(monthly, TWELVE)
    steps = (
        *payment(loan).steps,
        f"amount financed = {financed:f}",
        f"the rate at which {loan.months} payments of {brief(paid)} are worth {financed:f} is {brief(monthly)} a month",
        f"x 12 = {brief(yearly)}",
    )
    return Worked(yearly, "12 * IRR(-financed, payment, ...)", APR_RULE, steps, rate=True, called=called)
