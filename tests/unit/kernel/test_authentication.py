"""What a caller has proven, and how long the proof holds (ruling 4.18). Without a store: two dictionaries."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Key, Permissions
from qwed.domain.credentials import AGENT_TOKEN, API_KEY, NewCredential, mint
from qwed.kernel.answer import Answer
from qwed.kernel.authentication import authenticate, find_key, find_token_owner
from qwed.kernel.case import Credentials
from qwed.model import ErrorCode, Trust

KEY, TOKEN, OTHER_TOKEN = mint(API_KEY), mint(AGENT_TOKEN), mint(AGENT_TOKEN)


def key_of(role: str = "owner", **fields: Any) -> Key:
    named = {"key_id": "key_1", "organisation_id": "org_1", "name": "k", "prefix": KEY.prefix, "digest": KEY.digest}
    return Key(**{**named, "role": role, "created_at": 0.0, **fields})


def agent_of(agent_id: str = "agent_1", token: NewCredential = TOKEN, **fields: Any) -> Agent:
    named = {"name": "a", "type": "autonomous", "principal_id": "p", "trust": Trust.AUTONOMOUS}
    state = {"status": AgentStatus.ACTIVE, "permissions": Permissions(), "limits": AgentLimits(), "created_at": 0.0}
    digests = {"token_prefix": token.prefix, "token_digest": token.digest}
    return Agent(**{"agent_id": agent_id, "organisation_id": "org_1", **named, **state, **digests, **fields})


class Rows(NamedTuple):
    """Directory of one key and some agents."""

    key: Key | None = key_of()
    agents: tuple[Agent, ...] = (agent_of(),)

    def find_key(self, prefix: str) -> Key | None:
        return self.key if self.key is not None and self.key.prefix == prefix else None

    def find_agent(self, agent_id: str) -> Agent | None:
        return next((agent for agent in self.agents if agent.agent_id == agent_id), None)


def ask(credentials: Credentials, agent_id: str, rows: Rows) -> Answer | None:
    """Authenticate with the rows that a store finds for these credentials."""
    return authenticate(credentials, rows.find_agent(agent_id), None if credentials.api_key is None else rows.key)


def code_of(refusal: Answer | None) -> str:
    assert refusal is not None
    assert refusal.error is not None
    return refusal.error.code


def test_a_key_or_the_agents_own_token_proves_the_caller() -> None:
    rows = Rows()
    assert ask(Credentials(api_key=KEY.text), "agent_1", rows) is None
    assert ask(Credentials(agent_token=TOKEN.text), "agent_1", rows) is None
    assert ask(Credentials(organisation_id="org_1"), "agent_1", rows) is None


@pytest.mark.parametrize("agent_id", ["agent_1", "agent_2", "unknown"])
def test_a_token_tells_nothing_about_other_ids(agent_id: str) -> None:
    rows = Rows(agents=(agent_of(), agent_of("agent_2", OTHER_TOKEN)))
    wrong = Credentials(agent_token=mint(AGENT_TOKEN).text)
    assert ask(wrong, agent_id, rows) == ask(wrong, "agent_1", rows)
    assert code_of(ask(wrong, agent_id, rows)) == ErrorCode.INVALID_AGENT_TOKEN.code


def test_a_proof_holds_while_its_row_is_the_stored_one() -> None:
    rows = Rows()
    # The texts are those of other credentials: the proof alone counts.
    proven = Credentials(
        api_key=mint(API_KEY).text,
        agent_token=OTHER_TOKEN.text,
        proven_key=find_key(KEY.text, rows),
        proven_agent=find_token_owner(TOKEN.text, "agent_1", rows),
    )
    assert ask(proven, "agent_1", rows) is None
    for now, code in (
        (rows._replace(key=None), ErrorCode.UNKNOWN_CREDENTIAL),
        (rows._replace(key=key_of("member")), ErrorCode.UNKNOWN_CREDENTIAL),
        (rows._replace(agents=(replace(rows.agents[0], trust=Trust.SUPERVISED),)), ErrorCode.INVALID_AGENT_TOKEN),
        (rows._replace(agents=()), ErrorCode.INVALID_AGENT_TOKEN),
    ):
        assert code_of(ask(proven, "agent_1", now)) == code.code


def test_a_changed_agent_is_proven_again_by_the_token_itself() -> None:
    rows = Rows()
    proven = Credentials(agent_token=TOKEN.text, proven_agent=rows.agents[0])
    promoted = replace(rows.agents[0], trust=Trust.TRUSTED)
    assert ask(proven, "agent_1", Rows(agents=(promoted,))) is None


@pytest.mark.parametrize(
    ("agent", "role", "code"),
    [
        (agent_of(organisation_id="org_2"), "owner", ErrorCode.AGENT_NOT_REGISTERED),
        (agent_of(trust=Trust.TRUSTED), "member", ErrorCode.ROLE_NOT_SUFFICIENT),
        (agent_of(registered_by="key_2"), "member", ErrorCode.ROLE_NOT_SUFFICIENT),
        (agent_of(), "metrics", ErrorCode.ROLE_NOT_SUFFICIENT),
    ],
)
def test_a_key_acts_for_the_agents_it_may_use_only(agent: Agent, role: str, code: Any) -> None:
    outcome = ask(Credentials(api_key=KEY.text), "agent_1", Rows(key_of(role), (agent,)))
    assert code_of(outcome) == code.code
    own = Credentials(api_key=KEY.text, agent_token=TOKEN.text)
    assert (ask(own, "agent_1", Rows(key_of(role), (agent,))) is None) is (role == "member")
