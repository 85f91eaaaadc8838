"""Ruling 4.14: who sends a message. Whoever names a registered or trusted agent, however spelt, proves to be it."""

from qwed.guards.likeness import alike
from qwed.kernel.answer import Problem, problem
from qwed.kernel.case import Credentials
from qwed.kernel.change import GATE
from qwed.kernel.messages.message import Sender
from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import find_key
from qwed.store.agent import Agent, Key
from qwed.store.credentials import matches
from qwed.words import ErrorCode
from qwed.words.roles import ASKING, OWNER

_PROVE = "send the agent's own token in Authorization: Bearer, or a key of an owner in X-API-Key"
_SENDS_AS = "an agent sends as its own id with its own token, an owner's key as anybody"


def prove_sender(name: str, shown: Credentials, services: Services) -> Sender | Problem:
    """Who sends under this name, or why that is not believed."""
    agent = services.store.find_agent(name)
    key = None if shown.api_key is None else find_key(shown.api_key, services.store, shown.proven_key)
    if shown.api_key is not None and key is None:
        return problem(ErrorCode.UNKNOWN_CREDENTIAL)
    if key is not None and key.role not in ASKING:
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT)
    if shown.agent_token is not None:
        return _by_token(agent, shown, key)
    organisation_id = shown.organisation_id if key is None else key.organisation_id
    if organisation_id is None:
        return problem(ErrorCode.NO_CREDENTIAL, suggestion=_PROVE)
    # An agent of another organisation is nobody here.
    own = agent if agent is not None and agent.organisation_id == organisation_id else None
    return _by_key(name, organisation_id, own, key, services)


def _by_token(agent: Agent | None, shown: Credentials, key: Key | None) -> Sender | Problem:
    """A token proves its own agent and says nothing about any other name; a key beside it must be of the same house."""
    known = agent is not None and agent is shown.proven_agent
    proven = known or matches(shown.agent_token or "", None if agent is None else agent.token_digest)
    if agent is None or not proven:
        return _unproven()
    house = key.organisation_id if key is not None else shown.organisation_id
    if house not in (None, agent.organisation_id):
        return _unproven()
    return Sender(agent.organisation_id, agent.agent_id if key is None else key.key_id, agent, key, proven=True)


def _by_key(
    name: str, organisation_id: str, agent: Agent | None, key: Key | None, services: Services
) -> Sender | Problem:
    """A key of an owner, or the process itself, proves any name; any other only speaks for names that are nobody's."""
    proven = key is None or key.role == OWNER
    if not proven and (agent is not None or _resembles(name, organisation_id, services)):
        return _unproven()
    return Sender(organisation_id, GATE if key is None else key.key_id, agent, key, proven)


def _resembles(name: str, organisation_id: str, services: Services) -> bool:
    """Whether the name would be taken for one that has to be proven; it would stand in what we sign."""
    if services.store.boundary(organisation_id).resembles_trusted(name):
        return True
    plain = alike(name)
    agent = None if plain == name else services.store.find_agent(plain)
    return agent is not None and agent.organisation_id == organisation_id


def _unproven() -> Problem:
    return problem(ErrorCode.UNKNOWN_CREDENTIAL, "it is not proven who sends this", suggestion=_SENDS_AS)
