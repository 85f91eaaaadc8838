"""INTERFACES 2, batch: what is asked, and how a job and its items are shown."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from qwed.guards.secrets import mask
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor
from qwed.kernel.inquiries.asking import detect
from qwed.kernel.inquiries.reading import ASKED, engine_named, read_inquiry
from qwed.kernel.keeping.masking import masked
from qwed.kernel.keeping.vault import KEPT
from qwed.kernel.request import SUBJECT, is_subject, without_file
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.store.job import COMPLETED, FAILED, PENDING, Job, JobItem
from qwed.words import ErrorCode, Status
from qwed.words.ids import timed_id

MOST_ITEMS = 100
MOST_PARALLEL = 10
MOST_OPEN = 50
"""Unfinished jobs of one organisation."""
WAITING, PROCESSING = UNFINISHED = ("pending", "processing")
_encode = msgspec.json.Encoder().encode


class Batch(NamedTuple):
    """A job and its items."""

    job: Job
    items: tuple[JobItem, ...]


class SummaryView(View, frozen=True, kw_only=True):
    """How the answered items came out; the rate is the share of all items that are VERIFIED."""

    total: int
    verified: int
    failed: int
    success_rate: float


class ItemView(View, frozen=True, kw_only=True):
    """One item; `result` is what its endpoint would have answered."""

    id: str
    query: str
    type: str | None
    status: str
    result: msgspec.Raw | None
    error: msgspec.Raw | None
    latency_ms: float | None


class JobView(View, frozen=True, kw_only=True):
    """A job as it stands now."""

    job_id: str
    status: str
    progress_percent: float
    total_items: int
    completed_items: int
    failed_items: int
    summary: SummaryView
    items: tuple[ItemView, ...]


def read_batch(raw: Any, actor: Actor, services: Services) -> Batch | Problem:
    """The job in a body, or what is wrong with it: no item is asked before all of them can be."""
    wrong = refuse_body(raw, ("items", "options"))
    if wrong is not None:
        return wrong
    items = raw.get("items")
    if items is None:
        return problem(ErrorCode.MISSING_FIELD, "`items` is required")
    if not isinstance(items, list) or not 0 < len(items) <= MOST_ITEMS:
        return problem(ErrorCode.MALFORMED, f"`items` must be a list of 1 to {MOST_ITEMS} items")
    options = _read_options(raw.get("options"))
    if isinstance(options, Problem):
        return options
    parallel, fail_fast, subject = options
    now = services.clock.now()
    job = Job(
        timed_id("job", now),
        actor.organisation_id,
        actor.by,
        actor.role,
        parallel,
        fail_fast,
        len(items),
        now,
        now + services.settings.batch_ttl_seconds,
        subject_id=services.vault.key_for(actor.organisation_id, subject or actor.organisation_id).subject_id,
    )
    read = [_read_item(job.job_id, position, item) for position, item in enumerate(items)]
    refused = next((item for item in read if isinstance(item, Problem)), None)
    return refused or Batch(job, tuple(item for item in read if not isinstance(item, Problem)))


def _read_options(raw: Any) -> tuple[int, bool, str | None] | Problem:
    if raw is None:
        return MOST_PARALLEL, False, None
    wrong = refuse_body(raw, ("max_parallel", "fail_fast", "subject"))
    if wrong is not None:
        return problem(ErrorCode.BAD_OPTION, f"in `options`: {wrong.message}")
    parallel, fail_fast = raw.get("max_parallel", MOST_PARALLEL), raw.get("fail_fast", False)
    if isinstance(parallel, bool) or not isinstance(parallel, int) or not 1 <= parallel <= MOST_PARALLEL:
        return problem(ErrorCode.BAD_OPTION, f"`max_parallel` must be a whole number from 1 to {MOST_PARALLEL}")
    if not isinstance(fail_fast, bool):
        return problem(ErrorCode.BAD_OPTION, "`fail_fast` must be true or false")
    subject = raw.get("subject")
    if subject is not None and not (isinstance(subject, str) and is_subject(subject)):
        return problem(ErrorCode.BAD_OPTION, f"`subject` must be {SUBJECT}")
    return parallel, fail_fast, subject


def _read_item(job_id: str, position: int, raw: Any) -> JobItem | Problem:
    wrong = _refuse_item(raw)
    if wrong is not None:
        return problem(_code_of(wrong), f"item {position}: {wrong.message}")
    query, params = raw.get("query") or "", _params_of(raw)
    kept = None if params is None else _encode(params).decode()
    return JobItem(job_id, position, query, raw.get("type"), kept)


def _refuse_item(raw: Any) -> Problem | None:
    wrong = refuse_body(raw, ("query", "type", "operation", "params"))
    if wrong is not None:
        return wrong
    engine = engine_named(raw)
    if isinstance(engine, Problem):
        return engine
    beside = {name: raw[name] for name in ("operation",) if raw.get(name) is not None}
    body = body_of(raw) | beside
    asked = detect(body) if engine is None else read_inquiry(engine, body)
    return asked if isinstance(asked, Problem) else None


def _params_of(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The parameters as they are kept: the operation is one of them, wherever it stood."""
    params, operation = item.get("params"), item.get("operation")
    return params if operation is None else {**(params or {}), "operation": operation}


def body_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """What the item would say to the endpoint of its type."""
    engine = item.get("type")
    name = "query" if engine is None else ASKED[engine].texts[0]
    query = item.get("query")
    return {name: None if query == "" else query, "params": item.get("params")}


def _code_of(found: Problem) -> ErrorCode:
    return next(row for row in ErrorCode if row.code == found.code)


def forgotten(item: JobItem) -> tuple[str, str | None]:
    """The query and the parameters as they are kept once answered: no secret, no file."""
    params = None if item.params is None else msgspec.json.decode(item.params)
    return mask(item.query), None if params is None else _encode(masked(without_file(params))).decode()


def find_batch(job_id: str, organisation_id: str, services: Services) -> JobView | Problem:
    """A job of the organisation as it stands now."""
    job = services.store.find_job(job_id)
    if job is None or job.organisation_id != organisation_id or job.expires_at <= services.clock.now():
        return problem(ErrorCode.NOT_FOUND, "no such job of this organisation")
    return job_view(job, items_of(job, services))


def is_over(job_id: str, services: Services) -> bool:
    """Whether nothing more happens to a job."""
    job = services.store.find_job(job_id)
    return job is None or job.finished_at is not None


def sealed_item(job: Job, item: JobItem, services: Services) -> JobItem:
    """The item as it is kept; with nothing in it, where its subject was erased meanwhile and the job with it."""
    if job.subject_id is None:
        return item
    key = services.vault.key_of(job.subject_id)
    if key is None:
        return item._replace(query="", params=None, result=None, error=None)
    sealed: dict[str, Any] = {}
    for name in _SEALED:
        text = getattr(item, name)
        sealed[name] = None if text is None else key.seal(_place(item, name), text)
    return item._replace(**sealed)


def items_of(job: Job, services: Services) -> list[JobItem]:
    """The items of a job, opened."""
    return [_opened(job, item, services) for item in services.store.job_items(job.job_id)]


_SEALED = ("query", "params", "result", "error")


def _place(item: JobItem, name: str) -> str:
    return f"{item.job_id}:{item.position}:{name}"


def _opened(job: Job, item: JobItem, services: Services) -> JobItem:
    opened: dict[str, Any] = {}
    for name in _SEALED:
        kept = getattr(item, name)
        found = None if kept is None else services.vault.opened(job.subject_id, _place(item, name), kept)
        if found is not None and found.state != KEPT:
            lost = _encode(problem(ErrorCode.TAMPERING_FOUND, f"this item is {found.state}")).decode()
            return item._replace(query="", params=None, state=FAILED, result=None, error=lost)
        opened[name] = None if found is None else found.text
    return item._replace(**opened)


def job_view(job: Job, items: Sequence[JobItem]) -> JobView:
    """The job for whoever asked for it."""
    over = [item for item in items if item.state != PENDING]
    completed = sum(item.state == COMPLETED for item in items)
    verified = sum(is_verified(item) for item in items)
    return JobView(
        job_id=job.job_id,
        status=_state(job, items),
        progress_percent=round(100 * len(over) / job.total, 1),
        total_items=job.total,
        completed_items=completed,
        failed_items=sum(item.state == FAILED for item in items),
        summary=SummaryView(
            total=job.total,
            verified=verified,
            failed=len(over) - verified,
            success_rate=round(verified / job.total, 4),
        ),
        items=tuple(_item_view(item) for item in items),
    )


def is_verified(item: JobItem) -> bool:
    """Whether the item was answered, and VERIFIED."""
    return item.result is not None and _told.decode(item.result).status == Status.VERIFIED


def _state(job: Job, items: Sequence[JobItem]) -> str:
    states = {item.state for item in items}
    if job.finished_at is None:
        return WAITING if states == {PENDING} else PROCESSING
    if states == {COMPLETED}:
        return "completed"
    return "partial" if COMPLETED in states else "failed"


class _Told(msgspec.Struct):
    status: str


_told = msgspec.json.Decoder(_Told)


def _item_view(item: JobItem) -> ItemView:
    # What waits to be asked still holds all it was sent with.
    query, _ = forgotten(item) if item.state == PENDING else (item.query, None)
    return ItemView(
        id=str(item.position),
        query=query,
        type=item.type,
        status=item.state,
        result=None if item.result is None else msgspec.Raw(item.result.encode()),
        error=None if item.error is None else msgspec.Raw(item.error.encode()),
        latency_ms=item.latency_ms,
    )
