"""Small model of the protocol, written from the specification alone: the answer of each request, and every counter.

It shares no code with the kernel. Time is a number that the state machine advances; money is counted in cents. Where
the specification is silent, the rulings of DESIGN 4 apply: 4.2 trust, 4.6 conversations, 4.8 budget, 4.10 approvals,
4.18 keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.property.organisation_model import ModelOrganisation

PRICE = 1
"""Default engine price in cents (0.01 USD)."""
HOUR = 3600
DAY = 24 * HOUR
MAX_STEPS = 50
RISKS = ("low", "medium", "high", "critical")

# Guide, Decision matrix.
MATRIX = {
    0: {"low": "PENDING", "medium": "DENIED", "high": "DENIED", "critical": "DENIED"},
    1: {"low": "APPROVED", "medium": "PENDING", "high": "DENIED", "critical": "DENIED"},
    2: {"low": "APPROVED", "medium": "APPROVED", "high": "PENDING", "critical": "DENIED"},
    3: {"low": "APPROVED", "medium": "APPROVED", "high": "APPROVED", "critical": "APPROVED"},
}

SUSPENDED = "QWED-AGENT-003"
BAD_TOKEN = "QWED-AGENT-002"
BAD_KEY = "QWED-AUTH-002"
ROLE = "QWED-AUTH-003"
OWN_REQUEST = "QWED-AUTH-004"
OPTION = "QWED-REQ-005"
CONFLICT = "QWED-REQ-009"
NEEDS_APPROVAL = "QWED-AGENT-TRUST-002"

ANYONE = ("owner", "approver", "member")
PEOPLE = ("owner", "approver")
OWNERS = ("owner",)


class Rules(NamedTuple):
    """Settings of an organisation; those that take days in practice are small, so that they are reached."""

    approval_seconds: int = 24 * HOUR
    open_approvals: int = 1000
    min_days: int = 30
    min_actions: int = 1000
    max_denial_percent: int = 1


@dataclass(frozen=True)
class ModelAction:
    """Action that the machine can send, and its outcome by the specification."""

    name: str
    risk: str
    outcome: str = "VERIFIED"
    """VERIFIED, FAILED, VIOLATION, CORRECTED, UNKNOWN_TYPE or NOT_ALLOWED."""
    careful: bool = False
    """True if the request requires an approval above low risk (`risk_threshold`)."""


class ModelAnswer(NamedTuple):
    """Answer, and if an engine was asked: only then the idempotency key is stored."""

    decision: str
    code: str | None = None
    judged: bool = False


@dataclass
class ModelApproval:
    """Approval request."""

    agent: "ModelAgent"
    kind: str
    asked_by: str
    expires: float
    cents: int = 0
    tokens: int = 0
    risk: str = ""
    becomes: str = ""
    """Decision after the approval: APPROVED or CORRECTED."""
    levels: tuple[int, int] = (0, 0)
    state: str = "pending"
    erased: bool = False
    """True if the content to approve was erased."""


@dataclass
class ModelDecision:
    """Recorded decision in its current state."""

    first: str
    waiting: ModelApproval | None = None
    executed: bool = False

    @property
    def now(self) -> str:
        """Current decision, after an approval, a rejection or an expiry."""
        if self.waiting is None or self.waiting.state == "pending":
            return self.first
        return self.waiting.becomes if self.waiting.state == "approved" else "DENIED"


@dataclass
class ModelConversation:
    """One conversation."""

    last: int = 0
    committed: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    window: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class ModelConduct:
    """Recent conduct of an agent (spec 8.3)."""

    denials: list[bool] = field(default_factory=list)
    """One entry per counted decision."""
    rested_until: int = 0
    """Number of counted decisions before the denial rule applies again."""
    exceeded: list[float] = field(default_factory=list)

    def count(self, answer: ModelAnswer, violation: bool, misconduct: bool, now: float) -> Iterator[tuple[str, int]]:
        """Count one decision; yield the violated rules, each with the levels it costs."""
        if answer.decision == "DENIED" and not misconduct:
            return
        self.denials.append(answer.decision == "DENIED")
        if violation:
            yield "security_policy_violation", 2
        recent = self.denials[-100:]
        if len(self.denials) >= max(self.rested_until, 20) and 10 * sum(recent) > len(recent):
            self.rested_until = len(self.denials) + 100
            yield "repeated_denials", 1
        if answer.decision == "BUDGET_EXCEEDED":
            self.exceeded = [*(then for then in self.exceeded if then > now - HOUR), now]
            if len(self.exceeded) == 5:
                self.exceeded = []
                yield "budget_abuse", 1


@dataclass
class ModelEvidence:
    """Evidence for an agent at its present level (spec 8.2)."""

    since: float = 0.0
    actions: int = 0
    denied: int = 0
    attestations: int = 0

    def reject(self) -> None:
        """Count a rejection; the request may be from an earlier level."""
        self.denied = min(self.denied + 1, self.actions)

    def count(self, answer: ModelAnswer) -> None:
        """Count a decision; BUDGET_EXCEEDED does not count."""
        if answer.decision != "BUDGET_EXCEEDED":
            self.actions += 1
            self.denied += answer.decision == "DENIED"


@dataclass
class ModelAgent:
    """One agent: its trust, its limits, its usage, and every answer it got."""

    organisation: "ModelOrganisation"
    trust: int
    born: float
    max_cents: int | None = None
    max_requests: int | None = None
    max_tokens: int | None = None
    suspended: bool = False
    cents: int = 0
    held_cents: int = 0
    requests: int = 0
    requests_today: int = 0
    tokens: int = 0
    held_tokens: int = 0
    hour: int = 0
    total_cents: int = 0
    evidence_counts: ModelEvidence = field(default_factory=ModelEvidence)
    log: list[tuple[Any, ...]] = field(default_factory=list)
    erased: int = 0
    """Number of first log entries without content."""
    actions: list[ModelDecision] = field(default_factory=list)
    talks: dict[str, ModelConversation] = field(default_factory=dict)
    conduct: ModelConduct = field(default_factory=ModelConduct)
    registered_by: str = ""

    @property
    def active(self) -> bool:
        """True if it may act."""
        return not self.suspended and not self.organisation.halted

    def ask(
        self,
        action_case: ModelAction,
        conversation_id: str,
        step: int,
        state: str | None,
        cents: int,
        tokens: int,
        by: str,
    ) -> ModelAnswer:
        """Return the decision and the code for a valid credential."""
        if not self.active:
            return self.refuse("DENIED", SUSPENDED)
        before = len(self.organisation.approvals)
        answer = self._judge(action_case, conversation_id, step, state, max(cents, PRICE), tokens, by)
        waiting = self.organisation.approvals[-1] if len(self.organisation.approvals) > before else None
        self.record(answer, waiting)
        if answer.decision != "DENIED" or answer.code != NEEDS_APPROVAL:
            # Only what was judged and found wrong: not what the agent may not do yet (ruling 4.24).
            misconduct = answer.judged and (
                action_case.outcome in ("FAILED", "VIOLATION") or action_case.name == "blocked"
            )
            self._behave(answer, action_case.outcome == "VIOLATION" and answer.judged, misconduct)
        return answer

    def refuse(self, decision: str, code: str) -> ModelAnswer:
        """Record a refusal that does not affect conduct."""
        answer = ModelAnswer(decision, code)
        self.record(answer, None)
        return answer

    def record(self, answer: ModelAnswer, waiting: ModelApproval | None) -> None:
        """Record an answer."""
        self.log.append((answer.decision, answer.code))
        self.actions.append(ModelDecision(answer.decision, waiting))

    def _judge(
        self,
        action_case: ModelAction,
        conversation_id: str,
        step: int,
        state: str | None,
        cents: int,
        tokens: int,
        by: str,
    ) -> ModelAnswer:
        conversation = self.talks.setdefault(conversation_id, ModelConversation())
        if step > MAX_STEPS or len(conversation.committed) >= MAX_STEPS:
            return ModelAnswer("DENIED", "QWED-AGENT-LOOP-001")
        if step <= conversation.last:
            return ModelAnswer("DENIED", "QWED-AGENT-LOOP-002")
        loop = _loop_of(conversation, action_case, state)
        if loop is not None:
            self._count_request()
            return ModelAnswer("DENIED", loop)
        over = self._over_budget(cents, tokens)
        if over is not None:
            return ModelAnswer("BUDGET_EXCEEDED", over)
        self._count_request()
        answer = self._decide(action_case)
        if answer.decision in ("APPROVED", "CORRECTED", "PENDING"):
            self._commit(conversation, action_case, step, state, answer.decision, cents, tokens, by)
        return answer

    def _decide(self, action_case: ModelAction) -> ModelAnswer:
        refused = {
            "UNKNOWN_TYPE": "QWED-AGENT-ACTION-001",
            "NOT_ALLOWED": "QWED-AGENT-004",
            "FAILED": "QWED-AGENT-005",
            "VIOLATION": "QWED-AGENT-005",
        }
        if action_case.outcome in refused:
            return ModelAnswer("DENIED", refused[action_case.outcome], judged=True)
        by_trust = MATRIX[self.trust][action_case.risk]
        if by_trust == "DENIED":
            return ModelAnswer("DENIED", "QWED-AGENT-TRUST-001", judged=True)
        if by_trust == "PENDING" or (action_case.careful and action_case.risk != "low"):
            full = self.open_approvals >= self.organisation.rules.open_approvals
            return (
                ModelAnswer("DENIED", NEEDS_APPROVAL) if full else ModelAnswer("PENDING", NEEDS_APPROVAL, judged=True)
            )
        return ModelAnswer(_permission(action_case), judged=True)

    @property
    def open_approvals(self) -> int:
        """Number of its pending actions."""
        return sum(
            waiting.agent is self and waiting.kind == "action" and waiting.state == "pending"
            for waiting in self.organisation.approvals
        )

    def _over_budget(self, cents: int, tokens: int) -> str | None:
        if self.max_cents is not None and self.cents + self.held_cents + cents > self.max_cents:
            return "QWED-AGENT-BUDGET-001"
        if self.max_requests is not None and self.requests + 1 > self.max_requests:
            return "QWED-AGENT-BUDGET-002"
        if self.max_tokens is not None and tokens and self.tokens + self.held_tokens + tokens > self.max_tokens:
            return "QWED-AGENT-BUDGET-003"
        return None

    def _commit(
        self,
        conversation: ModelConversation,
        action_case: ModelAction,
        step: int,
        state: str | None,
        decision: str,
        cents: int,
        tokens: int,
        by: str,
    ) -> None:
        conversation.last = step
        conversation.committed.append(step)
        conversation.names.append(action_case.name)
        if decision == "APPROVED" and state is not None:
            conversation.window.append((action_case.name, state))
        if decision == "PENDING":
            self.held_cents += cents
            self.held_tokens += tokens
            expires = self.organisation.now + self.organisation.rules.approval_seconds
            waiting = ModelApproval(
                self, "action", by, expires, cents, tokens, action_case.risk, _permission(action_case)
            )
            self.organisation.approvals.append(waiting)
            return
        self.evidence_counts.attestations += action_case.risk in ("high", "critical")
        self.spend(cents, tokens)

    def spend(self, cents: int, tokens: int) -> None:
        """Use money and tokens."""
        self.cents += cents
        self.tokens += tokens
        self.total_cents += cents

    def _count_request(self) -> None:
        self.requests_today += 1
        if self.max_requests is None or self.requests < self.max_requests:
            self.requests += 1

    def turn(self, now: float) -> None:
        """Reset the counters at a new hour or day; reservations stay."""
        hour = int(now // HOUR)
        if hour > self.hour:
            if hour // 24 > self.hour // 24:
                self.cents = self.tokens = self.requests_today = 0
            self.hour, self.requests = hour, 0

    def _behave(self, answer: ModelAnswer, violation: bool, misconduct: bool) -> None:
        self.evidence_counts.count(answer)
        for reason, levels in self.conduct.count(answer, violation, misconduct, self.organisation.now):
            if self.trust:
                before = self.trust
                self.reach(max(before - levels, 0))
                self.record_change("trust_degraded", "qwed", (before, self.trust, reason))

    def reach(self, level: int) -> None:
        """Set another level, up or down, and start its evidence anew."""
        self.trust = level
        self.evidence_counts = ModelEvidence(since=self.organisation.now)

    def record_change(self, event: str, by: str, levels: tuple[Any, ...] = ()) -> None:
        """Record a change in the logs of the agent and of the organisation."""
        self.log.append((event, by, *levels))
        self.organisation.changes.append((event, by))

    def shown_log(self) -> list[tuple[Any, ...]]:
        """Return the readable log; an erased entry has only its decision or change, its actor and its level."""
        return [_erased(entry) for entry in self.log[: self.erased]] + self.log[self.erased :]

    def evidence(self) -> dict[str, Any]:
        """Return the evidence at the present level (spec 8.2)."""
        evidence_counts = self.evidence_counts
        return {
            "days_active": int((self.organisation.now - max(self.born, evidence_counts.since)) // DAY),
            "total_actions": evidence_counts.actions,
            "denied_actions": evidence_counts.denied,
            "denial_rate": round(evidence_counts.denied / evidence_counts.actions, 6)
            if evidence_counts.actions
            else 0.0,
            "attestations": evidence_counts.attestations,
        }

    def has_proven_itself(self) -> bool:
        """Return True with enough days, enough actions, and few enough denials (ruling 4.2)."""
        rules, evidence = self.organisation.rules, self.evidence()
        enough = evidence["days_active"] >= rules.min_days and evidence["total_actions"] >= rules.min_actions
        return bool(enough and evidence["denied_actions"] * 100 <= rules.max_denial_percent * evidence["total_actions"])

    def summary(self) -> dict[str, Any]:
        """Return the counts of first decisions (spec 7.2)."""
        firsts = [action.first for action in self.actions]
        names = ("APPROVED", "DENIED", "CORRECTED", "PENDING", "BUDGET_EXCEEDED")
        counts = {name.lower(): firsts.count(name) for name in names}
        return {"total_actions": len(firsts), **counts, "total_cost_usd": self.total_cents / 100}


def _loop_of(conversation: ModelConversation, action_case: ModelAction, state: str | None) -> str | None:
    if conversation.names[-2:] == [action_case.name, action_case.name]:
        return "QWED-AGENT-LOOP-003"
    if state is not None and conversation.window[-20:].count((action_case.name, state)) >= 2:
        return "QWED-AGENT-LOOP-004"
    return None


def _erased(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a decision without its error, or a change without its text."""
    if entry[0].isupper():
        return entry[0], None
    return entry[:4] if entry[0] == "trust_degraded" else entry


def _permission(action_case: ModelAction) -> str:
    return "CORRECTED" if action_case.outcome == "CORRECTED" else "APPROVED"
