"""Pydantic AI with the capability that guards every tool of an agent."""

import asyncio
from typing import Any

from pydantic_ai import Agent

from qwed_sdk import QWEDAgentClient
from qwed_sdk.pydantic_ai import QWEDGuard
from tests.frameworks.pydantic_ai_script import scripted, tool_outputs, toolbox
from tests.frameworks.scene import SceneOutcome

NAME = "Pydantic AI"
PACKAGE = "pydantic-ai-slim"
HOOK = "`WrapperToolset.call_tool`"


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the text that the model received."""
    ran: list[tuple[str, dict[str, Any]]] = []
    guard = QWEDGuard(client=agent)
    built = Agent(scripted(*([call] for call in calls)), toolsets=[toolbox(ran)], capabilities=[guard])
    done = asyncio.run(built.run("go"))
    return SceneOutcome(ran, "\n".join([*tool_outputs(done.all_messages()), done.output]))
