"""Servers that want another environment, or are not Python, are stood before where `make test-servers` put them."""

from collections.abc import Iterator

import httpx
import pytest

from tests.servers.published import FILES, SQLITE, People
from tests.support.server import Server

collect_ignore = [
    name for name, there in (("test_sqlite.py", SQLITE), ("test_filesystem.py", FILES)) if not there.exists()
]


@pytest.fixture(scope="session")
def people(server: Server, api: httpx.Client) -> Iterator[People]:
    """The control plane the proxies ask with the owner's key, and an approver with another one."""
    made = api.post("/keys", json={"name": "an approver of tools", "role": "approver"})
    assert made.status_code == 201, made.text
    environment = {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}
    key = {"X-API-Key": made.json()["key"]}
    with httpx.Client(base_url=server.base_url, headers=key, timeout=30) as approver:
        yield People(environment, approver)
