"""Response models of the record: activities, approvals, summaries (spec 7)."""

from typing import Any

import msgspec

from qwed.kernel.privacy.subject_keys import KEPT
from qwed.kernel.services import Services
from qwed.kernel.tools import A2A_MESSAGE
from qwed.kernel.views.agent_views import Usd, View
from qwed.ledger import leaf
from qwed.model import Decision, usd_from
from qwed.model.clock import rfc3339
from qwed.store.protocol import EXPIRED, ActivityRecord, ActivitySummary, ApprovalRecord, state_at

SYSTEM_ACTOR = "qwed"
"""Actor id of changes made by a rule or by expiry."""
EXPIRED_REASON = "expired without a decision"


class CostOfActivity(View, frozen=True, kw_only=True):
    """Cost charged for one decision."""

    usd: Usd
    tokens: int


class Resolution(View, frozen=True, kw_only=True):
    """Resolution of an approval. `by` is the key that was used; `approver` is stated by its holder."""

    state: str
    decision: str | None
    by: str
    at: str
    reason: str
    approver: str | None
    self_approved: bool
    activity_id: str | None
    """The leaf that records it; null until an expiry is logged."""


class ExecutionView(View, frozen=True, kw_only=True):
    """Execution of an action (spec 7.1, `execution`)."""

    success: bool
    result_hash: str | None
    at: str


class ApprovalState(View, frozen=True, kw_only=True):
    """The approval requested by a PENDING decision."""

    approval_id: str
    state: str
    expires_at: str


class ActivityView(View, frozen=True, kw_only=True):
    """An activity (spec 7.1). A change that is not a decision has an `event`, and its details in `change`."""

    activity_id: str
    action_id: str
    agent_id: str | None
    timestamp: str
    conversation_id: str | None
    step_number: int | None
    action_type: str | None
    action: dict[str, Any] | None
    corrected: dict[str, Any] | None
    user_intent: str | None
    justification: str | None
    verification: dict[str, Any] | None
    decision: str | None
    error: dict[str, Any] | None
    policy: dict[str, Any] | None
    """Rule of the organisation's policies that decided."""
    policy_version: int | None
    """Version of the policy set under which it was decided."""
    shadow: list[dict[str, Any]]
    """Rules of policies in shadow that would have decided."""
    execution: ExecutionView | None
    approval: ApprovalState | None
    resolution: Resolution | None
    event: str | None
    change: dict[str, Any] | None
    cost: CostOfActivity
    latency_ms: float
    by: str
    attestation_id: str | None
    log_index: int
    content: str
    """`kept`; `erased` with its subject; `expired` after its retention; or `tampered`."""


class GroupApprovalView(View, frozen=True, kw_only=True):
    """Approval of one key in the name of its groups."""

    key: str
    groups: list[str]
    at: str


class ApprovalView(View, frozen=True, kw_only=True):
    """One approval: `kind` is `action` (then `action_id` waits) or `trust_elevation` (then `request` waits)."""

    approval_id: str
    kind: str
    state: str
    agent_id: str
    agent_name: str | None
    action_id: str
    action_hash: str | None
    action: dict[str, Any] | None
    corrected: dict[str, Any] | None
    verification: dict[str, Any] | None
    facts: dict[str, Any] | None
    """Findings in the action."""
    risk_level: str | None
    policy: dict[str, Any] | None
    """Rule of the organisation's policies that asks for it."""
    user_intent: str | None
    justification: str | None
    request: dict[str, Any] | None
    requested_by: str
    approvers: list[str]
    """Groups of which one key each must approve; empty where any approver may decide."""
    approved_by: list[GroupApprovalView]
    created_at: str
    expires_at: str
    resolution: Resolution | None
    content: str
    """As in an activity."""


class SummaryView(View, frozen=True, kw_only=True):
    """Summary of a period (spec 7.2, `summary`)."""

    total_actions: int
    approved: int
    denied: int
    corrected: int
    pending: int
    budget_exceeded: int
    total_cost_usd: Usd


def request_context(approval_id: str) -> str:
    """Return the context string under which the request of an approval is sealed."""
    return f"{approval_id}:request"


def text_context(approval_id: str) -> str:
    """Return the context string under which the text of a resolution is sealed."""
    return f"{approval_id}:said"


def result_context(activity_id: str) -> str:
    """Return the context string under which the hash of an execution's result is sealed."""
    return f"{activity_id}:result"


def activity_view(entry: ActivityRecord, services: Services) -> ActivityView:
    """Return an activity from its leaf and its content."""
    return ActivityView(**activity_fields(entry, services))


def activity_fields(entry: ActivityRecord, services: Services) -> dict[str, Any]:
    """Return the members of an ActivityView."""
    now, decoded = services.clock.now(), leaf.decode(entry.leaf)
    stored = services.vault.content(entry, decoded.activity_id)
    content: dict[str, Any] = msgspec.json.decode(stored.text)
    verification = content.get("verification")
    if verification is not None:
        verification["latency_ms"] = decoded.latency_us / 1000
    return {
        "activity_id": decoded.activity_id,
        "action_id": decoded.activity_id,
        "agent_id": decoded.agent_id,
        "timestamp": rfc3339(decoded.time_ms / 1000),
        "conversation_id": content.get("conversation_id", decoded.conversation_id),
        "step_number": decoded.step_number,
        "action_type": decoded.action_type or _type_of(content),
        "action": content.get("action"),
        "corrected": content.get("corrected"),
        "user_intent": content.get("user_intent"),
        "justification": content.get("justification"),
        "verification": verification,
        "decision": decoded.decision,
        "error": content.get("error"),
        "policy": content.get("policy"),
        "policy_version": decoded.policy_version,
        "shadow": content.get("shadow", []),
        "execution": _execution_of(entry, decoded.activity_id, services),
        "approval": _approval_of(entry, now),
        "resolution": _resolution_of(entry, services),
        "event": decoded.event,
        "change": None if decoded.event is None else _change_of(decoded, content),
        "cost": cost_of(decoded),
        "latency_ms": decoded.latency_us / 1000,
        "by": decoded.by,
        "attestation_id": decoded.attestation_id,
        "log_index": entry.log_index,
        "content": stored.state,
    }


def _type_of(content: dict[str, Any]) -> str | None:
    """Return the type that an action of an unknown kind gave itself."""
    action = content.get("action")
    return action["type"][:64] if action else None


def cost_of(decoded: leaf.Leaf) -> CostOfActivity:
    """Return the cost in a leaf."""
    return CostOfActivity(usd=usd_from(decoded.cost_micros), tokens=decoded.tokens)


def _execution_of(entry: ActivityRecord, activity_id: str, services: Services) -> ExecutionView | None:
    if entry.success is None or entry.executed_at is None:
        return None
    result_hash = None if entry.result_hash is None else _result_hash(entry.result_hash, activity_id, services)
    return ExecutionView(success=bool(entry.success), result_hash=result_hash, at=rfc3339(entry.executed_at))


def _result_hash(text: str, activity_id: str, services: Services) -> str | None:
    """Return the hash of the result; the id of the sealing key precedes it, except in old rows."""
    subject_id, _, sealed = text.rpartition(":")
    if subject_id == "sha256":
        return text
    content = services.vault.opened(subject_id, result_context(activity_id), sealed)
    return content.text if content.state == KEPT else None


def _approval_of(entry: ActivityRecord, now: float) -> ApprovalState | None:
    if entry.approval_id is None or entry.approval_state is None or entry.expires_at is None:
        return None
    return ApprovalState(
        approval_id=entry.approval_id,
        state=state_at(entry.approval_state, entry.expires_at, now),
        expires_at=rfc3339(entry.expires_at),
    )


def _resolution_of(entry: ActivityRecord, services: Services) -> Resolution | None:
    if entry.approval_id is None or entry.approval_state is None or entry.expires_at is None:
        return None
    if entry.resolution is not None:
        return _resolution(entry.resolution, entry.approval_id, entry.subject_id, services)
    is_expired = state_at(entry.approval_state, entry.expires_at, services.clock.now()) == EXPIRED
    return expired_resolution(entry.expires_at) if is_expired else None


def expired_resolution(expires_at: float, decision: str | None = Decision.DENIED) -> Resolution:
    """Return the resolution of an expired approval before the expiry is logged."""
    return Resolution(
        state=EXPIRED,
        decision=decision,
        by=SYSTEM_ACTOR,
        at=rfc3339(expires_at),
        reason=EXPIRED_REASON,
        approver=None,
        self_approved=False,
        activity_id=None,
    )


class ResolutionText(msgspec.Struct, frozen=True):
    """Reason and approver of a resolution."""

    reason: str
    approver: str | None = None


class StoredResolution(msgspec.Struct, frozen=True, kw_only=True):
    """Resolution of an approval as stored, with its text sealed."""

    state: str
    decision: str | None
    by: str
    at: str
    self_approved: bool
    activity_id: str
    said: str = ""
    subject_id: str | None = None
    """Key that sealed the text, if it is not the key of the request."""
    reason: str = ""
    """Unsealed, from before content was sealed; as is `approver`."""
    approver: str | None = None


_decode_resolution = msgspec.json.Decoder(StoredResolution).decode
_decode_text = msgspec.json.Decoder(ResolutionText).decode


def _resolution(text: str, approval_id: str, subject_id: str | None, services: Services) -> Resolution:
    stored = _decode_resolution(text)
    resolution_text = ResolutionText(stored.reason, stored.approver)
    if stored.said:
        content = services.vault.opened(stored.subject_id or subject_id, text_context(approval_id), stored.said)
        resolution_text = _decode_text(content.text) if content.state == KEPT else ResolutionText(content.state)
    return Resolution(
        state=stored.state,
        decision=stored.decision,
        by=stored.by,
        at=stored.at,
        reason=resolution_text.reason,
        approver=resolution_text.approver,
        self_approved=stored.self_approved,
        activity_id=stored.activity_id,
    )


_DECISION_MEMBERS = ("action", "action_hash", "sub", "verification", "error", "conversation_id")
_CHANGE_MEMBERS = (
    *("about", "fields", "level_before", "level_after", "policy_set", "policy_version"),
    *("success", "result_hash"),
)


def _change_of(decoded: leaf.Leaf, content: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a change: the leaf members that only a change has, and its content."""
    members = {name: getattr(decoded, name) for name in _CHANGE_MEMBERS}
    if decoded.self_approved:
        members["self_approved"] = True
    # A message is shown like a decision, in addition to the details.
    hidden = _DECISION_MEMBERS if decoded.action_type == A2A_MESSAGE else ()
    details = {name: value for name, value in content.items() if name not in hidden}
    return {name: value for name, value in members.items() if value not in (None, ())} | details


def approval_view(approval: ApprovalRecord, services: Services) -> ApprovalView:
    """Return an approval as an approver sees it."""
    stored = services.vault.content(approval, approval.activity_id)
    content = msgspec.json.decode(stored.text)
    request_leaf = leaf.decode(approval.leaf)
    state, agent = approval.state_at(services.clock.now()), services.store.find_agent(approval.agent_id)
    return ApprovalView(
        approval_id=approval.approval_id,
        kind=approval.kind,
        state=state,
        agent_id=approval.agent_id,
        agent_name=None if agent is None else agent.name,
        action_id=approval.activity_id,
        action_hash=content.get("sub"),
        action=content.get("action"),
        corrected=content.get("corrected"),
        verification=content.get("verification"),
        facts=content.get("facts"),
        risk_level=request_leaf.risk_level,
        policy=content.get("policy"),
        user_intent=content.get("user_intent"),
        justification=content.get("justification"),
        request=request_of(approval, services),
        requested_by=approval.requested_by,
        approvers=[*approval.approver_groups],
        approved_by=[
            GroupApprovalView(key=given.key_id, groups=[*given.groups], at=rfc3339(given.at))
            for given in approval.group_approvals
        ],
        created_at=rfc3339(approval.created_at),
        expires_at=rfc3339(approval.expires_at),
        resolution=_approval_resolution(approval, state, services),
        content=stored.state,
    )


def request_of(approval: ApprovalRecord, services: Services) -> dict[str, Any] | None:
    """Return the request of an approval that is not an action, or None if it was erased."""
    if approval.request is None:
        return None
    content = services.vault.opened(approval.subject_id, request_context(approval.approval_id), approval.request)
    return msgspec.json.decode(content.text) if content.state == KEPT else None


def _approval_resolution(approval: ApprovalRecord, state: str, services: Services) -> Resolution | None:
    if approval.resolution is not None:
        return _resolution(approval.resolution, approval.approval_id, approval.subject_id, services)
    decision = Decision.DENIED if approval.kind == "action" else None
    return expired_resolution(approval.expires_at, decision) if state == EXPIRED else None


def summary_view(summary: ActivitySummary) -> SummaryView:
    """Return the running sums of an agent."""
    return SummaryView(
        total_actions=summary.total_actions,
        approved=summary.approved,
        denied=summary.denied,
        corrected=summary.corrected,
        pending=summary.pending,
        budget_exceeded=summary.budget_exceeded,
        total_cost_usd=usd_from(summary.cost),
    )
