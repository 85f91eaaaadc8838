"""What was found in a log, in words and as JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qwed.cli.audit.verify import Asked, Log, Report


def as_text(report: "Report", asked: "Asked") -> Iterator[str]:
    """Lines: what is wrong, what is worth knowing, how much there was, and the sum of it."""
    for log in report.logs:
        for finding in log.findings:
            yield f"{log.log_id}: {finding.where}: {finding.what}"
        if log.unlisted:
            yield f"{log.log_id}: and {log.unlisted} more of the kind"
    yield from (f"{finding.where}: {finding.what}" for finding in report.findings)
    yield from (f"note: {note}" for note in report.notes)
    yield from (_summary(log, asked) for log in report.logs)
    yield f"{_many(report.wrong, 'thing')} wrong" if report.wrong else "nothing is wrong"


def _summary(log: "Log", asked: "Asked") -> str:
    content = ", ".join(f"{count} {state}" for state, count in sorted(log.contents.items()))
    heads = asked.heads_of(log.log_id)
    saved = 0 if heads is None else heads.count
    parts = [
        f"{log.log_id}: {_many(log.size, 'entry', 'entries')}, {_many(log.heads, 'head')}, root {log.root}",
        f"content: {content}" if content else "",
        f"compared with {_many(saved, 'saved head')}" if saved else "",
    ]
    return "; ".join(part for part in parts if part)


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def as_json(report: "Report") -> dict[str, Any]:
    """The same for a program."""
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
