"""Stats engine: a claim about an uploaded table, computed by a locked-down DuckDB and returned with its query.

Numbers of the file are kept exact. A claim outside the grammar is INCONCLUSIVE, with a hint about the grammar.
"""

from collections.abc import Mapping
from typing import Any

import duckdb

from qwed.engines._stats.answers import PartVerdict, verify_part
from qwed.engines._stats.claim_sentences import parse_claim
from qwed.engines._stats.duckdb_session import LoadedTable, open_table
from qwed.engines._stats.table_files import open_sheet
from qwed.engines._stats.tokenizer import ClaimCursor, ClaimSyntaxError, tokenize_claim
from qwed.engines._stats.types import create_data_table
from qwed.engines.protocol import EngineRequest
from qwed.engines.uploads import UploadError, read_upload
from qwed.model import Status, Verdict

HINT = "write it like `average of sales = 42`, `rows where region = 'EU' is 12` or `p95(latency) < 200`"
_SHOWN_COLUMNS = 30
_COMPUTATION_ERRORS = (duckdb.Error, MemoryError, RecursionError, ArithmeticError, ValueError, OSError)
"""Exceptions for files or numbers beyond the database's limits; none of them decides a claim."""


def verify(request: EngineRequest) -> Verdict:
    """Return the verdict on a claim about the file in `content_base64`, with the deciding query."""
    if not isinstance(request.query, str) or not request.query.strip():
        return _verdict(Status.BLOCKED, "no claim was given", failed="claim_given")
    try:
        sheet = open_sheet(read_upload(request.parameters), request.parameters.get("format"))
    except UploadError as refused:
        return _verdict(Status.BLOCKED, str(refused), failed="file_readable")
    except _COMPUTATION_ERRORS as error:
        return _verdict(Status.BLOCKED, f"the file cannot be read: {type(error).__name__}", failed="file_readable")
    try:
        with open_table(sheet) as table:
            return _judge(request.query, table)
    except UploadError as refused:
        return _verdict(Status.INCONCLUSIVE, str(refused), failed="file_readable")
    except duckdb.InterruptException:
        return _verdict(Status.INCONCLUSIVE, "the query took too long", failed="within_time")
    except _COMPUTATION_ERRORS as error:
        return _verdict(Status.INCONCLUSIVE, _error_message(error), failed="file_readable")


def _error_message(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0][:160]
    return f"the file cannot be computed with: {first or type(error).__name__}"


def _judge(claim: str, table: LoadedTable) -> Verdict:
    try:
        cursor = ClaimCursor(tokenize_claim(claim), table.columns)
        parts = parse_claim(cursor)
    except ClaimSyntaxError as reason:
        names = [column.name[:60] for column in table.columns[:_SHOWN_COLUMNS]]
        message = f"{reason}: {HINT}; the columns are {', '.join(f'`{name}`' for name in names)}"
        return _verdict(Status.INCONCLUSIVE, message, failed="claim_understood", result={"columns": names})
    try:
        columns = create_data_table(table, cursor.used.values())
        answers = [verify_part(part, table, columns) for part in parts]
    except UploadError as refused:
        return _verdict(Status.INCONCLUSIVE, str(refused), failed="claim_computed")
    return _combine_answers(answers)


def _combine_answers(answers: list[PartVerdict]) -> Verdict:
    """Combine the parts: all must hold, and the worst one gives the status."""
    ranked = sorted(answers, key=lambda part: _RANK.index(part.status))
    first = ranked[0]
    result: dict[str, Any] = dict(first.result)
    if len(answers) > 1:
        result["parts"] = [{"status": part.status.value, **part.result} for part in answers]
    message = first.message if len(answers) == 1 else "; ".join(part.message for part in answers)
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
