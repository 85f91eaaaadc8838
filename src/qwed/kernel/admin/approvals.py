"""Approvals: requests that wait for a person, and their resolution by a person or by expiry (ruling 4.10).

An approval is bound to one exact action, is used once, and expires. A key cannot approve its own request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as agent_with
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from qwed.domain.agent import Agent
from qwed.domain.change_parts import AgentChanged, AgentUnchanged, ApprovalResolved, ChangePart, Conflict
from qwed.domain.write_set import Committed, WriteSet
from qwed.futures import Future
from qwed.kernel.agents.trust import ELEVATION, evidence_of, refuse_evidence
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.audit.issue import proven_head
from qwed.kernel.audit_change import GATE, Actor, build_change, commit_change
from qwed.kernel.case import Case, Credentials
from qwed.kernel.privacy.subject_keys import KEPT, TAMPERED
from qwed.kernel.request import read_action
from qwed.kernel.services import Services
from qwed.kernel.stages.check_permissions import check_permissions
from qwed.kernel.views.activity_views import (
    EXPIRED_REASON,
    SYSTEM_ACTOR,
    ResolutionText,
    StoredResolution,
    request_of,
    text_context,
)
from qwed.ledger import leaf
from qwed.model import Decision, ErrorCode, Event, Risk, Trust
from qwed.model.clock import rfc3339
from qwed.model.decision_matrix import TRUST_MATRIX
from qwed.model.ids import timed_id
from qwed.settings import VERSION as SETTINGS_VERSION
from qwed.store.protocol import EXPIRED, ApprovalRecord

PENDING, APPROVED, REJECTED = "pending", "approved", "rejected"
STATES = (PENDING, APPROVED, REJECTED, EXPIRED)
ACTION = "action"
_BATCH_SIZE = 32
"""Limits the work of one decision after many approvals have expired; the next decision continues."""


class ApprovalComment(NamedTuple):
    """Reason of the approver, and the name that the approver states."""

    reason: str
    approver: str | None = None


class ApprovalOutcome(NamedTuple):
    """Consequences of a resolution: decision, leaf members, change parts and content."""

    decision: Decision | None
    leaf: dict[str, Any]
    parts: tuple[ChangePart, ...] = ()
    content: Mapping[str, Any] = MappingProxyType({})


def find_approval(approval_id: str, organisation_id: str, services: Services) -> ApprovalRecord | Problem:
    """Return an approval of this organisation, or NOT_FOUND."""
    record = services.store.find_approval(approval_id)
    if record is None or record.organisation_id != organisation_id:
        return problem(ErrorCode.NOT_FOUND, "no such approval")
    return record


async def approve(
    approval_id: str, comment: ApprovalComment, actor: Actor, services: Services
) -> ApprovalRecord | Problem:
    """Approve a pending request, if the permission and trust checks still pass."""
    approval = _open_approval(approval_id, actor, services)
    if isinstance(approval, Problem):
        return approval
    own = approval.requested_by == actor.actor_id
    if own and _has_other_key(actor, services):
        return problem(
            ErrorCode.OWN_REQUEST, "this key made the request: another owner or approver key must approve it"
        )
    if not _is_in_log(approval, services):
        return _unreadable(TAMPERED)
    agent = services.store.find_agent(approval.agent_id)
    if agent is None or services.stopped(agent):
        return problem(ErrorCode.CONFLICT, "the agent is suspended: reactivate it first", final=False)
    outcome = _GRANTS[approval.kind](approval, agent, actor, services)
    if isinstance(outcome, Problem):
        return outcome
    event = Event.TRUST_RAISED if approval.kind == ELEVATION else Event.APPROVED
    change = _resolution_change(
        approval, APPROVED, event, comment, actor.actor_id, services, outcome, self_approved=own
    )
    return await _commit_resolution(approval, change, services)


async def reject(
    approval_id: str, comment: ApprovalComment, actor: Actor, services: Services
) -> ApprovalRecord | Problem:
    """Reject a pending request and release its reservation."""
    approval = _open_approval(approval_id, actor, services)
    if isinstance(approval, Problem):
        return approval
    outcome = ApprovalOutcome(_refusal_of(approval), {})
    change = _resolution_change(approval, REJECTED, Event.REJECTED, comment, actor.actor_id, services, outcome)
    return await _commit_resolution(approval, change, services)


def expire(services: Services, now: float) -> None:
    """Resolve expired approvals. Submitted and not awaited: a decision must not wait for them."""
    _resolve_expired(services.store.expired_approvals(now, _BATCH_SIZE), services)


async def expire_of(agent: Agent, services: Services, now: float) -> bool:
    """Resolve all expired approvals of one agent and return whether there were any; called when what they reserve is in
    the way."""
    submitted = submit_expiry_of(agent, services, now)
    for resolution in submitted:
        await resolution
    return bool(submitted)


def submit_expiry_of(agent: Agent, services: Services, now: float) -> list[Future[Committed | Conflict]]:
    """Submit the resolution of all expired approvals of one agent."""
    return _resolve_expired(services.store.expired_approvals_of(agent.agent_id, now), services)


def _resolve_expired(expired: Sequence[ApprovalRecord], services: Services) -> list[Future[Committed | Conflict]]:
    submitted = []
    for approval in expired:
        outcome = ApprovalOutcome(_refusal_of(approval), {})
        comment = ApprovalComment(EXPIRED_REASON)
        change = _resolution_change(approval, EXPIRED, Event.EXPIRED, comment, SYSTEM_ACTOR, services, outcome)
        submitted.append(services.store.commit(change))
        services.waiters.notify(approval.activity_id)
    return submitted


def _refusal_of(approval: ApprovalRecord) -> Decision | None:
    return Decision.DENIED if approval.kind == ACTION else None


def _open_approval(approval_id: str, actor: Actor, services: Services) -> ApprovalRecord | Problem:
    now = services.clock.now()
    expire(services, now)
    approval = find_approval(approval_id, actor.organisation_id, services)
    if isinstance(approval, Problem):
        return approval
    state = approval.state_at(now)
    return approval if state == PENDING else problem(ErrorCode.CONFLICT, f"it is already {state}")


def _has_other_key(actor: Actor, services: Services) -> bool:
    """Return True if the organisation has another key; the process itself and its one key count as one."""
    active = [key for key in services.store.list_keys(actor.organisation_id) if key.revoked_at is None]
    return len(active) > 1 if actor.actor_id == GATE else any(key.key_id != actor.actor_id for key in active)


def _grant_action(
    approval: ApprovalRecord, agent: Agent, _actor: Actor, services: Services
) -> ApprovalOutcome | Problem:
    """Check trust and permissions again, as they are now; the budget is reserved already (ruling 4.10)."""
    request_leaf = leaf.decode(approval.leaf)
    stored = services.vault.content(approval, approval.activity_id)
    if stored.state != KEPT:
        return _unreadable(stored.state)
    content = msgspec.json.decode(stored.text)
    case = _case_of(approval, content, agent, services)
    if isinstance(case, Answer):
        return _no_longer_permitted("" if case.error is None else case.error.message)
    if request_leaf.action_hash not in (None, case.action.hash):
        return _unreadable(TAMPERED)
    risk = max(Risk.of(request_leaf.risk_level or "critical"), case.resolved_action.base)
    if TRUST_MATRIX[agent.trust][risk] is Decision.DENIED:
        return _no_longer_permitted(f"a {risk.word} risk action is beyond trust level {int(agent.trust)}")
    decision = Decision.CORRECTED if content.get("corrected") is not None else Decision.APPROVED
    leaf_members = {
        "action_type": request_leaf.action_type,
        "attestation_id": timed_id("att", services.clock.now()),
        "cost_micros": approval.cost,
        "engine": request_leaf.engine,
        "policy_hash": agent.policy_hash(case.resolved_action.name, case.resolved_action.tool, SETTINGS_VERSION),
        "risk_level": risk.word,
        "status": request_leaf.status,
        "step_number": request_leaf.step_number,
        "tokens": approval.tokens,
    }
    return ApprovalOutcome(
        decision, leaf_members, (AgentUnchanged(agent),), {"sub": content.get("sub") or _sub_of(content)}
    )


def _is_in_log(approval: ApprovalRecord, services: Services) -> bool:
    """Return True if the request for approval is in the signed log, and was not inserted into the tables."""
    if services.store.in_memory:
        return True
    index = services.store.log_index_of(approval.organisation_id, approval.activity_id)
    return index is not None and proven_head(approval.leaf, approval.organisation_id, index, services) is not None


def _sub_of(content: dict[str, Any]) -> str | None:
    """Return the hash of a request from before hashes were stored with the content."""
    action = read_action(content.get("corrected") or content["action"])
    return None if isinstance(action, Answer) else f"sha256:{action.hash}"


def _unreadable(state: str) -> Problem:
    if state == TAMPERED:
        return problem(ErrorCode.TAMPERING_FOUND, "the content to approve was changed in the store: reject it")
    return problem(ErrorCode.CONFLICT, f"the content to approve is {state}: reject it")


def _case_of(approval: ApprovalRecord, content: dict[str, Any], agent: Agent, services: Services) -> Case | Answer:
    """Return the stored action checked against the current permissions."""
    action = read_action(content["action"])
    if isinstance(action, Answer):
        return action
    case = Case(
        agent_id=agent.agent_id,
        credentials=Credentials(organisation_id=approval.organisation_id),
        action_raw=None,
        now=services.clock.now(),
        agent=agent,
        action=action,
        tools=services.store.tool_rows(agent.organisation_id),
    )
    outcome: Case | Answer = check_permissions(case, services)
    return outcome


def _no_longer_permitted(reason: str) -> Problem:
    return problem(ErrorCode.CONFLICT, f"it would be refused today: {reason}", check="policy_unchanged")


def _grant_elevation(
    approval: ApprovalRecord, agent: Agent, actor: Actor, services: Services
) -> ApprovalOutcome | Problem:
    request = request_of(approval, services)
    if request is None:
        return _unreadable(services.vault.content(approval, approval.activity_id).state)
    if request["from_level"] != agent.trust:
        return _no_longer_permitted(f"the agent's trust level is now {int(agent.trust)}")
    level = Trust(request["to_level"])
    if level is Trust.TRUSTED and actor.role != "owner":
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "trust level 3 needs an owner key")
    refusal = refuse_evidence(evidence_of(agent, services), services)
    if refusal is not None:
        return refusal
    after = agent_with(agent, trust=level)
    return ApprovalOutcome(
        None, {"level_before": int(agent.trust), "level_after": int(level)}, (AgentChanged(agent, after),)
    )


_Grant = Callable[[ApprovalRecord, Agent, Actor, Services], ApprovalOutcome | Problem]
_GRANTS: dict[str, _Grant] = {ACTION: _grant_action, ELEVATION: _grant_elevation}


def _resolution_change(
    approval: ApprovalRecord,
    state: str,
    event: Event,
    comment: ApprovalComment,
    actor_id: str,
    services: Services,
    outcome: ApprovalOutcome,
    *,
    self_approved: bool = False,
) -> WriteSet:
    now = services.clock.now()
    activity_id = timed_id("act", now)
    key = services.vault.key_about(approval.subject_id, approval.organisation_id)
    comment_text = msgspec.json.encode(ResolutionText(comment.reason, comment.approver)).decode()
    resolution = StoredResolution(
        state=state,
        decision=outcome.decision,
        by=actor_id,
        at=rfc3339(now),
        self_approved=self_approved,
        activity_id=activity_id,
        said=key.seal(text_context(approval.approval_id), comment_text),
        subject_id=key.subject_id,
    )
    reserved = (approval.cost, approval.tokens, approval.high_risk_calls)
    encoded = msgspec.json.encode(resolution).decode()
    part = ApprovalResolved(
        approval.approval_id, approval.agent_id, approval.kind, state, encoded, activity_id, *reserved, now
    )
    return build_change(
        event,
        actor_id,
        approval.organisation_id,
        now,
        services,
        key=key,
        activity_id=activity_id,
        agent_id=approval.agent_id,
        about=approval.activity_id,
        decision=outcome.decision,
        self_approved=self_approved,
        content={
            "reason": comment.reason,
            "approver": comment.approver,
            "approval_id": approval.approval_id,
            **outcome.content,
        },
        parts=(part, *outcome.parts),
        **outcome.leaf,
    )


async def _commit_resolution(
    approval: ApprovalRecord, change: WriteSet, services: Services
) -> ApprovalRecord | Problem:
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        return receipt
    services.waiters.notify(approval.activity_id)
    return find_approval(approval.approval_id, approval.organisation_id, services)
