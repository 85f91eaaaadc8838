"""Agents that are down, slow, broken or endless: each gets its error, and their text is not quoted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import pytest

from qwed.http_client.pool import Headers
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import A2AMessage, A2APart, GetTask, ListTasks, SendMessage
from qwed_a2a.proxy.methods import A2AMethod
from qwed_a2a.proxy.upstream import REST, RPC, UpstreamAgent, UpstreamEndpoint, UpstreamLimits

T = TypeVar("T")
SECRET = "a secret of the agent"
BOUNDS = UpstreamLimits(seconds=20, stream_seconds=30, answer_bytes=2_000, stream_bytes=6_000)
SOON = UpstreamLimits(seconds=0.05, stream_seconds=2, answer_bytes=2_000, stream_bytes=6_000)
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answer(body: str, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n{body}".encode()


@asynccontextmanager
async def agent(
    serve: Serve,
    binding: str = RPC,
    path: str = "/rpc",
    more: Headers = (),
    limits: UpstreamLimits = BOUNDS,
    tenant: str = "",
) -> AsyncIterator[UpstreamAgent]:
    """Yield a client for an agent that serves each connection with this function."""
    writers: list[asyncio.StreamWriter] = []
    tasks: list[asyncio.Task[None]] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]  # there is one
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    upstream = UpstreamAgent(
        UpstreamEndpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}", binding, tenant), limits, more
    )
    try:
        yield upstream
    finally:
        upstream.close()
        server.close()
        await asyncio.gather(*tasks)
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def with_agent(
    reply: bytes,
    ask: Callable[[UpstreamAgent], Coroutine[Any, Any, T]],
    binding: str = RPC,
    limits: UpstreamLimits = BOUNDS,
) -> T:
    """Return the result of `ask` with an agent that always sends this; after dots it is silent, else it disconnects."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        if not reply.endswith(b"..."):
            writer.close()

    async def run() -> T:
        async with agent(serve, binding, limits=limits) as upstream:
            return await ask(upstream)

    return asyncio.run(run())


async def task_of(upstream: UpstreamAgent) -> Any:
    return await upstream.call(A2AMethod.GET, GetTask(id="t"), ())


async def events_of(upstream: UpstreamAgent) -> list[Any]:
    message = SendMessage(message=A2AMessage(parts=(A2APart(text="x"),)))
    return [event async for event in upstream.stream(A2AMethod.STREAM, message, ())]


def result(value: str) -> str:
    return f'{{"jsonrpc":"2.0","id":1,"result":{value}}}'


WRONG = [
    (answer(SECRET), "its answer is not A2A 1.0"),
    (answer(SECRET, "500 Oh"), "HTTP status 500"),
    (answer(result("{}"), "302 Found", more="location: http://127.0.0.1:1/\r\n"), "HTTP status 302"),
    (answer(f'"{SECRET}"'), "its answer is not A2A 1.0"),
    (answer(result(f'{{"id":5,"x":"{SECRET}"}}')), "its answer is not A2A 1.0"),
    (answer(result(f'{{"status":{{"state":"{SECRET}"}}}}')), "its answer is not A2A 1.0"),
    (answer('{"result":{},"result":{}}'), "its answer is not A2A 1.0"),
    (answer('{"jsonrpc":"2.0","id":1}'), "its answer is not A2A 1.0"),
    (answer(result("{}"), more="content-encoding: gzip\r\n"), "it compresses its answers"),
    (answer(result('{"id":"' + "x" * 3_000 + '"}')), "its answer has more than 2000 bytes"),
    (b"HTTP/1.1 200 OK\r\n" + b"x-long: " + b"y" * 70_000, "too many headers"),
    (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "too many headers"),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000, "too many headers"),
    (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"y" * 90_000, "too many headers"),
    (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"y" * 90_000, "too many headers"),
    (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n{}", "its answer is not HTTP"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ", "its answer is not HTTP"),
    (b"HTTP/1.1 200 OK\r\nx: y\r\n z\r\ncontent-length: 2\r\n\r\n{}", "its answer is not"),
    (b"HTTP/1.1 204 None\r\ncontent-length: 2\r\n\r\n{}", "HTTP status 204"),
    (b"HTTP/1.1 304 Same\r\n\r\n" + SECRET.encode(), "HTTP status 304"),
    (f"{SECRET}\r\n\r\n".encode(), "its answer is not HTTP"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{", "ended early"),
    (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{", "ended early"),
    (b"", "ended early"),
    (b"HTTP/1.1 101 Up\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "another protocol than HTTP"),
]


@pytest.mark.parametrize(("reply", "reason"), WRONG)
def test_an_answer_that_is_none_is_named_and_not_repeated(reply: bytes, reason: str) -> None:
    with pytest.raises(CallRefusedError) as refused:
        with_agent(reply, task_of)
    assert refused.value.error_kind is ErrorKind.INVALID_AGENT_RESPONSE
    assert reason in refused.value.message
    assert SECRET not in repr((refused.value.message, refused.value.data))


@pytest.mark.parametrize("reply", [b"HTTP/1.1 200 OK\r\n...", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{..."])
def test_an_agent_that_does_not_go_on_is_not_waited_for(reply: bytes) -> None:
    with pytest.raises(CallRefusedError, match=r"did not answer within 0\.05 seconds") as refused:
        with_agent(reply, task_of, limits=SOON)
    assert refused.value.http == 504


def test_an_agent_that_is_not_there_is_named() -> None:
    async def run() -> None:
        await task_of(UpstreamAgent(UpstreamEndpoint("http://127.0.0.1:9/", RPC), BOUNDS))

    with pytest.raises(CallRefusedError, match="it is not reachable: ConnectionRefusedError") as refused:
        asyncio.run(run())
    assert refused.value.http == 502


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    task = with_agent(b"HTTP/1.0 200 OK\r\n\r\n" + result('{"id":"t"}').encode(), task_of)
    assert task.id == "t"


def test_a_head_and_a_large_body_may_come_as_one() -> None:
    async def run() -> Any:
        reply = answer(result('{"id":"t"' + " " * 200_000 + "}"))

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply)
            await writer.drain()

        async with agent(serve, limits=UpstreamLimits(seconds=5)) as upstream:
            return await task_of(upstream)

    assert asyncio.run(run()).id == "t"


def test_a_body_may_come_a_byte_at_a_time() -> None:
    body = result('{"id":"t"}').encode()
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body * 40)
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    with pytest.raises(CallRefusedError, match="not A2A"):
        with_agent(head + pieces + b"0\r\n\r\n", task_of)
    whole = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    assert with_agent(head + whole + b"0\r\nx-trailer: y\r\n\r\n", task_of).id == "t"


def test_members_that_nobody_knows_do_not_pass() -> None:
    task = with_agent(answer(result('{"id":"t","extra":{"hidden":1},"status":{"mood":"good"}}')), task_of)
    assert task.id == "t"
    assert not hasattr(task, "extra")


ERRORS = [
    ('{"error":{"code":-32001,"message":"a secret of the agent","data":["a secret of the agent"]}}', "TASK_NOT_FOUND"),
    ('{"error":{"code":-32099,"message":"a secret of the agent"}}', "INTERNAL_ERROR"),
    ('{"error":{"code":-32602,"message":"a secret of the agent"}}', "INVALID_PARAMS"),
]


@pytest.mark.parametrize(("body", "kind"), ERRORS)
def test_an_error_of_the_agent_keeps_its_kind_and_loses_its_words(body: str, kind: str) -> None:
    with pytest.raises(CallRefusedError) as refused:
        with_agent(answer(body), task_of)
    assert refused.value.error_kind is ErrorKind[kind]
    assert SECRET not in repr((refused.value.message, refused.value.data))


def test_an_error_of_http_json_keeps_its_kind_and_loses_its_words() -> None:
    info = f'{{"@type":"x","reason":"TASK_NOT_FOUND","metadata":{{"a":"{SECRET}"}}}}'
    body = f'{{"error":{{"code":404,"message":"{SECRET}","details":[{info}]}}}}'
    with pytest.raises(CallRefusedError) as refused:
        with_agent(answer(body, "404 Not Found"), task_of, REST)
    assert refused.value.error_kind is ErrorKind.TASK_NOT_FOUND
    assert SECRET not in repr((refused.value.message, refused.value.data))
    with pytest.raises(CallRefusedError, match="HTTP status 503"):
        with_agent(answer("<html>", "503 Busy", "text/html"), task_of, REST)


def events(*data: str, end: str = "") -> bytes:
    text = "".join(f"data: {item}\r\n\r\n" for item in data) + end
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + text.encode()


MESSAGE = result('{"message":{"messageId":"m","parts":[{"text":"hi"}]}}')


def test_events_come_one_after_another() -> None:
    received = with_agent(events(MESSAGE, MESSAGE, end=": a comment\n\nevent: x\nretry: 5\n\n"), events_of)
    assert [event.message.parts[0].text for event in received] == ["hi", "hi"]


def test_an_event_may_stand_on_several_lines() -> None:
    first, second = MESSAGE[:17], MESSAGE[17:]
    received = with_agent(events(end=f"data:{first}\ndata:{second}\n\n"), events_of)
    assert received[0].message.message_id == "m"


WRONG_STREAMS = [
    (events(SECRET), "its answer is not A2A 1.0"),
    (events(result("{}")), "its answer is not A2A 1.0"),
    (events(end="data: " + "x" * 2_500), "a line of its stream has more than 2000 bytes"),
    (events(end=("data: " + "x" * 500 + "\n") * 6), "an event of its stream has more than 2000 bytes"),
    (events(*[MESSAGE] * 100), "its stream has more than 6000 bytes"),
    (answer(SECRET, "500 Oh", "text/html"), "HTTP status 500"),
    (events(MESSAGE, end="..."), "did not answer within 0.05 seconds"),
]


@pytest.mark.parametrize(("reply", "reason"), WRONG_STREAMS)
def test_a_stream_that_is_none_or_never_ends_is_cut_off(reply: bytes, reason: str) -> None:
    with pytest.raises(CallRefusedError) as refused:
        with_agent(reply, events_of, limits=SOON if reply.endswith(b"...") else BOUNDS)
    assert reason in refused.value.message
    assert SECRET not in repr((refused.value.message, refused.value.data))


def test_a_connection_is_used_again_and_not_one_on_which_more_was_said_than_asked() -> None:
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        forged = answer(result('{"id":"forged"}')) if len(connections) == 1 else b""
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            writer.write(answer(result('{"id":"mine"}')) + forged)

    async def run() -> list[str]:
        async with agent(serve) as upstream:
            return [(await task_of(upstream)).id for _ in range(4)]

    assert asyncio.run(run()) == ["mine"] * 4
    assert len(connections) == 2


def test_what_the_operator_sends_stands_alone() -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer(result("{}"), more="connection: close\r\n"))
        writer.close()

    async def run() -> None:
        async with agent(serve, more=((b"authorization", b"ours"),)) as upstream:
            theirs = ((b"authorization", b"theirs"), (b"x-api-key", b"theirs"))
            await upstream.call(A2AMethod.GET, GetTask(id="t"), theirs)

    asyncio.run(run())
    assert requests[0].count(b"authorization:") == 1
    assert b"authorization: ours\r\n" in requests[0]
    assert b"x-api-key: theirs\r\n" in requests[0]


def test_what_is_asked_in_http_json_is_spelt_in_the_path() -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer("{}", more="connection: close\r\n"))
        writer.close()

    async def run() -> None:
        async with agent(serve, REST, "/base/") as upstream:
            await upstream.call(A2AMethod.GET, GetTask(id="a/../b?x=1\r\nh: i", tenant="te nant", history_length=2), ())
            await upstream.call(A2AMethod.LIST, ListTasks(include_artifacts=True, page_size=3), ())
        async with agent(serve, REST, tenant="tenant-1") as upstream:
            await upstream.call(A2AMethod.GET, GetTask(id="t"), ())
            await upstream.call(A2AMethod.GET, GetTask(id="t", tenant="other"), ())

    asyncio.run(run())
    first, second, third, fourth = (head.split(b"\r\n")[0] for head in requests)
    # The tenant that its card names is named to it, unless the client names one.
    assert third == b"GET /rpc/tenant-1/tasks/t HTTP/1.1"
    assert fourth == b"GET /rpc/other/tasks/t HTTP/1.1"
    assert first == b"GET /base/te%20nant/tasks/a%2F..%2Fb%3Fx%3D1%0D%0Ah%3A%20i?historyLength=2 HTTP/1.1"
    assert second == b"GET /base/tasks?pageSize=3&includeArtifacts=true HTTP/1.1"
