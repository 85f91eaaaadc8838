"""Base class of both stores: callbacks, reservations, and the table mixins."""

import threading
from collections.abc import Callable, Collection
from threading import RLock

from qwed.domain.access_lists import AccessLists
from qwed.domain.write_set import Reservation
from qwed.futures import CallScheduler, call_now
from qwed.model.clock import Clock
from qwed.model.token_bucket import TokenBucket
from qwed.store.batch_job_table import JobTable
from qwed.store.commit_metrics import CommitMetrics
from qwed.store.data_subjects import SubjectTable
from qwed.store.entity_cache import EntityCache
from qwed.store.entity_table import EntityTable
from qwed.store.log import LogTable
from qwed.store.outbox import OutboxTable
from qwed.store.queries import StoreQueries
from qwed.store.reservations import Reservations
from qwed.store.token_buckets import BucketKey, TokenBuckets
from qwed.store.usage_rows import UsageTable

_SELECT_BUCKET = "SELECT tokens, updated_at, full_at FROM token_buckets WHERE organisation_id = ? AND pair = ?"


NEVER = float("inf")


class MessageTable(StoreQueries):
    """Store methods for messages between agents: access lists and rate limit."""

    _lock: RLock
    _entities: EntityCache
    _buckets: TokenBuckets

    def access_lists(self, organisation_id: str) -> AccessLists:
        """Return the access lists of an organisation; the same instance until one of them changes."""
        return self._entities.access_lists(organisation_id)

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float:
        """Take a token for one message of the pair and return 0.0, or return the seconds until there is one."""
        with self._lock:
            return self._buckets.take((organisation_id, pair), per_minute, now)

    def _load_bucket(self, key: BucketKey) -> TokenBucket | None:
        row = self._one(_SELECT_BUCKET, key)
        return None if row is None else TokenBucket(*row)


class BaseStore(OutboxTable, JobTable, LogTable, SubjectTable, MessageTable, EntityTable, UsageTable):
    """Store methods that are the same for SQLite and PostgreSQL."""

    def __init__(self, clock: Clock, max_steps: int, lease_seconds: float) -> None:
        self._clock = clock
        self.on_notice: Callable[[], None] = _ignore
        """Called from the writer thread once a notice is durable; must not block."""
        self.on_commit: Callable[[Collection[str]], None] = _ignore_commit
        self.on_write_failure: Callable[[], None] = _ignore
        self.on_subject_erased: Callable[[], None] = _ignore
        self.on_heartbeat: Callable[[], None] = _ignore
        self._scheduler: CallScheduler = call_now
        self.commit_metrics = CommitMetrics()
        self._lock = threading.RLock()
        self.reservations = Reservations(max_steps, lease_seconds, clock.monotonic)

    def _committed(self, organisations: Collection[str], notices: bool) -> None:
        if organisations:
            self.on_commit(organisations)
        if notices:
            self.on_notice()

    def schedule_with(self, scheduler: CallScheduler) -> None:
        """Hand over submitted writes when the scheduler says; an event loop delays it to batch them."""
        self._scheduler = scheduler

    def release(self, reservation: Reservation) -> None:
        """Release a reservation; a second call does nothing."""
        with self._lock:
            self.reservations.release(reservation)


def _ignore_commit(_organisations: Collection[str]) -> None:
    """Default for the callback of grown logs."""


def _ignore() -> None:
    """Default for callbacks without a listener."""
