"""JSON-RPC messages as lines of bytes: read and written without a thread, and none longer than is said."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

LONGEST_LINE = 32 << 20
"""Bytes of one message: images come in them."""
_QUEUED = 16
log = logging.getLogger(__name__)

Read = Callable[[], Awaitable[bytes]]
"""Some bytes, or none at the end."""
Write = Callable[[bytes], Awaitable[None]]
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


class TooLong(ValueError):
    """A line that is longer than any message may be."""


class Streams(NamedTuple):
    """What a session of the protocol reads from and writes to."""

    read: MemoryObjectReceiveStream[SessionMessage | Exception]
    write: MemoryObjectSendStream[SessionMessage]


class Splitter:
    """Bytes as they come, lines as they end."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this piece; TooLong where one would not."""
        *ended, rest = chunk.split(b"\n")
        lines = []
        for piece in ended:
            self._keep(piece)
            lines.append(b"".join(self._parts))
            self._parts, self._held = [], 0
        self._keep(rest)
        return lines

    def _keep(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._longest:
            raise TooLong(f"a message is longer than {self._longest} bytes")
        if piece:
            self._parts.append(piece)


@asynccontextmanager
async def framed(read: Read, write: Write) -> AsyncIterator[Streams]:
    """The messages of two byte streams. Whatever breaks one of them is to the session the end of its peer."""
    inward, reading = anyio.create_memory_object_stream[SessionMessage | Exception](_QUEUED)
    writing, outward = anyio.create_memory_object_stream[SessionMessage](_QUEUED)
    async with anyio.create_task_group() as group:
        group.start_soon(_receive, read, inward)
        group.start_soon(_send, write, outward, inward)
        try:
            yield Streams(reading, writing)
        finally:
            writing.close()
            await _flushed(outward, group)
            reading.close()


async def _flushed(outward: MemoryObjectReceiveStream[SessionMessage], group: TaskGroup) -> None:
    """Let what was answered reach the peer, for a moment; then nobody reads or writes any more."""
    with anyio.move_on_after(1, shield=True):
        while outward.statistics().open_receive_streams:  # noqa: ASYNC110 - the stream has no event for it
            await anyio.sleep(0.005)
    group.cancel_scope.cancel()


async def _receive(read: Read, inward: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    splitter = Splitter()
    async with inward:
        try:
            while chunk := await read():
                for line in splitter.feed(chunk):
                    await inward.send(_message(line))
        except TooLong as error:
            log.warning("%s: the connection is closed", error)
        except _GONE:
            log.debug("the peer is gone")


def _message(line: bytes) -> SessionMessage | Exception:
    """The message; what is none is a value, so that one bad line is not the end of the connection."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _send(
    write: Write,
    outward: MemoryObjectReceiveStream[SessionMessage],
    inward: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    async with outward:
        try:
            async for message in outward:
                await write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        except _GONE:
            # Nobody hears us: a session that went on reading would wait for answers to what was never sent.
            await inward.aclose()
