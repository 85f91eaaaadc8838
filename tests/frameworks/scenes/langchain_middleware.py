"""LangChain 1.x agents with the middleware."""

from typing import Any

from qwed_sdk import QWEDAgentClient
from qwed_sdk.langchain import QWEDMiddleware
from tests.frameworks.langchain_script import GRAPH_INPUT, graph, scripted, toolbox
from tests.frameworks.scene import SceneOutcome

NAME = "LangChain (`create_agent`)"
PACKAGE = "langchain"
HOOK = "`AgentMiddleware.wrap_tool_call`"


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the text that the model received."""
    ran: list[tuple[str, dict[str, Any]]] = []
    model = scripted(*([call] for call in calls))
    done = graph(model, toolbox(ran), middleware=[QWEDMiddleware(client=agent)]).invoke(GRAPH_INPUT)
    return SceneOutcome(ran, "\n".join(message.text for message in done["messages"]))
