"""Trust levels: raised by a person on evidence from the log, degraded automatically (spec 8.2 and 8.3, ruling 4.2)."""

from dataclasses import replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from qwed.domain.agent import Agent
from qwed.domain.behaviour import DegradationRule
from qwed.domain.change_parts import AgentChanged
from qwed.domain.write_set import WriteSet
from qwed.kernel.agents.editing import refuse_retired
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, agent_notices, build_change, commit_agent_change
from qwed.kernel.request_schema import MAX_TEXT_LENGTH, VISIBLE, FieldRule, RequestStruct, not_misleading
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import SYSTEM_ACTOR
from qwed.model import ErrorCode, Event, Trust
from qwed.model.clock import DAY
from qwed.model.ids import timed_id
from qwed.model.roles import OWNER

ELEVATION: Final = "trust_elevation"
REDUCTION: Final = "trust_reduction"
RESTORATION: Final = "trust_restoration"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence computed from the log; evidence stated in a request is ignored (spec 8.2)."""

    days_active: int
    total_actions: int
    denied_actions: int
    denial_rate: float
    attestations: int


_LEVEL = "must be a whole number from 0 to 3"
_LEVEL_SCHEMA = {"type": "integer", "minimum": 0, "maximum": 3}


_Text = Annotated[
    str,
    Meta(extra_json_schema={"maxLength": MAX_TEXT_LENGTH, "pattern": VISIBLE}),
    FieldRule(
        f"must be a readable text, {MAX_TEXT_LENGTH} at most", refuse=not_misleading(MAX_TEXT_LENGTH), masked=True
    ),
]


class TrustChangeRequest(RequestStruct, kw_only=True):
    """Change of trust (spec 8.2). A reduction and a restoration take effect at once, by an owner or approver key."""

    agent_id: Annotated[str, FieldRule("in the body is not the agent in the path")] | None = None
    request: Annotated[
        Literal["trust_elevation", "trust_reduction", "trust_restoration"],
        FieldRule(f"must be {ELEVATION}, {REDUCTION} or {RESTORATION}", ErrorCode.BAD_OPTION),
    ] = ELEVATION
    from_level: Annotated[Any, Meta(extra_json_schema={"anyOf": [_LEVEL_SCHEMA, {"type": "null"}]})] = None
    to_level: Annotated[
        int, Meta(ge=0, le=3), FieldRule(_LEVEL, ErrorCode.BAD_OPTION, required=_LEVEL, missing=ErrorCode.BAD_OPTION)
    ]
    justification: _Text | None = None
    reason: Annotated[_Text, Meta(description="why trust is restored; required for it")] | None = None
    evidence: (
        Annotated[
            dict[str, Any],
            Meta(description="ignored: the evidence is computed from the log"),
            FieldRule("must be an object; it is ignored in any case"),
        ]
        | None
    ) = None


class TrustRequest(NamedTuple):
    """A requested change of trust."""

    kind: str
    to: Trust
    justification: str


def evidence_of(agent: Agent, services: Services) -> Evidence:
    """Return the record of the agent at its present level, from running counters: a record counts only once."""
    evidence = services.store.trust_evidence(agent.agent_id)
    days = int((services.clock.now() - max(agent.created_at, evidence.level_since)) // DAY)
    rate = evidence.denied / evidence.actions if evidence.actions else 0.0
    return Evidence(
        days_active=max(days, 0),
        total_actions=evidence.actions,
        denied_actions=evidence.denied,
        denial_rate=round(rate, 6),
        attestations=evidence.attestations,
    )


def refuse_evidence(evidence: Evidence, services: Services) -> Problem | None:
    """Return the problem if the evidence is not sufficient, else None."""
    settings = services.settings
    missing = [
        requirement
        for requirement, is_met in (
            (f"{settings.trust_min_days} days active", evidence.days_active >= settings.trust_min_days),
            (f"{settings.trust_min_actions} actions", evidence.total_actions >= settings.trust_min_actions),
            (
                f"a denial rate of at most {settings.trust_max_denial_rate}",
                # Not the displayed rate, which is rounded.
                evidence.denied_actions <= settings.trust_max_denial_rate * evidence.total_actions,
            ),
        )
        if not is_met
    ]
    if not missing:
        return None
    return problem(
        ErrorCode.CONFLICT,
        f"not enough evidence: more trust needs {', '.join(missing)}",
        final=False,
        check="evidence_sufficient",
        details={"evidence": msgspec.to_builtins(evidence)},
    )


def trust_request_of(request: TrustChangeRequest, agent: Agent) -> TrustRequest | Problem:
    """Return the requested change of trust, or the problem with it for this agent."""
    refusal = refuse_retired(agent)
    if refusal is not None:
        return refusal
    if request.agent_id is not None and not agent.is_called(request.agent_id):
        return problem(ErrorCode.MALFORMED, "`agent_id` in the body is not the agent in the path")
    kind, level = request.request, request.to_level
    stated = request.from_level
    # `type`, because True == 1 and 1.0 == 1
    if stated is not None and (type(stated) is not int or stated != agent.trust):
        return problem(ErrorCode.CONFLICT, f"`from_level` is not the agent's level, which is {int(agent.trust)}")
    if kind == ELEVATION and level != agent.trust + 1:
        message = f"trust is raised one level at a time, and this agent has level {int(agent.trust)}"
        advice = f"send to_level {int(agent.trust) + 1}; to lower it send `request`: `{REDUCTION}`"
        return problem(ErrorCode.BAD_OPTION, message, suggestion=advice)
    if kind == REDUCTION and level >= agent.trust:
        return problem(ErrorCode.BAD_OPTION, f"`to_level` must be below the agent's level, {int(agent.trust)}")
    if kind == RESTORATION:
        return _restoration_of(request, agent)
    return TrustRequest(kind, Trust(level), request.justification or request.reason or "")


def _restoration_of(request: TrustChangeRequest, agent: Agent) -> TrustRequest | Problem:
    """Return the requested restoration: above the present level, and not above what a person gave the agent."""
    level, most = request.to_level, agent.restorable_trust
    texts = ((text or "").strip() for text in (request.reason, request.justification))
    reason = next((text for text in texts if text), None)
    if reason is None:
        return problem(ErrorCode.MISSING_FIELD, "`reason` is required: say why the trust is restored")
    if level <= agent.trust:
        return problem(ErrorCode.BAD_OPTION, f"`to_level` must be above the agent's level, {int(agent.trust)}")
    if level > most:
        message = f"trust is restored up to level {int(most)}, that of the registration or of a later reduction"
        advice = f"to raise it above, send `request`: `{ELEVATION}`"
        return problem(ErrorCode.BAD_OPTION, message, suggestion=advice, details={"restorable_level": int(most)})
    return TrustRequest(RESTORATION, Trust(level), reason)


async def reduce_trust(agent: Agent, trust_request: TrustRequest, actor: Actor, services: Services) -> Agent | Problem:
    """Lower an agent's trust immediately; what a person takes away is not restored."""
    restorable = min(agent.restorable_trust, trust_request.to)
    change = AgentChanged(agent, replace(agent, trust=trust_request.to, restorable_trust=restorable))
    levels = {"level_before": int(agent.trust), "level_after": int(trust_request.to)}
    return await commit_agent_change(
        Event.TRUST_LOWERED, change, trust_request.justification or None, actor, services, **levels
    )


async def restore_trust(agent: Agent, trust_request: TrustRequest, actor: Actor, services: Services) -> Agent | Problem:
    """Give back trust that was lost automatically, immediately: an owner any, an approver up to level 2."""
    if trust_request.to is Trust.TRUSTED and actor.role != OWNER:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "trust level 3 needs an owner key")
    change = AgentChanged(agent, replace(agent, trust=trust_request.to))
    levels = {"level_before": int(agent.trust), "level_after": int(trust_request.to)}
    return await commit_agent_change(
        Event.TRUST_RESTORED, change, trust_request.justification, actor, services, **levels
    )


def degradation_change(
    before: Agent, after: Agent, rule: DegradationRule, services: Services, now: float, about: str
) -> WriteSet:
    """Build the change for a loss of trust, logged with the decision that caused it (spec 8.3)."""
    activity_id = timed_id("act", now)
    return build_change(
        Event.TRUST_DEGRADED,
        SYSTEM_ACTOR,
        before.organisation_id,
        now,
        services,
        key=services.vault.key_of_agent(before),
        activity_id=activity_id,
        agent_id=before.agent_id,
        about=about,
        error=str(rule),
        level_before=int(before.trust),
        level_after=int(after.trust),
        content={"reason": str(rule)},
        parts=(AgentChanged(before, after),),
        notices=agent_notices(
            "degraded", before, activity_id, services, now, trust_level=int(after.trust), reason=str(rule)
        ),
    )
