"""Text and JSON rendering of an audit report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed.cli.audit.verify import AuditReport, VerifiedLog, VerifyRequest


def report_lines(report: "AuditReport", request: "VerifyRequest") -> Iterator[str]:
    """Yield the findings, the notes, a summary of each log and the result."""
    for log in report.logs:
        for finding in log.findings:
            yield f"{log.log_id}: {finding.where}: {finding.what}"
        if log.unlisted:
            yield f"{log.log_id}: and {log.unlisted} more findings"
    yield from (f"{finding.where}: {finding.what}" for finding in report.findings)
    yield from (f"note: {note}" for note in report.notes)
    yield from (_summary(log, request) for log in report.logs)
    yield f"{_count(report.wrong, 'problem')} found" if report.wrong else "nothing is wrong"


def _summary(log: "VerifiedLog", request: "VerifyRequest") -> str:
    content = ", ".join(f"{count} {state}" for state, count in sorted(log.contents.items()))
    heads = request.heads_of(log.log_id)
    saved = 0 if heads is None else heads.count
    parts = [
        f"{log.log_id}: {_count(log.size, 'entry', 'entries')}, {_count(log.heads, 'head')}, root {log.root}",
        f"content: {content}" if content else "",
        f"compared with {_count(saved, 'saved head')}" if saved else "",
    ]
    return "; ".join(part for part in parts if part)


def _count(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def report_json(report: "AuditReport") -> dict[str, Any]:
    """Return the report as a JSON-serializable dict."""
    logs = [
        {**log._asdict(), "findings": [finding._asdict() for finding in log.findings], "unlisted": log.unlisted}
        for log in report.logs
    ]
    findings = [finding._asdict() for finding in report.findings]
    return {
        "valid": not report.wrong,
        "count": report.wrong,
        "logs": logs,
        "findings": findings,
        "notes": report.notes,
    }
