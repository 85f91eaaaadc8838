"""Standard input and output of the proxy as message streams."""

import asyncio
import os
import stat
import threading

from qwed_mcp.proxy.framing import MessageStreams, WriteBytes, message_streams
from qwed_mcp.proxy.output_throttle import ReadPacer

_READ_BYTES = 1 << 16


async def open_standard_streams() -> MessageStreams:
    """Return the client's message streams; nothing else may read standard input or write standard output."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Output that a library prints would be mixed with the messages.
    os.dup2(2, 1)
    reader, write = await _open_reader(source), await _open_writer(sink)

    async def read() -> bytes:
        return await reader.read(_READ_BYTES)

    return message_streams(read, write, ReadPacer())


async def _open_reader(source: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = source if _is_pipe(source) else _pump_into_pipe(source)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(pipe, "rb", 0))
    return reader


async def _open_writer(sink: int) -> WriteBytes:
    if not _is_pipe(sink):
        return _blocking_writer(sink)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb", 0))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    return write


def _is_pipe(number: int) -> bool:
    """Return True if the event loop can wait for the descriptor without side effects on other processes."""
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _pump_into_pipe(source: int) -> int:
    """Return a pipe that a thread fills from a file or a terminal."""
    outlet, inlet = os.pipe()

    def pump() -> None:
        with os.fdopen(inlet, "wb", 0) as pipe:
            while data := os.read(source, _READ_BYTES):
                pipe.write(data)

    threading.Thread(target=pump, name="standard-input", daemon=True).start()
    return outlet


def _blocking_writer(sink: int) -> WriteBytes:
    async def write(data: bytes) -> None:
        while data:
            data = data[os.write(sink, data) :]

    return write
