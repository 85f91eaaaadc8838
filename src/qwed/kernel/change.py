"""What happens around decisions, on its way into the log: who did it, to what, why, and whom to tell."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.keeping.vault import NOTHING
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.ledger.vault import SubjectKey
from qwed.store.agent import Agent
from qwed.store.parts import AgentChanged, Conflict, Part
from qwed.store.protocol import Activity, Change, Kept, Notice
from qwed.words import ErrorCode, Event
from qwed.words.clock import rfc3339
from qwed.words.ids import timed_id

GATE = "gate"
"""Who acts where the process itself is the owner."""
NOTICES = ("pending", "failed", "degraded", "suspended")

_encode = msgspec.json.Encoder().encode


class Actor(NamedTuple):
    """Who changes something: a key of an organisation, or the process itself."""

    by: str
    organisation_id: str
    role: str


def change_of(
    event: Event,
    by: str,
    organisation_id: str,
    now: float,
    services: Services,
    *,
    key: SubjectKey | None = None,
    agent_id: str | None = None,
    said: Mapping[str, Any] | None = None,
    parts: tuple[Part, ...] = (),
    notices: tuple[Notice, ...] = (),
    activity_id: str | None = None,
    beside: Change | None = None,
    **known: Any,
) -> Change:
    """The change and its leaf; `known` are further members of the leaf, `said` is content that stays out of it.

    Content is sealed with `key`, where there is none with the organisation's own.
    """
    content = {name: value for name, value in (said or {}).items() if value is not None}
    activity_id = activity_id or timed_id("act", now)
    payload, commitment, subject_id = NOTHING, None, None
    if content:
        key = key or services.vault.key_for(organisation_id, organisation_id)
        text = _encode(content).decode()
        payload, commitment, subject_id = key.seal(activity_id, text), key.commitment(activity_id, text), key.subject_id
    entry = leaf.Leaf(
        v=leaf.VERSION,
        activity_id=activity_id,
        agent_id=agent_id,
        commitment=commitment,
        by=by,
        event=event,
        time_ms=int(now * 1000),
        **known,
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
    return Change(
        organisation_id=organisation_id,
        agent_id=agent_id or "",
        activity=activity,
        parts=parts,
        notices=notices,
        beside=beside,
    )


async def keep(change: Change, services: Services) -> Kept | Problem:
    """Make the change durable and return its place in the log, or say why it cannot be made."""
    if services.at_stage is not None:
        services.at_stage("change")
    ticket = services.store.change(change)
    kept = ticket if isinstance(ticket, Conflict) else await ticket
    if isinstance(kept, Conflict):
        return problem(ErrorCode.CONFLICT, str(kept))
    if services.at_stage is not None:
        services.at_stage("changed")
    return kept


async def keep_agent(
    event: Event, changed: AgentChanged, reason: str | None, actor: Actor, services: Services, **known: Any
) -> Agent | Problem:
    """The agent as it was changed, once that is durable, or why it cannot be."""
    before = changed.before
    change = change_of(
        event,
        actor.by,
        before.organisation_id,
        services.clock.now(),
        services,
        key=services.vault.key_of_agent(before),
        agent_id=before.agent_id,
        said={"reason": reason},
        parts=(changed,),
        **known,
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else changed.after


def notices_of(
    event: str, agent: Agent, activity_id: str, services: Services, now: float, **more: Any
) -> tuple[Notice, ...]:
    """What to tell the organisation's webhook about an agent: nothing, where nobody asked to be told."""
    about = {"agent_id": agent.agent_id, "principal_id": agent.principal_id}
    return organisation_notices(event, agent.organisation_id, activity_id, services, now, **about, **more)


def organisation_notices(
    event: str, organisation_id: str, activity_id: str, services: Services, now: float, **more: Any
) -> tuple[Notice, ...]:
    """What to tell the organisation's webhook."""
    webhook = services.store.webhook(organisation_id)
    if webhook is None or event not in webhook.events:
        return ()
    notice_id = timed_id("ntc", now)
    head = {"id": notice_id, "event": event, "at": rfc3339(now), "organisation_id": organisation_id}
    body = {**head, "activity_id": activity_id, **more}
    return (Notice(notice_id, event, _encode(body).decode()),)
