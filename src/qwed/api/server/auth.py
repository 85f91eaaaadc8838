"""Authentication and role checks of the routes that are not decisions (ruling 4.18)."""

from qwed.api.server.endpoint import RequestContext
from qwed.domain.agent import Agent, Key
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.authentication import has_token_of, prove_key
from qwed.kernel.operations.operation import AGENT_ROLE, HEADER_HINT, refuse_role
from qwed.model import ErrorCode
from qwed.model.roles import CALLER_ROLES


def require_key(request: RequestContext, roles: frozenset[str] = CALLER_ROLES) -> Key | Problem:
    """Return the caller's organisation key if its role is among `roles`."""
    if request.api_key is None:
        refusal = None if request.agent_token is None else refuse_role(AGENT_ROLE, roles)
        return refusal or problem(ErrorCode.NO_CREDENTIAL)
    key = prove_key(request.credentials(), request.services.store)
    if key is None:
        return problem(ErrorCode.UNKNOWN_CREDENTIAL, suggestion=HEADER_HINT)
    return refuse_role(key.role, roles) or key


def require_actor(request: RequestContext, roles: frozenset[str] = CALLER_ROLES) -> Actor | Problem:
    """Return the actor of a change: the caller's key, if its role is among `roles`."""
    key = require_key(request, roles)
    return key if isinstance(key, Problem) else Actor(key.key_id, key.organisation_id, key.role)


def require_own_agent(request: RequestContext, roles: frozenset[str] = CALLER_ROLES) -> tuple[Actor, Agent] | Problem:
    """Return the agent in the path and the actor: a key of its organisation, never its own token."""
    actor = require_actor(request, roles)
    if isinstance(actor, Problem):
        return actor
    agent = request.services.store.find_agent(request.path["agent_id"])
    if agent is None or agent.organisation_id != actor.organisation_id:
        return problem(ErrorCode.AGENT_NOT_REGISTERED)
    return actor, agent


def require_agent(request: RequestContext) -> Agent | Problem:
    """Return the agent in the path, for its own token or a key of its organisation; if both are sent, both must be
    valid."""
    agent = request.services.store.find_agent(request.path["agent_id"])
    if request.agent_token is not None:
        if not has_token_of(agent, request.credentials()) or agent is None:
            return problem(ErrorCode.INVALID_AGENT_TOKEN)
        if request.api_key is None:
            return agent
    key = require_key(request)
    if isinstance(key, Problem):
        return key
    if agent is None or agent.organisation_id != key.organisation_id:
        return problem(ErrorCode.AGENT_NOT_REGISTERED)
    return agent
