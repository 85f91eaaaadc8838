"""US payroll check: Social Security, Medicare, federal withholding and net pay of one payment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.packs.check import PackCheck
from qwed.packs.result import Result, UnreadableInputError, status_of, unverifiable_on_error
from qwed_tax._payroll.fica import wage_base
from qwed_tax._payroll.input import USD, Payment, payment_of
from qwed_tax._payroll.line_item import PayslipLine
from qwed_tax._payroll.payroll_claims import CLAIMED, NAMES, compute_line, parse_claims
from qwed_tax.money import agrees, exactly, money, not_negative


@dataclass(frozen=True, kw_only=True)
class PayrollResult(Result):
    """Claimed and computed value of each line."""

    gross_pay: Decimal | None = None
    year: int | None = None
    filing_status: str | None = None
    pay_frequency: str | None = None
    components: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By line: `claimed`, `computed`, `difference`, `verified`, `rule`."""


OPTIONS: dict[str, Any] = {
    "year": None,
    "filing_status": "single",
    "pay_frequency": "annual",
    "ytd_wages": 0,
    "pretax_deductions": 0,
    "multiple_jobs": False,
    "other_income": 0,
    "deductions": 0,
    "dependent_credits": 0,
    "extra_withholding": 0,
    "other_deductions": 0,
    "whole_dollars": False,
}
"""Optional arguments and their defaults."""
_ALSO = {
    "gross": "gross_pay",
    "gross_income": "gross_pay",
    "gross_wages": "gross_pay",
    "wages": "gross_pay",
    "tax_year": "year",
    "status": "filing_status",
    "frequency": "pay_frequency",
    "pay_period": "pay_frequency",
    "ytd": "ytd_wages",
    "ytd_gross": "ytd_wages",
}
"""Aliases of arguments."""


@unverifiable_on_error(PayrollResult)
def verify_us_payroll(
    gross_pay: Any = None, claims: Any = None, *, taxable_income: Any = None, **values: Any
) -> PayrollResult:
    """Check every claimed line of the payslip against the tables of its year."""
    for also, name in _ALSO.items():
        if also in values:
            values.setdefault(name, values.pop(also))
    gross_pay = values.pop("gross_pay") if gross_pay is None and "gross_pay" in values else gross_pay
    options = {name: values.pop(name, default) for name, default in OPTIONS.items()}
    claimed = parse_claims(claims, values)
    payment = payment_of(gross_pay, options)
    wage_base(payment.year)
    if not claimed:
        raise UnreadableInputError(f"nothing is claimed, write at least one of {', '.join(CLAIMED)}", CLAIMED)
    taxable = None if taxable_income is None else not_negative("taxable_income", taxable_income, USD)
    parts = {part: compute_line(part, payment, claimed, taxable) for part in NAMES if part in claimed}
    return _result(payment, claimed, parts)


def _result(payment: Payment, claimed: Mapping[str, Fraction], parts: Mapping[str, PayslipLine]) -> PayrollResult:
    components = {name: _component(part, claimed[name]) for name, part in parts.items()}
    failed = [name for name in components if not components[name]["verified"]]
    return PayrollResult(
        status=status_of(not failed),
        message=_message(components, failed),
        rule="; ".join(dict.fromkeys(part.rule for part in parts.values())),
        by_hand=tuple(dict.fromkeys(step for part in parts.values() for step in part.steps)),
        gross_pay=exactly(payment.gross),
        year=payment.year,
        filing_status=payment.status,
        pay_frequency=payment.frequency,
        components=components,
    )


def _component(part: PayslipLine, claimed: Fraction) -> Mapping[str, Any]:
    return {
        "claimed": exactly(claimed),
        "computed": part.computed,
        "difference": exactly(claimed - Fraction(part.computed)),
        "verified": agrees(claimed, part.exact, also=part.also),
        "rule": part.rule,
    }


def _message(lines: Mapping[str, Mapping[str, Any]], failed: list[str]) -> str:
    if not failed:
        return "as computed: " + ", ".join(f"{name} {money(line['computed'])}" for name, line in lines.items())
    return ", ".join(
        f"`{name}` is claimed as {money(lines[name]['claimed'])}, but comes to {money(lines[name]['computed'])}"
        for name in failed
    )


CHECKS = (
    PackCheck(
        "us_payroll",
        "whether FICA, federal withholding and net pay of one payment of wages are right",
        verify_us_payroll,
        required=("gross_pay", "year"),
        optional=(
            "claims",
            "taxable_income",
            *(name for name in OPTIONS if name != "year"),
            *CLAIMED,
        ),
    ),
)
