"""Offload the CPU work of large requests to a thread pool; no thread is held while they wait."""

from collections.abc import Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from qwed.api.server.endpoint import RequestContext
from qwed.kernel.analysis.content_scan import LARGE

T = TypeVar("T")
MAX_INLINE_BYTES = 1 << 14
"""Largest body that is analysed on the event loop, which takes a few hundredths of a second at most."""


def run_decision(
    request: RequestContext, coro: Coroutine[Any, None, T], seconds: float | None = None
) -> Coroutine[Any, Any, T]:
    """Run `coro` on the event loop, or in the thread pool if the body is larger than MAX_INLINE_BYTES."""
    if request.is_fast_path:
        return coro
    if len(request.body) <= MAX_INLINE_BYTES:
        return request.driver.run(coro, seconds)
    pool = request.app.large_body_pool if len(request.body) > LARGE else request.app.medium_body_pool
    # The thread sees the context variables of the request.
    return request.driver.run(coro, seconds, partial(pool.run, request.caller.organisation_id, copy_context().run))
