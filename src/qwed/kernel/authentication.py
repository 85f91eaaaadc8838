"""Authentication of callers: the one place where keys and tokens are compared (AGENT-001, AGENT-002, ruling 4.18).

The HTTP server proves the headers before it reads the body, counts the caller's rate limit, and passes the proof on in
`Credentials`. A proof holds while its row is the stored one, so that a revoked key or a rotated token ends at once.
Everything here is a lookup and a comparison.
"""

from typing import Protocol

from qwed.domain.agent import Agent, Key
from qwed.domain.credentials import API_KEY, matches, prefix_of
from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Credentials
from qwed.model import ErrorCode, Trust
from qwed.model.roles import CALLER_ROLES, MEMBER

_SEND_CREDENTIAL = "send an organisation key in X-API-Key, or the agent's own token in Authorization: Bearer"
_ABOVE_MEMBER = "a member key decides on behalf of agents of trust level 0 to 2 only"
_OF_ANOTHER = "a member key decides only on behalf of the agents it registered"
_PROVE_AGENT = "send the agent's own token in Authorization: Bearer, or a key of an owner or approver"


class Directory(Protocol):
    """Keys and agents of a store."""

    def find_key(self, prefix: str) -> Key | None:
        """Return the key with this public prefix unless it is revoked, or None."""

    def find_agent(self, agent_id: str) -> Agent | None:
        """Return the agent with this id, or None."""


def find_key(text: str, directory: Directory) -> Key | None:
    """Return the key that `text` is, unless it is revoked, or None."""
    prefix = prefix_of(text, API_KEY)
    key = None if prefix is None else directory.find_key(prefix)
    return key if matches(text, None if key is None else key.digest) else None


def is_valid(key: Key, directory: Directory) -> bool:
    """Return True if a key found before is still stored and not revoked."""
    return directory.find_key(key.prefix) == key


def find_token_owner(token: str, agent_id: str | None, directory: Directory) -> Agent | None:
    """Return the agent with this id if `token` is its own, or None."""
    agent = None if agent_id is None else directory.find_agent(agent_id)
    return agent if matches(token, None if agent is None else agent.token_digest) else None


def prove_key(credentials: Credentials, directory: Directory) -> Key | None:
    """Return the key of the credentials, or None if there is none or it is not valid."""
    proven = credentials.proven_key
    if proven is not None:
        return proven if is_valid(proven, directory) else None
    return None if credentials.api_key is None else find_key(credentials.api_key, directory)


def has_token_of(agent: Agent | None, credentials: Credentials) -> bool:
    """Return True if the token of the credentials is the agent's own."""
    if agent is not None and agent is credentials.proven_agent:
        return True
    return matches(credentials.agent_token or "", None if agent is None else agent.token_digest)


def authenticate(credentials: Credentials, agent: Agent | None, key: Key | None) -> Answer | None:
    """Return the refusal of a caller that may not act for this agent, or None.

    `agent` and `key` are the stored rows: the agent that is asked for, and the key that has the prefix of the caller's.
    """
    if credentials.api_key is not None:
        refusal = _refuse_key(credentials, key)
        if refusal is not None:
            return refusal
    # A token must not reveal anything about other ids, not even whether they exist.
    if credentials.agent_token is not None and not has_token_of(agent, credentials):
        return denied(ErrorCode.INVALID_AGENT_TOKEN)
    organisation_id = key.organisation_id if key is not None else credentials.organisation_id
    if organisation_id is None and credentials.agent_token is None:
        return denied(ErrorCode.INVALID_AGENT_TOKEN, "no credential", suggestion=_SEND_CREDENTIAL)
    if agent is None or organisation_id not in (None, agent.organisation_id):
        return denied(ErrorCode.AGENT_NOT_REGISTERED)
    return None if key is None or credentials.agent_token is not None else _refuse_member(agent, key)


def _refuse_key(credentials: Credentials, key: Key | None) -> Answer | None:
    proven, text = credentials.proven_key, credentials.api_key or ""
    is_valid_key = matches(text, None if key is None else key.digest) if proven is None else proven == key
    if key is None or not is_valid_key:
        return denied(ErrorCode.UNKNOWN_CREDENTIAL)
    return None if key.role in CALLER_ROLES else denied(ErrorCode.ROLE_NOT_SUFFICIENT)


def _refuse_member(agent: Agent, key: Key) -> Answer | None:
    """Return the refusal of a member's key without the token of an agent that it may not use, or None."""
    if key.role != MEMBER:
        return None
    # Level 3 is given by an owner: a member's key may not use it.
    if agent.trust >= Trust.TRUSTED:
        return denied(ErrorCode.ROLE_NOT_SUFFICIENT, _ABOVE_MEMBER, suggestion=_PROVE_AGENT)
    if agent.registered_by not in (None, key.key_id):
        return denied(ErrorCode.ROLE_NOT_SUFFICIENT, _OF_ANOTHER, suggestion=_PROVE_AGENT)
    return None
