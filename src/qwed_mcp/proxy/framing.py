"""Newline-delimited JSON-RPC framing with a size limit per message."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from qwed_mcp.proxy.output_throttle import ReadPacer

MAX_MESSAGE_BYTES = 32 << 20
"""Largest message; messages may contain images."""
MAX_UNREAD_RESPONSES = 100
"""Largest number of unread responses; a peer that sends more requests without reading exhausts memory."""
log = logging.getLogger(__name__)

ReadBytes = Callable[[], Awaitable[bytes]]
"""Returns some bytes, or none at the end."""
WriteBytes = Callable[[bytes], Awaitable[None]]


class MessageTooLongError(ValueError):
    """A line exceeds the message size limit."""


class LineSplitter:
    """Splits a byte stream into lines."""

    def __init__(self, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._buffered = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this chunk; raise MessageTooLongError for a line above the limit."""
        *complete, rest = chunk.split(b"\n")
        lines = []
        for piece in complete:
            self._append(piece)
            lines.append(b"".join(self._parts))
            self._parts, self._buffered = [], 0
        self._append(rest)
        return lines

    def _append(self, piece: bytes) -> None:
        self._buffered += len(piece)
        if self._buffered > self._max_bytes:
            raise MessageTooLongError(f"a message is longer than {self._max_bytes} bytes")
        if piece:
            self._parts.append(piece)


class _Stream:
    """Base of the reader and the writer: a closable stream."""

    closed = False

    async def aclose(self) -> None:
        """Close the stream."""
        self.closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class MessageReader(_Stream):
    """Stream of incoming messages, read without a task and a queue, which would cost more per call than reading."""

    def __init__(self, read: ReadBytes, pacer: ReadPacer) -> None:
        self._read = read
        self._pacer = pacer
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; a malformed line is returned as an error and does not end the connection."""
        while not self._lines:
            await self._read_more()
        await self._pacer.before_read(len(self._lines[0]))
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(self._lines.popleft(), by_name=False))
        except ValueError as error:
            return error

    async def _read_more(self) -> None:
        if self.closed:
            raise anyio.ClosedResourceError
        try:
            chunk = await self._read()
            self._lines.extend(self._splitter.feed(chunk))
        except (OSError, MessageTooLongError) as error:
            log.warning("mcp proxy connection closed: %s", error)
            chunk = b""
        if not chunk:
            await self.aclose()
            raise anyio.EndOfStream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise StopAsyncIteration from None


class MessageWriter(_Stream):
    """Stream of outgoing messages."""

    def __init__(self, write: WriteBytes, pacer: ReadPacer) -> None:
        self._write = write
        self._pacer = pacer
        self._unread = 0

    async def send(self, item: SessionMessage) -> None:
        """Write a message; raise BrokenResourceError if the peer has closed the stream."""
        if self.closed:
            raise anyio.ClosedResourceError
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            await self._send_response(data)
        else:
            self._pacer.on_message_sent()
            await self._write_bytes(data)

    async def _send_response(self, data: bytes) -> None:
        if self._unread >= MAX_UNREAD_RESPONSES:
            log.warning("mcp proxy connection closed: %s unread responses", self._unread)
            self.closed = True
            raise anyio.BrokenResourceError
        self._unread += 1
        try:
            await self._write_bytes(data)
        finally:
            self._unread -= 1

    async def _write_bytes(self, data: bytes) -> None:
        try:
            await self._write(data)
        except OSError:
            self.closed = True
            raise anyio.BrokenResourceError from None


class MessageStreams(NamedTuple):
    """Streams of an MCP session."""

    read: MessageReader
    write: MessageWriter


def message_streams(read: ReadBytes, write: WriteBytes, pacer: ReadPacer) -> MessageStreams:
    """Frame two byte streams as message streams, paced by `pacer`."""
    return MessageStreams(MessageReader(read, pacer), MessageWriter(write, pacer))
