"""Handlers for suspension, trust, token rotation and the kill switch; never for the agent itself (spec 8)."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from qwed.api.server.auth import (
    ANY_ROLE,
    APPROVERS,
    actor_id_of,
    require_actor,
    require_agent,
    require_own_agent,
)
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.agents import elevation, lifecycle, trust
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.body_parsing import read_fields
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import AgentView, RegisteredView, View, agent_view, registered_view
from qwed.store.agent import Agent

_AgentChange = Callable[[Agent, str, Actor, Services], Coroutine[Any, None, Agent | Problem]]


class TrustView(View, frozen=True, kw_only=True):
    """Result of a trust request: an approval to wait for, or the new level."""

    agent_id: str
    trust_level: int
    approval_id: str | None
    expires_at: str | None
    evidence: trust.Evidence | None


class HaltView(View, frozen=True, kw_only=True):
    """State of the organisation's kill switch."""

    organisation_id: str
    halted: bool


async def suspend(request: RequestContext) -> Response:
    """Suspend an agent; any key of the organisation may."""
    return await _change_agent(request, lifecycle.suspend, ANY_ROLE)


async def file_complaint(request: RequestContext) -> Response:
    """File a complaint, which suspends the agent (spec 8.3)."""
    return await _change_agent(request, lifecycle.complain, ANY_ROLE)


async def reactivate(request: RequestContext) -> Response:
    """Reactivate an agent; requires an owner or an approver."""
    return await _change_agent(request, lifecycle.reactivate, APPROVERS)


async def _change_agent(request: RequestContext, act: _AgentChange, roles: frozenset[str]) -> Response:
    who = require_own_agent(request, roles)
    if isinstance(who, Problem):
        return error_response(who)
    fields = read_fields(request.json(), ("reason",))
    if isinstance(fields, Problem):
        return error_response(fields)
    actor, agent = who
    outcome = await request.driver.run(act(agent, fields["reason"], actor, request.services))
    return error_response(outcome) if isinstance(outcome, Problem) else json_response(_agent_view(outcome, request))


def _agent_view(agent: Agent, request: RequestContext) -> AgentView:
    return agent_view(agent, halted=request.services.store.halted(agent.organisation_id))


async def rotate_token(request: RequestContext) -> Response:
    """Return a new token, shown once."""
    who = require_own_agent(request, APPROVERS)
    if isinstance(who, Problem):
        return error_response(who)
    outcome = await request.driver.run(lifecycle.rotate_token(who[1], who[0], request.services))
    if isinstance(outcome, Problem):
        return error_response(outcome)
    view: RegisteredView = registered_view(outcome.agent, outcome.token)
    return json_response(view)


async def change_trust(request: RequestContext) -> Response:
    """Request more trust, or reduce it at once as an owner or approver (spec 8.2)."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    trust_request = trust.read_request(request.json(), agent)
    if isinstance(trust_request, Problem):
        return error_response(trust_request)
    if trust_request.kind == trust.REDUCTION:
        return await _reduce(request, agent, trust_request)
    actor_id = actor_id_of(request, agent)
    outcome = await request.driver.run(elevation.request_elevation(agent, trust_request, actor_id, request.services))
    if isinstance(outcome, Problem):
        return error_response(outcome)
    fields = msgspec.structs.asdict(outcome)
    return json_response(TrustView(agent_id=agent.agent_id, trust_level=int(agent.trust), **fields), 202)


async def _reduce(request: RequestContext, agent: Agent, trust_request: trust.TrustRequest) -> Response:
    actor = require_actor(request, APPROVERS)
    if isinstance(actor, Problem):
        return error_response(actor)
    outcome = await request.driver.run(trust.reduce_trust(agent, trust_request, actor, request.services))
    if isinstance(outcome, Problem):
        return error_response(outcome)
    view = TrustView(
        agent_id=agent.agent_id, trust_level=int(outcome.trust), approval_id=None, expires_at=None, evidence=None
    )
    return json_response(view)


async def suspend_all(request: RequestContext) -> Response:
    """Suspend every agent of the organisation; any key may (kill switch)."""
    return await _set_halt(request, True, ANY_ROLE)


async def reactivate_all(request: RequestContext) -> Response:
    """Release the kill switch; agents suspended one by one stay suspended."""
    return await _set_halt(request, False, APPROVERS)


async def _set_halt(request: RequestContext, halt: bool, roles: frozenset[str]) -> Response:
    actor = require_actor(request, roles)
    if isinstance(actor, Problem):
        return error_response(actor)
    fields = read_fields(request.json(), ("reason",))
    if isinstance(fields, Problem):
        return error_response(fields)
    outcome = await request.driver.run(lifecycle.set_halt(halt, fields["reason"], actor, request.services))
    if isinstance(outcome, Problem):
        return error_response(outcome)
    return json_response(HaltView(organisation_id=actor.organisation_id, halted=halt))
