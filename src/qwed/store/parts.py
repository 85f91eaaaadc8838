"""What a change may consist of. Each part is refused if the world has moved on since it was made."""

from enum import StrEnum
from typing import NamedTuple

from qwed.store.agent import Agent, Key
from qwed.store.boundary import Entry


class Conflict(StrEnum):
    """Why a change cannot be made as things stand."""

    STALE = "it was changed by someone else meanwhile"
    RESOLVED = "it is already settled"
    REQUESTED = "a request of this kind already waits for a person"
    EXECUTED = "its execution was already logged"
    LAST_OWNER = "it is the last owner key: add another one first"
    REVOKED = "it is already revoked"
    FULL = "the list is full: remove an entry first"
    HALTED = "the whole organisation is stopped"
    BLOCKED = "an owner blocked it meanwhile"


class Approval(NamedTuple):
    """A request for a person, bound to one exact action: that of the activity it stands with."""

    approval_id: str
    cost: int
    tokens: int
    high_risk_calls: int
    created_at: float
    expires_at: float
    requested_by: str = ""
    kind: str = "action"
    request: str | None = None
    """What is asked for, where it is no action: sealed JSON."""


class Webhook(NamedTuple):
    """Where an organisation wants to be told, and of what."""

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
    """An agent as it was and as it is to be."""

    before: Agent
    after: Agent


class AgentStands(NamedTuple):
    """Changes nothing, but holds only while the agent is as it was looked at, and may act."""

    agent: Agent


class ElevationRequested(NamedTuple):
    """A request for more trust; an agent has one at a time."""

    organisation_id: str
    agent_id: str
    activity_id: str
    approval: Approval


class ApprovalResolved(NamedTuple):
    """A waiting approval, settled. What it held is used when approved and freed when not."""

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


class Executed(NamedTuple):
    """What became of a permitted action."""

    activity_id: str
    success: bool
    result_hash: str | None
    """Sealed, because a guess could be compared with it."""
    at: float


class KeyAdded(NamedTuple):
    """A new key."""

    key: Key


class KeyRevoked(NamedTuple):
    """A key that opens nothing any more."""

    key: Key
    at: float


class OrganisationHalted(NamedTuple):
    """The kill switch, thrown or, with no time, put back."""

    organisation_id: str
    at: float | None


class OrganisationStands(NamedTuple):
    """Changes nothing, but holds only while the organisation is not halted, and blocks neither of the two agents."""

    organisation_id: str
    sender: str
    receiver: str


class ListChanged(NamedTuple):
    """An entry of a list that messages are held against, put there or taken away."""

    organisation_id: str
    entry: Entry
    there: bool


class ToolChanged(NamedTuple):
    """A row of an organisation's registry."""

    organisation_id: str
    name: str
    row: bytes


class WebhookChanged(NamedTuple):
    """A webhook, set or, with none, removed along with what waits for it."""

    organisation_id: str
    webhook: Webhook | None


class AttestationRevoked(NamedTuple):
    """An attestation that is not to be relied on any more, and the activity that says so."""

    attestation_id: str
    organisation_id: str
    activity_id: str
    at: float


class SubjectErased(NamedTuple):
    """A subject whose key is destroyed, and with it all content about them."""

    organisation_id: str
    name: str
    at: float
    stated: str
    """As notices that wait to be delivered name them."""


Part = (
    OrganisationAdded
    | AgentAdded
    | AgentChanged
    | AgentStands
    | ElevationRequested
    | ApprovalResolved
    | Executed
    | KeyAdded
    | KeyRevoked
    | OrganisationHalted
    | OrganisationStands
    | ListChanged
    | AttestationRevoked
    | SubjectErased
    | ToolChanged
    | WebhookChanged
)
