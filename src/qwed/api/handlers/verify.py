"""Handlers of the engine endpoints `/verify/*`: verification without an agent (INTERFACES 2)."""

from collections.abc import Awaitable, Callable

from qwed.api.server.auth import require_actor
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.api.server.long_poll import wait_for
from qwed.api.server.multipart import read_form
from qwed.api.server.offload import run_decision
from qwed.engines.pool import MAX_SECONDS
from qwed.kernel.answer import Problem
from qwed.kernel.operations.operation import BODY, Call, E, Operation, operation
from qwed.kernel.verification.batch_jobs import UNFINISHED, BatchRequest, JobView, find_batch, is_finished, read_batch
from qwed.kernel.verification.request import ENGINE_INPUTS, REQUEST_TYPES, VerifyAnyRequest
from qwed.kernel.verification.response import VerificationResult
from qwed.kernel.verification.service import verify_detected, verify_with_engine
from qwed.model.endpoints import Endpoint

_TIMEOUT_SECONDS = MAX_SECONDS + 5
BATCH_SECONDS = 20.0
"""Time that the first response to a batch waits for its end."""
_ERRORS = (E.BAD_OPTION, E.ENGINE_UNAVAILABLE)


def _verify(engine: str | None) -> Callable[[RequestContext], Awaitable[Response]]:
    """Return the handler of `POST /verify/<engine>`, or of `POST /verify`, which detects the engine."""

    async def verify(request: RequestContext) -> Response:
        actor = require_actor(request)
        if isinstance(actor, Problem):
            return error_response(actor)
        raw = read_form(request) if request.is_form and engine is not None else request.json()
        coro = (
            verify_detected(raw, actor, request.services)
            if engine is None
            else verify_with_engine(engine, raw, actor, request.services)
        )
        result = await run_decision(request, coro, _TIMEOUT_SECONDS)
        return error_response(result) if isinstance(result, Problem) else json_response(result)

    return verify


def _verify_operation(engine: str) -> Operation:
    endpoint, row = Endpoint[f"VERIFY_{engine.upper()}"], ENGINE_INPUTS[engine]
    columns = {"response": VerificationResult, "errors": _ERRORS, "uploads": engine in ("stats", "image")}
    return operation(endpoint, row.summary, request=REQUEST_TYPES[engine], **columns)(_verify(engine))


verify_any = operation(
    Endpoint.VERIFY_ANY,
    "Verify any input; the engine is taken from `type` or detected",
    request=VerifyAnyRequest,
    response=VerificationResult,
    errors=_ERRORS,
)(_verify(None))
(
    verify_math,
    verify_logic,
    verify_code,
    verify_sql,
    verify_fact,
    verify_stats,
    verify_image,
    verify_consensus,
) = (_verify_operation(engine) for engine in REQUEST_TYPES)


@operation(
    Endpoint.VERIFY_BATCH,
    "Verify up to 100 items; a long job returns 202 and continues",
    request=BatchRequest,
    response=JobView,
    errors=(*BODY, E.UNKNOWN_TYPE, E.BAD_OPTION, E.RATE_LIMITED),
    also=(202,),
)
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
    if isinstance(view, Problem):
        return error_response(view)
    return json_response(view, 202 if view.status in UNFINISHED else 200)


@operation(Endpoint.GET_BATCH, "Get a batch job and its results so far", errors=(E.NOT_FOUND,))
def get_batch(call: Call) -> JobView | Problem:
    """Return the job."""
    return find_batch(call.path["job_id"], call.actor.organisation_id, call.services)
