"""The closed sets of the protocol: what we answer, what an engine found, how risky it is, who is asking."""

from enum import IntEnum, StrEnum


class Decision(StrEnum):
    """Spec 4.3: what the agent may do now."""

    APPROVED = "APPROVED"
    CORRECTED = "CORRECTED"
    PENDING = "PENDING"
    DENIED = "DENIED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"

    permits: bool
    """Whether the agent may act on it at once."""
    commits: bool
    """Whether the conversation step is consumed (spec 9.4)."""


for _decision in Decision:
    # Attributes and not properties: each is read several times for every request.
    _decision.permits = _decision in (Decision.APPROVED, Decision.CORRECTED)
    _decision.commits = _decision.permits or _decision is Decision.PENDING


class Status(StrEnum):
    """What an engine says about its input; `UNCERTAIN` is how the agent wire spells "could not decide"."""

    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    CORRECTED = "CORRECTED"
    INCONCLUSIVE = "INCONCLUSIVE"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"
    SIMPLIFIED = "SIMPLIFIED"
    UNCERTAIN = "UNCERTAIN"

    @property
    def on_agent_wire(self) -> "Status":
        """The same finding in the words of spec 2.3."""
        return _AGENT_WIRE.get(self, self)


_AGENT_WIRE = {
    Status.INCONCLUSIVE: Status.UNCERTAIN,
    Status.UNKNOWN: Status.UNCERTAIN,
    Status.SIMPLIFIED: Status.VERIFIED,
}


class Risk(IntEnum):
    """Guide, Risk assessment. Ordered, so the stricter of two is `max`."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3

    @property
    def word(self) -> str:
        """The name on the wire."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> "Risk":
        """The risk called `word`; KeyError if there is none."""
        return _RISKS[word]

    def raised(self) -> "Risk":
        """One level up, CRITICAL at most."""
        return Risk(min(self + 1, Risk.CRITICAL))


_RISKS = {risk.name.lower(): risk for risk in Risk}


class Trust(IntEnum):
    """Spec 8.1."""

    UNTRUSTED = 0
    SUPERVISED = 1
    AUTONOMOUS = 2
    TRUSTED = 3

    @property
    def word(self) -> str:
        """The name on the wire."""
        return self.name.lower()
