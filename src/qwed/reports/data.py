"""What a compliance report says, before it has a format. Every member is documented in docs/reports.md."""

import hashlib
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

VERSION = 1
MOST_LISTED = 500
"""Entries in each list of a report, the newest ones; the counts beside a list are of all."""
STATEMENT = (
    "The mapping to frameworks states what the recorded data shows; it claims no certification and no conformity, and "
    "it is not legal advice."
)

Usd = int | float
T = TypeVar("T")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything in a report: every member is always there, null where there is nothing."""


class ReportPeriod(Part, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """From inclusive, to exclusive."""

    since: str
    until: str


class Listed(Part, Generic[T], frozen=True, kw_only=True):
    """The newest of something, oldest of them first, and how many there are in all."""

    total: int = 0
    entries: tuple[T, ...] = ()


class Subject(Part, frozen=True, kw_only=True):
    """The agent as it stands when the report is made."""

    agent_id: str
    did: str
    organisation_id: str
    name: str
    type: str
    description: str | None
    principal_id: str
    framework: str | None
    model: str | None
    status: str
    trust_level: int
    trust_name: str
    created_at: str
    permissions: dict[str, Any]
    budget: dict[str, Usd | None]


class Summary(Part, frozen=True, kw_only=True):
    """Spec 7.2, `summary`, of the period."""

    total_actions: int = 0
    approved: int = 0
    denied: int = 0
    corrected: int = 0
    pending: int = 0
    budget_exceeded: int = 0
    total_cost_usd: Usd = 0


class Counts(Part, frozen=True, kw_only=True):
    """Decisions of one kind of thing."""

    name: str
    total: int = 0
    approved: int = 0
    corrected: int = 0
    pending: int = 0
    denied: int = 0
    budget_exceeded: int = 0


class Day(Part, frozen=True, kw_only=True):
    """Decisions of one UTC day, and what was used on it."""

    day: str
    total: int = 0
    approved: int = 0
    corrected: int = 0
    pending: int = 0
    denied: int = 0
    budget_exceeded: int = 0
    requests: int = 0
    """What counts against the limits of requests: not what was refused at the door or by the budget itself."""
    cost_usd: Usd = 0
    tokens: int = 0


class CodeCount(Part, frozen=True, kw_only=True):
    """How often a decision was refused with one error code."""

    code: str
    meaning: str
    count: int


class Decisions(Part, frozen=True, kw_only=True):
    """Every decision of the period, counted."""

    by_day: tuple[Day, ...] = ()
    """Days on which something was decided or charged."""
    refused_by_code: tuple[CodeCount, ...] = ()
    by_risk: tuple[Counts, ...] = ()
    by_action_type: tuple[Counts, ...] = ()
    by_engine: tuple[Counts, ...] = ()


class Refusal(Part, frozen=True, kw_only=True):
    """One decision that permitted nothing."""

    at: str
    activity_id: str
    decision: str
    code: str | None
    action_type: str | None
    risk_level: str | None
    log_index: int


class StandingChange(Part, frozen=True, kw_only=True):
    """The agent registered, stopped, let go on, or given another token; or its whole organisation stopped."""

    at: str
    event: str
    by: str
    reason: str | None
    content: str
    """`kept`, or `erased`, `expired` or `tampered`: then what was said about it is gone."""
    activity_id: str
    log_index: int


class TrustChange(StandingChange, frozen=True, kw_only=True):
    """Trust asked for, raised, lowered by a person, or lost by itself."""

    level_before: int | None
    level_after: int | None
    approver: str | None
    self_approved: bool
    about: str | None


class Revocation(StandingChange, frozen=True, kw_only=True):
    """An attestation that is not to be relied on any more."""

    attestation_id: str


class Trust(Part, frozen=True, kw_only=True):
    """The level now, and every change in the period."""

    level: int
    name: str
    raised: int = 0
    lowered: int = 0
    degraded: int = 0
    history: Listed[TrustChange] = Listed()


class Approval(Part, frozen=True, kw_only=True):
    """One request for a person, and what became of it within the period; `open` where nothing did."""

    kind: str
    state: str
    action_id: str
    action_type: str | None
    risk_level: str | None
    requested_at: str | None
    requested_by: str | None
    settled_at: str | None
    settled_by: str | None
    approver: str | None
    """Whom the settling key's holder named."""
    reason: str | None
    content: str
    self_approved: bool
    settled_in: str | None


class Approvals(Part, frozen=True, kw_only=True):
    """What waited for a person."""

    requested: int = 0
    approved: int = 0
    rejected: int = 0
    expired: int = 0
    open: int = 0
    self_approved: int = 0
    settled_by: tuple[str, ...] = ()
    """The keys that settled something."""
    history: Listed[Approval] = Listed()


class Execution(Part, frozen=True, kw_only=True):
    """One report of an execution that failed or was not permitted."""

    at: str
    outcome: str
    action_id: str
    by: str
    activity_id: str
    log_index: int


class Executions(Part, frozen=True, kw_only=True):
    """What the agent, or someone for it, says became of its actions."""

    done: int = 0
    failed: int = 0
    unpermitted: int = 0
    exceptions: Listed[Execution] = Listed()


class Standing(Part, frozen=True, kw_only=True):
    """Whether the agent might act at all."""

    suspended: int = 0
    complaints: int = 0
    reactivated: int = 0
    token_rotated: int = 0
    halted: int = 0
    """How often the kill switch stopped every agent of the organisation; these leaves are the organisation's."""
    resumed: int = 0
    history: Listed[StandingChange] = Listed()


class Contents(Part, frozen=True, kw_only=True):
    """Of how many activities the content is still there; the activities themselves always are."""

    kept: int = 0
    erased: int = 0
    expired: int = 0
    tampered: int = 0
    """Of how many it is not what was put there."""


class LogHead(Part, frozen=True, kw_only=True):
    """The signed head of the organisation's log."""

    log_id: str
    size: int
    root: str
    time: str
    signature: str


class LogReceipt(Part, frozen=True, kw_only=True):
    """A leaf with the proof that it is in the log: RFC 6962 audit path under the head."""

    index: int
    leaf: str
    path: tuple[str, ...]
    head: LogHead


class Log(Part, frozen=True, kw_only=True):
    """Where the record stands, and proofs for its first and last entry of the period."""

    issuer: str
    kid: str | None
    head: LogHead | None
    first: LogReceipt | None = None
    last: LogReceipt | None = None
    leaves_sha256: str = ""
    """SHA-256 over the RFC 6962 hashes of the period's leaves, newest first."""


class Attested(msgspec.Struct, frozen=True, gc=False):
    """Which leaf carries which attestation."""

    log_index: int
    attestation_id: str


class Clause(Part, frozen=True, kw_only=True):
    """A clause of a framework, and what the data shows for it."""

    framework: str
    clause: str
    title: str
    shows: str


class Frameworks(Part, frozen=True, kw_only=True):
    """Frameworks that auditors work with."""

    statement: str = STATEMENT
    clauses: tuple[Clause, ...] = ()


class ReportData(Part, frozen=True, kw_only=True):
    """One report. `report_id` is made from everything else, so the same data has the same id."""

    report_id: str = ""
    report_version: int = VERSION
    generated_at: str
    """The time of the log's head: what the report says is as of then."""
    agent_id: str
    period: ReportPeriod
    summary: Summary
    activity_count: int
    agent: Subject
    trust: Trust
    decisions: Decisions
    refusals: Listed[Refusal] = Listed()
    approvals: Approvals = Approvals()
    executions: Executions = Executions()
    standing: Standing = Standing()
    revocations: Listed[Revocation] = Listed()
    contents: Contents = Contents()
    log: Log
    verification: tuple[str, ...] = ()
    mapping: Frameworks = Frameworks()
    attestations: tuple[Attested, ...] = ()


_encode = msgspec.json.Encoder().encode
_AT_ONCE = 1_000


def identified(data: ReportData) -> ReportData:
    """The report with the id that its data gives it."""
    bare = msgspec.structs.replace(data, report_id="", attestations=())
    digest = hashlib.sha256(_encode(bare))
    for chunk in in_chunks(data.attestations):
        digest.update(_encode(chunk))
    return msgspec.structs.replace(data, report_id=f"rpt_{digest.hexdigest()[:32]}")


def in_chunks(values: tuple[T, ...], size: int = _AT_ONCE) -> Iterable[tuple[T, ...]]:
    """The values, so many at a time."""
    return (values[start : start + size] for start in range(0, len(values), size))
