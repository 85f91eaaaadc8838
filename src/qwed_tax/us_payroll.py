"""US payroll: Social Security, Medicare, federal withholding and net pay of one payment of wages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.packs.question import Question
from qwed.packs.result import Result, Unreadable, answering, standing
from qwed_tax._payroll.asked import USD, Payment, payment_of
from qwed_tax._payroll.claims import CLAIMED, NAMES, claims_of, computed_of
from qwed_tax._payroll.fica import wage_base
from qwed_tax._payroll.part import Part
from qwed_tax.money import agrees, exactly, money, not_negative


@dataclass(frozen=True, kw_only=True)
class PayrollResult(Result):
    """Each claimed part beside what it comes to."""

    gross_pay: Decimal | None = None
    year: int | None = None
    filing_status: str | None = None
    pay_frequency: str | None = None
    components: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By part: `claimed`, `computed`, `difference`, `verified`, `rule`."""


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
"""Everything that is known of a payment beside its amount, and what it is taken for where it is not said."""
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
"""Other names that callers use."""


@answering(PayrollResult)
def verify_us_payroll(
    gross_pay: Any = None, claims: Any = None, *, taxable_income: Any = None, **values: Any
) -> PayrollResult:
    """Whether every claimed part of the payslip is what the tables of its year come to."""
    for also, name in _ALSO.items():
        if also in values:
            values.setdefault(name, values.pop(also))
    gross_pay = values.pop("gross_pay") if gross_pay is None and "gross_pay" in values else gross_pay
    options = {name: values.pop(name, default) for name, default in OPTIONS.items()}
    claimed = claims_of(claims, values)
    payment = payment_of(gross_pay, options)
    wage_base(payment.year)
    if not claimed:
        raise Unreadable(f"nothing is claimed, write at least one of {', '.join(CLAIMED)}", CLAIMED)
    taxable = None if taxable_income is None else not_negative("taxable_income", taxable_income, USD)
    parts = {part: computed_of(part, payment, claimed, taxable) for part in NAMES if part in claimed}
    return _result(payment, claimed, parts)


def _result(payment: Payment, claimed: Mapping[str, Fraction], parts: Mapping[str, Part]) -> PayrollResult:
    told = {name: _told(part, claimed[name]) for name, part in parts.items()}
    wrong = [name for name in told if not told[name]["verified"]]
    return PayrollResult(
        status=standing(not wrong),
        message=_message(told, wrong),
        rule="; ".join(dict.fromkeys(part.rule for part in parts.values())),
        by_hand=tuple(dict.fromkeys(line for part in parts.values() for line in part.steps)),
        gross_pay=exactly(payment.gross),
        year=payment.year,
        filing_status=payment.status,
        pay_frequency=payment.frequency,
        components=told,
    )


def _told(part: Part, claimed: Fraction) -> Mapping[str, Any]:
    return {
        "claimed": exactly(claimed),
        "computed": part.computed,
        "difference": exactly(claimed - Fraction(part.computed)),
        "verified": agrees(claimed, part.exact, also=part.also),
        "rule": part.rule,
    }


def _message(told: Mapping[str, Mapping[str, Any]], wrong: list[str]) -> str:
    if not wrong:
        return "as computed: " + ", ".join(f"{name} {money(each['computed'])}" for name, each in told.items())
    return ", ".join(
        f"`{name}` is claimed as {money(told[name]['claimed'])}, but comes to {money(told[name]['computed'])}"
        for name in wrong
    )


QUESTIONS = (
    Question(
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
