"""CSV writer of a report's activities (RFC 4180, UTF-8), safe to open in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qwed.reports.json_format import coalesce_chunks

MEDIA = "text/csv; charset=utf-8"
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - a spreadsheet reads the full-width signs too


class CsvRow(NamedTuple):
    """One activity; field names are the columns. Missing values are empty."""

    activity_id: str
    timestamp: str
    decision: str
    event: str
    action_type: str
    action: str
    """Submitted action as JSON."""
    status: str
    engine: str
    risk_level: str
    error_code: str
    error_message: str
    conversation_id: str
    step_number: str
    user_intent: str
    justification: str
    about: str
    """Earlier activity, key or tool that a change refers to."""
    level_before: str
    level_after: str
    reason: str
    approver: str
    self_approved: str
    execution_success: str
    result_hash: str
    cost_usd: str
    tokens: str
    latency_ms: str
    by: str
    attestation_id: str
    content: str
    """`kept`, `erased` or `expired`."""
    log_index: str
    leaf_hash: str


def csv_chunks(rows: Iterable[CsvRow]) -> Iterator[bytes]:
    """Yield the file, header first."""
    yield ",".join(CsvRow._fields).encode() + b"\r\n"
    yield from coalesce_chunks(_lines(rows))


def _lines(rows: Iterable[CsvRow]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    for row in rows:
        writer.writerow(map(escape_formula, row))
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()


def escape_formula(cell: str) -> str:
    """Prefix a cell with an apostrophe if a spreadsheet would take it for a formula."""
    return f"'{cell}" if cell[:1] in _FORMULA else cell
