"""A house with more than one family: keys of every role, a second organisation, a suspended agent."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

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
    """Furnished over HTTP by its first owner."""
    server = Server(Path(tmp_path_factory.mktemp("house")) / "data")
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as owner:
        keys = {"owner": server.owner_key}
        for role in ("approver", "member"):
            keys[role] = _key(owner, role)["key"]
        revoked = _key(owner, "owner")
        assert owner.delete(f"/keys/{revoked['id']}").status_code == 200
        keys["revoked"] = revoked["key"]
        keys["foreign"] = owner.post("/organisations", json={"name": "elsewhere"}).json()["owner_key"]
        suspended = owner.post("/agents/register", json={"name": "stopped", "principal_id": "user_123"}).json()
        stopped = owner.post(f"/agents/{suspended['agent_id']}/suspend", json={"reason": "for the tests"})
        assert stopped.status_code == 200
    yield House(server.base_url, keys, suspended)
    assert server.stop() == 0


def _key(owner: httpx.Client, role: str) -> dict[str, str]:
    made: dict[str, str] = owner.post("/keys", json={"name": role, "role": role}).json()
    return made
