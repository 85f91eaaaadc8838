"""Authentication of the caller and the agent: the first stage (AGENT-001..003, ruling 4.18)."""

from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.model import Decision, ErrorCode, Trust
from qwed.model.roles import CALLER_ROLES, MEMBER
from qwed.store.agent import Agent, Key
from qwed.store.credentials import API_KEY, matches, prefix_of
from qwed.store.protocol import Store

_SEND_CREDENTIAL = "send an organisation key in X-API-Key, or the agent's own token in Authorization: Bearer"

_ABOVE_MEMBER = "a member key decides on behalf of agents of trust level 0 to 2 only"
_OF_ANOTHER = "a member key decides only on behalf of the agents it registered"
_PROVE_AGENT = "send the agent's own token in Authorization: Bearer, or a key of an owner or approver"


def authenticate(case: Case, services: Services) -> Case | Answer:
    """Return the case with its agent, or the refusal of an unauthenticated caller."""
    credentials = case.credentials
    key = None
    if credentials.api_key is not None:
        key = find_key(credentials.api_key, services.store, credentials.proven_key)
        if key is None or key.role not in CALLER_ROLES:
            return denied(ErrorCode.UNKNOWN_CREDENTIAL if key is None else ErrorCode.ROLE_NOT_SUFFICIENT)
    agent = services.store.find_agent(case.agent_id)
    if credentials.agent_token is not None and (agent is None or agent is not credentials.proven_agent):
        proven = matches(credentials.agent_token, None if agent is None else agent.token_digest)
        # A token must not reveal anything about other ids, not even whether they exist.
        if agent is None or not proven:
            return denied(ErrorCode.INVALID_AGENT_TOKEN)
    organisation_id = key.organisation_id if key is not None else credentials.organisation_id
    if organisation_id is None and credentials.agent_token is None:
        return denied(ErrorCode.INVALID_AGENT_TOKEN, "no credential", suggestion=_SEND_CREDENTIAL)
    if agent is None or organisation_id not in (None, agent.organisation_id):
        return denied(ErrorCode.AGENT_NOT_REGISTERED)
    return _refuse_proven_caller(case, agent, key) or replace(case, agent=agent, key=key)


def _refuse_proven_caller(case: Case, agent: Agent, key: Key | None) -> Answer | None:
    """Return the refusal of a caller that belongs to the organisation, or None."""
    is_member = key is not None and key.role == MEMBER and case.credentials.agent_token is None
    # Level 3 is given by an owner: a member's key may not use it.
    if is_member and agent.trust >= Trust.TRUSTED:
        return denied(ErrorCode.ROLE_NOT_SUFFICIENT, _ABOVE_MEMBER, suggestion=_PROVE_AGENT)
    if is_member and key is not None and agent.registered_by not in (None, key.key_id):
        return denied(ErrorCode.ROLE_NOT_SUFFICIENT, _OF_ANOTHER, suggestion=_PROVE_AGENT)
    if case.stated_agent_id not in (None, case.agent_id):
        return denied(ErrorCode.MALFORMED, "`agent_id` in the body is not the agent in the path")
    return None


def require_active(case: Case, services: Services) -> Case | Answer:
    """Return the case, or AGENT-003. A stage of its own, because with the agent known the refusal is recorded."""
    return refuse_inactive(case, services) if services.stopped(case.agent) else case


def refuse_inactive(case: Case, services: Services) -> Answer:
    """Return AGENT-003 for a suspended agent or a halted organisation."""
    return Answer(decision=Decision.DENIED, error=inactive_problem(case.agent, services))


def inactive_problem(agent: Agent, services: Services) -> Problem:
    """Return the error for an agent that is stopped."""
    details = {"agent_id": agent.agent_id}
    if not services.store.halted(agent.organisation_id):
        return problem(ErrorCode.AGENT_SUSPENDED, details=details)
    return problem(
        ErrorCode.AGENT_SUSPENDED,
        "every agent of the organisation is stopped",
        suggestion="an owner or approver ends the halt with POST /reactivate-all",
        details=details,
    )


def find_key(text: str, store: Store, proven: Key | None = None) -> Key | None:
    """Return the key that matches `text` and is not revoked, or None; a proven key must only still be stored."""
    if proven is not None:
        return proven if store.find_key(proven.prefix) == proven else None
    prefix = prefix_of(text, API_KEY)
    key = None if prefix is None else store.find_key(prefix)
    return key if matches(text, None if key is None else key.digest) else None
