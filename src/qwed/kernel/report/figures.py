"""What the activities of a period add up to: one walk over the leaves, newest first, which keeps counts and ids."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from qwed.kernel.keeping.vault import KEPT, Content
from qwed.kernel.report.approvals import ENDS, Said, Waiting
from qwed.ledger.leaf import Leaf
from qwed.ledger.verifier import leaf_hash
from qwed.reports.data import (
    MOST_LISTED,
    Attested,
    CodeCount,
    Contents,
    Counts,
    Day,
    Decisions,
    Execution,
    Executions,
    Listed,
    Refusal,
    Revocation,
    Standing,
    StandingChange,
    Summary,
    TrustChange,
)
from qwed.store.protocol import Entry
from qwed.words import Decision, ErrorCode, Event, Risk, usd_from
from qwed.words.clock import DAY, rfc3339

NOT_ASSESSED, OTHER = "not assessed", "other"
_MEANINGS = {row.code: row.meaning for row in reversed(ErrorCode)}
_TRUST = frozenset(
    {Event.REGISTERED, Event.TRUST_REQUESTED, Event.TRUST_RAISED, Event.TRUST_LOWERED, Event.TRUST_DEGRADED}
)
_STANDING = frozenset({Event.REGISTERED, Event.TOKEN_ROTATED, Event.SUSPENDED, Event.COMPLAINT, Event.REACTIVATED})
_EXECUTED = frozenset({Event.EXECUTED, Event.EXECUTED_UNPERMITTED})
_REFUSED = frozenset({Decision.DENIED, Decision.BUDGET_EXCEEDED})
_UNCOUNTED = frozenset(
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
"""Ruling 4.8: what is refused at the door, or by the budget itself, counts against no limit of requests."""
_RISKS = (*(risk.word for risk in Risk), NOT_ASSESSED)
_DONE, _FAILED = "done", "failed"
T = TypeVar("T")


class Newest(Generic[T]):
    """The newest of something, and how many there were in all."""

    def __init__(self) -> None:
        self._total = 0
        self._entries: list[T] = []

    def add(self, make: Callable[[], T]) -> None:
        """One more, older than those before it."""
        self._total += 1
        if len(self._entries) < MOST_LISTED:
            self._entries.append(make())

    def listed(self) -> Listed[T]:
        """Those that are kept, oldest first."""
        return Listed(total=self._total, entries=tuple(reversed(self._entries)))


def _in_log_order(*lists: Listed[StandingChange]) -> Listed[StandingChange]:
    """Several lists as one, the newest of all of them."""
    entries = sorted((each for found in lists for each in found.entries), key=lambda each: each.log_index)
    return Listed(total=sum(found.total for found in lists), entries=tuple(entries[-MOST_LISTED:]))


class Use:
    """What was decided and used on one day."""

    __slots__ = ("cost", "decisions", "requests", "tokens")

    def __init__(self) -> None:
        self.decisions: Counter[str] = Counter()
        self.requests = 0
        self.cost = 0
        self.tokens = 0


class Figures:
    """Fed with every activity of the period, newest first."""

    def __init__(self) -> None:
        self.count = 0
        self.attestations: list[Attested] = []
        self.waiting = Waiting()
        self.first: Entry | None = None
        self.last: Entry | None = None
        self.events: Counter[str] = Counter()
        self.refusals: Newest[Refusal] = Newest()
        self.trust: Newest[TrustChange] = Newest()
        self._standing: Newest[StandingChange] = Newest()
        self._halts: Newest[StandingChange] = Newest()
        self.revocations: Newest[Revocation] = Newest()
        self._exceptions: Newest[Execution] = Newest()
        self._executions: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._days: defaultdict[int, Use] = defaultdict(Use)
        self._codes: Counter[str] = Counter()
        self._risks: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._types: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._engines: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._digest = hashlib.sha256()

    def add(self, entry: Entry, kept: Leaf, content: Content) -> None:
        """Count one activity."""
        self.count += 1
        self._digest.update(leaf_hash(entry.leaf.encode()))
        self._states[content.state] += 1
        # By place in the log, not by time: two clocks may disagree, the log does not.
        if self.first is None or entry.log_index < self.first.log_index:
            self.first = entry
        if self.last is None or entry.log_index > self.last.log_index:
            self.last = entry
        if kept.attestation_id is not None:
            self.attestations.append(Attested(entry.log_index, kept.attestation_id))
        day = self._days[kept.time_ms // (DAY * 1000)]
        day.cost += kept.cost_micros
        day.tokens += kept.tokens
        if kept.event is None:
            day.decisions[kept.decision or ""] += 1
            day.requests += kept.error not in _UNCOUNTED
            self._decided(entry, kept)
        else:
            self._happened(entry, kept, content)

    def _decided(self, entry: Entry, kept: Leaf) -> None:
        decision = kept.decision or ""
        self._risks[kept.risk_level or NOT_ASSESSED][decision] += 1
        self._types[kept.action_type or OTHER][decision] += 1
        if kept.engine is not None:
            self._engines[kept.engine][decision] += 1
        if decision in _REFUSED:
            self._codes[kept.error or OTHER] += 1
            self.refusals.add(lambda: _refusal(entry, kept))
        elif decision == Decision.PENDING:
            self.waiting.requested(kept)

    def _happened(self, entry: Entry, kept: Leaf, content: Content) -> None:
        event = kept.event or ""
        self.events[event] += 1
        if event in ENDS:
            self.waiting.settled(kept, said_in(content))
        if event == Event.TRUST_REQUESTED:
            self.waiting.requested(kept)
        if event in _TRUST:
            self.trust.add(lambda: _trust_change(entry, kept, said_in(content)))
        if event in _STANDING:
            self._standing.add(lambda: StandingChange(**_change(entry, kept, said_in(content))))
        elif event in _EXECUTED:
            self._executed(entry, kept)
        elif event == Event.ATTESTATION_REVOKED:
            self.revocations.add(
                lambda: Revocation(**_change(entry, kept, said_in(content)), attestation_id=kept.about or "")
            )

    def add_halt(self, entry: Entry, kept: Leaf, content: Content) -> None:
        """The organisation's kill switch: no activity of the agent's, but it stops the agent or lets it go on."""
        self.events[kept.event or ""] += 1
        self._halts.add(lambda: StandingChange(**_change(entry, kept, said_in(content))))

    def _executed(self, entry: Entry, kept: Leaf) -> None:
        outcome = _DONE if kept.success else _FAILED
        if kept.event == Event.EXECUTED_UNPERMITTED:
            outcome = Event.EXECUTED_UNPERMITTED
        self._executions[outcome] += 1
        if outcome != _DONE:
            self._exceptions.add(lambda: _execution(entry, kept, outcome))

    @property
    def leaves_sha256(self) -> str:
        """One hash over those of all leaves."""
        return self._digest.hexdigest()

    def summary(self) -> Summary:
        """Spec 7.2."""
        decisions: Counter[str] = Counter()
        for day in self._days.values():
            decisions.update(day.decisions)
        cost = usd_from(sum(day.cost for day in self._days.values()))
        return Summary(total_actions=decisions.total(), **_named(decisions), total_cost_usd=cost)

    def decisions(self) -> Decisions:
        """Everything that was decided, counted."""
        codes = sorted(self._codes.items(), key=lambda item: (-item[1], item[0]))
        return Decisions(
            by_day=tuple(_day(number, use) for number, use in sorted(self._days.items()) if _something(use)),
            refused_by_code=tuple(CodeCount(code=code, meaning=_MEANINGS.get(code, ""), count=n) for code, n in codes),
            by_risk=tuple(_counts(name, self._risks[name]) for name in _RISKS if name in self._risks),
            by_action_type=_most_first(self._types),
            by_engine=_most_first(self._engines),
        )

    def executions(self) -> Executions:
        """What became of what was permitted."""
        counts = self._executions
        return Executions(
            done=counts[_DONE],
            failed=counts[_FAILED],
            unpermitted=counts[Event.EXECUTED_UNPERMITTED],
            exceptions=self._exceptions.listed(),
        )

    def standing(self) -> Standing:
        """Whether the agent might act at all."""
        return Standing(
            suspended=self.events[Event.SUSPENDED],
            complaints=self.events[Event.COMPLAINT],
            reactivated=self.events[Event.REACTIVATED],
            token_rotated=self.events[Event.TOKEN_ROTATED],
            halted=self.events[Event.HALTED],
            resumed=self.events[Event.RESUMED],
            history=_in_log_order(self._standing.listed(), self._halts.listed()),
        )

    def contents(self) -> Contents:
        """How much of the content is still there."""
        return Contents(**{name: self._states[name] for name in Contents.__struct_fields__})


def said_in(content: Content) -> Said:
    """What was said about a change."""
    if content.state != KEPT:
        return Said(content.state, None, None)
    told: dict[str, Any] = msgspec.json.decode(content.text)
    reason = told.get("reason", told.get("justification"))
    return Said(KEPT, reason or None, told.get("approver"))


def _named(decisions: Counter[str]) -> dict[str, int]:
    return {decision.lower(): decisions[decision] for decision in Decision}


def _something(use: Use) -> bool:
    return bool(use.decisions or use.cost or use.tokens)


def _day(number: int, use: Use) -> Day:
    return Day(
        day=str(datetime.fromtimestamp(number * DAY, UTC).date()),
        total=use.decisions.total(),
        **_named(use.decisions),
        requests=use.requests,
        cost_usd=usd_from(use.cost),
        tokens=use.tokens,
    )


def _counts(name: str, decisions: Counter[str]) -> Counts:
    return Counts(name=name, total=decisions.total(), **_named(decisions))


def _most_first(found: defaultdict[str, Counter[str]]) -> tuple[Counts, ...]:
    rows = [_counts(name, decisions) for name, decisions in found.items()]
    return tuple(sorted(rows, key=lambda row: (-row.total, row.name)))


def _refusal(entry: Entry, kept: Leaf) -> Refusal:
    return Refusal(
        at=rfc3339(kept.time_ms / 1000),
        activity_id=kept.activity_id,
        decision=kept.decision or "",
        code=kept.error,
        action_type=kept.action_type,
        risk_level=kept.risk_level,
        log_index=entry.log_index,
    )


def _execution(entry: Entry, kept: Leaf, outcome: str) -> Execution:
    return Execution(
        at=rfc3339(kept.time_ms / 1000),
        outcome=outcome,
        action_id=kept.about or "",
        by=kept.by,
        activity_id=kept.activity_id,
        log_index=entry.log_index,
    )


def _change(entry: Entry, kept: Leaf, said: Said) -> dict[str, Any]:
    return {
        "at": rfc3339(kept.time_ms / 1000),
        "event": kept.event,
        "by": kept.by,
        "reason": said.reason,
        "content": said.state,
        "activity_id": kept.activity_id,
        "log_index": entry.log_index,
    }


def _trust_change(entry: Entry, kept: Leaf, said: Said) -> TrustChange:
    return TrustChange(
        **_change(entry, kept, said),
        level_before=kept.level_before,
        level_after=kept.level_after,
        approver=said.approver,
        self_approved=kept.self_approved,
        about=kept.about,
    )
