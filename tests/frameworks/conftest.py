"""Fixtures of the framework tests. CrewAI is tested only in an environment that has it."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from qwed_sdk import QWEDAgentClient, QWEDClient
from tests.support.agent_names import unique_name
from tests.support.server import Server

collect_ignore = [] if importlib.util.find_spec("crewai") else ["crewai"]


@pytest.fixture(scope="session")
def owner(server: Server) -> Iterator[QWEDClient]:
    with QWEDClient(server.owner_key, server.base_url) as client:
        yield client


@pytest.fixture
def agent(owner: QWEDClient) -> QWEDAgentClient:
    """Supervised agent: it may search, sends messages after approval, and may not delete."""
    return QWEDAgentClient.register(unique_name("an agent of a framework"), "user_123", client=owner)


@pytest.fixture
def ran() -> list[tuple[str, dict[str, Any]]]:
    """Tools that ran, in order."""
    return []
