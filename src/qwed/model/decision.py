"""Closed sets of the protocol: decision, verification status, risk, trust level."""

from enum import IntEnum, StrEnum


class Decision(StrEnum):
    """Answer to a verification request (spec 4.3)."""

    APPROVED = "APPROVED"
    CORRECTED = "CORRECTED"
    PENDING = "PENDING"
    DENIED = "DENIED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"

    permits: bool
    """True if the agent may act at once."""
    commits: bool
    """True if the conversation step is consumed (spec 9.4)."""


for _decision in Decision:
    # Attributes, not properties: they are read several times per request.
    _decision.permits = _decision in (Decision.APPROVED, Decision.CORRECTED)
    _decision.commits = _decision.permits or _decision is Decision.PENDING


class Status(StrEnum):
    """Result of an engine; `UNCERTAIN` is the name of "could not decide" in answers to agents."""

    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    CORRECTED = "CORRECTED"
    INCONCLUSIVE = "INCONCLUSIVE"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"
    SIMPLIFIED = "SIMPLIFIED"
    UNCERTAIN = "UNCERTAIN"

    on_agent_wire: "Status"
    """Status as spec 2.3 names it in answers to agents."""


_AGENT_WIRE = {
    Status.INCONCLUSIVE: Status.UNCERTAIN,
    Status.UNKNOWN: Status.UNCERTAIN,
    Status.SIMPLIFIED: Status.VERIFIED,
}
for _status in Status:
    _status.on_agent_wire = _AGENT_WIRE.get(_status, _status)


class Risk(IntEnum):
    """Risk level, ordered so that the stricter of two is `max`."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3

    word: str
    """Lowercase name used in JSON."""

    @classmethod
    def of(cls, word: str) -> "Risk":
        """Return the risk with this lowercase name; raise KeyError if there is none."""
        return _RISKS[word]

    def raised(self) -> "Risk":
        """Return the next higher level, at most CRITICAL."""
        return Risk(min(self + 1, Risk.CRITICAL))


for _risk in Risk:
    _risk.word = _risk.name.lower()
_RISKS = {risk.word: risk for risk in Risk}


class Trust(IntEnum):
    """Trust level of an agent (spec 8.1)."""

    UNTRUSTED = 0
    SUPERVISED = 1
    AUTONOMOUS = 2
    TRUSTED = 3

    @property
    def word(self) -> str:
        """Lowercase name used in JSON."""
        return self.name.lower()
