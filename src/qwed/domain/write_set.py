"""Write set: all that one decision or one change writes, and the state that it expects.

A store commits a write set as a whole or not at all. `transition.py` has the rules that are applied under its lock.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from qwed.domain.access_lists import Pair
from qwed.domain.agent import Agent
from qwed.domain.behaviour import BehaviourFlag, DegradationRule
from qwed.domain.budget import NO_COST, NO_USAGE, RequestCost, UsageCounters
from qwed.domain.change_parts import ApprovalRequest, ChangePart
from qwed.domain.conversation import ConversationStep
from qwed.domain.policy_set import PolicySet
from qwed.domain.usage_window import NO_USAGE_VALUES, ORGANISATION, UsageValues, Use
from qwed.model import Decision


class LogPosition(Protocol):
    """Position of a leaf in its log, under the first signed head that covers it."""

    @property
    def index(self) -> int: ...

    @property
    def head(self) -> Any: ...

    def path(self) -> list[str]:
        """Return the audit path of the leaf, in hex."""


class Committed(msgspec.Struct, frozen=True, gc=False):
    """Index of the leaf in its log, the agent's counters after a decision, and the position of the leaf."""

    log_index: int
    usage: UsageCounters = NO_USAGE
    position: LogPosition | None = None
    """None where nothing is written through at once, as in memory."""


class Reservation(msgspec.Struct, eq=False):
    """Step and budget reserved for one request. It is a lease: past `expires` it cannot commit."""

    agent_id: str
    conversation_id: str
    step: ConversationStep
    charge: RequestCost
    reserved_at: float
    expires: float = 0.0
    """Set when it is reserved, by the monotonic clock."""
    idempotency_key: str | None = None
    """Idempotency key that no other request may use meanwhile."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Agent, conversation and step number."""
        return self.agent_id, self.conversation_id, self.step.number


class Activity(msgspec.Struct, frozen=True, gc=False):
    """Decision or change to append to the log."""

    activity_id: str
    decision: Decision | None
    at: float
    cost: int
    leaf: str
    payload: str
    event: str = ""
    """Name of the change; empty for a decision."""
    attestation_id: str | None = None
    subject_id: str | None = None
    """Data subject whose key seals the payload."""


class Notice(NamedTuple):
    """Event to send to the organisation's webhook: ids, no content."""

    notice_id: str
    event: str
    body: str


class ChainLink(NamedTuple):
    """Attestation to append to a chain of `links` earlier ones."""

    chain_id: str
    links: int
    previous: str | None
    attestation_id: str


class IdempotentAnswer(NamedTuple):
    """Answer to store under the caller's idempotency key."""

    key: str
    body_hash: str
    answer_of: Callable[[Committed], bytes]
    """Encodes the answer once the counters are known; sealed, like all content."""
    expires_at: float
    subject_id: str | None = None


class UsageEffects(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Uses that a decision adds to rolling usage, and the values that it was decided on."""

    uses: tuple[Use, ...] = ()
    """Uses that it adds if it commits."""
    values: UsageValues = NO_USAGE_VALUES
    """Values that its rules have read. Those of one that commits are taken again under the lock."""
    is_same_on: Callable[[UsageValues], bool] | None = None
    """Returns True if the decision would be the same on other values; pure and bounded, because it runs under the lock.
    Without it every other value is a conflict."""

    def holds_on(self, values: UsageValues) -> bool:
        """Return True if the decision is still valid on these values."""
        return values == self.values or (self.is_same_on is not None and self.is_same_on(values))

    def writes_organisation(self, organisation_id: str) -> bool:
        """Return True if it adds to a series of the organisation."""
        return any(use.series.owner_id == organisation_id for use in self.uses)

    @property
    def reads_organisation(self) -> bool:
        """True if it was decided on a value of the organisation."""
        return any(key.scope == ORGANISATION for key in self.values)


class DecisionEffects(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Changes that a decision makes to its agent and its conversation, and what it was decided on."""

    agent: Agent
    """The agent as it was decided on: the commit is a conflict if it has changed."""
    decision: Decision
    charge: RequestCost = NO_COST
    reservation: Reservation | None = None
    """The reserved step. A decision that commits needs one."""
    approval: ApprovalRequest | None = None
    idempotency_key: str | None = None
    """Idempotency key of the request: the commit is a conflict if an answer was stored under it meanwhile."""
    answer_to_store: IdempotentAnswer | None = None
    behaviour_flag: BehaviourFlag = BehaviourFlag.NONE
    degradations: tuple["WriteSet", ...] = ()
    """Logged changes for a loss of trust, one for each rule that the decision breaks."""
    broken_rules: tuple[DegradationRule, ...] = ()
    """Rules that it breaks on the snapshot: the commit is a conflict if they are others by then."""
    policies: PolicySet | None = None
    """Policy set that was evaluated: the commit is a conflict if another one is in force by then."""
    usage: UsageEffects | None = None
    """Rolling usage; None where no policy in force reads any that the call is part of."""
    pair: Pair | None = None
    """Sender and receiver of a message: the commit is a conflict if one of them was blocked meanwhile."""
    link: ChainLink | None = None
    """Its place in a chain of attestations: the commit is a conflict if the chain has grown meanwhile."""


class WriteSet(msgspec.Struct, frozen=True, kw_only=True):
    """Leaf, changed rows and webhook notices. All of it is written or nothing."""

    organisation_id: str
    agent_id: str = ""
    """Agent whose activity lists it; empty for the organisation itself."""
    activity: Activity
    effects: DecisionEffects | None = None
    """Set for a decision."""
    parts: tuple[ChangePart, ...] = ()
    """Set for a change by a person or a rule."""
    notices: tuple[Notice, ...] = ()
    linked: "WriteSet | None" = None
    """Leaf for the log of another organisation, written in the same transaction; it may not have a further one."""
