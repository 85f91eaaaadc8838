"""A verified agent verifies all tools: its own, the task's, the team's, the framework's, those of MCP servers."""

import asyncio
import json
import sys
import textwrap
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent, Crew, Process
from crewai.agents.cache.cache_handler import CacheHandler
from crewai.agents.tools_handler import ToolsHandler
from crewai.mcp import MCPServerStdio
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.tools import BaseTool, tool
from crewai.tools.base_tool import Tool
from pydantic import BaseModel

from qwed_sdk import QWEDAgentClient, QWEDClient
from qwed_sdk.crewai import QWEDVerifiedAgent
from tests.frameworks.crewai.script import (
    DELETE,
    SEARCH,
    CallSpec,
    Script,
    analyst,
    crew_of,
    decisions_of,
    scripted,
    task_of,
    toolbox,
)

each_style = pytest.mark.parametrize("native", [False, True], ids=["text", "native"])


@each_style
def test_tools_of_the_task(native: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    agent = analyst(scripted([SEARCH], [DELETE], native=native), [], me)
    crew_of(agent, tasks=[task_of(agent, tools=toolbox(ran))]).kickoff()
    assert ran == [SEARCH]
    assert decisions_of(me) == [("search_web", "APPROVED"), ("delete_database", "DENIED")]


def test_tools_that_were_added_later(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    agent = analyst(scripted([DELETE]), [], me)
    agent.tools.extend(toolbox(ran))
    crew_of(agent).kickoff()
    assert (ran, decisions_of(me)) == ([], [("delete_database", "DENIED")])


def test_tools_of_langchain(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    class Foreign:
        name = "delete_database"
        description = "delete a database"

        @staticmethod
        def func(name: str) -> str:
            ran.append(("delete_database", {"name": name}))
            return "deleted"

    crew_of(analyst(scripted([DELETE]), [Tool.from_langchain(Foreign())], me)).kickoff()
    assert (ran, decisions_of(me)) == ([], [("delete_database", "DENIED")])


def coworkers(me: QWEDAgentClient, ran: list[CallSpec]) -> tuple[QWEDVerifiedAgent, Agent]:
    order = {"task": "delete it", "context": "all", "coworker": "Clerk"}
    clerk = Agent(role="Clerk", goal="g", backstory="b", llm=scripted([DELETE]), tools=toolbox(ran))
    boss = analyst(scripted([("delegate_work_to_coworker", order)]), [], me, allow_delegation=True)
    return boss, clerk


def test_delegation_is_denied_until_the_organisation_knows_it_and_the_coworker_is_then_on_its_own(
    owner: QWEDClient, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    crew_of(*coworkers(me, ran)).kickoff()
    assert (ran, decisions_of(me)) == ([], [("delegate_work_to_coworker", "DENIED")])
    owner.put_tool("delegate_work_to_coworker", risk_level="low")
    crew_of(*coworkers(me, ran)).kickoff()
    assert (ran, decisions_of(me)[1:]) == ([DELETE], [("delegate_work_to_coworker", "APPROVED")])


def test_a_manager(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    boss, clerk = coworkers(me, ran)
    boss.llm.plan([("ask_question_to_coworker", {"question": "?", "context": "all", "coworker": "Clerk"})])
    task = task_of(None)
    Crew(agents=[clerk], tasks=[task], process=Process.hierarchical, manager_agent=boss).kickoff()
    assert (ran, decisions_of(me)) == ([], [("ask_question_to_coworker", "DENIED")])


SERVER = textwrap.dedent('''
    import sys, pathlib
    from mcp.server.fastmcp import FastMCP

    place = FastMCP("place")

    @place.tool()
    def delete_database(name: str) -> str:
        """Delete a database."""
        pathlib.Path(sys.argv[1]).write_text(name)
        return "deleted"

    place.run()
''')


class Choosing(Script):  # type: ignore[misc]
    """Model that calls the first tool under the name that CrewAI gave it."""

    def call(self, messages: Any, tools: Any = None, **rest: Any) -> Any:
        if self._turns:
            self._turns = [[(tools[0]["function"]["name"], {"name": "prod"})]]
        return super().call(messages, **rest)


def choosing() -> Choosing:
    model = Choosing(model="script", native=True)
    model.plan([DELETE])
    return model


def test_tools_of_a_server_that_speaks_mcp(me: QWEDAgentClient, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    gone = tmp_path / "gone"
    place = MCPServerStdio(command=sys.executable, args=[str(tmp_path / "server.py"), str(gone)])
    crew_of(analyst(choosing(), [], me, mcps=[place])).kickoff()
    assert [decision for _, decision in decisions_of(me)] == ["DENIED"]
    assert not gone.exists()
    crew_of(Agent(role="r", goal="g", backstory="b", llm=choosing(), mcps=[place])).kickoff()
    assert gone.read_text() == "prod"


def test_the_memory_of_the_crew_is_asked_about_like_any_tool(me: QWEDAgentClient) -> None:
    from crewai.memory.unified_memory import Memory

    memory = Memory(llm=scripted(), embedder=lambda texts: [[0.0] * 8 for _ in texts])
    model = scripted([("save_to_memory", {"contents": ["the key is 123"]})], native=True)
    analyst(model, [], me, memory=memory).kickoff("go")
    assert decisions_of(me) == [("save_to_memory", "DENIED")]


def test_planned_steps(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    class Planning(Script):  # type: ignore[misc]
        """Makes a plan of one step first."""

        def call(self, messages: Any, tools: Any = None, **rest: Any) -> Any:
            names = [tool["function"]["name"] for tool in tools or []]
            if "create_reasoning_plan" in names:
                steps = [
                    {"step_number": 1, "description": "delete it", "tool_to_use": "delete_database", "depends_on": []}
                ]
                return json.dumps({"plan": "delete", "steps": steps, "ready": True})
            return super().call(messages, **rest)

    model = Planning(model="script", native=True)
    model.plan([DELETE], [SEARCH])
    crew_of(analyst(model, toolbox(ran), me, planning=True)).kickoff()
    assert ran == [SEARCH]
    assert decisions_of(me) == [("delete_database", "DENIED"), ("search_web", "APPROVED")]


@each_style
def test_the_cache_of_the_crew_answers_nothing(native: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    free = Agent(role="Clerk", goal="g", backstory="b", llm=scripted([DELETE], native=native), tools=toolbox(ran))
    own = CacheHandler()
    own.add("search_web", json.dumps(SEARCH[1]), "found in the cache")
    model = scripted([DELETE], [SEARCH], native=native)
    agent = analyst(model, toolbox(ran), me, cache=True, cache_handler=own, tools_handler=ToolsHandler(cache=own))
    agents = [free, agent]
    Crew(agents=agents, tasks=[task_of(member) for member in agents], cache=True).kickoff()
    assert ran == [DELETE, SEARCH]
    assert decisions_of(me) == [("delete_database", "DENIED"), ("search_web", "APPROVED")]
    assert "in the cache" not in model.heard


@each_style
def test_a_refusal_is_no_answer_of_a_tool_whose_result_is_the_answer(native: bool, me: QWEDAgentClient) -> None:
    def named(name: str) -> BaseTool:
        @tool(name, result_as_answer=True)
        def result(query: str) -> str:
            """Say something."""
            return f"{name} of {query}"

        return result

    tools = [named("search_web"), named("delete_database")]
    turns = [[("delete_database", {"query": "prod"})], [SEARCH]]
    assert str(crew_of(analyst(scripted(*turns, native=native), tools, me)).kickoff()) == "search_web of oslo"


def test_a_limit_of_uses_holds(me: QWEDAgentClient) -> None:
    used: list[str] = []

    @tool("search_web", max_usage_count=1)
    def search(query: str) -> str:
        """Search the web."""
        used.append(query)
        return "found"

    crew_of(analyst(scripted([SEARCH], [("search_web", {"query": "rome"})], native=True), [search], me)).kickoff()
    assert used == ["oslo"]


class Colour(Enum):
    RED = "red"


class Size(BaseModel):
    wide: int


@each_style
def test_the_tool_is_given_what_its_schema_makes_of_the_arguments(native: bool, me: QWEDAgentClient) -> None:
    received: list[Any] = []

    @tool
    def search_web(day: date, colour: Colour, size: Size, note: str = "none") -> str:
        """Search the web."""
        received.extend([day, colour, size, note])
        return "found"

    arguments = {"day": "2026-05-17", "colour": "red", "size": {"wide": 3}}
    crew_of(analyst(scripted([("search_web", arguments)], native=native), [search_web], me)).kickoff()
    assert received == [date(2026, 5, 17), Colour.RED, {"wide": 3}, "none"]
    assert me.get_activity()[0].action["parameters"] == {**arguments, "note": "none"}


@pytest.mark.parametrize("awaited", [False, True], ids=["", "awaited"])
@each_style
def test_a_tool_that_is_a_coroutine(native: bool, awaited: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    @tool
    async def search_web(query: str) -> str:
        """Search the web."""
        await asyncio.sleep(0)
        ran.append(("search_web", {"query": query}))
        return f"found {query}"

    model = scripted([SEARCH], native=native)
    crew = crew_of(analyst(model, [search_web], me))
    asyncio.run(crew.akickoff()) if awaited else crew.kickoff()
    assert ran == [SEARCH]
    assert "found oslo" in model.heard
    assert me.get_action(me.get_activity()[0].action_id).execution["success"] is True


def test_the_tool_is_asked_about_under_the_name_the_model_calls_it_by(me: QWEDAgentClient) -> None:
    @tool("Search Web")
    def search(query: str) -> str:
        """Search the web."""
        return f"found {query}"

    crew_of(analyst(scripted([SEARCH]), [search], me)).kickoff()
    assert decisions_of(me) == [("search_web", "APPROVED")]


class Search(BaseTool):  # type: ignore[misc]
    """Tool that a CrewAI checkpoint can store: a class, not a function."""

    name: str = "search_web"
    description: str = "search the web"

    def _run(self, query: str) -> Any:
        return {"found": query}

    def format_output_for_agent(self, raw_result: Any) -> str:
        return f"<<{raw_result['found']}>>"


def test_a_tool_formats_its_own_result_and_we_our_refusals(me: QWEDAgentClient) -> None:
    model = scripted([SEARCH], [SEARCH], [SEARCH], native=True)
    crew_of(analyst(model, [Search()], me)).kickoff()
    assert "<<oslo>>" in model.heard
    assert "QWED-AGENT-LOOP-003" in model.heard


def test_what_crewai_restores_from_a_checkpoint_is_a_plain_agent(me: QWEDAgentClient, tmp_path: Path) -> None:
    config = CheckpointConfig(location=str(tmp_path), on_events=["*"])
    crew_of(analyst(scripted(), [Search()], me), checkpoint=config).kickoff()
    written = CheckpointConfig(restore_from=str(max(tmp_path.rglob("*.json"))))
    assert [type(agent) for agent in Crew.from_checkpoint(written).agents] == [Agent]
    with pytest.raises(ValueError, match="No QWEDVerifiedAgent"):
        QWEDVerifiedAgent.from_checkpoint(written)


@each_style
def test_an_agent_that_has_lost_its_checkpoint_runs_nothing(
    native: bool, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    model = scripted([SEARCH], native=native)
    agent = analyst(model, toolbox(ran), me)
    agent._qwed = None
    crew_of(agent).kickoff()
    assert ran == []
    assert "it has no connection to qwed" in model.heard


def test_skills_are_read_without_asking(me: QWEDAgentClient, tmp_path: Path) -> None:
    skill = tmp_path / "greeting"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: greeting\ndescription: how to greet\n---\nSay hello twice.\n")
    model = scripted([("load_skill", {"skill_name": "greeting"})], native=True)
    crew_of(analyst(model, [], me, skills=[str(tmp_path)])).kickoff()
    assert "Say hello twice." in model.heard
    assert decisions_of(me) == []


def test_a_result_that_is_too_long_is_read_on_without_asking_again(me: QWEDAgentClient) -> None:
    @tool
    def search_web(query: str) -> str:
        """Search the web."""
        return "\n".join(f"line {number} about {query}" for number in range(20_000))

    class Reading(Script):  # type: ignore[misc]
        """Model that continues to read a shortened result."""

        def call(self, messages: Any, tools: Any = None, **rest: Any) -> Any:
            last = str(messages[-1].get("content"))
            if "relative file path `" in last:
                path = last.split("relative file path `")[1].split("`")[0]
                reader = next(entry["function"]["name"] for entry in tools if "deferred" in entry["function"]["name"])
                self._turns = [[(reader, {"file_path": path, "start_line": 19_000, "line_count": 2})]]
            return super().call(messages, **rest)

    model = Reading(model="script", native=True)
    model.plan([SEARCH])
    crew_of(analyst(model, [search_web], me)).kickoff()
    assert "line 19000 about oslo" in model.heard
    assert decisions_of(me) == [("search_web", "APPROVED")]
