"""Interface of the store, and the records that its readers return.

A decision is `load`, decide, `reserve`, `commit`: `load` returns a snapshot, `reserve` holds a step and its budget in
memory while the decision is made, and `commit` writes the write set in one durable transaction, or returns the
conflict. A change by a person goes through the same `commit`. Everything else here reads.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from qwed.domain.access_lists import AccessLists
from qwed.domain.agent import Agent, Key
from qwed.domain.behaviour import TrustEvidence
from qwed.domain.budget import UsageCounters
from qwed.domain.change_parts import AttestationRevoked, Conflict, GroupApproval, Webhook
from qwed.domain.policy_set import PolicySet, PolicySetVersion
from qwed.domain.snapshot import ChainEnd, Snapshot, SnapshotKeys
from qwed.domain.usage_window import UsageKey, UsageValues, Use
from qwed.domain.write_set import Committed, Reservation, WriteSet
from qwed.futures import CallScheduler, Future
from qwed.store.batch_job import BatchJob, JobItem
from qwed.store.commit_metrics import CommitMetrics

SETUP_STARTED, VAULT_ID = "begun", "vault"
"""Names for `set_once`: keys are about to be made for this database, and the id of those keys."""


class StoreError(Exception):
    """The store could not write or read; nothing of a failed write is visible."""


class DatabaseUnreachableError(StoreError):
    """The database cannot be reached or refuses the connection; the message says why in one sentence."""


class RefreshKeys(NamedTuple):
    """Entities that a reader needs."""

    prefix: str | None = None
    """Public prefix of an API key."""
    agent_id: str | None = None
    organisation_id: str | None = None
    allow_stale: bool = False
    """True if cached rows of any age will do, as they do for authentication: the decision checks them again."""


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
    approver_groups: tuple[str, ...] = ()
    """Groups that must each approve."""
    group_approvals: tuple[GroupApproval, ...] = ()
    """Approvals that they have given so far."""

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
    commit_metrics: CommitMetrics
    deleted_purged: bool
    """True if no deleted content is left in the files, as far as is known."""

    is_shared: bool
    """True if other processes may write to the same database."""
    next_expiry: float
    """Time from which `expired_approvals` may return something."""

    def load(self, keys: SnapshotKeys) -> Snapshot | Future[Snapshot]:
        """Return everything that a decision reads, as of now or later."""

    def reserve(self, reservation: Reservation, snapshot: Snapshot) -> Conflict | None:
        """Reserve a step, its cost and its idempotency key against other requests of this process; not durable."""

    def release(self, reservation: Reservation) -> None:
        """Release a reservation; a second call does nothing."""

    def commit(self, write_set: WriteSet) -> Future[Committed | Conflict]:
        """Write a decision or a change durably, or return the conflict with what was written meanwhile."""

    def newest_chain_end(self, organisation_id: str, chain_id: str) -> ChainEnd | None:
        """Return the end that the commits in flight of this process give a chain of attestations, or None."""

    def refresh(self, keys: RefreshKeys) -> Future[None] | None:
        """Bring cached keys, agents and organisations up to date for readers; None where they are already."""

    def schedule_with(self, scheduler: CallScheduler) -> None:
        """Hand over submitted writes when the scheduler says; an event loop delays it to batch them."""

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

    def agents_named(self, organisation_id: str, name_key: str, limit: int) -> Sequence[str]: ...

    def find_agent_of_token(self, prefix: str) -> Agent | None: ...

    def key_names(self) -> Future[None] | None: ...

    def list_agents(self, organisation_id: str, limit: int, after: str, status: str = "current") -> Sequence[Agent]: ...

    def halted(self, organisation_id: str) -> bool: ...

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]: ...

    def policies(self, organisation_id: str) -> PolicySet: ...

    def policy_set(self, organisation_id: str, version: int) -> PolicySet | None: ...

    def policy_versions(self, organisation_id: str, limit: int, before: int | None) -> Sequence[PolicySetVersion]: ...

    def access_lists(self, organisation_id: str) -> AccessLists: ...

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float: ...

    def webhook(self, organisation_id: str) -> Webhook | None: ...

    def webhook_record(self, organisation_id: str) -> Webhook | None: ...

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]: ...

    def delivered(self, notice_id: str, now: float) -> Future[None]: ...

    def postpone(self, notice_id: str, due_at: float, error: str) -> Future[None]: ...

    def give_up(self, notice_id: str, error: str) -> Future[None]: ...

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

    def usage_values(
        self, agent_id: str, organisation_id: str, keys: Sequence[UsageKey], now: float
    ) -> UsageValues: ...

    def held_uses(self, approval_id: str) -> tuple[Use, ...]: ...

    def trust_evidence(self, agent_id: str) -> TrustEvidence: ...

    def find_activity(self, agent_id: str, activity_id: str) -> ActivityRecord | None: ...

    def activities(self, query: "ActivityQuery") -> Sequence[ActivityRecord]: ...

    def changes(self, organisation_id: str, limit: int, before: int | None) -> Sequence[ActivityRecord]: ...

    def activity_summary(self, agent_id: str, since: float | None, until: float | None) -> ActivitySummary: ...

    def find_approval(self, approval_id: str) -> ApprovalRecord | None: ...

    def list_approvals(self, query: "ApprovalQuery") -> Sequence[ApprovalRecord]: ...

    def expired_approvals(self, now: float, limit: int) -> Sequence[ApprovalRecord]: ...

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
