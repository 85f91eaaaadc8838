"""The sections of the printed report, in the order in which they are read."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from reportlab.platypus import Flowable, KeepTogether, Paragraph, Spacer

from qwed.reports._pdf_charts import bars_of, codes_chart, decisions_chart
from qwed.reports._pdf_tables import WIDTH, Column, IdColumns, facts, grid, numbered, tiles
from qwed.reports._pdf_text import BODY, HEADING, MINOR, NOTE, TITLE, identifier, marked_up, said, shortened
from qwed.reports.data import Counts, Day, Listed, Receipt, ReportData
from qwed.reports.mapping import frameworks_in

Story = list[Flowable]
_DECISIONS = ("approved", "corrected", "pending", "denied", "budget_exceeded")
_COUNTED = tuple(Column(name, 9, "number") for name in ("Total", "Approved", "Corrected", "Pending", "Denied", "Budget"))
_GONE = ("erased", "expired")


def title(data: ReportData) -> Story:
    """What this is, of whom, of when."""
    head = data.log.head
    of_the_log = "no signed head yet" if head is None else f"{head.size:,} entries, root {head.root}"
    return [
        Paragraph("Compliance report", TITLE),
        Spacer(1, 4),
        facts(
            [
                ("Agent", said(data.agent.name, BODY)),
                ("Agent id", identifier(data.agent_id)),
                ("Period (UTC)", f"{data.period.since} (inclusive) to {data.period.until} (exclusive)"),
                ("As of", f"{data.generated_at}, the time of the log's head"),
                ("Report id", identifier(data.report_id)),
                ("Log", identifier(of_the_log)),
            ]
        ),
        Spacer(1, 10),
        tiles(_figures(data)),
        Spacer(1, 8),
        marked_up(
            "Every figure is computed from the node's append-only log, in which an entry is durable before its answer is "
            "given; section 10 says how to check that without trusting whoever made this report. Times are UTC."
        ),
        marked_up(data.mapping.statement, NOTE),
    ]


def _figures(data: ReportData) -> list[tuple[str, str]]:
    told = data.summary
    return [
        ("decisions", f"{told.total_actions:,}"),
        ("approved", f"{told.approved:,}"),
        ("corrected", f"{told.corrected:,}"),
        ("pending", f"{told.pending:,}"),
        ("denied", f"{told.denied:,}"),
        ("over budget", f"{told.budget_exceeded:,}"),
        ("cost, USD", f"{told.total_cost_usd:,}"),
    ]


def the_agent(data: ReportData) -> Story:
    """Who it is, what it may do, what it may spend."""
    agent = data.agent
    known = [
        ("Status", agent.status),
        ("Trust level", f"{agent.trust_level}, {agent.trust_name}"),
        ("Type", agent.type),
        ("Principal", agent.principal_id),
        ("Description", agent.description),
        ("Framework, model", f"{agent.framework or '–'}, {agent.model or '–'}"),
        ("Registered", agent.created_at),
        ("DID", identifier(agent.did)),
        ("Organisation", identifier(agent.organisation_id)),
    ]
    return [
        Paragraph("1. The agent", HEADING),
        facts(known),
        Paragraph("Permissions", MINOR),
        facts([(_worded(name), _permitted(value)) for name, value in agent.permissions.items()]),
        Paragraph("Limits of the budget", MINOR),
        facts([(_worded(name), "no limit" if value is None else f"{value:,}") for name, value in agent.budget.items()]),
    ]


def _worded(name: str) -> str:
    return name.replace("_", " ").replace(" usd", ", USD").capitalize()


def _permitted(value: Any) -> str:
    if value is None:
        return "no limit of this kind"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def decisions(data: ReportData) -> Story:
    """How it was decided: per day, code, risk and type."""
    counted = data.decisions
    story: Story = [Paragraph("2. Decisions", HEADING)]
    if not counted.by_day:
        return [*story, marked_up("Nothing was decided in the period.")]
    bars, days = bars_of(counted.by_day, *_days_of(data))
    each = "day" if days == 1 else f"{days} days"
    story += [
        KeepTogether([Paragraph(f"Decisions per {each}", MINOR), decisions_chart(bars, WIDTH)]),
        grid((Column("Day", 14), *_COUNTED), [_counted(row.day, row) for row in counted.by_day]),
    ]
    story += _refusals_by_code(data)
    for name, rows in (
        ("Risk level", counted.by_risk),
        ("Type of action", counted.by_action_type),
        ("Engine", counted.by_engine),
    ):
        if rows:
            heading = Paragraph(f"By {name.lower()}", MINOR)
            story += [heading, grid((Column(name, 22), *_COUNTED), [_counted(row.name, row) for row in rows])]
    return story


def _days_of(data: ReportData) -> tuple[date, date]:
    """The first and the last UTC day of the period, whose end is not part of it."""
    first = datetime.fromisoformat(data.period.since).date()
    last = (datetime.fromisoformat(data.period.until) - timedelta(milliseconds=1)).date()
    return first, max(first, last)


def _counted(name: str, row: Counts | Day) -> list[Any]:
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
    """What was used each day, against the limits of a day."""
    limits = data.agent.budget
    most = [limits.get(name) for name in ("max_daily_cost_usd", "max_requests_per_day", "max_tokens_per_day")]
    days = [row for row in data.decisions.by_day if row.cost_usd or row.requests or row.tokens]
    story: Story = [
        Paragraph("3. Use of the budget", HEADING),
        marked_up(
            "Against the daily limits as they stand: cost "
            f"{_limit(most[0])} USD, requests {_limit(most[1])}, tokens {_limit(most[2])}. Cost and tokens count on the day "
            "on which they were permitted; requests are all decisions but those that the budget itself refused.",
            NOTE,
        ),
    ]
    if not days:
        return [*story, marked_up("Nothing was used in the period.")]
    share = Column("of limit", 9, "number")
    columns = (Column("Day", 14), Column("Cost, USD", 12, "number"), share, Column("Requests", 12, "number"), share)
    rows = [_used(row, most) for row in days]
    return [*story, grid((*columns, Column("Tokens", 14, "number"), share), rows)]


def _limit(value: float | None) -> str:
    return "no limit" if value is None else f"{value:,}"


def _used(row: Day, most: Sequence[float | None]) -> list[Any]:
    cells: list[Any] = [row.day]
    for used, limit in zip((row.cost_usd, row.requests, row.tokens), most, strict=True):
        share = "–" if limit is None else f"{used / limit:.0%}" if limit else "100%"
        cells += [used, share]
    return cells


def trust(data: ReportData) -> Story:
    """The level now, and how it came about."""
    known = data.trust
    story: Story = [
        Paragraph("4. Trust", HEADING),
        marked_up(
            f"Level {known.level} ({known.name}) now. In the period it was raised {known.raised:,} times by a person, "
            f"lowered {known.lowered:,} times by a person and {known.degraded:,} times by a rule."
        ),
    ]
    if not known.history.entries:
        return story
    columns = (Column("Time", 21), Column("Event", 15), Column("Level", 9), Column("By", 24, "id"), Column("Why", 36))
    rows = [
        (
            row.at,
            _marked(_worded(row.event), row.self_approved),
            _levels(row.level_before, row.level_after),
            row.by,
            _why(row.reason, row.content, row.approver),
        )
        for row in known.history.entries
    ]
    return [*story, grid((*columns, Column("Entry", 10, "number")), _with_index(rows, known.history)), *_cut(known.history)]


def _levels(before: int | None, after: int | None) -> str:
    return " to ".join("–" if level is None else str(level) for level in (before, after))


def _marked(text: str, self_approved: bool) -> str:
    return f"{text} (self-approved)" if self_approved else text


def _why(reason: str | None, content: str, approver: str | None = None) -> Paragraph:
    if content in _GONE:
        return said(content)
    named = f" (stated approver: {approver})" if approver else ""
    return said(f"{shortened(reason, 500)}{named}" if reason else named.strip() or None)


def _with_index(rows: Sequence[Sequence[Any]], history: Listed[Any]) -> list[list[Any]]:
    return [[*row, kept.log_index] for row, kept in zip(rows, history.entries, strict=True)]


def _cut(listed: Listed[Any]) -> Story:
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
            f"expired without an answer, {told.open:,} open at the end of the period. {told.self_approved:,} were approved "
            "by the key that had asked, which is possible only while an organisation has no other key; they are marked."
        ),
    ]
    if not told.history.entries:
        return story
    columns = (
        Column("Requested", 20),
        Column("What", 15),
        Column("Requested by", 18, "id"),
        Column("State", 13),
        Column("Settled", 20),
        Column("Settled by", 18, "id"),
        Column("Why", 30),
    )
    rows = [
        (
            row.requested_at,
            " ".join(filter(None, (row.action_type or _worded(row.kind), row.risk_level and f"({row.risk_level})"))),
            row.requested_by,
            _marked(row.state, row.self_approved),
            row.settled_at,
            row.settled_by,
            _why(row.reason, row.content if row.settled_at else "kept", row.approver),
        )
        for row in told.history.entries
    ]
    return [*story, grid(columns, rows), *_cut(told.history)]


def executions(data: ReportData) -> Story:
    """What is said to have become of what was permitted, and of what was not."""
    told = data.executions
    story: Story = [
        Paragraph("6. Executions", HEADING),
        marked_up(
            f"{told.done:,} reported as done, {told.failed:,} as failed, {told.unpermitted:,} without permission "
            "(`executed_unpermitted`). Executions are reported by the agent or for it; the node does not carry them out."
        ),
    ]
    if not told.exceptions.entries:
        return story
    columns = (Column("Time", 21), Column("Outcome", 21), Column("Action", 40, "id"), Column("By", 24, "id"))
    rows = [(row.at, row.outcome, row.action_id, row.by) for row in told.exceptions.entries]
    table = grid((*columns, Column("Entry", 10, "number")), _with_index(rows, told.exceptions))
    return [*story, table, *_cut(told.exceptions)]


def standing(data: ReportData) -> Story:
    """When it was stopped, by whom and why."""
    told = data.standing
    story: Story = [
        Paragraph("7. Suspensions and complaints", HEADING),
        marked_up(
            f"{told.suspended:,} suspensions, {told.complaints:,} complaints (each of which suspends the agent), "
            f"{told.reactivated:,} reactivations, {told.token_rotated:,} rotations of its token."
        ),
    ]
    if not told.history.entries:
        return story
    columns = (Column("Time", 21), Column("Event", 16), Column("By", 26, "id"), Column("Why", 42))
    rows = [(row.at, _worded(row.event), row.by, _why(row.reason, row.content)) for row in told.history.entries]
    table = grid((*columns, Column("Entry", 10, "number")), _with_index(rows, told.history))
    return [*story, table, *_cut(told.history)]


def refusals(data: ReportData) -> Story:
    """The decisions that permitted nothing, one by one."""
    story: Story = [Paragraph("8. Refused decisions", HEADING)]
    if not data.refusals.entries:
        return [*story, marked_up("None in the period.")]
    columns = (
        Column("Time", 21),
        Column("Activity", 30, "id"),
        Column("Type of action", 16),
        Column("Risk", 9),
        Column("Code", 25, "id"),
    )
    rows = [(row.at, row.activity_id, row.action_type, row.risk_level, row.code) for row in data.refusals.entries]
    table = grid((*columns, Column("Entry", 10, "number")), _with_index(rows, data.refusals))
    return [*story, table, *_cut(data.refusals)]


def the_log(data: ReportData) -> Story:
    """Where the record stands, and proofs for its first and last entry."""
    log, kept = data.log, data.contents
    story: Story = [
        Paragraph("9. The log", HEADING),
        marked_up(
            f"{data.activity_count:,} entries of the log belong to this agent and period. The content beside them is kept "
            f"for {kept.kept:,}, erased for {kept.erased:,} and expired by retention for {kept.expired:,}; the entries "
            "themselves are never removed."
        ),
    ]
    if log.head is None:
        return [*story, marked_up("The log has no signed head yet, so nothing can be proved with this report.")]
    story.append(
        facts(
            [
                ("Log id", identifier(log.head.log_id)),
                ("Size", f"{log.head.size:,}"),
                ("Root", identifier(log.head.root)),
                ("Time", log.head.time),
                ("Issuer", identifier(log.issuer)),
                ("Key id (kid)", identifier(log.kid)),
                ("Signature (JWS)", identifier(log.head.signature)),
                ("SHA-256 of the leaves", identifier(log.leaves_sha256)),
            ]
        )
    )
    for name, receipt in (("first", log.first), ("last", log.last)):
        if receipt is not None:
            story += _receipt(name, receipt)
    return story


def _receipt(name: str, receipt: Receipt) -> Story:
    return [
        Paragraph(f"Inclusion of the period's {name} entry", MINOR),
        facts(
            [
                ("Index", f"{receipt.index:,}"),
                ("Leaf", identifier(receipt.leaf)),
                ("Audit path", [identifier(step) for step in receipt.path] or "empty: the log has one entry"),
            ]
        ),
    ]


def how_to_verify(data: ReportData) -> Story:
    """What a reader does to check it."""
    return [Paragraph("10. How to verify this report", HEADING), numbered(data.verification)]


def mapping(data: ReportData) -> Story:
    """What the data shows for clauses that auditors ask about."""
    story: Story = [Paragraph("11. What the data shows for common frameworks", HEADING), marked_up(data.mapping.statement)]
    for framework in frameworks_in(data.mapping.clauses):
        rows = [(row.clause, row.title, row.shows) for row in data.mapping.clauses if row.framework == framework]
        columns = (Column("Clause", 14), Column("Subject", 26), Column("What the data shows", 62))
        story += [Paragraph(framework, MINOR), grid(columns, rows)]
    return story


def attestations(data: ReportData) -> Story:
    """Every attestation, with the entry that carries it."""
    count = len(data.attestations)
    story: Story = [
        Paragraph("Appendix: attestations", HEADING),
        marked_up(f"{count:,} in the period, each with the index of its entry in the log, newest first."),
    ]
    return [*story, IdColumns(data.attestations)] if count else story


SECTIONS: tuple[Callable[[ReportData], Story], ...] = (
    title,
    the_agent,
    decisions,
    budget,
    trust,
    approvals,
    executions,
    standing,
    refusals,
    the_log,
    how_to_verify,
    mapping,
    attestations,
)
