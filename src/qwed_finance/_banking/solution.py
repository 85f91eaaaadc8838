"""Solution of a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from qwed_finance._decimal import Computation

LABELS: Mapping[str, Sequence[str]] = {
    "payment": (
        "monthly payment",
        "monthly payments",
        "monthly mortgage payment",
        "monthly loan payment",
        "monthly instalment",
        "monthly installment",
        "payment per month",
        "emi",
        "payment",
        "pmt",
    ),
    "total_interest": ("total interest paid", "total interest", "interest paid", "interest cost"),
    "total_paid": (
        "total paid",
        "total payments",
        "total repayment",
        "total amount paid",
        "total cost",
        "total repaid",
    ),
    "amount": (
        "final amount",
        "future value",
        "maturity value",
        "maturity amount",
        "final value",
        "total amount",
        "accumulated amount",
        "final balance",
        "ending balance",
        "total value",
        "amount",
        "grows to",
        "grow to",
        "balance",
    ),
    "interest": ("compound interest", "simple interest", "interest earned", "total interest", "interest"),
    "npv": ("net present value", "npv"),
    "irr": ("internal rate of return", "irr"),
    "balance": (
        "final balance",
        "new balance",
        "remaining balance",
        "closing balance",
        "ending balance",
        "resulting balance",
        "available balance",
        "account balance",
        "balance",
    ),
    "ratio": (
        "debt-to-income ratio",
        "debt to income ratio",
        "debt-to-income",
        "dti ratio",
        "dti",
        "loan-to-value ratio",
        "loan to value ratio",
        "loan-to-value",
        "ltv ratio",
        "ltv",
        "ratio",
    ),
    "fee": ("total fee", "transaction fee", "fees", "fee", "commission", "surcharge"),
    "change": ("percentage change", "percent change", "percentage increase", "percentage decrease", "change"),
    "effective_rate": ("effective annual rate", "annual percentage yield", "effective rate", "apy", "ear"),
    "remaining": ("remaining limit", "remaining balance", "remaining", "available limit"),
    "sum": ("grand total", "total amount", "total", "sum"),
}
"""Labels of each quantity in a reasoning."""
OTHER_LABELS = (
    "interest rate",
    "annual interest rate",
    "monthly interest rate",
    "monthly rate",
    "annual rate",
    "periodic rate",
    "discount rate",
    "rate",
    "principal",
    "loan amount",
    "number of payments",
    "monthly income",
    "monthly debt",
    "income",
    "debt",
    "term",
    "discount factor",
    "growth factor",
    "factor",
    "limit",
    "threshold",
    "maximum",
    "initial balance",
    "opening balance",
    "starting balance",
    "property value",
    "initial investment",
)
"""Labels of intermediate values in a reasoning."""


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Quantities of a scenario, those asked for, and its yes or no decision."""

    quantities: Mapping[str, Sequence[Computation]]
    asked: Sequence[str]
    inputs: frozenset[Decimal] = frozenset()
    """Numbers of the scenario and of its steps, which a reasoning may repeat."""
    currency: str = ""
    holds: bool | None = None
    """Decision that claims such as `approved` or `sufficient funds` are compared with."""
    reason: str = ""
    """Explanation of the decision."""
    decides: bool = False
    """True if the decision alone answers the scenario."""
    hints: Sequence[Computation] = field(default=())
