"""Base class of both stores: callbacks, reservations, and the table mixins."""

import threading
from collections.abc import Callable, Collection
from threading import RLock

from qwed.futures import CallScheduler, call_now
from qwed.model import ErrorCode
from qwed.model.clock import Clock
from qwed.store import sql
from qwed.store.access_lists import AccessLists
from qwed.store.agent import Agent
from qwed.store.attestation_chains import ChainTable
from qwed.store.batch_job_table import JobTable
from qwed.store.budget import LimitExceeded, RequestCost, Usage
from qwed.store.commit_metrics import CommitMetrics
from qwed.store.conversation import Conversation, ConversationHistory, ConversationStep
from qwed.store.data_subjects import SubjectTable
from qwed.store.entity_cache import EntityCache
from qwed.store.entity_table import EntityTable
from qwed.store.idempotency import IdempotencyTable
from qwed.store.log import LogTable, ignore_commit
from qwed.store.outbox import OutboxTable
from qwed.store.protocol import Reservation
from qwed.store.queries import StoreQueries
from qwed.store.reservations import ReservationState
from qwed.store.token_buckets import BucketKey, TokenBucket, TokenBuckets

_SELECT_BUCKET = "SELECT tokens, updated_at, full_at FROM token_buckets WHERE organisation_id = ? AND pair = ?"


class MessageTable(StoreQueries):
    """Store methods for messages between agents: access lists, rate limit, last fingerprint."""

    _lock: RLock
    _entities: EntityCache
    _state: ReservationState
    _buckets: TokenBuckets

    def access_lists(self, organisation_id: str) -> AccessLists:
        """Return the access lists of an organisation; the same instance until one of them changes."""
        return self._entities.access_lists(organisation_id)

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float:
        """Take a token for one message of the pair and return 0.0, or return the seconds until there is one."""
        with self._lock:
            return self._buckets.take((organisation_id, pair), per_minute, now)

    def last_fingerprint(self, agent_id: str, conversation_id: str) -> str:
        """Return the fingerprint of the last committed step of a conversation, or an empty string."""
        with self._lock:
            return self._state.last_fingerprint(agent_id, conversation_id)

    def _load_bucket(self, key: BucketKey) -> TokenBucket | None:
        row = self._one(_SELECT_BUCKET, key)
        return None if row is None else TokenBucket(*row)


class BaseStore(OutboxTable, JobTable, LogTable, SubjectTable, MessageTable, ChainTable, EntityTable, IdempotencyTable):
    """Store methods that are the same for SQLite and PostgreSQL."""

    _state: ReservationState

    def __init__(self, clock: Clock, lease_seconds: float) -> None:
        self._clock = clock
        self.on_notice: Callable[[], None] = _ignore
        """Called from the writer thread once a notice is durable; must not block."""
        self.on_commit: Callable[[Collection[str]], None] = ignore_commit
        self.on_write_failure: Callable[[], None] = _ignore
        self.on_subject_erased: Callable[[], None] = _ignore
        self.on_heartbeat: Callable[[], None] = _ignore
        self.call_at_end_of_tick: CallScheduler = call_now
        self.commit_metrics = CommitMetrics()
        self._lock = threading.RLock()
        self._keys_in_flight: dict[tuple[str, str], float] = {}
        self._lease_seconds = lease_seconds

    def _committed(self, organisations: Collection[str], notices: bool) -> None:
        if organisations:
            self.on_commit(organisations)
        if notices:
            self.on_notice()

    def reserve_step(self, agent: Agent, conversation_id: str, step: ConversationStep) -> Reservation | ErrorCode:
        """Reserve a step against the other requests of this process."""
        with self._lock:
            return self._state.reserve(agent, conversation_id, step)

    def reserve_budget(self, reservation: Reservation, charge: RequestCost, now: float) -> LimitExceeded | None:
        """Reserve budget against the other requests of this process."""
        with self._lock:
            return self._state.reserve_budget(reservation, charge, now)

    def has_open_approvals(self, agent_id: str) -> bool:
        """Return True if an approval of the agent is open and holds part of its budget; from the cache."""
        with self._lock:
            return self._state.usage(agent_id).counters.open_approvals > 0

    def release(self, reservation: Reservation) -> None:
        """Release a reservation."""
        with self._lock:
            self._state.release(reservation)

    def _load_conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        row = self._one(sql.SELECT_CONVERSATION, (agent_id, conversation_id))
        return Conversation(ConversationHistory(*row) if row is not None else ConversationHistory())

    def _load_usage(self, agent_id: str) -> Usage:
        row = self._one(sql.SELECT_USAGE, (agent_id,))
        return Usage() if row is None else sql.to_usage(row)


def _ignore() -> None:
    """Default for callbacks without a listener."""
