"""Ruling 4.18 for routes that are no decision: which organisation, which role, which agent."""

from qwed.api.http import Call
from qwed.kernel.answer import Problem, problem
from qwed.kernel.stages.authenticate import find_key
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches
from qwed.words import ErrorCode

ANYONE = frozenset({"owner", "approver", "member"})
OWNER = frozenset({"owner"})


def require_key(call: Call, roles: frozenset[str] = ANYONE) -> Key | Problem:
    """The organisation key of the caller, if its role is among `roles`."""
    if call.api_key is None:
        if call.agent_token is not None:
            return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "this route takes an organisation's key, not a token")
        return problem(ErrorCode.NO_CREDENTIAL, "send an organisation key in X-API-Key")
    key = find_key(call.api_key, call.services.store)
    if key is None:
        return problem(ErrorCode.UNKNOWN_CREDENTIAL)
    if key.role not in roles:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, f"this needs a key with the role {' or '.join(sorted(roles))}")
    return key


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
