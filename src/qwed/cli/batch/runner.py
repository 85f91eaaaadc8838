"""Batch runner: sends items in jobs of limited size; a refused item does not affect the others."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from qwed.cli.backend import MAX_TEXT
from qwed.cli.batch.input import BatchItem
from qwed.cli.output import fail
from qwed.cli.verify.run import is_verified

MAX_ITEMS = 100
"""Maximum items of one job, as on the server."""
_FIRST_ITEMS = 10
_MAX_BYTES = MAX_TEXT - (1 << 12)
"""Maximum bytes of the items of one job; the rest of the request needs the difference."""
_SECONDS_BETWEEN = 0.5
_UNFINISHED = ("pending", "processing")
_MALFORMED, _TOO_LARGE = "QWED-REQ-001", "QWED-REQ-002"
SKIPPED = "skipped"


class BatchOutcome(NamedTuple):
    """Result of one item, as it is written to the output."""

    number: int
    query: str
    type: str | None
    status: str
    """Status of the item in the job: completed, failed or skipped."""
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    latency_ms: float | None

    @property
    def verified(self) -> bool:
        """True if the item was VERIFIED."""
        return isinstance(self.result, Mapping) and is_verified(self.result)


class JobClient(NamedTuple):
    """Functions of the backend, and the exception it raises for a refused request."""

    verify_batch: Callable[..., Mapping[str, Any]]
    get_batch_status: Callable[[str], Mapping[str, Any]]
    refusal: type[Exception]
    fail_fast: bool = False


def run_jobs(items: Iterable[BatchItem], jobs: JobClient) -> Iterator[list[BatchOutcome]]:
    """Yield the outcomes of each job in the order of the items; with `fail_fast`, stop after the first failure."""
    for chunk in _chunks(items):
        results = sorted(
            [*map(_refused_outcome, chunk.refused), *_run_job(chunk.items, jobs)], key=lambda outcome: outcome.number
        )
        yield results
        if jobs.fail_fast and not all(outcome.verified for outcome in results):
            return


class _Chunk(NamedTuple):
    items: list[BatchItem]
    refused: list[tuple[BatchItem, str, str]]
    """Items that cannot be sent, with the error code and the reason."""


def _chunks(items: Iterable[BatchItem]) -> Iterator[_Chunk]:
    """Yield jobs within the limits; the first ones are small, so that output starts early."""
    chunk, size, most = _Chunk([], []), 0, _FIRST_ITEMS
    for item in items:
        error, length = _measure(item)
        if error is not None:
            chunk.refused.append((item, *error))
        elif size + length > _MAX_BYTES:
            yield chunk
            chunk, size = _Chunk([item], []), length
        else:
            chunk.items.append(item)
            size += length
        if len(chunk.items) + len(chunk.refused) >= most:
            yield chunk
            chunk, size, most = _Chunk([], []), 0, min(most * 2, MAX_ITEMS)
    if chunk.items or chunk.refused:
        yield chunk


def _measure(item: BatchItem) -> tuple[tuple[str, str] | None, int]:
    """Return the error of an item that cannot be sent, or None, and its size in bytes."""
    if item.error is not None:
        return (_MALFORMED, item.error), 0
    try:
        length = len(json.dumps(item.body, allow_nan=False, ensure_ascii=False).encode()) + 1
    except (ValueError, RecursionError):
        return (_MALFORMED, "it cannot be encoded as JSON: an unpaired surrogate or a number that is not finite"), 0
    if length > _MAX_BYTES:
        return (_TOO_LARGE, f"it is longer than the {MAX_TEXT >> 20} MiB of a request"), 0
    return None, length


def _run_job(items: list[BatchItem], jobs: JobClient) -> list[BatchOutcome]:
    """Return the outcomes of the items; a refused job is halved until the item at fault is known."""
    if not items:
        return []
    try:
        job = jobs.verify_batch([item.body for item in items], {"fail_fast": True} if jobs.fail_fast else None)
    except jobs.refusal as error:
        code = str(getattr(error, "code", ""))
        if not code.startswith("QWED-REQ-"):
            raise
        if len(items) == 1:
            return [_refused_outcome((items[0], code, str(getattr(error, "message", error)).removeprefix("item 0: ")))]
        half = len(items) // 2
        return _run_job(items[:half], jobs) + _run_job(items[half:], jobs)
    return list(map(_outcome, items, _item_results(_wait_for_job(job, jobs), len(items))))


def _wait_for_job(job: Mapping[str, Any], jobs: JobClient) -> Mapping[str, Any]:
    while job["status"] in _UNFINISHED:
        time.sleep(_SECONDS_BETWEEN)
        job = jobs.get_batch_status(job["job_id"])
    return job


def _item_results(job: Mapping[str, Any], count: int) -> list[Mapping[str, Any]]:
    """Return one result per item in order; exit if one is missing."""
    results = job.get("items")
    is_list = isinstance(results, list) and all(isinstance(result, Mapping) for result in results)
    if not is_list or [result.get("id") for result in results or ()] != [str(index) for index in range(count)]:
        fail("the server returned a job without a result for each item")
    return results or []


def _outcome(item: BatchItem, result: Mapping[str, Any]) -> BatchOutcome:
    fields: dict[str, Any] = {name: result.get(name) for name in BatchOutcome._fields if name != "number"}
    return BatchOutcome(number=item.number, **fields)


def _refused_outcome(refused: tuple[BatchItem, str, str]) -> BatchOutcome:
    item, code, message = refused
    query, kind = item.body.get("query"), item.body.get("type")
    return BatchOutcome(
        item.number,
        query if isinstance(query, str) else "",
        kind if isinstance(kind, str) else None,
        "failed",
        None,
        {"code": code, "message": message},
        None,
    )
