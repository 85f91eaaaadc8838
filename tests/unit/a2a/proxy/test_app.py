"""Application of the proxy: limits on concurrency, and its answers to internal errors."""

import asyncio
from typing import Any

import msgspec
import pytest

from qwed.proxies.backend import Identity
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy import app
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_a2a.verdict import VerificationVerdict
from tests.support.a2a_agents import make_card
from tests.support.a2a_proxies import FakeCardRegistry, RuleBackend
from tests.support.a2a_raw import proxy_client, single_reply, stream_reply

PUBLIC = "http://proxy.example:9000"


def scope(path: str, method: str = "POST") -> dict[str, Any]:
    headers = [(b"host", b"proxy.example:9000"), (b"a2a-version", b"1.0")]
    return {"type": "http", "method": method, "raw_path": path.encode(), "query_string": b"", "headers": headers}


def test_more_calls_than_there_is_room_for_are_told_to_come_back() -> None:
    async def run() -> list[Any]:
        options = A2AProxyOptions(name="clerk", upstream="http://127.0.0.1:1", public_url=PUBLIC, principal_id="tests")
        proxy = app.proxy_app(RuleBackend(), FakeCardRegistry(make_card("http://127.0.0.1:1"), PUBLIC), options)
        sent: list[Any] = []

        async def never() -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        waiting = [asyncio.create_task(proxy(scope("/"), never, send)) for _ in range(app.MAX_CALLS)]
        await asyncio.sleep(0)
        await proxy(scope("/message:send"), never, send)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await proxy(scope("/.well-known/jwks.json", "GET"), never, send)
        return sent

    refused, _, jwks, _ = asyncio.run(run())
    assert refused["status"] == 503
    assert (b"retry-after", b"1") in refused["headers"]
    assert jwks["status"] == 200


class BrokenBackend(RuleBackend):
    """Backend that raises on the text `break`."""

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        if "break" in str(message.payload):
            raise ZeroDivisionError(f"a secret: {message.payload}")
        return await super().intercept(message, sender)


def send_body(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def answers(*requests: tuple[str, Any], reply: bytes = b"") -> list[tuple[int, str]]:
    """Return status and body of each answer of a proxy with a broken backend."""

    async def run() -> list[tuple[int, str]]:
        async with proxy_client(lambda _: reply, BrokenBackend()) as client:
            responses = [await client.post(path, json=body) for path, body in requests]
            return [(response.status_code, response.text) for response in responses]

    return asyncio.run(run())


def test_whatever_a_kernel_breaks_with_is_a_typed_error_and_a_line_without_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    results = answers(
        ("/", rpc("SendMessage", send_body("break"))),
        ("/", rpc("SendStreamingMessage", send_body("break"))),
        ("/", rpc("message/send", {"message": {**send_body("")["message"], "role": "user", "kind": "message",
                                               "parts": [{"kind": "text", "text": "break"}]}})),
        ("/message:send", send_body("break")),
        ("/message:stream", send_body("break")),
    )  # fmt: skip
    assert [status for status, _ in results] == [200, 200, 200, 500, 500]
    assert all('"code":-32603' in body and '"id":7' in body for _, body in results[:3])
    assert all('"INTERNAL_ERROR"' in body for _, body in results[3:])
    assert "secret" not in str(results)
    assert caplog.text.count("a2a proxy call failed, nothing was forwarded: ZeroDivisionError at") == 5
    assert "secret" not in caplog.text


def test_where_it_breaks_in_mid_stream_the_stream_ends_with_an_error() -> None:
    reply = stream_reply(*({"message": {"messageId": text, "parts": [{"text": text}]}} for text in ("hi", "break")))
    [(status, body)] = answers(("/message:stream", send_body("hello")), reply=reply)
    assert status == 200
    assert "hi" in body
    assert body.count("event: error") == 1
    assert body.endswith("\n\n")


def test_an_address_with_parameters_without_end_is_refused_by_name() -> None:
    async def run() -> Any:
        async with proxy_client(lambda _: b"") as client:
            return await client.get("/tasks?" + "&".join(f"p{number}=1" for number in range(100)))

    answer = asyncio.run(run())
    assert answer.status_code == 400
    assert "more parameters than any method" in answer.text


def test_streams_that_go_on_leave_room_for_whoever_only_wants_an_answer() -> None:
    async def run() -> tuple[Any, Any]:
        ends = asyncio.Event()

        async def reply(request: dict[str, Any]) -> bytes:
            if request["method"] == "SendStreamingMessage":
                await ends.wait()
            return single_reply({"message": {"messageId": "n", "parts": [{"text": "hi"}]}})

        async with proxy_client(reply) as client:
            streams = [
                asyncio.create_task(client.post("/message:stream", json=send_body("hello")))
                for _ in range(app.MAX_STREAMS + 1)
            ]
            [refused], waiting = await asyncio.wait(streams, return_when=asyncio.FIRST_COMPLETED)
            answered = await client.post("/message:send", json=send_body("hello"))
            ends.set()
            assert {response.status_code for response in await asyncio.gather(*waiting)} == {200}
            return refused.result(), answered

    refused, answered = asyncio.run(run())
    assert (refused.status_code, answered.status_code) == (503, 200)
    assert refused.headers["retry-after"] == "1"


def test_no_character_of_an_answer_ends_its_line_in_a_stream() -> None:
    odd = "a\u2028b\u2029c\x85d"
    reply = stream_reply({"message": {"messageId": "n", "parts": [{"text": odd}]}})
    [(_, body)] = answers(("/message:stream", send_body("hello")), reply=reply)
    assert len(body.splitlines()) == 2
    assert msgspec.json.decode(body.removeprefix("data: "))["message"]["parts"][0]["text"] == odd
