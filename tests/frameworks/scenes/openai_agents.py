"""OpenAI Agents with guarded tools."""

import asyncio
from typing import Any

from agents import Agent, Runner

from qwed_sdk import QWEDAgentClient
from qwed_sdk.openai_agents import QWEDGuard
from tests.frameworks.openai_agents_script import scripted, tool_outputs, toolbox
from tests.frameworks.scene import SceneOutcome

NAME = "OpenAI Agents"
PACKAGE = "openai-agents"
HOOK = "`FunctionTool.on_invoke_tool`, `needs_approval`"


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the text that the model received; a pending call interrupts the run."""
    ran: list[tuple[str, dict[str, Any]]] = []
    guard = QWEDGuard(client=agent)
    built = guard.agent(Agent(name="scene", model=scripted(*([call] for call in calls)), tools=[*toolbox(ran)]))
    done = asyncio.run(Runner.run(built, "go"))
    waiting = [f"waits for {guard.approval_id(item)}" for item in done.interruptions]
    return SceneOutcome(ran, "\n".join([*tool_outputs(done), *waiting, str(done.final_output)]))
