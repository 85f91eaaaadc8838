"""What is shown of the record: activities, approvals, summaries, in the shapes of spec 7."""

from typing import Any

import msgspec

from qwed.kernel.keeping.vault import KEPT
from qwed.kernel.services import Services
from qwed.kernel.tools import A2A_MESSAGE
from qwed.kernel.views.agents import Usd, View
from qwed.ledger import leaf
from qwed.store.protocol import EXPIRED, Entry, KeptApproval, Tally, state_at
from qwed.words import Decision, usd_from
from qwed.words.clock import rfc3339

HOUSE = "qwed"
"""Who acts when nobody does: a rule, or time."""
NOBODY_CAME = "nobody decided in time"


class CostOfActivity(View, frozen=True, kw_only=True):
    """What one decision was charged."""

    usd: Usd
    tokens: int


class Resolution(View, frozen=True, kw_only=True):
    """How an approval ended. `by` is the key that was shown; `approver` is whatever its holder stated."""

    state: str
    decision: str | None
    by: str
    at: str
    reason: str
    approver: str | None
    self_approved: bool
    activity_id: str | None
    """The leaf that says so; null until what ran out by itself was written down."""


class ExecutionView(View, frozen=True, kw_only=True):
    """Spec 7.1, `execution`."""

    success: bool
    result_hash: str | None
    at: str


class ApprovalState(View, frozen=True, kw_only=True):
    """The approval a PENDING decision asked for."""

    approval_id: str
    state: str
    expires_at: str


class ActivityView(View, frozen=True, kw_only=True):
    """Spec 7.1. A change that is no decision names its `event`, and `change` says what it changed."""

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
    """`kept`; or `erased` with its subject, `expired` with its time; or somebody `tampered` with it."""


class ApprovalView(View, frozen=True, kw_only=True):
    """One approval: `kind` is `action` (then `action_id` is what waits) or `trust_elevation` (then `request` is)."""

    approval_id: str
    kind: str
    state: str
    agent_id: str
    action_id: str
    action_hash: str | None
    action: dict[str, Any] | None
    corrected: dict[str, Any] | None
    verification: dict[str, Any] | None
    risk_level: str | None
    user_intent: str | None
    justification: str | None
    request: dict[str, Any] | None
    requested_by: str
    created_at: str
    expires_at: str
    resolution: Resolution | None
    content: str
    """As in an activity."""


class SummaryView(View, frozen=True, kw_only=True):
    """Spec 7.2, `summary`."""

    total_actions: int
    approved: int
    denied: int
    corrected: int
    pending: int
    budget_exceeded: int
    total_cost_usd: Usd


def request_place(approval_id: str) -> str:
    """Where what an approval asks for is sealed."""
    return f"{approval_id}:request"


def said_place(approval_id: str) -> str:
    """Where what was said when an approval was settled is sealed."""
    return f"{approval_id}:said"


def result_place(activity_id: str) -> str:
    """Where the hash of an execution's result is sealed."""
    return f"{activity_id}:result"


def activity_view(entry: Entry, services: Services) -> ActivityView:
    """An activity, from its leaf and the content beside it."""
    return ActivityView(**activity_fields(entry, services))


def activity_fields(entry: Entry, services: Services) -> dict[str, Any]:
    """The members of an ActivityView."""
    now, kept = services.clock.now(), leaf.decode(entry.leaf)
    found = services.vault.content(entry, kept.activity_id)
    content: dict[str, Any] = msgspec.json.decode(found.text)
    verification = content.get("verification")
    if verification is not None:
        verification["latency_ms"] = kept.latency_us / 1000
    return {
        "activity_id": kept.activity_id,
        "action_id": kept.activity_id,
        "agent_id": kept.agent_id,
        "timestamp": rfc3339(kept.time_ms / 1000),
        "conversation_id": content.get("conversation_id", kept.conversation_id),
        "step_number": kept.step_number,
        "action_type": kept.action_type or _type_of(content),
        "action": content.get("action"),
        "corrected": content.get("corrected"),
        "user_intent": content.get("user_intent"),
        "justification": content.get("justification"),
        "verification": verification,
        "decision": kept.decision,
        "error": content.get("error"),
        "execution": _execution_of(entry, kept.activity_id, services),
        "approval": _approval_of(entry, now),
        "resolution": _resolution_of(entry, services),
        "event": kept.event,
        "change": None if kept.event is None else _change_of(kept, content),
        "cost": cost_of(kept),
        "latency_ms": kept.latency_us / 1000,
        "by": kept.by,
        "attestation_id": kept.attestation_id,
        "log_index": entry.log_index,
        "content": found.state,
    }


def _type_of(content: dict[str, Any]) -> str | None:
    """What an action of a kind nobody knows called itself."""
    action = content.get("action")
    return action["type"][:64] if action else None


def cost_of(kept: leaf.Leaf) -> CostOfActivity:
    """What a leaf was charged."""
    return CostOfActivity(usd=usd_from(kept.cost_micros), tokens=kept.tokens)


def _execution_of(entry: Entry, activity_id: str, services: Services) -> ExecutionView | None:
    if entry.success is None or entry.executed_at is None:
        return None
    told = None if entry.result_hash is None else _result_hash(entry.result_hash, activity_id, services)
    return ExecutionView(success=bool(entry.success), result_hash=told, at=rfc3339(entry.executed_at))


def _result_hash(kept: str, activity_id: str, services: Services) -> str | None:
    """What was told of the result; with whose key it opens stands before it, unless there were none yet."""
    subject_id, _, sealed = kept.rpartition(":")
    if subject_id == "sha256":
        return kept
    found = services.vault.opened(subject_id, result_place(activity_id), sealed)
    return found.text if found.state == KEPT else None


def _approval_of(entry: Entry, now: float) -> ApprovalState | None:
    if entry.approval_id is None or entry.approval_state is None or entry.expires_at is None:
        return None
    return ApprovalState(
        approval_id=entry.approval_id,
        state=state_at(entry.approval_state, entry.expires_at, now),
        expires_at=rfc3339(entry.expires_at),
    )


def _resolution_of(entry: Entry, services: Services) -> Resolution | None:
    if entry.approval_id is None or entry.approval_state is None or entry.expires_at is None:
        return None
    if entry.resolution is not None:
        return _resolution(entry.resolution, entry.approval_id, entry.subject_id, services)
    over = state_at(entry.approval_state, entry.expires_at, services.clock.now()) == EXPIRED
    return ran_out(entry.expires_at) if over else None


def ran_out(expires_at: float, decision: str | None = Decision.DENIED) -> Resolution:
    """How an approval ended that nobody settled, before that was written down."""
    return Resolution(
        state=EXPIRED,
        decision=decision,
        by=HOUSE,
        at=rfc3339(expires_at),
        reason=NOBODY_CAME,
        approver=None,
        self_approved=False,
        activity_id=None,
    )


class Words(msgspec.Struct, frozen=True):
    """What a person said when an approval was settled."""

    reason: str
    approver: str | None = None


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """How an approval ended, as it is kept: what was said about it is sealed."""

    state: str
    decision: str | None
    by: str
    at: str
    self_approved: bool
    activity_id: str
    said: str = ""
    subject_id: str | None = None
    """Whose key it is sealed with, where that is another than the one of what was asked."""
    reason: str = ""
    """In the clear, from before content was sealed; as is `approver`."""
    approver: str | None = None


_settlement = msgspec.json.Decoder(Settlement).decode
_words = msgspec.json.Decoder(Words).decode


def _resolution(text: str, approval_id: str, subject_id: str | None, services: Services) -> Resolution:
    kept = _settlement(text)
    words = Words(kept.reason, kept.approver)
    if kept.said:
        found = services.vault.opened(kept.subject_id or subject_id, said_place(approval_id), kept.said)
        words = _words(found.text) if found.state == KEPT else Words(found.state)
    return Resolution(
        state=kept.state,
        decision=kept.decision,
        by=kept.by,
        at=kept.at,
        reason=words.reason,
        approver=words.approver,
        self_approved=kept.self_approved,
        activity_id=kept.activity_id,
    )


_OF_A_DECISION = ("action", "action_hash", "sub", "verification", "error", "conversation_id")
_OF_A_CHANGE = ("about", "level_before", "level_after", "success", "result_hash")


def _change_of(kept: leaf.Leaf, content: dict[str, Any]) -> dict[str, Any]:
    """What changed: the members of the leaf that only a change has, and what was said about it."""
    known = {name: getattr(kept, name) for name in _OF_A_CHANGE}
    if kept.self_approved:
        known["self_approved"] = True
    # A message is shown like a decision, beside what changed.
    shown = _OF_A_DECISION if kept.action_type == A2A_MESSAGE else ()
    told = {name: value for name, value in content.items() if name not in shown}
    return {name: value for name, value in known.items() if value is not None} | told


def approval_view(approval: KeptApproval, services: Services) -> ApprovalView:
    """An approval as a person sees it."""
    found = services.vault.content(approval, approval.activity_id)
    content = msgspec.json.decode(found.text)
    asked = leaf.decode(approval.leaf)
    state = approval.state_at(services.clock.now())
    return ApprovalView(
        approval_id=approval.approval_id,
        kind=approval.kind,
        state=state,
        agent_id=approval.agent_id,
        action_id=approval.activity_id,
        action_hash=content.get("sub"),
        action=content.get("action"),
        corrected=content.get("corrected"),
        verification=content.get("verification"),
        risk_level=asked.risk_level,
        user_intent=content.get("user_intent"),
        justification=content.get("justification"),
        request=request_of(approval, services),
        requested_by=approval.requested_by,
        created_at=rfc3339(approval.created_at),
        expires_at=rfc3339(approval.expires_at),
        resolution=_end_of(approval, state, services),
        content=found.state,
    )


def request_of(approval: KeptApproval, services: Services) -> dict[str, Any] | None:
    """What an approval asks for, where that is no action and was not erased."""
    if approval.request is None:
        return None
    found = services.vault.opened(approval.subject_id, request_place(approval.approval_id), approval.request)
    return msgspec.json.decode(found.text) if found.state == KEPT else None


def _end_of(approval: KeptApproval, state: str, services: Services) -> Resolution | None:
    if approval.resolution is not None:
        return _resolution(approval.resolution, approval.approval_id, approval.subject_id, services)
    decision = Decision.DENIED if approval.kind == "action" else None
    return ran_out(approval.expires_at, decision) if state == EXPIRED else None


def summary_view(tally: Tally) -> SummaryView:
    """The running sums of an agent."""
    return SummaryView(
        total_actions=tally.total_actions,
        approved=tally.approved,
        denied=tally.denied,
        corrected=tally.corrected,
        pending=tally.pending,
        budget_exceeded=tally.budget_exceeded,
        total_cost_usd=usd_from(tally.cost),
    )
