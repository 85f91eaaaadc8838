"""Authorizer: the meaning of each answer, and refusal without one; over HTTP and in process."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from qwed.gate import Gate
from qwed.proxies.backend import Identity
from qwed.proxies.local_backend import LocalBackend, open_proxy_gate
from qwed.proxies.pending_approvals import PendingApprovals
from qwed.proxies.remote_backend import RemoteBackend
from qwed_mcp.proxy.authorizer import Authorizer, ProposedCall
from qwed_sdk.permits import Permit, Refusal
from tests.support.fake_server import Behave, close_connection, fake_server, respond_with

T = TypeVar("T")
TOOL = "mcp__them__search"
ARGUMENTS = {"text": "w", "pages": 1}
ACTION = {"type": "tool_call", "tool": TOOL, "parameters": ARGUMENTS}
REPAIRED = {**ACTION, "parameters": {"text": "x", "pages": 1}}
APPROVED = {"decision": "APPROVED", "action_id": "act_1", "attestation": "x.y.z"}
PENDING = {"decision": "PENDING", "action_id": "act_1", "approval_id": "apr_1", "error": {"code": "Q", "message": "m"}}
NOW = {"action_id": "act_1", "action": ACTION, "execution": None}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def authorize_calls(*answers: Behave, calls: int = 1, **options: Any) -> tuple[list[Permit | Refusal], list[Any]]:
    """Authorize the same call `calls` times; return the results and the request bodies sent."""
    with fake_server(*answers) as other:

        async def authorize_all() -> list[Permit | Refusal]:
            kernel = RemoteBackend(Identity("agent_1", "t"), other.url)
            try:
                authorizer = Authorizer(kernel, PendingApprovals("mcp", other.url, "agent_1"), options.get("wait", 0.0))
                return [await authorizer.authorize(ProposedCall(TOOL, ARGUMENTS, ("DELETE",))) for _ in range(calls)]
            finally:
                await kernel.close()

        results = anyio.run(authorize_all)
        return results, [json.loads(heard.body) for heard in other.heard if heard.body]


def test_the_question_is_the_call_with_what_was_stated_of_it() -> None:
    [permit], [sent] = authorize_calls(respond_with(200, APPROVED))
    assert isinstance(permit, Permit)
    assert permit.arguments == ARGUMENTS
    assert sent["action"] == {**ACTION, "effects": ["DELETE"]}
    assert sent["context"]["conversation_id"].startswith("mcp_")
    assert sent["context"]["step_number"] == 1


def test_a_repaired_call_is_sent_as_it_was_repaired() -> None:
    for repaired in (REPAIRED, {**REPAIRED, "effects": ["DELETE"]}):
        [permit], _ = authorize_calls(respond_with(200, {**APPROVED, "decision": "CORRECTED", "corrected": repaired}))
        assert isinstance(permit, Permit)
        assert permit.arguments == {"text": "x", "pages": 1}


@pytest.mark.parametrize(
    "answer",
    [
        close_connection,
        respond_with(500, {}),
        respond_with(200, raw=b"yes"),
        respond_with(200, {"decision": "YES", "action_id": "act_1"}),
        respond_with(403, APPROVED),
        respond_with(200, {**APPROVED, "action_id": None}),
        respond_with(200, {**APPROVED, "decision": "CORRECTED"}),
        respond_with(
            200, {**APPROVED, "decision": "CORRECTED", "corrected": {**REPAIRED, "tool": "mcp__them__delete"}}
        ),
        respond_with(200, {**APPROVED, "decision": "CORRECTED", "corrected": {**ACTION, "parameters": {"text": "x"}}}),
        respond_with(200, raw=b'{"decision": "APPROVED", "decision": "DENIED", "action_id": "act_1"}'),
    ],
)
def test_what_is_no_plain_yes_is_a_refusal(answer: Behave) -> None:
    [result], _ = authorize_calls(answer, answer, answer)
    assert isinstance(result, Refusal)


def test_an_approval_is_for_one_call_and_another_question_follows_it() -> None:
    approved = respond_with(200, {**NOW, **APPROVED})
    results, sent = authorize_calls(
        respond_with(200, PENDING), respond_with(200, {**NOW, **PENDING}), approved, respond_with(200, PENDING), calls=4
    )
    assert [type(result) for result in results] == [Refusal, Refusal, Permit, Refusal]
    assert len(sent) == 2
    assert isinstance(results[0], Refusal)
    assert results[0].suggestion is not None
    assert "once a person has approved apr_1, make the same call again" in results[0].suggestion


@pytest.mark.parametrize(
    "later",
    [
        {**NOW, **APPROVED, "attestation": None},
        {**NOW, "decision": "DENIED", "error": {"code": "Q", "message": "a person refused this"}},
    ],
)
def test_what_was_taken_back_or_refused_is_no_approval(later: dict[str, Any]) -> None:
    results, _ = authorize_calls(respond_with(200, PENDING), respond_with(200, later), calls=2)
    assert [type(result) for result in results] == [Refusal, Refusal]


@pytest.mark.parametrize(
    "other",
    [
        {**NOW, **APPROVED, "execution": {"success": True}},
        {**NOW, **APPROVED, "action": {**ACTION, "parameters": {"text": "other", "pages": 1}}},
    ],
)
def test_an_approval_that_was_used_or_is_of_another_call_is_asked_for_anew(other: dict[str, Any]) -> None:
    results, sent = authorize_calls(
        respond_with(200, PENDING), respond_with(200, other), respond_with(200, PENDING), calls=2
    )
    assert [type(result) for result in results] == [Refusal, Refusal]
    assert len(sent) == 2


def register(gate: Gate) -> Identity:
    """Register the agent of a proxy."""
    agent = gate.register_agent(
        name="x", principal_id="me", type="autonomous", permissions={"allowed_tools": ["mcp__them__*"]}
    )
    return Identity(agent.agent_id, agent.agent_token)


def in_process(place: Path, use: Callable[[LocalBackend], Awaitable[T]], **settings: Any) -> T:
    """Run `use` with a local backend."""

    async def used() -> T:
        gate = open_proxy_gate(place, "them")
        kernel = LocalBackend(gate, register(gate), place)
        try:
            return await use(kernel)
        finally:
            await kernel.close()

    return anyio.run(used)


def test_another_conversation_begins_where_one_has_had_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_MAX_STEPS", "3")

    async def calls(kernel: LocalBackend) -> list[Permit | Refusal]:
        authorizer = Authorizer(kernel, PendingApprovals("mcp", kernel.location, kernel.agent_id), 0.0)
        results: list[Permit | Refusal] = []

        async def one(number: int) -> None:
            results.append(await authorizer.authorize(ProposedCall("mcp__them__get_weather", {"city": f"{number}"})))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
        return results

    assert all(isinstance(result, Permit) for result in in_process(tmp_path, calls))


def test_a_call_that_is_repeated_without_end_is_refused(tmp_path: Path) -> None:
    async def calls(kernel: LocalBackend) -> list[Permit | Refusal]:
        authorizer = Authorizer(kernel, PendingApprovals("mcp", kernel.location, kernel.agent_id), 0.0)
        return [await authorizer.authorize(ProposedCall("mcp__them__get_weather", {"city": "Bonn"})) for _ in range(12)]

    results = in_process(tmp_path, calls)
    assert isinstance(results[0], Permit)
    assert isinstance(results[-1], Refusal)
    assert str(results[-1].code).startswith("QWED-AGENT-LOOP-")


@pytest.mark.parametrize("arguments", [{"a": float("inf")}, {"a": "\ud800"}, {"a": [[]] * (1 << 20)}])
def test_arguments_without_one_meaning_are_refused(arguments: dict[str, Any], tmp_path: Path) -> None:
    async def call(kernel: LocalBackend) -> Permit | Refusal:
        return await Authorizer(kernel, PendingApprovals("mcp", kernel.location, kernel.agent_id), 0.0).authorize(
            ProposedCall(TOOL, arguments)
        )

    assert isinstance(in_process(tmp_path, call), Refusal)


def test_what_a_person_approves_in_a_gate_of_its_own_passes_in_the_next_session(tmp_path: Path) -> None:
    tool = "mcp__them__get_weather"
    with open_proxy_gate(tmp_path, "them") as gate:
        agent = register(gate)
        gate.put_tool(tool, "medium", requires_approval=True)

    async def session(times: int, approval_id: str | None = None) -> list[Permit | Refusal]:
        gate = open_proxy_gate(tmp_path, "them")
        if approval_id is not None:
            gate.approve(approval_id, "looked at it")
        kernel = LocalBackend(gate, agent, tmp_path)
        try:
            authorizer = Authorizer(kernel, PendingApprovals("mcp", kernel.location, kernel.agent_id), 30.0)
            return [await authorizer.authorize(ProposedCall(tool, {"city": "Bonn"})) for _ in range(times)]
        finally:
            await kernel.close()

    [refused] = anyio.run(session, 1)
    assert isinstance(refused, Refusal)
    assert refused.answer is not None
    approval_id = str(refused.answer.approval_id)
    assert f"qwed serve --data-dir {tmp_path / 'gate'}" in str(refused.suggestion)
    assert [type(result) for result in anyio.run(session, 2, approval_id)] == [Permit, Refusal]


def test_what_was_approved_for_a_tool_that_stated_less_is_asked_anew_once_it_states_more() -> None:
    with fake_server(respond_with(202, PENDING), respond_with(202, {**PENDING, "action_id": "act_2"})) as other:

        async def both() -> list[Permit | Refusal]:
            kernel = RemoteBackend(Identity("agent_1", "t"), other.url)
            try:
                authorizer = Authorizer(kernel, PendingApprovals("mcp", other.url, "agent_1"), 0.0)
                return [
                    await authorizer.authorize(ProposedCall(TOOL, ARGUMENTS, effects)) for effects in ((), ("DELETE",))
                ]
            finally:
                await kernel.close()

        results = anyio.run(both)
        answers = [result.answer for result in results if isinstance(result, Refusal) and result.answer is not None]
        assert [result.action_id for result in answers] == ["act_1", "act_2"]
        assert [bool(heard.body) for heard in other.heard] == [True, True]
