"""CrewAI with the verified agent."""

from typing import Any

import tests.frameworks.crewai_quiet  # noqa: F401 # before CrewAI
from qwed_sdk import QWEDAgentClient
from qwed_sdk.crewai import QWEDVerifiedAgent
from tests.frameworks.crewai.script import crew_of, scripted, toolbox
from tests.frameworks.scene import SceneOutcome

NAME = "CrewAI"
PACKAGE = "crewai"
HOOK = "`QWEDVerifiedAgent`, around each tool"


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the text that the model received."""
    ran: list[tuple[str, dict[str, Any]]] = []
    model = scripted(*([call] for call in calls))
    verified = QWEDVerifiedAgent(role="Analyst", goal="Analyze data", llm=model, tools=toolbox(ran), client=agent)
    crew_of(verified).kickoff()
    return SceneOutcome(ran, model.heard)
