"""Server-sent events as A2A uses them: each is one JSON value."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from qwed.http_client.pool import HttpError

_LINES_PER_YIELD = 500
_LINE_ENDS = (("\x85".encode(), b"\\u0085"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029"))


async def read_events(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the data of each event; raise HttpError if one has more than `max_bytes` bytes."""
    data, lines = bytearray(), count(1)
    async for line in _lines(chunks, max_bytes):
        if next(lines) % _LINES_PER_YIELD == 0:
            # Empty lines are not awaited, and there may be millions of them.
            await asyncio.sleep(0)
        if line.startswith(b"data:"):
            data += line[5:].removeprefix(b" ") + b"\n"
            if len(data) > max_bytes:
                raise HttpError(f"an event of its stream has more than {max_bytes} bytes")
        elif not line and data:
            yield bytes(data[:-1])
            data.clear()


async def _lines(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    buffer, searched = bytearray(), 0
    async for chunk in chunks:
        buffer += chunk
        begin = 0
        # Only new bytes are searched: an agent that sends single bytes must not cost more than another.
        while (end := buffer.find(b"\n", max(begin, searched))) >= 0:
            yield bytes(buffer[begin:end]).rstrip(b"\r")
            begin = end + 1
        if begin:
            del buffer[:begin]
        searched = len(buffer)
        if searched > max_bytes:
            raise HttpError(f"a line of its stream has more than {max_bytes} bytes")


def encode_event(data: bytes, name: bytes = b"") -> bytes:
    """Return one event. Some characters that JSON does not escape end a line for some readers, so they are escaped
    here."""
    for raw, escaped in _LINE_ENDS:
        data = data.replace(raw, escaped)
    return (b"event: %b\n" % name if name else b"") + b"data: %b\n\n" % data
