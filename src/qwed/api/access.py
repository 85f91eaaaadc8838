"""Ruling 4.18 for routes that are no decision: which organisation, which role, which agent."""

from qwed.api.http import Call
from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor
from qwed.kernel.stages.authenticate import find_key
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches
from qwed.words import ErrorCode
from qwed.words.roles import ASKING

ANYONE = ASKING
_WHERE = "keys (`qwed_live_...`) go in X-API-Key, agents' tokens (`qwed_agent_...`) in Authorization: Bearer"
OWNER = frozenset({"owner"})
APPROVERS = frozenset({"owner", "approver"})


def require_key(call: Call, roles: frozenset[str] = ANYONE) -> Key | Problem:
    """The organisation key of the caller, if its role is among `roles`."""
    if call.api_key is None:
        if call.agent_token is not None:
            return problem(
                ErrorCode.ROLE_NOT_SUFFICIENT, "this route takes an organisation's key, not a token", suggestion=_WHERE
            )
        return problem(ErrorCode.NO_CREDENTIAL)
    key = find_key(call.api_key, call.services.store, call.caller.key)
    if key is None:
        return problem(ErrorCode.UNKNOWN_CREDENTIAL, suggestion=_WHERE)
    if key.role not in roles:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, f"this needs a key with the role {' or '.join(sorted(roles))}")
    return key


def require_actor(call: Call, roles: frozenset[str] = ANYONE) -> Actor | Problem:
    """Who changes something: the caller's key, if its role is among `roles`."""
    key = require_key(call, roles)
    return key if isinstance(key, Problem) else Actor(key.key_id, key.organisation_id, key.role)


def require_own_agent(call: Call, roles: frozenset[str] = ANYONE) -> tuple[Actor, Agent] | Problem:
    """The agent in the path and who acts upon it: a key of its organisation, never its own token."""
    actor = require_actor(call, roles)
    if isinstance(actor, Problem):
        return actor
    agent = call.services.store.find_agent(call.path["agent_id"])
    if agent is None or agent.organisation_id != actor.organisation_id:
        return problem(ErrorCode.AGENT_NOT_REGISTERED)
    return actor, agent


def asked_by(call: Call, agent: Agent) -> str:
    """Who asks on a route that takes a key or the agent's own token: the key, where one was shown."""
    key = None if call.api_key is None else find_key(call.api_key, call.services.store)
    return agent.agent_id if key is None else key.key_id


def require_agent(call: Call) -> Agent | Problem:
    """The agent in the path, for its own token or a key of its organisation; where both are shown, both must hold."""
    agent = call.services.store.find_agent(call.path["agent_id"])
    if call.agent_token is not None:
        proven = matches(call.agent_token, None if agent is None else agent.token_digest)
        if agent is None or not proven:
            return problem(ErrorCode.INVALID_AGENT_TOKEN)
        if call.api_key is None:
            return agent
    key = require_key(call)
    if isinstance(key, Problem):
        return key
    if agent is None or agent.organisation_id != key.organisation_id:
        return problem(ErrorCode.AGENT_NOT_REGISTERED)
    return agent
