"""Results of checks do not depend on the caller's decimal context."""

from decimal import (
    ROUND_UP,
    Clamped,
    Context,
    Decimal,
    DivisionByZero,
    FloatOperation,
    Inexact,
    InvalidOperation,
    Overflow,
    Rounded,
    Subnormal,
    Underflow,
    localcontext,
)  # fmt: skip
from importlib import import_module
from typing import Any

from qwed.packs.result import Result
from qwed_finance import FinanceVerifier
from tests.support.case_tables import each, rows

STRICT_CONTEXT = Context(
    prec=1,
    rounding=ROUND_UP,
    Emin=-1,
    Emax=1,
    traps=[
        Clamped, DivisionByZero, FloatOperation, Inexact, InvalidOperation, Overflow, Rounded, Subnormal, Underflow,
    ],
)  # fmt: skip
"""Context with one digit of precision that traps every signal."""
CHECKOUT = {
    "currency": "USD",
    "status": "ready_for_complete",
    "tax_rate": "8.00%",
    "line_items": [{"id": "a", "quantity": 2, "price": Decimal("19.99")}, {"id": "b", "quantity": 1, "price": 5.02}],
    "totals": [{"type": "tax", "amount": 3.6}, {"type": "total", "amount": 48.6}],
}


def all_checks() -> list[tuple[str, str, dict[str, Any]]]:
    tables = [("finance", row) for kind in ("true", "false") for row in rows(f"finance_{kind}.jsonl")]
    tables += [("tax", row) for kind in ("true", "false") for row in rows(f"tax_{kind}.jsonl")]
    cap = {"contract_value": "$5,000,000.50", "cap_percentage": "33.3", "claimed_cap": 1665000.17}
    others = [("ucp", "checkout", {"checkout": CHECKOUT}), ("legal", "liability_cap", cap)]
    return [*others, *((pack, row["check"], row["values"]) for pack, row in tables[::3])]


@each(("pack", "check", "values"), all_checks())
def test_the_answer_is_the_same_in_a_harsh_context(pack: str, check: str, values: dict[str, Any]) -> None:
    question = import_module(f"qwed_{pack}.{pack}_checks").CHECKS[check]
    mild: Result = question.ask(**values)
    with localcontext(STRICT_CONTEXT):
        harsh: Result = question.ask(**values)
    assert harsh == mild


@each("row", rows("banking_true.jsonl")[::3])
def test_so_is_that_of_a_scenario(row: dict[str, Any]) -> None:
    with localcontext(STRICT_CONTEXT):
        assert FinanceVerifier().verify_banking_scenario(**row).verified
