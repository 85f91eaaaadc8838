"""A small model of the protocol, written from the seeds alone: what each answer must be, and what each counter holds.

It knows nothing of the kernel's code. Time is a number the machine turns; money is counted in cents. Where the seeds
are silent, the rulings of DESIGN 4 speak: 4.2 trust, 4.6 conversations, 4.8 budget, 4.10 approvals, 4.18 keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.property.house import House

PRICE = 1
"""Cents: the default engine price is 0.01 USD."""
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
    """The settings of a house; those that wait for days in real life are small, so that they can be met."""

    approval_seconds: int = 24 * HOUR
    open_approvals: int = 1000
    min_days: int = 30
    min_actions: int = 1000
    max_denial_percent: int = 1


@dataclass(frozen=True)
class Deed:
    """One action the machine can play, and what the seeds say of it."""

    name: str
    risk: str
    outcome: str = "VERIFIED"
    """VERIFIED, FAILED, VIOLATION, CORRECTED, UNKNOWN_TYPE or NOT_ALLOWED."""
    careful: bool = False
    """Whether the request itself wants a person for anything above low risk (`risk_threshold`)."""


class Said(NamedTuple):
    """An answer, and whether an engine has spoken: only then a key for retries is remembered."""

    decision: str
    code: str | None = None
    judged: bool = False


@dataclass
class Waiting:
    """A request for a person."""

    agent: "ModelAgent"
    kind: str
    asked_by: str
    expires: float
    cents: int = 0
    tokens: int = 0
    risk: str = ""
    becomes: str = ""
    """What approving makes of it: APPROVED or CORRECTED."""
    levels: tuple[int, int] = (0, 0)
    state: str = "pending"
    erased: bool = False
    """Whether nobody can tell any more what is to be approved."""


@dataclass
class Action:
    """One recorded decision, as it stands now."""

    first: str
    waiting: Waiting | None = None
    executed: bool = False

    @property
    def now(self) -> str:
        """The decision today: a person, or time, may have settled it."""
        if self.waiting is None or self.waiting.state == "pending":
            return self.first
        return self.waiting.becomes if self.waiting.state == "approved" else "DENIED"


@dataclass
class Talk:
    """One conversation."""

    last: int = 0
    committed: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    window: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Conduct:
    """Spec 8.3: what the agent has done of late."""

    denials: list[bool] = field(default_factory=list)
    """One entry per counted decision."""
    rested_until: int = 0
    """How many counted decisions there must be before the rule of denials is asked again."""
    exceeded: list[float] = field(default_factory=list)

    def count(self, said: Said, violation: bool, now: float) -> Iterator[tuple[str, int]]:
        """Count one decision; the rules it breaks, each with the levels it costs."""
        self.denials.append(said.decision == "DENIED")
        if violation:
            yield "security_policy_violation", 2
        recent = self.denials[-100:]
        if len(self.denials) >= max(self.rested_until, 20) and 10 * sum(recent) > len(recent):
            self.rested_until = len(self.denials) + 100
            yield "repeated_denials", 1
        if said.decision == "BUDGET_EXCEEDED":
            self.exceeded = [*(then for then in self.exceeded if then > now - HOUR), now]
            if len(self.exceeded) == 5:
                self.exceeded = []
                yield "budget_abuse", 1


@dataclass
class Merit:
    """Spec 8.2: what speaks for an agent at its present level."""

    since: float = 0.0
    actions: int = 0
    denied: int = 0
    attestations: int = 0

    def reject(self) -> None:
        """A person would not let it happen; it may have been asked at an earlier level."""
        self.denied = min(self.denied + 1, self.actions)

    def count(self, said: Said) -> None:
        """A decision; a full budget is none."""
        if said.decision != "BUDGET_EXCEEDED":
            self.actions += 1
            self.denied += said.decision == "DENIED"


@dataclass
class ModelAgent:
    """One agent: its trust, its limits, what it has used, and everything it was told."""

    house: "House"
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
    merit: Merit = field(default_factory=Merit)
    log: list[tuple[Any, ...]] = field(default_factory=list)
    erased: int = 0
    """How many of the first entries of the log have lost their content."""
    actions: list[Action] = field(default_factory=list)
    talks: dict[str, Talk] = field(default_factory=dict)
    conduct: Conduct = field(default_factory=Conduct)

    @property
    def active(self) -> bool:
        """Whether it may do anything at all."""
        return not self.suspended and not self.house.halted

    def ask(self, deed: Deed, talk_id: str, step: int, state: str | None, cents: int, tokens: int, by: str) -> Said:
        """The decision and the code, for someone whose credential is good."""
        if not self.active:
            return self.refuse("DENIED", SUSPENDED)
        before = len(self.house.approvals)
        said = self._judge(deed, talk_id, step, state, max(cents, PRICE), tokens, by)
        waiting = self.house.approvals[-1] if len(self.house.approvals) > before else None
        self.record(said, waiting)
        if said.decision != "DENIED" or said.code != NEEDS_APPROVAL:
            self._behave(said, deed.outcome == "VIOLATION" and said.judged)
        return said

    def refuse(self, decision: str, code: str) -> Said:
        """A refusal that is recorded and says nothing about conduct."""
        said = Said(decision, code)
        self.record(said, None)
        return said

    def record(self, said: Said, waiting: Waiting | None) -> None:
        """Keep what was answered."""
        self.log.append((said.decision, said.code))
        self.actions.append(Action(said.decision, waiting))

    def _judge(self, deed: Deed, talk_id: str, step: int, state: str | None, cents: int, tokens: int, by: str) -> Said:
        talk = self.talks.setdefault(talk_id, Talk())
        if step > MAX_STEPS or len(talk.committed) >= MAX_STEPS:
            return Said("DENIED", "QWED-AGENT-LOOP-001")
        if step <= talk.last:
            return Said("DENIED", "QWED-AGENT-LOOP-002")
        loop = _loop_of(talk, deed, state)
        if loop is not None:
            self._count_request()
            return Said("DENIED", loop)
        over = self._over_budget(cents, tokens)
        if over is not None:
            return Said("BUDGET_EXCEEDED", over)
        self._count_request()
        said = self._decide(deed)
        if said.decision in ("APPROVED", "CORRECTED", "PENDING"):
            self._commit(talk, deed, step, state, said.decision, cents, tokens, by)
        return said

    def _decide(self, deed: Deed) -> Said:
        refused = {
            "UNKNOWN_TYPE": "QWED-AGENT-ACTION-001",
            "NOT_ALLOWED": "QWED-AGENT-004",
            "FAILED": "QWED-AGENT-005",
            "VIOLATION": "QWED-AGENT-005",
        }
        if deed.outcome in refused:
            return Said("DENIED", refused[deed.outcome], judged=True)
        by_trust = MATRIX[self.trust][deed.risk]
        if by_trust == "DENIED":
            return Said("DENIED", "QWED-AGENT-TRUST-001", judged=True)
        if by_trust == "PENDING" or (deed.careful and deed.risk != "low"):
            full = self.open_approvals >= self.house.rules.open_approvals
            return Said("DENIED", NEEDS_APPROVAL) if full else Said("PENDING", NEEDS_APPROVAL, judged=True)
        return Said(_permission(deed), judged=True)

    @property
    def open_approvals(self) -> int:
        """How many of its actions wait for a person."""
        return sum(
            waiting.agent is self and waiting.kind == "action" and waiting.state == "pending"
            for waiting in self.house.approvals
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
        self, talk: Talk, deed: Deed, step: int, state: str | None, decision: str, cents: int, tokens: int, by: str
    ) -> None:
        talk.last = step
        talk.committed.append(step)
        talk.names.append(deed.name)
        if decision == "APPROVED" and state is not None:
            talk.window.append((deed.name, state))
        if decision == "PENDING":
            self.held_cents += cents
            self.held_tokens += tokens
            expires = self.house.now + self.house.rules.approval_seconds
            waiting = Waiting(self, "action", by, expires, cents, tokens, deed.risk, _permission(deed))
            self.house.approvals.append(waiting)
            return
        self.merit.attestations += deed.risk in ("high", "critical")
        self.spend(cents, tokens)

    def spend(self, cents: int, tokens: int) -> None:
        """Money and tokens are used."""
        self.cents += cents
        self.tokens += tokens
        self.total_cents += cents

    def _count_request(self) -> None:
        self.requests_today += 1
        if self.max_requests is None or self.requests < self.max_requests:
            self.requests += 1

    def turn(self, now: float) -> None:
        """A new hour or day frees what it counted; what is held stays held."""
        hour = int(now // HOUR)
        if hour > self.hour:
            if hour // 24 > self.hour // 24:
                self.cents = self.tokens = self.requests_today = 0
            self.hour, self.requests = hour, 0

    def _behave(self, said: Said, violation: bool) -> None:
        self.merit.count(said)
        for reason, levels in self.conduct.count(said, violation, self.house.now):
            if self.trust:
                before = self.trust
                self.reach(max(before - levels, 0))
                self.happens("trust_degraded", "qwed", (before, self.trust, reason))

    def reach(self, level: int) -> None:
        """Another level, up or down: what was done at the last one speaks neither for nor against it."""
        self.trust = level
        self.merit = Merit(since=self.house.now)

    def happens(self, event: str, by: str, levels: tuple[Any, ...] = ()) -> None:
        """A change is written down, in the agent's log and in the house's."""
        self.log.append((event, by, *levels))
        self.house.changes.append((event, by))

    def shown_log(self) -> list[tuple[Any, ...]]:
        """The log as it reads: of what was erased, that it was decided or changed, by whom and to which level."""
        return [_erased(entry) for entry in self.log[: self.erased]] + self.log[self.erased :]

    def evidence(self) -> dict[str, Any]:
        """Spec 8.2, at the present level."""
        merit = self.merit
        return {
            "days_active": int((self.house.now - max(self.born, merit.since)) // DAY),
            "total_actions": merit.actions,
            "denied_actions": merit.denied,
            "denial_rate": round(merit.denied / merit.actions, 6) if merit.actions else 0.0,
            "attestations": merit.attestations,
        }

    def has_proven_itself(self) -> bool:
        """Ruling 4.2: enough days, enough actions, few enough denials."""
        rules, found = self.house.rules, self.evidence()
        enough = found["days_active"] >= rules.min_days and found["total_actions"] >= rules.min_actions
        return bool(enough and found["denied_actions"] * 100 <= rules.max_denial_percent * found["total_actions"])

    def summary(self) -> dict[str, Any]:
        """Spec 7.2: the first decisions, counted."""
        firsts = [action.first for action in self.actions]
        names = ("APPROVED", "DENIED", "CORRECTED", "PENDING", "BUDGET_EXCEEDED")
        counts = {name.lower(): firsts.count(name) for name in names}
        return {"total_actions": len(firsts), **counts, "total_cost_usd": self.total_cents / 100}


def _loop_of(talk: Talk, deed: Deed, state: str | None) -> str | None:
    if talk.names[-2:] == [deed.name, deed.name]:
        return "QWED-AGENT-LOOP-003"
    if state is not None and talk.window[-20:].count((deed.name, state)) >= 2:
        return "QWED-AGENT-LOOP-004"
    return None


def _erased(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    """A decision without its error; a change without what was said about it."""
    if entry[0].isupper():
        return entry[0], None
    return entry[:4] if entry[0] == "trust_degraded" else entry


def _permission(deed: Deed) -> str:
    return "CORRECTED" if deed.outcome == "CORRECTED" else "APPROVED"
