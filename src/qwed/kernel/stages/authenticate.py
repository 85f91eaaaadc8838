"""AGENT-001..003 and ruling 4.18: who asks, for which agent. First: nothing is said to a stranger."""

from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.store.agent import Agent, Key
from qwed.store.credentials import API_KEY, matches, prefix_of
from qwed.store.protocol import Store
from qwed.words import Decision, ErrorCode
from qwed.words.roles import ASKING

_SHOW_ONE = "send an organisation key in X-API-Key, or the agent's own token in Authorization: Bearer"


def authenticate(case: Case, services: Services) -> Case | Answer:
    """The case with its agent, or the refusal a stranger gets."""
    shown = case.credentials
    key = None
    if shown.api_key is not None:
        key = find_key(shown.api_key, services.store, shown.proven_key)
        if key is None or key.role not in ASKING:
            return denied(ErrorCode.UNKNOWN_CREDENTIAL if key is None else ErrorCode.ROLE_NOT_SUFFICIENT)
    agent = services.store.find_agent(case.agent_id)
    if shown.agent_token is not None and (agent is None or agent is not shown.proven_agent):
        proven = matches(shown.agent_token, None if agent is None else agent.token_digest)
        # A token says nothing about other ids, not even whether they exist.
        if agent is None or not proven:
            return denied(ErrorCode.INVALID_AGENT_TOKEN)
    organisation_id = key.organisation_id if key is not None else shown.organisation_id
    if organisation_id is None and shown.agent_token is None:
        return denied(ErrorCode.INVALID_AGENT_TOKEN, "no credential", suggestion=_SHOW_ONE)
    if agent is None or organisation_id not in (None, agent.organisation_id):
        return denied(ErrorCode.AGENT_NOT_REGISTERED)
    if case.stated_agent_id not in (None, case.agent_id):
        return denied(ErrorCode.MALFORMED, "`agent_id` in the body is not the agent in the path")
    return replace(case, agent=agent, key=key)


def require_active(case: Case, services: Services) -> Case | Answer:
    """The case, or AGENT-003: a stage of its own, because the agent is known by now and the refusal is recorded."""
    return refuse_inactive(case, services) if services.stopped(case.agent) else case


def refuse_inactive(case: Case, services: Services) -> Answer:
    """AGENT-003, for an agent or for its whole organisation."""
    return Answer(decision=Decision.DENIED, error=inactive(case.agent, services))


def inactive(agent: Agent, services: Services) -> Problem:
    """Why an agent that is stopped may do nothing."""
    details = {"agent_id": agent.agent_id}
    if not services.store.halted(agent.organisation_id):
        return problem(ErrorCode.AGENT_SUSPENDED, details=details)
    return problem(
        ErrorCode.AGENT_SUSPENDED,
        "every agent of the organisation is stopped",
        suggestion="an owner or approver puts the kill switch back with POST /reactivate-all",
        details=details,
    )


def find_key(text: str, store: Store, proven: Key | None = None) -> Key | None:
    """The key that `text` is, if it is one and not revoked; one proven before need only still stand."""
    if proven is not None:
        return proven if store.find_key(proven.prefix) == proven else None
    prefix = prefix_of(text, API_KEY)
    key = None if prefix is None else store.find_key(prefix)
    return key if matches(text, None if key is None else key.digest) else None
