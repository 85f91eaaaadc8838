"""Statistics of the activities of a period: one pass over the leaves, newest first, that keeps counts and ids."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from qwed.kernel.privacy.subject_keys import KEPT, StoredContent
from qwed.kernel.reports.approvals import END_STATES, ApprovalCollector, ChangeReason
from qwed.ledger.leaf import Leaf
from qwed.ledger.verifier import leaf_hash
from qwed.model import Decision, ErrorCode, Event, Risk, usd_from
from qwed.model.clock import DAY, rfc3339
from qwed.reports.report_data import (
    MAX_LIST_ENTRIES,
    AttestationEntry,
    BoundedList,
    CodeCount,
    ContentStatistics,
    DailyCounts,
    DecisionCounts,
    DecisionStatistics,
    ExecutionStatistics,
    LifecycleChange,
    LifecycleStatistics,
    ReportedExecution,
    ReportedRefusal,
    ReportSummary,
    Revocation,
    TrustChange,
)
from qwed.store.protocol import ActivityRecord

NOT_ASSESSED, OTHER = "not assessed", "other"
_MEANINGS = {row.code: row.meaning for row in reversed(ErrorCode)}
_TRUST = frozenset(
    {
        Event.REGISTERED,
        Event.TRUST_REQUESTED,
        Event.TRUST_RAISED,
        Event.TRUST_LOWERED,
        Event.TRUST_DEGRADED,
        Event.TRUST_RESTORED,
    }
)
_STANDING = frozenset(
    {
        Event.REGISTERED,
        Event.TOKEN_ROTATED,
        Event.EDITED,
        Event.SUSPENDED,
        Event.COMPLAINT,
        Event.REACTIVATED,
        Event.RETIRED,
    }
)
_EXECUTED = frozenset({Event.EXECUTED, Event.EXECUTED_UNPERMITTED})
_REFUSED = frozenset({Decision.DENIED, Decision.BUDGET_EXCEEDED})
_NOT_CHARGED = frozenset(
    code.code
    for code in (
        ErrorCode.AGENT_SUSPENDED,
        ErrorCode.MISSING_CONTEXT,
        ErrorCode.INVALID_STEP,
        ErrorCode.STATE_INCOMPLETE,
        ErrorCode.STATE_HASH_INVALID,
        ErrorCode.STATE_SOURCE_UNKNOWN,
        ErrorCode.NOT_DETERMINISTIC,
        ErrorCode.STEP_LIMIT,
        ErrorCode.REPLAY,
        ErrorCode.COST_EXCEEDED,
        ErrorCode.RATE_EXCEEDED,
        ErrorCode.TOKENS_EXCEEDED,
    )
)
"""Refusals by admission or by the budget itself do not count as requests (ruling 4.8)."""
_RISKS = (*(risk.word for risk in Risk), NOT_ASSESSED)
_DONE, _FAILED = "done", "failed"
T = TypeVar("T")


class NewestEntries(Generic[T]):
    """The newest entries of a kind, and their total number."""

    def __init__(self) -> None:
        self._total = 0
        self._entries: list[T] = []

    def add(self, make: Callable[[], T]) -> None:
        """Add one entry, older than those before it."""
        self._total += 1
        if len(self._entries) < MAX_LIST_ENTRIES:
            self._entries.append(make())

    def listed(self) -> BoundedList[T]:
        """Return the kept entries, oldest first."""
        return BoundedList(total=self._total, entries=tuple(reversed(self._entries)))


def _in_log_order(*lists: BoundedList[LifecycleChange]) -> BoundedList[LifecycleChange]:
    """Merge several lists, keeping the newest entries of all."""
    entries = sorted((entry for listed in lists for entry in listed.entries), key=lambda entry: entry.log_index)
    return BoundedList(total=sum(listed.total for listed in lists), entries=tuple(entries[-MAX_LIST_ENTRIES:]))


class DailyUsage:
    """Decisions and usage of one day."""

    __slots__ = ("cost", "decisions", "requests", "tokens")

    def __init__(self) -> None:
        self.decisions: Counter[str] = Counter()
        self.requests = 0
        self.cost = 0
        self.tokens = 0


class ActivityStatistics:
    """Fed with every activity of the period, newest first."""

    def __init__(self) -> None:
        self.count = 0
        self.attestations: list[AttestationEntry] = []
        self.approvals = ApprovalCollector()
        self.first: ActivityRecord | None = None
        self.last: ActivityRecord | None = None
        self.events: Counter[str] = Counter()
        self.refusals: NewestEntries[ReportedRefusal] = NewestEntries()
        self.trust: NewestEntries[TrustChange] = NewestEntries()
        self._standing: NewestEntries[LifecycleChange] = NewestEntries()
        self._halts: NewestEntries[LifecycleChange] = NewestEntries()
        self.revocations: NewestEntries[Revocation] = NewestEntries()
        self._exceptions: NewestEntries[ReportedExecution] = NewestEntries()
        self._executions: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._days: defaultdict[int, DailyUsage] = defaultdict(DailyUsage)
        self._codes: Counter[str] = Counter()
        self._risks: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._types: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._engines: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._digest = hashlib.sha256()

    def add(self, entry: ActivityRecord, decoded: Leaf, content: StoredContent) -> None:
        """Count one activity."""
        self.count += 1
        self._digest.update(leaf_hash(entry.leaf.encode()))
        self._states[content.state] += 1
        # By log index, not by time: two clocks may disagree, the log does not.
        if self.first is None or entry.log_index < self.first.log_index:
            self.first = entry
        if self.last is None or entry.log_index > self.last.log_index:
            self.last = entry
        if decoded.attestation_id is not None:
            self.attestations.append(AttestationEntry(entry.log_index, decoded.attestation_id))
        day = self._days[decoded.time_ms // (DAY * 1000)]
        day.cost += decoded.cost_micros
        day.tokens += decoded.tokens
        if decoded.event is None:
            day.decisions[decoded.decision or ""] += 1
            day.requests += decoded.error not in _NOT_CHARGED
            self._add_decision(entry, decoded)
        else:
            self._add_event(entry, decoded, content)

    def _add_decision(self, entry: ActivityRecord, decoded: Leaf) -> None:
        decision = decoded.decision or ""
        self._risks[decoded.risk_level or NOT_ASSESSED][decision] += 1
        self._types[decoded.action_type or OTHER][decision] += 1
        if decoded.engine is not None:
            self._engines[decoded.engine][decision] += 1
        if decision in _REFUSED:
            self._codes[decoded.error or OTHER] += 1
            self.refusals.add(lambda: _refusal(entry, decoded))
        elif decision == Decision.PENDING:
            self.approvals.requested(decoded)

    def _add_event(self, entry: ActivityRecord, decoded: Leaf, content: StoredContent) -> None:
        event = decoded.event or ""
        self.events[event] += 1
        if event in END_STATES:
            self.approvals.settled(decoded, reason_in(content))
        if event == Event.TRUST_REQUESTED:
            self.approvals.requested(decoded)
        if event in _TRUST:
            self.trust.add(lambda: _trust_change(entry, decoded, reason_in(content)))
        if event in _STANDING:
            self._standing.add(lambda: LifecycleChange(**_change_fields(entry, decoded, reason_in(content))))
        elif event in _EXECUTED:
            self._add_execution(entry, decoded)
        elif event == Event.ATTESTATION_REVOKED:
            self.revocations.add(
                lambda: Revocation(
                    **_change_fields(entry, decoded, reason_in(content)), attestation_id=decoded.about or ""
                )
            )

    def add_halt(self, entry: ActivityRecord, decoded: Leaf, content: StoredContent) -> None:
        """Count a use of the kill switch: not an activity of the agent, but it halts or resumes the agent."""
        self.events[decoded.event or ""] += 1
        self._halts.add(lambda: LifecycleChange(**_change_fields(entry, decoded, reason_in(content))))

    def _add_execution(self, entry: ActivityRecord, decoded: Leaf) -> None:
        outcome = _DONE if decoded.success else _FAILED
        if decoded.event == Event.EXECUTED_UNPERMITTED:
            outcome = Event.EXECUTED_UNPERMITTED
        self._executions[outcome] += 1
        if outcome != _DONE:
            self._exceptions.add(lambda: _execution(entry, decoded, outcome))

    @property
    def leaves_sha256(self) -> str:
        """Hash over the hashes of all leaves."""
        return self._digest.hexdigest()

    def summary(self) -> ReportSummary:
        """Return the summary (spec 7.2)."""
        decisions: Counter[str] = Counter()
        for day in self._days.values():
            decisions.update(day.decisions)
        cost = usd_from(sum(day.cost for day in self._days.values()))
        return ReportSummary(total_actions=decisions.total(), **_by_decision(decisions), total_cost_usd=cost)

    def decisions(self) -> DecisionStatistics:
        """Return the counts of all decisions."""
        codes = sorted(self._codes.items(), key=lambda item: (-item[1], item[0]))
        return DecisionStatistics(
            by_day=tuple(_day(number, usage) for number, usage in sorted(self._days.items()) if _has_usage(usage)),
            refused_by_code=tuple(CodeCount(code=code, meaning=_MEANINGS.get(code, ""), count=n) for code, n in codes),
            by_risk=tuple(_counts(name, self._risks[name]) for name in _RISKS if name in self._risks),
            by_action_type=_sorted_counts(self._types),
            by_engine=_sorted_counts(self._engines),
        )

    def executions(self) -> ExecutionStatistics:
        """Return the executions of permitted actions."""
        counts = self._executions
        return ExecutionStatistics(
            done=counts[_DONE],
            failed=counts[_FAILED],
            unpermitted=counts[Event.EXECUTED_UNPERMITTED],
            exceptions=self._exceptions.listed(),
        )

    def standing(self) -> LifecycleStatistics:
        """Return the suspensions, complaints and halts of the agent."""
        return LifecycleStatistics(
            suspended=self.events[Event.SUSPENDED],
            complaints=self.events[Event.COMPLAINT],
            reactivated=self.events[Event.REACTIVATED],
            token_rotated=self.events[Event.TOKEN_ROTATED],
            halted=self.events[Event.HALTED],
            resumed=self.events[Event.RESUMED],
            history=_in_log_order(self._standing.listed(), self._halts.listed()),
        )

    def contents(self) -> ContentStatistics:
        """Return how much of the content is still stored."""
        return ContentStatistics(**{name: self._states[name] for name in ContentStatistics.__struct_fields__})


def reason_in(content: StoredContent) -> ChangeReason:
    """Return the reason and approver of a change from its content."""
    if content.state != KEPT:
        return ChangeReason(content.state, None, None)
    members: dict[str, Any] = msgspec.json.decode(content.text)
    reason = members.get("reason", members.get("justification"))
    return ChangeReason(KEPT, reason or None, members.get("approver"))


def _by_decision(decisions: Counter[str]) -> dict[str, int]:
    return {decision.lower(): decisions[decision] for decision in Decision}


def _has_usage(usage: DailyUsage) -> bool:
    return bool(usage.decisions or usage.cost or usage.tokens)


def _day(number: int, usage: DailyUsage) -> DailyCounts:
    return DailyCounts(
        day=str(datetime.fromtimestamp(number * DAY, UTC).date()),
        total=usage.decisions.total(),
        **_by_decision(usage.decisions),
        requests=usage.requests,
        cost_usd=usd_from(usage.cost),
        tokens=usage.tokens,
    )


def _counts(name: str, decisions: Counter[str]) -> DecisionCounts:
    return DecisionCounts(name=name, total=decisions.total(), **_by_decision(decisions))


def _sorted_counts(counters: defaultdict[str, Counter[str]]) -> tuple[DecisionCounts, ...]:
    rows = [_counts(name, decisions) for name, decisions in counters.items()]
    return tuple(sorted(rows, key=lambda row: (-row.total, row.name)))


def _refusal(entry: ActivityRecord, decoded: Leaf) -> ReportedRefusal:
    return ReportedRefusal(
        at=rfc3339(decoded.time_ms / 1000),
        activity_id=decoded.activity_id,
        decision=decoded.decision or "",
        code=decoded.error,
        action_type=decoded.action_type,
        risk_level=decoded.risk_level,
        log_index=entry.log_index,
    )


def _execution(entry: ActivityRecord, decoded: Leaf, outcome: str) -> ReportedExecution:
    return ReportedExecution(
        at=rfc3339(decoded.time_ms / 1000),
        outcome=outcome,
        action_id=decoded.about or "",
        by=decoded.by,
        activity_id=decoded.activity_id,
        log_index=entry.log_index,
    )


def _change_fields(entry: ActivityRecord, decoded: Leaf, reason: ChangeReason) -> dict[str, Any]:
    return {
        "at": rfc3339(decoded.time_ms / 1000),
        "event": decoded.event,
        "by": decoded.by,
        "reason": reason.reason,
        "content": reason.state,
        "activity_id": decoded.activity_id,
        "log_index": entry.log_index,
    }


def _trust_change(entry: ActivityRecord, decoded: Leaf, reason: ChangeReason) -> TrustChange:
    return TrustChange(
        **_change_fields(entry, decoded, reason),
        level_before=decoded.level_before,
        level_after=decoded.level_after,
        approver=reason.approver,
        self_approved=decoded.self_approved,
        about=decoded.about,
    )
