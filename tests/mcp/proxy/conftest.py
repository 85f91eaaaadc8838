"""Two clients of two proxies of one server with one control plane; one proxy waits for approvals."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.mcp_proxies import NAME, Session, proxied
from tests.support.server import Server


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of the proxies, with the file that changes the server's tools."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def environment(server: Server) -> dict[str, str]:
    """Variables that name the control plane."""
    return {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}


@pytest.fixture(scope="session")
def waiting_session(directory: Path, environment: dict[str, str], api: httpx.Client) -> Iterator[Session]:
    """Client of the newest version whose proxy waits for approvals; `write_file` always needs one."""
    row = {"risk_level": "medium", "requires_approval": True}
    assert api.put(f"/tools/mcp__{NAME}__write_file", json=row).status_code in (200, 201)
    with proxied(directory, "--wait", "20", name=NAME, environment=environment) as proxied_session:
        yield proxied_session


@pytest.fixture(scope="session")
def instant_session(directory: Path, environment: dict[str, str], waiting_session: Session) -> Iterator[Session]:
    """Client of an older version whose proxy does not wait for approvals."""
    with proxied(directory, "--wait", "0", name=NAME, environment=environment, mode="legacy") as proxied_session:
        yield proxied_session
