"""LegalGuard combines the guards of the pack (INTERFACES 8)."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from qwed.packs.result import CheckStatus
from qwed_legal import LegalGuard
from qwed_legal.legal_checks import CHECKS
from tests.support.case_tables import each

RIGHT = {"check": "deadline", "signing_date": "2026-01-15", "term": "30 days", "claimed_deadline": "2026-02-14"}
WRONG = RIGHT | {"claimed_deadline": "2026-02-15"}
UNKNOWN = RIGHT | {"term": "promptly"}
CAP = {"check": "liability_cap", "contract_value": 5_000_000, "cap_percentage": 200, "claimed_cap": 10_000_000}


@each(
    ("checks", "status"),
    [
        ([RIGHT], "VERIFIED"),
        ([RIGHT, CAP], "VERIFIED"),
        ([RIGHT, WRONG], "FAILED"),
        ([UNKNOWN, RIGHT], "UNVERIFIABLE"),
        ([UNKNOWN, WRONG, RIGHT], "FAILED"),
        ([RIGHT] * 200, "VERIFIED"),
        ([("deadline", {name: value for name, value in RIGHT.items() if name != "check"})], "VERIFIED"),
        ([{"operation" if name == "check" else name: value for name, value in RIGHT.items()}], "VERIFIED"),
        ([], "UNVERIFIABLE"),
        (None, "UNVERIFIABLE"),
        ("deadline", "UNVERIFIABLE"),
        ([None], "UNVERIFIABLE"),
        ([{}], "UNVERIFIABLE"),
        ([["deadline"]], "UNVERIFIABLE"),
        ([{"check": 5}], "UNVERIFIABLE"),
        ([{"check": "nothing"}], "UNVERIFIABLE"),
        ([{"check": "deadline"}], "UNVERIFIABLE"),
        ([RIGHT | {"beside": 1}], "UNVERIFIABLE"),
        ([RIGHT | {5: 1}], "UNVERIFIABLE"),
        ([RIGHT] * 201, "UNVERIFIABLE"),
    ],
)
def test_the_whole_is_as_good_as_its_worst_check(checks, status):
    assert LegalGuard().verify(checks).status == status


def test_each_check_has_its_result_and_its_name():
    result = LegalGuard().verify([RIGHT, WRONG, UNKNOWN, CAP])
    assert [item.status.value for item in result.results] == ["VERIFIED", "FAILED", "UNVERIFIABLE", "VERIFIED"]
    assert (result.checks_passed, result.checks_failed) == (("deadline", "liability_cap"), ("deadline",))
    assert result.checks_unverifiable == ("deadline",)
    assert "liability_cap: 5000000 x 200 / 100 = 10000000" in result.by_hand


def test_an_unknown_check_lists_the_known_ones():
    result = LegalGuard().verify([{"check": "nothing"}])
    assert result.results[0].known == (*CHECKS,)


def test_the_options_of_the_guard_hold_for_its_checks_unless_a_check_says_otherwise():
    five = RIGHT | {"signing_date": "2026-03-30", "term": "5 business days", "claimed_deadline": "2026-04-08"}
    assert LegalGuard("DE").verify([five]).verified
    assert not LegalGuard().verify([five]).verified
    assert LegalGuard().verify([five | {"country": "DE"}]).verified


def test_a_check_makes_the_options_of_the_guard_stricter_and_never_looser():
    near = CAP | {"claimed_cap": "10000000.01"}
    assert not LegalGuard().verify([near]).verified
    assert LegalGuard(tolerance_percent=1).verify([near]).verified
    assert not LegalGuard(tolerance_percent=1).verify([near | {"tolerance_percent": 0}]).verified
    assert not LegalGuard().verify([near | {"tolerance_percent": 1}]).verified
    text = {"check": "provenance", "content": "plain", "provenance": {}}
    reviewed = LegalGuard(require_human_review=True, allowed_models=["a"])
    loosened = reviewed.verify(
        [text | {"require_human_review": False, "require_disclosure": False, "allowed_models": ["b"]}]
    )
    assert {"human_review", "disclosure", "allowed_model"} <= {*loosened.results[0].checks_failed}


def test_every_verb_is_the_one_of_its_guard():
    guard = LegalGuard(llm_client=lambda _prompt: "yes", clock=lambda: datetime(2026, 4, 1, tzinfo=UTC))
    assert guard.verify_deadline("2026-01-15", "30 business days", "2026-03-02").verified
    assert guard.verify_cap(100, 10, 10).verified
    assert guard.verify_tiered_liability([[100, 10]], 10).verified
    assert guard.verify_indemnity_limit(100, 2, 200).verified
    assert guard.verify_decision_fairness("Is John fit?", "yes", {"John": "Jane"}).verified
    future = guard.verify_provenance("text", {"generation_timestamp": "2026-05-01T00:00:00Z"})
    assert "generation_timestamp" in future.checks_failed


def test_without_a_client_fairness_is_unverifiable():
    result = LegalGuard().verify_decision_fairness("Is John fit?", "yes", {"John": "Jane"})
    assert result.status is CheckStatus.UNVERIFIABLE


@pytest.mark.parametrize("guard", ["DeadlineGuard", "LegalGuard", "FairnessGuard"])
def test_importing_a_guard_imports_no_calendar_and_no_other_pack(guard):
    program = (
        f"import sys; from qwed_legal import {guard}; {guard}"
        "; print([name for name in ('holidays', 'qwed_tax', 'qwed_finance', 'qwed_ucp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
