"""Two clients before two proxies of one server, which ask one control plane: one of them waits for persons."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.proxies import NAME, Session, proxied
from tests.support.server import Server


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the proxies have their home, and the server behind them the file that changes its tools."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def environment(server: Server) -> dict[str, str]:
    """What names the control plane."""
    return {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key}


@pytest.fixture(scope="session")
def patient(place: Path, environment: dict[str, str], api: httpx.Client) -> Iterator[Session]:
    """A client of the newest version before a proxy that waits for a person; one tool needs one every time."""
    row = {"risk_level": "medium", "requires_approval": True}
    assert api.put(f"/tools/mcp__{NAME}__write_file", json=row).status_code in (200, 201)
    with proxied(place, "--wait", "20", name=NAME, environment=environment) as found:
        yield found


@pytest.fixture(scope="session")
def hasty(place: Path, environment: dict[str, str], patient: Session) -> Iterator[Session]:
    """A client of an older version before a proxy that does not wait."""
    with proxied(place, "--wait", "0", name=NAME, environment=environment, mode="legacy") as found:
        yield found
