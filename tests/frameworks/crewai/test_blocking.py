"""A tool of a verified agent runs only after it was permitted, however CrewAI runs it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from crewai import Agent, Crew
from crewai.tools import tool
from crewai.tools.tool_failure import ToolFailure

from qwed_sdk import QWEDAgentClient, QWEDClient
from qwed_sdk.crewai import QWEDVerifiedAgent
from tests.frameworks.crewai.script import (
    DELETE,
    EMAIL,
    SEARCH,
    CallSpec,
    analyst,
    crew_of,
    decisions_of,
    scripted,
    task_of,
    toolbox,
)
from tests.support.chat_completions_server import answer_bytes, chat_server

OTHER: CallSpec = ("search_web", {"query": "bergen"})
CLOSED = "http://127.0.0.1:9"

Way = Callable[[Any], Any]


def _streamed(agent: Any) -> Any:
    stream = crew_of(agent, stream=True).kickoff()
    return [*stream, stream.result]


WAYS: dict[str, Way] = {
    "crew": lambda agent: crew_of(agent).kickoff(),
    "crew, in a thread": lambda agent: asyncio.run(crew_of(agent).kickoff_async()),
    "crew, awaited": lambda agent: asyncio.run(crew_of(agent).akickoff()),
    "crew, streamed": _streamed,
    "crew, for each": lambda agent: crew_of(agent).kickoff_for_each([{}]),
    "task": lambda agent: task_of(agent).execute_sync(),
    "task, async": lambda agent: crew_of(agent, tasks=[task_of(agent, async_execution=True)]).kickoff(),
    "agent": lambda agent: agent.kickoff("go"),
    "agent, awaited": lambda agent: asyncio.run(agent.kickoff_async("go")),
    "copy": lambda agent: crew_of(agent.copy()).kickoff(),
    "copy of a crew": lambda agent: crew_of(agent).copy().kickoff(),
    "wrapped again": lambda agent: crew_of(QWEDVerifiedAgent(agent=agent)).kickoff(),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
each_style = pytest.mark.parametrize("native", [False, True], ids=["text", "native"])


@each_way
@each_style
def test_a_permitted_tool_runs_and_a_denied_one_does_not(
    way: Way, native: bool, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    model = scripted([SEARCH], [DELETE], native=native)
    way(analyst(model, toolbox(ran), me))
    assert ran == [SEARCH]
    assert "found oslo" in model.heard
    assert "qwed did not permit `delete_database`" in model.heard
    assert decisions_of(me) == [("search_web", "APPROVED"), ("delete_database", "DENIED")]


@each_style
def test_the_outcome_is_logged_after_the_tool(native: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    crew_of(analyst(scripted([SEARCH], native=native), toolbox(ran), me)).kickoff()
    entry = me.get_activity()[0]
    assert me.get_action(entry.action_id).execution["success"] is True


def test_a_refusal_is_on_the_output_of_the_task(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    output = crew_of(analyst(scripted([DELETE]), toolbox(ran), me)).kickoff()
    (failed,) = output.tasks_output[0].tool_failures
    assert failed.tool_name == "delete_database"
    assert failed.failure.details == {"code": "QWED-AGENT-TRUST-001", "decision": "DENIED"}


@each_style
def test_what_waits_for_a_person_does_not_run(native: bool, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    model = scripted([EMAIL], native=native)
    crew_of(analyst(model, toolbox(ran), me)).kickoff()
    assert ran == []
    assert "a person must approve" in model.heard


def test_it_runs_once_a_person_approved_it_in_time(me: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]) -> None:
    def approve() -> None:
        while not (waiting := [approval for approval in owner.list_approvals() if approval.agent_id == me.agent_id]):
            continue
        owner.approve(waiting[0].approval_id, "go ahead")

    person = threading.Thread(target=approve)
    person.start()
    crew_of(analyst(scripted([EMAIL]), toolbox(ran), me, wait=30)).kickoff()
    person.join()
    assert ran == [EMAIL]


@each_style
def test_what_was_corrected_runs_as_it_was_corrected(native: bool, me: QWEDAgentClient) -> None:
    calls: list[tuple[str, int]] = []

    @tool
    def compute(claim: str, digits: int = 2) -> str:
        """Note a claim."""
        calls.append((claim, digits))
        return "noted"

    model = scripted([("compute", {"claim": "2+2 = 5", "digits": 3})], native=native)
    actions = {"compute": {"type": "calculate", "query": "claim"}}
    crew_of(analyst(model, [compute], me, actions=actions)).kickoff()
    assert calls == [("2+2 = 4", 3)]


def test_calls_made_at_once_are_asked_about_one_by_one(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    cities: list[CallSpec] = [("search_web", {"query": f"city {number}"}) for number in range(6)]
    crew_of(analyst(scripted([*cities, DELETE, EMAIL], native=True), toolbox(ran), me)).kickoff()
    assert sorted(ran, key=str) == cities
    assert sorted(entry.decision for entry in me.get_activity()) == ["APPROVED"] * 6 + ["DENIED", "PENDING"]


NO_ANSWER = {
    "rubbish": answer_bytes(b"<html>it works</html>"),
    "an error": answer_bytes(b'{"error": {"code": "QWED-SYSTEM-001", "message": "broken"}}', 500),
    "nothing": answer_bytes(b""),
    "a yes without an action": answer_bytes(b'{"decision": "APPROVED"}'),
    "another word for yes": answer_bytes(b'{"decision": "SURE", "action_id": "act_1"}'),
    "a correction that never came": answer_bytes(b'{"decision": "CORRECTED", "action_id": "act_1"}'),
    "a list": answer_bytes(b"[1, 2]"),
}


@pytest.mark.parametrize("answer", NO_ANSWER.values(), ids=NO_ANSWER)
@each_style
def test_a_verifier_that_does_not_answer_as_it_should_blocks(answer: Any, native: bool, ran: list[CallSpec]) -> None:
    with chat_server(answer) as verifier, QWEDClient("qwed_live_x", verifier.base_url, retries=0) as client:
        me = QWEDAgentClient("agent_x", client=client)
        crew_of(analyst(scripted([SEARCH], native=native), toolbox(ran), me)).kickoff()
        assert verifier.heard
    assert ran == []


@each_style
def test_a_verifier_that_cannot_be_reached_blocks(native: bool, ran: list[CallSpec]) -> None:
    model = scripted([SEARCH], native=native)
    client = QWEDClient("qwed_live_x", CLOSED, retries=0)
    crew_of(analyst(model, toolbox(ran), QWEDAgentClient("agent_x", client=client))).kickoff()
    assert ran == []
    assert "it could not be verified" in model.heard


def test_a_verifier_that_is_slow_blocks(ran: list[CallSpec]) -> None:
    model = scripted([SEARCH])
    hold = threading.Event()
    with chat_server(lambda _: hold.wait() and None) as verifier:
        client = QWEDClient("qwed_live_x", verifier.base_url, 0.2, retries=0)
        crew_of(analyst(model, toolbox(ran), QWEDAgentClient("agent_x", client=client))).kickoff()
        hold.set()
    assert ran == []
    assert "it could not be verified" in model.heard


class Broken(QWEDAgentClient):
    """Agent client with a defect."""

    def run(self, call: Any) -> Any:  # noqa: ARG002 # the signature it has
        raise ZeroDivisionError("a mistake")


@each_way
@each_style
def test_a_mistake_of_our_own_blocks(way: Way, native: bool, ran: list[CallSpec]) -> None:
    way(analyst(scripted([SEARCH], native=native), toolbox(ran), Broken("agent_x", api_key="qwed_live_x")))
    assert ran == []


def test_a_tool_that_the_agent_does_not_have_is_not_found(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    crew_of(analyst(scripted([DELETE]), toolbox(ran)[:1], me)).kickoff()
    assert (ran, me.get_activity()) == ([], [])


@each_style
def test_a_tool_that_the_organisation_does_not_know_is_denied(native: bool, me: QWEDAgentClient) -> None:
    launched: list[str] = []

    @tool
    def launch_rocket(target: str) -> str:
        """Launch a rocket."""
        launched.append(target)
        return "launched"

    model = scripted([("launch_rocket", {"target": "moon"})], native=native)
    crew_of(analyst(model, [launch_rocket], me)).kickoff()
    assert launched == []
    assert "QWED-AGENT-004" in model.heard


@each_style
def test_a_tool_that_raises_is_logged_as_failed_and_asked_about_again(native: bool, me: QWEDAgentClient) -> None:
    tries: list[str] = []

    @tool
    def search_web(query: str) -> str:
        """Search the web."""
        tries.append(query)
        raise RuntimeError("no line")

    crew_of(analyst(scripted([SEARCH], native=native), [search_web], me)).kickoff()
    approved = [entry for entry in me.get_activity() if entry.decision == "APPROVED"]
    # CrewAI tries six times if a model writes text; the third identical call is refused as a loop.
    assert len(tries) == len(approved) == (1 if native else 2)
    assert [me.get_action(entry.action_id).execution["success"] for entry in approved] == [False] * len(tries)


def test_a_tool_that_reports_its_own_failure_is_logged_as_failed(me: QWEDAgentClient) -> None:
    @tool
    def search_web(query: str) -> Any:
        """Search the web."""
        return ToolFailure(message=f"nothing about {query}")

    model = scripted([SEARCH], native=True)
    crew_of(analyst(model, [search_web], me)).kickoff()
    assert "nothing about oslo" in model.heard
    assert me.get_action(me.get_activity()[0].action_id).execution["success"] is False


@each_style
def test_a_policy_that_raises_ends_the_run_at_the_first_refusal(
    native: bool, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    agent = analyst(scripted([DELETE], [SEARCH], native=native), toolbox(ran), me, tool_failure_policy="raise")
    with pytest.raises(Exception, match="did not permit `delete_database`"):
        crew_of(agent).kickoff()
    assert ran == []


def test_one_run_is_one_conversation_and_the_next_begins_anew(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    crew = crew_of(analyst(scripted([SEARCH], [OTHER]), toolbox(ran), me))
    crew.kickoff()
    crew.agents[0].llm.plan([SEARCH])
    crew.kickoff()
    conversations = [entry.conversation_id for entry in me.get_activity()]
    assert conversations[1] == conversations[2] != conversations[0]


def test_the_same_thing_over_and_over_is_stopped(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    model = scripted(*[[SEARCH]] * 4, native=True)
    crew_of(analyst(model, toolbox(ran), me)).kickoff()
    assert ran == [SEARCH, SEARCH]
    assert "QWED-AGENT-LOOP-003" in model.heard


def test_another_agent_of_the_crew_is_left_alone(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    free = Agent(role="Clerk", goal="g", backstory="b", llm=scripted([DELETE]), tools=toolbox(ran))
    agent = analyst(scripted([DELETE]), toolbox(ran), me)
    Crew(agents=[agent, free], tasks=[task_of(agent), task_of(free)]).kickoff()
    assert ran == [DELETE]
    assert len(me.get_activity()) == 1
