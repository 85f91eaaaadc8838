"""What a hostile agent or client might get past the proxy."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from qwed_a2a import strict
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.beside import LARGE, Beside
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.proxy.terms import Event
from qwed_a2a.proxy.verbs import BY_RPC
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict
from tests.support.a2a_proxies import Rules
from tests.support.a2a_raw import call_of, message_of, relaying, said_as_one, said_at_once, told


def status(state: str = "WORKING", text: str = "", task: str = "t", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if text:
        found["message"] = {"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": found, **more}}


def piece(text: str, *, append: bool = True, last: bool = False, task: str = "t") -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task, "artifact": artifact, "append": append, "lastChunk": last}}


def snapshot(text: str) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": [artifact]}}


def heard(*results: Any) -> tuple[list[Event], Refused | None]:
    """What a client hears of an agent that says this, and what it ends with."""

    async def run() -> tuple[list[Event], Refused | None]:
        seen: list[Event] = []
        async with relaying(lambda _: said_at_once(*results)) as relay:
            try:
                await told(relay, call_of(relay, message_of()), seen)
            except Refused as refused:
                return seen, refused
        return seen, None

    return asyncio.run(run())


FIRST, SECOND = "```python\nos.system('poi", "son')\n```"
"""Nothing by themselves."""
STREAMS = [
    (piece("poison", append=False), snapshot("harmless"), piece("end", last=True)),
    (piece(FIRST, append=False, last=True), piece(SECOND, last=True)),
    (snapshot(FIRST), piece(SECOND, last=True)),
    (piece(FIRST, append=False), status("WORKING"), piece(SECOND)),
    (piece("x", append=False), piece("poison", append=False), piece("y", append=False, last=True)),
]


@pytest.mark.parametrize("results", STREAMS)
def test_however_an_artifact_is_sent_it_is_looked_at_as_the_client_would_have_it(results: Any) -> None:
    seen, refused = heard(*results)
    assert refused is not None
    assert refused.fault is Fault.INVALID_AGENT_RESPONSE
    assert "poison" not in str(seen)
    assert "son'" not in str(seen)


def test_a_stream_is_about_one_task() -> None:
    seen, refused = heard(status(), piece("poi", append=False), piece("son", task="other", last=True))
    assert len(seen) == 1
    assert refused is not None
    assert "goes on with another task" in refused.message


CODE = "```python\nos.system('poison')\n```"
SPOKEN = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
ASKED = [
    ("SendMessage", {"message": SPOKEN, "metadata": {"x": CODE}}),
    ("SendMessage", {"message": {**SPOKEN, "metadata": {"x": [CODE]}}}),
    ("SendMessage", {"message": {**SPOKEN, "extensions": ["urn:x", CODE]}}),
    ("SendMessage", {"message": {**SPOKEN, "referenceTaskIds": ["t", CODE.replace("\n", " ")]}}),
    ("SendMessage", {"message": {**SPOKEN, "parts": [{"text": "hello", "filename": CODE}]}}),
    ("SendMessage", {"message": {**SPOKEN, "parts": [{"data": 1, "mediaType": CODE}]}}),
    ("SendMessage", {"message": {**SPOKEN, "parts": [{"url": "https://x.example/y", "metadata": {"x": CODE}}]}}),
    ("SendMessage", {"message": {**SPOKEN, "parts": [{"text": "o = os"}, {"text": "o.system('poison')"}]}}),
    ("SendMessage", {"message": SPOKEN, "configuration": {"acceptedOutputModes": ["text/plain", CODE]}}),
    ("SendMessage", {"message": SPOKEN, "configuration": {"acceptedOutputModes": ["os.system('poison')"]}}),
    ("SendMessage", {"message": {**SPOKEN, "contextId": "c\n"}}),
    ("CancelTask", {"id": "t", "metadata": {"x": CODE}}),
    ("ListTasks", {"pageToken": CODE}),
    ("ListTasks", {"contextId": CODE}),
    ("GetTask", {"id": CODE}),
]


@pytest.mark.parametrize(("method", "params"), ASKED)
def test_whatever_member_of_a_request_holds_it_nothing_reaches_the_agent_that_was_not_looked_at(
    method: str, params: Any
) -> None:
    reached: list[Any] = []

    async def run() -> None:
        async with relaying(lambda asked: reached.append(asked) or said_as_one({"task": {}})) as relay:
            try:
                verb = BY_RPC[method]
                await relay.answer(call_of(relay, strict.understood(params, verb.value.takes), verb))
            except (Refused, strict.Unreadable):
                return

    asyncio.run(run())
    assert reached == []


def test_what_an_honest_request_says_of_itself_arrives() -> None:
    reached: list[Any] = []
    params = {
        "tenant": "a tenant",
        "message": {**SPOKEN, "contextId": "c", "extensions": ["https://x.example/v1"], "referenceTaskIds": ["t-1"]},
        "configuration": {"acceptedOutputModes": ["text/plain; charset=utf-8", "image/*", "text"], "historyLength": 3},
        "metadata": {"trace": "one"},
    }

    async def run() -> None:
        said = {"message": {"messageId": "n", "parts": [{"text": "hi", "filename": "a (1).txt"}]}}
        async with relaying(lambda asked: reached.append(asked) or said_as_one(said)) as relay:
            verb = BY_RPC["SendMessage"]
            await relay.answer(call_of(relay, strict.understood(params, verb.value.takes), verb))

    asyncio.run(run())
    assert reached[0]["params"] == params


def test_an_agent_that_streams_its_words_one_by_one_is_heard() -> None:
    words = [piece(f"word{number} ", append=number > 0) for number in range(1_000)]
    seen, refused = heard(status(), *words, status("COMPLETED"))
    assert refused is None
    assert len(seen) == 1_002


class Hasty(Rules):
    """The agent's second saying comes too soon, once."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
        verdict = await super().intercept(message, sender)
        if self.refused or message.payload.get("text") != "step 2":
            return verdict
        self.refused += 1
        details = {"code": "QWED-SYS-001", "retry_after": 1}
        return replace(
            verdict, status=VerdictStatus.BLOCKED, engine_used=EngineName.TRUST_BOUNDARY, reason="fast", details=details
        )


def test_an_agent_may_say_how_far_it_is_as_often_as_it_likes_and_is_slowed_where_it_is_too_fast() -> None:
    kernel = Hasty()
    seen: list[Event] = []

    async def run() -> None:
        said = [status(text=f"step {number}") for number in range(1, 4)]
        async with relaying(lambda _: said_at_once(*said, status("COMPLETED", "done")), kernel) as relay:
            await told(relay, call_of(relay, message_of(context_id="c")), seen)

    asyncio.run(run())
    assert (len(seen), kernel.refused) == (4, 1)
    turns = [(each.message.payload.get("text"), bool(each.message.metadata)) for each in kernel.asked]
    steps = [("step 1", False), ("step 2", False), ("step 2", False), ("step 3", False)]
    assert turns == [("hello", True), *steps, ("done", True)]


def test_what_is_large_is_read_beside_the_loop_and_what_is_small_is_not() -> None:
    def reading() -> bool:
        return any("a2a-reading" in each.name for each in threading.enumerate())

    async def run(text: str) -> bool:
        said = {"message": {"messageId": "n", "parts": [{"text": "hi"}]}}
        async with relaying(lambda _: said_as_one(said)) as relay:
            await relay.answer(call_of(relay, message_of(text), BY_RPC["SendMessage"]))
            return reading()

    assert not asyncio.run(run("word " * 1_000))
    assert asyncio.run(run("word " * 10_000))


def test_so_many_are_read_at_once_and_each_sender_in_its_turn() -> None:
    begun: list[str] = []

    async def run() -> None:
        beside, gate, first = Beside(1), threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(name: str) -> None:
            begun.append(name)
            loop.call_soon_threadsafe(first.set)
            gate.wait(20)

        names = ("greedy", "greedy", "greedy", "modest")
        waiting = [asyncio.create_task(beside.run(name, LARGE, work, name)) for name in names]
        await first.wait()
        assert await beside.run("small", 1, lambda: "at once") == "at once"
        assert begun == ["greedy"]
        gate.set()
        await asyncio.gather(*waiting)
        beside.close()

    asyncio.run(run())
    assert begun.index("modest") < 3
