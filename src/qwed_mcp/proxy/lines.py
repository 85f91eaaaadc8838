"""JSON-RPC messages as lines of bytes: read and written where they are used, and none longer than is said."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

from qwed_mcp.proxy.pace import Turns

LONGEST_LINE = 32 << 20
"""Bytes of one message: images come in them."""
MOST_UNHEARD = 100
"""Answers that wait until they are read: whoever asks more, and reads none, only wants our memory."""
log = logging.getLogger(__name__)

Read = Callable[[], Awaitable[bytes]]
"""Some bytes, or none at the end."""
Write = Callable[[bytes], Awaitable[None]]
Takes = Callable[[JSONRPCMessage], bool]
"""Whether a message was for somebody else than the session that reads."""


class TooLong(ValueError):
    """A line that is longer than any message may be."""


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


class _Stream:
    """What both have: they end when somebody closes them."""

    closed = False

    async def aclose(self) -> None:
        """Read or write no more."""
        self.closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Reading(_Stream):
    """Messages as they come. Not a task and a queue: each would cost a call more than reading it."""

    def __init__(self, read: Read, turns: Turns) -> None:
        self._read = read
        self._turns = turns
        self._splitter = Splitter()
        self._lines: deque[bytes] = deque()
        self.takes: Takes = lambda _: False
        self.ended: Callable[[], None] = lambda: None

    async def receive(self) -> SessionMessage | Exception:
        """The next message; what is none is a value, so that one bad line is not the end of the connection."""
        while True:
            while not self._lines:
                await self._more()
            await self._turns.before(len(self._lines[0]))
            try:
                message = jsonrpc_message_adapter.validate_json(self._lines.popleft(), by_name=False)
            except ValueError as error:
                return error
            if not self.takes(message):
                return SessionMessage(message)

    async def aclose(self) -> None:
        """Read no more."""
        await super().aclose()
        self.ended()

    async def _more(self) -> None:
        if self.closed:
            raise anyio.ClosedResourceError
        try:
            chunk = await self._read()
            self._lines.extend(self._splitter.feed(chunk))
        except (OSError, TooLong) as error:
            log.warning("the connection is closed: %s", error)
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


class Writing(_Stream):
    """Messages on their way."""

    def __init__(self, write: Write, turns: Turns) -> None:
        self._write = write
        self._turns = turns
        self._unheard = 0
        self.saw: Callable[[JSONRPCMessage], None] = lambda _: None

    async def send(self, item: SessionMessage) -> None:
        """Write one; BrokenResourceError where nobody reads any more."""
        if self.closed:
            raise anyio.ClosedResourceError
        self.saw(item.message)
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            await self._answer(data)
        else:
            self._turns.spoken_to()
            await self._written(data)

    async def _answer(self, data: bytes) -> None:
        if self._unheard >= MOST_UNHEARD:
            log.warning("the connection is closed: %s answers wait to be read", self._unheard)
            self.closed = True
            raise anyio.BrokenResourceError
        self._unheard += 1
        try:
            await self._written(data)
        finally:
            self._unheard -= 1

    async def _written(self, data: bytes) -> None:
        try:
            await self._write(data)
        except OSError:
            self.closed = True
            raise anyio.BrokenResourceError from None


class Streams(NamedTuple):
    """What a session of the protocol reads from and writes to."""

    read: Reading
    write: Writing


def framed(read: Read, write: Write, turns: Turns) -> Streams:
    """The messages of two byte streams, each read when it is its turn."""
    return Streams(Reading(read, turns), Writing(write, turns))
