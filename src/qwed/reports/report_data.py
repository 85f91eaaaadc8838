"""Data model of a compliance report, independent of its format. docs/reports.md documents every member."""

import hashlib
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

VERSION = 1
MAX_LIST_ENTRIES = 500
"""Entries in each list, newest first kept; the totals next to a list count all."""
STATEMENT = (
    "The mapping to frameworks states what the recorded data shows; it claims no certification and no conformity, and "
    "it is not legal advice."
)

Usd = int | float
T = TypeVar("T")


class ReportPart(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all parts: every member is always present, null if empty."""


class ReportPeriod(ReportPart, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """Period; `from` is inclusive, `to` is exclusive."""

    since: str
    until: str


class BoundedList(ReportPart, Generic[T], frozen=True, kw_only=True):
    """The newest entries, in ascending order, and the total number."""

    total: int = 0
    entries: tuple[T, ...] = ()


class ReportedAgent(ReportPart, frozen=True, kw_only=True):
    """The agent at the time of the report."""

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


class ReportSummary(ReportPart, frozen=True, kw_only=True):
    """Decision counts and cost of the period (spec 7.2, `summary`)."""

    total_actions: int = 0
    approved: int = 0
    denied: int = 0
    corrected: int = 0
    pending: int = 0
    budget_exceeded: int = 0
    total_cost_usd: Usd = 0


class DecisionCounts(ReportPart, frozen=True, kw_only=True):
    """Decision counts of one category."""

    name: str
    total: int = 0
    approved: int = 0
    corrected: int = 0
    pending: int = 0
    denied: int = 0
    budget_exceeded: int = 0


class DailyCounts(ReportPart, frozen=True, kw_only=True):
    """Decision counts and usage of one UTC day."""

    day: str
    total: int = 0
    approved: int = 0
    corrected: int = 0
    pending: int = 0
    denied: int = 0
    budget_exceeded: int = 0
    requests: int = 0
    """Requests counted against the request limits; those refused before admission or by the budget are not."""
    cost_usd: Usd = 0
    tokens: int = 0


class CodeCount(ReportPart, frozen=True, kw_only=True):
    """Number of refusals with one error code."""

    code: str
    meaning: str
    count: int


class DecisionStatistics(ReportPart, frozen=True, kw_only=True):
    """Counts of all decisions of the period."""

    by_day: tuple[DailyCounts, ...] = ()
    """Days with a decision or a charge."""
    refused_by_code: tuple[CodeCount, ...] = ()
    by_risk: tuple[DecisionCounts, ...] = ()
    by_action_type: tuple[DecisionCounts, ...] = ()
    by_engine: tuple[DecisionCounts, ...] = ()


class ReportedRefusal(ReportPart, frozen=True, kw_only=True):
    """One decision that permitted nothing."""

    at: str
    activity_id: str
    decision: str
    code: str | None
    action_type: str | None
    risk_level: str | None
    log_index: int


class LifecycleChange(ReportPart, frozen=True, kw_only=True):
    """Registration, suspension, reactivation or token rotation of the agent, or a stop of its organisation."""

    at: str
    event: str
    by: str
    reason: str | None
    content: str
    """`kept`; or `erased`, `expired` or `tampered`, in which case the reason is gone."""
    activity_id: str
    log_index: int


class TrustChange(LifecycleChange, frozen=True, kw_only=True):
    """A trust request, a change of trust by a person, or a degradation by rule."""

    level_before: int | None
    level_after: int | None
    approver: str | None
    self_approved: bool
    about: str | None


class Revocation(LifecycleChange, frozen=True, kw_only=True):
    """A revoked attestation."""

    attestation_id: str


class ReportedTrust(ReportPart, frozen=True, kw_only=True):
    """Current level and every change in the period."""

    level: int
    name: str
    raised: int = 0
    lowered: int = 0
    degraded: int = 0
    history: BoundedList[TrustChange] = BoundedList()


class ReportedApproval(ReportPart, frozen=True, kw_only=True):
    """One approval request and its outcome within the period; `open` if there is none."""

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
    """Approver as stated by the holder of the deciding key."""
    reason: str | None
    content: str
    self_approved: bool
    settled_in: str | None


class ReportedApprovals(ReportPart, frozen=True, kw_only=True):
    """Approval requests of the period."""

    requested: int = 0
    approved: int = 0
    rejected: int = 0
    expired: int = 0
    open: int = 0
    self_approved: int = 0
    settled_by: tuple[str, ...] = ()
    """Keys that decided a request."""
    history: BoundedList[ReportedApproval] = BoundedList()


class ReportedExecution(ReportPart, frozen=True, kw_only=True):
    """One report of an execution that failed or was not permitted."""

    at: str
    outcome: str
    action_id: str
    by: str
    activity_id: str
    log_index: int


class ExecutionStatistics(ReportPart, frozen=True, kw_only=True):
    """Executions reported by the agent or on its behalf."""

    done: int = 0
    failed: int = 0
    unpermitted: int = 0
    exceptions: BoundedList[ReportedExecution] = BoundedList()


class LifecycleStatistics(ReportPart, frozen=True, kw_only=True):
    """Suspensions, complaints, reactivations and stops."""

    suspended: int = 0
    complaints: int = 0
    reactivated: int = 0
    token_rotated: int = 0
    halted: int = 0
    """Uses of the kill switch, which are recorded for the organisation."""
    resumed: int = 0
    history: BoundedList[LifecycleChange] = BoundedList()


class ContentStatistics(ReportPart, frozen=True, kw_only=True):
    """Number of activities by availability of their content; the activities themselves always remain."""

    kept: int = 0
    erased: int = 0
    expired: int = 0
    tampered: int = 0
    """Activities whose stored content does not match its commitment."""


class LogHead(ReportPart, frozen=True, kw_only=True):
    """Signed head of the organisation's log."""

    log_id: str
    size: int
    root: str
    time: str
    signature: str


class LogReceipt(ReportPart, frozen=True, kw_only=True):
    """A leaf with its inclusion proof: RFC 6962 audit path under the head."""

    index: int
    leaf: str
    path: tuple[str, ...]
    head: LogHead


class ReportedLog(ReportPart, frozen=True, kw_only=True):
    """State of the log, and inclusion proofs of the first and last entry of the period."""

    issuer: str
    kid: str | None
    head: LogHead | None
    first: LogReceipt | None = None
    last: LogReceipt | None = None
    leaves_sha256: str = ""
    """SHA-256 over the RFC 6962 hashes of the period's leaves, newest first."""


class AttestationEntry(msgspec.Struct, frozen=True, gc=False):
    """Log index and id of an attestation."""

    log_index: int
    attestation_id: str


class Clause(ReportPart, frozen=True, kw_only=True):
    """A framework clause and what the data shows for it."""

    framework: str
    clause: str
    title: str
    shows: str


class FrameworkMapping(ReportPart, frozen=True, kw_only=True):
    """Mapping to compliance frameworks."""

    statement: str = STATEMENT
    clauses: tuple[Clause, ...] = ()


class ReportData(ReportPart, frozen=True, kw_only=True):
    """One report. `report_id` is derived from the rest, so equal data has an equal id."""

    report_id: str = ""
    report_version: int = VERSION
    generated_at: str
    """Time of the log head that the report describes."""
    agent_id: str
    period: ReportPeriod
    summary: ReportSummary
    activity_count: int
    agent: ReportedAgent
    trust: ReportedTrust
    decisions: DecisionStatistics
    refusals: BoundedList[ReportedRefusal] = BoundedList()
    approvals: ReportedApprovals = ReportedApprovals()
    executions: ExecutionStatistics = ExecutionStatistics()
    standing: LifecycleStatistics = LifecycleStatistics()
    revocations: BoundedList[Revocation] = BoundedList()
    contents: ContentStatistics = ContentStatistics()
    log: ReportedLog
    verification: tuple[str, ...] = ()
    mapping: FrameworkMapping = FrameworkMapping()
    attestations: tuple[AttestationEntry, ...] = ()


_encode = msgspec.json.Encoder().encode
_CHUNK_SIZE = 1_000


def with_report_id(data: ReportData) -> ReportData:
    """Return the report with the id derived from its data."""
    bare = msgspec.structs.replace(data, report_id="", attestations=())
    digest = hashlib.sha256(_encode(bare))
    for chunk in in_chunks(data.attestations):
        digest.update(_encode(chunk))
    return msgspec.structs.replace(data, report_id=f"rpt_{digest.hexdigest()[:32]}")


def in_chunks(values: tuple[T, ...], size: int = _CHUNK_SIZE) -> Iterable[tuple[T, ...]]:
    """Split the values into tuples of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))
