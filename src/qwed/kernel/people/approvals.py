"""Ruling 4.10: what waits for a person, and what a person, or time, makes of it.

An approval is bound to one exact action, is used once, and ends. Nobody settles their own request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as agent_with
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.agents.trust import ELEVATION, evidence_of, refuse_evidence
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.case import Case, Credentials, replace
from qwed.kernel.change import GATE, Actor, change_of, keep
from qwed.kernel.keeping.vault import KEPT, TAMPERED
from qwed.kernel.proving.proof import proven_head
from qwed.kernel.request import read_action
from qwed.kernel.services import Services
from qwed.kernel.stages.check_permissions import check_permissions
from qwed.kernel.tables import TRUST_MATRIX
from qwed.kernel.views.record import HOUSE, NOBODY_CAME, Settlement, Words, request_of, said_place
from qwed.ledger import leaf
from qwed.settings import VERSION as SETTINGS_VERSION
from qwed.store.agent import Agent
from qwed.store.parts import AgentChanged, AgentStands, ApprovalResolved, Part
from qwed.store.protocol import EXPIRED, Change, KeptApproval
from qwed.words import Decision, ErrorCode, Event, Risk, Trust
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id

PENDING, APPROVED, REJECTED = "pending", "approved", "rejected"
STATES = (PENDING, APPROVED, REJECTED, EXPIRED)
ACTION = "action"
_AT_ONCE = 32
"""So that no decision pays for a day on which nobody came; the next one goes on where this one stopped."""


class Said(NamedTuple):
    """What the person says: why, and in whose name."""

    reason: str
    approver: str | None = None


class Granted(NamedTuple):
    """What an approval brings about, besides being settled."""

    decision: Decision | None
    leaf: dict[str, Any]
    parts: tuple[Part, ...] = ()
    said: Mapping[str, Any] = MappingProxyType({})


def find_approval(approval_id: str, organisation_id: str, services: Services) -> KeptApproval | Problem:
    """One approval of an organisation; another organisation's is none."""
    found = services.store.find_approval(approval_id)
    if found is None or found.organisation_id != organisation_id:
        return problem(ErrorCode.NOT_FOUND, "no such approval")
    return found


async def approve(approval_id: str, said: Said, actor: Actor, services: Services) -> KeptApproval | Problem:
    """Permit what waits, if the cheap checks still pass."""
    approval = _open_approval(approval_id, actor, services)
    if isinstance(approval, Problem):
        return approval
    own = approval.requested_by == actor.by
    if own and _someone_else(actor, services):
        return problem(ErrorCode.OWN_REQUEST, "this key asked for it: another owner or approver key must approve it")
    if not _stands(approval, services):
        return _unreadable(TAMPERED)
    agent = services.store.find_agent(approval.agent_id)
    if agent is None or services.stopped(agent):
        return problem(ErrorCode.CONFLICT, "the agent is suspended: reactivate it first", final=False)
    granted = _GRANTS[approval.kind](approval, agent, actor, services)
    if isinstance(granted, Problem):
        return granted
    event = Event.TRUST_RAISED if approval.kind == ELEVATION else Event.APPROVED
    change = _settled(approval, APPROVED, event, said, actor.by, services, granted, self_approved=own)
    return await _finish(approval, change, services)


async def reject(approval_id: str, said: Said, actor: Actor, services: Services) -> KeptApproval | Problem:
    """Refuse what waits, and free what it held."""
    approval = _open_approval(approval_id, actor, services)
    if isinstance(approval, Problem):
        return approval
    refused = Granted(_refusal_of(approval), {})
    change = _settled(approval, REJECTED, Event.REJECTED, said, actor.by, services, refused)
    return await _finish(approval, change, services)


def expire(services: Services, now: float) -> None:
    """Settle what has run out. Submitted and not waited for: a decision must not wait for other people's time."""
    _settle_expired(services.store.expired_approvals(now, _AT_ONCE), services)


def expire_in_passing(services: Services, now: float) -> None:
    """The same on the way of a decision. What many processes share is swept by one of them, in a thread of its own:
    the event loop asks no database that is elsewhere."""
    if services.store.freshen is None:
        expire(services, now)


def expire_of(agent: Agent, services: Services, now: float) -> bool:
    """Settle all that has run out of one agent's; whether there was any. Asked where what it held is in the way."""
    found = services.store.expired_approvals_of(agent.agent_id, now)
    _settle_expired(found, services)
    return bool(found)


def _settle_expired(found: Sequence[KeptApproval], services: Services) -> None:
    for approval in found:
        gone = Granted(_refusal_of(approval), {})
        said = Said(NOBODY_CAME)
        services.store.change(_settled(approval, EXPIRED, Event.EXPIRED, said, HOUSE, services, gone))
        services.doorbells.ring(approval.activity_id)


def _refusal_of(approval: KeptApproval) -> Decision | None:
    return Decision.DENIED if approval.kind == ACTION else None


def _open_approval(approval_id: str, actor: Actor, services: Services) -> KeptApproval | Problem:
    now = services.clock.now()
    expire(services, now)
    approval = find_approval(approval_id, actor.organisation_id, services)
    if isinstance(approval, Problem):
        return approval
    state = approval.state_at(now)
    return approval if state == PENDING else problem(ErrorCode.CONFLICT, f"it is already {state}")


def _someone_else(actor: Actor, services: Services) -> bool:
    """Whether the organisation has another key; the process itself and the one key it made count as one."""
    active = [key for key in services.store.list_keys(actor.organisation_id) if key.revoked_at is None]
    return len(active) > 1 if actor.by == GATE else any(key.key_id != actor.by for key in active)


def _grant_action(approval: KeptApproval, agent: Agent, _actor: Actor, services: Services) -> Granted | Problem:
    """Ruling 4.10: the budget is held already; trust and permissions are asked again, as they stand now."""
    asked = leaf.decode(approval.leaf)
    found = services.vault.content(approval, approval.activity_id)
    if found.state != KEPT:
        return _unreadable(found.state)
    content = msgspec.json.decode(found.text)
    case = _case_of(approval, content, agent, services)
    if isinstance(case, Answer):
        return _changed("" if case.error is None else case.error.message)
    if asked.action_hash not in (None, case.action.hash):
        return _unreadable(TAMPERED)
    risk = max(Risk.of(asked.risk_level or "critical"), case.subject.base)
    if TRUST_MATRIX[agent.trust][risk] is Decision.DENIED:
        return _changed(f"a {risk.word} risk action is beyond trust level {int(agent.trust)}")
    decision = Decision.CORRECTED if content.get("corrected") is not None else Decision.APPROVED
    known = {
        "action_type": asked.action_type,
        "attestation_id": timed_id("att", services.clock.now()),
        "cost_micros": approval.cost,
        "engine": asked.engine,
        "policy_hash": agent.policy_hash(case.subject.name, case.subject.row, SETTINGS_VERSION),
        "risk_level": risk.word,
        "status": asked.status,
        "step_number": asked.step_number,
        "tokens": approval.tokens,
    }
    return Granted(decision, known, (AgentStands(agent),), {"sub": content.get("sub") or _sub_of(content)})


def _stands(approval: KeptApproval, services: Services) -> bool:
    """Whether what asks for approval is in the log as it was signed, and was not written into the tables since."""
    if services.store.in_memory:
        return True
    index = services.store.log_index_of(approval.organisation_id, approval.activity_id)
    return index is not None and proven_head(approval.leaf, approval.organisation_id, index, services) is not None


def _sub_of(content: dict[str, Any]) -> str | None:
    """What was asked for before its hash was kept beside it."""
    action = read_action(content.get("corrected") or content["action"])
    return None if isinstance(action, Answer) else f"sha256:{action.hash}"


def _unreadable(state: str) -> Problem:
    if state == TAMPERED:
        return problem(ErrorCode.TAMPERING_FOUND, "what is to be approved was changed in the store: reject it")
    return problem(ErrorCode.CONFLICT, f"what is to be approved is {state}: reject it")


def _case_of(approval: KeptApproval, content: dict[str, Any], agent: Agent, services: Services) -> Case | Answer:
    """The action as it was kept, walked through the permissions of today."""
    action = read_action(content["action"])
    if isinstance(action, Answer):
        return action
    case = Case(
        agent_id=agent.agent_id,
        credentials=Credentials(organisation_id=approval.organisation_id),
        action_raw=None,
        now=services.clock.now(),
    )
    outcome: Case | Answer = check_permissions(replace(case, agent=agent, action=action), services)
    return outcome


def _changed(why: str) -> Problem:
    return problem(ErrorCode.CONFLICT, f"it would be refused today: {why}", check="policy_unchanged")


def _grant_elevation(approval: KeptApproval, agent: Agent, actor: Actor, services: Services) -> Granted | Problem:
    wanted = request_of(approval, services)
    if wanted is None:
        return _unreadable(services.vault.content(approval, approval.activity_id).state)
    if wanted["from_level"] != agent.trust:
        return _changed(f"the agent's trust level is {int(agent.trust)} by now")
    to = Trust(wanted["to_level"])
    if to is Trust.TRUSTED and actor.role != "owner":
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "trust level 3 needs an owner key")
    refusal = refuse_evidence(evidence_of(agent, services), services)
    if refusal is not None:
        return refusal
    after = agent_with(agent, trust=to)
    return Granted(None, {"level_before": int(agent.trust), "level_after": int(to)}, (AgentChanged(agent, after),))


_Grant = Callable[[KeptApproval, Agent, Actor, Services], Granted | Problem]
_GRANTS: dict[str, _Grant] = {ACTION: _grant_action, ELEVATION: _grant_elevation}


def _settled(
    approval: KeptApproval,
    state: str,
    event: Event,
    said: Said,
    by: str,
    services: Services,
    granted: Granted,
    *,
    self_approved: bool = False,
) -> Change:
    now = services.clock.now()
    activity_id = timed_id("act", now)
    key = services.vault.key_about(approval.subject_id, approval.organisation_id)
    words = msgspec.json.encode(Words(said.reason, said.approver)).decode()
    settlement = Settlement(
        state=state,
        decision=granted.decision,
        by=by,
        at=rfc3339(now),
        self_approved=self_approved,
        activity_id=activity_id,
        said=key.seal(said_place(approval.approval_id), words),
        subject_id=key.subject_id,
    )
    held = (approval.cost, approval.tokens, approval.high_risk_calls)
    text = msgspec.json.encode(settlement).decode()
    settled = ApprovalResolved(
        approval.approval_id, approval.agent_id, approval.kind, state, text, activity_id, *held, now
    )
    return change_of(
        event,
        by,
        approval.organisation_id,
        now,
        services,
        key=key,
        activity_id=activity_id,
        agent_id=approval.agent_id,
        about=approval.activity_id,
        decision=granted.decision,
        self_approved=self_approved,
        said={"reason": said.reason, "approver": said.approver, "approval_id": approval.approval_id, **granted.said},
        parts=(settled, *granted.parts),
        **granted.leaf,
    )


async def _finish(approval: KeptApproval, change: Change, services: Services) -> KeptApproval | Problem:
    kept = await keep(change, services)
    if isinstance(kept, Problem):
        return kept
    services.doorbells.ring(approval.activity_id)
    return find_approval(approval.approval_id, approval.organisation_id, services)
