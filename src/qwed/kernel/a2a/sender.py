"""Authentication of a message's sender. A name like a registered or trusted agent's must be proven (ruling 4.14)."""

from qwed.domain.agent import Agent, Key
from qwed.guards.homoglyphs import confusable_skeleton
from qwed.kernel.a2a.message import Sender
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import GATE
from qwed.kernel.authentication import has_token_of, prove_key
from qwed.kernel.case import Credentials
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.model.roles import CALLER_ROLES, OWNER

_PROVE = "send the agent's own token in Authorization: Bearer, or a key of an owner in X-API-Key"
_SENDS_AS = "an agent sends under its own id with its own token; an owner's key may send under any name"


def prove_sender(name: str, credentials: Credentials, services: Services) -> Sender | Problem:
    """Return the authenticated sender of this name, or the problem."""
    agent = services.store.find_agent(name)
    key = prove_key(credentials, services.store)
    if credentials.api_key is not None and key is None:
        return problem(ErrorCode.UNKNOWN_CREDENTIAL)
    if key is not None and key.role not in CALLER_ROLES:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT)
    if credentials.agent_token is not None:
        return _by_token(agent, credentials, key)
    organisation_id = credentials.organisation_id if key is None else key.organisation_id
    if organisation_id is None:
        return problem(ErrorCode.NO_CREDENTIAL, suggestion=_PROVE)
    # An agent of another organisation counts as unregistered.
    own = agent if agent is not None and agent.organisation_id == organisation_id else None
    return _by_key(name, organisation_id, own, key, services)


def _by_token(agent: Agent | None, credentials: Credentials, key: Key | None) -> Sender | Problem:
    """Authenticate by the agent's own token; a key sent with it must belong to the same organisation."""
    if not has_token_of(agent, credentials) or agent is None:
        return _unproven()
    organisation_id = key.organisation_id if key is not None else credentials.organisation_id
    if organisation_id not in (None, agent.organisation_id):
        return _unproven()
    return Sender(agent.organisation_id, agent.agent_id if key is None else key.key_id, agent, key, proven=True)


def _by_key(
    name: str, organisation_id: str, agent: Agent | None, key: Key | None, services: Services
) -> Sender | Problem:
    """Authenticate by a key: an owner's key or the process itself proves any name, other keys only free names."""
    proven = key is None or key.role == OWNER
    if not proven and (agent is not None or _resembles(name, organisation_id, services)):
        return _unproven()
    return Sender(organisation_id, GATE if key is None else key.key_id, agent, key, proven)


def _resembles(name: str, organisation_id: str, services: Services) -> bool:
    """Return True if the name could be mistaken for one that must be proven; it would appear in a signed statement."""
    if services.store.access_lists(organisation_id).resembles_trusted(name):
        return True
    plain = confusable_skeleton(name)
    agent = None if plain == name else services.store.find_agent(plain)
    return agent is not None and agent.organisation_id == organisation_id


def _unproven() -> Problem:
    return problem(ErrorCode.UNKNOWN_CREDENTIAL, "the sender is not authenticated", suggestion=_SENDS_AS)
