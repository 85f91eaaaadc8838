"""Spec 8.2: an agent, or someone for it, asks a person for one level more."""

import msgspec

from qwed.kernel.agents.trust import ELEVATION, Evidence, Wanted, evidence_of, refuse_evidence
from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import change_of, keep, notices_of
from qwed.kernel.people.approvals import expire_of
from qwed.kernel.services import Services
from qwed.kernel.views.record import request_place
from qwed.ledger.vault import SubjectKey
from qwed.store.agent import Agent
from qwed.store.parts import Approval, ElevationRequested
from qwed.words import ErrorCode, Event
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """The approval to wait for, and the evidence a person will see."""

    approval_id: str
    evidence: Evidence
    expires_at: str


async def request_elevation(agent: Agent, wanted: Wanted, by: str, services: Services) -> Requested | Problem:
    """Ask a person for one level more; refused where the log does not speak for the agent."""
    if services.stopped(agent):
        return problem(ErrorCode.AGENT_SUSPENDED)
    evidence = evidence_of(agent, services)
    refusal = refuse_evidence(evidence, services)
    if refusal is not None:
        return refusal
    now = services.clock.now()
    # A request that ran out must not stand in the way of the next one.
    expire_of(agent, services, now)
    request = {
        "from_level": int(agent.trust),
        "to_level": int(wanted.to),
        "justification": wanted.justification,
        "evidence": msgspec.to_builtins(evidence),
    }
    key = services.vault.key_of_agent(agent)
    approval = _approval_of(request, by, key, services, now)
    activity_id = timed_id("act", now)
    change = change_of(
        Event.TRUST_REQUESTED,
        by,
        agent.organisation_id,
        now,
        services,
        key=key,
        activity_id=activity_id,
        agent_id=agent.agent_id,
        level_before=int(agent.trust),
        level_after=int(wanted.to),
        said=request,
        parts=(ElevationRequested(agent.organisation_id, agent.agent_id, activity_id, approval),),
        notices=notices_of("pending", agent, activity_id, services, now, approval_id=approval.approval_id),
    )
    kept = await keep(change, services)
    if isinstance(kept, Problem):
        return kept
    return Requested(approval_id=approval.approval_id, evidence=evidence, expires_at=rfc3339(approval.expires_at))


def _approval_of(request: dict[str, object], by: str, key: SubjectKey, services: Services, now: float) -> Approval:
    approval_id = timed_id("apr", now)
    return Approval(
        approval_id=approval_id,
        cost=0,
        tokens=0,
        high_risk_calls=0,
        created_at=now,
        expires_at=now + services.settings.approval_ttl_seconds,
        requested_by=by,
        kind=ELEVATION,
        request=key.seal(request_place(approval_id), msgspec.json.encode(request).decode()),
    )
