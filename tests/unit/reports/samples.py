"""Reports made by hand: an everyday one, an empty one, and ones that are large or hostile."""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import msgspec

from qwed.reports.checking import STEPS
from qwed.reports.data import (
    Approval,
    Approvals,
    Attested,
    CodeCount,
    Contents,
    Counts,
    Day,
    Decisions,
    Execution,
    Executions,
    Listed,
    Log,
    LogHead,
    LogReceipt,
    Refusal,
    ReportData,
    ReportPeriod,
    Standing,
    StandingChange,
    Subject,
    Summary,
    Trust,
    TrustChange,
    identified,
)
from qwed.reports.mapping import mapping_of

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


def subject(**changed: Any) -> Subject:
    """An agent."""
    known: dict[str, Any] = {
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
    return Subject(**(known | changed))


@dataclass(frozen=True)
class Made:
    """How much of everything a sample has."""

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
    """A whole report."""
    made = replace(Made(), **changed)
    days = _days(made)
    total = sum(day.total for day in days)
    first = date.fromisoformat(made.first_day)
    data = ReportData(
        generated_at=_HEAD.time,
        agent_id=subject().agent_id,
        period=ReportPeriod(since=f"{first}T00:00:00Z", until=f"{first + timedelta(days=made.days)}T00:00:00Z"),
        summary=Summary(
            total_actions=total,
            approved=sum(day.approved for day in days),
            denied=sum(day.denied for day in days),
            corrected=sum(day.corrected for day in days),
            pending=sum(day.pending for day in days),
            budget_exceeded=sum(day.budget_exceeded for day in days),
            total_cost_usd=round(sum(day.cost_usd for day in days), 2),
        ),
        activity_count=total + 60,
        agent=subject(name=made.name, principal_id=made.principal_id),
        trust=_trust(made),
        decisions=Decisions(
            by_day=days,
            refused_by_code=(
                CodeCount(code="QWED-AGENT-TRUST-001", meaning="insufficient trust level", count=31),
                CodeCount(code="QWED-AGENT-004", meaning="tool or engine not allowed", count=12),
                CodeCount(code="QWED-AGENT-LOOP-003", meaning="repetitive action loop detected", count=3),
                CodeCount(code="QWED-AGENT-BUDGET-001", meaning="daily cost exceeded", count=2),
            ),
            by_risk=(
                Counts(name="low", total=total - 60, approved=total - 60),
                Counts(name="critical", total=60, approved=3, pending=12, denied=45),
            ),
            by_action_type=(
                Counts(name="execute_sql", total=total - 20, approved=total - 20),
                Counts(name="execute_code", total=20, approved=2, pending=3, denied=15),
            ),
            by_engine=(Counts(name="sql", total=total - 20, approved=total - 20),),
        ),
        refusals=Listed(total=made.refusals * 2, entries=tuple(_refusal(n) for n in range(made.refusals))),
        approvals=_approvals(made),
        executions=Executions(
            done=810,
            failed=2,
            unpermitted=1,
            exceptions=Listed(total=3, entries=tuple(_execution(n) for n in range(3))),
        ),
        standing=_standing(made),
        contents=Contents(kept=total + 48, erased=10, expired=2),
        log=_log(),
        verification=STEPS,
        attestations=tuple(Attested(18_000 - n, _id("att", 10**20 + n)) for n in range(made.attestations)),
    )
    return identified(msgspec.structs.replace(data, mapping=mapping_of(data)))


def _days(made: Made) -> tuple[Day, ...]:
    first = date.fromisoformat(made.first_day)
    return tuple(
        Day(
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
        for n in range(made.days)
    )


def _trust(made: Made) -> Trust:
    events = ("trust_requested", "trust_raised", "trust_lowered", "trust_degraded")
    history = tuple(
        TrustChange(
            at=f"2025-12-{n % 19 + 1:02d}T09:15:00Z",
            event=events[n % 4],
            level_before=1,
            level_after=2,
            by="qwed" if n % 4 == 3 else made.by,
            reason=None if n % 4 == 2 else made.reason,
            content="erased" if n % 4 == 2 else "kept",
            approver=made.approver if n % 4 == 1 else None,
            self_approved=n % 4 == 1,
            about=None,
            activity_id=_id("act", n),
            log_index=100 + n,
        )
        for n in range(made.trust_changes)
    )
    listed = Listed(total=len(history), entries=history)
    return Trust(level=1, name="supervised", raised=1, lowered=1, degraded=1, history=listed)


def _approvals(made: Made) -> Approvals:
    states = ("approved", "rejected", "expired", "open")
    history = tuple(
        Approval(
            kind="trust_elevation" if n % 8 == 7 else "action",
            state=states[n % 4],
            action_id=_id("act", n),
            action_type=None if n % 8 == 7 else "send_email",
            risk_level=None if n % 8 == 7 else "medium",
            requested_at=f"2025-12-{n % 19 + 1:02d}T10:00:00.250Z",
            requested_by=subject().agent_id,
            settled_at=None if n % 4 == 3 else f"2025-12-{n % 19 + 1:02d}T11:00:00Z",
            settled_by=None if n % 4 == 3 else "qwed" if n % 4 == 2 else made.by,
            approver=made.approver if n % 4 == 0 else None,
            reason=None if n % 4 == 3 else made.reason,
            content="expired" if n % 9 == 5 else "kept",
            self_approved=n == 4,
            settled_in=None if n % 4 == 3 else _id("act", 1_000 + n),
        )
        for n in range(made.approvals)
    )
    return Approvals(
        requested=made.approvals,
        approved=3,
        rejected=3,
        expired=3,
        open=3,
        self_approved=1,
        settled_by=(made.by,),
        history=Listed(total=made.approvals, entries=history),
    )


def _standing(made: Made) -> Standing:
    events = ("suspended", "reactivated", "complaint", "token_rotated")
    history = tuple(
        StandingChange(
            at=f"2025-12-0{n + 1}T12:00:00Z",
            event=event,
            by=made.by,
            reason=made.reason if n < 3 else None,
            content="kept",
            activity_id=_id("act", 2_000 + n),
            log_index=300 + n,
        )
        for n, event in enumerate(events)
    )
    return Standing(
        suspended=1, complaints=1, reactivated=1, token_rotated=1, history=Listed(total=len(history), entries=history)
    )


def _refusal(number: int) -> Refusal:
    return Refusal(
        at=f"2025-12-{number % 19 + 1:02d}T13:00:00.{number % 1000:03d}Z",
        activity_id=_id("act", 5_000 + number),
        decision="DENIED",
        code="QWED-AGENT-TRUST-001",
        action_type="shell_command",
        risk_level="critical",
        log_index=5_000 + number,
    )


def _execution(number: int) -> Execution:
    return Execution(
        at="2025-12-05T14:00:00Z",
        outcome=("failed", "failed", "executed_unpermitted")[number],
        action_id=_id("act", 40 + number),
        by=subject().agent_id,
        activity_id=_id("act", 3_000 + number),
        log_index=900 + number,
    )


def _log() -> Log:
    def receipt(index: int) -> LogReceipt:
        known = {
            "activity_id": _id("act", index),
            "by": "gate",
            "event": "registered",
            "time_ms": 1764547200000,
            "v": 2,
        }
        leaf = msgspec.json.encode(known).decode()
        return LogReceipt(index=index, leaf=leaf, path=tuple(f"{n:064x}" for n in range(15)), head=_HEAD)

    return Log(
        issuer="did:qwed:node:0123456789abcdef0123456789abcdef",
        kid="N4iMFVkk9Zq1XoP3QvLmU6cTt2hJd0sYbGrEwAaKxpc",
        head=_HEAD,
        first=receipt(100),
        last=receipt(18_400),
        leaves_sha256="ab" * 32,
    )


def empty() -> ReportData:
    """An agent that did nothing, on a log without a head."""
    bare = ReportData(
        generated_at="2025-12-20T00:00:00Z",
        agent_id=subject().agent_id,
        period=ReportPeriod(since="2025-12-01T00:00:00Z", until="2025-12-20T00:00:00Z"),
        summary=Summary(),
        activity_count=0,
        agent=subject(description=None, framework=None, model=None),
        trust=Trust(level=0, name="untrusted"),
        decisions=Decisions(),
        log=Log(issuer="did:qwed:node:00", kid=None, head=None),
        verification=STEPS,
    )
    return identified(msgspec.structs.replace(bare, mapping=mapping_of(bare)))
