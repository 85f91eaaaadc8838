"""`@agent.verified`: the function runs only if its call is permitted, with the permitted arguments, and is logged."""

import asyncio
import functools
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from qwed_sdk import (
    ActionDenied,
    ActionPending,
    Checkpoint,
    QWEDAgentClient,
    QWEDAsyncAgentClient,
    QWEDAsyncClient,
    QWEDClient,
    Refusal,
)
from tests.frameworks.table import unreachable_url
from tests.support.agent_names import unique_name
from tests.support.fake_server import FakeServer, fake_server, respond_with
from tests.support.polling import until
from tests.support.server import Server

TOOLS = ["add", "search_web", "send_email", "delete_database", "fetch_report", "read_note"]


@pytest.fixture
def agent(server: Server) -> QWEDAgentClient:
    client = QWEDClient(server.owner_key, server.base_url)
    permissions = {"allowed_tools": TOOLS}
    return QWEDAgentClient.register(
        name=unique_name("decorated"), principal_id="user_123", client=client, permissions=permissions
    )


def last(agent: QWEDAgentClient) -> Any:
    return agent.get_activity(limit=1)[0]


def test_a_permitted_call_runs_once_and_its_outcome_is_logged(agent: QWEDAgentClient) -> None:
    ran = []

    @agent.verified
    def search_web(query: str, pages: int = 3) -> list[str]:
        """Look it up."""
        ran.append(query)
        return [query] * pages

    assert search_web("weather") == ["weather"] * 3
    assert ran == ["weather"]
    assert (search_web.__name__, search_web.__doc__) == ("search_web", "Look it up.")
    entry = last(agent)
    # The function receives the defaults, so they are verified too.
    assert entry.action == {"type": "tool_call", "tool": "search_web", "parameters": {"query": "weather", "pages": 3}}
    assert entry.execution["success"] is True
    assert entry.execution["result_hash"].startswith("sha256:")


def test_a_denied_call_does_not_run_and_says_why(agent: QWEDAgentClient) -> None:
    ran = []

    @agent.verified
    def delete_database(name: str) -> None:
        ran.append(name)

    with pytest.raises(ActionDenied) as caught:
        delete_database("prod")
    assert ran == []
    error = caught.value
    assert (error.decision, error.code) == ("DENIED", "QWED-AGENT-TRUST-001")
    assert "needs trust level 3" in error.reason
    assert error.suggestion is not None
    assert error.suggestion in str(error)
    assert error.answer is not None
    assert last(agent).execution is None


def test_a_call_that_a_person_must_permit_does_not_run(agent: QWEDAgentClient) -> None:
    ran = []

    @agent.verified
    def send_email(to: str, body: str) -> None:
        ran.append(to)

    with pytest.raises(ActionPending) as caught:
        send_email("user@example.com", body="hello")
    assert ran == []
    assert caught.value.approval_id is not None
    assert caught.value.approval_id.startswith("apr_")


def test_a_function_that_fails_is_logged_as_such_and_raises_what_it_raised(agent: QWEDAgentClient) -> None:
    @agent.verified
    def search_web(query: str) -> None:
        raise OSError("no line")

    with pytest.raises(OSError, match="no line"):
        search_web("weather")
    assert last(agent).execution["success"] is False


def test_a_repaired_call_runs_with_the_repair(agent: QWEDAgentClient) -> None:
    ran = []

    @agent.verified(action={"type": "calculate", "query": "claim"})
    def write_down(claim: str, where: Path = Path("notes")) -> str:
        ran.append((claim, where))
        return claim

    assert write_down("2+2 = 5") == "2+2 = 4"
    assert ran == [("2+2 = 4", Path("notes"))]


def test_sql_in_an_argument_is_read_by_the_engine(agent: QWEDAgentClient) -> None:
    ran = []

    @agent.verified(action={"type": "execute_sql", "query": "sql"})
    def run(sql: str) -> int:
        ran.append(sql)
        return len(ran)

    assert run("SELECT id FROM orders") == 1
    with pytest.raises(ActionDenied, match="trust level 3"):
        run("DROP TABLE orders")
    assert ran == ["SELECT id FROM orders"]


def test_a_method_is_verified_without_its_object(agent: QWEDAgentClient) -> None:
    class Notes:
        def __init__(self) -> None:
            self.read: list[str] = []

        @agent.verified
        def read_note(self, name: str, *more: str, **rest: int) -> int:
            self.read += [name, *more, *rest]
            return len(self.read)

    assert Notes().read_note("a", "b", page=1) == 3
    assert last(agent).action["parameters"] == {"name": "a", "more": ["b"], "rest": {"page": 1}}


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes", {1: "x"}, lambda: None, [[object()]]])
def test_what_is_no_json_cannot_be_verified_and_does_not_run(agent: QWEDAgentClient, value: Any) -> None:
    ran = []

    @agent.verified
    def search_web(query: Any) -> None:
        ran.append(query)

    with pytest.raises(ActionDenied, match="cannot be verified"):
        search_web(value)
    assert ran == []


def test_the_function_is_given_the_objects_it_was_called_with(agent: QWEDAgentClient) -> None:
    @agent.verified
    def read_note(where: Path, amount: Decimal) -> tuple[Path, Decimal]:
        return where, amount

    assert read_note(Path("a"), Decimal("1.10")) == (Path("a"), Decimal("1.10"))
    assert last(agent).action["parameters"] == {"where": "a", "amount": "1.10"}


def test_a_call_that_does_not_fit_the_function_is_a_type_error_and_asks_nobody(agent: QWEDAgentClient) -> None:
    @agent.verified
    def search_web(query: str) -> None: ...

    with pytest.raises(TypeError, match="query"):
        search_web()  # type: ignore[call-arg]
    assert agent.get_activity() == []


def test_an_unknown_tool_does_not_run(agent: QWEDAgentClient) -> None:
    @agent.verified
    def launch_rocket() -> None:
        raise AssertionError("it ran")

    with pytest.raises(ActionDenied) as caught:
        launch_rocket()
    assert caught.value.code == "QWED-AGENT-004"


def test_a_name_of_its_own(agent: QWEDAgentClient) -> None:
    @agent.verified(tool="fetch_report", options={"require_attestation": True})
    def anything(name: str) -> str:
        return name

    assert anything("may") == "may"
    assert last(agent).action["tool"] == "fetch_report"


def test_a_server_that_is_down_permits_nothing() -> None:
    with unreachable_url() as url:
        agent = QWEDAgentClient("agent_1", "t", client=QWEDClient("k", url, retries=0))

        @agent.verified
        def search_web(query: str) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match=r"request to .* failed"):
            search_web("weather")


def test_a_generator_runs_too_late_to_be_verified(agent: QWEDAgentClient) -> None:
    def pages() -> Any:
        yield 1

    async def later() -> Any:
        yield 1

    for function in (pages, later):
        with pytest.raises(TypeError, match="generator"):
            agent.verified(function)


@pytest.mark.parametrize("row", [{}, {"query": "sql"}, {"type": "execute_sql", "sql": "query"}])
def test_an_action_that_is_none_is_refused_where_it_is_written(agent: QWEDAgentClient, row: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="type"):
        agent.verified(action=row)(print)


def test_an_action_of_a_parameter_that_is_not_there_is_refused_where_it_is_written(agent: QWEDAgentClient) -> None:
    with pytest.raises(TypeError, match="no parameter `sql`"):
        agent.verified(action={"type": "execute_sql", "query": "sql"})(print)
    with pytest.raises(ValueError, match="type"):
        agent.verified(action="execute_sql")(print)  # type: ignore[call-overload]


def test_an_async_function_with_either_client(server: Server) -> None:
    async def play(agent: Any) -> None:
        ran = []

        @agent.verified  # type: ignore[untyped-decorator]
        async def search_web(query: str) -> str:
            ran.append(query)
            return query

        @agent.verified  # type: ignore[untyped-decorator]
        async def delete_database(name: str) -> None:
            ran.append(name)

        assert await search_web("weather") == "weather"
        with pytest.raises(ActionDenied):
            await delete_database("prod")
        assert ran == ["weather"]

    async def run() -> None:
        with QWEDClient(server.owner_key, server.base_url) as client:
            await play(QWEDAgentClient.register(unique_name("b"), principal_id="user_123", client=client))
        async with QWEDAsyncClient(server.owner_key, server.base_url) as awaiting:
            await play(await QWEDAsyncAgentClient.register(unique_name("a"), principal_id="user_123", client=awaiting))

    asyncio.run(run())


def test_a_plain_function_needs_the_blocking_client() -> None:
    agent = QWEDAsyncAgentClient("agent_1", "t")
    with pytest.raises(TypeError, match="QWEDAgentClient"):
        agent.verified(lambda: None)


def test_waiting_until_a_person_has_permitted_it(server: Server, agent: QWEDAgentClient) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ran = []

    @agent.verified(wait=30)
    def send_email(to: str, body: str) -> str:
        ran.append(to)
        return "sent"

    owner = QWEDClient(server.owner_key, server.base_url)
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(send_email, "user@example.com", "hello")
        waiting = until(lambda: owner.list_approvals(state="pending", agent_id=agent.agent_id))
        assert ran == []
        # A call that waits for a person does not block the others.
        assert agent.verify_action({"type": "calculate", "query": "2 + 2"}).decision == "APPROVED"
        owner.approve(waiting[0].approval_id, reason="it is wanted")
        assert sending.result(timeout=60) == "sent"
    assert ran == ["user@example.com"]
    (sent,) = (entry for entry in agent.get_activity() if entry.action_type == "tool_call")
    assert sent.execution["success"] is True


def test_a_permission_that_was_taken_back_meanwhile_is_none() -> None:
    # The server withholds the attestation of an approved action once its agent is suspended.
    pending = respond_with(200, {"decision": "PENDING", "action_id": "act_1"})
    taken_back = respond_with(200, {"decision": "APPROVED", "action_id": "act_1", "attestation": None})
    with fake_server(pending, taken_back) as other:
        agent = QWEDAgentClient("agent_1", "t", base_url=other.url)

        @agent.verified(wait=30)
        def send_email(to: str) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match="suspended or the permission revoked"):
            send_email("user@example.com")


APPROVED = {"decision": "APPROVED", "action_id": "act_1"}


def agent_at(url: str) -> QWEDAgentClient:
    return QWEDAgentClient("agent_1", "t", client=QWEDClient("k", url, retries=0))


def sent_parameters(other: FakeServer) -> Any:
    (request,) = (heard for heard in other.heard if heard.path.endswith("/verify"))
    return json.loads(request.body)["action"]["parameters"]


def test_an_argument_that_is_called_self_is_verified() -> None:
    with fake_server(respond_with(200, APPROVED)) as other:
        agent = agent_at(other.url)

        @agent.verified
        def transfer(self: str, amount: int) -> str:
            return self

        assert transfer("savings", 5) == "savings"
    assert sent_parameters(other) == {"self": "savings", "amount": 5}


def test_a_static_method_has_no_object_whatever_its_argument_is_called() -> None:
    with fake_server(respond_with(200, APPROVED)) as other:
        agent = agent_at(other.url)

        class Bank:
            @staticmethod
            @agent.verified
            def close(cls: str) -> str:
                return cls

        assert Bank.close("savings") == "savings"
    assert sent_parameters(other) == {"cls": "savings"}


def test_a_class_method_and_one_that_is_inherited_are_verified_without_their_class() -> None:
    with fake_server(respond_with(200, APPROVED)) as other:
        agent = agent_at(other.url)

        class Bank:
            @classmethod
            @agent.verified
            def named(cls, name: str) -> str:
                return f"{cls.__name__} {name}"

        class Savings(Bank):
            pass

        assert Savings.named("a") == "Savings a"
    assert sent_parameters(other) == {"name": "a"}


def test_every_kind_of_parameter_is_told_by_its_own_name() -> None:
    def call(first: int, /, second: int = 2, *rest: int, only: int = 4, **more: int) -> tuple[Any, ...]:
        return first, second, rest, only, more

    with fake_server(respond_with(200, APPROVED)) as other:
        run = agent_at(other.url).verified(call)
        assert run(1, 2, 3, only=5, first=6, rest=7) == (1, 2, (3,), 5, {"first": 6, "rest": 7})
    assert sent_parameters(other) == {"first": 1, "second": 2, "rest": [3], "only": 5, "more": {"first": 6, "rest": 7}}


def test_what_is_not_a_function_is_named_or_refused() -> None:
    agent = agent_at("http://127.0.0.1:9")
    with pytest.raises(TypeError, match="give `tool`"):
        agent.verified(functools.partial(print, "x"))
    with pytest.raises(TypeError, match="below `@classmethod`"):
        agent.verified(classmethod(print))  # type: ignore[call-overload]


def test_arguments_that_are_changed_while_they_are_verified_are_not_used() -> None:
    to = ["a@example.com"]

    def meanwhile(line: Any) -> None:
        to.append("b@example.com")
        respond_with(200, APPROVED)(line)

    with fake_server(meanwhile) as other:

        @agent_at(other.url).verified
        def send_email(to: list[str]) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match="changed"):
            send_email(to)


SEARCH = {"type": "tool_call", "tool": "search_web"}
CORRECTIONS: dict[str, Any] = {
    "of another tool": {**SEARCH, "tool": "delete_database", "parameters": {"query": "x", "pages": 5}},
    "of another type": {"type": "execute_sql", "parameters": {"query": "x", "pages": 5}},
    "without parameters": SEARCH,
    "with a parameter less": {**SEARCH, "parameters": {"query": "x"}},
    "with a parameter more": {**SEARCH, "parameters": {"query": "x", "pages": 5, "evil": 1}},
    "with another kind of value": {**SEARCH, "parameters": {"query": ["x"], "pages": 5}},
    "with true for one": {**SEARCH, "parameters": {"query": "x", "pages": True}},
    "with pairs": {**SEARCH, "parameters": [["query", "x"], ["pages", 5]]},
    "with text": {**SEARCH, "parameters": "xx"},
    "with a member more": {**SEARCH, "query": "x", "parameters": {"query": "x", "pages": 5}},
    "of nothing": {},
}


@pytest.mark.parametrize("name", CORRECTIONS)
@pytest.mark.parametrize("decision", ["CORRECTED", "APPROVED"])
def test_a_correction_of_something_else_runs_nothing(name: str, decision: str) -> None:
    body = {**APPROVED, "decision": decision, "corrected": CORRECTIONS[name]}
    with fake_server(respond_with(200, body)) as other:

        @agent_at(other.url).verified
        def search_web(query: str, pages: int = 3) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match="does not fit its parameters"):
            search_web("w", 1)


def test_a_correction_gives_no_argument_the_place_of_another() -> None:
    corrected = {"type": "tool_call", "tool": "call", "parameters": {"only": 1, "more": {"only": 9}}}
    with fake_server(respond_with(200, {**APPROVED, "decision": "CORRECTED", "corrected": corrected})) as other:

        @agent_at(other.url).verified
        def call(*, only: int, **more: int) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match="does not fit its parameters"):
            call(only=1)


def test_a_repair_that_came_before_the_wait_is_the_one_that_is_used() -> None:
    # A later lookup masks secrets.
    repaired = {**SEARCH, "parameters": {"query": "the secret"}}
    hidden = {**SEARCH, "parameters": {"query": "***"}}
    pending = {"decision": "PENDING", "action_id": "act_1", "corrected": repaired}
    later = {"decision": "CORRECTED", "action_id": "act_1", "attestation": "x.y.z", "corrected": hidden}
    with fake_server(respond_with(200, pending), respond_with(200, later)) as other:

        @agent_at(other.url).verified(wait=5)
        def search_web(query: str) -> str:
            return query

        assert search_web("a secret") == "the secret"


def test_a_refusal_is_false_and_a_permit_true() -> None:
    with fake_server(respond_with(200, {"decision": "DENIED"}), respond_with(200, APPROVED)) as other:
        checkpoint = Checkpoint(agent_at(other.url))
        assert not checkpoint.before("search_web", {"query": "x"})
        assert checkpoint.before("search_web", {"query": "x"})


@pytest.mark.parametrize(
    ("tool", "arguments", "conversation"),
    [
        ("search_web", None, None),
        ("search_web", [("query", "x")], None),
        ("", {}, None),
        (None, {}, None),
        ("t", {}, []),
    ],
)
def test_a_call_that_is_none_is_refused_and_asks_nobody(tool: Any, arguments: Any, conversation: Any) -> None:
    with fake_server(respond_with(200, APPROVED)) as other:
        assert isinstance(Checkpoint(agent_at(other.url)).before(tool, arguments, conversation), Refusal)
    assert other.heard == []


def test_a_permission_without_an_id_is_none() -> None:
    with fake_server(
        respond_with(200, {"decision": "APPROVED"}), respond_with(200, {**APPROVED, "action_id": ""})
    ) as other:
        checkpoint = Checkpoint(agent_at(other.url))
        assert not checkpoint.before("search_web", {})
        assert not checkpoint.before("search_web", {})


@pytest.mark.parametrize("wait", [float("nan"), -1, None])
def test_a_wait_that_is_none_is_refused_where_it_is_written(wait: Any) -> None:
    with pytest.raises(ValueError, match="wait"):
        Checkpoint(agent_at("http://127.0.0.1:9"), wait=wait)


def test_a_call_that_is_cancelled_is_logged_as_such() -> None:
    async def run(url: str) -> None:
        began = asyncio.Event()

        @agent_at(url).verified
        async def search_web(query: str) -> None:
            began.set()
            await asyncio.Event().wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search_web, "weather")
            await began.wait()
            tasks.cancel_scope.cancel()

    with fake_server(respond_with(200, APPROVED)) as other:
        asyncio.run(run(other.url))
    assert json.loads(other.heard[-1].body)["success"] is False
