"""LangChain's classic agents, with the callback where the seeds put it: in the constructor of the executor."""

from typing import Any

from qwed_sdk import ActionDenied, QWEDAgentClient
from qwed_sdk.langchain import QWEDVerificationCallback
from tests.frameworks.langchain_script import TOLD, executor, scripted, toolbox
from tests.frameworks.scene import Outcome

NAME = "LangChain (`AgentExecutor`)"
PACKAGE = "langchain-classic"
HOOK = "`on_agent_action`, `on_tool_start`"


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> Outcome:
    """What ran, and what was said: a refusal ends the run of the executor."""
    ran: list[tuple[str, dict[str, Any]]] = []
    model = scripted(*([call] for call in calls))
    running = executor(model, toolbox(ran), callbacks=[QWEDVerificationCallback(client=agent)])
    try:
        said = str(running.invoke(TOLD)["output"])
    except ActionDenied as refused:
        said = str(refused)
    return Outcome(ran, said)
