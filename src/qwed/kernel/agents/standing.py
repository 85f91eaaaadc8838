"""Spec 8.3: whether an agent may act at all, and with which token; the kill switch of an organisation."""

from dataclasses import replace
from typing import NamedTuple

from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor, change_of, keep, keep_agent, notices_of, organisation_notices
from qwed.kernel.services import Services
from qwed.store.agent import Agent, AgentStatus
from qwed.store.credentials import AGENT_TOKEN, mint
from qwed.store.parts import AgentChanged, OrganisationHalted
from qwed.words import ErrorCode, Event
from qwed.words.ids import timed_id

_TRIES = 8


async def suspend(agent: Agent, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """The agent, which may do nothing until a person reactivates it."""
    return await _stop(agent, Event.SUSPENDED, reason, actor, services)


async def complain(agent: Agent, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """Spec 8.3: a complaint of the principal suspends the agent."""
    return await _stop(agent, Event.COMPLAINT, reason, actor, services)


async def _stop(agent: Agent, event: Event, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """Something else may change the agent at the same moment: then it is stopped as it is by then."""
    for _ in range(_TRIES):
        stopped = await _try_to_stop(agent, event, reason, actor, services)
        current = services.store.find_agent(agent.agent_id)
        if not isinstance(stopped, Problem) or current is None or current == agent:
            return stopped
        agent = current
    return stopped


async def _try_to_stop(agent: Agent, event: Event, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    if agent.status is AgentStatus.SUSPENDED and event is Event.SUSPENDED:
        # Asking twice is no mistake; but what the first one changed must be on disk before the second is told so.
        await services.store.durable()
        return agent if services.store.find_agent(agent.agent_id) == agent else problem(ErrorCode.CONFLICT)
    now = services.clock.now()
    after = replace(agent, status=AgentStatus.SUSPENDED)
    activity_id = timed_id("act", now)
    change = change_of(
        event,
        actor.by,
        agent.organisation_id,
        now,
        services,
        key=services.vault.key_of_agent(agent),
        activity_id=activity_id,
        agent_id=agent.agent_id,
        said={"reason": reason},
        parts=(AgentChanged(agent, after),),
        notices=notices_of("suspended", agent, activity_id, services, now),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else after


async def reactivate(agent: Agent, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """The agent, which may act again."""
    if agent.status is AgentStatus.ACTIVE and services.store.halted(agent.organisation_id):
        return problem(
            ErrorCode.CONFLICT,
            "the whole organisation is stopped, not this agent",
            suggestion="put the kill switch back with POST /reactivate-all",
        )
    if agent.status is AgentStatus.ACTIVE:
        await services.store.durable()
        return agent if services.store.find_agent(agent.agent_id) == agent else problem(ErrorCode.CONFLICT)
    change = AgentChanged(agent, replace(agent, status=AgentStatus.ACTIVE))
    return await keep_agent(Event.REACTIVATED, change, reason, actor, services)


class Rotated(NamedTuple):
    """An agent and its new token, which is shown once."""

    agent: Agent
    token: str


async def rotate_token(agent: Agent, actor: Actor, services: Services) -> Rotated | Problem:
    """A new token; the old one opens nothing from now on."""
    token = mint(AGENT_TOKEN)
    after = replace(agent, token_prefix=token.prefix, token_digest=token.digest)
    change = change_of(
        Event.TOKEN_ROTATED,
        actor.by,
        agent.organisation_id,
        services.clock.now(),
        services,
        agent_id=agent.agent_id,
        parts=(AgentChanged(agent, after),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else Rotated(after, token.text)


async def set_halt(halt: bool, reason: str, actor: Actor, services: Services) -> bool | Problem:
    """Throw the organisation's kill switch or put it back; true where that changed something.

    A flag of the organisation, and no loop over its agents: it takes effect at once for all of them, and putting it
    back wakes none that were suspended one by one.
    """
    if services.store.halted(actor.organisation_id) is halt:
        await services.store.durable()
        return False if services.store.halted(actor.organisation_id) is halt else problem(ErrorCode.CONFLICT)
    now = services.clock.now()
    activity_id = timed_id("act", now)
    told = organisation_notices("suspended", actor.organisation_id, activity_id, services, now) if halt else ()
    change = change_of(
        Event.HALTED if halt else Event.RESUMED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        activity_id=activity_id,
        about=actor.organisation_id,
        said={"reason": reason},
        parts=(OrganisationHalted(actor.organisation_id, now if halt else None),),
        notices=told,
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else True
