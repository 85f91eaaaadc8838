"""A house with more than one family: keys of every role, a second organisation, a suspended agent."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.conftest import Asking
from tests.support import places
from tests.support.server import Server

Hire = Callable[..., Asking]


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
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=60)


class People(NamedTuple):
    """Those of one organisation, each with a key of their own."""

    owner: httpx.Client
    approver: httpx.Client
    member: httpx.Client

    def hire(self, **fields: Any) -> Asking:
        """A new agent, asked for with the member's key."""
        body = {"name": "hired", "principal_id": "user_123", **fields}
        response = self.owner.post("/agents/register", json=body)
        assert response.status_code == 201, response.text
        return Asking(self.member, response.json())


@contextmanager
def furnished(data_dir: Path, **settings: str) -> Iterator[House]:
    """A house of its own, furnished over HTTP by its first owner."""
    server = Server(data_dir, **settings)
    try:
        yield _furnish(server)
    finally:
        code = server.stop()
    assert code == 0


def _furnish(server: Server) -> House:
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
    return House(server.base_url, keys, suspended)


@contextmanager
def living_in(house: House) -> Iterator[People]:
    """The people of the house's first organisation."""
    with ExitStack() as clients:
        yield People(*(clients.enter_context(house.client(role)) for role in People._fields))


@pytest.fixture(scope="session")
def house(memory: Path) -> Iterator[House]:
    """One for all."""
    with furnished(places.room_in(memory) / "data") as found:
        yield found


@pytest.fixture(scope="session")
def people(house: House) -> Iterator[People]:
    """Owner, approver and member of the house."""
    with living_in(house) as found:
        yield found


@pytest.fixture
def hired(people: People) -> Hire:
    """`ask = hired(trust_level=2)`: an agent of the house; whoever else is there may approve what it asks for."""
    return people.hire


@pytest.fixture
def family(house: House) -> Iterator[People]:
    """The people of a new organisation, which nobody else uses."""
    with house.client("owner") as landlord:
        made = landlord.post("/organisations", json={"name": "a family"}).json()
    with ExitStack() as clients:
        owner = clients.enter_context(house.client(made["owner_key"]))
        others = [clients.enter_context(house.client(_key(owner, role)["key"])) for role in ("approver", "member")]
        yield People(owner, *others)


@pytest.fixture(scope="session")
def neighbour(house: House) -> dict[str, Any]:
    """An agent of another organisation."""
    with house.client("foreign") as foreign:
        body = {"name": "next door", "principal_id": "user_456"}
        agent: dict[str, Any] = foreign.post("/agents/register", json=body).json()
    return agent


def _key(owner: httpx.Client, role: str) -> dict[str, str]:
    made: dict[str, str] = owner.post("/keys", json={"name": role, "role": role}).json()
    return made
