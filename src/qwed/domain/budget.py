"""Budget counters of an agent per hour and day, reservations, and the limit checks (spec 6, ruling 4.8)."""

from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from qwed.domain.agent import AgentLimits
from qwed.domain.behaviour import NO_BEHAVIOUR, NO_EVIDENCE, BehaviourWindow, TrustEvidence
from qwed.model import Decision, ErrorCode
from qwed.model.clock import DAY, HOUR


class RequestCost(msgspec.Struct, frozen=True, gc=False):
    """Cost of one decision. Money in micro-dollars."""

    cost: int = 0
    tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    high_risk_calls: int = 0

    def plus(self, other: "RequestCost") -> "RequestCost":
        """Return the sum of both."""
        return RequestCost(
            self.cost + other.cost,
            self.tokens + other.tokens,
            self.requests + other.requests,
            self.tool_calls + other.tool_calls,
            self.high_risk_calls + other.high_risk_calls,
        )

    def minus(self, other: "RequestCost") -> "RequestCost":
        """Return the difference."""
        return RequestCost(
            self.cost - other.cost,
            self.tokens - other.tokens,
            self.requests - other.requests,
            self.tool_calls - other.tool_calls,
            self.high_risk_calls - other.high_risk_calls,
        )


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


class UsageCounters(msgspec.Struct, frozen=True, gc=False):
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
            counters = replace(counters, hour=hour, requests_hour=0, tool_calls_hour=0)
        if day > self.day:
            counters = replace(counters, day=day, requests_day=0, cost_day=0, tokens_day=0, high_risk_day=0)
        return counters

    def plus(self, charge: RequestCost, decision: Decision, limits: AgentLimits) -> "UsageCounters":
        """Return the counters after a decision. A request always counts; the rest only if the action may run."""
        cost, tokens, high_risk = charge.cost, charge.tokens, charge.high_risk_calls
        requests, calls = charge.requests, charge.tool_calls
        used = decision.permits
        pending = decision is _PENDING
        hourly, daily, tools = limits.requests_per_hour, limits.requests_per_day, limits.tool_calls_per_hour
        return UsageCounters(
            self.hour,
            self.day,
            self.requests_hour + requests if hourly is None else _up_to(hourly, self.requests_hour, requests),
            self.requests_day + requests if daily is None else _up_to(daily, self.requests_day, requests),
            self.tool_calls_hour + calls if tools is None else _up_to(tools, self.tool_calls_hour, calls),
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
        free = replace(
            self,
            pending_cost=self.pending_cost - cost,
            pending_tokens=self.pending_tokens - tokens,
            pending_high_risk=self.pending_high_risk - high_risk,
            open_approvals=self.open_approvals - 1,
        )
        if not used:
            return free
        return replace(
            free,
            cost_day=self.cost_day + cost,
            tokens_day=self.tokens_day + tokens,
            high_risk_day=self.high_risk_day + high_risk,
        )


NO_USAGE = UsageCounters()
_PENDING = Decision.PENDING


def _up_to(limit: int, current: int, more: int) -> int:
    # A loop is refused before the budget check, so its request may meet a full window: the counter then stays full.
    total = current + more
    return total if total <= limit else max(current, limit)


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Counters of an agent and what trust depends on: its recent behaviour and its evidence, as stored."""

    counters: UsageCounters = NO_USAGE
    behaviour: BehaviourWindow = NO_BEHAVIOUR
    evidence: TrustEvidence = NO_EVIDENCE


EMPTY_USAGE = Usage()


class _Check(NamedTuple):
    """One limit of spec 6.2, with the fields that count towards it."""

    limit: str
    amount: str
    used: str
    pending: str | None
    code: ErrorCode
    message: str
    hourly: bool = False


BUDGET_CHECKS = (
    _Check("daily_cost", "cost", "cost_day", "pending_cost", ErrorCode.COST_EXCEEDED, "daily cost limit exceeded"),
    _Check(
        "requests_per_hour",
        "requests",
        "requests_hour",
        None,
        ErrorCode.RATE_EXCEEDED,
        "hourly request limit exceeded",
        hourly=True,
    ),
    _Check(
        "requests_per_day", "requests", "requests_day", None, ErrorCode.RATE_EXCEEDED, "daily request limit exceeded"
    ),
    _Check(
        "tool_calls_per_hour",
        "tool_calls",
        "tool_calls_hour",
        None,
        ErrorCode.RATE_EXCEEDED,
        "hourly tool call limit exceeded",
        hourly=True,
    ),
    _Check(
        "high_risk_calls_per_day",
        "high_risk_calls",
        "high_risk_day",
        "pending_high_risk",
        ErrorCode.RATE_EXCEEDED,
        "daily limit of high-risk calls exceeded",
    ),
    _Check(
        "tokens_per_day",
        "tokens",
        "tokens_day",
        "pending_tokens",
        ErrorCode.TOKENS_EXCEEDED,
        "daily token limit exceeded",
    ),
)
"""Spec 6.2: cost, then rate, then tokens."""

_ALWAYS_LIMITED = ("cost", "tokens")
"""Amounts that an agent states for itself."""


@lru_cache(4096)
def active_checks(limits: AgentLimits) -> tuple[tuple[int, _Check], ...]:
    """Return the checks that have a limit; cost and tokens always have one."""
    rows = ((getattr(limits, row.limit), row) for row in BUDGET_CHECKS)
    return tuple(
        (MAX_COUNTER if limit is None else limit, row)
        for limit, row in rows
        if limit is not None or row.amount in _ALWAYS_LIMITED
    )


def exceeded_limit(
    counters: UsageCounters, reserved: RequestCost, charge: RequestCost, limits: AgentLimits
) -> LimitExceeded | None:
    """Return the first limit that this cost would exceed, or None. `reserved` is held by other requests in flight."""
    for limit, row in active_checks(limits):
        amount: int = getattr(charge, row.amount)
        if amount:
            used: int = getattr(counters, row.used) + getattr(reserved, row.amount)
            if row.pending is not None:
                used += getattr(counters, row.pending)
            if used + amount > limit:
                reset_at = (counters.hour + 1) * HOUR if row.hourly else (counters.day + 1) * DAY
                return LimitExceeded(row.code, row.message, limit, used, reset_at)
    return None
