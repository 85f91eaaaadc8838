"""Lifecycle of an agent: suspend, reactivate, rotate its token; kill switch of an organisation (spec 8.3)."""

from dataclasses import replace
from typing import NamedTuple

from qwed.domain.agent import Agent, AgentStatus
from qwed.domain.change_parts import AgentChanged, OrganisationHalted
from qwed.domain.credentials import AGENT_TOKEN, mint
from qwed.kernel.agents.editing import refuse_retired
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import (
    Actor,
    agent_notices,
    build_change,
    commit_agent_change,
    commit_change,
    organisation_notices,
)
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event
from qwed.model.ids import timed_id

_MAX_ATTEMPTS = 8


async def suspend(agent: Agent, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """Suspend the agent until a person reactivates it."""
    return await _stop(agent, Event.SUSPENDED, reason, actor, services)


async def complain(agent: Agent, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """Suspend the agent because of a complaint of its principal (spec 8.3)."""
    return await _stop(agent, Event.COMPLAINT, reason, actor, services)


async def _stop(agent: Agent, event: Event, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """Suspend the agent; retried with the current agent if another change commits first."""
    refusal = refuse_retired(agent)
    if refusal is not None:
        return refusal
    for _ in range(_MAX_ATTEMPTS):
        stopped = await _try_stop(agent, event, reason, actor, services)
        current = services.store.find_agent(agent.agent_id)
        if not isinstance(stopped, Problem) or current is None or current == agent:
            return stopped
        agent = current
        refusal = refuse_retired(agent)
        if refusal is not None:
            return refusal
    return stopped


async def _try_stop(agent: Agent, event: Event, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    if agent.status is AgentStatus.SUSPENDED and event is Event.SUSPENDED:
        # A second request is not an error, but the first change must be durable before the second is answered.
        await services.store.durable()
        return agent if services.store.find_agent(agent.agent_id) == agent else problem(ErrorCode.CONFLICT)
    now = services.clock.now()
    after = replace(agent, status=AgentStatus.SUSPENDED)
    activity_id = timed_id("act", now)
    change = build_change(
        event,
        actor.actor_id,
        agent.organisation_id,
        now,
        services,
        key=services.vault.key_of_agent(agent),
        activity_id=activity_id,
        agent_id=agent.agent_id,
        content={"reason": reason},
        parts=(AgentChanged(agent, after),),
        notices=agent_notices("suspended", agent, activity_id, services, now),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else after


async def reactivate(agent: Agent, reason: str, actor: Actor, services: Services) -> Agent | Problem:
    """Reactivate the agent."""
    refusal = refuse_retired(agent)
    if refusal is not None:
        return refusal
    if agent.status is AgentStatus.ACTIVE and services.store.halted(agent.organisation_id):
        return problem(
            ErrorCode.CONFLICT,
            "the whole organisation is stopped, not this agent",
            suggestion="end the halt with POST /reactivate-all",
        )
    if agent.status is AgentStatus.ACTIVE:
        await services.store.durable()
        return agent if services.store.find_agent(agent.agent_id) == agent else problem(ErrorCode.CONFLICT)
    change = AgentChanged(agent, replace(agent, status=AgentStatus.ACTIVE))
    return await commit_agent_change(Event.REACTIVATED, change, reason, actor, services)


class RotatedToken(NamedTuple):
    """An agent and its new token, which is shown once."""

    agent: Agent
    token: str


async def rotate_token(agent: Agent, actor: Actor, services: Services) -> RotatedToken | Problem:
    """Issue a new token; the old one is invalid from now on."""
    refusal = refuse_retired(agent)
    if refusal is not None:
        return refusal
    token = mint(AGENT_TOKEN)
    after = replace(agent, token_prefix=token.prefix, token_digest=token.digest)
    change = build_change(
        Event.TOKEN_ROTATED,
        actor.actor_id,
        agent.organisation_id,
        services.clock.now(),
        services,
        agent_id=agent.agent_id,
        parts=(AgentChanged(agent, after),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else RotatedToken(after, token.text)


async def set_halt(halt: bool, reason: str, actor: Actor, services: Services) -> bool | Problem:
    """Set or clear the organisation's kill switch; return True if that changed something.

    It is a flag of the organisation and not a loop over its agents: it takes effect for all of them at once, and
    clearing it does not reactivate agents that were suspended individually.
    """
    if services.store.halted(actor.organisation_id) is halt:
        await services.store.durable()
        return False if services.store.halted(actor.organisation_id) is halt else problem(ErrorCode.CONFLICT)
    now = services.clock.now()
    activity_id = timed_id("act", now)
    notices = organisation_notices("suspended", actor.organisation_id, activity_id, services, now) if halt else ()
    change = build_change(
        Event.HALTED if halt else Event.RESUMED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        activity_id=activity_id,
        about=actor.organisation_id,
        content={"reason": reason},
        parts=(OrganisationHalted(actor.organisation_id, now if halt else None),),
        notices=notices,
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else True
