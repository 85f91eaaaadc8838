"""Spec 8: an agent's trust and standing, changed by people and never by the agent itself."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from qwed.api.access import ANYONE, APPROVERS, asked_by, require_actor, require_agent, require_own_agent
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.agents import elevation, standing, trust
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.change import Actor
from qwed.kernel.services import Services
from qwed.kernel.views.agents import AgentView, RegisteredView, View, agent_view, registered_view
from qwed.store.agent import Agent

_Act = Callable[[Agent, str, Actor, Services], Coroutine[Any, None, Agent | Problem]]


class TrustView(View, frozen=True, kw_only=True):
    """Where a request for a change of trust has led: an approval to wait for, or a new level."""

    agent_id: str
    trust_level: int
    approval_id: str | None
    expires_at: str | None
    evidence: trust.Evidence | None


class HaltView(View, frozen=True, kw_only=True):
    """The organisation's kill switch."""

    organisation_id: str
    halted: bool


async def suspend(call: Call) -> Response:
    """Any key of the organisation may stop an agent."""
    return await _act(call, standing.suspend, ANYONE)


async def file_complaint(call: Call) -> Response:
    """Spec 8.3: a complaint suspends."""
    return await _act(call, standing.complain, ANYONE)


async def reactivate(call: Call) -> Response:
    """Only an owner or an approver lets it go on."""
    return await _act(call, standing.reactivate, APPROVERS)


async def _act(call: Call, act: _Act, roles: frozenset[str]) -> Response:
    who = require_own_agent(call, roles)
    if isinstance(who, Problem):
        return refused(who)
    said = read_fields(call.json(), ("reason",))
    if isinstance(said, Problem):
        return refused(said)
    actor, agent = who
    outcome = await call.driver.drive(act(agent, said["reason"], actor, call.services))
    return refused(outcome) if isinstance(outcome, Problem) else ok(_shown(outcome, call))


def _shown(agent: Agent, call: Call) -> AgentView:
    return agent_view(agent, halted=call.services.store.halted(agent.organisation_id))


async def rotate_token(call: Call) -> Response:
    """A new token, shown once."""
    who = require_own_agent(call, APPROVERS)
    if isinstance(who, Problem):
        return refused(who)
    outcome = await call.driver.drive(standing.rotate_token(who[1], who[0], call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    view: RegisteredView = registered_view(outcome.agent, outcome.token)
    return ok(view)


async def change_trust(call: Call) -> Response:
    """Spec 8.2: more trust is asked for, by the agent or for it; less is set at once by an owner or approver."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    wanted = trust.read_request(call.json(), agent)
    if isinstance(wanted, Problem):
        return refused(wanted)
    if wanted.kind == trust.REDUCTION:
        return await _reduce(call, agent, wanted)
    by = asked_by(call, agent)
    outcome = await call.driver.drive(elevation.request_elevation(agent, wanted, by, call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    asked = msgspec.structs.asdict(outcome)
    return ok(TrustView(agent_id=agent.agent_id, trust_level=int(agent.trust), **asked), 202)


async def _reduce(call: Call, agent: Agent, wanted: trust.Wanted) -> Response:
    actor = require_actor(call, APPROVERS)
    if isinstance(actor, Problem):
        return refused(actor)
    outcome = await call.driver.drive(trust.reduce_trust(agent, wanted, actor, call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    view = TrustView(
        agent_id=agent.agent_id, trust_level=int(outcome.trust), approval_id=None, expires_at=None, evidence=None
    )
    return ok(view)


async def suspend_all(call: Call) -> Response:
    """The kill switch: any key of the organisation stops every agent of it at once."""
    return await _halt(call, True, ANYONE)


async def reactivate_all(call: Call) -> Response:
    """The kill switch put back; agents that were suspended one by one stay so."""
    return await _halt(call, False, APPROVERS)


async def _halt(call: Call, halt: bool, roles: frozenset[str]) -> Response:
    actor = require_actor(call, roles)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("reason",))
    if isinstance(said, Problem):
        return refused(said)
    outcome = await call.driver.drive(standing.set_halt(halt, said["reason"], actor, call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    return ok(HaltView(organisation_id=actor.organisation_id, halted=halt))
