"""What the data shows for clauses that auditors ask about: figures, and plain words where it shows nothing."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qwed.reports.data import Clause, Frameworks, ReportData
from qwed.words import ErrorCode

EU_AI_ACT = "EU AI Act, Regulation (EU) 2024/1689"
ISO_42001 = "ISO/IEC 42001:2023"
OWASP_AGENTIC = "OWASP Top 10 for Agentic Applications 2026"

_CODE_RUNS = ("execute_code", "shell_command")
_LOOPS = (ErrorCode.STEP_LIMIT, ErrorCode.REPLAY, ErrorCode.REPETITION, ErrorCode.NO_PROGRESS)
_BUDGET = (ErrorCode.COST_EXCEEDED, ErrorCode.RATE_EXCEEDED, ErrorCode.TOKENS_EXCEEDED)


class Row(NamedTuple):
    """One clause, and the function that reads off the figures for it."""

    framework: str
    clause: str
    title: str
    shows: Callable[[ReportData], str]


def mapping_of(data: ReportData) -> Frameworks:
    """Every clause with what this report shows for it."""
    return Frameworks(
        clauses=tuple(
            Clause(framework=row.framework, clause=row.clause, title=row.title, shows=row.shows(data))
            for row in CLAUSES
        )
    )


def counted(count: int, one: str, many: str = "") -> str:
    """The number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _refused(data: ReportData, *codes: ErrorCode) -> int:
    wanted = {code.code for code in codes}
    return sum(row.count for row in data.decisions.refused_by_code if row.code in wanted)


def _risky(data: ReportData) -> int:
    return sum(row.total for row in data.decisions.by_risk if row.name in ("high", "critical"))


def _stops(data: ReportData) -> str:
    told = data.standing
    one_by_one = f"{counted(told.suspended, 'suspension')} and {counted(told.complaints, 'complaint')}"
    return f"{one_by_one}, {counted(told.halted, 'use')} of the kill switch"


def _people(data: ReportData) -> str:
    waited = data.approvals
    return (
        f"{counted(waited.requested, 'request')} for a person, {waited.approved:,} approved, {waited.rejected:,} "
        f"rejected, {waited.expired:,} run out, {waited.open:,} still open at the end of the period, "
        f"{waited.self_approved:,} approved by the key that asked"
    )


def _done(data: ReportData) -> str:
    told = data.executions
    return (
        f"{counted(told.done, 'execution')} reported as done, {told.failed:,} as failed, "
        f"{told.unpermitted:,} without permission"
    )


def _recorded(data: ReportData) -> str:
    head = data.log.head
    signed = f", which holds {counted(head.size, 'entry', 'entries')} under a signed head" if head is not None else ""
    recorded = counted(data.activity_count, "activity", "activities")
    return f"{recorded} of the agent were recorded automatically in an append-only log{signed}."


def _risks(data: ReportData) -> str:
    return (
        f"{counted(data.summary.denied, 'decision was', 'decisions were')} DENIED and {data.summary.budget_exceeded:,} "
        f"BUDGET_EXCEEDED; {counted(_risky(data), 'decision')} concerned actions of high or critical risk. "
        f"{counted(data.trust.history.total, 'trust event')}, {_stops(data)} are recorded with time, actor and reason."
    )


def _monitoring(data: ReportData) -> str:
    days = counted(len(data.decisions.by_day), "day")
    return (
        f"Decisions, cost, requests and tokens are given for {days} with activity, by decision, error code, "
        "risk level and type of action; every record stays available through the same interface."
    )


def _operation(data: ReportData) -> str:
    return f"Human oversight left {_people(data)}. Of the outcome it is recorded: {_done(data)}."


def _biometric(data: ReportData) -> str:
    keys = counted(len(data.approvals.settled_by), "key")
    return (
        "Applies to remote biometric identification only. Every record has its date and time, and the "
        f"{keys} that settled approvals in the period can be told apart; a reference database and matches against "
        "it are not recorded."
    )


def _measured(data: ReportData) -> str:
    actions = data.summary.total_actions
    rate = f"{data.summary.denied / actions:.2%}" if actions else "no rate, as nothing was decided"
    cost = f"{data.summary.total_cost_usd:,} USD"
    return f"{counted(actions, 'decision')} in the period; denial rate: {rate}; cost: {cost}."


def _corrected(data: ReportData) -> str:
    trust, standing = data.trust, data.standing
    return (
        f"Trust was lowered {counted(trust.lowered, 'time')} by a person and {counted(trust.degraded, 'time')} by a "
        f"rule; {_stops(data)}; "
        f"{counted(standing.reactivated, 'reactivation')}. Each is listed with its reason."
    )


def _roles(data: ReportData) -> str:
    keys = counted(len(data.approvals.settled_by), "key")
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
    return f"Actions above the agent's autonomy wait for a person: {_people(data)}."


def _intended(data: ReportData) -> str:
    tools = _refused(data, ErrorCode.TOOL_NOT_ALLOWED, ErrorCode.UNKNOWN_ACTION_TYPE)
    return (
        "The agent's permissions and budget are part of this report; as a tool, engine or type of action outside them, "
        f"{counted(tools, 'decision was', 'decisions were')} refused."
    )


def _hijack(data: ReportData) -> str:
    return (
        f"Actions are judged by what they would do, whatever the agent was told: {data.summary.denied:,} were DENIED. "
        "The record does not show whether a goal was hijacked."
    )


def _tools(data: ReportData) -> str:
    return (
        f"{_refused(data, ErrorCode.TOOL_NOT_ALLOWED):,} refused as a tool or engine that is not allowed, "
        f"{_refused(data, ErrorCode.UNKNOWN_ACTION_TYPE):,} as an unknown type of action, "
        f"{_refused(data, ErrorCode.VERIFICATION_FAILED):,} because verification failed."
    )


def _identity(data: ReportData) -> str:
    return (
        f"Trust level {data.trust.level} ({data.trust.name}); "
        f"{_refused(data, ErrorCode.INSUFFICIENT_TRUST):,} refused for want of trust; trust raised "
        f"{counted(data.trust.raised, 'time')} by a person; {counted(data.standing.token_rotated, 'token rotation')}."
    )


def _supply(data: ReportData) -> str:
    agent = data.agent
    named = f"framework {agent.framework or 'not stated'}, model {agent.model or 'not stated'}"
    return f"The registration says: {named}. The record does not show where tools, prompts or models come from."


def _code(data: ReportData) -> str:
    rows = [row for row in data.decisions.by_action_type if row.name in _CODE_RUNS]
    permitted = sum(row.approved + row.corrected for row in rows)
    asked, denied = sum(row.total for row in rows), sum(row.denied for row in rows)
    return (
        f"{counted(asked, 'request')} to run code or a shell command: {permitted:,} permitted at once, "
        f"{sum(row.pending for row in rows):,} left to a person, {denied:,} DENIED."
    )


def _memory(data: ReportData) -> str:
    return (
        f"{_refused(data, *_LOOPS):,} steps were refused as replayed, repeated or without progress. "
        "What an agent remembers is not recorded."
    )


def _between(_data: ReportData) -> str:
    return "Messages between agents are not part of this report."


def _cascades(data: ReportData) -> str:
    loops, spent = _refused(data, *_LOOPS), _refused(data, *_BUDGET)
    return f"{loops:,} refused by the loop checks, {spent:,} by the budget; {_stops(data)}."


def _persuasion(data: ReportData) -> str:
    return f"Decisions by people, each with key, stated approver and reason: {_people(data)}."


def _rogue(data: ReportData) -> str:
    return (
        f"{counted(data.executions.unpermitted, 'execution was', 'executions were')} reported without permission; "
        f"trust was lost by rule {counted(data.trust.degraded, 'time')}; {_stops(data)}."
    )


CLAUSES: tuple[Row, ...] = (
    Row(EU_AI_ACT, "Art. 12(1)", "Automatic recording of events", _recorded),
    Row(EU_AI_ACT, "Art. 12(2)(a)", "Situations that may present a risk, substantial modifications", _risks),
    Row(EU_AI_ACT, "Art. 12(2)(b)", "Post-market monitoring (Art. 72)", _monitoring),
    Row(EU_AI_ACT, "Art. 12(2)(c)", "Monitoring of operation by the deployer (Art. 26(5))", _operation),
    Row(EU_AI_ACT, "Art. 12(3)", "Minimum log of remote biometric identification", _biometric),
    Row(ISO_42001, "9.1", "Monitoring, measurement, analysis and evaluation", _measured),
    Row(ISO_42001, "10.2", "Nonconformity and corrective action", _corrected),
    Row(ISO_42001, "A.3.2", "AI roles and responsibilities", _roles),
    Row(ISO_42001, "A.6.2.6", "AI system operation and monitoring", _operation),
    Row(ISO_42001, "A.6.2.8", "AI system recording of event logs", _logged),
    Row(ISO_42001, "A.9.2", "Processes for responsible use of AI systems", _responsible),
    Row(ISO_42001, "A.9.4", "Intended use of the AI system", _intended),
    Row(OWASP_AGENTIC, "ASI01", "Agent Goal Hijack", _hijack),
    Row(OWASP_AGENTIC, "ASI02", "Tool Misuse and Exploitation", _tools),
    Row(OWASP_AGENTIC, "ASI03", "Identity and Privilege Abuse", _identity),
    Row(OWASP_AGENTIC, "ASI04", "Agentic Supply Chain Vulnerabilities", _supply),
    Row(OWASP_AGENTIC, "ASI05", "Unexpected Code Execution", _code),
    Row(OWASP_AGENTIC, "ASI06", "Memory and Context Poisoning", _memory),
    Row(OWASP_AGENTIC, "ASI07", "Insecure Inter-Agent Communication", _between),
    Row(OWASP_AGENTIC, "ASI08", "Cascading Failures", _cascades),
    Row(OWASP_AGENTIC, "ASI09", "Human-Agent Trust Exploitation", _persuasion),
    Row(OWASP_AGENTIC, "ASI10", "Rogue Agents", _rogue),
)


def frameworks_in(clauses: Iterable[Clause]) -> tuple[str, ...]:
    """The frameworks that are mapped, in the order of their clauses."""
    return tuple(dict.fromkeys(clause.framework for clause in clauses))
