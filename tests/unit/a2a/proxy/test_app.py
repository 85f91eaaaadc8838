"""The application by itself: how much of it may be under way at once, and what it says where something goes wrong."""

import asyncio
from typing import Any

import msgspec
import pytest

from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy import app
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.proxy.options import Options
from qwed_a2a.verdict import VerificationVerdict
from tests.support.a2a_agents import card_of
from tests.support.a2a_proxies import Book, Rules
from tests.support.a2a_raw import proxying, said_as_one, said_at_once

PUBLIC = "http://proxy.example:9000"


def scope(path: str, method: str = "POST") -> dict[str, Any]:
    headers = [(b"host", b"proxy.example:9000"), (b"a2a-version", b"1.0")]
    return {"type": "http", "method": method, "raw_path": path.encode(), "query_string": b"", "headers": headers}


def test_more_calls_than_there_is_room_for_are_told_to_come_back() -> None:
    async def run() -> list[Any]:
        options = Options(name="clerk", upstream="http://127.0.0.1:1", public_url=PUBLIC, principal_id="tests")
        proxy = app.proxy_app(Rules(), Book(card_of("http://127.0.0.1:1"), PUBLIC), options)
        said: list[Any] = []

        async def never() -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            said.append(message)

        waiting = [asyncio.create_task(proxy(scope("/"), never, send)) for _ in range(app.MOST_AT_ONCE)]
        await asyncio.sleep(0)
        await proxy(scope("/message:send"), never, send)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await proxy(scope("/.well-known/jwks.json", "GET"), never, send)
        return said

    refused, _, shown, _ = asyncio.run(run())
    assert refused["status"] == 503
    assert (b"retry-after", b"1") in refused["headers"]
    assert shown["status"] == 200


class Broken(Rules):
    """A kernel that breaks where it is told `break`."""

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
        if "break" in str(message.payload):
            raise ZeroDivisionError(f"a secret: {message.payload}")
        return await super().intercept(message, sender)


def spoken(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def answers(*asked: tuple[str, Any], said: bytes = b"") -> list[tuple[int, str]]:
    """The status and the body of each answer of a proxy whose kernel breaks."""

    async def run() -> list[tuple[int, str]]:
        async with proxying(lambda _: said, Broken()) as client:
            found = [await client.post(path, json=body) for path, body in asked]
            return [(each.status_code, each.text) for each in found]

    return asyncio.run(run())


def test_whatever_a_kernel_breaks_with_is_a_typed_error_and_a_line_without_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = answers(
        ("/", rpc("SendMessage", spoken("break"))),
        ("/", rpc("SendStreamingMessage", spoken("break"))),
        ("/", rpc("message/send", {"message": {**spoken("")["message"], "role": "user", "kind": "message",
                                               "parts": [{"kind": "text", "text": "break"}]}})),
        ("/message:send", spoken("break")),
        ("/message:stream", spoken("break")),
    )  # fmt: skip
    assert [status for status, _ in found] == [200, 200, 200, 500, 500]
    assert all('"code":-32603' in body and '"id":7' in body for _, body in found[:3])
    assert all('"INTERNAL_ERROR"' in body for _, body in found[3:])
    assert "secret" not in str(found)
    assert caplog.text.count("a call ended in ZeroDivisionError at") == 5
    assert "secret" not in caplog.text


def test_where_it_breaks_in_mid_stream_the_stream_ends_with_an_error() -> None:
    said = said_at_once(*({"message": {"messageId": each, "parts": [{"text": each}]}} for each in ("hi", "break")))
    [(status, body)] = answers(("/message:stream", spoken("hello")), said=said)
    assert status == 200
    assert "hi" in body
    assert body.count("event: error") == 1
    assert body.endswith("\n\n")


def test_an_address_with_parameters_without_end_is_refused_by_name() -> None:
    async def run() -> Any:
        async with proxying(lambda _: b"") as client:
            return await client.get("/tasks?" + "&".join(f"p{number}=1" for number in range(100)))

    answer = asyncio.run(run())
    assert answer.status_code == 400
    assert "more parameters than any call" in answer.text


def test_streams_that_go_on_leave_room_for_whoever_only_wants_an_answer() -> None:
    async def run() -> tuple[Any, Any]:
        ends = asyncio.Event()

        async def said(asked: dict[str, Any]) -> bytes:
            if asked["method"] == "SendStreamingMessage":
                await ends.wait()
            return said_as_one({"message": {"messageId": "n", "parts": [{"text": "hi"}]}})

        async with proxying(said) as client:
            streams = [
                asyncio.create_task(client.post("/message:stream", json=spoken("hello")))
                for _ in range(app.MOST_STREAMS + 1)
            ]
            [refused], waiting = await asyncio.wait(streams, return_when=asyncio.FIRST_COMPLETED)
            answered = await client.post("/message:send", json=spoken("hello"))
            ends.set()
            assert {each.status_code for each in await asyncio.gather(*waiting)} == {200}
            return refused.result(), answered

    refused, answered = asyncio.run(run())
    assert (refused.status_code, answered.status_code) == (503, 200)
    assert refused.headers["retry-after"] == "1"


def test_no_character_of_an_answer_ends_its_line_in_a_stream() -> None:
    odd = "a\u2028b\u2029c\x85d"
    said = said_at_once({"message": {"messageId": "n", "parts": [{"text": odd}]}})
    [(_, body)] = answers(("/message:stream", spoken("hello")), said=said)
    assert len(body.splitlines()) == 2
    assert msgspec.json.decode(body.removeprefix("data: "))["message"]["parts"][0]["text"] == odd
