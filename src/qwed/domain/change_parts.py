"""Parts that a logged change consists of. Each is refused if the state has changed since it was built."""

from enum import StrEnum
from typing import NamedTuple

from qwed.domain.access_lists import ListEntry
from qwed.domain.agent import Agent, Key
from qwed.domain.policy_set import PolicySet


class Conflict(StrEnum):
    """Reason why a write set cannot be committed now."""

    STALE = "it was changed by another request meanwhile"
    RESOLVED = "it is already resolved"
    REQUESTED = "a request of this kind is already pending"
    EXECUTED = "its execution was already logged"
    LAST_OWNER = "it is the last owner key: add another one first"
    REVOKED = "it is already revoked"
    FULL = "the list is full: remove an entry first"
    HALTED = "the whole organisation is stopped"
    BLOCKED = "an owner blocked it meanwhile"
    NAME_IN_USE = "an agent has this name already"
    SPELLING_IN_USE = "a tool is registered whose name differs only by case"
    LEASE_EXPIRED = "the decision took longer than the step was held"


class ApprovalRequest(NamedTuple):
    """Request for a person's approval, bound to one exact action: that of its activity."""

    approval_id: str
    cost: int
    tokens: int
    high_risk_calls: int
    created_at: float
    expires_at: float
    requested_by: str = ""
    kind: str = "action"
    request: str | None = None
    """Requested change, for approvals that are not about an action: sealed JSON."""
    approver_groups: tuple[str, ...] = ()
    """Groups that must each approve; empty where one approver of any group may decide."""


class Webhook(NamedTuple):
    """Webhook of an organisation, and its delivery counters."""

    organisation_id: str
    url: str
    events: tuple[str, ...]
    secret: str
    changed_at: float
    delivered: int = 0
    given_up: int = 0
    delivered_at: float | None = None
    last_error: str | None = None
    waiting: int = 0
    """Notices in the outbox."""


class OrganisationAdded(NamedTuple):
    """A new organisation."""

    organisation_id: str
    name: str
    at: float


class AgentAdded(NamedTuple):
    """A new agent."""

    agent: Agent


class AgentChanged(NamedTuple):
    """Agent before and after a change."""

    before: Agent
    after: Agent

    @property
    def is_renamed(self) -> bool:
        """True if the agent gets a name that no other agent may have."""
        return self.before.name_key != self.after.name_key


class AgentUnchanged(NamedTuple):
    """Condition without a change: the agent is as it was read, and active."""

    agent: Agent


class ElevationRequested(NamedTuple):
    """Request for more trust; an agent has at most one."""

    organisation_id: str
    agent_id: str
    activity_id: str
    approval: ApprovalRequest


class ApprovalResolved(NamedTuple):
    """Resolved approval. Its budget is used if approved and released if not."""

    approval_id: str
    agent_id: str
    kind: str
    state: str
    resolution: str
    resolved_in: str
    cost: int
    tokens: int
    high_risk_calls: int
    at: float


class GroupApproval(NamedTuple):
    """Approval by one key, in the name of its groups, of a request that several groups must approve."""

    key_id: str
    groups: tuple[str, ...]
    activity_id: str
    at: float


class GroupApproved(NamedTuple):
    """One more approval of a request that several groups must approve."""

    approval_id: str
    agent_id: str
    before: tuple[GroupApproval, ...]
    approval: GroupApproval


class ExecutionLogged(NamedTuple):
    """Result of a permitted action."""

    activity_id: str
    success: bool
    result_hash: str | None
    """Sealed, because a guess could be compared with it."""
    at: float


class KeyAdded(NamedTuple):
    """A new key."""

    key: Key


class KeyRevoked(NamedTuple):
    """Revoked key."""

    key: Key
    at: float


class KeyChanged(NamedTuple):
    """Key before and after a change of its groups."""

    before: Key
    after: Key


class OrganisationHalted(NamedTuple):
    """Kill switch, turned on or, without a time, off."""

    organisation_id: str
    at: float | None


class OrganisationActive(NamedTuple):
    """Condition without a change: the organisation is not halted, and neither agent is blocked."""

    organisation_id: str
    sender: str
    receiver: str


class ListChanged(NamedTuple):
    """Entry added to or removed from an access list."""

    organisation_id: str
    entry: ListEntry
    present: bool


class ToolChanged(NamedTuple):
    """Tool definition of an organisation."""

    organisation_id: str
    name: str
    row: bytes


class PolicySetChanged(NamedTuple):
    """Policy set of an organisation before and after a change."""

    organisation_id: str
    before: PolicySet
    after: PolicySet
    at: float
    changed_by: str


class PolicySetUnchanged(NamedTuple):
    """Condition without a change: this policy set is in force."""

    organisation_id: str
    policies: PolicySet


class ToolRemoved(NamedTuple):
    """Tool definition that an organisation no longer has."""

    organisation_id: str
    name: str


class WebhookChanged(NamedTuple):
    """Webhook that was set, or removed (None) along with its queued notices."""

    organisation_id: str
    webhook: Webhook | None


class AttestationRevoked(NamedTuple):
    """Revoked attestation, and the activity that revoked it."""

    attestation_id: str
    organisation_id: str
    activity_id: str
    at: float


class SubjectErased(NamedTuple):
    """Data subject whose key is destroyed, and with it all of their content."""

    organisation_id: str
    name: str
    at: float
    stated_name: str
    """Name of the subject in notices that wait for delivery."""


ChangePart = (
    OrganisationAdded
    | AgentAdded
    | AgentChanged
    | AgentUnchanged
    | ElevationRequested
    | ApprovalResolved
    | GroupApproved
    | ExecutionLogged
    | KeyAdded
    | KeyRevoked
    | KeyChanged
    | OrganisationHalted
    | OrganisationActive
    | ListChanged
    | AttestationRevoked
    | SubjectErased
    | ToolChanged
    | PolicySetChanged
    | PolicySetUnchanged
    | ToolRemoved
    | WebhookChanged
)
