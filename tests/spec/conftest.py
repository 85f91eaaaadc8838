"""A house with more than one family: keys of every role, a second organisation, a suspended agent."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import qwed
from qwed.gate import Gate
from qwed.store.agent import AgentStatus, Key
from qwed.store.credentials import AGENT_TOKEN, API_KEY, mint
from qwed.words.ids import new_id
from tests.support.server import Server


@dataclass(frozen=True)
class House:
    """A server, and who may knock at it."""

    base_url: str
    keys: dict[str, str]
    """`owner`, `approver`, `member` and `revoked` of the first organisation, `foreign` the owner of another."""
    suspended: dict[str, str]

    def client(self, key: str | None = None, token: str | None = None) -> httpx.Client:
        """A client that shows this key and this token."""
        headers = {} if key is None else {"X-API-Key": self.keys.get(key, key)}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=30)


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Prepared in the store, because keys and suspension have no route yet; then served."""
    place = Path(tmp_path_factory.mktemp("house")) / "data"
    with qwed.open(place) as gate:
        assert gate.owner_key is not None
        keys = {"owner": gate.owner_key}
        for role in ("approver", "member"):
            keys[role] = _key(gate, gate.organisation_id, role)
        keys["revoked"] = _key(gate, gate.organisation_id, "owner", revoked_at=1.0)
        keys["foreign"] = _organisation(gate)
        suspended = _suspended(gate)
    server = Server(place)
    yield House(server.base_url, keys, suspended)
    assert server.stop() == 0


def _organisation(gate: Gate) -> str:
    organisation_id = new_id("org")
    owner, text = _minted(organisation_id, "owner")
    gate.services.store.add_organisation(organisation_id, "elsewhere", 2.0e9, owner).block(30)
    return text


def _key(gate: Gate, organisation_id: str, role: str, revoked_at: float | None = None) -> str:
    key, text = _minted(organisation_id, role, revoked_at)
    gate.services.store.add_key(key).block(30)
    return text


def _minted(organisation_id: str, role: str, revoked_at: float | None = None) -> tuple[Key, str]:
    minted = mint(API_KEY)
    key = Key(
        key_id=new_id("key"),
        organisation_id=organisation_id,
        name=role,
        role=role,
        prefix=minted.prefix,
        digest=minted.digest,
        created_at=1.0,
        revoked_at=revoked_at,
    )
    return key, minted.text


def _suspended(gate: Gate) -> dict[str, str]:
    token = mint(AGENT_TOKEN)
    model: Any = gate.register_agent(name="model", principal_id="user_123")
    active = gate.services.store.find_agent(model.agent_id)
    assert active is not None
    agent = replace(
        active,
        agent_id=new_id("agent"),
        status=AgentStatus.SUSPENDED,
        token_prefix=token.prefix,
        token_digest=token.digest,
    )
    gate.services.store.add_agent(agent).block(30)
    return {"agent_id": agent.agent_id, "agent_token": token.text}
