"""INTERFACES 2: the engine endpoints. A claim and its verdict, for a key of an organisation; no agent, no decision."""

from collections.abc import Coroutine
from typing import Any

from qwed.api.access import require_actor
from qwed.api.bells import wait_for
from qwed.api.http import Call, Handler, Response, ok, refused
from qwed.api.multipart import read_form
from qwed.api.stretches import drive
from qwed.engines.pool import LONGEST_SECONDS
from qwed.kernel.answer import Problem
from qwed.kernel.inquiries.asking import ask_any, ask_engine
from qwed.kernel.inquiries.finding import Finding
from qwed.kernel.inquiries.jobs import UNFINISHED, find_batch, is_over, read_batch

_PATIENCE = LONGEST_SECONDS + 5
BATCH_SECONDS = 20.0
"""How long the first answer to a batch waits for its end."""


async def verify_any(call: Call) -> Response:
    """`POST /verify`: the input says itself which engine reads it."""
    actor = require_actor(call)
    if isinstance(actor, Problem):
        return refused(actor)
    return await _answered(call, ask_any(call.json(), actor, call.services))


def verified_by(engine: str) -> Handler:
    """`POST /verify/<engine>`."""

    async def verify(call: Call) -> Response:
        actor = require_actor(call)
        if isinstance(actor, Problem):
            return refused(actor)
        raw = read_form(call) if call.is_form else call.json()
        return await _answered(call, ask_engine(engine, raw, actor, call.services))

    verify.__name__ = f"verify_{engine}"
    return verify


async def _answered(call: Call, walk: Coroutine[Any, None, Finding | Problem]) -> Response:
    found = await drive(call, walk, _PATIENCE)
    return refused(found) if isinstance(found, Problem) else ok(found)


async def verify_batch(call: Call) -> Response:
    """`POST /verify/batch`: the finished job, or after a while the job as it stands, which goes on."""
    actor = require_actor(call)
    if isinstance(actor, Problem):
        return refused(actor)
    # In a thread: for each of its items the engine is to be found.
    batch = await call.node.walking.run(actor.organisation_id, read_batch, call.json(), actor, call.services)
    if isinstance(batch, Problem):
        return refused(batch)
    # The bell is hung up before the job begins: it may be over at once.
    bells, job_id = call.services.doorbells, batch.job.job_id
    bell = bells.wait(job_id)
    try:
        full = await call.driver.drive(call.node.batches.add(batch))
        if full is not None:
            return refused(full)
        await wait_for(call, bell, BATCH_SECONDS, lambda: is_over(job_id, call.services))
    finally:
        bells.leave(job_id, bell)
    view = await call.look(find_batch, job_id, actor.organisation_id, call.services)
    return refused(view) if isinstance(view, Problem) else ok(view, 202 if view.status in UNFINISHED else 200)


async def get_batch(call: Call) -> Response:
    """`GET /verify/batch/{job_id}`: the job as it stands now."""
    actor = require_actor(call)
    if isinstance(actor, Problem):
        return refused(actor)
    view = await call.look(find_batch, call.path["job_id"], actor.organisation_id, call.services)
    return refused(view) if isinstance(view, Problem) else ok(view)
