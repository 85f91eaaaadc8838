"""Route table: every operation in the order of its endpoint, and the handler of each."""

from typing import Any

from qwed.api.handlers import a2a as a2a_handlers
from qwed.api.handlers import agents, attestations, docs, event_stream, health, reports, verify, webhook
from qwed.api.server.auth import require_actor, require_agent, require_own_agent
from qwed.api.server.endpoint import Handler, RequestContext, Response, error_response, json_response
from qwed.domain.agent import Agent
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.operations import OPERATIONS, operations_in
from qwed.kernel.operations.operation import AGENT_ROLE, Access, AgentCall, Call, Operation, is_coroutine
from qwed.model.endpoints import Endpoint

__all__ = ["ROUTES", "Route", "handler_of"]

Route = Operation
_BY_ENDPOINT = {
    row.endpoint: row
    for row in (
        *OPERATIONS,
        *operations_in(a2a_handlers, agents, attestations, docs, event_stream, health, reports, verify, webhook),
    )
}
ROUTES: tuple[Operation, ...] = tuple(_BY_ENDPOINT[endpoint] for endpoint in Endpoint)
_NOBODY = Actor("", "", "")
"""Caller of an operation that takes no credential."""


def handler_of(row: Operation) -> Handler:
    """Return the handler of an operation: authenticate, parse, run, encode."""
    if row.is_handler:
        return row.run
    drives = is_coroutine(row)

    async def handle(request: RequestContext) -> Response:
        call = _call_of(row, request)
        if isinstance(call, Problem):
            return error_response(call)
        arguments: list[Any] = [call]
        if row.request is not None:
            parsed = row.parse(request.query if row.method == "GET" else request.json())
            if isinstance(parsed, Problem):
                return error_response(parsed)
            arguments.append(parsed)
        outcome = await (
            request.driver.run(row.run(*arguments)) if drives else request.run_blocking(row.run, *arguments)
        )
        if isinstance(outcome, Problem):
            return error_response(outcome)
        status = row.status if row.status_of is None else row.status_of(outcome)
        return json_response(outcome, status, None if row.etag_of is None else row.etag_of(outcome))

    return handle


def _call_of(row: Operation, request: RequestContext) -> Call | AgentCall | Problem:
    """Return the authenticated call, or the problem with the caller."""
    if row.access is Access.OPEN:
        return Call(_NOBODY, request.services, request.path)
    if row.access is Access.KEY:
        actor = require_actor(request, row.roles)
        if isinstance(actor, Problem):
            return actor
        return Call(actor, request.services, request.path, request.header(b"if-match") if row.conditional else None)
    if row.access is Access.OWN_AGENT:
        target = require_own_agent(request, row.roles)
        if isinstance(target, Problem):
            return target
        if_match = request.header(b"if-match") if row.conditional else None
        return AgentCall(target[0], request.services, request.path, target[1], if_match)
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return agent
    return AgentCall(_actor_of(request, agent), request.services, request.path, agent)


def _actor_of(request: RequestContext, agent: Agent) -> Actor:
    """Return the caller on a route that takes a key or the agent's own token; the key if both were sent."""
    key = request.caller.key
    if key is None:
        return Actor(agent.agent_id, agent.organisation_id, AGENT_ROLE)
    return Actor(key.key_id, key.organisation_id, key.role)
