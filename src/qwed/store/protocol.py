"""Interface of the store, and the values that it takes and returns.

`reserve_step` and `reserve_budget` are cheap and not durable: a crash must release them. `commit` writes step,
counters, activity and approval in one durable transaction; `change` does the same for everything else that is logged
(see `change_parts.py`). Their futures complete after the commit.
"""

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec

from qwed.futures import CallScheduler, Future
from qwed.model import Decision, ErrorCode
from qwed.store.access_lists import AccessLists, Pair
from qwed.store.agent import Agent, Key
from qwed.store.batch_job import BatchJob, JobItem
from qwed.store.budget import NO_COST, LimitExceeded, RequestCost, UsageCounters
from qwed.store.change_parts import ApprovalRequest, AttestationRevoked, ChangePart, Conflict, Webhook
from qwed.store.commit_metrics import CommitMetrics
from qwed.store.conversation import Conversation, ConversationStep
from qwed.store.trust_degradation import BehaviourFlag, DegradationRule
from qwed.store.trust_evidence import TrustEvidence

SETUP_STARTED, VAULT_ID = "begun", "vault"
"""Names for `set_once`: keys are about to be made for this database, and the id of those keys."""


class StoreError(Exception):
    """The store could not write or read; nothing of a failed write is visible."""


class DatabaseUnreachableError(StoreError):
    """The database cannot be reached or refuses the connection; the message says why in one sentence."""


class StaleState(Enum):
    """The state a decision was based on has changed: another process took the step, the budget or the idempotency key
    first.

    Nothing was written. The request must be decided again from the start.
    """

    STALE_STATE = "moved"


STALE_STATE = StaleState.STALE_STATE


class PrefetchKeys(NamedTuple):
    """Keys of the state that a request will read, as far as they are known before it reads."""

    prefix: str | None = None
    """Public prefix of an API key."""
    agent_id: str | None = None
    organisation_id: str | None = None
    conversations: tuple[tuple[str, str], ...] = ()
    """Pairs of agent id and the keyed name of a conversation."""
    idempotency_key: tuple[str, str] | None = None
    """Agent id, and the keyed name of an idempotency key."""
    needs_usage: bool = False
    """True if the counters of the agent are read."""
    allow_stale: bool = False
    """True if cached values of any age will do, as they do for authentication."""


class Reservation(msgspec.Struct, eq=False):
    """Step and budget reserved for one request. It is a lease: past `expires` it cannot commit."""

    agent: Agent
    key: tuple[str, str, int]
    """Agent, conversation and step number."""
    step: ConversationStep
    expires: float
    conversation: Conversation
    reserved: RequestCost = NO_COST
    committed: bool = False
    """True once a commit was accepted for it: later commits of the request cost nothing more."""
    remote_steps: int = 0
    """Steps of the conversation that other processes had committed when its number was chosen."""


class StoredAnswer(NamedTuple):
    """Stored answer for an idempotency key."""

    answer: bytes
    activity_id: str


class IdempotentAnswer(NamedTuple):
    """Answer to store under the caller's idempotency key."""

    key: str
    body_hash: str
    answer_of: Callable[["CommitReceipt"], bytes]
    """Encodes the answer once the receipt is known; sealed, like all content."""
    expires_at: float
    subject_id: str | None = None


class ChainLink(NamedTuple):
    """Attestation to append to a chain of `links` earlier ones."""

    chain_id: str
    links: int
    previous: str | None
    attestation_id: str


class LogPosition(Protocol):
    """Position of a leaf in its log, under the first signed head that covers it."""

    @property
    def index(self) -> int: ...

    @property
    def head(self) -> Any: ...

    def path(self) -> list[str]:
        """Return the audit path of the leaf, in hex."""


class ChangeReceipt(NamedTuple):
    """Index of a change in the log, and its position once it is durable."""

    log_index: int
    position: LogPosition | None = None


class LogEntry(NamedTuple):
    """Leaf and its index in the log."""

    log_index: int
    leaf: str


class DataSubject(NamedTuple):
    """Stored data subject; without a key it is erased."""

    subject_id: str
    organisation_id: str
    name: str
    key: bytes | None
    created_at: float
    erased_at: float | None = None


class Activity(NamedTuple):
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

    @property
    def attested(self) -> bool:
        """True if an attestation is issued for it."""
        return self.attestation_id is not None


class Notice(NamedTuple):
    """Event to send to the organisation's webhook: ids, no content."""

    notice_id: str
    event: str
    body: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Logged change: its leaf, the rows it changes, the webhook notices. All of it is written or nothing."""

    organisation_id: str
    agent_id: str = ""
    """Agent whose activity lists it; empty for the organisation itself."""
    activity: Activity
    parts: tuple[ChangePart, ...] = ()
    notices: tuple[Notice, ...] = ()
    linked_change: "Change | None" = None
    """Leaf for the log of another organisation, written in the same transaction; it may not have a further one."""


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that one decision writes."""

    agent: Agent
    activity: Activity
    decision: Decision
    charge: RequestCost = NO_COST
    reservation: Reservation | None = None
    approval: ApprovalRequest | None = None
    idempotency_key: str | None = None
    """Idempotency key of the request: an answer stored under it meanwhile is returned instead."""
    answer_to_store: IdempotentAnswer | None = None
    notices: tuple[Notice, ...] = ()
    behaviour_flag: BehaviourFlag = BehaviourFlag.NONE
    degrade: Callable[[Agent, Agent, DegradationRule], Change] | None = None
    """Builds the logged change for a loss of trust, from the agent before and after it."""
    pair: Pair | None = None
    """Sender and receiver of a message; the commit is refused if one of them was blocked meanwhile."""
    link: ChainLink | None = None
    """Its place in a chain of attestations; the commit is refused if the chain has grown meanwhile."""


class CommitReceipt(NamedTuple):
    """Index of the activity in the organisation's log, and the counters after it."""

    log_index: int
    usage: UsageCounters
    position: LogPosition | None = None
    """None where nothing is written through at once, as in memory."""


class ActivityRecord(NamedTuple):
    """Stored activity, with its execution and its approval."""

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
    """Activity in which a person, or the end of its time, resolved the approval."""
    subject_id: str | None = None


EXPIRED = "expired"


def state_at(state: str, expires_at: float, now: float) -> str:
    """Return the state of an approval at `now`: a pending one past its time is expired, even if that is not written
    yet."""
    return EXPIRED if state == "pending" and expires_at <= now else state


class ApprovalRecord(NamedTuple):
    """Stored approval, with the activity that asked for it."""

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
        """Return its state at `now`: pending past its time is expired, even if that is not written yet."""
        return state_at(self.state, self.expires_at, now)


class Delivery(NamedTuple):
    """Notice that is due, with the address it goes to."""

    notice_id: str
    organisation_id: str
    url: str
    secret: str
    event: str
    body: str
    created_at: float
    attempts: int


class ActivitySummary(NamedTuple):
    """Summary of an agent's activity (spec 7.2)."""

    total_actions: int = 0
    approved: int = 0
    denied: int = 0
    corrected: int = 0
    pending: int = 0
    budget_exceeded: int = 0
    cost: int = 0
    attestations: int = 0


class KeyClaim(NamedTuple):
    """Result of claiming an idempotency key: a stored answer, or a refusal. Both None: the caller owns the key now."""

    stored_answer: StoredAnswer | None = None
    refusal: str | None = None


class Store(Protocol):
    """Store of the kernel: SQLite or PostgreSQL."""

    in_memory: bool
    """True if nothing outlives the process."""
    on_notice: Callable[[], None]
    """Called once a notice is durable, from any thread; must not block."""
    on_commit: Callable[[Collection[str]], None]
    """Called with the organisations whose logs have grown, from any thread; must not block."""
    on_write_failure: Callable[[], None]
    """Called when a write failed: cached state may not be on disk."""
    on_subject_erased: Callable[[], None]
    """Called when another process has erased a data subject: cached content of it must be dropped."""
    on_heartbeat: Callable[[], None]
    """Called about once a second where several processes share the database."""
    call_at_end_of_tick: CallScheduler
    """Schedules the hand-over of submitted writes; an event loop may delay it to batch them."""
    commit_metrics: CommitMetrics
    deleted_purged: bool
    """True if no deleted content is left in the files, as far as is known."""

    prefetch: Callable[[PrefetchKeys], Future[None] | None] | None
    """Reads what other processes may have changed into the cache; awaited before a request is decided. None where no
    other process writes. Returns None where everything is cached already."""

    def is_available(self) -> bool:
        """Return True if the database can be read and written, as far as is known."""

    def is_leader(self) -> bool:
        """Return True if this process runs the jobs that run once per cluster: retention, webhooks, heads, batches."""

    def set_once(self, name: str, value: str) -> str:
        """Store a value under a name unless there is one, and return the stored value."""

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Future[None]: ...

    def first_organisation(self) -> str | None: ...

    def find_key(self, prefix: str) -> Key | None: ...

    def list_keys(self, organisation_id: str) -> Sequence[Key]: ...

    def find_agent(self, agent_id: str) -> Agent | None: ...

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]: ...

    def halted(self, organisation_id: str) -> bool: ...

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]: ...

    def access_lists(self, organisation_id: str) -> AccessLists: ...

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float: ...

    def last_fingerprint(self, agent_id: str, conversation_id: str) -> str: ...

    def webhook(self, organisation_id: str) -> Webhook | None: ...

    def webhook_record(self, organisation_id: str) -> Webhook | None: ...

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]: ...

    def delivered(self, notice_id: str, now: float) -> Future[None]: ...

    def postpone(self, notice_id: str, due_at: float, error: str) -> Future[None]: ...

    def give_up(self, notice_id: str, error: str) -> Future[None]: ...

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim: ...

    def release_key(self, agent_id: str, key: str) -> None: ...

    def reserve_step(self, agent: Agent, conversation_id: str, step: ConversationStep) -> Reservation | ErrorCode: ...

    def reserve_budget(self, reservation: Reservation, charge: RequestCost, now: float) -> LimitExceeded | None: ...

    def release(self, reservation: Reservation) -> None: ...

    def commit(self, request: CommitRequest) -> Future[CommitReceipt | ErrorCode | StaleState] | ErrorCode:
        """Commit a decision; refuse it at once, or when its turn comes, or as stale state."""

    def change(self, change: Change) -> Future[ChangeReceipt | Conflict] | Conflict:
        """Make a change; refuse it at once, or when its turn comes."""

    def chain(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]: ...

    def find_subject(self, organisation_id: str, name: str) -> DataSubject | None: ...

    def subject(self, subject_id: str) -> DataSubject | None: ...

    def any_subject(self) -> DataSubject | None: ...

    def add_subject(self, subject: DataSubject) -> Future[None]: ...

    def rename_conversations(self, name: Callable[[str], str]) -> Future[None] | None: ...

    def drop_content(self, before: float, limit: int, now: float) -> Future[None] | None: ...

    def drop_expired(self, now: float, limit: int) -> Future[None] | None: ...

    def purge_deleted(self) -> bool: ...

    def entries(self, organisation_id: str, from_index: int, limit: int) -> Sequence[LogEntry]: ...

    def log_size(self, organisation_id: str) -> int: ...

    def nodes(self, organisation_id: str, subtrees: Sequence[tuple[int, int]]) -> list[bytes]: ...

    def latest_head(self, organisation_id: str) -> str | None: ...

    def latest_heads(self) -> Sequence[str]: ...

    def organisation_heads(self) -> Sequence[tuple[str, str | None]]: ...

    def leaves(self, organisation_id: str) -> int: ...

    def first_head(self, organisation_id: str, index: int) -> str | None: ...

    def head_at(self, organisation_id: str, size: int) -> str | None: ...

    def log_index_of(self, organisation_id: str, activity_id: str) -> int | None: ...

    def find_leaf(self, activity_id: str) -> ActivityRecord | None: ...

    def find_attestation(self, attestation_id: str) -> ActivityRecord | None: ...

    def revoked(self, attestation_id: str) -> AttestationRevoked | None: ...

    def durable(self) -> Future[None]: ...

    def usage_counters(self, agent_id: str, now: float) -> UsageCounters: ...

    def trust_evidence(self, agent_id: str) -> TrustEvidence: ...

    def find_activity(self, agent_id: str, activity_id: str) -> ActivityRecord | None: ...

    def activities(self, query: "ActivityQuery") -> Sequence[ActivityRecord]: ...

    def changes(self, organisation_id: str, limit: int, before: int | None) -> Sequence[ActivityRecord]: ...

    def activity_summary(self, agent_id: str, since: float | None, until: float | None) -> ActivitySummary: ...

    def find_approval(self, approval_id: str) -> ApprovalRecord | None: ...

    def list_approvals(self, query: "ApprovalQuery") -> Sequence[ApprovalRecord]: ...

    def expired_approvals(self, now: float, limit: int) -> Sequence[ApprovalRecord]: ...

    def has_open_approvals(self, agent_id: str) -> bool: ...

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[ApprovalRecord]: ...

    def add_job(self, job: BatchJob, items: Sequence[JobItem]) -> Future[None]: ...

    def find_job(self, job_id: str) -> BatchJob | None: ...

    def job_items(self, job_id: str) -> Sequence[JobItem]: ...

    def open_jobs(self) -> Sequence[BatchJob]: ...

    def count_open_jobs(self, organisation_id: str) -> int: ...

    def finish_item(self, item: JobItem) -> Future[None]: ...

    def finish_job(self, job_id: str, now: float) -> Future[None]: ...

    def close(self) -> None: ...


class ActivityQuery(NamedTuple):
    """Filter for the activities of one agent, newest first."""

    agent_id: str
    """Agent id, or an organisation id for activities without an agent."""
    limit: int
    before: int | None = None
    decision: str | None = None
    since: float | None = None
    until: float | None = None
    kind: str = "decision"
    """`decision`, `change`, `all`, or `halt` for changes of the kill switch."""


class ApprovalQuery(NamedTuple):
    """Filter for the approvals of one organisation, newest first."""

    organisation_id: str
    limit: int
    before: str | None = None
    state: str | None = None
    agent_id: str | None = None
    now: float = 0.0
    """Pending approvals past their time count as expired at this moment."""
