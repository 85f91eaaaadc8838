"""Spec 6 and ruling 4.8: what an agent has used in this hour and day, what is held, and what would be too much."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, attrgetter
from typing import NamedTuple

from qwed.store.agent import Limits
from qwed.words import Decision, ErrorCode
from qwed.words.clock import DAY, HOUR


class Charge(NamedTuple):
    """What one decision would use. Money in micro-dollars."""

    cost: int = 0
    tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    high_risk_calls: int = 0

    def plus(self, other: "Charge") -> "Charge":
        """Both together."""
        return Charge(*map(add, self, other))


NOTHING = Charge()


MOST_COUNTED = 2**62
"""Where nobody chose a limit: a sum past what the database can hold would stop the writes of every other agent."""


class Exceeded(NamedTuple):
    """Which limit would be passed."""

    code: ErrorCode
    message: str
    limit: int
    current: int
    reset_at: float


class Spent(NamedTuple):
    """The counters at one moment: what is kept on disk and shown as the budget."""

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


@dataclass(slots=True)
class Usage:
    """The running counters of one agent. Windows only move forward, so a clock that jumps back gives nothing away."""

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
    # What requests in flight may still use; never on disk, so a crash frees it.
    held_cost: int = 0
    held_tokens: int = 0
    held_requests: int = 0
    held_tool_calls: int = 0
    held_high_risk: int = 0
    _checked_for: Limits | None = None
    _checks: "tuple[tuple[int, _Check], ...]" = ()

    def roll(self, now: float) -> None:
        """Open a new hour or day where one has begun. What is held or pending moves along."""
        hour, day = int(now // HOUR), int(now // DAY)
        if hour > self.hour:
            self.hour, self.requests_hour, self.tool_calls_hour = hour, 0, 0
        if day > self.day:
            self.day, self.requests_day, self.cost_day, self.tokens_day, self.high_risk_day = day, 0, 0, 0, 0

    def refuses(self, charge: Charge, limits: Limits) -> Exceeded | None:
        """The first limit this charge would pass."""
        if limits is not self._checked_for:
            self._checked_for, self._checks = limits, active_checks(limits)
        for limit, row in self._checks:
            more, current = row.asked(charge), row.used(self)
            if more and current + more > limit:
                reset_at = (self.hour + 1) * HOUR if row.hourly else (self.day + 1) * DAY
                return Exceeded(row.code, row.message, limit, current, reset_at)
        return None

    def hold(self, charge: Charge, sign: int = 1) -> None:
        """Set a charge aside; with -1, give it back."""
        self.held_cost += sign * charge.cost
        self.held_tokens += sign * charge.tokens
        self.held_requests += sign * charge.requests
        self.held_tool_calls += sign * charge.tool_calls
        self.held_high_risk += sign * charge.high_risk_calls

    def take_held(self, other: "Usage") -> None:
        """Carry over what is in flight when the rest is read again from disk."""
        self.held_cost, self.held_tokens, self.held_requests = other.held_cost, other.held_tokens, other.held_requests
        self.held_tool_calls, self.held_high_risk = other.held_tool_calls, other.held_high_risk

    def charge(self, charge: Charge, decision: Decision, limits: Limits) -> None:
        """Count what was decided. A request counts whatever the answer; the rest only when it may be used."""
        self.requests_hour = _up_to(limits.requests_per_hour, self.requests_hour, charge.requests)
        self.requests_day = _up_to(limits.requests_per_day, self.requests_day, charge.requests)
        self.tool_calls_hour = _up_to(limits.tool_calls_per_hour, self.tool_calls_hour, charge.tool_calls)
        if decision.permits:
            self.cost_day += charge.cost
            self.tokens_day += charge.tokens
            self.high_risk_day += charge.high_risk_calls
        elif decision is Decision.PENDING:
            self.pending_cost += charge.cost
            self.pending_tokens += charge.tokens
            self.pending_high_risk += charge.high_risk_calls

    def restore(self, spent: Spent) -> None:
        """Count as it stood at `spent`; what is held stays."""
        for name, value in zip(Spent._fields, spent, strict=True):
            setattr(self, name, value)

    def spent(self) -> Spent:
        """The counters as they stand."""
        return Spent(
            self.hour,
            self.day,
            self.requests_hour,
            self.requests_day,
            self.tool_calls_hour,
            self.cost_day,
            self.tokens_day,
            self.high_risk_day,
            self.pending_cost,
            self.pending_tokens,
            self.pending_high_risk,
        )


def _up_to(limit: int | None, current: int, more: int) -> int:
    # A loop is refused before the budget is asked, so its request may find the window full: it then stays full.
    wanted = current + more
    return wanted if limit is None or wanted <= limit else max(current, limit)


class _Check(NamedTuple):
    limit: Callable[[Limits], int | None]
    asked: Callable[[Charge], int]
    used: Callable[[Usage], int]
    code: ErrorCode
    message: str
    hourly: bool = False


BUDGET_CHECKS = (
    _Check(
        attrgetter("daily_cost"),
        attrgetter("cost"),
        lambda usage: usage.cost_day + usage.pending_cost + usage.held_cost,
        ErrorCode.COST_EXCEEDED,
        "daily cost limit exceeded",
    ),
    _Check(
        attrgetter("requests_per_hour"),
        attrgetter("requests"),
        lambda usage: usage.requests_hour + usage.held_requests,
        ErrorCode.RATE_EXCEEDED,
        "hourly request limit exceeded",
        hourly=True,
    ),
    _Check(
        attrgetter("requests_per_day"),
        attrgetter("requests"),
        lambda usage: usage.requests_day + usage.held_requests,
        ErrorCode.RATE_EXCEEDED,
        "daily request limit exceeded",
    ),
    _Check(
        attrgetter("tool_calls_per_hour"),
        attrgetter("tool_calls"),
        lambda usage: usage.tool_calls_hour + usage.held_tool_calls,
        ErrorCode.RATE_EXCEEDED,
        "hourly tool call limit exceeded",
        hourly=True,
    ),
    _Check(
        attrgetter("high_risk_calls_per_day"),
        attrgetter("high_risk_calls"),
        lambda usage: usage.high_risk_day + usage.pending_high_risk + usage.held_high_risk,
        ErrorCode.RATE_EXCEEDED,
        "daily limit of high-risk calls exceeded",
    ),
    _Check(
        attrgetter("tokens_per_day"),
        attrgetter("tokens"),
        lambda usage: usage.tokens_day + usage.pending_tokens + usage.held_tokens,
        ErrorCode.TOKENS_EXCEEDED,
        "daily token limit exceeded",
    ),
)
"""Spec 6.2: cost, then rate, then tokens."""


def active_checks(limits: Limits) -> tuple[tuple[int, _Check], ...]:
    """The checks that have a limit. What an agent states for itself, cost and tokens, always has one."""
    found = ((row.limit(limits), row) for row in BUDGET_CHECKS)
    return tuple(
        (MOST_COUNTED if limit is None else limit, row)
        for limit, row in found
        if limit is not None or row.code is not ErrorCode.RATE_EXCEEDED
    )
