"""PDF sections that list events: trust, approvals, executions, lifecycle, refusals."""

from collections.abc import Sequence
from typing import Any

from reportlab.platypus import Spacer

from qwed.reports._pdf_tables import Column, grid
from qwed.reports._pdf_text import (
    BLANK,
    HEADING,
    NOTE,
    Paragraph,
    Story,
    format_time,
    humanize,
    marked_up,
    text_cell,
    truncate,
)
from qwed.reports.framework_mapping import plural
from qwed.reports.report_data import BoundedList, ReportData

_UNAVAILABLE = ("erased", "expired", "tampered")
_ENTRY = Column("Entry", 10, "number")


def trust(data: ReportData) -> Story:
    """Render the current level and its history."""
    stats = data.trust
    story: Story = [
        Paragraph("4. Trust", HEADING),
        marked_up(
            f"Level {stats.level} ({stats.name}) now. In the period it was raised {plural(stats.raised, 'time')} by a "
            f"person, lowered {plural(stats.lowered, 'time')} by a person and {plural(stats.degraded, 'time')} by a "
            "rule."
        ),
    ]
    if not stats.history.entries:
        return story
    columns = (Column("Time", 15), Column("Event", 17), Column("Level", 9), Column("By", 24, "id"), Column("Why", 36))
    rows = [
        (
            format_time(row.at),
            _marked(humanize(row.event), row.self_approved),
            _levels(row.level_before, row.level_after),
            row.by,
            reason_cell(row.reason, row.content, row.approver),
        )
        for row in stats.history.entries
    ]
    return [*story, grid((*columns, _ENTRY), _with_index(rows, stats.history)), *truncation_note(stats.history)]


def _levels(before: int | None, after: int | None) -> str:
    return " to ".join(BLANK if level is None else str(level) for level in (before, after))


def _marked(text: str, self_approved: bool) -> str:
    return f"{text}, self-approved" if self_approved else text


def reason_cell(reason: str | None, content: str, approver: str | None = None) -> Paragraph:
    """Render the stated reason, or why it is not available."""
    if content in _UNAVAILABLE:
        return text_cell(content)
    named = f" (stated approver: {approver})" if approver else ""
    return text_cell(f"{truncate(reason, 500)}{named}" if reason else named.strip() or None)


def _with_index(rows: Sequence[Sequence[Any]], history: BoundedList[Any]) -> list[list[Any]]:
    return [[*row, entry.log_index] for row, entry in zip(rows, history.entries, strict=True)]


def truncation_note(listed: BoundedList[Any]) -> Story:
    """Return a note if the list does not contain all entries."""
    if listed.total <= len(listed.entries):
        return []
    note = f"The newest {len(listed.entries):,} of {listed.total:,}; all of them are in the JSON and CSV reports."
    return [Spacer(1, 3), marked_up(note, NOTE)]


def approvals(data: ReportData) -> Story:
    """Render the approval requests and their outcomes."""
    stats = data.approvals
    story: Story = [
        Paragraph("5. Approvals", HEADING),
        marked_up(
            f"{stats.requested:,} requested; {stats.approved:,} approved, {stats.rejected:,} rejected, "
            f"{stats.expired:,} "
            f"expired without an answer, {stats.open:,} open at the end of the period. Approved by the key that had "
            f"asked: {stats.self_approved:,}, which is possible only while an organisation has no other key; this is "
            "marked."
        ),
    ]
    if not stats.history.entries:
        return story
    columns = (
        Column("Requested", 17),
        Column("What", 15),
        Column("Requested by", 20, "id"),
        Column("State", 17),
        Column("Settled", 17),
        Column("Settled by", 20, "id"),
        Column("Why", 30),
    )
    rows = [
        (
            format_time(row.requested_at),
            " ".join(filter(None, (row.action_type or humanize(row.kind), row.risk_level and f"({row.risk_level})"))),
            row.requested_by,
            _marked(row.state, row.self_approved),
            format_time(row.settled_at),
            row.settled_by,
            reason_cell(row.reason, row.content if row.settled_at else "kept", row.approver),
        )
        for row in stats.history.entries
    ]
    return [*story, grid(columns, rows), *truncation_note(stats.history)]


def executions(data: ReportData) -> Story:
    """Render the reported executions."""
    stats = data.executions
    story: Story = [
        Paragraph("6. Executions", HEADING),
        marked_up(
            f"{stats.done:,} reported as done, {stats.failed:,} as failed, {stats.unpermitted:,} without permission "
            "(`executed_unpermitted`). Executions are reported by the agent or for it; the node carries none of them "
            "out."
        ),
    ]
    if not stats.exceptions.entries:
        return story
    columns = (Column("Time", 15), Column("Outcome", 21), Column("Action", 40, "id"), Column("By", 24, "id"))
    rows = [(format_time(row.at), row.outcome, row.action_id, row.by) for row in stats.exceptions.entries]
    table = grid((*columns, _ENTRY), _with_index(rows, stats.exceptions))
    return [*story, table, *truncation_note(stats.exceptions)]


def lifecycle(data: ReportData) -> Story:
    """Render suspensions, complaints and stops."""
    stats = data.standing
    story: Story = [
        Paragraph("7. Suspensions and complaints", HEADING),
        marked_up(
            f"{plural(stats.suspended, 'suspension')}, {plural(stats.complaints, 'complaint')} (a complaint suspends "
            f"the agent), {plural(stats.reactivated, 'reactivation')}, {plural(stats.token_rotated, 'rotation')} of "
            f"its token. The kill switch stopped every agent of the organisation {plural(stats.halted, 'time')} and "
            f"was put back {plural(stats.resumed, 'time')}."
        ),
    ]
    if not stats.history.entries:
        return story
    columns = (Column("Time", 15), Column("Event", 16), Column("By", 26, "id"), Column("Why", 42))
    rows = [
        (format_time(row.at), humanize(row.event), row.by, reason_cell(row.reason, row.content))
        for row in stats.history.entries
    ]
    table = grid((*columns, _ENTRY), _with_index(rows, stats.history))
    return [*story, table, *truncation_note(stats.history)]


def refusals(data: ReportData) -> Story:
    """Render the decisions that permitted nothing."""
    story: Story = [Paragraph("8. Refused decisions", HEADING)]
    if not data.refusals.entries:
        return [*story, marked_up("None in the period.")]
    columns = (
        Column("Time", 24),
        Column("Activity", 33, "id"),
        Column("Type of action", 18),
        Column("Risk", 10),
        Column("Code", 25, "id"),
    )
    rows = [
        (format_time(row.at), row.activity_id, row.action_type, row.risk_level, row.code)
        for row in data.refusals.entries
    ]
    table = grid((*columns, _ENTRY), _with_index(rows, data.refusals))
    return [*story, table, *truncation_note(data.refusals)]
