"""Requests for a higher trust level, by an agent or on its behalf (spec 8.2)."""

import msgspec

from qwed.domain.agent import Agent
from qwed.domain.change_parts import ApprovalRequest, ElevationRequested
from qwed.kernel.admin.approvals import expire_of
from qwed.kernel.agents.editing import refuse_retired
from qwed.kernel.agents.trust import ELEVATION, Evidence, TrustRequest, evidence_of, refuse_evidence
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import agent_notices, build_change, commit_change
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import request_context
from qwed.ledger.subject_encryption import SubjectKey
from qwed.model import ErrorCode, Event
from qwed.model.clock import rfc3339
from qwed.model.ids import timed_id


class ElevationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The pending approval, and the evidence that the approver will see."""

    approval_id: str
    evidence: Evidence
    expires_at: str


async def request_elevation(
    agent: Agent, trust_request: TrustRequest, actor_id: str, services: Services
) -> ElevationResponse | Problem:
    """Request one trust level more from a person; refused if the evidence in the log is not sufficient."""
    refusal = refuse_retired(agent)
    if refusal is not None:
        return refusal
    if services.stopped(agent):
        return problem(ErrorCode.AGENT_SUSPENDED)
    evidence = evidence_of(agent, services)
    refusal = refuse_evidence(evidence, services)
    if refusal is not None:
        return refusal
    now = services.clock.now()
    # An expired request must not block the next one.
    await expire_of(agent, services, now)
    request = {
        "from_level": int(agent.trust),
        "to_level": int(trust_request.to),
        "justification": trust_request.justification,
        "evidence": msgspec.to_builtins(evidence),
    }
    key = services.vault.key_of_agent(agent)
    approval = _approval_of(request, actor_id, key, services, now)
    activity_id = timed_id("act", now)
    change = build_change(
        Event.TRUST_REQUESTED,
        actor_id,
        agent.organisation_id,
        now,
        services,
        key=key,
        activity_id=activity_id,
        agent_id=agent.agent_id,
        level_before=int(agent.trust),
        level_after=int(trust_request.to),
        content=request,
        parts=(ElevationRequested(agent.organisation_id, agent.agent_id, activity_id, approval),),
        notices=agent_notices("pending", agent, activity_id, services, now, approval_id=approval.approval_id),
    )
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        return receipt
    return ElevationResponse(
        approval_id=approval.approval_id, evidence=evidence, expires_at=rfc3339(approval.expires_at)
    )


def _approval_of(
    request: dict[str, object], actor_id: str, key: SubjectKey, services: Services, now: float
) -> ApprovalRequest:
    approval_id = timed_id("apr", now)
    return ApprovalRequest(
        approval_id=approval_id,
        cost=0,
        tokens=0,
        high_risk_calls=0,
        created_at=now,
        expires_at=now + services.settings.approval_ttl_seconds,
        requested_by=actor_id,
        kind=ELEVATION,
        request=key.seal(request_context(approval_id), msgspec.json.encode(request).decode()),
    )
