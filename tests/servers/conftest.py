"""Tests with published servers that need their own environment, installed by `make test-servers`."""

from collections.abc import Iterator

import httpx
import pytest

from tests.servers.published import FILES, SQLITE, ControlPlane
from tests.support.server import Server

collect_ignore = [
    name for name, there in (("test_sqlite.py", SQLITE), ("test_filesystem.py", FILES)) if not there.exists()
]


@pytest.fixture(scope="session")
def control_plane(server: Server, api: httpx.Client) -> Iterator[ControlPlane]:
    """Control plane of the proxies, and an approver with another key."""
    response = api.post("/keys", json={"name": "an approver of tools", "role": "approver"})
    assert response.status_code == 201, response.text
    environment = {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}
    key = {"X-API-Key": response.json()["key"]}
    with httpx.Client(base_url=server.base_url, headers=key, timeout=30) as approver:
        yield ControlPlane(environment, approver)
