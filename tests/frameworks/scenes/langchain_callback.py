"""LangChain's classic agents with the callback in the constructor of the executor, as in the seeds."""

from typing import Any

from qwed_sdk import ActionDenied, QWEDAgentClient
from qwed_sdk.langchain import QWEDVerificationCallback
from tests.frameworks.langchain_script import EXECUTOR_INPUT, executor, scripted, toolbox
from tests.frameworks.scene import SceneOutcome

NAME = "LangChain (`AgentExecutor`)"
PACKAGE = "langchain-classic"
HOOK = "`on_agent_action`, `on_tool_start`"


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the output; a refusal ends the run of the executor."""
    ran: list[tuple[str, dict[str, Any]]] = []
    model = scripted(*([call] for call in calls))
    running = executor(model, toolbox(ran), callbacks=[QWEDVerificationCallback(client=agent)])
    try:
        text = str(running.invoke(EXECUTOR_INPUT)["output"])
    except ActionDenied as error:
        text = str(error)
    return SceneOutcome(ran, text)
