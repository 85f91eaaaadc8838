"""What is shown of what is kept: agents, budgets, activities, in the shapes of the seeds."""

from typing import Any

import msgspec

from qwed.kernel.registration import COUNT_LIMITS, MONEY_LIMITS
from qwed.ledger import leaf
from qwed.store.agent import Agent, AgentStatus, Limits, Permissions
from qwed.store.protocol import Entry, KeptApproval, Tally
from qwed.store.usage import Spent
from qwed.words import usd_from
from qwed.words.clock import DAY, HOUR, rfc3339

Usd = int | float


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything shown: every field is always there, null where there is nothing."""


class BudgetLimits(View, frozen=True, kw_only=True):
    """The registered budget, in the words it was registered in; null is no limit."""

    max_daily_cost_usd: Usd | None
    max_per_request_usd: Usd | None
    max_requests_per_hour: int | None
    max_requests_per_day: int | None
    max_tokens_per_request: int | None
    max_tokens_per_day: int | None
    max_tool_calls_per_hour: int | None
    max_high_risk_calls_per_day: int | None


class AgentView(View, frozen=True, kw_only=True):
    """Spec 3.2, without the token."""

    agent_id: str
    did: str
    name: str
    type: str
    description: str | None
    principal_id: str
    framework: str | None
    model: str | None
    status: str
    trust_level: int
    created_at: str
    permissions: Permissions
    budget: BudgetLimits


class RegisteredView(AgentView, frozen=True, kw_only=True):
    """Spec 3.2. The token is shown this once."""

    agent_token: str


class CostView(View, frozen=True, kw_only=True):
    """Money of the UTC day."""

    max_daily_usd: Usd | None
    max_per_request_usd: Usd | None
    current_daily_usd: Usd
    held_usd: Usd


class RequestsView(View, frozen=True, kw_only=True):
    """Requests of the UTC hour and day."""

    max_per_hour: int | None
    max_per_day: int | None
    current_hour: int
    current_day: int


class TokensView(View, frozen=True, kw_only=True):
    """Tokens of the UTC day."""

    max_per_request: int | None
    max_daily: int | None
    current_daily: int


class ToolsView(View, frozen=True, kw_only=True):
    """Tool calls of the UTC hour, high-risk calls of the day."""

    max_calls_per_hour: int | None
    current_hour: int
    high_risk_calls_remaining: int | None


class ResetView(View, frozen=True, kw_only=True):
    """When the windows end."""

    hour: str
    day: str


class BudgetView(View, frozen=True, kw_only=True):
    """Spec 6.1; null is no limit."""

    agent_id: str
    cost: CostView
    requests: RequestsView
    tokens: TokensView
    tools: ToolsView
    reset_at: ResetView


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
    activity_id: str


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


class SummaryView(View, frozen=True, kw_only=True):
    """Spec 7.2, `summary`."""

    total_actions: int
    approved: int
    denied: int
    corrected: int
    pending: int
    budget_exceeded: int
    total_cost_usd: Usd


def did_of(agent_id: str) -> str:
    """Spec 3.4."""
    return f"did:qwed:agent:{agent_id}"


def _profile(agent: Agent) -> dict[str, Any]:
    return {
        "agent_id": agent.agent_id,
        "did": did_of(agent.agent_id),
        "name": agent.name,
        "type": agent.type,
        "description": agent.description,
        "principal_id": agent.principal_id,
        "framework": agent.framework,
        "model": agent.model,
        "status": agent.status,
        "trust_level": int(agent.trust),
        "created_at": rfc3339(agent.created_at),
        "permissions": agent.permissions,
        "budget": limits_view(agent.limits),
    }


def agent_view(agent: Agent, *, halted: bool = False) -> AgentView:
    """An agent as anyone of its organisation may see it; where that is halted, all its agents are suspended."""
    profile = _profile(agent)
    return AgentView(**{**profile, "status": AgentStatus.SUSPENDED} if halted else profile)


def registered_view(agent: Agent, token: str) -> RegisteredView:
    """An agent as the one who registered it sees it, once."""
    return RegisteredView(**_profile(agent), agent_token=token)


def limits_view(limits: Limits) -> BudgetLimits:
    """A registered budget."""
    money = {name: _usd(getattr(limits, field)) for name, field in MONEY_LIMITS.items()}
    return BudgetLimits(**money, **{name: getattr(limits, field) for name, field in COUNT_LIMITS.items()})  # type: ignore[arg-type]  # counts are whole


def did_document(agent: Agent, node: str, jwk: dict[str, str]) -> dict[str, Any]:
    """Who vouches for the agent: the node that decides for it, and the key its attestations are signed with."""
    method = f"{node}#{jwk['kid']}"
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
        "id": did_of(agent.agent_id),
        "controller": node,
        "verificationMethod": [{"id": method, "type": "JsonWebKey2020", "controller": node, "publicKeyJwk": jwk}],
        "assertionMethod": [method],
    }


def budget_view(agent: Agent, spent: Spent) -> BudgetView:
    """What an agent may spend and has spent."""
    limits = agent.limits
    high_risk = limits.high_risk_calls_per_day
    used = spent.high_risk_day + spent.pending_high_risk
    return BudgetView(
        agent_id=agent.agent_id,
        cost=CostView(
            max_daily_usd=_usd(limits.daily_cost),
            max_per_request_usd=_usd(limits.cost_per_request),
            current_daily_usd=usd_from(spent.cost_day),
            held_usd=usd_from(spent.pending_cost),
        ),
        requests=RequestsView(
            max_per_hour=limits.requests_per_hour,
            max_per_day=limits.requests_per_day,
            current_hour=spent.requests_hour,
            current_day=spent.requests_day,
        ),
        tokens=TokensView(
            max_per_request=limits.tokens_per_request,
            max_daily=limits.tokens_per_day,
            current_daily=spent.tokens_day,
        ),
        tools=ToolsView(
            max_calls_per_hour=limits.tool_calls_per_hour,
            current_hour=spent.tool_calls_hour,
            high_risk_calls_remaining=None if high_risk is None else max(high_risk - used, 0),
        ),
        reset_at=ResetView(hour=rfc3339((spent.hour + 1) * HOUR), day=rfc3339((spent.day + 1) * DAY)),
    )


def activity_view(entry: Entry) -> ActivityView:
    """An activity, from its leaf and the content beside it."""
    return ActivityView(**activity_fields(entry))


def activity_fields(entry: Entry) -> dict[str, Any]:
    """The members of an ActivityView."""
    kept = leaf.decode(entry.leaf)
    content: dict[str, Any] = msgspec.json.decode(entry.payload)
    verification = content.get("verification")
    if verification is not None:
        verification["latency_ms"] = kept.latency_us / 1000
    return {
        "activity_id": kept.activity_id,
        "action_id": kept.activity_id,
        "agent_id": kept.agent_id,
        "timestamp": rfc3339(kept.time_ms / 1000),
        "conversation_id": kept.conversation_id,
        "step_number": kept.step_number,
        "action_type": kept.action_type,
        "action": content.get("action"),
        "corrected": content.get("corrected"),
        "user_intent": content.get("user_intent"),
        "justification": content.get("justification"),
        "verification": verification,
        "decision": kept.decision,
        "error": content.get("error"),
        "execution": _execution_of(entry),
        "approval": _approval_of(entry),
        "resolution": None if entry.resolution is None else _resolution(entry.resolution),
        "event": kept.event,
        "change": None if kept.event is None else _change_of(kept, content),
        "cost": cost_of(kept),
        "latency_ms": kept.latency_us / 1000,
        "by": kept.by,
        "attestation_id": kept.attestation_id,
        "log_index": entry.log_index,
    }


def cost_of(kept: leaf.Leaf) -> CostOfActivity:
    """What a leaf was charged."""
    return CostOfActivity(usd=usd_from(kept.cost_micros), tokens=kept.tokens)


def _execution_of(entry: Entry) -> ExecutionView | None:
    if entry.success is None or entry.executed_at is None:
        return None
    return ExecutionView(success=bool(entry.success), result_hash=entry.result_hash, at=rfc3339(entry.executed_at))


def _approval_of(entry: Entry) -> ApprovalState | None:
    if entry.approval_id is None or entry.approval_state is None or entry.expires_at is None:
        return None
    return ApprovalState(
        approval_id=entry.approval_id, state=entry.approval_state, expires_at=rfc3339(entry.expires_at)
    )


_OF_A_CHANGE = ("about", "level_before", "level_after", "success", "result_hash")


def _change_of(kept: leaf.Leaf, content: dict[str, Any]) -> dict[str, Any]:
    """What changed: the members of the leaf that only a change has, and what was said about it."""
    known = {name: getattr(kept, name) for name in _OF_A_CHANGE}
    if kept.self_approved:
        known["self_approved"] = True
    return {name: value for name, value in known.items() if value is not None} | content


def approval_view(approval: KeptApproval, now: float) -> ApprovalView:
    """An approval as a person sees it."""
    content = msgspec.json.decode(approval.payload)
    asked = leaf.decode(approval.leaf)
    return ApprovalView(
        approval_id=approval.approval_id,
        kind=approval.kind,
        state=approval.state_at(now),
        agent_id=approval.agent_id,
        action_id=approval.activity_id,
        action_hash=f"sha256:{approval.action_hash}" if approval.action_hash else None,
        action=content.get("action"),
        corrected=content.get("corrected"),
        verification=content.get("verification"),
        risk_level=asked.risk_level,
        user_intent=content.get("user_intent"),
        justification=content.get("justification"),
        request=None if approval.request is None else msgspec.json.decode(approval.request),
        requested_by=approval.requested_by,
        created_at=rfc3339(approval.created_at),
        expires_at=rfc3339(approval.expires_at),
        resolution=None if approval.resolution is None else _resolution(approval.resolution),
    )


_resolution = msgspec.json.Decoder(Resolution).decode


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


def _usd(micros: int | None) -> Usd | None:
    return None if micros is None else usd_from(micros)
