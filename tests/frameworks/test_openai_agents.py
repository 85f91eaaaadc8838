"""QWEDGuard for OpenAI Agents: a tool that is not permitted does not run, however the run is started or resumed."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Runner,
    RunResult,
    RunResultStreaming,
    RunState,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.exceptions import AgentsException
from agents.mcp import MCPServer
from agents.run_context import RunContextWrapper
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, TextContent
from mcp.types import Tool as MCPTool

from qwed_sdk import Checkpoint, QWEDAgentClient, QWEDClient
from qwed_sdk.openai_agents import QWEDGuard
from tests.frameworks.openai_agents_script import CallSpec, scripted, tool_names, tool_outputs, toolbox
from tests.frameworks.slow_tools import SlowVerifier
from tests.support.agent_names import unique_name
from tests.support.chat_completions_server import answer_bytes, chat_server
from tests.support.polling import until

SEARCH: CallSpec = ("search_web", {"query": "oslo"})
OTHER: CallSpec = ("search_web", {"query": "bergen"})
DELETE: CallSpec = ("delete_database", {"name": "prod"})
EMAIL: CallSpec = ("send_email", {"to": "a@example.com", "body": "hello"})
CLOSED = "http://127.0.0.1:9"
SQL = {"run_sql": {"type": "execute_sql", "query": "sql"}}

Way = Callable[["Agent[Any]"], RunResult | RunResultStreaming]


def _plain(guarded: "Agent[Any]") -> RunResult:
    return asyncio.run(Runner.run(guarded, "go"))


def _streamed(guarded: "Agent[Any]") -> RunResultStreaming:
    async def run() -> RunResultStreaming:
        result = Runner.run_streamed(guarded, "go")
        assert [event async for event in result.stream_events()]
        return result

    return asyncio.run(run())


def _blocking(guarded: "Agent[Any]") -> RunResult:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(guarded, "go")
    finally:
        loop.close()
        asyncio.set_event_loop(None)


WAYS: dict[str, Way] = {"run": _plain, "run_streamed": _streamed, "run_sync": _blocking}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def _agent(model: ScriptedModel, ran: list[CallSpec], **fields: Any) -> "Agent[Any]":
    return Agent(name="tested", model=model, tools=[*toolbox(ran)], **fields)


@each_way
def test_a_permitted_tool_runs_and_its_outcome_is_logged(way: Way, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    result = way(QWEDGuard(client=agent).agent(_agent(scripted([SEARCH]), ran)))
    assert (ran, tool_outputs(result), result.final_output) == ([SEARCH], ["found oslo"], "done")
    (done,) = agent.get_activity()
    assert (done.decision, done.execution["success"]) == ("APPROVED", True)


@each_way
def test_a_denied_tool_does_not_run_and_the_model_is_told_why(
    way: Way, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    result = way(QWEDGuard(client=agent).agent(_agent(scripted([DELETE], [SEARCH]), ran)))
    assert (ran, result.final_output) == ([SEARCH], "done")
    assert tool_outputs(result)[0].startswith("qwed did not permit `delete_database`: ")
    assert "QWED-AGENT-TRUST-001" in tool_outputs(result)[0]


@each_way
def test_of_calls_made_at_once_only_the_permitted_ones_run(
    way: Way, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    result = way(QWEDGuard(client=agent).agent(_agent(scripted([SEARCH, DELETE, OTHER, EMAIL]), ran)))
    assert sorted(tool_names(ran)) == ["search_web", "search_web"]
    assert [item.tool_name for item in result.interruptions] == ["send_email"]
    assert len(agent.get_activity()) == 4


def test_a_run_is_a_conversation(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    guard = QWEDGuard(client=agent)
    for _ in range(2):
        _plain(guard.agent(_agent(scripted([SEARCH, OTHER], [SEARCH]), ran)))
    conversations = [entry.conversation_id for entry in agent.get_activity()]
    assert sorted(map(conversations.count, set(conversations))) == [3, 3]


def test_a_tool_runs_with_the_corrected_arguments(agent: QWEDAgentClient) -> None:
    ran: list[str] = []

    @function_tool
    def run_sql(context: ToolContext[Any], sql: str) -> str:
        ran.extend([sql, context.tool_arguments])
        return "rows"

    calls = scripted([("run_sql", {"sql": "SELECT id, password FROM users WHERE id = 1"})])
    _plain(QWEDGuard(client=agent, actions=SQL).agent(Agent(name="a", model=calls, tools=[run_sql])))
    assert ran == ["SELECT id FROM users WHERE id = 1", '{"sql": "SELECT id FROM users WHERE id = 1"}']
    assert agent.get_activity()[0].decision == "CORRECTED"


def test_the_tools_and_agents_it_is_made_of_stay_as_they_were(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    plain = _agent(scripted([DELETE]), ran)
    before = [(tool.on_invoke_tool, tool.needs_approval) for tool in plain.tools if isinstance(tool, FunctionTool)]
    guarded = QWEDGuard(client=agent).agent(plain)
    assert type(plain) is Agent
    assert isinstance(guarded, Agent)
    after = [(tool.on_invoke_tool, tool.needs_approval) for tool in plain.tools if isinstance(tool, FunctionTool)]
    assert before == after
    _plain(plain)
    assert ran == [DELETE]


def _added(guarded: "Agent[Any]", tools: list[FunctionTool]) -> "Agent[Any]":
    guarded.tools.extend(tools)
    return guarded


LATER: dict[str, Callable[["Agent[Any]", list[FunctionTool]], "Agent[Any]"]] = {
    "a clone": lambda guarded, tools: guarded.clone(name="clone", tools=[*tools]),
    "a clone of a clone": lambda guarded, tools: guarded.clone().clone(tools=[*tools]),
    "tools that were added": _added,
}


@pytest.mark.parametrize("change", LATER.values(), ids=LATER)
def test_what_a_guarded_agent_becomes_later_is_guarded_too(
    change: Callable[["Agent[Any]", list[FunctionTool]], "Agent[Any]"], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    guarded = QWEDGuard(client=agent).agent(Agent(name="empty", model=scripted([DELETE], [SEARCH])))
    _plain(change(guarded, toolbox(ran)))
    assert ran == [SEARCH]


def test_a_guarded_agent_is_not_guarded_twice_by_the_same_guard(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    guard = QWEDGuard(client=agent)
    guarded = guard.agent(_agent(scripted([SEARCH]), ran))
    assert guard.agent(guarded) is guarded
    _plain(guarded)
    assert len(agent.get_activity()) == 1


@pytest.mark.parametrize("tool_use_behavior", ["stop_on_first_tool", {"stop_at_tool_names": ["delete_database"]}])
def test_where_the_first_tool_ends_the_run_the_refusal_is_its_output(
    tool_use_behavior: Any, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    plain = _agent(scripted([DELETE]), ran, tool_use_behavior=tool_use_behavior)
    result = _plain(QWEDGuard(client=agent).agent(plain))
    assert ran == []
    assert result.final_output.startswith("qwed did not permit `delete_database`")


# ---- a person decides ----


class PausedRun:
    """Run that waits for a person, and can be resumed."""

    def __init__(self, agent: QWEDAgentClient, ran: list[CallSpec], **settings: Any) -> None:
        self.guard = QWEDGuard(client=agent, **settings)
        self.agent = self.guard.agent(_agent(scripted([EMAIL]), ran))
        self.result = _plain(self.agent)
        self.state = self.result.to_state()
        (self.item,) = self.result.interruptions
        self.approval_id = self.guard.approval_id(self.item) or ""

    def resume(self) -> RunResult:
        return asyncio.run(Runner.run(self.agent, self.state))


def test_a_pending_call_interrupts_the_run_and_goes_on_once_approved_in_qwed_and_here(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    assert (ran, paused.item.tool_name, paused.result.final_output) == ([], "send_email", None)
    owner.approve(paused.approval_id, "the customer asked")
    paused.state.approve(paused.item)
    result = paused.resume()
    assert (ran, tool_outputs(result), result.final_output) == ([EMAIL], ["sent"], "done")
    (done,) = agent.get_activity()
    assert (done.decision, done.resolution["decision"], done.execution["success"]) == ("PENDING", "APPROVED", True)


@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
def test_an_approval_that_only_the_application_gave_permits_nothing(
    always: bool, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    paused.state.approve(paused.item, always_approve=always)
    result = paused.resume()
    assert (ran, result.final_output) == ([], "done")
    assert "QWED-AGENT-TRUST-002" in tool_outputs(result)[0]
    assert len(agent.get_activity()) == 1


def test_what_qwed_rejected_does_not_run_whatever_the_application_says(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.reject(paused.approval_id, "no")
    paused.state.approve(paused.item)
    assert (tool_outputs(paused.resume())[0][:33], ran) == ("qwed did not permit `send_email`:", [])


def test_what_the_application_rejected_does_not_run_whatever_qwed_says(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.approval_id, "yes")
    paused.state.reject(paused.item)
    assert (paused.resume().final_output, ran) == ("done", [])


def test_what_nobody_decided_here_stays_paused(agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.approval_id, "yes")
    assert (len(paused.resume().interruptions), ran) == (1, [])


def test_an_approval_permits_one_call(agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]) -> None:
    notes: dict[str, dict[str, str]] = {}
    paused = PausedRun(agent, ran, waiting=notes)
    saved, noted = paused.state.to_json(), dict(notes)
    owner.approve(paused.approval_id, "yes")
    for _ in range(2):
        notes.update(noted)
        fresh = paused.agent.clone(model=scripted())
        state: Any = asyncio.run(RunState.from_json(fresh, saved))
        state.approve(state.get_interruptions()[0])
        last = asyncio.run(Runner.run(fresh, state))
    assert ran == [EMAIL]
    assert "it was already executed" in tool_outputs(last)[0]


def _in_another_process(paused: PausedRun, agent: QWEDAgentClient, ran: list[CallSpec], **settings: Any) -> RunResult:
    elsewhere = QWEDGuard(client=agent, **settings).agent(_agent(scripted(), ran))

    async def resume() -> RunResult:
        state: Any = await RunState.from_string(elsewhere, paused.state.to_string())
        for item in state.get_interruptions():
            state.approve(item)
        return await Runner.run(elsewhere, state)

    return asyncio.run(resume())


def test_another_process_resumes_with_the_notes_of_the_first(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    notes: dict[str, dict[str, str]] = {}
    paused = PausedRun(agent, ran, waiting=notes)
    owner.approve(paused.approval_id, "yes")
    _in_another_process(paused, agent, ran, waiting=notes)
    assert (ran, notes) == ([EMAIL], {})


def test_without_the_notes_another_process_asks_anew_and_nothing_runs(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.approval_id, "yes")
    result = _in_another_process(paused, agent, ran)
    assert (ran, len(agent.get_activity())) == ([], 2)
    assert "QWED-AGENT-TRUST-002" in tool_outputs(result)[0]


def test_notes_that_name_another_approved_action_permit_nothing(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    notes: dict[str, dict[str, str]] = {}
    paused = PausedRun(agent, ran, waiting=notes)
    other = agent.verify_tool_call("search_web", {"query": "oslo"})
    for note in notes.values():
        note["action_id"] = str(other.action_id)
    paused.state.approve(paused.item)
    assert ("another call was approved" in tool_outputs(paused.resume())[0], ran) == (True, [])


@pytest.mark.parametrize("note", [{}, {"approval_id": "apr_1"}, {"action_id": "act_1"}, None])
def test_notes_that_were_damaged_permit_nothing(note: Any, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    notes: dict[str, dict[str, str]] = {}
    paused = PausedRun(agent, ran, waiting=notes)
    notes.update(dict.fromkeys(notes, note))
    paused.state.approve(paused.item)
    assert (paused.resume().final_output, ran) == ("done", [])


def test_a_call_that_is_cancelled_while_it_is_looked_up_still_waits(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    notes: dict[str, dict[str, str]] = {}
    paused = PausedRun(agent, ran, waiting=notes)
    before = dict(notes)

    async def cancel() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent_client = QWEDClient("key", f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3, retries=0)
            elsewhere = QWEDGuard(agent_id=agent.agent_id, client=silent_client, waiting=notes)
            state: Any = await RunState.from_string(built := elsewhere.agent(_agent(scripted(), ran)), saved)
            state.approve(state.get_interruptions()[0])
            running = asyncio.create_task(Runner.run(built, state))
            connection, _ = await asyncio.to_thread(silent.accept)
            running.cancel()
            with connection, silent_client, pytest.raises(asyncio.CancelledError):
                await running

    saved = paused.state.to_string()
    asyncio.run(cancel())
    assert (ran, notes) == ([], before)


def test_what_a_suspended_agent_was_granted_does_not_run(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.approval_id, "yes")
    owner.suspend_agent(agent.agent_id, "stop")
    paused.state.approve(paused.item)
    paused.resume()
    assert ran == []


def test_a_verifier_that_is_down_when_the_run_is_resumed_permits_nothing(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    notes: dict[str, dict[str, str]] = {}
    paused = PausedRun(agent, ran, waiting=notes)
    owner.approve(paused.approval_id, "yes")
    with QWEDClient("key", CLOSED, retries=0) as closed_client:
        down = QWEDAgentClient(agent.agent_id, agent.agent_token, client=closed_client)
        result = _in_another_process(paused, down, ran, waiting=notes)
    assert (ran, len(notes)) == ([], 1)
    assert "could not be" in tool_outputs(result)[0]
    _in_another_process(paused, agent, ran, waiting=notes)
    assert ran == [EMAIL]


def test_without_pausing_the_model_is_told_that_a_person_decides(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    result = _plain(QWEDGuard(client=agent, pause=False).agent(_agent(scripted([EMAIL]), ran)))
    assert (ran, result.interruptions, result.final_output) == ([], [], "done")
    assert "QWED-AGENT-TRUST-002" in tool_outputs(result)[0]


@pytest.mark.parametrize("pause", [True, False])
def test_it_runs_where_a_person_approves_while_it_waits(
    pause: bool, agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    def approve() -> None:
        waiting = until(
            lambda: [approval for approval in owner.list_approvals() if approval.agent_id == agent.agent_id]
        )
        owner.approve(waiting[0].approval_id, "go ahead")

    person = threading.Thread(target=approve)
    person.start()
    result = _plain(QWEDGuard(client=agent, wait=30, pause=pause).agent(_agent(scripted([EMAIL]), ran)))
    person.join()
    assert (ran, result.interruptions) == ([EMAIL], [])


@pytest.mark.parametrize("needed", [True, lambda _context, arguments, _call: arguments["query"] == "oslo"])
def test_what_a_tool_itself_wants_approved_is_asked_of_its_person_first(
    needed: Any, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    guard, (search, *_) = QWEDGuard(client=agent), toolbox(ran)
    search.needs_approval = needed
    guarded = guard.agent(Agent(name="a", model=scripted([SEARCH]), tools=[search]))
    result = _plain(guarded)
    (item,) = result.interruptions
    assert (ran, guard.approval_id(item), agent.get_activity()) == ([], None, [])
    state = result.to_state()
    state.approve(item)
    asyncio.run(Runner.run(guarded, state))
    assert (ran, len(agent.get_activity())) == ([SEARCH], 1)


def test_the_frameworks_own_rule_about_defaults_and_approval_stays(agent: QWEDAgentClient) -> None:
    @function_tool(strict_mode=False, needs_approval=_never)
    def search_web(query: str = "oslo") -> str:
        return query

    guarded = QWEDGuard(client=agent).agent(Agent(name="a", model=scripted([("search_web", {})]), tools=[search_web]))
    assert len(_plain(guarded).interruptions) == 1


async def _never(_context: RunContextWrapper[Any], _arguments: dict[str, Any], _call_id: str) -> bool:
    return False


# ---- every error blocks ----

BROKEN: dict[str, Any] = {
    "rubbish": answer_bytes(b"<html>hello</html>"),
    "an empty object": answer_bytes(b"{}"),
    "an approval with no action": answer_bytes(b'{"decision": "APPROVED"}'),
    "an unknown decision": answer_bytes(b'{"decision": "SURE", "action_id": "act_1"}'),
    "500": answer_bytes(b"{}", 500),
    "a truth that is none": answer_bytes(b'{"decision": true, "action_id": "act_1"}'),
}


@pytest.mark.parametrize("pause", [True, False])
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_verifier_that_answers_wrongly_permits_nothing(answer: Any, pause: bool, ran: list[CallSpec]) -> None:
    with chat_server(answer) as broken, QWEDClient("key", broken.base_url, retries=0) as client:
        guarded = QWEDGuard(agent_id="agent_1", client=client, pause=pause).agent(_agent(scripted([SEARCH]), ran))
        result = _plain(guarded)
    assert (ran, result.final_output) == ([], "done")


@each_way
def test_a_verifier_that_is_down_permits_nothing(way: Way, ran: list[CallSpec]) -> None:
    with QWEDClient("key", CLOSED, retries=0) as client:
        result = way(QWEDGuard(agent_id="agent_1", client=client).agent(_agent(scripted([SEARCH], [EMAIL]), ran)))
    assert (ran, result.final_output) == ([], "done")


def test_a_verifier_that_is_slow_permits_nothing_and_does_not_block_the_event_loop(ran: list[CallSpec]) -> None:
    async def run() -> RunResult:
        slow = SlowVerifier()
        with chat_server(slow) as server, QWEDClient("key", server.base_url, timeout=0.3, retries=0) as client:
            guarded = QWEDGuard(agent_id="agent_1", client=client).agent(_agent(scripted([SEARCH]), ran))
            running = asyncio.create_task(Runner.run(guarded, "go"))
            # If the loop were blocked, this event would arrive only after the timeout.
            await slow.requested.wait()
            assert not running.done()
            result = await running
            slow.released.set()
            return result

    assert (asyncio.run(run()).final_output, ran) == ("done", [])


class FailingTable(dict[str, Mapping[str, str]]):
    """Table whose lookup raises."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("lookup failed")


@pytest.mark.parametrize("pause", [True, False])
@each_way
def test_a_surprise_in_our_own_code_blocks(way: Way, pause: bool, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    guard = QWEDGuard(client=agent, pause=pause, actions=FailingTable(run_sql={"type": "execute_sql", "query": "sql"}))
    # In the approval check it ends the run; in the tool it is reported like the tool's own errors.
    with pytest.raises(AgentsException, match="lookup failed") if pause else nullcontext():
        way(guard.agent(_agent(scripted([SEARCH]), ran)))
    assert ran == []


@pytest.mark.parametrize("text", ["[1]", "null", '"oslo"', "{", "1e999", '{"query": NaN}', "[" * 100_000, "{'a': 1}"])
@pytest.mark.parametrize("pause", [True, False])
def test_arguments_that_are_no_json_object_never_reach_the_tool(
    pause: bool, text: str, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    model = ScriptedModel([[function_call("search_web", text, call_id="c")], [assistant_message("done")]])
    guard = QWEDGuard(client=agent, pause=pause)
    guarded = guard.agent(_agent(model, ran))
    try:
        result = _plain(guarded)
    except RecursionError:
        # The framework parses them before it checks for an approval.
        assert text.startswith("[[")
    else:
        state = result.to_state()
        for item in result.interruptions:
            assert guard.approval_id(item) is None
            state.approve(item)
        assert asyncio.run(Runner.run(guarded, state)).final_output == "done" if result.interruptions else True
    assert ran == []


def test_of_a_name_given_twice_the_tool_gets_what_was_verified(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    text = '{"query": "password", "query": "oslo"}'
    model = ScriptedModel([[function_call("search_web", text, call_id="c")], [assistant_message("done")]])
    _plain(QWEDGuard(client=agent).agent(_agent(model, ran)))
    assert ran == [SEARCH]
    assert agent.get_activity()[0].action["parameters"] == {"query": "oslo"}


@pytest.mark.parametrize("pause", [True, False])
def test_what_the_model_leaves_out_is_asked_about_as_the_tool_would_do_it(pause: bool, agent: QWEDAgentClient) -> None:
    ran: list[tuple[str, int]] = []

    @function_tool(strict_mode=False)
    def search_web(query: str, depth: int = 3) -> str:
        ran.append((query, depth))
        return "found"

    guard = QWEDGuard(client=agent, pause=pause)
    _plain(guard.agent(Agent(name="a", model=scripted([SEARCH]), tools=[search_web])))
    assert ran == [("oslo", 3)]
    assert agent.get_activity()[0].action["parameters"] == {"query": "oslo", "depth": 3}


def test_a_tool_that_qwed_does_not_know_does_not_run(agent: QWEDAgentClient) -> None:
    ran: list[str] = []

    @function_tool
    def rm_rf(path: str) -> str:
        ran.append(path)
        return "gone"

    calls = scripted([("rm_rf", {"path": "/"})])
    result = _plain(QWEDGuard(client=agent).agent(Agent(name="a", model=calls, tools=[rm_rf])))
    assert (ran, "allowlisting" in tool_outputs(result)[0]) == ([], True)


def test_a_cancelled_run_runs_nothing_that_was_not_permitted_yet(ran: list[CallSpec]) -> None:
    async def run() -> None:
        slow = SlowVerifier(b'{"decision": "APPROVED", "action_id": "act_1"}')
        with chat_server(slow) as server, QWEDClient("key", server.base_url, retries=0) as client:
            guarded = QWEDGuard(agent_id="agent_1", client=client).agent(_agent(scripted([SEARCH]), ran))
            running = asyncio.create_task(Runner.run(guarded, "go"))
            await slow.requested.wait()
            running.cancel()
            # Released only now: an earlier permit would still let the tool run.
            with pytest.raises(asyncio.CancelledError):
                await running
            slow.released.set()

    asyncio.run(run())
    assert ran == []


def test_a_tool_that_is_cancelled_half_way_is_logged_as_failed(agent: QWEDAgentClient) -> None:
    async def run() -> None:
        begun = asyncio.Event()

        @function_tool
        async def search_web(query: str) -> str:
            begun.set()
            await asyncio.Event().wait()
            return query

        guarded = QWEDGuard(client=agent).agent(Agent(name="a", model=scripted([SEARCH]), tools=[search_web]))
        running = asyncio.create_task(Runner.run(guarded, "go"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # The framework does not wait for the tool: it has ended when no other task runs.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    asyncio.run(run())
    assert agent.get_activity()[0].execution["success"] is False


# ---- tools that fail ----


def _failing_tool(**settings: Any) -> FunctionTool:
    @function_tool(name_override="search_web", **settings)
    async def failing(query: str) -> str:
        raise ValueError(f"no {query}")

    return failing


def test_a_tool_that_fails_is_logged_as_failed_and_told_as_it_says(agent: QWEDAgentClient) -> None:
    worded = _failing_tool(failure_error_function=lambda _context, error: f"sorry: {error}")
    for tool, message in ((worded, "sorry: no oslo"), (_failing_tool(), "An error occurred while running the tool.")):
        result = _plain(QWEDGuard(client=agent).agent(Agent(name="a", model=scripted([SEARCH]), tools=[tool])))
        assert tool_outputs(result)[0].startswith(message)
        assert agent.get_activity()[0].execution["success"] is False


def test_a_tool_that_raises_on_purpose_still_ends_the_run(agent: QWEDAgentClient) -> None:
    raising = _failing_tool(failure_error_function=None)
    with pytest.raises(AgentsException, match="no oslo"):
        _plain(QWEDGuard(client=agent).agent(Agent(name="a", model=scripted([SEARCH]), tools=[raising])))
    assert agent.get_activity()[0].execution["success"] is False


def test_a_tool_out_of_time_is_logged_as_failed_and_told_as_it_says(agent: QWEDAgentClient) -> None:
    @function_tool(timeout=2.0, timeout_error_function=lambda _context, _error: "too slow")
    async def search_web(query: str) -> str:
        await asyncio.Event().wait()
        return query

    result = _plain(QWEDGuard(client=agent).agent(Agent(name="a", model=scripted([SEARCH]), tools=[search_web])))
    assert tool_outputs(result) == ["too slow"]
    assert agent.get_activity()[0].execution["success"] is False


# ---- agents that hand over, agents inside tools, servers of tools ----


def _handing_over(ran: list[CallSpec], handoff_to: Callable[["Agent[Any]"], Any]) -> "Agent[Any]":
    second = Agent(name="second", model=scripted([DELETE], [SEARCH]), tools=[*toolbox(ran)])
    first = Agent(name="first", model=scripted([("transfer_to_second", {})]), handoffs=[handoff_to(second)])
    # Both hand over to each other, as in real applications.
    second.handoffs.append(first)
    return first


@pytest.mark.parametrize("handoff_to", [lambda agent: agent, handoff], ids=["an agent", "a handoff"])
@each_way
def test_the_agents_it_hands_over_to_are_guarded_too(
    way: Way, handoff_to: Callable[["Agent[Any]"], Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    result = way(QWEDGuard(client=agent).agent(_handing_over(ran, handoff_to)))
    assert (ran, result.last_agent.name, result.final_output) == ([SEARCH], "second", "done")


@pytest.mark.parametrize("handoff_to", [lambda agent: agent, handoff], ids=["an agent", "a handoff"])
@pytest.mark.parametrize("cloned", [True, False], ids=["by a clone", "by adding"])
def test_an_agent_to_hand_over_to_that_came_after_the_guard_is_refused(
    cloned: bool, handoff_to: Callable[["Agent[Any]"], Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    second = Agent(name="second", model=scripted([DELETE]), tools=[*toolbox(ran)])
    guard = QWEDGuard(client=agent)
    first = guard.agent(Agent(name="first", model=scripted([("transfer_to_second", {})])))
    if cloned:
        first = first.clone(handoffs=[handoff_to(second)])
    else:
        first.handoffs.append(handoff_to(second))
    with pytest.raises(ValueError, match="the agent `second` was added after the guard"):
        _plain(first)
    assert ran == []
    assert _plain(first.clone(handoffs=[guard.agent(second)])).final_output == "done"
    assert ran == []


@pytest.mark.parametrize("handoff_to", [lambda agent: agent, handoff], ids=["an agent", "a handoff"])
def test_a_run_that_was_handed_over_can_be_saved_and_resumed(
    handoff_to: Callable[["Agent[Any]"], Any], agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    second = Agent(name="second", model=scripted([EMAIL]), tools=[*toolbox(ran)])
    guard = QWEDGuard(client=agent)
    first = guard.agent(
        Agent(name="first", model=scripted([("transfer_to_second", {})]), handoffs=[handoff_to(second)])
    )
    result = _plain(first)
    owner.approve(guard.approval_id(result.interruptions[0]) or "", "yes")

    async def resume() -> RunResult:
        state: Any = await RunState.from_string(first, result.to_state().to_string())
        state.approve(state.get_interruptions()[0])
        return await Runner.run(first, state)

    assert (asyncio.run(resume()).final_output, ran) == ("done", [EMAIL])


def test_an_agent_inside_a_tool_must_be_guarded(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    guard = QWEDGuard(client=agent)
    inner = Agent(name="inner", model=scripted([DELETE, SEARCH]), tools=[*toolbox(ran)])
    calls = scripted([("ask_inner", {"input": "do it"})])
    with pytest.raises(ValueError, match="the agent inside the tool `ask_inner` has no guard"):
        guard.agent(Agent(name="outer", model=calls, tools=[inner.as_tool("ask_inner", "asks")]))
    outer = guard.agent(Agent(name="outer", model=calls, tools=[guard.agent(inner).as_tool("ask_inner", "asks")]))
    result = _plain(outer)
    assert (ran, tool_outputs(result), len(agent.get_activity())) == ([SEARCH], ["done"], 2)


def test_an_agent_keeps_the_guard_it_has(agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]) -> None:
    other = QWEDAgentClient.register(unique_name("another"), "user_123", client=owner)
    inner = QWEDGuard(client=other).agent(Agent(name="inner", model=scripted([SEARCH]), tools=[*toolbox(ran)]))
    third = QWEDGuard(client=other).agent(Agent(name="third", model=scripted([OTHER]), tools=[*toolbox(ran)]))
    calls = scripted([("ask_inner", {"input": "do it"})], [("transfer_to_third", {})])
    plain = Agent(name="outer", model=calls, tools=[inner.as_tool("ask_inner", "asks")], handoffs=[third])
    _plain(QWEDGuard(client=agent).agent(plain))
    assert (ran, len(other.get_activity()), len(agent.get_activity())) == ([SEARCH, OTHER], 2, 0)


def test_an_agent_inside_a_tool_pauses_the_outer_run(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    guard = QWEDGuard(client=agent)
    inner = guard.agent(Agent(name="inner", model=scripted([EMAIL]), tools=[*toolbox(ran)]))
    calls = scripted([("ask_inner", {"input": "do it"})])
    outer = guard.agent(Agent(name="outer", model=calls, tools=[inner.as_tool("ask_inner", "asks")]))
    result = _plain(outer)
    (item,) = result.interruptions
    owner.approve(guard.approval_id(item) or "", "yes")
    state = result.to_state()
    state.approve(item)
    assert (asyncio.run(Runner.run(outer, state)).final_output, ran) == ("done", [EMAIL])


class InProcessServer(MCPServer):
    """MCP server in this process."""

    def __init__(self, ran: list[CallSpec]) -> None:
        super().__init__()
        self.ran = ran

    @property
    def name(self) -> str:
        return "served"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> list[MCPTool]:
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "query": {"type": "string"}}}
        return [
            MCPTool.model_validate({"name": name, "inputSchema": schema}) for name in ("delete_database", "search_web")
        ]

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, *_: Any, **__: Any) -> CallToolResult:
        self.ran.append((tool_name, arguments or {}))
        return CallToolResult(content=[TextContent(type="text", text="served")])

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        raise NotImplementedError


@each_way
def test_the_tools_of_an_mcp_server_ask_too(way: Way, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    plain = Agent(name="a", model=scripted([DELETE, SEARCH]), mcp_servers=[InProcessServer(ran)])
    result = way(QWEDGuard(client=agent).agent(plain))
    assert (ran, result.final_output) == ([SEARCH], "done")


def test_a_tool_that_the_provider_runs_is_refused_unless_it_is_named(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    hosted = Agent(name="a", model=scripted([SEARCH]), tools=[WebSearchTool(), *toolbox(ran)])
    with pytest.raises(ValueError, match="qwed cannot verify the tool `web_search`"):
        QWEDGuard(client=agent).agent(hosted)
    _plain(QWEDGuard(client=agent, unverified=["web_search"]).agent(hosted))
    assert ran == [SEARCH]
    sneaked = QWEDGuard(client=agent).agent(_agent(scripted([SEARCH]), ran))
    sneaked.tools.append(WebSearchTool())
    with pytest.raises(ValueError, match="web_search"):
        _plain(sneaked)
    assert ran == [SEARCH]


def test_a_tool_named_as_unverified_runs_without_being_asked_about(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    _plain(QWEDGuard(client=agent, unverified=["delete_database"]).agent(_agent(scripted([DELETE]), ran)))
    assert (ran, agent.get_activity()) == ([DELETE], [])


def test_a_refusal_does_not_fit_a_typed_output_and_ends_the_run(agent: QWEDAgentClient) -> None:
    ran: list[str] = []

    @function_tool(output_json_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    def delete_database(name: str) -> dict[str, int]:
        ran.append(name)
        return {"n": 1}

    with pytest.raises(AgentsException, match="output schema"):
        _plain(QWEDGuard(client=agent).agent(Agent(name="a", model=scripted([DELETE]), tools=[delete_database])))
    assert ran == []


def test_a_shell_given_as_a_function_tool_is_read_as_a_shell(agent: QWEDAgentClient) -> None:
    ran: list[str] = []

    @function_tool
    def run_shell(command: str) -> str:
        ran.append(command)
        return "ok"

    calls = scripted([("run_shell", {"command": "ls /srv"})], [("run_shell", {"command": "rm -rf /"})])
    guard = QWEDGuard(client=agent, actions={"run_shell": {"type": "shell_command", "query": "command"}})
    _plain(guard.agent(Agent(name="a", model=calls, tools=[run_shell])))
    assert ran == ["ls /srv"]


def test_only_agents_are_guarded(agent: QWEDAgentClient) -> None:
    with pytest.raises(TypeError, match="guard an `Agent`, not a str"):
        QWEDGuard(client=agent).agent("agent")  # type: ignore[type-var]


# ---- construction ----


def test_it_is_made_of_a_checkpoint_or_of_the_environment(
    agent: QWEDAgentClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(agent)
    assert QWEDGuard(checkpoint).checkpoint is checkpoint
    monkeypatch.setenv("QWED_AGENT_ID", agent.agent_id)
    assert QWEDGuard().checkpoint.agent.agent_id == agent.agent_id
    monkeypatch.delenv("QWED_AGENT_ID")
    with pytest.raises(ValueError, match="QWED_AGENT_ID"):
        QWEDGuard()


def test_without_the_framework_the_module_is_there_and_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['agents'] = None\n"
        "from qwed_sdk.openai_agents import QWEDGuard\n"
        "try: QWEDGuard(agent_id='agent_1')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("pip install openai-agents")
