"""The stats engine: a claim about an uploaded table, computed by a locked-down database and answered with its query.

Numbers of the file are kept exact. What is outside the grammar is INCONCLUSIVE, with the grammar's shape.
"""

from collections.abc import Mapping
from typing import Any

import duckdb

from qwed.engines._stats.answers import Answer, answer
from qwed.engines._stats.duck import Table, loaded
from qwed.engines._stats.files import open_sheet
from qwed.engines._stats.sentences import parts_of
from qwed.engines._stats.types import typed
from qwed.engines._stats.words import Cursor, NotUnderstood, tokens_of
from qwed.engines.protocol import EngineRequest
from qwed.engines.uploads import Refused, read_upload
from qwed.words import Status, Verdict

HINT = "write it like `average of sales = 42`, `rows where region = 'EU' is 12` or `p95(latency) < 200`"
_SHOWN_COLUMNS = 30
_SURPRISES = (duckdb.Error, MemoryError, RecursionError, ArithmeticError, ValueError, OSError)
"""What the database raises where a file or a number is beyond it; none of it decides a claim."""


def verify(request: EngineRequest) -> Verdict:
    """The verdict on a claim about the file in `content_base64`, with the query that decides it."""
    if not isinstance(request.query, str) or not request.query.strip():
        return _verdict(Status.BLOCKED, "no claim was given", failed="claim_given")
    try:
        sheet = open_sheet(read_upload(request.parameters), request.parameters.get("format"))
    except Refused as refused:
        return _verdict(Status.BLOCKED, str(refused), failed="file_readable")
    except _SURPRISES as surprise:
        return _verdict(Status.BLOCKED, f"the file cannot be read: {type(surprise).__name__}", failed="file_readable")
    try:
        with loaded(sheet) as table:
            return _judge(request.query, table)
    except Refused as refused:
        return _verdict(Status.INCONCLUSIVE, str(refused), failed="file_readable")
    except duckdb.InterruptException:
        return _verdict(Status.INCONCLUSIVE, "the query took too long", failed="within_time")
    except _SURPRISES as surprise:
        return _verdict(Status.INCONCLUSIVE, _told(surprise), failed="file_readable")


def _told(surprise: BaseException) -> str:
    first = str(surprise).strip().partition("\n")[0][:160]
    return f"the file cannot be computed with: {first or type(surprise).__name__}"


def _judge(claim: str, table: Table) -> Verdict:
    try:
        cursor = Cursor(tokens_of(claim), table.columns)
        parts = parts_of(cursor)
    except NotUnderstood as reason:
        names = [column.name[:60] for column in table.columns[:_SHOWN_COLUMNS]]
        message = f"{reason}: {HINT}; the columns are {', '.join(f'`{name}`' for name in names)}"
        return _verdict(Status.INCONCLUSIVE, message, failed="claim_understood", result={"columns": names})
    try:
        columns = typed(table, cursor.used.values())
        answers = [answer(part, table, columns) for part in parts]
    except Refused as refused:
        return _verdict(Status.INCONCLUSIVE, str(refused), failed="claim_computed")
    return _settled(answers)


def _settled(answers: list[Answer]) -> Verdict:
    """All parts have to hold; the first that does not is what is told."""
    ranked = sorted(answers, key=lambda each: _RANK.index(each.status))
    first = ranked[0]
    result: dict[str, Any] = dict(first.result)
    if len(answers) > 1:
        result["parts"] = [{"status": each.status.value, **each.result} for each in answers]
    message = first.message if len(answers) == 1 else "; ".join(each.message for each in answers)
    passed = ("file_readable", "claim_understood")
    if first.status is Status.VERIFIED:
        return _verdict(Status.VERIFIED, message, passed=(*passed, "claim_holds"), result=result)
    failed = "claim_holds" if first.status is Status.FAILED else "claim_computed"
    return _verdict(first.status, message, passed=passed, failed=failed, result=result)


_RANK = (Status.FAILED, Status.INCONCLUSIVE, Status.VERIFIED)


def _verdict(
    status: Status,
    message: str,
    *,
    passed: tuple[str, ...] = (),
    failed: str = "",
    result: Mapping[str, Any] | None = None,
) -> Verdict:
    return Verdict(
        status=status,
        engine="stats",
        message=message,
        checks_passed=passed,
        checks_failed=(failed,) if failed else (),
        result=result or {},
    )
