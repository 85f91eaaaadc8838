"""Streamed responses, sent as fast as the client reads them; an incomplete response never looks complete.

A stream occupies no admission slot. It holds one chunk at a time: the next is produced when the client has read the
one before, so a slow reader delays no other request.
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

from qwed.api.server.body import Receive

Send = Callable[[dict[str, Any]], Awaitable[None]]

COMPLETED, CLIENT_CLOSED, FAILED, ABORTED = "completed", "client_closed", "failed", "aborted"
STREAM_OUTCOMES = (COMPLETED, CLIENT_CLOSED, FAILED, ABORTED)
"""All chunks were sent; the client disconnected; producing the response failed; the server stopped first."""
CHUNK_BYTES = 65_536
"""Bytes a thread collects before they are sent."""
CHUNK_SECONDS = 0.2
"""Time after which a thread sends fewer bytes than that."""
MAX_THREADS = 4


class Chunks(Protocol):
    """Body of a streamed response. `aclose` is always awaited, even if iteration never began."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class StreamAbortedError(Exception):
    """The rest cannot be sent. Raised to the server, which then cuts the connection inside the body."""


class Streams:
    """Streams of one application: number open, and outcomes of the others."""

    def __init__(self, log: logging.Logger) -> None:
        self.open = 0
        self.outcomes: Counter[str] = Counter()
        self._log = log
        self._threads: ThreadPoolExecutor | None = None

    def from_thread(self, pieces: Iterator[bytes]) -> Chunks:
        """Return chunks that are produced in threads, one at a time and only when the client needs them."""
        if self._threads is None:
            # A separate pool: a long report must not delay requests that need a thread for a decision.
            self._threads = ThreadPoolExecutor(MAX_THREADS, "qwed-stream")
        return _ThreadedChunks(pieces, self._threads)

    async def send(self, head: dict[str, Any], chunks: Chunks, receive: Receive, send: Send) -> None:
        """Send the head and the chunks until the client disconnects; raise StreamAbortedError on failure."""
        sending = asyncio.ensure_future(_send_all(send, head, chunks))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        end = ABORTED
        self.open += 1
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            end = _outcome_of(sending)
        finally:
            self.open -= 1
            self.outcomes[end] += 1
            await self._cancel(sending, leaving)
            await self._close(chunks)
        if end == FAILED:
            raise StreamAbortedError("the response stream failed")

    async def _cancel(self, sending: asyncio.Future[None], leaving: asyncio.Future[None]) -> None:
        sending.cancel()
        leaving.cancel()
        failure, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(failure, Exception):
            self._report("response stream failed", failure)

    async def _close(self, chunks: Chunks) -> None:
        closing = asyncio.ensure_future(chunks.aclose())
        await asyncio.wait((closing,))
        failure = None if closing.cancelled() else closing.exception()
        if failure is not None:
            self._report("response stream close failed", failure)

    def _report(self, event: str, failure: BaseException) -> None:
        """Log the type and place of a failure, but not its message, which may contain content."""
        frames = traceback.extract_tb(failure.__traceback__)
        where = f"{frames[-1].name}, line {frames[-1].lineno}" if frames else "nowhere"
        self._log.error(event, extra={"failure": type(failure).__name__, "at": where})

    def close(self) -> None:
        """Stop the threads."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _outcome_of(sending: asyncio.Future[None]) -> str:
    if not sending.done():
        return CLIENT_CLOSED
    return FAILED if sending.cancelled() or sending.exception() is not None else COMPLETED


async def _send_all(send: Send, head: dict[str, Any], chunks: Chunks) -> None:
    await send(head)
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        # Neither of the two has to suspend; without this, no other task would run.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _ThreadedChunks:
    """Chunks produced in a thread pool; no thread is held between two of them."""

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
        size, until = 0, perf_counter() + CHUNK_SECONDS
        with self._lock:
            while not self._over:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                gathered.append(piece)
                size += len(piece)
                if size >= CHUNK_BYTES or (size and perf_counter() > until):
                    break
        return b"".join(gathered)

    def _close(self) -> None:
        """Close the source under the lock: a thread may still be reading it."""
        with self._lock:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
