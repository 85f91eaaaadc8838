"""The activities of a report as CSV (RFC 4180, UTF-8), one row each, safe to open in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qwed.reports.json_format import gathered

MEDIA = "text/csv; charset=utf-8"
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - a spreadsheet reads the full-width signs too


class CsvRow(NamedTuple):
    """One activity; the names are the columns. What an activity does not have is empty."""

    activity_id: str
    timestamp: str
    decision: str
    event: str
    action_type: str
    action: str
    """The action as it was asked, as JSON."""
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
    """The earlier activity, or the key or tool, that a change is about."""
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
    """The bytes of the file, its header first."""
    yield ",".join(CsvRow._fields).encode() + b"\r\n"
    yield from gathered(_lines(rows))


def _lines(rows: Iterable[CsvRow]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    for row in rows:
        writer.writerow(map(harmless, row))
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()


def harmless(cell: str) -> str:
    """The cell with an apostrophe before whatever a spreadsheet would take for a formula."""
    return f"'{cell}" if cell[:1] in _FORMULA else cell
