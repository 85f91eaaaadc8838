"""Budget counters of an agent per hour and day, reservations, and the limit checks (spec 6, ruling 4.8)."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from qwed.model import Decision, ErrorCode
from qwed.model.clock import DAY, HOUR
from qwed.store.agent import AgentLimits
from qwed.store.trust_degradation import NO_BEHAVIOUR, BehaviourWindow
from qwed.store.trust_evidence import NO_EVIDENCE, TrustEvidence


class RequestCost(NamedTuple):
    """Cost of one decision. Money in micro-dollars."""

    cost: int = 0
    tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    high_risk_calls: int = 0

    def plus(self, other: "RequestCost") -> "RequestCost":
        """Return the sum of both."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return RequestCost(a + v, b + w, c + x, d + y, e + z)

    def minus(self, other: "RequestCost") -> "RequestCost":
        """Return the difference."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return RequestCost(a - v, b - w, c - x, d - y, e - z)


NO_COST = RequestCost()
ONE_REQUEST = RequestCost(requests=1)

MAX_COUNTER = 2**62
"""Limit where none was set: a sum beyond what the database can store would stop the writes of all agents."""


class LimitExceeded(NamedTuple):
    """Limit that a request would exceed."""

    code: ErrorCode
    message: str
    limit: int
    current: int
    reset_at: float


class UsageCounters(NamedTuple):
    """Counters of one agent at one moment, as they are stored and shown as the budget.

    Windows only move forward, so a clock that jumps back frees no budget.
    """

    hour: int = 0
    day: int = 0
    requests_hour: int = 0
    requests_day: int = 0
    tool_calls_hour: int = 0
    cost_day: int = 0
    tokens_day: int = 0
    high_risk_day: int = 0
    pending_cost: int = 0
    pending_tokens: int = 0
    pending_high_risk: int = 0
    open_approvals: int = 0

    def at(self, now: float) -> "UsageCounters":
        """Return the counters for the hour and day of `now`: reset where a new one has begun; pending amounts stay."""
        hour, day = int(now // HOUR), int(now // DAY)
        if hour <= self.hour and day <= self.day:
            return self
        counters = self
        if hour > self.hour:
            counters = counters._replace(hour=hour, requests_hour=0, tool_calls_hour=0)
        if day > self.day:
            counters = counters._replace(day=day, requests_day=0, cost_day=0, tokens_day=0, high_risk_day=0)
        return counters

    def plus(self, charge: RequestCost, decision: Decision, limits: AgentLimits) -> "UsageCounters":
        """Return the counters after a decision. A request always counts; the rest only if the action may run."""
        cost, tokens, requests, calls, high_risk = charge
        used = decision.permits
        pending = decision is _PENDING
        return UsageCounters(
            self.hour,
            self.day,
            _up_to(limits.requests_per_hour, self.requests_hour, requests),
            _up_to(limits.requests_per_day, self.requests_day, requests),
            _up_to(limits.tool_calls_per_hour, self.tool_calls_hour, calls),
            self.cost_day + cost if used else self.cost_day,
            self.tokens_day + tokens if used else self.tokens_day,
            self.high_risk_day + high_risk if used else self.high_risk_day,
            self.pending_cost + cost if pending else self.pending_cost,
            self.pending_tokens + tokens if pending else self.pending_tokens,
            self.pending_high_risk + high_risk if pending else self.pending_high_risk,
            self.open_approvals + 1 if pending else self.open_approvals,
        )

    def resolved(self, cost: int, tokens: int, high_risk: int, *, used: bool) -> "UsageCounters":
        """Return the counters once a pending action is resolved: its cost is used if approved, free if not."""
        free = self._replace(
            pending_cost=self.pending_cost - cost,
            pending_tokens=self.pending_tokens - tokens,
            pending_high_risk=self.pending_high_risk - high_risk,
            open_approvals=self.open_approvals - 1,
        )
        if not used:
            return free
        return free._replace(
            cost_day=self.cost_day + cost,
            tokens_day=self.tokens_day + tokens,
            high_risk_day=self.high_risk_day + high_risk,
        )


NO_USAGE = UsageCounters()
_PENDING = Decision.PENDING


def _up_to(limit: int | None, current: int, more: int) -> int:
    # A loop is refused before the budget check, so its request may meet a full window: the counter then stays full.
    total = current + more
    return total if limit is None or total <= limit else max(current, limit)


@dataclass(slots=True)
class Usage:
    """Counters of an agent, and what its requests in flight have reserved."""

    counters: UsageCounters = NO_USAGE
    behaviour: BehaviourWindow = NO_BEHAVIOUR
    evidence: TrustEvidence = NO_EVIDENCE
    reserved: RequestCost = NO_COST
    """Never written to disk, so a crash releases it."""
    _checked_for: AgentLimits | None = None
    _checks: "tuple[tuple[int, _Check], ...]" = ()

    def refuses(self, charge: RequestCost, limits: AgentLimits) -> LimitExceeded | None:
        """Return the first limit that this cost would exceed, or None."""
        if limits is not self._checked_for:
            self._checked_for, self._checks = limits, active_checks(limits)
        counters, reserved = self.counters, self.reserved
        for limit, row in self._checks:
            more = row.requested(charge)
            if more and row.used(counters, reserved) + more > limit:
                reset_at = (counters.hour + 1) * HOUR if row.hourly else (counters.day + 1) * DAY
                return LimitExceeded(row.code, row.message, limit, row.used(counters, reserved), reset_at)
        return None


class _Check(NamedTuple):
    limit: Callable[[AgentLimits], int | None]
    requested: Callable[[RequestCost], int]
    used: Callable[[UsageCounters, RequestCost], int]
    code: ErrorCode
    message: str
    hourly: bool = False


BUDGET_CHECKS = (
    _Check(
        attrgetter("daily_cost"),
        attrgetter("cost"),
        lambda counters, reserved: counters.cost_day + counters.pending_cost + reserved.cost,
        ErrorCode.COST_EXCEEDED,
        "daily cost limit exceeded",
    ),
    _Check(
        attrgetter("requests_per_hour"),
        attrgetter("requests"),
        lambda counters, reserved: counters.requests_hour + reserved.requests,
        ErrorCode.RATE_EXCEEDED,
        "hourly request limit exceeded",
        hourly=True,
    ),
    _Check(
        attrgetter("requests_per_day"),
        attrgetter("requests"),
        lambda counters, reserved: counters.requests_day + reserved.requests,
        ErrorCode.RATE_EXCEEDED,
        "daily request limit exceeded",
    ),
    _Check(
        attrgetter("tool_calls_per_hour"),
        attrgetter("tool_calls"),
        lambda counters, reserved: counters.tool_calls_hour + reserved.tool_calls,
        ErrorCode.RATE_EXCEEDED,
        "hourly tool call limit exceeded",
        hourly=True,
    ),
    _Check(
        attrgetter("high_risk_calls_per_day"),
        attrgetter("high_risk_calls"),
        lambda counters, reserved: counters.high_risk_day + counters.pending_high_risk + reserved.high_risk_calls,
        ErrorCode.RATE_EXCEEDED,
        "daily limit of high-risk calls exceeded",
    ),
    _Check(
        attrgetter("tokens_per_day"),
        attrgetter("tokens"),
        lambda counters, reserved: counters.tokens_day + counters.pending_tokens + reserved.tokens,
        ErrorCode.TOKENS_EXCEEDED,
        "daily token limit exceeded",
    ),
)
"""Spec 6.2: cost, then rate, then tokens."""


def active_checks(limits: AgentLimits) -> tuple[tuple[int, _Check], ...]:
    """Return the checks that have a limit. Cost and tokens, which an agent states for itself, always have one."""
    rows = ((row.limit(limits), row) for row in BUDGET_CHECKS)
    return tuple(
        (MAX_COUNTER if limit is None else limit, row)
        for limit, row in rows
        if limit is not None or row.code is not ErrorCode.RATE_EXCEEDED
    )
