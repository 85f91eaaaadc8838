"""CrewAI uses deprecated fields of its own in every agent."""

import pytest

import tests.frameworks.crewai_quiet  # noqa: F401 # before CrewAI
from qwed_sdk import QWEDAgentClient


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:crewai")


@pytest.fixture
def me(agent: QWEDAgentClient) -> QWEDAgentClient:
    """The agent, under another name: `agent` means another thing in CrewAI."""
    return agent
