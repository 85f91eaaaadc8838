"""The items put to the engines, in jobs of the size a server takes; one that is refused takes no other along."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from qwed.cli.asking import MOST_TEXT
from qwed.cli.batch.items import Item
from qwed.cli.printing import sorry
from qwed.cli.verifying.answering import is_verified

MOST_ITEMS = 100
"""Of one job, as the server bounds it."""
_FIRST_ITEMS = 10
_ROOM = MOST_TEXT - (1 << 12)
"""Bytes of the items of one job: the rest of the request stands beside them."""
_SECONDS_BETWEEN = 0.5
_UNFINISHED = ("pending", "processing")
_MALFORMED, _TOO_LARGE = "QWED-REQ-001", "QWED-REQ-002"
SKIPPED = "skipped"


class Outcome(NamedTuple):
    """What came of one item, as it is written down."""

    number: int
    query: str
    type: str | None
    status: str
    """How the item fared, in the words of a job: completed, failed or skipped."""
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    latency_ms: float | None

    @property
    def verified(self) -> bool:
        """Whether it was proven, and nothing less."""
        return isinstance(self.result, Mapping) and is_verified(self.result)


class Jobs(NamedTuple):
    """Who is asked, how, and what they raise where they refuse a request as it stands."""

    verify_batch: Callable[..., Mapping[str, Any]]
    get_batch_status: Callable[[str], Mapping[str, Any]]
    refusal: type[Exception]
    fail_fast: bool = False


def outcomes(items: Iterable[Item], jobs: Jobs) -> Iterator[list[Outcome]]:
    """What came of each job, in the order of the items; with `fail_fast` the first that is not verified is the last."""
    for chunk in _chunks(items):
        done = sorted([*map(_unaskable, chunk.refused), *_asked(chunk.items, jobs)], key=lambda each: each.number)
        yield done
        if jobs.fail_fast and not all(outcome.verified for outcome in done):
            return


class _Chunk(NamedTuple):
    items: list[Item]
    refused: list[tuple[Item, str, str]]
    """Items that no engine can be asked, with the code and the reason."""


def _chunks(items: Iterable[Item]) -> Iterator[_Chunk]:
    """Jobs within the bounds; small ones first, so that there is soon something to see."""
    chunk, size, most = _Chunk([], []), 0, _FIRST_ITEMS
    for item in items:
        wrong, length = _measured(item)
        if wrong is not None:
            chunk.refused.append((item, *wrong))
        elif size + length > _ROOM:
            yield chunk
            chunk, size = _Chunk([item], []), length
        else:
            chunk.items.append(item)
            size += length
        if len(chunk.items) + len(chunk.refused) >= most:
            yield chunk
            chunk, size, most = _Chunk([], []), 0, min(most * 2, MOST_ITEMS)
    if chunk.items or chunk.refused:
        yield chunk


def _measured(item: Item) -> tuple[tuple[str, str] | None, int]:
    """Why the item cannot be sent, or None; and how many bytes it takes."""
    if item.wrong is not None:
        return (_MALFORMED, item.wrong), 0
    try:
        length = len(json.dumps(item.body, allow_nan=False, ensure_ascii=False).encode()) + 1
    except (ValueError, RecursionError):
        return (_MALFORMED, "it holds what no request can carry: half of a surrogate pair, or no finite number"), 0
    if length > _ROOM:
        return (_TOO_LARGE, f"it is longer than the {MOST_TEXT >> 20} MiB of a request"), 0
    return None, length


def _asked(items: list[Item], jobs: Jobs) -> list[Outcome]:
    """What came of the items; a job that is refused as a whole is halved until it is known which item is to blame."""
    if not items:
        return []
    try:
        job = jobs.verify_batch([item.body for item in items], {"fail_fast": True} if jobs.fail_fast else None)
    except jobs.refusal as error:
        code = str(getattr(error, "code", ""))
        if not code.startswith("QWED-REQ-"):
            raise
        if len(items) == 1:
            return [_unaskable((items[0], code, str(getattr(error, "message", error)).removeprefix("item 0: ")))]
        half = len(items) // 2
        return _asked(items[:half], jobs) + _asked(items[half:], jobs)
    return list(map(_outcome, items, _answers(_finished(job, jobs), len(items))))


def _finished(job: Mapping[str, Any], jobs: Jobs) -> Mapping[str, Any]:
    while job["status"] in _UNFINISHED:
        time.sleep(_SECONDS_BETWEEN)
        job = jobs.get_batch_status(job["job_id"])
    return job


def _answers(job: Mapping[str, Any], count: int) -> list[Mapping[str, Any]]:
    """One answer for each item, in their order; an item without one must not be passed over."""
    found = job.get("items")
    whole = isinstance(found, list) and all(isinstance(answered, Mapping) for answered in found)
    if not whole or [answered.get("id") for answered in found or ()] != [str(place) for place in range(count)]:
        sorry("the job came back without an answer for each of its items")
    return found or []


def _outcome(item: Item, answered: Mapping[str, Any]) -> Outcome:
    told: dict[str, Any] = {name: answered.get(name) for name in Outcome._fields if name != "number"}
    return Outcome(number=item.number, **told)


def _unaskable(refused: tuple[Item, str, str]) -> Outcome:
    item, code, message = refused
    query, kind = item.body.get("query"), item.body.get("type")
    return Outcome(
        item.number,
        query if isinstance(query, str) else "",
        kind if isinstance(kind, str) else None,
        "failed",
        None,
        {"code": code, "message": message},
        None,
    )
