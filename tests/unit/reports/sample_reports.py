"""Sample reports: an everyday one, an empty one, and large or hostile ones."""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import msgspec

from qwed.reports.framework_mapping import mapping_of
from qwed.reports.report_data import (
    AttestationEntry,
    BoundedList,
    CodeCount,
    ContentStatistics,
    DailyCounts,
    DecisionCounts,
    DecisionStatistics,
    ExecutionStatistics,
    LifecycleChange,
    LifecycleStatistics,
    LogHead,
    LogReceipt,
    ReportData,
    ReportedAgent,
    ReportedApproval,
    ReportedApprovals,
    ReportedExecution,
    ReportedLog,
    ReportedRefusal,
    ReportedTrust,
    ReportPeriod,
    ReportSummary,
    TrustChange,
    with_report_id,
)
from qwed.reports.verification_howto import STEPS

_ROOT = "9f" * 32
_ORG = "org_1f2e3d4c5b6a798877665544"
_HEAD = LogHead(
    log_id=_ORG,
    size=18_422,
    root=_ROOT,
    time="2025-12-20T00:30:00.125Z",
    signature="eyJhbGciOiJFUzI1NiJ9." + "QmFzZTY0" * 30 + ".c2lnbmF0dXJl" * 6,
)


def _id(prefix: str, number: int) -> str:
    return f"{prefix}_{number:026x}"


def subject(**changed: Any) -> ReportedAgent:
    """Return an agent."""
    fields: dict[str, Any] = {
        "agent_id": _id("agent", 7)[:30],
        "did": f"did:qwed:agent:{_id('agent', 7)[:30]}",
        "organisation_id": _ORG,
        "name": "invoice assistant",
        "type": "semi_autonomous",
        "description": "reads invoices and drafts payments",
        "principal_id": "finance@example.com",
        "framework": "langchain",
        "model": "large-1",
        "status": "active",
        "trust_level": 1,
        "trust_name": "supervised",
        "created_at": "2025-10-02T08:00:00Z",
        "permissions": {
            "allowed_engines": ["sql", "math"],
            "allowed_tools": ["database_read", "send_email"],
            "blocked_tools": ["shell_command"],
            "max_rows": 1_000,
            "allowed_tables": None,
        },
        "budget": {
            "max_daily_cost_usd": 100,
            "max_per_request_usd": 1.5,
            "max_requests_per_day": 5_000,
            "max_tokens_per_day": None,
        },
    }
    return ReportedAgent(**(fields | changed))


@dataclass(frozen=True)
class SampleSize:
    """Number of entries of each kind in a sample."""

    days: int = 19
    first_day: str = "2025-12-01"
    refusals: int = 40
    approvals: int = 12
    trust_changes: int = 4
    attestations: int = 200
    name: str = "invoice assistant"
    principal_id: str = "finance@example.com"
    reason: str = "thirty days without an incident"
    approver: str | None = "Ada Lovelace"
    by: str = "key_5a1b2c3d4e5f60718293a4b5"


def sample(**changed: Any) -> ReportData:
    """Return a complete report."""
    size = replace(SampleSize(), **changed)
    days = _days(size)
    total = sum(day.total for day in days)
    first = date.fromisoformat(size.first_day)
    data = ReportData(
        generated_at=_HEAD.time,
        agent_id=subject().agent_id,
        period=ReportPeriod(since=f"{first}T00:00:00Z", until=f"{first + timedelta(days=size.days)}T00:00:00Z"),
        summary=ReportSummary(
            total_actions=total,
            approved=sum(day.approved for day in days),
            denied=sum(day.denied for day in days),
            corrected=sum(day.corrected for day in days),
            pending=sum(day.pending for day in days),
            budget_exceeded=sum(day.budget_exceeded for day in days),
            total_cost_usd=round(sum(day.cost_usd for day in days), 2),
        ),
        activity_count=total + 60,
        agent=subject(name=size.name, principal_id=size.principal_id),
        trust=_trust(size),
        decisions=DecisionStatistics(
            by_day=days,
            refused_by_code=(
                CodeCount(code="QWED-AGENT-TRUST-001", meaning="insufficient trust level", count=31),
                CodeCount(code="QWED-AGENT-004", meaning="tool or engine not allowed", count=12),
                CodeCount(code="QWED-AGENT-LOOP-003", meaning="repetitive action loop detected", count=3),
                CodeCount(code="QWED-AGENT-BUDGET-001", meaning="daily cost exceeded", count=2),
            ),
            by_risk=(
                DecisionCounts(name="low", total=total - 60, approved=total - 60),
                DecisionCounts(name="critical", total=60, approved=3, pending=12, denied=45),
            ),
            by_action_type=(
                DecisionCounts(name="execute_sql", total=total - 20, approved=total - 20),
                DecisionCounts(name="execute_code", total=20, approved=2, pending=3, denied=15),
            ),
            by_engine=(DecisionCounts(name="sql", total=total - 20, approved=total - 20),),
        ),
        refusals=BoundedList(total=size.refusals * 2, entries=tuple(_refusal(n) for n in range(size.refusals))),
        approvals=_approvals(size),
        executions=ExecutionStatistics(
            done=810,
            failed=2,
            unpermitted=1,
            exceptions=BoundedList(total=3, entries=tuple(_execution(n) for n in range(3))),
        ),
        standing=_standing(size),
        contents=ContentStatistics(kept=total + 48, erased=10, expired=2),
        log=_log(),
        verification=STEPS,
        attestations=tuple(AttestationEntry(18_000 - n, _id("att", 10**20 + n)) for n in range(size.attestations)),
    )
    return with_report_id(msgspec.structs.replace(data, mapping=mapping_of(data)))


def _days(size: SampleSize) -> tuple[DailyCounts, ...]:
    first = date.fromisoformat(size.first_day)
    return tuple(
        DailyCounts(
            day=str(first + timedelta(days=n)),
            total=(counts := (40 + n * 7 % 31, n % 3, n % 4, n * 5 % 11, n % 7 == 0))[0] + sum(counts[1:]),
            approved=counts[0],
            corrected=counts[1],
            pending=counts[2],
            denied=counts[3],
            budget_exceeded=int(counts[4]),
            requests=sum(counts) - counts[4],
            cost_usd=round(0.01 * counts[0], 2),
            tokens=counts[0] * 150,
        )
        for n in range(size.days)
    )


def _trust(size: SampleSize) -> ReportedTrust:
    events = ("trust_requested", "trust_raised", "trust_lowered", "trust_degraded")
    history = tuple(
        TrustChange(
            at=f"2025-12-{n % 19 + 1:02d}T09:15:00Z",
            event=events[n % 4],
            level_before=1,
            level_after=2,
            by="qwed" if n % 4 == 3 else size.by,
            reason=None if n % 4 == 2 else size.reason,
            content="erased" if n % 4 == 2 else "kept",
            approver=size.approver if n % 4 == 1 else None,
            self_approved=n % 4 == 1,
            about=None,
            activity_id=_id("act", n),
            log_index=100 + n,
        )
        for n in range(size.trust_changes)
    )
    listed = BoundedList(total=len(history), entries=history)
    return ReportedTrust(level=1, name="supervised", raised=1, lowered=1, degraded=1, history=listed)


def _approvals(size: SampleSize) -> ReportedApprovals:
    states = ("approved", "rejected", "expired", "open")
    history = tuple(
        ReportedApproval(
            kind="trust_elevation" if n % 8 == 7 else "action",
            state=states[n % 4],
            action_id=_id("act", n),
            action_type=None if n % 8 == 7 else "send_email",
            risk_level=None if n % 8 == 7 else "medium",
            requested_at=f"2025-12-{n % 19 + 1:02d}T10:00:00.250Z",
            requested_by=subject().agent_id,
            settled_at=None if n % 4 == 3 else f"2025-12-{n % 19 + 1:02d}T11:00:00Z",
            settled_by=None if n % 4 == 3 else "qwed" if n % 4 == 2 else size.by,
            approver=size.approver if n % 4 == 0 else None,
            reason=None if n % 4 == 3 else size.reason,
            content="expired" if n % 9 == 5 else "kept",
            self_approved=n == 4,
            settled_in=None if n % 4 == 3 else _id("act", 1_000 + n),
        )
        for n in range(size.approvals)
    )
    return ReportedApprovals(
        requested=size.approvals,
        approved=3,
        rejected=3,
        expired=3,
        open=3,
        self_approved=1,
        settled_by=(size.by,),
        history=BoundedList(total=size.approvals, entries=history),
    )


def _standing(size: SampleSize) -> LifecycleStatistics:
    events = ("suspended", "reactivated", "complaint", "token_rotated")
    history = tuple(
        LifecycleChange(
            at=f"2025-12-0{n + 1}T12:00:00Z",
            event=event,
            by=size.by,
            reason=size.reason if n < 3 else None,
            content="kept",
            activity_id=_id("act", 2_000 + n),
            log_index=300 + n,
        )
        for n, event in enumerate(events)
    )
    return LifecycleStatistics(
        suspended=1,
        complaints=1,
        reactivated=1,
        token_rotated=1,
        history=BoundedList(total=len(history), entries=history),
    )


def _refusal(number: int) -> ReportedRefusal:
    return ReportedRefusal(
        at=f"2025-12-{number % 19 + 1:02d}T13:00:00.{number % 1000:03d}Z",
        activity_id=_id("act", 5_000 + number),
        decision="DENIED",
        code="QWED-AGENT-TRUST-001",
        action_type="shell_command",
        risk_level="critical",
        log_index=5_000 + number,
    )


def _execution(number: int) -> ReportedExecution:
    return ReportedExecution(
        at="2025-12-05T14:00:00Z",
        outcome=("failed", "failed", "executed_unpermitted")[number],
        action_id=_id("act", 40 + number),
        by=subject().agent_id,
        activity_id=_id("act", 3_000 + number),
        log_index=900 + number,
    )


def _log() -> ReportedLog:
    def receipt(index: int) -> LogReceipt:
        members = {
            "activity_id": _id("act", index),
            "by": "gate",
            "event": "registered",
            "time_ms": 1764547200000,
            "v": 2,
        }
        leaf = msgspec.json.encode(members).decode()
        return LogReceipt(index=index, leaf=leaf, path=tuple(f"{n:064x}" for n in range(15)), head=_HEAD)

    return ReportedLog(
        issuer="did:qwed:node:0123456789abcdef0123456789abcdef",
        kid="N4iMFVkk9Zq1XoP3QvLmU6cTt2hJd0sYbGrEwAaKxpc",
        head=_HEAD,
        first=receipt(100),
        last=receipt(18_400),
        leaves_sha256="ab" * 32,
    )


def empty() -> ReportData:
    """Return the report of an agent without activities, on a log without a head."""
    bare = ReportData(
        generated_at="2025-12-20T00:00:00Z",
        agent_id=subject().agent_id,
        period=ReportPeriod(since="2025-12-01T00:00:00Z", until="2025-12-20T00:00:00Z"),
        summary=ReportSummary(),
        activity_count=0,
        agent=subject(description=None, framework=None, model=None),
        trust=ReportedTrust(level=0, name="untrusted"),
        decisions=DecisionStatistics(),
        log=ReportedLog(issuer="did:qwed:node:00", kid=None, head=None),
        verification=STEPS,
    )
    return with_report_id(msgspec.structs.replace(bare, mapping=mapping_of(bare)))
