"""Mapping of report data to clauses of compliance frameworks."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qwed.model import ErrorCode
from qwed.reports.report_data import Clause, FrameworkMapping, ReportData

EU_AI_ACT = "EU AI Act, Regulation (EU) 2024/1689"
ISO_42001 = "ISO/IEC 42001:2023"
OWASP_AGENTIC = "OWASP Top 10 for Agentic Applications 2026"

_CODE_RUNS = ("execute_code", "shell_command")
_LOOPS = (ErrorCode.STEP_LIMIT, ErrorCode.REPLAY, ErrorCode.REPETITION, ErrorCode.NO_PROGRESS)
_BUDGET = (ErrorCode.COST_EXCEEDED, ErrorCode.RATE_EXCEEDED, ErrorCode.TOKENS_EXCEEDED)


class ClauseRule(NamedTuple):
    """One clause and the function that describes the data for it."""

    framework: str
    clause: str
    title: str
    shows: Callable[[ReportData], str]


def mapping_of(data: ReportData) -> FrameworkMapping:
    """Return every clause with what this report shows for it."""
    return FrameworkMapping(
        clauses=tuple(
            Clause(framework=row.framework, clause=row.clause, title=row.title, shows=row.shows(data))
            for row in CLAUSES
        )
    )


def plural(count: int, one: str, many: str = "") -> str:
    """Format a number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _count_refusals(data: ReportData, *codes: ErrorCode) -> int:
    values = {code.code for code in codes}
    return sum(row.count for row in data.decisions.refused_by_code if row.code in values)


def _count_high_risk(data: ReportData) -> int:
    return sum(row.total for row in data.decisions.by_risk if row.name in ("high", "critical"))


def _stop_summary(data: ReportData) -> str:
    stats = data.standing
    one_by_one = f"{plural(stats.suspended, 'suspension')} and {plural(stats.complaints, 'complaint')}"
    return f"{one_by_one}, {plural(stats.halted, 'use')} of the kill switch"


def _approval_summary(data: ReportData) -> str:
    stats = data.approvals
    return (
        f"{plural(stats.requested, 'request')} for a person, {stats.approved:,} approved, {stats.rejected:,} "
        f"rejected, {stats.expired:,} run out, {stats.open:,} still open at the end of the period, "
        f"{stats.self_approved:,} approved by the key that asked"
    )


def _execution_summary(data: ReportData) -> str:
    stats = data.executions
    return (
        f"{plural(stats.done, 'execution')} reported as done, {stats.failed:,} as failed, "
        f"{stats.unpermitted:,} without permission"
    )


def _recorded(data: ReportData) -> str:
    head = data.log.head
    signed = f", which holds {plural(head.size, 'entry', 'entries')} under a signed head" if head is not None else ""
    recorded = plural(data.activity_count, "activity", "activities")
    return f"{recorded} of the agent were recorded automatically in an append-only log{signed}."


def _risks(data: ReportData) -> str:
    return (
        f"{plural(data.summary.denied, 'decision was', 'decisions were')} DENIED and {data.summary.budget_exceeded:,} "
        f"BUDGET_EXCEEDED; {plural(_count_high_risk(data), 'decision')} concerned actions of high or critical risk. "
        f"{plural(data.trust.history.total, 'trust event')}, {_stop_summary(data)} are recorded with time, "
        f"actor and reason."
    )


def _monitoring(data: ReportData) -> str:
    days = plural(len(data.decisions.by_day), "day")
    return (
        f"Decisions, cost, requests and tokens are given for {days} with activity, by decision, error code, "
        "risk level and type of action; every record stays available through the same interface."
    )


def _operation(data: ReportData) -> str:
    return f"Human oversight left {_approval_summary(data)}. Of the outcome it is recorded: {_execution_summary(data)}."


def _biometric(data: ReportData) -> str:
    keys = plural(len(data.approvals.settled_by), "key")
    return (
        "Applies to remote biometric identification only. Every record has its date and time, and the "
        f"{keys} that settled approvals in the period can be told apart; a reference database and matches against "
        "it are not recorded."
    )


def _measured(data: ReportData) -> str:
    actions = data.summary.total_actions
    rate = f"{data.summary.denied / actions:.2%}" if actions else "no rate, as nothing was decided"
    cost = f"{data.summary.total_cost_usd:,} USD"
    return f"{plural(actions, 'decision')} in the period; denial rate: {rate}; cost: {cost}."


def _corrected(data: ReportData) -> str:
    trust, standing = data.trust, data.standing
    return (
        f"Trust was lowered {plural(trust.lowered, 'time')} by a person and {plural(trust.degraded, 'time')} by a "
        f"rule; {_stop_summary(data)}; "
        f"{plural(standing.reactivated, 'reactivation')}. Each is listed with its reason."
    )


def _roles(data: ReportData) -> str:
    keys = plural(len(data.approvals.settled_by), "key")
    own = data.approvals.self_approved
    return (
        f"The principal the agent acts for is on record; {keys} settled approvals; "
        f"{own:,} of them were given by the key that had asked."
    )


def _logged(data: ReportData) -> str:
    kept = data.contents
    return (
        f"{_recorded(data)} The content of {kept.kept:,} is kept, of {kept.erased:,} erased, of {kept.expired:,} "
        f"expired by retention, of {kept.tampered:,} found changed; the entries themselves remain."
    )


def _responsible(data: ReportData) -> str:
    return f"Actions above the agent's autonomy wait for a person: {_approval_summary(data)}."


def _intended(data: ReportData) -> str:
    tools = _count_refusals(data, ErrorCode.TOOL_NOT_ALLOWED, ErrorCode.UNKNOWN_ACTION_TYPE)
    return (
        "The agent's permissions and budget are part of this report; as a tool, engine or type of action outside them, "
        f"{plural(tools, 'decision was', 'decisions were')} refused."
    )


def _hijack(data: ReportData) -> str:
    return (
        f"Actions are judged by what they would do, whatever the agent was told: {data.summary.denied:,} were DENIED. "
        "The record does not show whether a goal was hijacked."
    )


def _tools(data: ReportData) -> str:
    return (
        f"{_count_refusals(data, ErrorCode.TOOL_NOT_ALLOWED):,} refused as a tool or engine that is not allowed, "
        f"{_count_refusals(data, ErrorCode.UNKNOWN_ACTION_TYPE):,} as an unknown type of action, "
        f"{_count_refusals(data, ErrorCode.VERIFICATION_FAILED):,} because verification failed."
    )


def _identity(data: ReportData) -> str:
    return (
        f"Trust level {data.trust.level} ({data.trust.name}); "
        f"{_count_refusals(data, ErrorCode.INSUFFICIENT_TRUST):,} refused for want of trust; trust raised "
        f"{plural(data.trust.raised, 'time')} by a person; {plural(data.standing.token_rotated, 'token rotation')}."
    )


def _supply(data: ReportData) -> str:
    agent = data.agent
    named = f"framework {agent.framework or 'not stated'}, model {agent.model or 'not stated'}"
    return f"The registration says: {named}. The record does not show where tools, prompts or models come from."


def _code(data: ReportData) -> str:
    rows = [row for row in data.decisions.by_action_type if row.name in _CODE_RUNS]
    permitted = sum(row.approved + row.corrected for row in rows)
    total, denied = sum(row.total for row in rows), sum(row.denied for row in rows)
    return (
        f"{plural(total, 'request')} to run code or a shell command: {permitted:,} permitted at once, "
        f"{sum(row.pending for row in rows):,} left to a person, {denied:,} DENIED."
    )


def _memory(data: ReportData) -> str:
    return (
        f"{_count_refusals(data, *_LOOPS):,} steps were refused as replayed, repeated or without progress. "
        "What an agent remembers is not recorded."
    )


def _between(_data: ReportData) -> str:
    return "Messages between agents are not part of this report."


def _cascades(data: ReportData) -> str:
    loops, spent = _count_refusals(data, *_LOOPS), _count_refusals(data, *_BUDGET)
    return f"{loops:,} refused by the loop checks, {spent:,} by the budget; {_stop_summary(data)}."


def _persuasion(data: ReportData) -> str:
    return f"Decisions by people, each with key, stated approver and reason: {_approval_summary(data)}."


def _rogue(data: ReportData) -> str:
    return (
        f"{plural(data.executions.unpermitted, 'execution was', 'executions were')} reported without permission; "
        f"trust was lost by rule {plural(data.trust.degraded, 'time')}; {_stop_summary(data)}."
    )


CLAUSES: tuple[ClauseRule, ...] = (
    ClauseRule(EU_AI_ACT, "Art. 12(1)", "Automatic recording of events", _recorded),
    ClauseRule(EU_AI_ACT, "Art. 12(2)(a)", "Situations that may present a risk, substantial modifications", _risks),
    ClauseRule(EU_AI_ACT, "Art. 12(2)(b)", "Post-market monitoring (Art. 72)", _monitoring),
    ClauseRule(EU_AI_ACT, "Art. 12(2)(c)", "Monitoring of operation by the deployer (Art. 26(5))", _operation),
    ClauseRule(EU_AI_ACT, "Art. 12(3)", "Minimum log of remote biometric identification", _biometric),
    ClauseRule(ISO_42001, "9.1", "Monitoring, measurement, analysis and evaluation", _measured),
    ClauseRule(ISO_42001, "10.2", "Nonconformity and corrective action", _corrected),
    ClauseRule(ISO_42001, "A.3.2", "AI roles and responsibilities", _roles),
    ClauseRule(ISO_42001, "A.6.2.6", "AI system operation and monitoring", _operation),
    ClauseRule(ISO_42001, "A.6.2.8", "AI system recording of event logs", _logged),
    ClauseRule(ISO_42001, "A.9.2", "Processes for responsible use of AI systems", _responsible),
    ClauseRule(ISO_42001, "A.9.4", "Intended use of the AI system", _intended),
    ClauseRule(OWASP_AGENTIC, "ASI01", "Agent Goal Hijack", _hijack),
    ClauseRule(OWASP_AGENTIC, "ASI02", "Tool Misuse and Exploitation", _tools),
    ClauseRule(OWASP_AGENTIC, "ASI03", "Identity and Privilege Abuse", _identity),
    ClauseRule(OWASP_AGENTIC, "ASI04", "Agentic Supply Chain Vulnerabilities", _supply),
    ClauseRule(OWASP_AGENTIC, "ASI05", "Unexpected Code Execution", _code),
    ClauseRule(OWASP_AGENTIC, "ASI06", "Memory and Context Poisoning", _memory),
    ClauseRule(OWASP_AGENTIC, "ASI07", "Insecure Inter-Agent Communication", _between),
    ClauseRule(OWASP_AGENTIC, "ASI08", "Cascading Failures", _cascades),
    ClauseRule(OWASP_AGENTIC, "ASI09", "Human-Agent Trust Exploitation", _persuasion),
    ClauseRule(OWASP_AGENTIC, "ASI10", "Rogue Agents", _rogue),
)


def frameworks_in(clauses: Iterable[Clause]) -> tuple[str, ...]:
    """Return the frameworks in the order of their clauses."""
    return tuple(dict.fromkeys(clause.framework for clause in clauses))
