"""`@agent.verified`: the function runs when its call was permitted, with what was permitted, and is logged."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk import ActionDenied, ActionPending, QWEDAgentClient, QWEDAsyncAgentClient, QWEDAsyncClient, QWEDClient
from tests.frameworks.table import nobody_at
from tests.support.impostor import impostor, says
from tests.support.server import Server

TOOLS = ["add", "search_web", "send_email", "delete_database", "fetch_report", "read_note"]


@pytest.fixture
def agent(server: Server) -> QWEDAgentClient:
    client = QWEDClient(server.owner_key, server.base_url)
    permissions = {"allowed_tools": TOOLS}
    return QWEDAgentClient.register(name="decorated", principal_id="user_123", client=client, permissions=permissions)


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
    # What is not said is done all the same, so defaults are verified too.
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
    with nobody_at() as url:
        agent = QWEDAgentClient("agent_1", "t", client=QWEDClient("k", url, retries=0))

        @agent.verified
        def search_web(query: str) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match="could not be asked"):
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
            await play(QWEDAgentClient.register(name="b", principal_id="user_123", client=client))
        async with QWEDAsyncClient(server.owner_key, server.base_url) as awaiting:
            await play(await QWEDAsyncAgentClient.register(name="a", principal_id="user_123", client=awaiting))

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
        while not (waiting := owner.list_approvals(state="pending", agent_id=agent.agent_id)):
            assert not sending.done()
        assert ran == []
        # Whoever waits for a person keeps nobody else from asking.
        assert agent.verify_action({"type": "calculate", "query": "2 + 2"}).decision == "APPROVED"
        owner.approve(waiting[0].approval_id, reason="it is wanted")
        assert sending.result(timeout=60) == "sent"
    assert ran == ["user@example.com"]
    (sent,) = (entry for entry in agent.get_activity() if entry.action_type == "tool_call")
    assert sent.execution["success"] is True


def test_a_permission_that_was_taken_back_meanwhile_is_none() -> None:
    # What the server shows of an approved action once its agent was stopped: nothing to act on.
    pending = says(200, {"decision": "PENDING", "action_id": "act_1"})
    taken_back = says(200, {"decision": "APPROVED", "action_id": "act_1", "attestation": None})
    with impostor(pending, taken_back) as other:
        agent = QWEDAgentClient("agent_1", "t", base_url=other.url)

        @agent.verified(wait=30)
        def send_email(to: str) -> None:
            raise AssertionError("it ran")

        with pytest.raises(ActionDenied, match="stopped since"):
            send_email("user@example.com")
