"""Handlers of the engine endpoints `/verify/*`: verification without an agent (INTERFACES 2)."""

from collections.abc import Coroutine
from typing import Any

from qwed.api.server.auth import require_actor
from qwed.api.server.endpoint import Handler, RequestContext, Response, error_response, json_response
from qwed.api.server.long_poll import wait_for
from qwed.api.server.multipart import read_form
from qwed.api.server.offload import run_decision
from qwed.engines.pool import MAX_SECONDS
from qwed.kernel.answer import Problem
from qwed.kernel.verification.batch_jobs import UNFINISHED, find_batch, is_finished, read_batch
from qwed.kernel.verification.response import VerificationResult
from qwed.kernel.verification.service import verify_detected, verify_with_engine

_TIMEOUT_SECONDS = MAX_SECONDS + 5
BATCH_SECONDS = 20.0
"""Time that the first response to a batch waits for its end."""


async def verify_any(request: RequestContext) -> Response:
    """`POST /verify`: detect the engine from the input."""
    actor = require_actor(request)
    if isinstance(actor, Problem):
        return error_response(actor)
    return await _run_verification(request, verify_detected(request.json(), actor, request.services))


def verify_handler(engine: str) -> Handler:
    """Return the handler of `POST /verify/<engine>`."""

    async def verify(request: RequestContext) -> Response:
        actor = require_actor(request)
        if isinstance(actor, Problem):
            return error_response(actor)
        raw = read_form(request) if request.is_form else request.json()
        return await _run_verification(request, verify_with_engine(engine, raw, actor, request.services))

    verify.__name__ = f"verify_{engine}"
    return verify


async def _run_verification(
    request: RequestContext, coro: Coroutine[Any, None, VerificationResult | Problem]
) -> Response:
    result = await run_decision(request, coro, _TIMEOUT_SECONDS)
    return error_response(result) if isinstance(result, Problem) else json_response(result)


async def verify_batch(request: RequestContext) -> Response:
    """`POST /verify/batch`: return the finished job, or after a while the running one."""
    actor = require_actor(request)
    if isinstance(actor, Problem):
        return error_response(actor)
    # In a thread: detecting the engine of every item takes CPU time.
    batch = await request.app.large_body_pool.run(
        actor.organisation_id, read_batch, request.json(), actor, request.services
    )
    if isinstance(batch, Problem):
        return error_response(batch)
    # Registered before the job starts: it may finish at once.
    waiters, job_id = request.services.waiters, batch.job.job_id
    waiter = waiters.wait(job_id)
    try:
        full = await request.driver.run(request.app.batches.add(batch))
        if full is not None:
            return error_response(full)
        await wait_for(request, waiter, BATCH_SECONDS, lambda: is_finished(job_id, request.services))
    finally:
        waiters.leave(job_id, waiter)
    view = await request.run_blocking(find_batch, job_id, actor.organisation_id, request.services)
    return (
        error_response(view)
        if isinstance(view, Problem)
        else json_response(view, 202 if view.status in UNFINISHED else 200)
    )


async def get_batch(request: RequestContext) -> Response:
    """`GET /verify/batch/{job_id}`: return the job."""
    actor = require_actor(request)
    if isinstance(actor, Problem):
        return error_response(actor)
    view = await request.run_blocking(find_batch, request.path["job_id"], actor.organisation_id, request.services)
    return error_response(view) if isinstance(view, Problem) else json_response(view)
