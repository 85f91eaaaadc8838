"""Fixtures of the protocol tests: a server with keys of every role, a second organisation and a suspended agent."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.support import temp_directories
from tests.support.server import Server

CreateAgent = Callable[..., AgentConversation]
_names = itertools.count(1)


@dataclass(frozen=True)
class SpecServer:
    """A server and its API keys."""

    base_url: str
    keys: dict[str, str]
    """`owner`, `approver`, `member` and `revoked` of the first organisation; `foreign` is the owner of another."""
    suspended: dict[str, str]

    def client(self, key: str | None = None, token: str | None = None) -> httpx.Client:
        """Return a client with this key and this token."""
        headers = {} if key is None else {"X-API-Key": self.keys.get(key, key)}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=60)


class Keyholders(NamedTuple):
    """Clients of one organisation, one per role."""

    owner: httpx.Client
    approver: httpx.Client
    member: httpx.Client

    def create_agent(self, **fields: Any) -> AgentConversation:
        """Register an agent and return its conversation."""
        body = {"name": f"hired {next(_names)}", "principal_id": "user_123", **fields}
        # A member key decides for the agents it registered, and level 3 is given by an owner.
        response = self.member.post("/agents/register", json=body)
        client = self.member
        if response.status_code == 403:
            client = self.owner
            response = client.post("/agents/register", json=body)
        assert response.status_code == 201, response.text
        return AgentConversation(client, response.json())


@contextmanager
def start_spec_server(data_dir: Path, **settings: str) -> Iterator[SpecServer]:
    """Start a server and create its keys and organisations over HTTP."""
    server = Server(data_dir, **settings)
    try:
        yield _prepare(server)
    finally:
        code = server.stop()
    assert code == 0


def _prepare(server: Server) -> SpecServer:
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as owner:
        keys = {"owner": server.owner_key}
        for role in ("approver", "member", "metrics"):
            keys[role] = _key(owner, role)["key"]
        revoked = _key(owner, "owner")
        assert owner.delete(f"/keys/{revoked['id']}").status_code == 200
        keys["revoked"] = revoked["key"]
        keys["foreign"] = owner.post("/organisations", json={"name": "elsewhere"}).json()["owner_key"]
        suspended = owner.post("/agents/register", json={"name": "stopped", "principal_id": "user_123"}).json()
        stopped = owner.post(f"/agents/{suspended['agent_id']}/suspend", json={"reason": "for the tests"})
        assert stopped.status_code == 200
    return SpecServer(server.base_url, keys, suspended)


@contextmanager
def keyholders_of(spec_server: SpecServer) -> Iterator[Keyholders]:
    """Yield clients of the server's first organisation."""
    with ExitStack() as clients:
        yield Keyholders(*(clients.enter_context(spec_server.client(role)) for role in Keyholders._fields))


@pytest.fixture(scope="session")
def spec_server(memory: Path) -> Iterator[SpecServer]:
    """One server for all tests."""
    with start_spec_server(temp_directories.make_directory_in(memory) / "data") as server:
        yield server


@pytest.fixture(scope="session")
def keyholders(spec_server: SpecServer) -> Iterator[Keyholders]:
    """Owner, approver and member of the first organisation."""
    with keyholders_of(spec_server) as clients:
        yield clients


@pytest.fixture
def create_agent(keyholders: Keyholders) -> CreateAgent:
    """`ask = create_agent(trust_level=2)`: a function that registers an agent."""
    return keyholders.create_agent


@pytest.fixture
def new_keyholders(spec_server: SpecServer) -> Iterator[Keyholders]:
    """Clients of a new organisation that no other test uses."""
    with spec_server.client("owner") as operator:
        created = operator.post("/organisations", json={"name": "a family"}).json()
    with ExitStack() as clients:
        owner = clients.enter_context(spec_server.client(created["owner_key"]))
        others = [
            clients.enter_context(spec_server.client(_key(owner, role)["key"])) for role in ("approver", "member")
        ]
        yield Keyholders(owner, *others)


@pytest.fixture(scope="session")
def foreign_agent(spec_server: SpecServer) -> dict[str, Any]:
    """An agent of another organisation."""
    with spec_server.client("foreign") as foreign:
        body = {"name": "next door", "principal_id": "user_456"}
        agent: dict[str, Any] = foreign.post("/agents/register", json=body).json()
    return agent


def _key(owner: httpx.Client, role: str) -> dict[str, str]:
    created: dict[str, str] = owner.post("/keys", json={"name": role, "role": role}).json()
    return created
