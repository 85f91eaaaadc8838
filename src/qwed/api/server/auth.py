"""Authentication and role checks of the routes that are not decisions (ruling 4.18)."""

from qwed.api.server.endpoint import RequestContext
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.stages.authenticate import find_key
from qwed.model import ErrorCode
from qwed.model.roles import CALLER_ROLES
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches

ANY_ROLE = CALLER_ROLES
_HEADER_HINT = "send keys (`qwed_live_...`) in X-API-Key and agent tokens (`qwed_agent_...`) in Authorization: Bearer"
OWNER = frozenset({"owner"})
APPROVERS = frozenset({"owner", "approver"})


def require_key(request: RequestContext, roles: frozenset[str] = ANY_ROLE) -> Key | Problem:
    """Return the caller's organisation key if its role is among `roles`."""
    if request.api_key is None:
        if request.agent_token is not None:
            return problem(
                ErrorCode.ROLE_NOT_SUFFICIENT,
                "this route requires an organisation key, not an agent token",
                suggestion=_HEADER_HINT,
            )
        return problem(ErrorCode.NO_CREDENTIAL)
    key = find_key(request.api_key, request.services.store, request.caller.key)
    if key is None:
        return problem(ErrorCode.UNKNOWN_CREDENTIAL, suggestion=_HEADER_HINT)
    if key.role not in roles:
        return problem(
            ErrorCode.ROLE_NOT_SUFFICIENT, f"this route requires a key with the role {' or '.join(sorted(roles))}"
        )
    return key


def require_actor(request: RequestContext, roles: frozenset[str] = ANY_ROLE) -> Actor | Problem:
    """Return the actor of a change: the caller's key, if its role is among `roles`."""
    key = require_key(request, roles)
    return key if isinstance(key, Problem) else Actor(key.key_id, key.organisation_id, key.role)


def require_own_agent(request: RequestContext, roles: frozenset[str] = ANY_ROLE) -> tuple[Actor, Agent] | Problem:
    """Return the agent in the path and the actor: a key of its organisation, never its own token."""
    actor = require_actor(request, roles)
    if isinstance(actor, Problem):
        return actor
    agent = request.services.store.find_agent(request.path["agent_id"])
    if agent is None or agent.organisation_id != actor.organisation_id:
        return problem(ErrorCode.AGENT_NOT_REGISTERED)
    return actor, agent


def actor_id_of(request: RequestContext, agent: Agent) -> str:
    """Return the id of the caller on a route that takes a key or the agent's own token; the key if both were sent."""
    key = None if request.api_key is None else find_key(request.api_key, request.services.store)
    return agent.agent_id if key is None else key.key_id


def require_agent(request: RequestContext) -> Agent | Problem:
    """Return the agent in the path, for its own token or a key of its organisation; if both are sent, both must be
    valid."""
    agent = request.services.store.find_agent(request.path["agent_id"])
    if request.agent_token is not None:
        proven = matches(request.agent_token, None if agent is None else agent.token_digest)
        if agent is None or not proven:
            return problem(ErrorCode.INVALID_AGENT_TOKEN)
        if request.api_key is None:
            return agent
    key = require_key(request)
    if isinstance(key, Problem):
        return key
    if agent is None or agent.organisation_id != key.organisation_id:
        return problem(ErrorCode.AGENT_NOT_REGISTERED)
    return agent
