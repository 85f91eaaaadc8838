"""The framework mapping states figures of the report and claims nothing more."""

import re
from typing import Any

import msgspec
import pytest

from qwed.reports.framework_mapping import CLAUSES, EU_AI_ACT, ISO_42001, OWASP_AGENTIC, mapping_of, plural
from qwed.reports.report_data import (
    STATEMENT,
    Clause,
    CodeCount,
    DecisionCounts,
    DecisionStatistics,
    ExecutionStatistics,
    LifecycleStatistics,
    ReportData,
    ReportedApprovals,
    ReportedTrust,
    ReportSummary,
)
from tests.unit.reports.sample_reports import empty, sample


def _clause(name: str, **parts: Any) -> str:
    data: ReportData = msgspec.structs.replace(sample(), **parts)
    (match,) = (clause for clause in mapping_of(data).clauses if clause.clause == name)
    return match.shows


def test_the_frameworks_and_their_clauses() -> None:
    listed: dict[str, list[str]] = {}
    for clause in mapping_of(sample()).clauses:
        listed.setdefault(clause.framework, []).append(clause.clause)
    assert list(listed) == [EU_AI_ACT, ISO_42001, OWASP_AGENTIC]
    assert listed[EU_AI_ACT] == ["Art. 12(1)", "Art. 12(2)(a)", "Art. 12(2)(b)", "Art. 12(2)(c)", "Art. 12(3)"]
    assert listed[ISO_42001] == ["9.1", "10.2", "A.3.2", "A.6.2.6", "A.6.2.8", "A.9.2", "A.9.4"]
    assert listed[OWASP_AGENTIC] == [f"ASI{number:02}" for number in range(1, 11)]


def test_one_sentence_says_that_nothing_is_certified() -> None:
    assert STATEMENT.count(".") == 1
    assert "claims no certification" in STATEMENT
    assert mapping_of(sample()).statement == STATEMENT


@pytest.mark.parametrize("data", [sample(), empty()], ids=["full", "empty"])
def test_no_clause_claims_to_comply(data: ReportData) -> None:
    claims = re.compile(r"certif|complian|complies|conform|fulfil|meets|satisf", re.IGNORECASE)
    assert [clause for clause in mapping_of(data).clauses if claims.search(clause.shows)] == []


@pytest.mark.parametrize("clause", mapping_of(empty()).clauses, ids=lambda clause: clause.clause)
def test_a_report_about_nothing_has_a_sentence_for_every_clause(clause: Clause) -> None:
    assert clause.shows.endswith(".")
    assert "None" not in clause.shows


def test_the_figures_are_those_of_the_report() -> None:
    assert "1,231 activities" in _clause("Art. 12(1)")
    assert "18,422 entries under a signed head" in _clause("Art. 12(1)")
    assert _clause("9.1", summary=ReportSummary(total_actions=200, denied=3, total_cost_usd=1.5)) == (
        "200 decisions in the period; denial rate: 1.50%; cost: 1.5 USD."
    )
    text = _clause("Art. 12(2)(c)", executions=ExecutionStatistics(done=7, failed=2, unpermitted=1))
    assert "7 executions reported as done, 2 as failed, 1 without permission" in text
    waited = ReportedApprovals(requested=9, approved=4, rejected=3, expired=1, open=1, self_approved=2)
    text = _clause("A.9.2", approvals=waited)
    assert "9 requests for a person, 4 approved, 3 rejected, 1 run out, 1 still open" in text
    assert "2 approved by the key that asked" in _clause("ASI09", approvals=waited)


def test_refusals_are_counted_by_reason() -> None:
    codes = {
        "QWED-AGENT-004": 12,
        "QWED-AGENT-ACTION-001": 5,
        "QWED-AGENT-005": 3,
        "QWED-AGENT-LOOP-002": 4,
        "QWED-AGENT-LOOP-004": 2,
        "QWED-AGENT-BUDGET-003": 8,
        "QWED-AGENT-TRUST-001": 31,
    }
    rows = tuple(CodeCount(code=code, meaning="", count=count) for code, count in codes.items())
    statistics = DecisionStatistics(refused_by_code=rows)
    assert _clause("ASI02", decisions=statistics).startswith("12 refused as a tool or engine that is not allowed, 5 as")
    assert "17 decisions were refused" in _clause("A.9.4", decisions=statistics)
    assert "31 refused for want of trust" in _clause("ASI03", decisions=statistics)
    assert "6 refused by the loop checks, 8 by the budget" in _clause("ASI08", decisions=statistics)


def test_code_and_shell_commands_are_counted_together() -> None:
    rows = (
        DecisionCounts(name="execute_code", total=5, approved=1, corrected=1, pending=1, denied=2),
        DecisionCounts(name="shell_command", total=3, denied=3),
        DecisionCounts(name="execute_sql", total=99, approved=99),
    )
    text = _clause("ASI05", decisions=DecisionStatistics(by_action_type=rows))
    assert text == "8 requests to run code or a shell command: 2 permitted at once, 1 left to a person, 5 DENIED."


def test_a_loss_of_trust_is_stated() -> None:
    lost = {
        "trust": ReportedTrust(level=0, name="untrusted", degraded=1),
        "standing": LifecycleStatistics(suspended=1, complaints=2),
    }
    text = "trust was lost by rule 1 time; 1 suspension and 2 complaints, 0 uses of the kill switch"
    assert text in _clause("ASI10", **lost)


@pytest.mark.parametrize("clause", ["ASI01", "ASI04", "ASI06", "ASI07", "Art. 12(3)"])
def test_what_the_record_does_not_show_is_said(clause: str) -> None:
    assert re.search(r"not (show|recorded|part)", _clause(clause))


def test_numbers_have_their_nouns() -> None:
    assert (plural(0, "day"), plural(1, "day"), plural(1_000, "day")) == ("0 days", "1 day", "1,000 days")
    assert plural(2, "entry", "entries") == "2 entries"


def test_no_clause_stands_twice() -> None:
    assert len({(row.framework, row.clause) for row in CLAUSES}) == len(CLAUSES)
