"""Server-side fast path: calls that bypass the MCP session."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import JSONRPCRequest

from qwed_mcp.proxy.framing import message_streams
from qwed_mcp.proxy.output_throttle import ReadPacer
from qwed_mcp.proxy.server_fast_path import ServerFastPath

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x"},
}


class Wire:
    """Fake server that records the lines it receives and sends those it is given."""

    def __init__(self, timeout: float = 20.0, envelope: dict[str, Any] | None = None) -> None:
        self.received: list[dict[str, Any]] = []
        self.heard: list[Any] = []
        self._says: asyncio.Queue[bytes] = asyncio.Queue()
        self.streams = message_streams(self._says.get, self._write, ReadPacer())
        self.fast_path = ServerFastPath(self.streams, timeout)
        meta = {} if envelope is None else {"_meta": {**envelope, "progressToken": 7}}
        self.streams.write.on_send(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list", params=meta))

    async def _write(self, data: bytes) -> None:
        self.received.append(json.loads(data))

    def say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self._says.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def leave(self) -> None:
        self._says.put_nowait(b"")

    async def read(self) -> None:
        async for message in self.streams.read:
            self.heard.append(message)


def _with(wire: Callable[[], Wire], do: Callable[[Wire], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        connection = wire()
        async with anyio.create_task_group() as group:
            group.start_soon(connection.read)
            try:
                return await do(connection)
            finally:
                group.cancel_scope.cancel()

    return anyio.run(run)


async def _call(wire: Wire, *answers: dict[str, Any]) -> dict[str, Any]:
    wire.say(*answers)
    return await wire.fast_path.call({"name": "t", "arguments": {"none": None}})


@pytest.mark.parametrize("number", [1_000_000_000, "1000000000"])
def test_the_answer_of_its_number_is_the_result_and_the_rest_is_the_sessions(number: int | str) -> None:
    async def do(wire: Wire) -> None:
        others: list[dict[str, Any]] = [
            {"id": 1, "result": {}},
            {"id": "x", "result": {}},
            {"method": "n"},
            {"id": 1_000_000_001, "result": {}},
        ]
        assert await _call(wire, *others, {"id": number, "result": {"a": [1]}}, {"id": 2, "method": "ping"}) == {
            "a": [1]
        }
        await anyio.wait_all_tasks_blocked()
        assert len(wire.heard) == 5
        sent = {"jsonrpc": "2.0", "id": 1_000_000_000, "method": "tools/call"}
        assert wire.received == [{**sent, "params": {"name": "t", "arguments": {"none": None}}}]

    _with(Wire, do)


def test_a_request_says_of_its_connection_what_those_of_the_session_say() -> None:
    async def do(wire: Wire) -> None:
        await _call(wire, {"id": 1_000_000_000, "result": {}})
        assert wire.received[0]["params"]["_meta"] == ENVELOPE

    _with(lambda: Wire(envelope=ENVELOPE), do)


def test_an_error_is_the_servers_own() -> None:
    async def do(wire: Wire) -> None:
        with pytest.raises(MCPError) as raised:
            await _call(wire, {"id": 1_000_000_000, "error": {"code": -5, "message": "no", "data": [1]}})
        assert (raised.value.error.code, raised.value.error.message, raised.value.error.data) == (-5, "no", [1])

    _with(Wire, do)


def test_a_server_that_leaves_ends_the_calls_and_takes_no_more() -> None:
    async def do(wire: Wire) -> None:
        assert wire.fast_path.is_ready
        wire.leave()
        with pytest.raises(MCPError, match="Connection closed"):
            await _call(wire)
        assert not wire.fast_path.is_ready

    _with(Wire, do)


def test_a_server_that_does_not_answer_is_told_that_nobody_waits() -> None:
    async def do(wire: Wire) -> None:
        with pytest.raises(TimeoutError):
            await _call(wire)
        reason = {"requestId": 1_000_000_000, "reason": "timed out after 0.01s"}
        assert wire.received[1] == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": reason}

    _with(lambda: Wire(timeout=0.01), do)


def test_a_call_that_is_given_up_is_cancelled_and_a_late_answer_is_nobodys() -> None:
    async def do(wire: Wire) -> None:
        with anyio.move_on_after(0.01):
            await _call(wire)
        assert wire.received[1]["params"] == {"requestId": 1_000_000_000, "reason": "caller cancelled"}
        assert (
            await _call(wire, {"id": 1_000_000_000, "result": {"late": 1}}, {"id": 1_000_000_001, "result": {}}) == {}
        )
        assert len(wire.heard) == 1

    _with(Wire, do)


def test_before_the_tools_were_listed_nothing_goes_this_way() -> None:
    async def do() -> None:
        async def nothing(*_: Any) -> bytes:
            return b""

        assert not ServerFastPath(message_streams(nothing, nothing, ReadPacer()), 1.0).is_ready  # type: ignore[arg-type]  # it is never written to

    anyio.run(do)
