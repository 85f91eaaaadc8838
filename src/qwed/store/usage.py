"""Spec 6 and ruling 4.8: what an agent has used in this hour and day, what is held, and what would be too much."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from qwed.store.agent import Limits
from qwed.store.conduct import CLEAN_RECORD, Conduct
from qwed.store.merit import NO_MERIT, Merit
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
        a, b, c, d, e = self
        v, w, x, y, z = other
        return Charge(a + v, b + w, c + x, d + y, e + z)

    def minus(self, other: "Charge") -> "Charge":
        """This without the other."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return Charge(a - v, b - w, c - x, d - y, e - z)


NOTHING = Charge()
ONE_REQUEST = Charge(requests=1)

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
    """The counters of one agent at one moment, as they stand on disk and are shown as the budget.

    Windows only move forward, so a clock that jumps back gives nothing away.
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

    def at(self, now: float) -> "Spent":
        """The counters in the hour and day of `now`: fresh where a new one has begun. What is pending moves along."""
        hour, day = int(now // HOUR), int(now // DAY)
        if hour <= self.hour and day <= self.day:
            return self
        spent = self
        if hour > self.hour:
            spent = spent._replace(hour=hour, requests_hour=0, tool_calls_hour=0)
        if day > self.day:
            spent = spent._replace(day=day, requests_day=0, cost_day=0, tokens_day=0, high_risk_day=0)
        return spent

    def plus(self, charge: Charge, decision: Decision, limits: Limits) -> "Spent":
        """The counters after a decision. A request counts whatever the answer; the rest only when it may be used."""
        cost, tokens, requests, calls, high_risk = charge
        used = decision.permits
        pending = decision is _PENDING
        return Spent(
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

    def resolved(self, cost: int, tokens: int, high_risk: int, *, used: bool) -> "Spent":
        """The counters once a waiting action is settled: what it held is used when approved, free when not."""
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


NOTHING_SPENT = Spent()
_PENDING = Decision.PENDING


def _up_to(limit: int | None, current: int, more: int) -> int:
    # A loop is refused before the budget is asked, so its request may find the window full: it then stays full.
    wanted = current + more
    return wanted if limit is None or wanted <= limit else max(current, limit)


@dataclass(slots=True)
class Usage:
    """What an agent has spent, and what its requests in flight may still spend."""

    spent: Spent = NOTHING_SPENT
    conduct: Conduct = CLEAN_RECORD
    merit: Merit = NO_MERIT
    held: Charge = NOTHING
    """Never on disk, so a crash frees it."""
    _checked_for: Limits | None = None
    _checks: "tuple[tuple[int, _Check], ...]" = ()

    def refuses(self, charge: Charge, limits: Limits) -> Exceeded | None:
        """The first limit this charge would pass."""
        if limits is not self._checked_for:
            self._checked_for, self._checks = limits, active_checks(limits)
        spent, held = self.spent, self.held
        for limit, row in self._checks:
            more = row.asked(charge)
            if more and row.used(spent, held) + more > limit:
                reset_at = (spent.hour + 1) * HOUR if row.hourly else (spent.day + 1) * DAY
                return Exceeded(row.code, row.message, limit, row.used(spent, held), reset_at)
        return None


class _Check(NamedTuple):
    limit: Callable[[Limits], int | None]
    asked: Callable[[Charge], int]
    used: Callable[[Spent, Charge], int]
    code: ErrorCode
    message: str
    hourly: bool = False


BUDGET_CHECKS = (
    _Check(
        attrgetter("daily_cost"),
        attrgetter("cost"),
        lambda spent, held: spent.cost_day + spent.pending_cost + held.cost,
        ErrorCode.COST_EXCEEDED,
        "daily cost limit exceeded",
    ),
    _Check(
        attrgetter("requests_per_hour"),
        attrgetter("requests"),
        lambda spent, held: spent.requests_hour + held.requests,
        ErrorCode.RATE_EXCEEDED,
        "hourly request limit exceeded",
        hourly=True,
    ),
    _Check(
        attrgetter("requests_per_day"),
        attrgetter("requests"),
        lambda spent, held: spent.requests_day + held.requests,
        ErrorCode.RATE_EXCEEDED,
        "daily request limit exceeded",
    ),
    _Check(
        attrgetter("tool_calls_per_hour"),
        attrgetter("tool_calls"),
        lambda spent, held: spent.tool_calls_hour + held.tool_calls,
        ErrorCode.RATE_EXCEEDED,
        "hourly tool call limit exceeded",
        hourly=True,
    ),
    _Check(
        attrgetter("high_risk_calls_per_day"),
        attrgetter("high_risk_calls"),
        lambda spent, held: spent.high_risk_day + spent.pending_high_risk + held.high_risk_calls,
        ErrorCode.RATE_EXCEEDED,
        "daily limit of high-risk calls exceeded",
    ),
    _Check(
        attrgetter("tokens_per_day"),
        attrgetter("tokens"),
        lambda spent, held: spent.tokens_day + spent.pending_tokens + held.tokens,
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
