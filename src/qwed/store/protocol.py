"""What every store can do, and the values it speaks in.

`reserve_step` and `hold` are cheap and not durable: a crash must free them. `settle` writes step, counters, activity
and approval in one durable transaction; its ticket completes after the commit.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from qwed.store.agent import Agent, Key
from qwed.store.conversation import Conversation, Step
from qwed.store.usage import NOTHING, Charge, Exceeded, Spent
from qwed.waiting import Ticket
from qwed.words import Decision, ErrorCode


class StoreError(Exception):
    """The store could not keep what it was given; nothing of it is visible."""


class Reservation(msgspec.Struct, eq=False):
    """A step held for one request, and what it holds of the budget. A lease: past `expires` it commits nothing."""

    agent: Agent
    place: tuple[str, str, int]
    """Agent, conversation and step number."""
    step: Step
    expires: float
    conversation: Conversation
    held: Charge = NOTHING
    settled: bool = False
    """Whether a settlement has been accepted for it: what follows charges nothing more."""


class Remembered(NamedTuple):
    """A stored answer for an idempotency key."""

    answer: bytes
    activity_id: str


class Memory(NamedTuple):
    """An answer to keep under the caller's idempotency key."""

    key: str
    body_hash: str
    answer_of: Callable[["Settled"], bytes]
    expires_at: float


class Approval(NamedTuple):
    """A request for a person, bound to one exact action."""

    approval_id: str
    action_hash: str
    cost: int
    tokens: int
    high_risk_calls: int
    created_at: float
    expires_at: float


class Activity(NamedTuple):
    """One answer on its way into the log."""

    activity_id: str
    decision: Decision
    at: float
    cost: int
    leaf: str
    payload: str


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one decision changes."""

    agent: Agent
    activity: Activity
    decision: Decision
    charge: Charge = NOTHING
    reservation: Reservation | None = None
    approval: Approval | None = None
    memory: Memory | None = None


class Settled(NamedTuple):
    """Where the activity stands in the organisation's log, and what is used now."""

    log_index: int
    spent: Spent


class Entry(NamedTuple):
    """One activity as it was kept."""

    sequence: int
    log_index: int
    organisation_id: str
    leaf: str
    payload: str


class Tally(NamedTuple):
    """The summary of spec 7.2."""

    total_actions: int = 0
    approved: int = 0
    denied: int = 0
    corrected: int = 0
    pending: int = 0
    budget_exceeded: int = 0
    cost: int = 0


class KeyClaim(NamedTuple):
    """What an idempotency key says: a stored answer, or why it cannot be used; both None means it is ours now."""

    remembered: Remembered | None = None
    refusal: str | None = None


class Store(Protocol):
    """The one door to what is kept."""

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Ticket[None]: ...

    def first_organisation(self) -> str | None: ...

    def add_key(self, key: Key) -> Ticket[None]: ...

    def find_key(self, prefix: str) -> Key | None: ...

    def add_agent(self, agent: Agent) -> Ticket[None]: ...

    def find_agent(self, agent_id: str) -> Agent | None: ...

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]: ...

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]: ...

    def put_tool(self, organisation_id: str, name: str, row: bytes) -> Ticket[None]: ...

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim: ...

    def release_key(self, agent_id: str, key: str) -> None: ...

    def reserve_step(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode: ...

    def hold(self, reservation: Reservation, charge: Charge, now: float) -> Exceeded | None: ...

    def release(self, reservation: Reservation) -> None: ...

    def settle(self, settlement: Settlement) -> Ticket[Settled] | ErrorCode: ...

    def spent(self, agent_id: str, now: float) -> Spent: ...

    def find_activity(self, agent_id: str, activity_id: str) -> Entry | None: ...

    def activities(self, query: "ActivityQuery") -> Sequence[Entry]: ...

    def tally(self, agent_id: str, since: float | None, until: float | None) -> Tally: ...

    def close(self) -> None: ...


class ActivityQuery(NamedTuple):
    """Which activities of one agent, newest first."""

    agent_id: str
    limit: int
    before: int | None = None
    decision: str | None = None
    since: float | None = None
    until: float | None = None
