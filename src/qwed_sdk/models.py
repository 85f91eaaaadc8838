"""Records that the client returns, one class for each answer of the API."""

from typing import Any

from qwed.model import Decision, Status
from qwed.model.record import ResponseRecord


class ApiRecord(ResponseRecord):
    """Answer of the API; a documented member that the server left out reads None."""

    _documented: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = (name for base in cls.__mro__ for name in getattr(base, "__annotations__", ()))
        cls._documented = frozenset(name for name in named if not name.startswith("_"))

    def _knows(self, name: str) -> bool:
        return name in self._documented


class Result(ApiRecord):
    """Result of a verification. As a condition it is true for VERIFIED only."""

    status: str
    """VERIFIED, FAILED, CORRECTED, SIMPLIFIED, INCONCLUSIVE, UNKNOWN, BLOCKED or ERROR."""
    verified: bool
    """True for VERIFIED only."""
    is_valid: bool
    """The same as `verified`."""
    engine: str
    """Engine that verified it."""
    result: dict[str, Any]
    """Findings of the engine, such as `expected` or `counterexample`."""
    message: str
    """The finding in one sentence."""
    checks: list[dict[str, Any]]
    """Checks that ran, and whether each passed."""
    attestation: str | None
    """Signed statement, if it was requested."""
    proof_ref: str | None
    """SHA-256 of the input and the finding; None if nothing was settled."""
    latency_ms: float
    """Duration in milliseconds."""

    @property
    def is_verified(self) -> bool:
        """True if the claim is proven."""
        return self.verified is True and self.status == Status.VERIFIED

    def __bool__(self) -> bool:
        return self.is_verified


class Answer(ApiRecord):
    """Decision about an action. As a condition it is true for APPROVED only: CORRECTED permits another action."""

    decision: str
    """APPROVED, CORRECTED, PENDING, DENIED or BUDGET_EXCEEDED."""
    action_id: str | None
    """Id of the action, `act_...`."""
    error: dict[str, Any] | None
    """`code`, `message`, `details`, `final`, `check` and `suggestion` of a refusal."""
    verification: dict[str, Any] | None
    """Status, engine, risk and checks of the verification."""
    verified_query: str | None
    """Query that may be executed."""
    corrected: dict[str, Any] | None
    """Action that is permitted in place of the requested one."""
    attestation: str | dict[str, Any] | None
    """Receipt or attestation of a permitted action."""
    budget_remaining: dict[str, Any] | None
    """Rest of the budget."""
    approval_id: str | None
    """Id of the approval that a PENDING action waits for."""
    expires_at: str | None
    """Time until which a PENDING action waits."""
    tool_name: str | None
    """Name of the tool of a tool call."""
    risk_assessment: dict[str, Any] | None
    """Risk of a tool call, and its factors."""
    policy_checks: list[dict[str, Any]] | None
    """Permissions that were checked for a tool call."""
    facts: dict[str, Any] | None
    """What was found in the action, if `include_facts` was set."""

    @property
    def is_pending(self) -> bool:
        """True if a person has to decide first."""
        return self.decision == Decision.PENDING

    def __bool__(self) -> bool:
        return self.decision == Decision.APPROVED


class Action(Answer):
    """Current state of an action, or a change of an agent or its organisation."""

    activity_id: str
    """Id of the activity in the log."""
    agent_id: str
    """Id of the agent."""
    timestamp: str
    """Time of the request."""
    conversation_id: str | None
    """Conversation of the action."""
    step_number: int | None
    """Step of the action."""
    action_type: str | None
    """Type of the action."""
    action: dict[str, Any] | None
    """The action as requested, with secrets masked."""
    first_decision: str | None
    """Decision before a person decided."""
    execution: dict[str, Any] | None
    """Recorded outcome."""
    approval: dict[str, Any] | None
    """Approval that the action waits for."""
    resolution: dict[str, Any] | None
    """Decision of the person."""
    event: str | None
    """Kind of a change, such as `suspended`."""
    change: dict[str, Any] | None
    """Details of a change."""
    user_intent: str | None
    """Intent that the request stated."""
    justification: str | None
    """Justification that the request stated."""
    cost: dict[str, Any]
    """Charged cost and tokens."""
    latency_ms: float
    """Duration in milliseconds."""


class Agent(ApiRecord):
    """Registered agent."""

    agent_id: str
    """Id of the agent, `agent_...`."""
    agent_token: str | None
    """Token; only where it was just created."""
    name: str
    """Name for people."""
    type: str
    """`supervised`, `autonomous` or `trusted`."""
    principal_id: str
    """Person or service that it acts for."""
    status: str
    """`active` or `suspended`."""
    trust_level: int
    """Level from 0 to 3."""
    permissions: dict[str, Any]
    """Tools and resources that it may use."""
    budget: dict[str, Any]
    """Its limits."""
    did: str
    """Decentralised identifier."""
    created_at: str
    """Time of its registration."""


class Approval(ApiRecord):
    """Action or trust change that waits, or waited, for a person."""

    approval_id: str
    """Id of the approval, `apr_...`."""
    kind: str
    """Subject: an action or a trust change."""
    state: str
    """`pending`, `approved`, `rejected` or `expired`."""
    agent_id: str
    """Id of the agent."""
    action_id: str | None
    """Id of the action."""
    action: dict[str, Any] | None
    """The action."""
    corrected: dict[str, Any] | None
    """Action that would be permitted in its place."""
    verification: dict[str, Any] | None
    """Result of its verification."""
    facts: dict[str, Any] | None
    """What was found in the action."""
    resolution: dict[str, Any] | None
    """Decision of the person: who, when and why."""
    created_at: str
    """Time of the request."""
    expires_at: str
    """Time until which it waits."""


class Verdict(ApiRecord):
    """Verdict about a message between agents. As a condition it is true for `forwarded` only."""

    status: str
    """`forwarded`, `blocked` or `error`."""
    reason: str
    """The reason in one sentence."""
    audit_trace_id: str
    """Id of the verdict, `a2a_...`."""
    attestation_jwt: str | None
    """Signed statement of the verdict."""
    engine_used: str
    """Guard that gave the verdict."""
    verified_at: str
    """Time of the verdict."""
    details: dict[str, Any]
    """Findings of the guard."""
    activity_id: str | None
    """Id of the activity in the log."""

    @property
    def forwarded(self) -> bool:
        """True if the message may reach its recipient."""
        return self.status == "forwarded"

    def __bool__(self) -> bool:
        return self.forwarded


class Lists(ApiRecord):
    """Agents that may or may not send messages."""

    blocks: list[str]
    """Blocked agents."""
    pairs: list[dict[str, str]]
    """Blocked pairs, each with `sender` and `receiver`."""
    trusted: list[str]
    """Trusted agents."""


class Batch(ApiRecord):
    """Batch job. Its items are `batch["items"]` or `batch.results`, because `items` is a method of every mapping."""

    job_id: str
    """Id of the job."""
    status: str
    """`pending`, `processing`, `completed`, `partial` or `failed`."""
    progress_percent: float
    """Share of finished items."""
    total_items: int
    """Number of items."""
    completed_items: int
    """Items that were verified with any result."""
    failed_items: int
    """Items that could not be verified."""
    summary: dict[str, Any]
    """`total`, `verified`, `failed` and `success_rate`."""

    @property
    def results(self) -> list[dict[str, Any]]:
        """Answers in the order of the items."""
        items: list[dict[str, Any]] = self["items"]
        return items

    @property
    def is_over(self) -> bool:
        """True if the job is finished."""
        return self.status not in ("pending", "processing")

    def __bool__(self) -> bool:
        summary = self.summary if isinstance(self.summary, dict) else {}
        total = summary.get("total")
        return self.is_over and isinstance(total, int) and 0 < total == summary.get("verified")
