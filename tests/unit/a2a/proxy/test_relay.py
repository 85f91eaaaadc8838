"""Attempts of a hostile agent or client to bypass the proxy."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from qwed.proxies.backend import Identity
from qwed_a2a import strict_schema
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import StreamResponse
from qwed_a2a.proxy.methods import METHOD_BY_RPC_NAME
from qwed_a2a.proxy.parsing_pool import LARGE_BYTES, new_parsing_pool
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict
from tests.support.a2a_proxies import RuleBackend
from tests.support.a2a_raw import client_call, collect_events, relay_before, send_params, single_reply, stream_reply


def status(state: str = "WORKING", text: str = "", task: str = "t", **more: Any) -> dict[str, Any]:
    state_object: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if text:
        state_object["message"] = {"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": state_object, **more}}


def chunk(text: str, *, append: bool = True, last: bool = False, task: str = "t") -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task, "artifact": artifact, "append": append, "lastChunk": last}}


def snapshot(text: str) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": [artifact]}}


def client_events(*results: Any) -> tuple[list[StreamResponse], CallRefusedError | None]:
    """Return the events that a client gets of these results, and the error that ends them."""

    async def run() -> tuple[list[StreamResponse], CallRefusedError | None]:
        seen: list[StreamResponse] = []
        async with relay_before(lambda _: stream_reply(*results)) as relay:
            try:
                await collect_events(relay, client_call(relay, send_params()), seen)
            except CallRefusedError as refused:
                return seen, refused
        return seen, None

    return asyncio.run(run())


FIRST, SECOND = "```python\nos.system('poi", "son')\n```"
"""Harmless if read separately."""
STREAMS = [
    (chunk("poison", append=False), snapshot("harmless"), chunk("end", last=True)),
    (chunk(FIRST, append=False, last=True), chunk(SECOND, last=True)),
    (snapshot(FIRST), chunk(SECOND, last=True)),
    (chunk(FIRST, append=False), status("WORKING"), chunk(SECOND)),
    (chunk("x", append=False), chunk("poison", append=False), chunk("y", append=False, last=True)),
]


@pytest.mark.parametrize("results", STREAMS)
def test_however_an_artifact_is_sent_it_is_looked_at_as_the_client_would_have_it(results: Any) -> None:
    seen, refused = client_events(*results)
    assert refused is not None
    assert refused.error_kind is ErrorKind.INVALID_AGENT_RESPONSE
    assert "poison" not in str(seen)
    assert "son'" not in str(seen)


def test_a_stream_is_about_one_task() -> None:
    seen, refused = client_events(status(), chunk("poi", append=False), chunk("son", task="other", last=True))
    assert len(seen) == 1
    assert refused is not None
    assert "continues with another task" in refused.message


CODE = "```python\nos.system('poison')\n```"
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
HOSTILE_REQUESTS = [
    ("SendMessage", {"message": MESSAGE, "metadata": {"x": CODE}}),
    ("SendMessage", {"message": {**MESSAGE, "metadata": {"x": [CODE]}}}),
    ("SendMessage", {"message": {**MESSAGE, "extensions": ["urn:x", CODE]}}),
    ("SendMessage", {"message": {**MESSAGE, "referenceTaskIds": ["t", CODE.replace("\n", " ")]}}),
    ("SendMessage", {"message": {**MESSAGE, "parts": [{"text": "hello", "filename": CODE}]}}),
    ("SendMessage", {"message": {**MESSAGE, "parts": [{"data": 1, "mediaType": CODE}]}}),
    ("SendMessage", {"message": {**MESSAGE, "parts": [{"url": "https://x.example/y", "metadata": {"x": CODE}}]}}),
    ("SendMessage", {"message": {**MESSAGE, "parts": [{"text": "o = os"}, {"text": "o.system('poison')"}]}}),
    ("SendMessage", {"message": MESSAGE, "configuration": {"acceptedOutputModes": ["text/plain", CODE]}}),
    ("SendMessage", {"message": MESSAGE, "configuration": {"acceptedOutputModes": ["os.system('poison')"]}}),
    ("SendMessage", {"message": {**MESSAGE, "contextId": "c\n"}}),
    ("CancelTask", {"id": "t", "metadata": {"x": CODE}}),
    ("ListTasks", {"pageToken": CODE}),
    ("ListTasks", {"contextId": CODE}),
    ("GetTask", {"id": CODE}),
]


@pytest.mark.parametrize(("method", "params"), HOSTILE_REQUESTS)
def test_whatever_member_of_a_request_holds_it_nothing_reaches_the_agent_that_was_not_looked_at(
    method: str, params: Any
) -> None:
    reached: list[Any] = []

    async def run() -> None:
        async with relay_before(lambda request: reached.append(request) or single_reply({"task": {}})) as relay:
            try:
                rpc_method = METHOD_BY_RPC_NAME[method]
                await relay.answer(
                    client_call(relay, strict_schema.convert_strict(params, rpc_method.value.params_type), rpc_method)
                )
            except (CallRefusedError, strict_schema.StrictSchemaError):
                return

    asyncio.run(run())
    assert reached == []


def test_what_an_honest_request_says_of_itself_arrives() -> None:
    reached: list[Any] = []
    params = {
        "tenant": "a tenant",
        "message": {**MESSAGE, "contextId": "c", "extensions": ["https://x.example/v1"], "referenceTaskIds": ["t-1"]},
        "configuration": {"acceptedOutputModes": ["text/plain; charset=utf-8", "image/*", "text"], "historyLength": 3},
        "metadata": {"trace": "one"},
    }

    async def run() -> None:
        answer = {"message": {"messageId": "n", "parts": [{"text": "hi", "filename": "a (1).txt"}]}}
        async with relay_before(lambda request: reached.append(request) or single_reply(answer)) as relay:
            rpc_method = METHOD_BY_RPC_NAME["SendMessage"]
            await relay.answer(
                client_call(relay, strict_schema.convert_strict(params, rpc_method.value.params_type), rpc_method)
            )

    asyncio.run(run())
    assert reached[0]["params"] == params


def test_an_agent_that_streams_its_words_one_by_one_is_heard() -> None:
    words = [chunk(f"word{number} ", append=number > 0) for number in range(1_000)]
    seen, refused = client_events(status(), *words, status("COMPLETED"))
    assert refused is None
    assert len(seen) == 1_002


class RateLimitOnceBackend(RuleBackend):
    """Backend that refuses the agent's second status once as too fast."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        verdict = await super().intercept(message, sender)
        if self.refused or message.payload.get("text") != "step 2":
            return verdict
        self.refused += 1
        details = {"code": "QWED-SYS-001", "retry_after": 1}
        return replace(
            verdict, status=VerdictStatus.BLOCKED, engine_used=EngineName.TRUST_BOUNDARY, reason="fast", details=details
        )


def test_an_agent_may_say_how_far_it_is_as_often_as_it_likes_and_is_slowed_where_it_is_too_fast() -> None:
    backend = RateLimitOnceBackend()
    seen: list[StreamResponse] = []

    async def run() -> None:
        statuses = [status(text=f"step {number}") for number in range(1, 4)]
        async with relay_before(lambda _: stream_reply(*statuses, status("COMPLETED", "done")), backend) as relay:
            await collect_events(relay, client_call(relay, send_params(context_id="c")), seen)

    asyncio.run(run())
    assert (len(seen), backend.refused) == (4, 1)
    turns = [(item.message.payload.get("text"), bool(item.message.metadata)) for item in backend.messages]
    steps = [("step 1", False), ("step 2", False), ("step 2", False), ("step 3", False)]
    assert turns == [("hello", True), *steps, ("done", True)]


def test_what_is_large_is_read_beside_the_loop_and_what_is_small_is_not() -> None:
    def has_parsing_thread() -> bool:
        return any("a2a-parse" in thread.name for thread in threading.enumerate())

    async def run(text: str) -> bool:
        answer = {"message": {"messageId": "n", "parts": [{"text": "hi"}]}}
        async with relay_before(lambda _: single_reply(answer)) as relay:
            await relay.answer(client_call(relay, send_params(text), METHOD_BY_RPC_NAME["SendMessage"]))
            return has_parsing_thread()

    assert not asyncio.run(run("word " * 1_000))
    assert asyncio.run(run("word " * 10_000))


def test_so_many_are_read_at_once_and_each_sender_in_its_turn() -> None:
    started: list[str] = []

    async def run() -> None:
        pool, gate, first = new_parsing_pool(1), threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(name: str) -> None:
            started.append(name)
            loop.call_soon_threadsafe(first.set)
            gate.wait(20)

        names = ("greedy", "greedy", "greedy", "modest")
        tasks = [asyncio.create_task(pool.run(name, work, name, size=LARGE_BYTES)) for name in names]
        await first.wait()
        assert await pool.run("small", lambda: "at once", size=1) == "at once"
        assert started == ["greedy"]
        gate.set()
        await asyncio.gather(*tasks)
        pool.close()

    asyncio.run(run())
    assert started.index("modest") < 3
