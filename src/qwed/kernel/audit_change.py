"""Builds and commits audit-logged changes that are not decisions, with their webhook notices."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.domain.agent import Agent
from qwed.domain.change_parts import AgentChanged, ChangePart, Conflict
from qwed.domain.write_set import Activity, Committed, Notice, WriteSet
from qwed.kernel.answer import Problem, problem
from qwed.kernel.privacy.subject_keys import NO_CONTENT
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.ledger.subject_encryption import SubjectKey
from qwed.model import ErrorCode, Event
from qwed.model.clock import rfc3339
from qwed.model.ids import timed_id

GATE = "gate"
"""Actor id of the process itself, which acts as the owner."""
NOTICES = ("pending", "failed", "degraded", "suspended")

_encode = msgspec.json.Encoder().encode


class Actor(NamedTuple):
    """Caller of a change: a key of an organisation, or the process itself."""

    actor_id: str
    organisation_id: str
    role: str


def build_change(
    event: Event,
    actor_id: str,
    organisation_id: str,
    now: float,
    services: Services,
    *,
    key: SubjectKey | None = None,
    agent_id: str | None = None,
    content: Mapping[str, Any] | None = None,
    parts: tuple[ChangePart, ...] = (),
    notices: tuple[Notice, ...] = (),
    activity_id: str | None = None,
    linked: WriteSet | None = None,
    **members: Any,
) -> WriteSet:
    """Build a change and its leaf. `members` are further members of the leaf, `content` is stored outside it.

    The content is sealed with `key`, or with the organisation's own key if there is none.
    """
    stored = {name: value for name, value in (content or {}).items() if value is not None}
    activity_id = activity_id or timed_id("act", now)
    payload, commitment, subject_id = NO_CONTENT, None, None
    if stored:
        key = key or services.vault.key_for(organisation_id, organisation_id)
        text = _encode(stored).decode()
        payload, commitment, subject_id = key.seal(activity_id, text), key.commitment(activity_id, text), key.subject_id
    entry = leaf.Leaf(
        v=leaf.VERSION,
        activity_id=activity_id,
        agent_id=agent_id,
        commitment=commitment,
        by=actor_id,
        event=event,
        time_ms=int(now * 1000),
        **members,
    )
    activity = Activity(
        activity_id,
        None,
        now,
        entry.cost_micros,
        leaf.encode(entry).decode(),
        payload,
        event,
        entry.attestation_id,
        subject_id,
    )
    return WriteSet(
        organisation_id=organisation_id,
        agent_id=agent_id or "",
        activity=activity,
        parts=parts,
        notices=notices,
        linked=linked,
    )


async def commit_change(change: WriteSet, services: Services) -> Committed | Problem:
    """Make the change durable and return its place in the log, or the conflict."""
    if services.at_stage is not None:
        services.at_stage("change")
    result = await services.store.commit(change)
    if isinstance(result, Conflict):
        return problem(ErrorCode.CONFLICT, str(result))
    if services.at_stage is not None:
        services.at_stage("changed")
    return result


async def commit_agent_change(
    event: Event, changed: AgentChanged, reason: str | None, actor: Actor, services: Services, **members: Any
) -> Agent | Problem:
    """Commit a change of an agent and return the changed agent, or the conflict."""
    before = changed.before
    change = build_change(
        event,
        actor.actor_id,
        before.organisation_id,
        services.clock.now(),
        services,
        key=services.vault.key_of_agent(before),
        agent_id=before.agent_id,
        content={"reason": reason},
        parts=(changed,),
        **members,
    )
    result = await commit_change(change, services)
    return result if isinstance(result, Problem) else changed.after


def agent_notices(
    event: str, agent: Agent, activity_id: str, services: Services, now: float, **members: Any
) -> tuple[Notice, ...]:
    """Return the webhook notices about an agent; none if the organisation did not subscribe to the event."""
    about = {"agent_id": agent.agent_id, "principal_id": agent.principal_id}
    return organisation_notices(event, agent.organisation_id, activity_id, services, now, **about, **members)


def organisation_notices(
    event: str, organisation_id: str, activity_id: str, services: Services, now: float, **members: Any
) -> tuple[Notice, ...]:
    """Return the webhook notices of an organisation for this event."""
    webhook = services.store.webhook(organisation_id)
    if webhook is None or event not in webhook.events:
        return ()
    notice_id = timed_id("ntc", now)
    head = {"id": notice_id, "event": event, "at": rfc3339(now), "organisation_id": organisation_id}
    body = {**head, "activity_id": activity_id, **members}
    return (Notice(notice_id, event, _encode(body).decode()),)
