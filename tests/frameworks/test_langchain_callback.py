"""QWEDVerificationCallback: a tool that is not permitted does not run, however LangChain runs it."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from qwed_sdk import ActionDenied, ActionPending, QWEDAgentClient, QWEDClient
from qwed_sdk.langchain import QWEDVerificationCallback
from qwed_sdk.langchain.run_registry import MAX_RUNS, AnnouncedCall, RunRegistry
from qwed_sdk.models import Action, Answer
from qwed_sdk.permits import Permit
from tests.frameworks.langchain_script import (
    EXECUTOR_INPUT,
    GRAPH_INPUT,
    CallSpec,
    Scripted,
    executor,
    graph,
    scripted,
    toolbox,
)
from tests.support.chat_completions_server import answer_bytes, chat_server
from tests.support.polling import until

SEARCH: CallSpec = ("search_web", {"query": "oslo"})
OTHER: CallSpec = ("search_web", {"query": "bergen"})
THIRD: CallSpec = ("search_web", {"query": "tromso"})
DELETE: CallSpec = ("delete_database", {"name": "prod"})
EMAIL: CallSpec = ("send_email", {"to": "a@example.com", "body": "hello"})
CLOSED = "http://127.0.0.1:9"

Way = Callable[[BaseCallbackHandler, Scripted, list[BaseTool]], Any]


async def _all(stream: Any) -> list[Any]:
    return [item async for item in stream]


def _config_with(callback: BaseCallbackHandler) -> RunnableConfig:
    return {"callbacks": [callback]}


def _action(entry: Action) -> dict[str, Any]:
    return entry.action or {}


def _direct(callback: BaseCallbackHandler, model: Scripted, tools: list[BaseTool]) -> Any:
    call = next(model.lines).tool_calls[0]
    return {tool.name: tool for tool in tools}[call["name"]].invoke(call["args"], _config_with(callback))


def _each_with_its_own(callback: BaseCallbackHandler, model: Scripted, tools: list[BaseTool]) -> Any:
    for tool in tools:
        tool.callbacks = [callback]
    return graph(model, tools).invoke(GRAPH_INPUT)


WAYS: dict[str, Way] = {
    "executor": lambda cb, model, tools: executor(model, tools, callbacks=[cb]).invoke(EXECUTOR_INPUT),
    "executor, awaited": lambda cb, model, tools: asyncio.run(
        executor(model, tools, callbacks=[cb]).ainvoke(EXECUTOR_INPUT)
    ),
    "executor, streamed": lambda cb, model, tools: list(executor(model, tools, callbacks=[cb]).stream(EXECUTOR_INPUT)),
    "executor, both": lambda cb, model, tools: asyncio.run(
        _all(executor(model, tools, callbacks=[cb]).astream(EXECUTOR_INPUT))
    ),
    "executor, stepped": lambda cb, model, tools: list(executor(model, tools, callbacks=[cb]).iter(EXECUTOR_INPUT)),
    "executor, batch": lambda cb, model, tools: executor(model, tools, callbacks=[cb]).batch([EXECUTOR_INPUT]),
    "executor, config": lambda cb, model, tools: executor(model, tools).invoke(EXECUTOR_INPUT, _config_with(cb)),
    "executor, config, awaited": lambda cb, model, tools: asyncio.run(
        executor(model, tools).ainvoke(EXECUTOR_INPUT, _config_with(cb))
    ),
    "executor, everywhere": lambda cb, model, tools: executor(model, tools, callbacks=[cb]).invoke(
        EXECUTOR_INPUT, _config_with(cb)
    ),
    "graph": lambda cb, model, tools: graph(model, tools).invoke(GRAPH_INPUT, _config_with(cb)),
    "graph, awaited": lambda cb, model, tools: asyncio.run(graph(model, tools).ainvoke(GRAPH_INPUT, _config_with(cb))),
    "graph, streamed": lambda cb, model, tools: list(graph(model, tools).stream(GRAPH_INPUT, _config_with(cb))),
    "graph, both": lambda cb, model, tools: asyncio.run(
        _all(graph(model, tools).astream(GRAPH_INPUT, _config_with(cb)))
    ),
    "graph, events": lambda cb, model, tools: asyncio.run(
        _all(graph(model, tools).astream_events(GRAPH_INPUT, _config_with(cb), version="v2"))
    ),
    "graph, batch": lambda cb, model, tools: graph(model, tools).batch([GRAPH_INPUT], _config_with(cb)),
    "graph, batch awaited": lambda cb, model, tools: asyncio.run(
        graph(model, tools).abatch([GRAPH_INPUT], _config_with(cb))
    ),
    "graph, bound": lambda cb, model, tools: graph(model, tools).with_config(callbacks=[cb]).invoke(GRAPH_INPUT),
    "a tool by itself": _direct,
    "each tool with its own": _each_with_its_own,
}

each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@each_way
def test_a_denied_tool_does_not_run_and_its_permitted_neighbour_does_asked_once(
    way: Way, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    way(QWEDVerificationCallback(client=agent), scripted([SEARCH]), toolbox(ran))
    assert ran == [SEARCH]
    with pytest.raises(ActionDenied, match="delete_database") as refused:
        way(QWEDVerificationCallback(client=agent), scripted([DELETE]), toolbox(ran))
    assert ran == [SEARCH]
    assert refused.value.code is not None
    assert [(entry.decision, _action(entry)["tool"]) for entry in agent.get_activity()] == [
        ("DENIED", "delete_database"),
        ("APPROVED", "search_web"),
    ]


@pytest.mark.parametrize("way", [WAYS["executor"], WAYS["graph, awaited"], WAYS["a tool by itself"]])
def test_what_waits_for_a_person_does_not_run(way: Way, agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    with pytest.raises(ActionPending) as refused:
        way(QWEDVerificationCallback(client=agent), scripted([EMAIL]), toolbox(ran))
    assert ran == []
    assert refused.value.approval_id


def test_it_runs_once_a_person_approved_it_in_time(
    agent: QWEDAgentClient, owner: QWEDClient, ran: list[CallSpec]
) -> None:
    def approve() -> None:
        waiting = until(
            lambda: [approval for approval in owner.list_approvals() if approval.agent_id == agent.agent_id]
        )
        owner.approve(waiting[0].approval_id, "go ahead")

    person = threading.Thread(target=approve)
    person.start()
    WAYS["executor, everywhere"](QWEDVerificationCallback(client=agent, wait=30), scripted([EMAIL]), toolbox(ran))
    person.join()
    assert ran == [EMAIL]


@pytest.mark.parametrize("handled", [True, "swallowed", Exception, (ActionDenied,), lambda error: f"swallowed {error}"])
@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_a_tool_node_that_swallows_the_refusal_does_not_run_the_tool_either(
    handled: Any, awaited: bool, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    built = StateGraph(MessagesState).add_node("tools", ToolNode(toolbox(ran), handle_tool_errors=handled))
    compiled = built.add_edge(START, "tools").add_edge("tools", END).compile()
    state: Any = {"messages": [next(scripted([SEARCH, DELETE]).lines)]}
    under: Any = _config_with(QWEDVerificationCallback(client=agent))
    done = asyncio.run(compiled.ainvoke(state, under)) if awaited else compiled.invoke(state, under)
    assert ran == [SEARCH]
    assert [message.status for message in done["messages"] if isinstance(message, ToolMessage)] == ["success", "error"]


@pytest.mark.parametrize("way", ["executor, everywhere", "executor, config, awaited", "graph", "graph, awaited"])
def test_calls_made_at_once_are_asked_about_one_by_one_however_alike(
    way: str, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    # In any order of each turn, no call comes three times in a row.
    WAYS[way](QWEDVerificationCallback(client=agent), scripted([SEARCH, OTHER, SEARCH], [OTHER, THIRD]), toolbox(ran))
    assert sorted(map(str, ran)) == sorted(map(str, [SEARCH, OTHER, SEARCH, OTHER, THIRD]))
    entries = agent.get_activity()
    assert len(entries) == 5
    assert len({entry.conversation_id for entry in entries}) == 1
    assert sorted(entry.step_number or 0 for entry in entries) == [1, 2, 3, 4, 5]
    assert [entry.execution["success"] for entry in entries if entry.execution] == [True] * 5


def test_one_denied_call_among_several_at_once_does_not_run(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    with pytest.raises(ActionDenied):
        WAYS["graph, awaited"](QWEDVerificationCallback(client=agent), scripted([SEARCH, DELETE]), toolbox(ran))
    assert DELETE not in ran


def test_a_tool_that_fails_is_logged_as_failed_and_the_error_stays_what_it_is(agent: QWEDAgentClient) -> None:
    def search_web(query: str) -> str:
        raise LookupError(query)

    broken = StructuredTool.from_function(search_web, description="fails")
    with pytest.raises(LookupError):
        broken.invoke({"query": "oslo"}, {"callbacks": [QWEDVerificationCallback(client=agent)]})
    [entry] = agent.get_activity()
    assert entry.execution is not None
    assert entry.execution["success"] is False


def test_a_tool_that_stops_for_a_person_is_not_over(agent: QWEDAgentClient) -> None:
    def search_web(query: str) -> str:
        return str(interrupt(query))

    pausing = StructuredTool.from_function(search_web, description="asks back")
    graph(scripted([SEARCH]), [pausing]).invoke(GRAPH_INPUT, _config_with(QWEDVerificationCallback(client=agent)))
    [entry] = agent.get_activity()
    assert (entry.decision, entry.execution) == ("APPROVED", None)


def test_the_constructor_of_an_executor_hears_of_no_end_so_nothing_is_claimed(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    WAYS["executor"](QWEDVerificationCallback(client=agent), scripted([SEARCH]), toolbox(ran))
    assert (ran, [entry.execution for entry in agent.get_activity()]) == ([SEARCH], [None])


SQL = {"run_sql": {"type": "execute_sql", "query": "sql"}}
TOO_MUCH = "SELECT id, password FROM users WHERE id = 1"


def test_a_corrected_call_is_blocked_with_its_repair_told(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    def run_sql(sql: str) -> str:
        ran.append(("run_sql", {"sql": sql}))
        return "rows"

    tool = StructuredTool.from_function(run_sql, description="runs it")
    for way in (WAYS["executor"], WAYS["graph"]):
        with pytest.raises(ActionDenied, match="SELECT id FROM users WHERE id = 1") as refused:
            way(QWEDVerificationCallback(client=agent, actions=SQL), scripted([("run_sql", {"sql": TOO_MUCH})]), [tool])
        assert refused.value.decision == "CORRECTED"
    assert ran == []
    assert [entry.execution["success"] for entry in agent.get_activity() if entry.execution] == [False, False]
    WAYS["graph"](
        QWEDVerificationCallback(client=agent, actions=SQL),
        scripted([("run_sql", {"sql": "SELECT id FROM users WHERE id = 1"})]),
        [tool],
    )
    assert len(ran) == 1


BROKEN = {
    "says 500": answer_bytes(b"{}", 500),
    "says nothing of sense": answer_bytes(b"<html>hello</html>"),
    "says yes without an id": answer_bytes(b'{"decision": "APPROVED"}'),
    "says yes with status 500": answer_bytes(b'{"decision": "APPROVED", "action_id": "act_1"}', 500),
    "says something unheard of": answer_bytes(b'{"decision": "PROBABLY", "action_id": "act_1"}'),
    "corrects without saying how": answer_bytes(b'{"decision": "CORRECTED", "action_id": "act_1"}'),
    "hangs up": lambda handler: handler.connection.close(),
    "never answers": lambda handler: handler.server.provider.released.wait(),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_verifier_that_is_broken_permits_nothing(answer: Any, ran: list[CallSpec]) -> None:
    with chat_server(answer) as verifier, QWEDClient("key", verifier.base_url, timeout=0.3, retries=0) as client:
        for way in ("executor", "graph, awaited"):
            with pytest.raises(ActionDenied):
                WAYS[way](QWEDVerificationCallback("agent_1", client=client), scripted([SEARCH]), toolbox(ran))
    assert ran == []


@each_way
def test_a_verifier_that_is_down_permits_nothing(way: Way, ran: list[CallSpec]) -> None:
    with QWEDClient("key", CLOSED, retries=0) as client, pytest.raises(ActionDenied) as refused:
        way(QWEDVerificationCallback("agent_1", client=client), scripted([SEARCH]), toolbox(ran))
    assert (ran, refused.value.answer) == ([], None)


class FailingTable(dict[str, Mapping[str, str]]):
    """Table whose lookup raises."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__(run_sql={"type": "execute_sql", "query": "sql"})
        self.error = error

    def get(self, *_: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("way", "error"),
    [
        *((way, NotImplementedError) for way in ("executor", "executor, awaited", "graph", "graph, awaited")),
        *(("a tool by itself", error) for error in (NotImplementedError, RuntimeError, StopIteration, KeyError)),
    ],
)
def test_a_surprise_in_our_own_code_blocks_whatever_it_is(
    way: str, error: type[Exception], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    with pytest.raises((ActionDenied, RuntimeError, StopIteration, KeyError)):
        WAYS[way](QWEDVerificationCallback(client=agent, actions=FailingTable(error)), scripted([SEARCH]), toolbox(ran))
    assert ran == []


def test_a_tool_nobody_knows_does_not_pass(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    for way in (WAYS["executor"], WAYS["executor, config"]):
        with pytest.raises(ActionDenied, match="rm_rf"):
            way(QWEDVerificationCallback(client=agent), scripted([("rm_rf", {"path": "/"})]), toolbox(ran))


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_text_given_to_a_tool_of_one_argument_is_its_input(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    from langchain_classic.agents import initialize_agent
    from langchain_core.language_models import FakeListLLM

    def run(tool: str, text: str) -> str:
        lines = [f"I should\nAction: {tool}\nAction Input: {text}", "Final Answer: done"]
        callback = QWEDVerificationCallback(client=agent)
        built = initialize_agent(tools=toolbox(ran)[:2], llm=FakeListLLM(responses=lines), callbacks=[callback])
        return str(built.run("go"))

    assert run("search_web", "oslo") == "done"
    with pytest.raises(ActionDenied):
        run("delete_database", "prod")
    assert ran == [SEARCH]
    assert [_action(entry)["parameters"] for entry in agent.get_activity()] == [{"input": "prod"}, {"input": "oslo"}]


def test_the_answer_to_a_parsing_error_is_a_tool_too_and_nobody_knows_it(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    from langchain_classic.agents import AgentExecutor, ZeroShotAgent
    from langchain_core.language_models import FakeListLLM

    tools = toolbox(ran)[:1]
    model = FakeListLLM(responses=["gibberish", "Final Answer: done"])
    with pytest.raises(ActionDenied, match="_Exception"):
        AgentExecutor(
            agent=ZeroShotAgent.from_llm_and_tools(model, tools),
            tools=tools,
            handle_parsing_errors=True,
            callbacks=[QWEDVerificationCallback(client=agent)],
        ).invoke(EXECUTOR_INPUT)


def test_it_cannot_be_told_to_swallow_its_own_refusals(agent: QWEDAgentClient) -> None:
    callback = QWEDVerificationCallback(client=agent)
    with pytest.raises(AttributeError, match="raise_error"):
        callback.raise_error = False
    assert (callback.raise_error, callback.ignore_agent, callback.ignore_chain) == (True, False, False)


def _tool_calling(body: Callable[[], Any]) -> BaseTool:
    def search_web(query: str) -> str:
        return str(body())

    return StructuredTool.from_function(search_web, description="calls others")


def _in_a_thread(body: Callable[[], Any]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


Inner = Callable[[BaseTool, Scripted], Any]

HEARD_INSIDE: dict[str, Inner] = {
    "a tool": lambda tool, _: tool.invoke(DELETE[1]),
    "an agent": lambda tool, model: graph(model, [tool]).invoke(GRAPH_INPUT),
    "an executor": lambda tool, model: executor(model, [tool]).invoke(EXECUTOR_INPUT),
}
UNHEARD_INSIDE: dict[str, Inner] = {
    "the method run of a tool": lambda tool, _: tool.run(DELETE[1]),
    "a tool with callbacks of its own": lambda tool, _: tool.invoke(DELETE[1], {"callbacks": []}),
    "a tool in a new thread": lambda tool, _: _in_a_thread(lambda: tool.invoke(DELETE[1])),
    "the function of a tool": lambda tool, _: tool.func(**DELETE[1]),
}


@pytest.mark.parametrize("inner", HEARD_INSIDE.values(), ids=HEARD_INSIDE)
def test_what_a_permitted_tool_calls_is_asked_about_too(
    inner: Inner, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    outer = _tool_calling(lambda: inner(toolbox(ran)[1], scripted([DELETE])))
    with pytest.raises(ActionDenied, match="delete_database"):
        graph(scripted([SEARCH]), [outer]).invoke(GRAPH_INPUT, _config_with(QWEDVerificationCallback(client=agent)))
    assert ran == []
    assert len({entry.conversation_id for entry in agent.get_activity()}) == 1


@pytest.mark.parametrize("inner", UNHEARD_INSIDE.values(), ids=UNHEARD_INSIDE)
def test_what_the_page_says_a_callback_cannot_hear_it_does_not_hear(
    inner: Inner, agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    outer = _tool_calling(lambda: inner(toolbox(ran)[1], scripted([DELETE])))
    graph(scripted([SEARCH]), [outer]).invoke(GRAPH_INPUT, _config_with(QWEDVerificationCallback(client=agent)))
    assert ran == [DELETE]


def test_a_callback_in_a_constructor_hears_the_executor_but_not_what_its_tools_call(
    agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    outer = _tool_calling(lambda: toolbox(ran)[1].invoke(DELETE[1]))
    WAYS["executor"](QWEDVerificationCallback(client=agent), scripted([SEARCH]), [outer])
    assert ran == [DELETE]


def _on_the_model(callback: BaseCallbackHandler, tools: list[BaseTool]) -> Any:
    model = scripted([DELETE])
    model.callbacks = [callback]
    return graph(model, tools).invoke(GRAPH_INPUT)


def _on_the_agent_in_an_executor(callback: BaseCallbackHandler, tools: list[BaseTool]) -> Any:
    built = executor(scripted([DELETE]), tools)
    built.agent.runnable = built.agent.runnable.with_config(callbacks=[callback])  # type: ignore[union-attr]
    return built.invoke(EXECUTOR_INPUT)


def _on_another_tool(callback: BaseCallbackHandler, tools: list[BaseTool]) -> Any:
    outer = _tool_calling(lambda: tools[1].invoke(DELETE[1]))
    outer.callbacks = [callback]
    return outer.invoke(SEARCH[1])


@pytest.mark.parametrize("place", [_on_the_model, _on_the_agent_in_an_executor, _on_another_tool])
def test_where_the_page_says_a_callback_hears_nothing_it_hears_nothing(
    place: Callable[[BaseCallbackHandler, list[BaseTool]], Any], agent: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    place(QWEDVerificationCallback(client=agent), toolbox(ran))
    assert ran == [DELETE]


def test_a_run_is_a_conversation_and_so_is_a_thread(agent: QWEDAgentClient, ran: list[CallSpec]) -> None:
    callback = QWEDVerificationCallback(client=agent)
    for _ in range(2):
        WAYS["executor"](callback, scripted([SEARCH], [OTHER]), toolbox(ran))
    for _ in range(2):
        under = {"callbacks": [callback], "configurable": {"thread_id": "t1"}}
        graph(scripted([SEARCH], [OTHER]), toolbox(ran)).invoke(GRAPH_INPUT, under)
    for _ in range(2):
        WAYS["a tool by itself"](callback, scripted([SEARCH]), toolbox(ran))
        WAYS["a tool by itself"](callback, scripted([OTHER]), toolbox(ran))
    conversations = [conversation.conversation_id for conversation in reversed(agent.get_activity())]
    assert [conversations.count(conversation) for conversation in dict.fromkeys(conversations)] == [2, 2, 4, 4]
    assert conversations[-1] == agent.conversation_id


def _permit() -> Permit:
    return Permit("t", "act_1", {}, Answer({"decision": "APPROVED"}))


def test_a_permission_is_for_one_call_of_one_run_to_the_letter() -> None:
    runs, run, call = RunRegistry(), uuid4(), AnnouncedCall("t", b'{"n":1}')
    runs.permit(run, call, _permit())
    assert runs.claim(uuid4(), call) is None
    assert runs.claim(None, call) is None
    assert runs.claim(run, None) is None
    assert runs.claim(run, AnnouncedCall("u", b'{"n":1}')) is None
    assert runs.claim(run, AnnouncedCall("t", b'{"n":true}')) is None
    assert runs.claim(run, call) == _permit()
    assert runs.claim(run, call) is None
    runs.permit(run, call, _permit())
    runs.end(run)
    assert runs.claim(run, call) is None


def test_what_is_remembered_is_bounded_and_what_is_forgotten_is_asked_again() -> None:
    runs, call = RunRegistry(), AnnouncedCall("t", b"{}")
    for number in range(MAX_RUNS + 1):
        runs.begin(UUID(int=number), None, None)
        runs.permit(UUID(int=number), call, _permit())
        runs.start(UUID(int=number), _permit(), None)
    assert runs.claim(UUID(int=0), call) is None
    assert runs.finish(UUID(int=0)) is None
    assert runs.claim(UUID(int=MAX_RUNS), call) == _permit()


def test_arguments_equal_in_python_and_different_in_json_are_different_calls(
    agent: QWEDAgentClient,
) -> None:
    from langchain_core.agents import AgentAction

    callback, run = QWEDVerificationCallback(client=agent), uuid4()
    callback.on_agent_action(AgentAction("search_web", {"query": "1", "deep": 1}, ""), run_id=run)
    for deep in (True, 1.5, 1):
        callback.on_tool_start(
            {"name": "search_web"}, "", run_id=uuid4(), parent_run_id=run, inputs={"query": "1", "deep": deep}
        )
    assert [_action(entry)["parameters"]["deep"] for entry in agent.get_activity()] == [1.5, True, 1]


def test_a_tool_without_a_name_does_not_pass(agent: QWEDAgentClient) -> None:
    with pytest.raises(KeyError):
        QWEDVerificationCallback(client=agent).on_tool_start({}, "", run_id=uuid4())
