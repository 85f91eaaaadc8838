"""Conversations with a real kernel: what one side says until it is the other's turn is one step, however it is said."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from qwed.proxies.place import directory
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.faults import Refused
from qwed_a2a.proxy.identity import stand_for
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.proxy.options import Options
from qwed_a2a.proxy.relay import Relay
from qwed_a2a.proxy.terms import Event, GetTask, Message, Part, Role, SendMessage
from qwed_a2a.proxy.verbs import Verb
from qwed_a2a.verdict import VerificationVerdict
from tests.support.a2a_proxies import Rules
from tests.support.a2a_raw import Said, call_of, relaying, said_as_one, said_at_once, told

OPTIONS = Options(name="clerk", upstream="http://127.0.0.1:1", public_url="http://127.0.0.1:2", principal_id="ops")
NUMBERS = count()
STEPS = 8


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QWED_A2A_MESSAGES_PER_MINUTE", "0")
    monkeypatch.setenv("QWED_MAX_STEPS", str(STEPS))


@asynccontextmanager
async def deciding(said: Said) -> AsyncIterator[Relay]:
    """A relay with a Gate of its own before an agent that answers so."""
    async with AsyncExitStack() as stack:
        stand = await stand_for(OPTIONS, directory("a2a", "clerk"), stack, lambda _: None)
        yield await stack.enter_async_context(relaying(said, stand.kernel))


def status(text: str, state: str = "WORKING") -> dict[str, Any]:
    message = {"messageId": f"s{next(NUMBERS)}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    update = {"state": f"TASK_STATE_{state}", **({"message": message} if text else {})}
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": update}}


def piece(text: str) -> dict[str, Any]:
    artifact = {"artifactId": f"a{next(NUMBERS)}", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t", "artifact": artifact, "lastChunk": True}}


def said_by_a_client(*parts: Part, context: str = "c") -> SendMessage:
    message_id = f"m{next(NUMBERS)}"
    return SendMessage(message=Message(message_id=message_id, role=Role.USER, context_id=context, parts=parts))


async def streamed(relay: Relay, *parts: Part, context: str = "c") -> list[Event]:
    seen: list[Event] = []
    await told(relay, call_of(relay, said_by_a_client(*parts, context=context)), seen)
    return seen


def test_an_agent_that_says_for_long_that_it_still_works_is_heard_to_the_end() -> None:
    async def run() -> int:
        said = said_at_once(*(status("still working") for _ in range(STEPS + 5)), status("done", "COMPLETED"))
        async with deciding(lambda _: said) as relay:
            return len(await streamed(relay, Part(text="hello")))

    assert asyncio.run(run()) == STEPS + 6


def test_a_conversation_has_as_many_turns_as_it_has_steps_and_another_one_goes_on() -> None:
    async def run() -> tuple[Refused, int]:
        def said(_: Any) -> bytes:
            number = next(NUMBERS)
            return said_at_once(status("looking"), status("writing"), piece(f"{number}"), status("", "COMPLETED"))

        async with deciding(said) as relay:
            for number in range(STEPS):
                assert len(await streamed(relay, Part(text=f"question {number}"))) == 4
            try:
                await streamed(relay, Part(text="one more"))
            except Refused as refused:
                return refused, len(await streamed(relay, Part(text="one more"), context="d"))
        raise AssertionError

    refused, after = asyncio.run(run())
    assert refused.data["code"] == "QWED-AGENT-LOOP-001"
    assert "begin another conversation, with another `contextId` or none" in refused.message
    assert after == 4


def invoice(total: str) -> Part:
    return Part(data={"data": {"claimed_total": total, "line_items": [{"amount": total, "quantity": 1}]}})


def test_other_invoices_under_the_same_words_are_no_loop_and_the_same_one_without_end_is() -> None:
    async def run() -> Refused:
        said = said_as_one({"message": {"messageId": "n", "role": "ROLE_AGENT", "parts": [{"text": "booked"}]}})
        async with deciding(lambda _: said) as relay:

            async def booked(total: str, context: str) -> None:
                params = said_by_a_client(Part(text="please book this"), invoice(total), context=context)
                await relay.answer(call_of(relay, params, Verb.SEND))

            for number in range(1, STEPS):
                await booked(f"{number}.00", "c")
            try:
                for _ in range(STEPS):
                    await booked("9.00", "d")
            except Refused as refused:
                return refused
        raise AssertionError

    assert asyncio.run(run()).data["code"] == "QWED-AGENT-LOOP-004"


def test_whoever_looks_for_a_task_again_and_again_takes_no_turn() -> None:
    async def run() -> None:
        def said(_: Any) -> bytes:
            working = status("still working")["statusUpdate"]["status"]
            return said_as_one({"id": "t", "contextId": "c", "status": working})

        async with deciding(said) as relay:
            for _ in range(STEPS + 5):
                await relay.answer(call_of(relay, GetTask(id="t"), Verb.GET))

    asyncio.run(run())


class Hurried(Rules):
    """A kernel for which every other answer comes too fast."""

    def __init__(self, wait: float) -> None:
        super().__init__()
        self._wait, self._turns = wait, count()

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
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
        said = said_at_once(*(status(f"{number}") for number in range(5)))
        seen: list[Event] = []
        async with relaying(lambda _: said, Hurried(wait)) as relay:
            try:
                await told(relay, call_of(relay, said_by_a_client(Part(text="hello"))), seen)
            except Refused as refused:
                return len(seen), refused.data["code"]
        return len(seen), ""

    assert asyncio.run(run()) == (heard, code)
