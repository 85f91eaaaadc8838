"""QWEDGuard and QWEDToolset for Pydantic AI: a tool that is not permitted does not run, however the agent runs."""

import asyncio
import inspect
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CombinedToolset,
    DeferredToolRequests,
    DeferredToolResults,
    ExternalToolset,
    FunctionToolset,
    ModelMessage,
    ModelRetry,
    RunContext,
    TextOutput,
    ToolApproved,
    ToolDefinition,
    UnexpectedModelBehavior,
    WebSearchTool,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls, Hooks, NativeTool
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from qwed_sdk import Checkpoint, QWEDAgentClient, QWEDClient
from qwed_sdk.pydantic_ai import QWEDGuard, QWEDToolset
from tests.frameworks.pydantic_ai_script import CallSpec, scripted, tool_outputs, toolbox
from tests.frameworks.slow_tools import SlowVerifier
from tests.support.chat_completions_server import answer_bytes, chat_server
from tests.support.polling import until

SEARCH: CallSpec = ("search_web", {"query": "oslo"})
OTHER: CallSpec = ("search_web", {"query": "bergen"})
DELETE: CallSpec = ("delete_database", {"name": "prod"})
EMAIL: CallSpec = ("send_email", {"to": "a@example.com", "body": "hello"})
CLOSED = "http://127.0.0.1:9"
SQL = {"run_sql": {"type": "execute_sql", "query": "sql"}}
DEFERS: list[Any] = [str, DeferredToolRequests]

Messages = Sequence[ModelMessage]


# ---- ways to run an agent, and to pass tools ----


async def _run(built: "Agent[Any, Any]") -> Messages:
    return (await built.run("go")).all_messages()


async def _streamed(built: "Agent[Any, Any]") -> Messages:
    async with built.run_stream("go") as stream:
        await stream.get_output()
        return stream.all_messages()


async def _events(built: "Agent[Any, Any]") -> Messages:
    async with built.run_stream_events("go") as events:
        last = [event async for event in events][-1]
    messages: Messages = last.result.all_messages()  # type: ignore[union-attr]
    return messages


async def _stepped(built: "Agent[Any, Any]") -> Messages:
    async with built.iter("go") as run:
        assert [node async for node in run]
    assert run.result is not None
    return run.result.all_messages()


async def _sync(built: "Agent[Any, Any]") -> Messages:
    def run() -> Messages:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return built.run_sync("go").all_messages()
        finally:
            loop.close()

    return await asyncio.to_thread(run)


RUNS = {"run": _run, "run_stream": _streamed, "run_stream_events": _events, "iter": _stepped, "run_sync": _sync}
each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)

Built = Callable[[QWEDAgentClient, FunctionToolset[Any], Any], "Agent[Any, Any]"]


def _own_tools(qwed: QWEDAgentClient, tools: FunctionToolset[Any], model: Any) -> "Agent[Any, Any]":
    return Agent(model, tools=[*tools.tools.values()], capabilities=[QWEDGuard(client=qwed)])


def _decorated(qwed: QWEDAgentClient, tools: FunctionToolset[Any], model: Any) -> "Agent[Any, Any]":
    built: Agent[Any, Any] = Agent(model, capabilities=[QWEDGuard(client=qwed)])
    for tool in tools.tools.values():
        built.tool_plain(tool.function)  # type: ignore[arg-type]
    return built


def _dynamic(qwed: QWEDAgentClient, tools: FunctionToolset[Any], model: Any) -> "Agent[Any, Any]":
    built: Agent[Any, Any] = Agent(model, capabilities=[QWEDGuard(client=qwed)])
    built.toolset(lambda _ctx: tools)
    return built


class UntypedToolset(AbstractToolset[Any]):
    """Toolset that accepts any arguments, like that of an MCP server."""

    def __init__(self, tools: FunctionToolset[Any]) -> None:
        self.functions = {name: tool.function for name, tool in tools.tools.items()}

    @property
    def id(self) -> str:
        return "served"

    async def get_tools(self, _ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        anything = SchemaValidator(core_schema.dict_schema())
        return {
            name: ToolsetTool(toolset=self, tool_def=ToolDefinition(name=name), max_retries=1, args_validator=anything)
            for name in self.functions
        }

    async def call_tool(self, name: str, tool_args: dict[str, Any], *_: Any) -> Any:
        result = self.functions[name](**tool_args)
        return await result if inspect.isawaitable(result) else result


BUILT: dict[str, Built] = {
    "a toolset of another kind": lambda qwed, tools, model: Agent(
        model, toolsets=[UntypedToolset(tools)], capabilities=[QWEDGuard(client=qwed)]
    ),
    "its own tools": _own_tools,
    "tools that decorate": _decorated,
    "a toolset": lambda qwed, tools, model: Agent(model, toolsets=[tools], capabilities=[QWEDGuard(client=qwed)]),
    "a toolset of each step": _dynamic,
    "a guarded toolset": lambda qwed, tools, model: Agent(model, toolsets=[QWEDToolset(tools, client=qwed)]),
    "a guarded dynamic toolset": lambda qwed, tools, model: Agent(
        model, toolsets=[QWEDToolset(CombinedToolset([tools.filtered(lambda *_: True)]), client=qwed)]
    ),
}
each_built = pytest.mark.parametrize("build", BUILT.values(), ids=BUILT)


def _guarded(qwed: QWEDAgentClient, ran: list[CallSpec], *turns: list[CallSpec], **settings: Any) -> "Agent[Any, Any]":
    fields = {name: settings.pop(name) for name in ("output_type",) if name in settings}
    capabilities = [QWEDGuard(client=qwed, **settings)]
    return Agent(scripted(*turns), toolsets=[toolbox(ran)], capabilities=capabilities, **fields)


@each_run
@each_built
def test_a_permitted_tool_runs_and_is_logged_and_a_denied_one_does_not_run(
    build: Built, run: Callable[..., Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    messages = asyncio.run(run(build(agent, toolbox(ran), scripted([DELETE], [SEARCH], [DELETE]))))
    assert ran == [SEARCH]
    denied, result, again = tool_outputs(messages)
    assert result == "found oslo"
    assert denied == again
    assert denied.startswith("qwed did not permit `delete_database`: ")
    assert "QWED-AGENT-TRUST-001" in denied
    (permitted,) = agent.get_activity(decision="APPROVED")
    assert permitted.execution["success"] is True


def test_a_refusal_spends_no_retry_however_often_it_comes(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    calls = [[("delete_database", {"name": f"d{number}"})] for number in range(5)]
    messages = asyncio.run(_run(_guarded(agent, ran, *calls)))
    outcomes = [part.outcome for message in messages for part in message.parts if part.part_kind == "tool-return"]
    assert (ran, outcomes) == ([], ["failed"] * 5)


@each_run
def test_of_calls_made_at_once_only_the_permitted_ones_run(
    run: Callable[..., Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    asyncio.run(run(_guarded(agent, ran, [SEARCH, DELETE, OTHER, EMAIL])))
    assert sorted(tool for tool, _ in ran) == ["search_web", "search_web"]
    assert len(agent.get_activity()) == 4


def test_toolsets_of_one_run_and_of_an_override_ask_too(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    built: Agent[Any, Any] = Agent(scripted([DELETE], [SEARCH]), capabilities=[QWEDGuard(client=agent)])

    async def run() -> None:
        await built.run("go", toolsets=[toolbox(ran)])
        with built.override(toolsets=[toolbox(ran)]):
            await built.run("go")
        with built.override(tools=[*toolbox(ran).tools.values()], model=scripted([DELETE], [OTHER])):
            await built.run("go")

    asyncio.run(run())
    assert ran == [SEARCH, SEARCH, OTHER]


def test_a_capability_of_one_run_guards_that_run(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    built: Agent[Any, Any] = Agent(scripted([DELETE]), toolsets=[toolbox(ran)])
    asyncio.run(built.run("go", capabilities=[QWEDGuard(client=agent)]))
    assert ran == []


@pytest.mark.parametrize("stays", [True, False], ids=["a guarded toolset stays", "the capability is replaced"])
def test_what_the_page_says_of_an_override_that_replaces_the_capabilities(
    stays: bool, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    built = BUILT["a guarded toolset" if stays else "a toolset"](agent, toolbox(ran), scripted([DELETE]))

    async def run() -> None:
        with built.override(spec={"capabilities": ["Thinking"]}):
            await built.run("go")

    asyncio.run(run())
    assert ran == ([] if stays else [DELETE])


def test_a_name_is_verified_as_the_model_calls_it(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    tools = [toolbox(ran).prefixed("web"), toolbox(ran)]
    built: Agent[Any, Any] = Agent(
        scripted([("web_search_web", {"query": "oslo"})]), toolsets=tools, capabilities=[QWEDGuard(client=agent)]
    )
    asyncio.run(_run(built))
    assert agent.get_activity()[0].action["tool"] == "web_search_web"
    assert ran == []


def test_a_run_is_a_conversation(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    built = _guarded(agent, ran, [SEARCH, OTHER], [SEARCH])
    for _ in range(2):
        asyncio.run(_run(built))
    conversations = [entry.conversation_id for entry in agent.get_activity()]
    assert sorted(map(conversations.count, set(conversations))) == [3, 3]


# ---- arguments ----


def test_a_tool_runs_with_the_corrected_arguments(agent: QWEDAgentClient) -> None:
    ran: list[str] = []
    tools: FunctionToolset[Any] = FunctionToolset()

    @tools.tool_plain
    def run_sql(sql: str) -> str:
        ran.append(sql)
        return "rows"

    calls = scripted([("run_sql", {"sql": "SELECT id, password FROM users WHERE id = 1"})])
    asyncio.run(_run(Agent(calls, toolsets=[tools], capabilities=[QWEDGuard(client=agent, actions=SQL)])))
    assert ran == ["SELECT id FROM users WHERE id = 1"]
    assert agent.get_activity()[0].decision == "CORRECTED"


def test_corrected_arguments_pass_the_tools_own_validation(agent: QWEDAgentClient) -> None:
    ran: list[str] = []
    tools: FunctionToolset[Any] = FunctionToolset()

    def only_whole(_ctx: RunContext[Any], sql: str) -> None:
        if "password" not in sql:
            raise ModelRetry("the whole row, please")

    @tools.tool(args_validator=only_whole)
    def run_sql(_ctx: RunContext[Any], sql: str) -> str:
        ran.append(sql)
        return "rows"

    calls = scripted([("run_sql", {"sql": "SELECT id, password FROM users WHERE id = 1"})])
    messages = asyncio.run(_run(Agent(calls, toolsets=[tools], capabilities=[QWEDGuard(client=agent, actions=SQL)])))
    assert (ran, "the whole row" in str(messages)) == ([], True)
    assert agent.get_activity()[0].execution["success"] is False


class Trip(BaseModel):
    city: str
    day: date


class Hidden(BaseModel):
    city: str
    secret: str = Field(exclude=True)


def test_arguments_of_any_type_are_verified_as_json_and_reach_the_tool_as_they_are(agent: QWEDAgentClient) -> None:
    ran: list[Any] = []
    tools: FunctionToolset[Any] = FunctionToolset()

    @tools.tool_plain
    def search_web(trip: Trip, tags: set[str], limit: int = 3) -> str:
        ran.append((trip, tags, limit))
        return "found"

    arguments = {"trip": {"city": "Oslo", "day": "2026-05-17"}, "tags": ["x"]}
    asyncio.run(
        _run(Agent(scripted([("search_web", arguments)]), toolsets=[tools], capabilities=[QWEDGuard(client=agent)]))
    )
    assert ran == [(Trip(city="Oslo", day=date(2026, 5, 17)), {"x"}, 3)]
    assert agent.get_activity()[0].action["parameters"] == {**arguments, "limit": 3}


def _secret(ran: list[str]) -> Callable[..., None]:
    def search_web(query: SecretStr) -> None:
        ran.append(query.get_secret_value())

    return search_web


def _hidden(ran: list[str]) -> Callable[..., None]:
    def search_web(query: Hidden) -> None:
        ran.append(query.secret)

    return search_web


LOSSY = {"a secret": (_secret, "rm -rf"), "a hidden field": (_hidden, {"city": "Oslo", "secret": "rm -rf"})}


@pytest.mark.parametrize(("make_tool", "query"), LOSSY.values(), ids=LOSSY)
def test_what_json_would_hide_from_the_verifier_does_not_reach_the_tool(
    make_tool: Callable[[list[str]], Callable[..., None]], query: Any, agent: QWEDAgentClient
) -> None:
    ran: list[str] = []
    calls = scripted([("search_web", {"query": query})])
    messages = asyncio.run(_run(Agent(calls, tools=[make_tool(ran)], capabilities=[QWEDGuard(client=agent)])))
    assert "its arguments change when they are converted to JSON" in tool_outputs(messages)[0]
    assert (ran, agent.get_activity()) == ([], [])


def test_what_another_capability_makes_of_a_call_is_what_is_verified(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.before_tool_execute
    async def change(_ctx: RunContext[Any], *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {"query": "bergen"}

    for order in itertools.permutations([QWEDGuard(client=agent), hooks]):
        asyncio.run(_run(Agent(scripted([SEARCH]), toolsets=[toolbox(ran)], capabilities=[*order])))
    assert ran == [OTHER, OTHER]
    assert [entry.action["parameters"] for entry in agent.get_activity()] == [OTHER[1], OTHER[1]]


# ---- a person decides ----


class PausedRun:
    """Run that waits for a person, and can be resumed."""

    def __init__(self, agent: QWEDAgentClient, ran: list[CallSpec], **settings: Any) -> None:
        self.agent = _guarded(agent, ran, [EMAIL], output_type=DEFERS, **settings)
        self.result = asyncio.run(self.agent.run("go"))
        self.requests: DeferredToolRequests = self.result.output
        (self.call,) = self.requests.approvals
        self.note: dict[str, str] = self.requests.metadata[self.call.tool_call_id]["qwed"]

    def resume(self, approval: Any = True, built: "Agent[Any, Any] | None" = None, notes: bool = True) -> Any:
        approvals = {self.call.tool_call_id: approval}
        results = DeferredToolResults(approvals=approvals, metadata=self.requests.metadata if notes else {})
        history = self.result.all_messages()
        return asyncio.run((built or self.agent).run(message_history=history, deferred_tool_results=results)).output


def test_a_pending_call_is_deferred_and_goes_on_once_approved_in_qwed_and_here(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    assert (ran, paused.call.tool_name) == ([], "send_email")
    owner.approve(paused.note["approval_id"], "the customer asked")
    assert (paused.resume(), ran) == ("done", [EMAIL])
    (done,) = agent.get_activity()
    assert (done.decision, done.resolution["decision"], done.execution["success"]) == ("PENDING", "APPROVED", True)


@pytest.mark.parametrize("approval", [True, ToolApproved()])
def test_an_approval_that_only_the_application_gave_defers_the_call_again(
    approval: Any, agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    again = paused.resume(approval)
    assert (ran, again.metadata, len(agent.get_activity())) == ([], paused.requests.metadata, 1)
    owner.approve(paused.note["approval_id"], "yes")
    assert (paused.resume(approval), ran) == ("done", [EMAIL])


def test_a_handler_that_approves_everything_does_not_either(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    def approve(_ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approve_all=True)

    built: Agent[Any, Any] = Agent(
        scripted([EMAIL]),
        toolsets=[toolbox(ran)],
        capabilities=[QWEDGuard(client=agent, pause=True), HandleDeferredToolCalls(approve)],
        output_type=DEFERS,
    )
    assert isinstance(asyncio.run(built.run("go")).output, DeferredToolRequests)
    assert (ran, len(agent.get_activity())) == ([], 1)


def test_what_qwed_rejected_does_not_run_whatever_the_application_says(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.reject(paused.note["approval_id"], "no")
    assert (paused.resume(), ran) == ("done", [])


def test_what_the_application_denied_does_not_run_whatever_qwed_says(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.note["approval_id"], "yes")
    assert (paused.resume(False), ran) == ("done", [])


def test_an_approval_permits_one_call(agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.note["approval_id"], "yes")
    assert [paused.resume(), paused.resume()] == ["done", "done"]
    assert ran == [EMAIL]


def test_another_process_resumes_with_the_metadata_of_the_first(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.note["approval_id"], "yes")
    elsewhere = _guarded(agent, ran, [EMAIL], output_type=DEFERS)
    assert isinstance(paused.resume(built=elsewhere, notes=False), DeferredToolRequests)
    assert ran == []
    elsewhere = _guarded(agent, ran, [EMAIL], output_type=DEFERS)
    assert (paused.resume(built=elsewhere), ran) == ("done", [EMAIL])


@pytest.mark.parametrize("note", [None, [], "act_1", {"action_id": 7}, {"action_id": "act_1"}, {}])
def test_metadata_of_any_shape_permits_nothing(note: Any, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    paused = PausedRun(agent, ran)
    paused.requests.metadata = {paused.call.tool_call_id: {"qwed": note}}
    paused.resume(built=_guarded(agent, ran, [EMAIL], output_type=DEFERS))
    assert ran == []


def test_metadata_that_names_another_approved_action_permits_nothing(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    other = agent.verify_tool_call("search_web", {"query": "oslo"})
    paused.note["action_id"] = str(other.action_id)
    paused.resume(built=_guarded(agent, ran, [EMAIL], output_type=DEFERS))
    assert ran == []


def test_arguments_that_the_application_changed_are_not_those_that_were_approved(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.note["approval_id"], "yes")
    paused.resume(ToolApproved(override_args={"to": "b@example.com", "body": "hello"}))
    assert ran == []


def test_what_a_suspended_agent_was_granted_does_not_run(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    paused = PausedRun(agent, ran)
    owner.approve(paused.note["approval_id"], "yes")
    owner.suspend_agent(agent.agent_id, "stop")
    paused.resume()
    assert ran == []


PAUSES: list[tuple[Any, Any, bool]] = [
    (str, None, False),
    (DEFERS, None, True),
    (DEFERS, False, False),
    (DEFERS, True, True),
]


@pytest.mark.parametrize(("output_type", "pause", "pauses"), PAUSES)
def test_a_run_pauses_where_it_can_and_the_model_is_told_otherwise(
    output_type: Any, pause: bool | None, pauses: bool, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    built = _guarded(agent, ran, [EMAIL], output_type=output_type, pause=pause)
    result = asyncio.run(built.run("go"))
    assert (isinstance(result.output, DeferredToolRequests), ran) == (pauses, [])
    assert pauses or "QWED-AGENT-TRUST-002" in tool_outputs(result.all_messages())[0]


def test_it_runs_where_a_person_approves_while_it_waits(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    def approve() -> None:
        waiting = until(
            lambda: [approval for approval in owner.list_approvals() if approval.agent_id == agent.agent_id]
        )
        owner.approve(waiting[0].approval_id, "go ahead")

    person = threading.Thread(target=approve)
    person.start()
    asyncio.run(_run(_guarded(agent, ran, [EMAIL], wait=30)))
    person.join()
    assert ran == [EMAIL]


def test_what_a_tool_itself_wants_approved_is_asked_of_its_person_first(agent: QWEDAgentClient) -> None:
    ran: list[str] = []
    tools: FunctionToolset[Any] = FunctionToolset()

    @tools.tool_plain(requires_approval=True)
    def search_web(query: str) -> str:
        ran.append(query)
        return "found"

    built: Agent[Any, Any] = Agent(
        scripted([SEARCH]), toolsets=[tools], capabilities=[QWEDGuard(client=agent)], output_type=DEFERS
    )

    async def run() -> None:
        first = await built.run("go")
        assert (ran, agent.get_activity()) == ([], [])
        results = first.output.build_results(approve_all=True)
        await built.run(message_history=first.all_messages(), deferred_tool_results=results)

    asyncio.run(run())
    assert (ran, len(agent.get_activity())) == (["oslo"], 1)


# ---- every error blocks ----

BROKEN: dict[str, Any] = {
    "rubbish": answer_bytes(b"<html>hello</html>"),
    "an empty object": answer_bytes(b"{}"),
    "an approval with no action": answer_bytes(b'{"decision": "APPROVED"}'),
    "an unknown decision": answer_bytes(b'{"decision": "SURE", "action_id": "act_1"}'),
    "500": answer_bytes(b"{}", 500),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_verifier_that_answers_wrongly_permits_nothing(answer: Any, ran: list[CallSpec]) -> None:
    with chat_server(answer) as broken, QWEDClient("key", broken.base_url, retries=0) as client:
        broken_agent = QWEDAgentClient("agent_1", client=client)
        asyncio.run(_run(_guarded(broken_agent, ran, [SEARCH])))
    assert ran == []


@pytest.mark.parametrize(("build", "run"), [*((builder, _run) for builder in BUILT.values()), (_own_tools, _streamed)])
def test_a_verifier_that_is_down_permits_nothing(build: Built, run: Callable[..., Any], ran: list[CallSpec]) -> None:
    with QWEDClient("key", CLOSED, retries=0) as client:
        closed_agent = QWEDAgentClient("agent_1", client=client)
        messages = asyncio.run(run(build(closed_agent, toolbox(ran), scripted([SEARCH], [EMAIL]))))
    assert ran == []
    assert all("could not be" in output for output in tool_outputs(messages))


def test_a_verifier_that_is_slow_permits_nothing_and_does_not_block_the_event_loop(ran: list[CallSpec]) -> None:
    async def run() -> None:
        slow = SlowVerifier()
        with chat_server(slow) as server, QWEDClient("key", server.base_url, timeout=0.3, retries=0) as client:
            built = _guarded(QWEDAgentClient("agent_1", client=client), ran, [SEARCH])
            running = asyncio.create_task(_run(built))
            # If the loop were blocked, this event would arrive only after the timeout.
            await slow.requested.wait()
            assert not running.done()
            await running
            slow.released.set()

    asyncio.run(run())
    assert ran == []


def test_a_cancelled_run_runs_nothing_that_was_not_permitted_yet(ran: list[CallSpec]) -> None:
    async def run() -> None:
        slow = SlowVerifier(b'{"decision": "APPROVED", "action_id": "act_1"}')
        with chat_server(slow) as server, QWEDClient("key", server.base_url, retries=0) as client:
            built = _guarded(QWEDAgentClient("agent_1", client=client), ran, [SEARCH])
            running = asyncio.create_task(_run(built))
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

        async def search_web(query: str) -> str:
            begun.set()
            await asyncio.Event().wait()
            return query

        built = Agent(scripted([SEARCH]), tools=[search_web], capabilities=[QWEDGuard(client=agent)])
        running = asyncio.create_task(_run(built))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(run())
    assert agent.get_activity()[0].execution["success"] is False


class FailingTable(dict[str, Mapping[str, str]]):
    """Table whose lookup raises."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("lookup failed")


@each_run
def test_a_surprise_in_our_own_code_blocks(
    run: Callable[..., Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    actions = FailingTable(run_sql={"type": "execute_sql", "query": "sql"})
    with pytest.raises(RuntimeError, match="lookup failed"):
        asyncio.run(run(_guarded(agent, ran, [SEARCH], actions=actions)))
    assert ran == []


def test_a_capability_that_swallows_errors_does_not_run_the_tool_either(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.tool_execute_error
    async def swallow(_ctx: RunContext[Any], **_named: Any) -> str:
        return "never mind"

    guard = QWEDGuard(client=agent, actions=FailingTable(run_sql={"type": "execute_sql", "query": "sql"}))
    messages = asyncio.run(_run(Agent(scripted([SEARCH]), toolsets=[toolbox(ran)], capabilities=[guard, hooks])))
    assert (ran, tool_outputs(messages)) == ([], ["never mind"])


def test_a_tool_that_qwed_does_not_know_does_not_run(agent: QWEDAgentClient) -> None:
    ran: list[str] = []

    def rm_rf(path: str) -> None:
        ran.append(path)

    built = Agent(scripted([("rm_rf", {"path": "/"})]), tools=[rm_rf], capabilities=[QWEDGuard(client=agent)])
    assert ("allowlisting" in tool_outputs(asyncio.run(_run(built)))[0], ran) == (True, [])


@pytest.mark.parametrize("raised", [ValueError("no"), ApprovalRequired()])
def test_a_tool_that_raises_is_logged_as_failed(raised: Exception, agent: QWEDAgentClient) -> None:
    def search_web(query: str) -> str:
        raise raised

    built = Agent(scripted([SEARCH]), tools=[search_web], capabilities=[QWEDGuard(client=agent)], output_type=DEFERS)
    if isinstance(raised, ValueError):
        with pytest.raises(ValueError, match="no"):
            asyncio.run(_run(built))
    else:
        assert isinstance(asyncio.run(built.run("go")).output, DeferredToolRequests)
    assert agent.get_activity()[0].execution["success"] is False


def test_each_try_of_a_tool_that_retries_is_asked_about(agent: QWEDAgentClient) -> None:
    tries: list[str] = []

    def search_web(query: str) -> str:
        tries.append(query)
        if len(tries) == 1:
            raise ModelRetry("again")
        return "found"

    asyncio.run(_run(Agent(scripted([SEARCH], [SEARCH]), tools=[search_web], capabilities=[QWEDGuard(client=agent)])))
    assert [entry.execution["success"] for entry in agent.get_activity()] == [True, False]


# ---- output functions, provider-run and external tools ----


def _output_function(ran: list[CallSpec]) -> Callable[[str], str]:
    def delete_database(name: str) -> str:
        ran.append(("delete_database", {"name": name}))
        return "deleted"

    return delete_database


@pytest.mark.parametrize("run", [_run, _streamed, _stepped], ids=["run", "run_stream", "iter"])
def test_an_output_function_is_asked_about_like_a_tool(
    run: Callable[..., Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    calls = scripted([("final_result", {"name": "prod"})], [("final_result", {"name": "prod"})])
    built: Agent[Any, Any] = Agent(
        calls, output_type=_output_function(ran), capabilities=[QWEDGuard(client=agent)], retries=1
    )
    with pytest.raises(UnexpectedModelBehavior):
        asyncio.run(run(built))
    assert ran == []
    assert {entry.action["tool"] for entry in agent.get_activity()} == {"delete_database"}


def test_an_output_function_that_may_run_runs_once_and_is_logged(agent: QWEDAgentClient) -> None:
    ran: list[str] = []

    def search_web(query: str) -> str:
        ran.append(query)
        return f"found {query}"

    async def run() -> list[Any]:
        tool = Agent(scripted([("final_result", {"query": "oslo"})]), output_type=search_web, capabilities=guards())
        text = Agent(scripted(), output_type=TextOutput(search_web), capabilities=guards())
        async with tool.run_stream("go") as stream:
            streamed = [item async for item in stream.stream_output(debounce_by=None)]
        return [(await tool.run("go")).output, (await text.run("go")).output, *streamed]

    def guards() -> list[Any]:
        return [QWEDGuard(client=agent)]

    outputs = asyncio.run(run())
    assert set(outputs) == {"found oslo", "found done"}
    assert sorted(set(ran)) == ["done", "oslo"]
    assert all(item.execution["success"] for item in agent.get_activity())
    assert len(agent.get_activity()) == len(ran)


def test_a_structured_output_is_no_action(agent: QWEDAgentClient) -> None:
    calls = scripted([("final_result", {"city": "Oslo", "day": "2026-05-17"})])
    built = Agent(calls, output_type=Trip, capabilities=[QWEDGuard(client=agent)])
    assert asyncio.run(built.run("go")).output == Trip(city="Oslo", day=date(2026, 5, 17))
    assert agent.get_activity() == []


def test_a_tool_that_the_provider_runs_is_refused_unless_it_is_named(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    def built(**settings: Any) -> "Agent[Any, Any]":
        capabilities = [NativeTool(WebSearchTool()), QWEDGuard(client=agent, **settings)]
        return Agent(scripted([SEARCH]), toolsets=[toolbox(ran)], capabilities=capabilities)

    with pytest.raises(ValueError, match="qwed cannot verify the tool `web_search`"):
        asyncio.run(_run(built()))
    assert ran == []


def test_a_tool_that_the_application_runs_elsewhere_is_refused_unless_it_is_named(agent: QWEDAgentClient) -> None:
    elsewhere: AbstractToolset[Any] = ExternalToolset([ToolDefinition(name="delete_database")])

    def built(**settings: Any) -> "Agent[Any, Any]":
        guards = [QWEDGuard(client=agent, **settings)]
        return Agent(scripted([DELETE]), toolsets=[elsewhere], capabilities=guards, output_type=DEFERS)

    with pytest.raises(ValueError, match="qwed cannot verify the tool `delete_database`"):
        asyncio.run(built().run("go"))
    named = asyncio.run(built(unverified=["delete_database"]).run("go"))
    assert [call.tool_name for call in named.output.calls] == ["delete_database"]


@pytest.mark.parametrize("build", ["capability", "toolset"])
def test_a_tool_named_as_unverified_runs_without_being_asked_about(
    build: str, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    unverified = ["delete_database"]
    if build == "toolset":
        tools = QWEDToolset(toolbox(ran), client=agent, unverified=unverified)
        asyncio.run(_run(Agent(scripted([DELETE], [SEARCH]), toolsets=[tools])))
    else:
        asyncio.run(_run(_guarded(agent, ran, [DELETE], [SEARCH], unverified=unverified)))
    assert (ran, len(agent.get_activity())) == ([DELETE, SEARCH], 1)


# ---- construction ----


def test_it_is_made_of_a_checkpoint_or_of_the_environment(
    agent: QWEDAgentClient, monkeypatch: pytest.MonkeyPatch, ran: list[CallSpec]
) -> None:
    checkpoint = Checkpoint(agent)
    assert QWEDGuard(checkpoint).checkpoint is QWEDToolset(toolbox(ran), checkpoint).checkpoint is checkpoint
    monkeypatch.setenv("QWED_AGENT_ID", agent.agent_id)
    assert QWEDToolset(toolbox(ran)).checkpoint.agent.agent_id == QWEDGuard().checkpoint.agent.agent_id
    monkeypatch.delenv("QWED_AGENT_ID")
    for create in (QWEDGuard, lambda: QWEDToolset(toolbox(ran))):
        with pytest.raises(ValueError, match="QWED_AGENT_ID"):
            create()


def test_without_the_framework_the_module_is_there_and_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from qwed_sdk.pydantic_ai import QWEDGuard, QWEDToolset\n"
        "for create in (QWEDGuard, QWEDToolset):\n"
        "    try: create(None, agent_id='agent_1')\n"
        "    except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.endswith("pip install pydantic-ai-slim") for line in lines)
