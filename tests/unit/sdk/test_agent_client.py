"""The agent client keeps its conversation and counts its steps, whatever happens to the answers (INTERFACES 5)."""

import asyncio
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from qwed_sdk import (
    Checkpoint,
    QWEDAgentClient,
    QWEDAsyncAgentClient,
    QWEDAsyncClient,
    QWEDAuthError,
    QWEDClient,
    QWEDConnectionError,
    QWEDServerError,
    QWEDTimeoutError,
)
from qwed_sdk.step_counter import MAX_CONVERSATIONS, ConversationRegistry
from qwed_sdk.tool_guard import checkpoint_or_new
from tests.frameworks.table import unreachable_url
from tests.support.agent_names import unique_name
from tests.support.fake_server import Behave, FakeServer, close_connection, fake_server, never_respond, respond_with
from tests.support.server import Server


@pytest.fixture
def client(server: Server) -> QWEDClient:
    return QWEDClient(server.owner_key, server.base_url)


@pytest.fixture
def agent(client: QWEDClient) -> QWEDAgentClient:
    return QWEDAgentClient.register(unique_name("counts"), principal_id="user_123", client=client)


def claim(number: int) -> dict[str, Any]:
    return {"type": "calculate", "query": f"{number} + 1"}


def steps(agent: QWEDAgentClient) -> list[int]:
    return [entry.step_number for entry in reversed(agent.get_activity(limit=200))]


def test_steps_are_counted_in_one_conversation(agent: QWEDAgentClient) -> None:
    answers = [agent.verify_action(claim(number)) for number in range(3)]
    assert [answer.decision for answer in answers] == ["APPROVED"] * 3
    entries = agent.get_activity()
    assert [entry.step_number for entry in entries] == [3, 2, 1]
    assert {entry.conversation_id for entry in entries} == {agent.conversation_id}


def test_a_refused_step_is_used_by_the_next_action(agent: QWEDAgentClient) -> None:
    assert agent.verify_action(claim(1)).decision == "APPROVED"
    assert agent.verify_action({"type": "execute_sql", "query": "DROP TABLE x"}).decision == "DENIED"
    assert agent.verify_action(claim(2)).decision == "APPROVED"
    assert steps(agent) == [1, 2, 2]


def test_what_a_tool_does_is_stated_beside_its_arguments(client: QWEDClient, agent: QWEDAgentClient) -> None:
    assert agent.verify_tool_call("search_web", {"query": "oslo"}).decision == "APPROVED"
    assert agent.verify_tool_call("search_web", {"query": "oslo"}, effects=["NETWORK"]).decision == "PENDING"
    context = {"conversation_id": "another", "step_number": 1}
    answer = client.verify_tool_call(agent.agent_id, "search_web", {"query": "oslo"}, context, effects=("DELETE",))
    assert answer.decision == "DENIED"


def test_a_pending_step_is_used_up(agent: QWEDAgentClient) -> None:
    assert agent.verify_tool_call("send_email", {"to": "user@example.com", "body": "hello"}).decision == "PENDING"
    assert agent.verify_action(claim(2)).decision == "APPROVED"
    assert steps(agent) == [1, 2]


def test_a_new_conversation_begins_with_step_one(agent: QWEDAgentClient) -> None:
    agent.verify_action(claim(1))
    before = agent.conversation_id
    assert agent.new_conversation() == agent.conversation_id != before
    assert agent.new_conversation("monday report") == "monday report"
    assert agent.verify_action(claim(1)).decision == "APPROVED"
    assert agent.get_activity()[0].step_number == 1


def test_a_context_adds_to_the_step_and_names_its_own_conversation(agent: QWEDAgentClient) -> None:
    agent.verify_action(claim(1), {"user_intent": "add up"})
    agent.verify_action(claim(2), {"conversation_id": "aside"})
    agent.verify_action(claim(3), {"conversation_id": "aside"})
    agent.verify_action(claim(4), {"conversation_id": "counted elsewhere", "step_number": 9})
    agent.verify_action(claim(5))
    entries = [
        (entry.conversation_id, entry.step_number, entry.user_intent) for entry in reversed(agent.get_activity())
    ]
    own = agent.conversation_id
    assert entries == [
        (own, 1, "add up"),
        ("aside", 1, None),
        ("aside", 2, None),
        ("counted elsewhere", 9, None),
        (own, 2, None),
    ]


def test_threads_that_share_a_conversation_take_turns(agent: QWEDAgentClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: agent.verify_action(claim(number)), range(40)))
    assert {answer.decision for answer in answers} == {"APPROVED"}
    assert steps(agent) == list(range(1, 41))


def test_tasks_that_share_a_conversation_take_turns(server: Server) -> None:
    async def run() -> tuple[list[str], list[int]]:
        async with QWEDAsyncClient(server.owner_key, server.base_url) as client:
            agent = await QWEDAsyncAgentClient.register(
                name=unique_name("awaits"), principal_id="user_123", client=client
            )
            answers = await asyncio.gather(*(agent.verify_action(claim(number)) for number in range(40)))
            entries = await agent.get_activity(limit=100)
            return [answer.decision for answer in answers], [entry.step_number for entry in reversed(entries)]

    assert asyncio.run(run()) == (["APPROVED"] * 40, list(range(1, 41)))


def test_a_task_that_is_cancelled_gives_its_turn_to_the_next(server: Server) -> None:
    async def run() -> str:
        async with QWEDAsyncClient(server.owner_key, server.base_url) as client:
            agent = await QWEDAsyncAgentClient.register(
                name=unique_name("is cancelled"), principal_id="user_123", client=client
            )
            cancelled = asyncio.create_task(agent.verify_action(claim(1)))
            await asyncio.sleep(0)
            cancelled.cancel()
            answer = await agent.verify_action(claim(2))
            return str(answer.decision)

    assert asyncio.run(run()) == "APPROVED"


UNKNOWN: dict[str, tuple[Behave, type[Exception], int]] = {
    "a connection that broke after the request": (close_connection, QWEDConnectionError, 2),
    "a server that failed": (respond_with(500, raw=b""), QWEDServerError, 2),
    "a refusal before the decision": (respond_with(401, {"error": {"code": "QWED-AUTH-002"}}), QWEDAuthError, 1),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_step_that_may_have_been_used_up_is_left_out(name: str) -> None:
    behave, kind, following = UNKNOWN[name]
    with fake_server(behave) as other:
        agent = QWEDAgentClient("agent_1", "t", client=QWEDClient("k", other.url, retries=0))
        with pytest.raises(kind):
            agent.verify_action(claim(1))
    assert agent.binding.conversations.current.next_step == following


def test_a_step_that_was_never_sent_is_not_used_up() -> None:
    with unreachable_url() as url:
        agent = QWEDAgentClient("agent_1", "t", client=QWEDClient("k", url, retries=0))
        with pytest.raises(QWEDConnectionError):
            agent.verify_action(claim(1))
    assert agent.binding.conversations.current.next_step == 1


def test_the_token_speaks_for_the_agent_and_the_key_stays_at_home() -> None:
    with fake_server(respond_with(200, {"decision": "DENIED"})) as other:
        QWEDAgentClient("agent_1", "qwed_agent_t", api_key="qwed_live_k", base_url=other.url).verify_action(claim(1))
    headers = other.heard[0].headers
    assert (headers.get("authorization"), headers.get("x-api-key")) == ("Bearer qwed_agent_t", None)


def test_the_environment_names_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_AGENT_ID", "agent_env")
    monkeypatch.setenv("QWED_AGENT_TOKEN", "qwed_agent_env")
    assert (QWEDAgentClient().agent_id, QWEDAgentClient().agent_token) == ("agent_env", "qwed_agent_env")
    # The token of one agent is not used for another.
    assert QWEDAgentClient("agent_other").agent_token is None


def test_without_an_agent_there_is_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QWED_AGENT_ID", raising=False)
    with pytest.raises(ValueError, match="QWED_AGENT_ID"):
        QWEDAgentClient()


def test_conversations_are_forgotten_before_they_are_too_many() -> None:
    conversations = ConversationRegistry()
    first = conversations.for_run("run 0")
    for number in range(1, MAX_CONVERSATIONS):
        conversations.for_run(f"run {number}")
    assert conversations.for_run("run 0") is first
    for number in range(MAX_CONVERSATIONS):
        conversations.for_run(f"later {number}")
    assert conversations.for_run("run 0") is not first


def test_a_run_and_a_conversation_of_the_same_name_are_two() -> None:
    conversations = ConversationRegistry()
    assert conversations.for_id("x") is not conversations.for_run("x")
    assert conversations.for_id("x").conversation_id == "x" != conversations.for_run("x").conversation_id


def test_waiting_for_a_person(client: QWEDClient, agent: QWEDAgentClient) -> None:
    answer = agent.verify_tool_call("send_email", {"to": "user@example.com", "body": "hello"})
    assert agent.wait_for_decision(answer.action_id, timeout=0).decision == "PENDING"
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(agent.wait_for_decision, answer.action_id, 30)
        client.approve(answer.approval_id, reason="it is wanted")
        action = waiting.result(timeout=60)
    assert (action.decision, action.first_decision) == ("APPROVED", "PENDING")
    assert agent.log_execution(action.action_id, True, action.attestation, result="sent").execution["success"] is True


APPROVED = respond_with(200, {"decision": "APPROVED", "action_id": "act_1"})


def contexts(other: FakeServer) -> list[tuple[str, int]]:
    bodies = (json.loads(heard.body)["context"] for heard in other.heard)
    return [(context["conversation_id"], context["step_number"]) for context in bodies]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_turn_leaves_the_child_one_of_its_own() -> None:
    forked = threading.Event()

    def waits(line: Any) -> None:
        forked.wait(20)
        APPROVED(line)

    with fake_server(waits, APPROVED) as other:
        agent = QWEDAgentClient("agent_1", "t", base_url=other.url)
        with ThreadPoolExecutor(1) as threads:
            request = threads.submit(agent.verify_action, claim(1))
            while not other.heard:
                assert not request.done()
            child = os.fork()
            if child == 0:
                os._exit(0 if agent.verify_action(claim(2)).decision == "APPROVED" else 1)
            assert os.waitpid(child, 0)[1] == 0
            forked.set()
            request.result()
        agent.verify_action(claim(3))
    parent, from_child, later = contexts(other)
    assert (parent[1], from_child[1], later) == (1, 1, (parent[0], 2))
    assert from_child[0] != parent[0]


def test_loops_that_share_a_conversation_take_turns() -> None:
    with fake_server(APPROVED) as other:
        agent = QWEDAsyncAgentClient("agent_1", "t", base_url=other.url)

        async def ask() -> None:
            await asyncio.gather(*(agent.verify_action(claim(number)) for number in range(5)))
            await agent.client.aclose()

        with ThreadPoolExecutor(2) as threads:
            for done in [threads.submit(asyncio.run, ask()) for _ in range(2)]:
                done.result()
    assert [step for _, step in contexts(other)] == list(range(1, 11))


def test_a_turn_that_does_not_come_in_time_is_not_waited_for() -> None:
    agent = QWEDAgentClient("agent_1", "t", client=QWEDClient("k", "http://127.0.0.1:9", 0.1, retries=0))
    current = agent.binding.conversations.current
    assert current.acquire(1)
    with pytest.raises(QWEDTimeoutError, match="conversation"):
        agent.verify_action(claim(1))
    awaiting = QWEDAsyncAgentClient("agent_1", "t", base_url="http://127.0.0.1:9", timeout=0.1)
    assert awaiting.binding.conversations.current.acquire(1)
    with pytest.raises(QWEDTimeoutError, match="conversation"):
        asyncio.run(awaiting.verify_action(claim(1)))
    assert current.next_step == 1


def test_an_interrupted_call_gives_its_turn_back() -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with fake_server(never_respond, APPROVED) as other:
            agent = QWEDAgentClient("agent_1", "t", base_url=other.url)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(Interrupted):
                agent.verify_action(claim(1))
            assert agent.verify_action(claim(2)).decision == "APPROVED"
    finally:
        signal.signal(signal.SIGALRM, before)
    # The first may have been decided.
    assert contexts(other)[-1][1] == 2


def test_the_kind_of_client_is_looked_at_before_anything_is_asked() -> None:
    with pytest.raises(TypeError, match="QWEDAsyncAgentClient"):
        QWEDAgentClient("agent_1", client=QWEDAsyncClient("k"))  # type: ignore[arg-type]
    for client in (QWEDAsyncAgentClient("agent_1"), QWEDAsyncClient("k"), "agent_1"):
        with pytest.raises(TypeError, match="Checkpoint"):
            Checkpoint(client)  # type: ignore[arg-type]


@pytest.mark.parametrize("agent_id", ["..", ".", "\ud800", 5])
def test_an_agent_that_is_none_has_no_client(agent_id: Any) -> None:
    with pytest.raises(ValueError, match="id"):
        QWEDAgentClient(agent_id)


def test_a_checkpoint_and_its_keywords_are_not_given_together() -> None:
    checkpoint = Checkpoint(agent_id="agent_x", wait=3)
    assert checkpoint_or_new(checkpoint) is checkpoint
    assert checkpoint_or_new(None, agent_id="agent_x", wait=4).rules.wait == 4
    with pytest.raises(TypeError, match="`wait` is given together with a checkpoint"):
        checkpoint_or_new(checkpoint, wait=60)
    with pytest.raises(TypeError, match="unknown keyword `waits`"):
        Checkpoint(agent_id="agent_x", waits=60)  # type: ignore[call-arg]
