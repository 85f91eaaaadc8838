"""A small model of the protocol, written from the seeds alone: what each answer must be, and what each counter holds.

It knows nothing of the kernel's code. Time is a number the machine turns; money is counted in cents.
"""

from dataclasses import dataclass, field

PRICE = 1
"""Cents: the default engine price is 0.01 USD."""
HOUR = 3600
MAX_STEPS = 50

# Guide, Decision matrix.
MATRIX = {
    0: {"low": "PENDING", "medium": "DENIED", "high": "DENIED", "critical": "DENIED"},
    1: {"low": "APPROVED", "medium": "PENDING", "high": "DENIED", "critical": "DENIED"},
    2: {"low": "APPROVED", "medium": "APPROVED", "high": "PENDING", "critical": "DENIED"},
    3: {"low": "APPROVED", "medium": "APPROVED", "high": "APPROVED", "critical": "APPROVED"},
}


@dataclass(frozen=True)
class Deed:
    """One action the machine can play, and what the seeds say of it."""

    name: str
    risk: str
    outcome: str = "VERIFIED"
    """VERIFIED, FAILED, CORRECTED, UNKNOWN_TYPE or NOT_ALLOWED."""
    is_tool: bool = False


@dataclass
class Talk:
    """One conversation."""

    last: int = 0
    committed: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    window: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class ModelAgent:
    """One agent: its trust, its limits, what it has used."""

    trust: int
    max_cents: int | None = None
    max_requests: int | None = None
    max_tokens: int | None = None
    cents: int = 0
    held_cents: int = 0
    requests: int = 0
    tokens: int = 0
    held_tokens: int = 0
    hour: int = 0
    answers: list[tuple[str, str | None]] = field(default_factory=list)
    talks: dict[str, Talk] = field(default_factory=dict)

    def ask(
        self, deed: Deed, talk_id: str, step: int, now: float, state: str | None, cents: int, tokens: int
    ) -> tuple[str, str | None]:
        """The decision and the code."""
        answer = self._judge(deed, talk_id, step, now, state, max(cents, PRICE), tokens)
        self.answers.append(answer)
        return answer

    def _judge(
        self, deed: Deed, talk_id: str, step: int, now: float, state: str | None, cents: int, tokens: int
    ) -> tuple[str, str | None]:
        self._turn(now)
        talk = self.talks.setdefault(talk_id, Talk())
        if step > MAX_STEPS or len(talk.committed) >= MAX_STEPS:
            return "DENIED", "QWED-AGENT-LOOP-001"
        if step <= talk.last:
            return "DENIED", "QWED-AGENT-LOOP-002"
        if talk.names[-2:] == [deed.name, deed.name]:
            self._count_request()
            return "DENIED", "QWED-AGENT-LOOP-003"
        if state is not None and talk.window[-20:].count((deed.name, state)) >= 2:
            self._count_request()
            return "DENIED", "QWED-AGENT-LOOP-004"
        over = self._over_budget(cents, tokens)
        if over is not None:
            return "BUDGET_EXCEEDED", over
        self._count_request()
        decision, code = self._decide(deed)
        if decision in ("APPROVED", "CORRECTED", "PENDING"):
            self._commit(talk, deed, step, state, decision, cents, tokens)
        return decision, code

    def _decide(self, deed: Deed) -> tuple[str, str | None]:
        if deed.outcome == "UNKNOWN_TYPE":
            return "DENIED", "QWED-AGENT-ACTION-001"
        if deed.outcome == "NOT_ALLOWED":
            return "DENIED", "QWED-AGENT-004"
        if deed.outcome == "FAILED":
            return "DENIED", "QWED-AGENT-005"
        by_trust = MATRIX[self.trust][deed.risk]
        if by_trust == "DENIED":
            return "DENIED", "QWED-AGENT-TRUST-001"
        if by_trust == "PENDING":
            return "PENDING", "QWED-AGENT-TRUST-002"
        return ("CORRECTED" if deed.outcome == "CORRECTED" else "APPROVED"), None

    def _over_budget(self, cents: int, tokens: int) -> str | None:
        if self.max_cents is not None and self.cents + self.held_cents + cents > self.max_cents:
            return "QWED-AGENT-BUDGET-001"
        if self.max_requests is not None and self.requests + 1 > self.max_requests:
            return "QWED-AGENT-BUDGET-002"
        if self.max_tokens is not None and tokens and self.tokens + self.held_tokens + tokens > self.max_tokens:
            return "QWED-AGENT-BUDGET-003"
        return None

    def _commit(
        self, talk: Talk, deed: Deed, step: int, state: str | None, decision: str, cents: int, tokens: int
    ) -> None:
        talk.last = step
        talk.committed.append(step)
        talk.names.append(deed.name)
        if decision == "APPROVED" and state is not None:
            talk.window.append((deed.name, state))
        if decision == "PENDING":
            self.held_cents += cents
            self.held_tokens += tokens
        else:
            self.cents += cents
            self.tokens += tokens

    def _count_request(self) -> None:
        if self.max_requests is None or self.requests < self.max_requests:
            self.requests += 1

    def _turn(self, now: float) -> None:
        hour = int(now // HOUR)
        if hour > self.hour:
            if hour // 24 > self.hour // 24:
                self.cents = self.tokens = 0
            self.hour, self.requests = hour, 0
