"""QWEDMiddleware: a denied tool does not run, the model receives the reason, and permitted arguments are used."""

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

from qwed_sdk import QWEDAgentClient, QWEDClient
from qwed_sdk.langchain import QWEDMiddleware
from tests.frameworks.langchain_script import GRAPH_INPUT, CallSpec, graph, scripted, toolbox
from tests.support.chat_completions_server import answer_bytes, chat_server
from tests.support.polling import until

SEARCH: CallSpec = ("search_web", {"query": "oslo"})
OTHER: CallSpec = ("search_web", {"query": "bergen"})
DELETE: CallSpec = ("delete_database", {"name": "prod"})
EMAIL: CallSpec = ("send_email", {"to": "a@example.com", "body": "hello"})
SQL = {"run_sql": {"type": "execute_sql", "query": "sql"}}

Way = Callable[[Any], list[Any]]


async def _last(stream: Any) -> Any:
    return [item async for item in stream][-1]


WAYS: dict[str, Way] = {
    "invoke": lambda built: built.invoke(GRAPH_INPUT)["messages"],
    "ainvoke": lambda built: asyncio.run(built.ainvoke(GRAPH_INPUT))["messages"],
    "stream": lambda built: list(built.stream(GRAPH_INPUT, stream_mode="values"))[-1]["messages"],
    "astream": lambda built: asyncio.run(_last(built.astream(GRAPH_INPUT, stream_mode="values")))["messages"],
    "batch": lambda built: built.batch([GRAPH_INPUT])[0]["messages"],
    "abatch": lambda built: asyncio.run(built.abatch([GRAPH_INPUT]))[0]["messages"],
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def tool_replies(messages: list[Any]) -> list[tuple[str, str]]:
    """Return status and text of each tool message."""
    return [(message.status, message.text) for message in messages if isinstance(message, ToolMessage)]


@each_way
def test_the_denied_tool_does_not_run_the_model_reads_why_and_goes_on(
    way: Way, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    model = scripted([SEARCH], [DELETE], [OTHER])
    messages = way(graph(model, toolbox(ran), middleware=[QWEDMiddleware(client=agent)]))
    assert ran == [SEARCH, OTHER]
    (_, first), (status, refusal), (_, other) = tool_replies(messages)
    assert (first, status, other) == ("found oslo", "error", "found bergen")
    assert "delete_database" in refusal
    assert "QWED-AGENT-" in refusal
    assert messages[-1].text == "done"
    assert refusal in [message.text for message in model.heard[-1]]
    assert [entry.execution and entry.execution["success"] for entry in agent.get_activity()] == [True, None, True]


@each_way
def test_calls_made_at_once_are_steps_of_one_conversation(
    way: Way, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    model = scripted([SEARCH, DELETE, OTHER], [EMAIL, SEARCH])
    messages = way(graph(model, toolbox(ran), middleware=[QWEDMiddleware(client=agent)]))
    assert sorted(map(str, ran)) == sorted(map(str, [SEARCH, OTHER, SEARCH]))
    assert [status for status, _ in tool_replies(messages)] == ["success", "error", "success", "error", "success"]
    entries = agent.get_activity()
    assert len({entry.conversation_id for entry in entries}) == 1
    assert sorted(entry.decision for entry in entries) == ["APPROVED"] * 3 + ["DENIED", "PENDING"]


@pytest.mark.parametrize("way", [WAYS["invoke"], WAYS["ainvoke"]])
def test_it_runs_once_a_person_approved_it_in_time(
    way: Way, agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    def approve() -> None:
        waiting = until(
            lambda: [approval for approval in owner.list_approvals() if approval.agent_id == agent.agent_id]
        )
        owner.approve(waiting[0].approval_id, "go ahead")

    person = threading.Thread(target=approve)
    person.start()
    messages = way(graph(scripted([EMAIL]), toolbox(ran), middleware=[QWEDMiddleware(client=agent, wait=30)]))
    person.join()
    assert (ran, tool_replies(messages)) == ([EMAIL], [("success", "sent")])


@pytest.mark.parametrize("way", [WAYS["invoke"], WAYS["ainvoke"]])
def test_a_corrected_call_runs_with_the_corrected_arguments(
    way: Way, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    def run_sql(sql: str, limit: int = 5) -> str:
        ran.append(("run_sql", {"sql": sql, "limit": limit}))
        return "rows"

    call = ("run_sql", {"sql": "SELECT id, password FROM users WHERE id = 1", "limit": 3})
    tool = StructuredTool.from_function(run_sql, description="runs it")
    way(graph(scripted([call]), [tool], middleware=[QWEDMiddleware(client=agent, actions=SQL)]))
    assert ran == [("run_sql", {"sql": "SELECT id FROM users WHERE id = 1", "limit": 3})]


class Sending(BaseModel):
    """Schema with a default factory, a default that is not JSON, and an argument that the model does not see."""

    to: str
    copy_to: str = "audit@example.com"
    tags: list[str] = Field(default_factory=list)
    clock: Any = object
    sender: Annotated[str, InjectedToolArg] = "me"


def _search(**arguments: Any) -> str:
    return f"found {sorted(arguments)}"


LISTED = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "depth": {"type": "integer", "default": 2}, "free": {"type": "string"}},
    "required": ["to"],
}
DEFAULT_CASES = {
    "of a model": (Sending, {"to": "a"}, {"to": "a", "copy_to": "audit@example.com"}),
    "of a model, one given": (Sending, {"to": "a", "copy_to": "b"}, {"to": "a", "copy_to": "b"}),
    "of a JSON schema": (LISTED, {"to": "a"}, {"to": "a", "depth": 2}),
}


@pytest.mark.parametrize(("schema", "arguments", "verified"), DEFAULT_CASES.values(), ids=DEFAULT_CASES)
def test_defaults_are_part_of_what_is_verified(
    schema: Any, arguments: dict[str, Any], verified: dict[str, Any], agent: QWEDAgentClient
) -> None:
    built = graph(
        scripted([("search_web", arguments)]),
        [_search_tool(_search, args_schema=schema)],
        middleware=[QWEDMiddleware(client=agent)],
    )
    assert tool_replies(WAYS["invoke"](built))[0][0] == "success"
    assert [(entry.action or {})["parameters"] for entry in agent.get_activity()] == [verified]


BROKEN = {
    "says 500": answer_bytes(b"{}", 500),
    "says nothing of sense": answer_bytes(b"<html>hello</html>"),
    "says yes without an id": answer_bytes(b'{"decision": "APPROVED"}'),
    "says yes with status 500": answer_bytes(b'{"decision": "APPROVED", "action_id": "act_1"}', 500),
    "hangs up": lambda handler: handler.connection.close(),
    "never answers": lambda handler: handler.server.provider.released.wait(),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_verifier_that_is_broken_permits_nothing(answer: Any, ran: list[CallSpec]) -> None:
    with chat_server(answer) as verifier, QWEDClient("key", verifier.base_url, timeout=0.3, retries=0) as client:
        for way in (WAYS["invoke"], WAYS["ainvoke"]):
            middleware = QWEDMiddleware("agent_1", client=client)
            messages = way(graph(scripted([SEARCH]), toolbox(ran), middleware=[middleware]))
            assert [status for status, _ in tool_replies(messages)] == ["error"]
    assert ran == []


@each_way
def test_a_verifier_that_is_down_permits_nothing(way: Way, ran: list[CallSpec]) -> None:
    with QWEDClient("key", "http://127.0.0.1:9", retries=0) as client:
        middleware = QWEDMiddleware("agent_1", client=client)
        messages = way(graph(scripted([SEARCH]), toolbox(ran), middleware=[middleware]))
    assert (ran, [status for status, _ in tool_replies(messages)]) == ([], ["error"])


@pytest.mark.parametrize("way", [WAYS["invoke"], WAYS["ainvoke"]])
def test_a_surprise_in_our_own_code_blocks(way: Way, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    class FailingTable(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise NotImplementedError

    middleware = QWEDMiddleware(client=agent, actions=FailingTable(SQL))
    with pytest.raises(NotImplementedError):
        way(graph(scripted([SEARCH]), toolbox(ran), middleware=[middleware]))
    assert ran == []


def test_a_tool_nobody_knows_is_refused_before_the_framework_looks_for_it(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    built = graph(scripted([("rm_rf", {"path": "/"})]), toolbox(ran), middleware=[QWEDMiddleware(client=agent)])
    [(status, refusal)] = tool_replies(WAYS["invoke"](built))
    assert (status, "rm_rf" in refusal, ran) == ("error", True, [])


def test_arguments_that_are_no_json_are_refused(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    call = ("search_web", {"query": float("nan")})
    built = graph(scripted([call]), toolbox(ran), middleware=[QWEDMiddleware(client=agent)])
    assert [status for status, _ in tool_replies(WAYS["invoke"](built))] == ["error"]
    assert ran == []


def _search_tool(function: Callable[..., Any], **fields: Any) -> BaseTool:
    return StructuredTool.from_function(function, name="search_web", description="d", **fields)


def _raise_lookup_error(query: str) -> str:
    raise LookupError(query)


def _raise_tool_exception(query: str) -> str:
    raise ToolException(query)


@pytest.mark.parametrize("way", [WAYS["invoke"], WAYS["ainvoke"]])
def test_a_tool_that_fails_is_logged_as_failed(way: Way, agent: QWEDAgentClient) -> None:
    with pytest.raises(LookupError):
        way(graph(scripted([SEARCH]), [_search_tool(_raise_lookup_error)], middleware=[QWEDMiddleware(client=agent)]))
    failing = _search_tool(_raise_tool_exception, handle_tool_error=True)
    assert (
        tool_replies(way(graph(scripted([SEARCH]), [failing], middleware=[QWEDMiddleware(client=agent)])))[0][0]
        == "error"
    )
    assert [entry.execution and entry.execution["success"] for entry in agent.get_activity()] == [False, False]


def test_a_tool_that_steers_the_graph_is_logged_as_done(agent: QWEDAgentClient) -> None:
    def steer(query: str) -> Command[Any]:
        return Command(update={"messages": [ToolMessage("steered", tool_call_id="0.0")]})

    built = graph(scripted([SEARCH]), [_search_tool(steer)], middleware=[QWEDMiddleware(client=agent)])
    assert tool_replies(WAYS["invoke"](built)) == [("success", "steered")]
    assert [entry.execution and entry.execution["success"] for entry in agent.get_activity()] == [True]


def test_a_tool_that_stops_for_a_person_is_asked_about_again_when_it_goes_on(agent: QWEDAgentClient) -> None:
    tool = _search_tool(lambda query: interrupt(query))
    built = graph(scripted([SEARCH]), [tool], middleware=[QWEDMiddleware(client=agent)], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t1"}}
    built.invoke(GRAPH_INPUT, thread)
    assert [entry.execution for entry in agent.get_activity()] == [None]
    done = built.invoke(Command(resume="yes"), thread)
    assert tool_replies(done["messages"]) == [("success", "yes")]
    assert [entry.execution and entry.execution["success"] for entry in agent.get_activity()] == [True, None]


def test_cancelled_half_way_nothing_is_claimed(agent: QWEDAgentClient) -> None:
    async def hang(query: str) -> str:
        began.set()
        await asyncio.Event().wait()
        return query

    async def cancel() -> None:
        tool = StructuredTool.from_function(coroutine=hang, name="search_web", description="d")
        running = asyncio.create_task(
            graph(scripted([SEARCH]), [tool], middleware=[QWEDMiddleware(client=agent)]).ainvoke(GRAPH_INPUT)
        )
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    began = asyncio.Event()
    asyncio.run(cancel())
    assert [(entry.decision, entry.execution) for entry in agent.get_activity()] == [("APPROVED", None)]


class ChangingMiddleware(AgentMiddleware):
    """Middleware that applies `change` to every request."""

    def __init__(self, change: Callable[[ToolCallRequest], ToolCallRequest]) -> None:
        super().__init__()
        self.change = change

    def wrap_tool_call(self, request: ToolCallRequest, handler: Any) -> Any:
        return handler(self.change(request))


def _delete_instead(ran: list[CallSpec]) -> ChangingMiddleware:
    called = {"name": "delete_database", "args": DELETE[1], "id": "0.0", "type": "tool_call"}
    return ChangingMiddleware(lambda request: request.override(tool_call=called, tool=toolbox(ran)[1]))  # type: ignore[arg-type]


def test_what_a_middleware_before_it_makes_of_a_call_is_what_is_asked_about(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    def delete_database(query: str) -> str:
        ran.append(("delete_database", {"name": query}))
        return "deleted"

    hidden = StructuredTool.from_function(delete_database, description="under the name of another")
    for change in (_delete_instead(ran), ChangingMiddleware(lambda request: request.override(tool=hidden))):
        built = graph(scripted([SEARCH]), toolbox(ran), middleware=[change, QWEDMiddleware(client=agent)])
        [(status, refusal)] = tool_replies(WAYS["invoke"](built))
        assert (status, "`delete_database`" in refusal) == ("error", True)
    assert ran == []


def test_what_a_middleware_after_it_makes_of_a_call_it_does_not_see_so_it_goes_last(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    middleware = [QWEDMiddleware(client=agent), _delete_instead(ran)]
    WAYS["invoke"](graph(scripted([SEARCH]), toolbox(ran), middleware=middleware))
    assert ran == [DELETE]


def test_two_of_them_do_not_fit_into_one_agent(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    with pytest.raises(AssertionError, match="duplicate"):
        graph(scripted(), toolbox(ran), middleware=[QWEDMiddleware(client=agent), QWEDMiddleware(client=agent)])


def _calling(built: Any) -> BaseTool:
    def call(query: str) -> str:
        return f"{query}: {built.invoke(GRAPH_INPUT)['messages'][-1].text}"

    return _search_tool(call)


def test_an_agent_inside_a_tool_needs_the_middleware_too(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    middleware = [QWEDMiddleware(client=agent)]
    for inside, expected in (([], [DELETE]), (middleware, [])):
        ran.clear()
        inner = graph(scripted([DELETE]), toolbox(ran), middleware=inside)
        WAYS["invoke"](graph(scripted([SEARCH]), [_calling(inner)], middleware=middleware))
        assert ran == expected


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_a_graph_of_ones_own_takes_it_as_the_wrapper_of_its_tool_node(
    awaited: bool, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    middleware = QWEDMiddleware(client=agent)
    node = ToolNode(toolbox(ran), wrap_tool_call=middleware.wrap_tool_call, awrap_tool_call=middleware.awrap_tool_call)
    built = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").add_edge("tools", END).compile()
    state: Any = {"messages": [next(scripted([SEARCH, DELETE]).lines)]}
    done = asyncio.run(built.ainvoke(state)) if awaited else built.invoke(state)
    assert [status for status, _ in tool_replies(done["messages"])] == ["success", "error"]
    assert ran == [SEARCH]


def test_a_run_is_a_conversation_and_so_is_a_thread(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    middleware = [QWEDMiddleware(client=agent)]
    for _ in range(2):
        WAYS["invoke"](graph(scripted([SEARCH], [OTHER]), toolbox(ran), middleware=middleware))
    for _ in range(2):
        built = graph(scripted([SEARCH], [OTHER]), toolbox(ran), middleware=middleware)
        built.invoke(GRAPH_INPUT, {"configurable": {"thread_id": "t1"}})
    conversations = [conversation.conversation_id for conversation in reversed(agent.get_activity())]
    assert [conversations.count(conversation) for conversation in dict.fromkeys(conversations)] == [2, 2, 4]


def test_nobody_outside_chooses_the_conversation_and_nobody_reads_it(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    built = graph(scripted([SEARCH]), toolbox(ran), middleware=[QWEDMiddleware(client=agent)])
    assert set(built.invoke({**GRAPH_INPUT, "qwed_conversation": "mine"})) == {"messages"}


def test_the_largest_answer_of_a_tool_is_logged_by_its_hash(agent: QWEDAgentClient) -> None:
    tool = _search_tool(lambda query: query * 1_000_000)
    WAYS["invoke"](graph(scripted([SEARCH]), [tool], middleware=[QWEDMiddleware(client=agent)]))
    [entry] = agent.get_activity()
    assert entry.execution is not None
    assert entry.execution["result_hash"].startswith("sha256:")
