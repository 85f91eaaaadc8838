"""What every store can do, and the values it speaks in.

`reserve_step` and `hold` are cheap and not durable: a crash must free them. `settle` writes step, counters, activity
and approval in one durable transaction; `change` does the same for what happens around decisions (see `parts.py`).
Their tickets complete after the commit.
"""

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec

from qwed.store.agent import Agent, Key
from qwed.store.boundary import Boundary, Pair
from qwed.store.commits import Commits
from qwed.store.conduct import Mark, Offence
from qwed.store.conversation import Conversation, Step
from qwed.store.job import Job, JobItem
from qwed.store.merit import Merit
from qwed.store.parts import Approval, AttestationRevoked, Conflict, Part, Webhook
from qwed.store.usage import NOTHING, Charge, Exceeded, Spent
from qwed.waiting import Soon, Ticket
from qwed.words import Decision, ErrorCode

BEGUN, VAULT = "begun", "vault"
"""What `mark` is told: that keys are about to be made for this database, and which ones they are."""


class StoreError(Exception):
    """The store could not keep what it was given; nothing of it is visible."""


class Unreachable(StoreError):
    """Nobody answers at the address of the database, or whoever does lets us not in; the message is a sentence."""


class Moved(Enum):
    """The ground of a decision has moved: another process took the step, the budget or the idempotency key first.

    Nothing was written, and nothing is said about the request but that it must be looked at again from the start.
    """

    MOVED = "moved"


MOVED = Moved.MOVED


class Wanted(NamedTuple):
    """What a request is about to look at, as far as it is known before it looks."""

    prefix: str | None = None
    """Of an API key."""
    agent_id: str | None = None
    organisation_id: str | None = None
    conversations: tuple[tuple[str, str], ...] = ()
    """Agents, and what their conversations are filed under."""
    memory: tuple[str, str] | None = None
    """An agent, and what an idempotency key of it is filed under."""
    spends: bool = False
    """Whether the counters of the agent are looked at."""
    any_age: bool = False
    """Whether it will do to know of it at all: who asks is found out before it is asked how things stand."""


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
    foreign: int = 0
    """How many steps of the conversation other processes had committed when its number was allotted."""


class Remembered(NamedTuple):
    """A stored answer for an idempotency key."""

    answer: bytes
    activity_id: str


class Memory(NamedTuple):
    """An answer to keep under the caller's idempotency key."""

    key: str
    body_hash: str
    answer_of: Callable[["Settled"], bytes]
    """Sealed, as is all content."""
    expires_at: float
    subject_id: str | None = None


class Link(NamedTuple):
    """One more attestation of a chain, after so many others."""

    chain_id: str
    links: int
    previous: str | None
    attestation_id: str


class Placed(Protocol):
    """Where a leaf stands in its log, under the first signed head that contains it."""

    @property
    def index(self) -> int: ...

    @property
    def head(self) -> Any: ...

    def path(self) -> list[str]:
        """The audit path of the leaf, in hex."""


class Kept(NamedTuple):
    """Where a change stands in the log; the place with its head once it was written through."""

    log_index: int
    placed: Placed | None = None


class LogEntry(NamedTuple):
    """One leaf at its place."""

    log_index: int
    leaf: str


class Subject(NamedTuple):
    """A subject as it is kept; without a key it is erased."""

    subject_id: str
    organisation_id: str
    name: str
    key: bytes | None
    created_at: float
    erased_at: float | None = None


class Activity(NamedTuple):
    """One answer, or one change, on its way into the log."""

    activity_id: str
    decision: Decision | None
    at: float
    cost: int
    leaf: str
    payload: str
    event: str = ""
    """What changed; a decision has none."""
    attestation_id: str | None = None
    subject_id: str | None = None
    """Under whose key the payload is sealed."""

    @property
    def attested(self) -> bool:
        """Whether a signed statement is made of it."""
        return self.attestation_id is not None


class Notice(NamedTuple):
    """Something to tell the organisation's webhook: ids, no content."""

    notice_id: str
    event: str
    body: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happens around decisions: its leaf, what it changes, whom to tell. All of it or nothing."""

    organisation_id: str
    agent_id: str = ""
    """In whose activity it stands; the organisation's own where there is none."""
    activity: Activity
    parts: tuple[Part, ...] = ()
    notices: tuple[Notice, ...] = ()
    beside: "Change | None" = None
    """A leaf in the log of another organisation, in the same transaction; it changes nothing more."""


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one decision changes."""

    agent: Agent
    activity: Activity
    decision: Decision
    charge: Charge = NOTHING
    reservation: Reservation | None = None
    approval: Approval | None = None
    key: str | None = None
    """The idempotency key it was asked under: where an answer is stored there by now, that one is given."""
    memory: Memory | None = None
    notices: tuple[Notice, ...] = ()
    mark: Mark = Mark.NONE
    degrade: Callable[[Agent, Agent, Offence], Change] | None = None
    """Says how a loss of trust is logged, given the agent before and after it."""
    pair: Pair | None = None
    """Sender and receiver of a message; refused where one of them was blocked meanwhile."""
    link: Link | None = None
    """Its place in a chain of attestations; refused where the chain has grown meanwhile."""


class Settled(NamedTuple):
    """Where the activity stands in the organisation's log, and what is used now."""

    log_index: int
    spent: Spent
    placed: Placed | None = None
    """None where nothing is written through at once, as in memory."""


class Entry(NamedTuple):
    """One activity as it was kept, and what became of it."""

    sequence: int
    log_index: int
    organisation_id: str
    leaf: str
    payload: str
    success: int | None = None
    result_hash: str | None = None
    executed_at: float | None = None
    approval_id: str | None = None
    approval_state: str | None = None
    expires_at: float | None = None
    resolution: str | None = None
    resolved_in: str | None = None
    """The activity in which a person, or the end of its time, settled it."""
    subject_id: str | None = None


EXPIRED = "expired"


def state_at(state: str, expires_at: float, now: float) -> str:
    """How an approval stands: what has run out is expired, whether or not that was written down yet."""
    return EXPIRED if state == "pending" and expires_at <= now else state


class KeptApproval(NamedTuple):
    """One approval as it was kept, with the activity that asked for it."""

    approval_id: str
    organisation_id: str
    agent_id: str
    activity_id: str
    state: str
    cost: int
    tokens: int
    high_risk_calls: int
    created_at: float
    expires_at: float
    kind: str
    requested_by: str
    request: str | None
    resolution: str | None
    leaf: str
    payload: str
    subject_id: str | None = None

    def state_at(self, now: float) -> str:
        """How it stands: what has run out is expired, whether or not that was written down yet."""
        return state_at(self.state, self.expires_at, now)


class Delivery(NamedTuple):
    """A notice that is due, and where it goes."""

    notice_id: str
    organisation_id: str
    url: str
    secret: str
    event: str
    body: str
    created_at: float
    attempts: int


class Tally(NamedTuple):
    """The summary of spec 7.2."""

    total_actions: int = 0
    approved: int = 0
    denied: int = 0
    corrected: int = 0
    pending: int = 0
    budget_exceeded: int = 0
    cost: int = 0
    attestations: int = 0


class KeyClaim(NamedTuple):
    """What an idempotency key says: a stored answer, or why it cannot be used; both None means it is ours now."""

    remembered: Remembered | None = None
    refusal: str | None = None


class Store(Protocol):
    """The one door to what is kept."""

    in_memory: bool
    """Whether nothing of it outlives the process."""
    on_notice: Callable[[], None]
    """Called once a notice is durable, from any thread; must not wait."""
    on_commit: Callable[[Collection[str]], None]
    """Called with the organisations whose logs have grown, from any thread; must not wait."""
    on_distrust: Callable[[], None]
    """Called when a write failed: what was taken for kept may not be."""
    on_erased: Callable[[], None]
    """Called when another process has erased somebody: whatever is in mind about them must go."""
    on_beat: Callable[[], None]
    """Called about once a second where other processes use the same files."""
    soon: Soon
    """When what was submitted is committed, which whoever drives many decisions at once may put off by a moment."""
    commits: Commits
    scrubbed: bool
    """Whether nothing that was deleted lies in the files, as far as is known."""

    freshen: Callable[[Wanted], Ticket[None] | None] | None
    """Makes near what others may have changed meanwhile; awaited before a request is walked through. None where nobody
    else writes, and nothing is to be awaited where everything wanted is near."""

    def up(self) -> bool:
        """Whether anything can be read and written, as far as is known."""

    def leads(self) -> bool:
        """Whether this process does what is done once for all: sweeping, delivering, publishing, running batches."""

    def mark(self, name: str, value: str) -> str:
        """What was first said under a name: by us, now, or by another process of another machine before."""

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Ticket[None]: ...

    def first_organisation(self) -> str | None: ...

    def find_key(self, prefix: str) -> Key | None: ...

    def list_keys(self, organisation_id: str) -> Sequence[Key]: ...

    def find_agent(self, agent_id: str) -> Agent | None: ...

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]: ...

    def halted(self, organisation_id: str) -> bool: ...

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]: ...

    def boundary(self, organisation_id: str) -> Boundary: ...

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float: ...

    def last_said(self, agent_id: str, conversation_id: str) -> str: ...

    def webhook(self, organisation_id: str) -> Webhook | None: ...

    def webhook_record(self, organisation_id: str) -> Webhook | None: ...

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]: ...

    def delivered(self, notice_id: str, now: float) -> Ticket[None]: ...

    def postpone(self, notice_id: str, due_at: float, error: str) -> Ticket[None]: ...

    def give_up(self, notice_id: str, error: str) -> Ticket[None]: ...

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim: ...

    def release_key(self, agent_id: str, key: str) -> None: ...

    def reserve_step(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode: ...

    def hold(self, reservation: Reservation, charge: Charge, now: float) -> Exceeded | None: ...

    def release(self, reservation: Reservation) -> None: ...

    def settle(self, settlement: Settlement) -> Ticket[Settled | ErrorCode | Moved] | ErrorCode:
        """Refused at once, or when its turn has come, or because the ground has moved; else durable."""

    def change(self, change: Change) -> Ticket[Kept | Conflict] | Conflict:
        """Refused at once, or when its turn has come; else durable."""

    def chain(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]: ...

    def find_subject(self, organisation_id: str, name: str) -> Subject | None: ...

    def subject(self, subject_id: str) -> Subject | None: ...

    def some_subject(self) -> Subject | None: ...

    def add_subject(self, subject: Subject) -> Ticket[None]: ...

    def rename_conversations(self, name: Callable[[str], str]) -> Ticket[None] | None: ...

    def drop_content(self, before: float, limit: int, now: float) -> Ticket[None] | None: ...

    def drop_expired(self, now: float, limit: int) -> Ticket[None] | None: ...

    def scrub(self) -> bool: ...

    def entries(self, organisation_id: str, from_index: int, limit: int) -> Sequence[LogEntry]: ...

    def log_size(self, organisation_id: str) -> int: ...

    def nodes(self, organisation_id: str, wanted: Sequence[tuple[int, int]]) -> list[bytes]: ...

    def latest_head(self, organisation_id: str) -> str | None: ...

    def latest_heads(self) -> Sequence[str]: ...

    def newest_heads(self) -> Sequence[tuple[str, str | None]]: ...

    def leaves(self, organisation_id: str) -> int: ...

    def first_head(self, organisation_id: str, index: int) -> str | None: ...

    def head_at(self, organisation_id: str, size: int) -> str | None: ...

    def log_index_of(self, organisation_id: str, activity_id: str) -> int | None: ...

    def find_leaf(self, activity_id: str) -> Entry | None: ...

    def find_attestation(self, attestation_id: str) -> Entry | None: ...

    def revoked(self, attestation_id: str) -> AttestationRevoked | None: ...

    def durable(self) -> Ticket[None]: ...

    def spent(self, agent_id: str, now: float) -> Spent: ...

    def merit(self, agent_id: str) -> Merit: ...

    def find_activity(self, agent_id: str, activity_id: str) -> Entry | None: ...

    def activities(self, query: "ActivityQuery") -> Sequence[Entry]: ...

    def changes(self, organisation_id: str, limit: int, before: int | None) -> Sequence[Entry]: ...

    def tally(self, agent_id: str, since: float | None, until: float | None) -> Tally: ...

    def find_approval(self, approval_id: str) -> KeptApproval | None: ...

    def list_approvals(self, query: "ApprovalQuery") -> Sequence[KeptApproval]: ...

    def expired_approvals(self, now: float, limit: int) -> Sequence[KeptApproval]: ...

    def awaits(self, agent_id: str) -> bool: ...

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[KeptApproval]: ...

    def add_job(self, job: Job, items: Sequence[JobItem]) -> Ticket[None]: ...

    def find_job(self, job_id: str) -> Job | None: ...

    def job_items(self, job_id: str) -> Sequence[JobItem]: ...

    def open_jobs(self) -> Sequence[Job]: ...

    def count_open_jobs(self, organisation_id: str) -> int: ...

    def finish_item(self, item: JobItem) -> Ticket[None]: ...

    def finish_job(self, job_id: str, now: float) -> Ticket[None]: ...

    def close(self) -> None: ...


class ActivityQuery(NamedTuple):
    """Which activities of one agent, newest first."""

    agent_id: str
    """Or an organisation, for what is its own and no agent's."""
    limit: int
    before: int | None = None
    decision: str | None = None
    since: float | None = None
    until: float | None = None
    kind: str = "decision"
    """`decision`, `change`, `all`, or `halt`: the kill switch, thrown and put back."""


class ApprovalQuery(NamedTuple):
    """Which approvals of one organisation, newest first."""

    organisation_id: str
    limit: int
    before: str | None = None
    state: str | None = None
    agent_id: str | None = None
    now: float = 0.0
    """What has run out by now is expired, whether or not that was written down yet."""
