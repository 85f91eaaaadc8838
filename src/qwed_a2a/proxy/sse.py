"""Server-sent events, as far as A2A has them: each is one JSON value."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from qwed_a2a.proxy.line import Broken

_TURN = 500
_LINE_ENDS = (("\x85".encode(), b"\\u0085"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029"))


async def events(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """The data of each event; Broken where one has more than `most` bytes."""
    data, lines = bytearray(), count(1)
    async for line in _lines(chunks, most):
        if next(lines) % _TURN == 0:
            # Lines that say nothing are not waited for, and there may be millions of them.
            await asyncio.sleep(0)
        if line.startswith(b"data:"):
            data += line[5:].removeprefix(b" ") + b"\n"
            if len(data) > most:
                raise Broken(f"an event of its stream has more than {most} bytes")
        elif not line and data:
            yield bytes(data[:-1])
            data.clear()


async def _lines(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    held, searched = bytearray(), 0
    async for chunk in chunks:
        held += chunk
        begin = 0
        # Only what is new is searched: an agent that sends a byte at a time must not cost more than one that does not.
        while (end := held.find(b"\n", max(begin, searched))) >= 0:
            yield bytes(held[begin:end]).rstrip(b"\r")
            begin = end + 1
        if begin:
            del held[:begin]
        searched = len(held)
        if searched > most:
            raise Broken(f"a line of its stream has more than {most} bytes")


def event(data: bytes, name: bytes = b"") -> bytes:
    """One event. JSON leaves some characters as they are that end a line for some readers, and with it the event."""
    for raw, escaped in _LINE_ENDS:
        data = data.replace(raw, escaped)
    return (b"event: %b\n" % name if name else b"") + b"data: %b\n\n" % data
