"""LiabilityGuard: caps, tiers and indemnity limits (INTERFACES 8)."""

from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from typing import Any

import pytest

from qwed.packs.result import CheckStatus, Result
from qwed_legal import LiabilityGuard
from qwed_legal.legal_checks import CHECKS
from tests.support.case_tables import each, rows


def ask(row: dict[str, Any]) -> Result:
    return CHECKS[row["check"]].ask(**{name: value for name, value in row.items() if name != "check"})


@each("row", rows("liability_true.jsonl"))
def test_a_right_amount_is_verified_with_its_sum(row):
    result = ask(row)
    assert result.status is CheckStatus.VERIFIED, result
    assert result.rule
    assert result.by_hand


@each("row", rows("liability_false.jsonl"))
def test_a_wrong_amount_is_refused(row):
    result = ask(row)
    assert result.status is CheckStatus.FAILED, result
    assert result.rule
    assert result.by_hand


@each("row", rows("liability_hostile.jsonl"))
def test_what_is_no_amount_is_unverifiable(row):
    result = ask(row)
    assert result.status is CheckStatus.UNVERIFIABLE, result
    assert not result.message.endswith(".")


def test_a_claim_within_the_tolerance_is_told_apart_from_an_exact_one():
    exact = LiabilityGuard(0.01).verify_cap(1_000_000, 100, 1_000_000)
    near = LiabilityGuard(0.01).verify_cap(1_000_000, 100, "1000000.01")
    assert (exact.verified, exact.exact, near.verified, near.exact) == (True, True, True, False)
    assert near.message == "the cap is 1000000 and 1000000.01 is claimed: off by 0.01, within 100.00"
    assert not LiabilityGuard().verify_cap(1_000_000, 100, "1000000.01").verified
    assert not LiabilityGuard(100).verify_cap(1_000_000, 100, 0).verified


def test_the_fields_say_what_was_computed():
    cap = LiabilityGuard().verify_cap("$5,000,000", "200%", 15_000_000)
    assert (cap.computed_cap, cap.claimed_cap, cap.difference) == (10_000_000, 15_000_000, 5_000_000)
    assert cap["cap_percentage"] == 200
    tiers = LiabilityGuard().verify_tiered_liability([[1_000_000, 100], [500_000, 50]], 1)
    assert (tiers.tiers, tiers.computed_total) == ((1_000_000, 250_000), 1_250_000)
    limit = LiabilityGuard().verify_indemnity_limit(100_000, "3x", 300_000)
    assert (limit.computed_limit, limit.multiplier, limit.annual_fee) == (300_000, 3, 100_000)


def test_the_context_of_the_caller_makes_no_difference():
    with localcontext(Context(prec=2, rounding=ROUND_FLOOR)):
        result = LiabilityGuard().verify_cap("1234567.89", "12.5", "154320.99")
    assert (result.status, result.computed_cap) == (CheckStatus.VERIFIED, Decimal("154320.98625"))


@pytest.mark.parametrize("many", [1, 1_000])
def test_the_largest_numbers_are_exact(many):
    most = "9" * 24 + "." + "9" * 18
    result = LiabilityGuard(0).verify_tiered_liability([[most, 1_000_000]] * many, 0)
    assert result.computed_total == Decimal(int(most.replace(".", "")) * many).scaleb(-14, Context(prec=200))
