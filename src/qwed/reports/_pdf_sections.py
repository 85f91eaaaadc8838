"""Sections of the PDF report in reading order."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from reportlab.platypus import KeepTogether, Spacer

from qwed.reports._pdf_charts import bars_of, codes_chart, decisions_chart
from qwed.reports._pdf_proof import attestations, how_to_verify, mapping, the_log
from qwed.reports._pdf_record import approvals, executions, lifecycle, refusals, trust
from qwed.reports._pdf_tables import WIDTH, Column, facts, grid, tiles
from qwed.reports._pdf_text import (
    BLANK,
    BODY,
    HEADING,
    MINOR,
    NOTE,
    TITLE,
    Paragraph,
    Story,
    format_time,
    format_usd,
    humanize,
    identifier,
    marked_up,
    text_cell,
)
from qwed.reports.report_data import DailyCounts, DecisionCounts, ReportData

_DECISIONS = ("approved", "corrected", "pending", "denied", "budget_exceeded")
_COUNT_COLUMNS = tuple(
    Column(name, 9, "number") for name in ("Total", "Approved", "Corrected", "Pending", "Denied", "Budget")
)


def title(data: ReportData) -> Story:
    """Render the title page: agent, period and key figures."""
    head = data.log.head
    of_the_log = "no signed head yet" if head is None else f"{head.size:,} entries, root {head.root}"
    return [
        Paragraph("Compliance report", TITLE),
        Spacer(1, 4),
        facts(
            [
                ("Agent", text_cell(data.agent.name, BODY)),
                ("Agent id", identifier(data.agent_id)),
                (
                    "Period (UTC)",
                    f"{format_time(data.period.since)} (inclusive) to {format_time(data.period.until)} (exclusive)",
                ),
                ("As of", f"{format_time(data.generated_at)}, the time of the log's head"),
                ("Report id", identifier(data.report_id)),
                ("Log", identifier(of_the_log)),
            ]
        ),
        Spacer(1, 10),
        tiles(_figures(data)),
        Spacer(1, 8),
        marked_up(
            "Every figure is computed from the node's append-only log, in which an entry is durable before its answer "
            "is given; section 10 says how to check that without trusting its issuer. Times are UTC."
        ),
        marked_up(data.mapping.statement, NOTE),
        marked_up("Characters that the typeface lacks are printed as their code points, such as [U+4E2D].", NOTE),
    ]


def _figures(data: ReportData) -> list[tuple[str, str]]:
    summary = data.summary
    return [
        ("decisions", f"{summary.total_actions:,}"),
        ("approved", f"{summary.approved:,}"),
        ("corrected", f"{summary.corrected:,}"),
        ("pending", f"{summary.pending:,}"),
        ("denied", f"{summary.denied:,}"),
        ("over budget", f"{summary.budget_exceeded:,}"),
        ("cost, USD", format_usd(summary.total_cost_usd)),
    ]


def the_agent(data: ReportData) -> Story:
    """Render the agent, its permissions and its limits."""
    agent = data.agent
    rows = [
        ("Status", agent.status),
        ("Trust level", f"{agent.trust_level}, {agent.trust_name}"),
        ("Type", agent.type),
        ("Principal", agent.principal_id),
        ("Description", agent.description),
        ("Framework, model", f"{agent.framework or BLANK}, {agent.model or BLANK}"),
        ("Registered", format_time(agent.created_at)),
        ("DID", identifier(agent.did)),
        ("Organisation", identifier(agent.organisation_id)),
    ]
    return [
        Paragraph("1. The agent", HEADING),
        facts(rows),
        Paragraph("Permissions", MINOR),
        facts([(humanize(name), _format_permission(value)) for name, value in agent.permissions.items()]),
        Paragraph("Limits of the budget", MINOR),
        facts(
            [(humanize(name), "no limit" if value is None else f"{value:,}") for name, value in agent.budget.items()]
        ),
    ]


def _format_permission(value: Any) -> str:
    if value is None:
        return "no limit of this kind"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def decisions(data: ReportData) -> Story:
    """Render decisions by day, error code, risk and action type."""
    statistics = data.decisions
    heading = Paragraph("2. Decisions", HEADING)
    if not statistics.by_day:
        return [heading, marked_up("Nothing was decided in the period.")]
    bars, days = bars_of(statistics.by_day, *_days_of(data))
    unit = "day" if days == 1 else f"{days} days"
    story: Story = [
        KeepTogether([heading, Paragraph(f"Decisions per {unit}", MINOR), decisions_chart(bars, WIDTH)]),
        grid((Column("Day", 14), *_COUNT_COLUMNS), [_count_row(row.day, row) for row in statistics.by_day]),
    ]
    story += _refusals_by_code(data)
    for name, rows in (
        ("Risk level", statistics.by_risk),
        ("Type of action", statistics.by_action_type),
        ("Engine", statistics.by_engine),
    ):
        if rows:
            story += [
                Paragraph(f"By {name.lower()}", MINOR),
                grid((Column(name, 22), *_COUNT_COLUMNS), [_count_row(row.name, row) for row in rows]),
            ]
    return story


def _days_of(data: ReportData) -> tuple[date, date]:
    """Return the first and last UTC day of the period, whose end is exclusive."""
    first = datetime.fromisoformat(data.period.since).date()
    last = (datetime.fromisoformat(data.period.until) - timedelta(milliseconds=1)).date()
    return first, max(first, last)


def _count_row(name: str, row: DecisionCounts | DailyCounts) -> list[Any]:
    return [name, row.total, *(getattr(row, each) for each in _DECISIONS)]


def _refusals_by_code(data: ReportData) -> Story:
    rows = data.decisions.refused_by_code
    if not rows:
        return [Paragraph("Refusals by error code", MINOR), marked_up("None.")]
    return [
        KeepTogether([Paragraph("Refusals by error code", MINOR), codes_chart(rows, WIDTH)]),
        Spacer(1, 4),
        grid(
            (Column("Code", 28, "id"), Column("Meaning", 50), Column("Refused", 12, "number")),
            [(row.code, row.meaning, row.count) for row in rows],
        ),
    ]


def budget(data: ReportData) -> Story:
    """Render daily usage against the daily limits."""
    limits = data.agent.budget
    most = [limits.get(name) for name in ("max_daily_cost_usd", "max_requests_per_day", "max_tokens_per_day")]
    days = [row for row in data.decisions.by_day if row.cost_usd or row.requests or row.tokens]
    story: Story = [
        Paragraph("3. Use of the budget", HEADING),
        marked_up(
            f"Against the current daily limits: cost {_limit(most[0])} USD, requests {_limit(most[1])}, tokens "
            f"{_limit(most[2])}. Cost and tokens count on the day on which they were permitted; requests that were "
            "refused before admission or by the budget itself count against no limit.",
            NOTE,
        ),
    ]
    if not days:
        return [*story, marked_up("Nothing was used in the period.")]
    share = Column("of limit", 9, "number")
    columns = (Column("Day", 14), Column("Cost, USD", 12, "number"), share, Column("Requests", 12, "number"), share)
    rows = [_usage_row(row, most) for row in days]
    return [*story, grid((*columns, Column("Tokens", 14, "number"), share), rows)]


def _limit(value: float | None) -> str:
    return "no limit" if value is None else f"{value:,}"


def _usage_row(row: DailyCounts, most: Sequence[float | None]) -> list[Any]:
    cells: list[Any] = [row.day]
    shown = (format_usd(row.cost_usd), f"{row.requests:,}", f"{row.tokens:,}")
    for text, used, limit in zip(shown, (row.cost_usd, row.requests, row.tokens), most, strict=True):
        cells += [text, _share(used, limit)]
    return cells


def _share(used: float, limit: float | None) -> str:
    if limit is None:
        return BLANK
    return f"{used / limit:.1%}" if limit else "all" if used else "0.0%"


SECTIONS: tuple[Callable[[ReportData], Story], ...] = (
    title,
    the_agent,
    decisions,
    budget,
    trust,
    approvals,
    executions,
    lifecycle,
    refusals,
    the_log,
    how_to_verify,
    mapping,
    attestations,
)
