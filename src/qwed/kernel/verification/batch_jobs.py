"""Batch jobs: parsing of the body, sealing of the items, and response models (INTERFACES 2)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from qwed.guards.secrets import mask
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.privacy.masking import mask_value
from qwed.kernel.privacy.subject_keys import KEPT
from qwed.kernel.request import MAX_NAME_LENGTH, SUBJECT, is_subject, without_file
from qwed.kernel.request_schema import FieldRule, RequestStruct, parse
from qwed.kernel.services import Services
from qwed.kernel.verification.request import ENGINE_INPUTS, BatchItem, read_engine_name, read_request
from qwed.kernel.verification.service import detect_engine
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode, Status
from qwed.model.ids import timed_id
from qwed.store.batch_job import COMPLETED, FAILED, PENDING, BatchJob, JobItem

MAX_ITEMS = 100
MAX_PARALLEL = 10
MAX_OPEN_JOBS = 50
"""Unfinished jobs of one organisation."""
WAITING, PROCESSING = UNFINISHED = ("pending", "processing")
_encode = msgspec.json.Encoder().encode


class BatchOptions(RequestStruct):
    """Parallelism, whether to stop at the first item that is not VERIFIED, and the subject of the content."""

    unknown: ClassVar[str] = "in `options`: unknown field {name}: known are {fields}"
    unknown_code: ClassVar[ErrorCode] = ErrorCode.BAD_OPTION
    max_parallel: Annotated[
        int,
        Meta(ge=1, le=MAX_PARALLEL),
        FieldRule(f"must be a whole number from 1 to {MAX_PARALLEL}", ErrorCode.BAD_OPTION),
    ] = MAX_PARALLEL
    fail_fast: Annotated[bool, FieldRule("must be true or false", ErrorCode.BAD_OPTION)] = False
    subject: (
        Annotated[
            str,
            Meta(
                description="person whom the content is about",
                extra_json_schema={"minLength": 1, "maxLength": MAX_NAME_LENGTH},
            ),
            FieldRule(
                f"must be {SUBJECT}",
                ErrorCode.BAD_OPTION,
                refuse=lambda name: None if is_subject(name) else "",
            ),
        ]
        | None
    ) = None


class BatchRequest(RequestStruct):
    """Batch job."""

    items: Annotated[
        list[BatchItem],
        Meta(min_length=1, max_length=MAX_ITEMS),
        FieldRule(f"must be a list of 1 to {MAX_ITEMS} items"),
    ]
    options: (
        Annotated[BatchOptions, FieldRule("=in `options`: the body must be an object", ErrorCode.BAD_OPTION)] | None
    ) = None


class Batch(NamedTuple):
    """A job and its items."""

    job: BatchJob
    items: tuple[JobItem, ...]


class BatchSummaryView(View, frozen=True, kw_only=True):
    """Summary of the answered items; the rate is the share of VERIFIED among all items."""

    total: int
    verified: int
    failed: int
    success_rate: float


class ItemView(View, frozen=True, kw_only=True):
    """One item; `result` is the response of its endpoint."""

    id: str
    query: str
    type: str | None
    status: str
    result: msgspec.Raw | None
    error: msgspec.Raw | None
    latency_ms: float | None


class JobView(View, frozen=True, kw_only=True):
    """Current state of a job."""

    job_id: str
    status: str
    progress_percent: float
    total_items: int
    completed_items: int
    failed_items: int
    summary: BatchSummaryView
    items: tuple[ItemView, ...]


def read_batch(raw: Any, actor: Actor, services: Services) -> Batch | Problem:
    """Parse the job in a body, or return the problem: no item is processed unless all are valid."""
    request = parse(raw, BatchRequest)
    if isinstance(request, Problem):
        return request
    options, items = request.options or BatchOptions(), raw["items"]
    now = services.clock.now()
    job = BatchJob(
        timed_id("job", now),
        actor.organisation_id,
        actor.actor_id,
        actor.role,
        options.max_parallel,
        options.fail_fast,
        len(items),
        now,
        now + services.settings.batch_ttl_seconds,
        subject_id=services.vault.key_for(actor.organisation_id, options.subject or actor.organisation_id).subject_id,
    )
    parsed = [_read_item(job.job_id, position, item) for position, item in enumerate(items)]
    invalid = next((item for item in parsed if isinstance(item, Problem)), None)
    return invalid or Batch(job, tuple(item for item in parsed if not isinstance(item, Problem)))


def _read_item(job_id: str, position: int, raw: Any) -> JobItem | Problem:
    refusal = _refuse_item(raw)
    if refusal is not None:
        return problem(_code_of(refusal), f"item {position}: {refusal.message}")
    query, params = raw.get("query") or "", _params_of(raw)
    encoded = None if params is None else _encode(params).decode()
    return JobItem(job_id, position, query, raw.get("type"), encoded)


def _refuse_item(raw: Any) -> Problem | None:
    engine = read_engine_name(raw)
    if isinstance(engine, Problem):
        return engine
    operation = {name: raw[name] for name in ("operation",) if raw.get(name) is not None}
    body = body_of(raw) | operation
    parsed = detect_engine(body) if engine is None else read_request(engine, body)
    return parsed if isinstance(parsed, Problem) else None


def _params_of(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the stored parameters, which include the operation."""
    params, operation = item.get("params"), item.get("operation")
    return params if operation is None else {**(params or {}), "operation": operation}


def body_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the item for the endpoint of its type."""
    engine = item.get("type")
    name = "query" if engine is None else ENGINE_INPUTS[engine].texts[0]
    query = item.get("query")
    return {name: None if query == "" else query, "params": item.get("params")}


def _code_of(error: Problem) -> ErrorCode:
    return next(row for row in ErrorCode if row.code == error.code)


def redacted_input(item: JobItem) -> tuple[str, str | None]:
    """Return the query and the parameters as stored after the answer: without secrets and files."""
    params = None if item.params is None else msgspec.json.decode(item.params)
    return mask(item.query), None if params is None else _encode(mask_value(without_file(params))).decode()


def find_batch(job_id: str, organisation_id: str, services: Services) -> JobView | Problem:
    """Return the current state of a job of the organisation, or NOT_FOUND."""
    job = services.store.find_job(job_id)
    if job is None or job.organisation_id != organisation_id or job.expires_at <= services.clock.now():
        return problem(ErrorCode.NOT_FOUND, "this organisation has no such job")
    return job_view(job, items_of(job, services))


def is_finished(job_id: str, services: Services) -> bool:
    """Return True if the job is finished or unknown."""
    job = services.store.find_job(job_id)
    return job is None or job.finished_at is not None


def seal_item(job: BatchJob, item: JobItem, services: Services) -> JobItem:
    """Return the sealed item; empty if its subject was erased meanwhile."""
    if job.subject_id is None:
        return item
    key = services.vault.key_of(job.subject_id)
    if key is None:
        return item._replace(query="", params=None, result=None, error=None)
    sealed: dict[str, Any] = {}
    for name in _SEALED:
        text = getattr(item, name)
        sealed[name] = None if text is None else key.seal(_sealing_context(item, name), text)
    return item._replace(**sealed)


def items_of(job: BatchJob, services: Services) -> list[JobItem]:
    """Return the decrypted items of a job."""
    return [_open_item(job, item, services) for item in services.store.job_items(job.job_id)]


_SEALED = ("query", "params", "result", "error")


def _sealing_context(item: JobItem, name: str) -> str:
    return f"{item.job_id}:{item.position}:{name}"


def _open_item(job: BatchJob, item: JobItem, services: Services) -> JobItem:
    opened: dict[str, Any] = {}
    for name in _SEALED:
        sealed = getattr(item, name)
        content = (
            None if sealed is None else services.vault.opened(job.subject_id, _sealing_context(item, name), sealed)
        )
        if content is not None and content.state != KEPT:
            error = _encode(problem(ErrorCode.TAMPERING_FOUND, f"this item is {content.state}")).decode()
            return item._replace(query="", params=None, state=FAILED, result=None, error=error)
        opened[name] = None if content is None else content.text
    return item._replace(**opened)


def job_view(job: BatchJob, items: Sequence[JobItem]) -> JobView:
    """Return the response model of a job."""
    finished = [item for item in items if item.state != PENDING]
    completed = sum(item.state == COMPLETED for item in items)
    verified = sum(is_verified(item) for item in items)
    return JobView(
        job_id=job.job_id,
        status=_state(job, items),
        progress_percent=round(100 * len(finished) / job.total, 1),
        total_items=job.total,
        completed_items=completed,
        failed_items=sum(item.state == FAILED for item in items),
        summary=BatchSummaryView(
            total=job.total,
            verified=verified,
            failed=len(finished) - verified,
            success_rate=round(verified / job.total, 4),
        ),
        items=tuple(_item_view(item) for item in items),
    )


def is_verified(item: JobItem) -> bool:
    """Return True if the item was answered VERIFIED."""
    return item.result is not None and _status_decoder.decode(item.result).status == Status.VERIFIED


def _state(job: BatchJob, items: Sequence[JobItem]) -> str:
    states = {item.state for item in items}
    if job.finished_at is None:
        return WAITING if states == {PENDING} else PROCESSING
    if states == {COMPLETED}:
        return "completed"
    return "partial" if COMPLETED in states else "failed"


class _StatusOnly(msgspec.Struct):
    status: str


_status_decoder = msgspec.json.Decoder(_StatusOnly)


def _item_view(item: JobItem) -> ItemView:
    # A pending item still holds the unredacted input.
    query, _ = redacted_input(item) if item.state == PENDING else (item.query, None)
    return ItemView(
        id=str(item.position),
        query=query,
        type=item.type,
        status=item.state,
        result=None if item.result is None else msgspec.Raw(item.result.encode()),
        error=None if item.error is None else msgspec.Raw(item.error.encode()),
        latency_ms=item.latency_ms,
    )
