"""Offload the CPU work of large requests to a thread pool; no thread is held while they wait."""

from collections.abc import Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

from qwed.api.server.endpoint import RequestContext
from qwed.futures import Future
from qwed.kernel.analysis.content_scan import LARGE

T = TypeVar("T")
MAX_INLINE_BYTES = 1 << 14
"""Largest body that is analysed on the event loop, which takes a few hundredths of a second at most."""


class _Step(NamedTuple):
    """Future that the coroutine waits for, or its result."""

    future: Future[Any] | None
    value: Any = None


def run_decision(
    request: RequestContext, coro: Coroutine[Any, None, T], seconds: float | None = None
) -> Coroutine[Any, Any, T]:
    """Run `coro` on the event loop, or in the thread pool if the body is larger than MAX_INLINE_BYTES."""
    if request.is_fast_path:
        return coro
    if len(request.body) <= MAX_INLINE_BYTES:
        return request.driver.run(coro, seconds)
    return _run_in_pool(coro, request, seconds)


async def _run_in_pool(coro: Coroutine[Any, None, T], request: RequestContext, seconds: float | None) -> T:
    organisation_id = request.caller.organisation_id
    pool = request.app.large_body_pool if len(request.body) > LARGE else request.app.medium_body_pool
    # The thread sees the context variables of the request.
    run_in_context = copy_context().run
    try:
        step = await pool.run(organisation_id, run_in_context, _resume, coro, None)
        while step.future is not None:
            timeout: TimeoutError | None = None
            try:
                await request.driver.run(_wait_for(step.future), seconds)
            except TimeoutError as error:
                timeout = error
            step = await pool.run(organisation_id, run_in_context, _resume, coro, timeout)
        value: T = step.value
        return value
    finally:
        # ValueError: a thread is still running the cancelled coroutine and closes it afterwards.
        with suppress(ValueError):
            coro.close()


def _resume(coro: Coroutine[Any, None, Any], timeout: TimeoutError | None) -> _Step:
    try:
        return _Step(coro.send(None) if timeout is None else coro.throw(timeout))
    except StopIteration as stop:
        return _Step(None, stop.value)


class _Completion:
    """Awaitable that waits for a future and leaves its result or exception to the coroutine."""

    __slots__ = ("_future",)

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, None]:
        if not self._future.done:
            yield self._future


async def _wait_for(future: Future[Any]) -> None:
    await _Completion(future)
