"""FinanceVerifier: right values in every usual notation, wrong ones, and unreadable ones with an explanation."""

import subprocess
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_finance import FinanceVerifier
from qwed_finance.finance_checks import CHECKS
from qwed_finance.result import FinanceResult
from tests.support.case_tables import each, rows

verifier = FinanceVerifier()


def ask(row: dict[str, Any]) -> FinanceResult:
    result = CHECKS[row["check"]].ask(**row["values"])
    assert isinstance(result, FinanceResult)
    return result


def name(row: dict[str, Any]) -> str:
    return ascii(row.get("check", row.get("scenario")))[:40]


def require_explained(result: FinanceResult) -> None:
    assert result.rule
    assert result.by_hand
    assert result.formula_used
    assert result.message[0].islower() or not result.message[0].isalpha()
    assert not result.message.endswith(".")


@each("row", rows("finance_true.jsonl"), ids=name)
def test_a_right_value_is_verified_and_explained(row: dict[str, Any]) -> None:
    result = ask(row)
    assert result.verified, result.message
    require_explained(result)
    assert result.llm_value is not None
    assert result.computed_value is not None
    assert result.difference == result.llm_value - result.computed_value


@each("row", rows("finance_false.jsonl"), ids=name)
def test_a_wrong_value_is_refused_with_the_right_one(row: dict[str, Any]) -> None:
    result = ask(row)
    assert result.status is CheckStatus.FAILED, result.message
    require_explained(result)
    assert result.difference


@each("row", rows("finance_hostile.jsonl"), ids=name)
def test_what_cannot_be_read_or_computed_says_what_to_write(row: dict[str, Any]) -> None:
    result = ask(row)
    assert result.status is CheckStatus.UNVERIFIABLE
    assert not result.verified
    assert row["says"] in result.message


@each("row", rows("banking_true.jsonl"), ids=name)
def test_a_reasoning_that_ends_in_what_the_scenario_comes_to_is_verified(row: dict[str, Any]) -> None:
    result = verifier.verify_banking_scenario(**row)
    assert result.verified, result.message
    require_explained(result)


@each("row", rows("banking_false.jsonl"), ids=name)
def test_a_reasoning_that_ends_in_something_else_is_refused(row: dict[str, Any]) -> None:
    result = verifier.verify_banking_scenario(**row)
    assert result.status is CheckStatus.FAILED, result.message
    require_explained(result)


@each("row", rows("banking_undecided.jsonl"), ids=name)
def test_a_scenario_or_a_reasoning_that_is_not_understood_wholly_is_not_judged(row: dict[str, Any]) -> None:
    assert verifier.verify_banking_scenario(**row).status is CheckStatus.UNVERIFIABLE


def test_a_claim_computed_as_excel_does_hears_so() -> None:
    result = verifier.verify_npv([-10000, 3000, 4200, 6800], 0.1, "1188.44")
    assert result.message == (
        "1188.44 is claimed, but it comes to 1307.29: what is claimed is the value with the first cash flow at t = 1, "
        "as Excel's NPV has it"
    )


def test_every_rate_of_return_is_named_where_there_are_several() -> None:
    result = verifier.verify_irr([-100, 230, -132], "10%")
    assert result.verified
    assert "one of several: 10.0000 %, 20.0000 %" in result.message


def test_the_convention_that_a_total_of_interest_follows_is_named() -> None:
    says = [verifier.verify_total_interest(200000, 0.065, 360, claim).message for claim in ("255088.98", "255090.40")]
    assert "of the unrounded payment" in says[0]
    assert "of the payment rounded to the cent" in says[1]


@pytest.mark.parametrize("claim", [1264.1400000001, 1264.14, 1264.136046985, "1264.1360469"])
def test_the_noise_of_a_float_is_no_error(claim: Any) -> None:
    assert verifier.verify_monthly_payment(200000, 0.065, 360, claim).verified


def test_the_precision_that_is_asked_for_is_kept() -> None:
    assert FinanceVerifier(precision=4).verify_monthly_payment(200000, 0.065, 360, "1264.1360").verified
    assert not FinanceVerifier(precision=4).verify_monthly_payment(200000, 0.065, 360, "1264.14").verified
    assert FinanceVerifier(precision=0).verify_monthly_payment(200000, 0.065, 360, "1264").verified


def test_nothing_depends_on_the_callers_decimal_context() -> None:
    with localcontext(Context(prec=3, rounding="ROUND_DOWN", traps=[])):
        result = verifier.verify_monthly_payment(200000, Decimal("0.065"), 360, Decimal("1264.14"))
        assert result.verified
        assert str(result.computed_value) == "1264.14"
        assert verifier.verify_irr([-1000, 300, 420, 680], "16.34%").verified


def test_the_steps_lead_to_the_value() -> None:
    result = verifier.verify_compound_interest(1000, 0.05, 2, "1102.50")
    assert result.by_hand == (
        "(1 + 0.05/1)^(1 x 2) = 1.05^2 = 1.1025",
        "1000 x 1.1025 = 1102.5",
        "that is 1102.5",
    )


@pytest.mark.parametrize("strange", [object(), float("nan"), float("-inf"), Fraction(1, 3), 1j, b"1", [[]], {"a": {}}])
@pytest.mark.parametrize("question", sorted(CHECKS))
def test_no_value_makes_a_check_raise(question: str, strange: Any) -> None:
    check = CHECKS[question]
    result = check.ask(**dict.fromkeys(check.takes, strange))
    assert result.status is CheckStatus.UNVERIFIABLE


def test_importing_the_verifier_imports_no_other_pack() -> None:
    others = {"qwed_legal", "qwed_tax", "qwed_ucp", "numpy", "sympy", "lxml"}
    program = (
        f"import sys, qwed_finance.finance_verifier; print([m for m in sys.modules if m.split('.')[0] in {others}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
