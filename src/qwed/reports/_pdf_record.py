"""The sections of the printed report that list what happened, one row each: trust, people, executions, refusals."""

from collections.abc import Sequence
from typing import Any

from reportlab.platypus import Spacer

from qwed.reports._pdf_tables import Column, grid
from qwed.reports._pdf_text import BLANK, HEADING, NOTE, Paragraph, Story, marked_up, moment, said, shortened, worded
from qwed.reports.data import Listed, ReportData
from qwed.reports.mapping import counted

_GONE = ("erased", "expired", "tampered")
_ENTRY = Column("Entry", 10, "number")


def trust(data: ReportData) -> Story:
    """The level now, and how it came about."""
    known = data.trust
    story: Story = [
        Paragraph("4. Trust", HEADING),
        marked_up(
            f"Level {known.level} ({known.name}) now. In the period it was raised {counted(known.raised, 'time')} by a "
            f"person, lowered {counted(known.lowered, 'time')} by a person and {counted(known.degraded, 'time')} by a "
            "rule."
        ),
    ]
    if not known.history.entries:
        return story
    columns = (Column("Time", 15), Column("Event", 17), Column("Level", 9), Column("By", 24, "id"), Column("Why", 36))
    rows = [
        (
            moment(row.at),
            _marked(worded(row.event), row.self_approved),
            _levels(row.level_before, row.level_after),
            row.by,
            why(row.reason, row.content, row.approver),
        )
        for row in known.history.entries
    ]
    return [*story, grid((*columns, _ENTRY), _with_index(rows, known.history)), *cut(known.history)]


def _levels(before: int | None, after: int | None) -> str:
    return " to ".join(BLANK if level is None else str(level) for level in (before, after))


def _marked(text: str, self_approved: bool) -> str:
    return f"{text}, self-approved" if self_approved else text


def why(reason: str | None, content: str, approver: str | None = None) -> Paragraph:
    """The reason that was given, or what became of it."""
    if content in _GONE:
        return said(content)
    named = f" (stated approver: {approver})" if approver else ""
    return said(f"{shortened(reason, 500)}{named}" if reason else named.strip() or None)


def _with_index(rows: Sequence[Sequence[Any]], history: Listed[Any]) -> list[list[Any]]:
    return [[*row, kept.log_index] for row, kept in zip(rows, history.entries, strict=True)]


def cut(listed: Listed[Any]) -> Story:
    """Words that say so where a list does not hold all there is."""
    if listed.total <= len(listed.entries):
        return []
    shown = f"The newest {len(listed.entries):,} of {listed.total:,}; all of them are in the JSON and CSV reports."
    return [Spacer(1, 3), marked_up(shown, NOTE)]


def approvals(data: ReportData) -> Story:
    """What waited for a person, who settled it, and why."""
    told = data.approvals
    story: Story = [
        Paragraph("5. Approvals", HEADING),
        marked_up(
            f"{told.requested:,} requested; {told.approved:,} approved, {told.rejected:,} rejected, {told.expired:,} "
            f"expired without an answer, {told.open:,} open at the end of the period. Approved by the key that had "
            f"asked: {told.self_approved:,}, which is possible only while an organisation has no other key; this is "
            "marked."
        ),
    ]
    if not told.history.entries:
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
            moment(row.requested_at),
            " ".join(filter(None, (row.action_type or worded(row.kind), row.risk_level and f"({row.risk_level})"))),
            row.requested_by,
            _marked(row.state, row.self_approved),
            moment(row.settled_at),
            row.settled_by,
            why(row.reason, row.content if row.settled_at else "kept", row.approver),
        )
        for row in told.history.entries
    ]
    return [*story, grid(columns, rows), *cut(told.history)]


def executions(data: ReportData) -> Story:
    """What is said to have become of what was permitted, and of what was not."""
    told = data.executions
    story: Story = [
        Paragraph("6. Executions", HEADING),
        marked_up(
            f"{told.done:,} reported as done, {told.failed:,} as failed, {told.unpermitted:,} without permission "
            "(`executed_unpermitted`). Executions are reported by the agent or for it; the node carries none of them "
            "out."
        ),
    ]
    if not told.exceptions.entries:
        return story
    columns = (Column("Time", 15), Column("Outcome", 21), Column("Action", 40, "id"), Column("By", 24, "id"))
    rows = [(moment(row.at), row.outcome, row.action_id, row.by) for row in told.exceptions.entries]
    table = grid((*columns, _ENTRY), _with_index(rows, told.exceptions))
    return [*story, table, *cut(told.exceptions)]


def standing(data: ReportData) -> Story:
    """When it was stopped, by whom and why."""
    told = data.standing
    story: Story = [
        Paragraph("7. Suspensions and complaints", HEADING),
        marked_up(
            f"{counted(told.suspended, 'suspension')}, {counted(told.complaints, 'complaint')} (a complaint suspends "
            f"the agent), {counted(told.reactivated, 'reactivation')}, {counted(told.token_rotated, 'rotation')} of "
            f"its token. The kill switch stopped every agent of the organisation {counted(told.halted, 'time')} and "
            f"was put back {counted(told.resumed, 'time')}."
        ),
    ]
    if not told.history.entries:
        return story
    columns = (Column("Time", 15), Column("Event", 16), Column("By", 26, "id"), Column("Why", 42))
    rows = [(moment(row.at), worded(row.event), row.by, why(row.reason, row.content)) for row in told.history.entries]
    table = grid((*columns, _ENTRY), _with_index(rows, told.history))
    return [*story, table, *cut(told.history)]


def refusals(data: ReportData) -> Story:
    """The decisions that permitted nothing, one by one."""
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
        (moment(row.at), row.activity_id, row.action_type, row.risk_level, row.code) for row in data.refusals.entries
    ]
    table = grid((*columns, _ENTRY), _with_index(rows, data.refusals))
    return [*story, table, *cut(data.refusals)]
