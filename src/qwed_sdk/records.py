"""What the client returns: Records that read both ways, each with the members its part of the protocol knows."""

from inspect import get_annotations
from typing import Any

from qwed.words import Decision, Status
from qwed.words.record import Reply


class Known(Reply):
    """A Reply whose class names its members: one that the server left out reads None."""

    _known: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = (name for each in cls.__mro__ for name in get_annotations(each))
        cls._known = frozenset(name for name in named if not name.startswith("_"))

    def _knows(self, name: str) -> bool:
        return name in self._known


class Result(Known):
    """INTERFACES 2: what an engine found. As a condition it is true for VERIFIED alone."""

    status: str
    verified: bool
    is_valid: bool
    engine: str
    result: dict[str, Any]
    message: str
    checks: list[dict[str, Any]]
    attestation: str | None
    proof_ref: str | None
    latency_ms: float

    @property
    def is_verified(self) -> bool:
        """Whether it was proven, and nothing less."""
        return self.verified is True and self.status == Status.VERIFIED

    def __bool__(self) -> bool:
        return self.is_verified


class Answer(Known):
    """Spec 4.2: a decision. As a condition it is true for APPROVED alone: CORRECTED permits another action."""

    decision: str
    action_id: str | None
    error: dict[str, Any] | None
    verification: dict[str, Any] | None
    verified_query: str | None
    corrected: dict[str, Any] | None
    attestation: str | dict[str, Any] | None
    budget_remaining: dict[str, Any] | None
    approval_id: str | None
    expires_at: str | None
    tool_name: str | None
    risk_assessment: dict[str, Any] | None
    policy_checks: list[dict[str, Any]] | None

    @property
    def is_pending(self) -> bool:
        """Whether a person has to decide first."""
        return self.decision == Decision.PENDING

    def __bool__(self) -> bool:
        return self.decision == Decision.APPROVED


class Action(Answer):
    """Spec 7.1: an action as it stands now."""

    activity_id: str
    agent_id: str
    timestamp: str
    conversation_id: str | None
    step_number: int | None
    action_type: str | None
    action: dict[str, Any] | None
    first_decision: str | None
    execution: dict[str, Any] | None
    approval: dict[str, Any] | None
    resolution: dict[str, Any] | None
    event: str | None
    change: dict[str, Any] | None
    user_intent: str | None
    justification: str | None
    cost: dict[str, Any]
    latency_ms: float


class Agent(Known):
    """Spec 3.2: an agent; its token only where it was just made."""

    agent_id: str
    agent_token: str | None
    name: str
    type: str
    principal_id: str
    status: str
    trust_level: int
    permissions: dict[str, Any]
    budget: dict[str, Any]
    did: str
    created_at: str


class Approval(Known):
    """Something that waits for a person, or has waited."""

    approval_id: str
    kind: str
    state: str
    agent_id: str
    action_id: str | None
    action: dict[str, Any] | None
    corrected: dict[str, Any] | None
    verification: dict[str, Any] | None
    resolution: dict[str, Any] | None
    created_at: str
    expires_at: str


class Verdict(Known):
    """INTERFACES 6: what became of a message between agents. As a condition it is true for `forwarded` alone."""

    status: str
    reason: str
    audit_trace_id: str
    attestation_jwt: str | None
    engine_used: str
    verified_at: str
    details: dict[str, Any]
    activity_id: str | None

    @property
    def forwarded(self) -> bool:
        """Whether the message may reach its recipient."""
        return self.status == "forwarded"

    def __bool__(self) -> bool:
        return self.forwarded


class Lists(Known):
    """INTERFACES 6: who may send to whom."""

    blocks: list[str]
    pairs: list[dict[str, str]]
    trusted: list[str]


class Batch(Known):
    """INTERFACES 2: a job. Its items are `batch["items"]` or `batch.results`, since every Mapping has an `items()`."""

    job_id: str
    status: str
    progress_percent: float
    total_items: int
    completed_items: int
    failed_items: int
    summary: dict[str, Any]

    @property
    def results(self) -> list[dict[str, Any]]:
        """One answer per item, in the order they were given."""
        found: list[dict[str, Any]] = self["items"]
        return found

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to do."""
        return self.status not in ("pending", "processing")

    def __bool__(self) -> bool:
        summary = self.summary if isinstance(self.summary, dict) else {}
        total = summary.get("total")
        return self.is_over and isinstance(total, int) and 0 < total == summary.get("verified")
