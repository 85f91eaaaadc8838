"""Response models of agents and budgets."""

from collections.abc import Sequence
from typing import Any

import msgspec

from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Permissions
from qwed.domain.budget import UsageCounters
from qwed.kernel.agents.etag import etag_of
from qwed.kernel.agents.registration import COUNT_LIMITS, MONEY_LIMITS
from qwed.model import usd_from
from qwed.model.clock import DAY, HOUR, rfc3339

Usd = int | float


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the response models: every field is always present, null if there is no value."""


class BudgetLimits(View, frozen=True, kw_only=True):
    """The registered budget, with the field names of the registration; null is no limit."""

    max_daily_cost_usd: Usd | None
    max_per_request_usd: Usd | None
    max_requests_per_hour: int | None
    max_requests_per_day: int | None
    max_tokens_per_request: int | None
    max_tokens_per_day: int | None
    max_tool_calls_per_hour: int | None
    max_high_risk_calls_per_day: int | None


class AgentView(View, frozen=True, kw_only=True):
    """An agent without its token (spec 3.2)."""

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
    labels: dict[str, str]
    max_conversation_steps: int | None
    """Steps of one conversation; null for the server's setting."""
    restorable_trust_level: int
    """Level up to which trust that was lost automatically is restored."""
    retired_at: str | None
    etag: str
    """Send it in If-Match, so that an edit is refused if the agent has changed since."""


class RegisteredView(AgentView, frozen=True, kw_only=True):
    """A new agent with its token, which is shown once (spec 3.2)."""

    agent_token: str


class CostView(View, frozen=True, kw_only=True):
    """Cost of the UTC day."""

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
    """Ends of the current windows."""

    hour: str
    day: str


class BudgetView(View, frozen=True, kw_only=True):
    """Budget of an agent; null is no limit (spec 6.1)."""

    agent_id: str
    cost: CostView
    requests: RequestsView
    tokens: TokensView
    tools: ToolsView
    reset_at: ResetView


def did_of(agent_id: str) -> str:
    """Return the DID of an agent (spec 3.4)."""
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
        "labels": dict(agent.labels),
        "max_conversation_steps": agent.max_conversation_steps,
        "restorable_trust_level": int(agent.restorable_trust),
        "retired_at": None if agent.retired_at is None else rfc3339(agent.retired_at),
        "etag": etag_of(agent),
    }


def agent_view(agent: Agent, *, halted: bool) -> AgentView:
    """Return an agent for its organisation; while that is halted, all its agents are suspended."""
    profile = _profile(agent)
    is_stopped = halted and agent.status is AgentStatus.ACTIVE
    return AgentView(**{**profile, "status": AgentStatus.SUSPENDED} if is_stopped else profile)


def registered_view(agent: Agent, token: str) -> RegisteredView:
    """Return a new agent with its token."""
    return RegisteredView(**_profile(agent), agent_token=token)


def limits_view(limits: AgentLimits) -> BudgetLimits:
    """Return a registered budget."""
    money = {name: _usd(getattr(limits, field)) for name, field in MONEY_LIMITS.items()}
    return BudgetLimits(**money, **{name: getattr(limits, field) for name, field in COUNT_LIMITS.items()})  # type: ignore[arg-type]  # counts are whole


def did_document(agent: Agent, node: str, jwks: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Return the DID document: the node that controls the agent, and the keys that sign its attestations."""
    methods = [
        {"id": f"{node}#{jwk['kid']}", "type": "JsonWebKey2020", "controller": node, "publicKeyJwk": jwk}
        for jwk in jwks
    ]
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
        "id": did_of(agent.agent_id),
        "controller": node,
        "verificationMethod": methods,
        "assertionMethod": [method["id"] for method in methods],
    }


def budget_view(agent: Agent, usage: UsageCounters) -> BudgetView:
    """Return the limits and the usage of an agent."""
    limits = agent.limits
    high_risk = limits.high_risk_calls_per_day
    used = usage.high_risk_day + usage.pending_high_risk
    return BudgetView(
        agent_id=agent.agent_id,
        cost=CostView(
            max_daily_usd=_usd(limits.daily_cost),
            max_per_request_usd=_usd(limits.cost_per_request),
            current_daily_usd=usd_from(usage.cost_day),
            held_usd=usd_from(usage.pending_cost),
        ),
        requests=RequestsView(
            max_per_hour=limits.requests_per_hour,
            max_per_day=limits.requests_per_day,
            current_hour=usage.requests_hour,
            current_day=usage.requests_day,
        ),
        tokens=TokensView(
            max_per_request=limits.tokens_per_request,
            max_daily=limits.tokens_per_day,
            current_daily=usage.tokens_day,
        ),
        tools=ToolsView(
            max_calls_per_hour=limits.tool_calls_per_hour,
            current_hour=usage.tool_calls_hour,
            high_risk_calls_remaining=None if high_risk is None else max(high_risk - used, 0),
        ),
        reset_at=ResetView(hour=rfc3339((usage.hour + 1) * HOUR), day=rfc3339((usage.day + 1) * DAY)),
    )


def _usd(micros: int | None) -> Usd | None:
    return None if micros is None else usd_from(micros)
