"""Blocks about LangChain, run as printed with the present names of the framework (P9).

`AgentExecutor` and `initialize_agent` are now in `langchain_classic`, and the second needs a model.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langchain_classic.agents import ZeroShotAgent, initialize_agent
from langchain_core.language_models import FakeListLLM
from langchain_core.tools import Tool

from qwed_sdk import ActionDenied, QWEDAgentClient, QWEDClient
from tests.seeds.blocks import block
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.server import Server

Run = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.filterwarnings(
    # LangChain has deprecated both forms; the documents print them.
    "ignore::langchain_core._api.deprecation.LangChainDeprecationWarning"
)


class Stage:
    """Two tools that record their calls, and a model that calls one of them."""

    def __init__(self, tool: str) -> None:
        self.ran: list[str] = []
        self.tools = [
            Tool(name, self._remember(name), f"the tool {name}") for name in ("search_web", "delete_database")
        ]
        self.llm = FakeListLLM(
            responses=[f"I go\nAction: {tool}\nAction Input: customers", "I know\nFinal Answer: done"]
        )

    def _remember(self, name: str) -> Callable[[str], str]:
        def remember(given: str) -> str:
            self.ran.append(f"{name} {given}")
            return "found"

        return remember


@pytest.fixture
def run(server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
    client = QWEDClient(server.owner_key, server.base_url)
    agent = QWEDAgentClient.register(name=unique_name("chain"), principal_id="user_123", client=client)
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    today = {
        "agent_abc123": agent.agent_id,
        "agent_xyz789": agent.agent_id,
        "qwed_agent_...": agent.agent_token or "",
        "[...]": "my_tools",
        "from langchain.agents import": "from langchain_classic.agents import",
    }

    def call(name: str, **names: Any) -> dict[str, Any]:
        made = dict(names)
        exec(compile(block(name, **today), name, "exec"), made)
        return made

    return call


@spec("guide/Framework integration")
def test_the_callback_of_the_guide_lets_a_permitted_tool_run(run: Run) -> None:
    stage = Stage("search_web")
    begin = partial(initialize_agent, llm=stage.llm)
    agent = run("langchain_guide", initialize_agent=begin, my_tools=stage.tools)["agent"]
    assert agent.run("go") == "done"
    assert stage.ran == ["search_web customers"]


@spec("guide/Framework integration")
def test_the_callback_of_the_guide_stops_a_denied_tool(run: Run) -> None:
    stage = Stage("delete_database")
    begin = partial(initialize_agent, llm=stage.llm)
    agent = run("langchain_guide", initialize_agent=begin, my_tools=stage.tools)["agent"]
    with pytest.raises(ActionDenied, match="trust level 3"):
        agent.run("go")
    assert stage.ran == []


@spec("10.2")
def test_the_executor_of_the_specification_lets_a_permitted_tool_run(run: Run) -> None:
    stage = Stage("search_web")
    my_agent = ZeroShotAgent.from_llm_and_tools(stage.llm, stage.tools)
    assert run("langchain_integration", my_agent=my_agent, my_tools=stage.tools)["result"] == "done"
    assert stage.ran == ["search_web customers"]


@spec("10.2")
def test_the_executor_of_the_specification_stops_a_denied_tool(run: Run) -> None:
    stage = Stage("delete_database")
    my_agent = ZeroShotAgent.from_llm_and_tools(stage.llm, stage.tools)
    with pytest.raises(ActionDenied, match="trust level 3"):
        run("langchain_integration", my_agent=my_agent, my_tools=stage.tools)
    assert stage.ran == []
