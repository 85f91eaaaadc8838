"""Our own standard input and output as the streams of a session."""

import asyncio
import os
import stat
import threading

from qwed_mcp.proxy.lines import Streams, Write, framed
from qwed_mcp.proxy.pace import Turns

_PIECE = 1 << 16


async def standard_streams() -> Streams:
    """The client's messages. Meanwhile nothing else reads standard input or writes to standard output."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # What a library prints would stand among the messages.
    os.dup2(2, 1)
    reader, write = await _reader(source), await _writer(sink)

    async def read() -> bytes:
        return await reader.read(_PIECE)

    return framed(read, write, Turns())


async def _reader(source: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = source if _is_pipe(source) else _pumped(source)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(pipe, "rb", 0))
    return reader


async def _writer(sink: int) -> Write:
    if not _is_pipe(sink):
        return _written_to(sink)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb", 0))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    return write


def _is_pipe(number: int) -> bool:
    """Whether an event loop can wait for it, and nobody else is disturbed by that."""
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _pumped(source: int) -> int:
    """A pipe with all that a file or a terminal has to say."""
    outlet, inlet = os.pipe()

    def pump() -> None:
        with os.fdopen(inlet, "wb", 0) as pipe:
            while data := os.read(source, _PIECE):
                pipe.write(data)

    threading.Thread(target=pump, name="standard-input", daemon=True).start()
    return outlet


def _written_to(sink: int) -> Write:
    async def write(data: bytes) -> None:
        while data:
            data = data[os.write(sink, data) :]

    return write
