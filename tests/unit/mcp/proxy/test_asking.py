"""What an answer means for a call, and that no answer is a refusal; asked over HTTP, and in process."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from qwed.proxies.kernel import Identity
from qwed.proxies.own import Own, opened
from qwed.proxies.remote import Remote
from qwed.proxies.waiting import Waiting
from qwed_mcp.proxy.asking import Asker, Proposed
from qwed_sdk.calls.checks import Permit, Refusal
from tests.support.impostor import Behave, hangs_up, impostor, says

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


def asked(*answers: Behave, calls: int = 1, **asker: Any) -> tuple[list[Permit | Refusal], list[Any]]:
    """What becomes of the same call, made so often; and what was sent."""
    with impostor(*answers) as other:

        async def all_of_them() -> list[Permit | Refusal]:
            kernel = Remote(Identity("agent_1", "t"), other.url)
            try:
                one = Asker(kernel, Waiting("mcp", other.url, "agent_1"), asker.get("wait", 0.0))
                return [await one.before(Proposed(TOOL, ARGUMENTS, ("DELETE",))) for _ in range(calls)]
            finally:
                await kernel.close()

        found = anyio.run(all_of_them)
        return found, [json.loads(heard.body) for heard in other.heard if heard.body]


def test_the_question_is_the_call_with_what_was_stated_of_it() -> None:
    [permit], [sent] = asked(says(200, APPROVED))
    assert isinstance(permit, Permit)
    assert permit.arguments == ARGUMENTS
    assert sent["action"] == {**ACTION, "effects": ["DELETE"]}
    assert sent["context"]["conversation_id"].startswith("mcp_")
    assert sent["context"]["step_number"] == 1


def test_a_repaired_call_is_sent_as_it_was_repaired() -> None:
    for repaired in (REPAIRED, {**REPAIRED, "effects": ["DELETE"]}):
        [permit], _ = asked(says(200, {**APPROVED, "decision": "CORRECTED", "corrected": repaired}))
        assert isinstance(permit, Permit)
        assert permit.arguments == {"text": "x", "pages": 1}


@pytest.mark.parametrize(
    "answer",
    [
        hangs_up,
        says(500, {}),
        says(200, raw=b"yes"),
        says(200, {"decision": "YES", "action_id": "act_1"}),
        says(403, APPROVED),
        says(200, {**APPROVED, "action_id": None}),
        says(200, {**APPROVED, "decision": "CORRECTED"}),
        says(200, {**APPROVED, "decision": "CORRECTED", "corrected": {**REPAIRED, "tool": "mcp__them__delete"}}),
        says(200, {**APPROVED, "decision": "CORRECTED", "corrected": {**ACTION, "parameters": {"text": "x"}}}),
        says(200, raw=b'{"decision": "APPROVED", "decision": "DENIED", "action_id": "act_1"}'),
    ],
)
def test_what_is_no_plain_yes_is_a_refusal(answer: Behave) -> None:
    [found], _ = asked(answer, answer, answer)
    assert isinstance(found, Refusal)


def test_an_approval_is_for_one_call_and_another_question_follows_it() -> None:
    approved = says(200, {**NOW, **APPROVED})
    found, sent = asked(says(200, PENDING), says(200, {**NOW, **PENDING}), approved, says(200, PENDING), calls=4)
    assert [type(each) for each in found] == [Refusal, Refusal, Permit, Refusal]
    assert len(sent) == 2
    assert isinstance(found[0], Refusal)
    assert found[0].suggestion is not None
    assert "once a person has approved apr_1, make the same call again" in found[0].suggestion


@pytest.mark.parametrize(
    "later",
    [
        {**NOW, **APPROVED, "attestation": None},
        {**NOW, "decision": "DENIED", "error": {"code": "Q", "message": "a person refused this"}},
    ],
)
def test_what_was_taken_back_or_refused_is_no_approval(later: dict[str, Any]) -> None:
    found, _ = asked(says(200, PENDING), says(200, later), calls=2)
    assert [type(each) for each in found] == [Refusal, Refusal]


@pytest.mark.parametrize(
    "other",
    [
        {**NOW, **APPROVED, "execution": {"success": True}},
        {**NOW, **APPROVED, "action": {**ACTION, "parameters": {"text": "other", "pages": 1}}},
    ],
)
def test_an_approval_that_was_used_or_is_of_another_call_is_asked_for_anew(other: dict[str, Any]) -> None:
    found, sent = asked(says(200, PENDING), says(200, other), says(200, PENDING), calls=2)
    assert [type(each) for each in found] == [Refusal, Refusal]
    assert len(sent) == 2


def in_process(place: Path, use: Callable[[Own], Awaitable[T]], **settings: Any) -> T:
    """What comes of a Gate of the proxy's own."""

    async def used() -> T:
        gate = opened(place, "them")
        agent = gate.register_agent(
            name="x", principal_id="me", type="autonomous", permissions={"allowed_tools": ["mcp__them__*"]}
        )
        kernel = Own(gate, Identity(agent.agent_id, agent.agent_token), place)
        try:
            return await use(kernel)
        finally:
            await kernel.close()

    return anyio.run(used)


def test_another_conversation_begins_where_one_has_had_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_MAX_STEPS", "3")

    async def calls(kernel: Own) -> list[Permit | Refusal]:
        asker = Asker(kernel, Waiting("mcp", kernel.place, kernel.agent_id), 0.0)
        found: list[Permit | Refusal] = []

        async def one(number: int) -> None:
            found.append(await asker.before(Proposed("mcp__them__get_weather", {"city": f"{number}"})))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
        return found

    assert all(isinstance(each, Permit) for each in in_process(tmp_path, calls))


def test_a_call_that_is_repeated_without_end_is_refused(tmp_path: Path) -> None:
    async def calls(kernel: Own) -> list[Permit | Refusal]:
        asker = Asker(kernel, Waiting("mcp", kernel.place, kernel.agent_id), 0.0)
        return [await asker.before(Proposed("mcp__them__get_weather", {"city": "Bonn"})) for _ in range(12)]

    found = in_process(tmp_path, calls)
    assert isinstance(found[0], Permit)
    assert isinstance(found[-1], Refusal)
    assert str(found[-1].code).startswith("QWED-AGENT-LOOP-")


@pytest.mark.parametrize("arguments", [{"a": float("inf")}, {"a": "\ud800"}, {"a": [[]] * (1 << 20)}])
def test_arguments_without_one_meaning_are_refused(arguments: dict[str, Any], tmp_path: Path) -> None:
    async def call(kernel: Own) -> Permit | Refusal:
        return await Asker(kernel, Waiting("mcp", kernel.place, kernel.agent_id), 0.0).before(Proposed(TOOL, arguments))

    assert isinstance(in_process(tmp_path, call), Refusal)


def test_what_a_person_approves_in_a_gate_of_its_own_passes_in_the_next_session(tmp_path: Path) -> None:
    tool = "mcp__them__get_weather"

    async def call(kernel: Own) -> tuple[Permit | Refusal, Identity]:
        gate = kernel._gate
        gate.put_tool(tool, "medium", requires_approval=True)
        asker = Asker(kernel, Waiting("mcp", kernel.place, kernel.agent_id), 30.0)
        identity = Identity(kernel.agent_id, str(kernel._credentials.agent_token))
        return await asker.before(Proposed(tool, {"city": "Bonn"})), identity

    refused, identity = in_process(tmp_path, call)
    assert isinstance(refused, Refusal)
    assert refused.answer is not None
    approval_id = str(refused.answer.approval_id)
    assert f"qwed serve --data-dir {tmp_path / 'gate'}" in str(refused.suggestion)

    async def again() -> list[Permit | Refusal]:
        gate = opened(tmp_path, "them")
        gate.approve(approval_id, "looked at it")
        kernel = Own(gate, identity, tmp_path)
        try:
            asker = Asker(kernel, Waiting("mcp", kernel.place, kernel.agent_id), 30.0)
            return [await asker.before(Proposed(tool, {"city": "Bonn"})) for _ in range(2)]
        finally:
            await kernel.close()

    assert [type(each) for each in anyio.run(again)] == [Permit, Refusal]


def test_what_was_approved_for_a_tool_that_stated_less_is_asked_anew_once_it_states_more() -> None:
    with impostor(says(202, PENDING), says(202, {**PENDING, "action_id": "act_2"})) as other:

        async def both() -> list[Permit | Refusal]:
            kernel = Remote(Identity("agent_1", "t"), other.url)
            try:
                one = Asker(kernel, Waiting("mcp", other.url, "agent_1"), 0.0)
                return [await one.before(Proposed(TOOL, ARGUMENTS, effects)) for effects in ((), ("DELETE",))]
            finally:
                await kernel.close()

        found = anyio.run(both)
        told = [each.answer for each in found if isinstance(each, Refusal) and each.answer is not None]
        assert [each.action_id for each in told] == ["act_1", "act_2"]
        assert [bool(heard.body) for heard in other.heard] == [True, True]
