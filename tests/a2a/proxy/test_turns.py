"""Conversations with a real Gate: each turn of one side is one step, in any number of pieces."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from qwed.proxies.backend import Identity
from qwed.proxies.state_directory import ensure_state_directory
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.errors import CallRefusedError
from qwed_a2a.proxy.identity import open_backend
from qwed_a2a.proxy.message_schema import A2AMessage, A2APart, GetTask, Role, SendMessage, StreamResponse
from qwed_a2a.proxy.methods import A2AMethod
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_a2a.proxy.relay import Relay
from qwed_a2a.verdict import VerificationVerdict
from tests.support.a2a_proxies import RuleBackend
from tests.support.a2a_raw import AgentReply, client_call, collect_events, relay_before, single_reply, stream_reply

OPTIONS = A2AProxyOptions(
    name="clerk", upstream="http://127.0.0.1:1", public_url="http://127.0.0.1:2", principal_id="ops"
)
NUMBERS = count()
STEPS = 8


@pytest.fixture(autouse=True)
def local_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QWED_A2A_MESSAGES_PER_MINUTE", "0")
    monkeypatch.setenv("QWED_MAX_STEPS", str(STEPS))


@asynccontextmanager
async def relay_with_gate(reply: AgentReply) -> AsyncIterator[Relay]:
    """Yield a relay with its own Gate in front of an agent with these replies."""
    async with AsyncExitStack() as stack:
        backend = await open_backend(OPTIONS, ensure_state_directory("a2a", "clerk"), stack, lambda _: None)
        yield await stack.enter_async_context(relay_before(reply, backend))


def status(text: str, state: str = "WORKING") -> dict[str, Any]:
    message = {"messageId": f"s{next(NUMBERS)}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    update = {"state": f"TASK_STATE_{state}", **({"message": message} if text else {})}
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": update}}


def piece(text: str) -> dict[str, Any]:
    artifact = {"artifactId": f"a{next(NUMBERS)}", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t", "artifact": artifact, "lastChunk": True}}


def user_message(*parts: A2APart, context: str = "c") -> SendMessage:
    message_id = f"m{next(NUMBERS)}"
    return SendMessage(message=A2AMessage(message_id=message_id, role=Role.USER, context_id=context, parts=parts))


async def stream_events(relay: Relay, *parts: A2APart, context: str = "c") -> list[StreamResponse]:
    seen: list[StreamResponse] = []
    await collect_events(relay, client_call(relay, user_message(*parts, context=context)), seen)
    return seen


def test_an_agent_that_says_for_long_that_it_still_works_is_heard_to_the_end() -> None:
    async def run() -> int:
        reply = stream_reply(*(status("still working") for _ in range(STEPS + 5)), status("done", "COMPLETED"))
        async with relay_with_gate(lambda _: reply) as relay:
            return len(await stream_events(relay, A2APart(text="hello")))

    assert asyncio.run(run()) == STEPS + 6


def test_a_conversation_has_as_many_turns_as_it_has_steps_and_another_one_goes_on() -> None:
    async def run() -> tuple[CallRefusedError, int]:
        def reply(_: Any) -> bytes:
            number = next(NUMBERS)
            return stream_reply(status("looking"), status("writing"), piece(f"{number}"), status("", "COMPLETED"))

        async with relay_with_gate(reply) as relay:
            for number in range(STEPS):
                assert len(await stream_events(relay, A2APart(text=f"question {number}"))) == 4
            try:
                await stream_events(relay, A2APart(text="one more"))
            except CallRefusedError as refused:
                return refused, len(await stream_events(relay, A2APart(text="one more"), context="d"))
        raise AssertionError

    refused, after = asyncio.run(run())
    assert refused.data["code"] == "QWED-AGENT-LOOP-001"
    assert "start another conversation, with another `contextId` or none" in refused.message
    assert after == 4


def invoice(total: str) -> A2APart:
    return A2APart(data={"data": {"claimed_total": total, "line_items": [{"amount": total, "quantity": 1}]}})


def test_other_invoices_under_the_same_words_are_no_loop_and_the_same_one_without_end_is() -> None:
    async def run() -> CallRefusedError:
        reply = single_reply({"message": {"messageId": "n", "role": "ROLE_AGENT", "parts": [{"text": "booked"}]}})
        async with relay_with_gate(lambda _: reply) as relay:

            async def booked(total: str, context: str) -> None:
                params = user_message(A2APart(text="please book this"), invoice(total), context=context)
                await relay.answer(client_call(relay, params, A2AMethod.SEND))

            for number in range(1, STEPS):
                await booked(f"{number}.00", "c")
            try:
                for _ in range(STEPS):
                    await booked("9.00", "d")
            except CallRefusedError as refused:
                return refused
        raise AssertionError

    assert asyncio.run(run()).data["code"] == "QWED-AGENT-LOOP-004"


def test_whoever_looks_for_a_task_again_and_again_takes_no_turn() -> None:
    async def run() -> None:
        def reply(_: Any) -> bytes:
            working = status("still working")["statusUpdate"]["status"]
            return single_reply({"id": "t", "contextId": "c", "status": working})

        async with relay_with_gate(reply) as relay:
            for _ in range(STEPS + 5):
                await relay.answer(client_call(relay, GetTask(id="t"), A2AMethod.GET))

    asyncio.run(run())


class RateLimitingBackend(RuleBackend):
    """Backend that refuses every other answer as too fast."""

    def __init__(self, wait: float) -> None:
        super().__init__()
        self._wait, self._turns = wait, count()

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        verdict = await super().intercept(message, sender)
        if sender.agent_id != self.upstream.agent_id or next(self._turns) % 2:
            return verdict
        text = AgentMessage(sender_agent_id="a", receiver_agent_id="b", payload={"text": "flood"})
        late = await super().intercept(text, sender)
        return replace(late, details={**late.details, "retry_after": self._wait})


@pytest.mark.parametrize(("wait", "heard", "code"), [(0.01, 5, ""), (100.0, 0, "QWED-SYS-001")])
def test_an_agent_that_speaks_too_fast_is_heard_more_slowly_if_it_is_not_for_long(
    wait: float, heard: int, code: str
) -> None:
    async def run() -> tuple[int, str]:
        reply = stream_reply(*(status(f"{number}") for number in range(5)))
        seen: list[StreamResponse] = []
        async with relay_before(lambda _: reply, RateLimitingBackend(wait)) as relay:
            try:
                await collect_events(relay, client_call(relay, user_message(A2APart(text="hello"))), seen)
            except CallRefusedError as refused:
                return len(seen), refused.data["code"]
        return len(seen), ""

    assert asyncio.run(run()) == (heard, code)
