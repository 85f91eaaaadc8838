"""CrewAI reads fields of its own that it has deprecated, in every agent it makes."""

import pytest

import tests.frameworks.crewai_quiet  # noqa: F401 # before CrewAI
from qwed_sdk import QWEDAgentClient


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:crewai")


@pytest.fixture
def me(agent: QWEDAgentClient) -> QWEDAgentClient:
    """The agent, where `agent` is CrewAI's word for another thing."""
    return agent
