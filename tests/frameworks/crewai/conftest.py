"""CrewAI reads fields of its own that it has deprecated, in every agent it makes."""

from collections.abc import Iterator

import pytest

import tests.frameworks.crewai_quiet  # noqa: F401 # before CrewAI
from qwed_sdk import QWEDAgentClient, QWEDClient
from tests.support.server import Server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:crewai")


@pytest.fixture(scope="session")
def owner(server: Server) -> Iterator[QWEDClient]:
    with QWEDClient(server.owner_key, server.base_url) as client:
        yield client


@pytest.fixture
def me(owner: QWEDClient) -> QWEDAgentClient:
    """A supervised agent: it may search, writes to people when one agrees, and deletes nothing."""
    return QWEDAgentClient.register("crew", "user_123", client=owner)


@pytest.fixture
def ran() -> list[tuple[str, dict[str, object]]]:
    """The tools that ran, in order."""
    return []
