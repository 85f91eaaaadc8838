"""CrewAI's own hooks: what ours adds, what others cannot remove, and why hooks alone are not enough."""

from typing import Any

import pytest
from crewai import Agent
from crewai.hooks import (
    HookAborted,
    clear_all_hooks,
    get_before_tool_call_hooks,
    register_before_tool_call_hook,
    unregister_before_tool_call_hook,
)
from crewai.tools import tool

from qwed_sdk import QWEDAgentClient
from qwed_sdk.crewai import QWEDVerifiedAgent
from qwed_sdk.crewai.agent import stop_unverified
from tests.frameworks.crewai.script import (
    DELETE,
    SEARCH,
    CallSpec,
    Script,
    analyst,
    crew_of,
    decisions_of,
    scripted,
    toolbox,
)

each_style = pytest.mark.parametrize("native", [False, True], ids=["text", "native"])


def test_the_hook_is_there_once_however_many_agents(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    for _ in range(3):
        crew_of(analyst(scripted(), toolbox(ran), me)).kickoff()
    assert get_before_tool_call_hooks().count(stop_unverified) == 1


@each_style
def test_whoever_clears_all_hooks_opens_nothing(native: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    def clearing(_: Any) -> None:
        clear_all_hooks()

    register_before_tool_call_hook(clearing)
    crew_of(analyst(scripted([SEARCH], [DELETE], native=native), toolbox(ran), me)).kickoff()
    assert (ran, get_before_tool_call_hooks()) == ([SEARCH], [])


@each_style
def test_what_another_hook_changes_is_what_is_asked_about(
    native: bool, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    def changing(context: Any) -> None:
        context.tool_input["query"] = "bergen"

    register_before_tool_call_hook(changing)
    crew_of(analyst(scripted([SEARCH], native=native), toolbox(ran), me)).kickoff()
    unregister_before_tool_call_hook(changing)
    assert ran == [("search_web", {"query": "bergen"})]
    assert me.get_activity()[0].action["parameters"] == {"query": "bergen"}


class Changed(QWEDVerifiedAgent):
    """Agent as if CrewAI no longer called the method that wraps the tools."""

    def _add_skill_loader_tool(self, *tools: Any, **_: Any) -> list[Any]:
        super()._add_skill_loader_tool(*tools)
        return list(tools[0])


@each_style
def test_a_tool_that_slipped_by_is_stopped(native: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    model = scripted([SEARCH], native=native)
    crew_of(Changed(role="Analyst", goal="g", llm=model, tools=toolbox(ran), client=me)).kickoff()
    assert (ran, decisions_of(me)) == ([], [])
    assert "blocked by hook" in model.heard


def with_hook(hook: Any, *tools: Any) -> Script:
    """Run a plain agent with a hook. The tests below show why hooks alone are not enough, as the docs say."""
    register_before_tool_call_hook(hook)
    model = scripted([SEARCH])
    crew_of(Agent(role="r", goal="g", backstory="b", llm=model, tools=list(tools))).kickoff()
    unregister_before_tool_call_hook(hook)
    return model


def test_a_hook_that_raises_does_not_stop_the_tool(ran: list[CallSpec]) -> None:
    def unreachable(_: Any) -> None:
        raise ConnectionError("the verifier is down")

    with_hook(unreachable, *toolbox(ran))
    assert ran == [SEARCH]


def test_the_reason_of_a_hook_does_not_reach_the_model(ran: list[CallSpec]) -> None:
    def refusing(_: Any) -> None:
        raise HookAborted("ask for less")

    model = with_hook(refusing, *toolbox(ran))
    assert ran == []
    assert "ask for less" not in model.heard


def test_a_hook_is_asked_once_for_six_tries(ran: list[CallSpec]) -> None:
    calls: list[str] = []

    @tool
    def search_web(query: str) -> str:
        """Search the web."""
        ran.append(("search_web", {"query": query}))
        raise RuntimeError("no line")

    def counting(context: Any) -> None:
        calls.append(context.tool_name)

    with_hook(counting, search_web)
    assert (len(calls), len(ran)) == (1, 6)


def test_a_later_hook_changes_what_an_earlier_one_permitted(ran: list[CallSpec]) -> None:
    def permitting(context: Any) -> bool:
        return bool(context.tool_input["query"] == "oslo")

    def changing(context: Any) -> None:
        context.tool_input["query"] = "anything else"

    register_before_tool_call_hook(permitting)
    with_hook(changing, *toolbox(ran))
    unregister_before_tool_call_hook(permitting)
    assert ran == [("search_web", {"query": "anything else"})]
