"""Answers sent piece by piece, for as long as the client takes them; a part of one never looks like the whole.

A stream holds no place among the requests being answered. It keeps one piece at a time: the next is made when the
client has taken the one before, so whoever reads slowly slows nobody else.
"""

import asyncio
import logging
import threading
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from time import perf_counter
from typing import Any, Protocol, Self

from qwed.api.body import Receive

Send = Callable[[dict[str, Any]], Awaitable[None]]

WHOLE, LEFT, FAILED, CUT = "whole", "left", "failed", "cut"
ENDS = (WHOLE, LEFT, FAILED, CUT)
"""All was sent; the client left; something failed on our side; the server stopped before it was over."""
PIECE_BYTES = 65_536
"""How much a thread gathers before it is sent."""
PIECE_SECONDS = 0.2
"""How long it gathers where that much does not come."""
_THREADS = 4


class Chunks(Protocol):
    """The bytes of an answer; an async generator is one. `aclose` is awaited however the stream ends, even unbegun."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Broken(Exception):
    """The rest cannot be sent. Raised to the server, which then ends the connection in the middle of the body."""


class Streams:
    """The streams of one application: how many are open, and how the others ended."""

    def __init__(self, log: logging.Logger) -> None:
        self.open = 0
        self.ends: Counter[str] = Counter()
        self._log = log
        self._threads: ThreadPoolExecutor | None = None

    def from_thread(self, pieces: Iterator[bytes]) -> Chunks:
        """Chunks whose pieces are made in threads: none is made ahead, and none waits in a thread for the client."""
        if self._threads is None:
            # Of their own: making a long report must not keep those waiting who need a thread for a decision.
            self._threads = ThreadPoolExecutor(_THREADS, "qwed-stream")
        return _FromThread(pieces, self._threads)

    async def send(self, head: dict[str, Any], chunks: Chunks, receive: Receive, send: Send) -> None:
        """Send the head and every chunk until the client leaves; Broken where the answer cannot be made whole."""
        sending = asyncio.ensure_future(_send_all(send, head, chunks))
        leaving = asyncio.ensure_future(_left(receive))
        end = CUT
        self.open += 1
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            end = _end_of(sending)
        finally:
            self.open -= 1
            self.ends[end] += 1
            await self._let_go(sending, leaving)
            await self._close(chunks)
        if end == FAILED:
            raise Broken("the answer could not be finished")

    async def _let_go(self, sending: asyncio.Future[None], leaving: asyncio.Future[None]) -> None:
        sending.cancel()
        leaving.cancel()
        failure, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(failure, Exception):
            self._report("a stream failed", failure)

    async def _close(self, chunks: Chunks) -> None:
        closing = asyncio.ensure_future(chunks.aclose())
        await asyncio.wait((closing,))
        failure = None if closing.cancelled() else closing.exception()
        if failure is not None:
            self._report("a stream could not be closed", failure)

    def _report(self, event: str, failure: BaseException) -> None:
        """What failed and where, without what it says: that may hold something of the content."""
        frames = traceback.extract_tb(failure.__traceback__)
        where = f"{frames[-1].name}, line {frames[-1].lineno}" if frames else "nowhere"
        self._log.error(event, extra={"failure": type(failure).__name__, "at": where})

    def close(self) -> None:
        """No thread takes up anything new."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _end_of(sending: asyncio.Future[None]) -> str:
    if not sending.done():
        return LEFT
    return FAILED if sending.cancelled() or sending.exception() is not None else WHOLE


async def _send_all(send: Send, head: dict[str, Any], chunks: Chunks) -> None:
    await send(head)
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        # Neither of the two need ever wait, and then nobody else would have a turn.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _FromThread:
    """One stretch of work in a thread for each chunk; between two of them no thread is held."""

    def __init__(self, pieces: Iterator[bytes], threads: Executor) -> None:
        self._pieces = pieces
        self._threads = threads
        self._lock = threading.Lock()
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await asyncio.get_running_loop().run_in_executor(self._threads, self._gather)
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self._over = True
        await asyncio.get_running_loop().run_in_executor(self._threads, self._close)

    def _gather(self) -> bytes:
        gathered: list[bytes] = []
        size, until = 0, perf_counter() + PIECE_SECONDS
        with self._lock:
            while not self._over:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                gathered.append(piece)
                size += len(piece)
                if size >= PIECE_BYTES or (size and perf_counter() > until):
                    break
        return b"".join(gathered)

    def _close(self) -> None:
        """Under the lock: a client may leave while a thread is still at it."""
        with self._lock:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
