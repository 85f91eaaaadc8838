"""Cache refresh before each request: reads what other processes may have changed, batched for all waiting requests."""

import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from qwed.futures import CallScheduler, Future, notify
from qwed.store import sql
from qwed.store.budget import Usage
from qwed.store.columns import COLUMNS
from qwed.store.conversation import ConversationHistory
from qwed.store.group_commit import capture_exception
from qwed.store.postgres.cache import AGENT, ALL_DURABLE, KEY, CachedState, PrefetchedAnswers, SharedEntityCache
from qwed.store.postgres.connections import READ_TIMEOUTS, Connector, LazyConnection, TimedConnection
from qwed.store.postgres.dialect import is_storable
from qwed.store.protocol import PrefetchKeys, StoreError

Row = tuple[Any, ...]
Pair = tuple[str, str]

MAX_BATCH = 512
_ROUNDS = 2
"""The second round reads what the first found to be dropped; anything still missing is read on use."""

_ORGANISATION_STATE = "o.epoch, o.erasures, o.halted_at IS NOT NULL"
_OF_PAIRS = "FROM unnest(%s::text[], %s::text[]) AS w (agent_id, {name}) JOIN {table} USING (agent_id, {name})"
ORGANISATIONS = (
    f"SELECT {_ORGANISATION_STATE}, o.organisation_id FROM organisations o WHERE o.organisation_id = ANY(%s)"  # noqa: S608 - constants
)


def _select_with_organisation(table: str, name: str) -> str:
    """Return a statement that reads rows with the state of their organisation: a row is never older than that state."""
    columns = ", ".join(f"t.{column}" for column in COLUMNS[table])
    joined = f"{table} t JOIN organisations o USING (organisation_id)"
    return f"SELECT {_ORGANISATION_STATE}, t.organisation_id, {columns} FROM {joined} WHERE t.{name} = ANY(%s)"  # noqa: S608


KEYS, AGENTS = _select_with_organisation("keys", "prefix"), _select_with_organisation("agents", "agent_id")
USAGES = f"SELECT version, {', '.join(COLUMNS['usage'])} FROM usage WHERE agent_id = ANY(%s)"  # noqa: S608 - constants
CONVERSATIONS = (
    "SELECT agent_id, conversation_id, last_step, steps, fingerprint, repeats, recent_states "
    + _OF_PAIRS.format(name="conversation_id", table="conversations")
)
ANSWERS = "SELECT agent_id, key, body_hash, answer, activity_id, expires_at " + _OF_PAIRS.format(
    name="key", table="idempotency_keys"
)


class PrefetchBatch(NamedTuple):
    """Keys to read for all waiting requests."""

    organisations: frozenset[str]
    prefixes: frozenset[str]
    agents: frozenset[str]
    usages: frozenset[str]
    conversations: frozenset[Pair]
    answers: frozenset[Pair]

    def statements(self) -> list[tuple[str, tuple[list[str], ...]]]:
        """Return the statements, in the order of the fields."""
        names = zip((ORGANISATIONS, KEYS, AGENTS, USAGES), self[:4], strict=True)
        pairs = zip((CONVERSATIONS, ANSWERS), self[4:], strict=True)
        return [
            *((statement, (sorted(keys),)) for statement, keys in names),
            *((statement, columns_of(keys)) for statement, keys in pairs),
        ]

    def read(self, connection: TimedConnection) -> list[list[Row]]:
        """Return the rows, in one round trip."""
        with connection.pipeline():
            cursors = [
                connection.execute(statement, values) if values[0] else None for statement, values in self.statements()
            ]
        return [[] if cursor is None else cursor.fetchall() for cursor in cursors]


def columns_of(pairs: Iterable[Pair]) -> tuple[list[str], list[str]]:
    """Return pairs as two columns."""
    ordered = sorted(pairs)
    return [pair[0] for pair in ordered], [pair[1] for pair in ordered]


def usage_of(row: Row) -> tuple[Usage, int]:
    """Return the counters and their version from a row that begins with the version."""
    return sql.to_usage(row[1:]), row[0]


class CacheRefresher:
    """Thread with a connection of its own. Requests that arrive during a round trip are batched into the next one."""

    def __init__(
        self,
        connector: Connector,
        lock: threading.RLock,
        entities: SharedEntityCache,
        state: CachedState,
        answers: PrefetchedAnswers,
        on_erased: Callable[[], None],
        schedule: CallScheduler,
    ) -> None:
        self._connector = connector
        self._lock = lock
        self._entities = entities
        self._state = state
        self._answers = answers
        self._on_subject_erased = on_erased
        self._schedule = schedule
        self._connection = LazyConnection(connector, READ_TIMEOUTS)
        self._last_connection: TimedConnection | None = None
        """Connection of the last read."""
        self._unqueued: list[tuple[PrefetchKeys, Future[None]]] = []
        self._queue: SimpleQueue[list[tuple[PrefetchKeys, Future[None]]] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="qwed-reader", daemon=True)
        self._thread.start()

    def submit(self, keys: PrefetchKeys) -> Future[None] | None:
        """Return a future that completes when the keys are cached, as of now or later; None if they are already."""
        if keys.allow_stale and self._is_cached(keys):
            return None
        self._connector.require_available()
        future: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._unqueued.append((keys, future))
            first = len(self._unqueued) == 1
        if first:
            self._schedule(self._hand_over)
        return future

    def _is_cached(self, keys: PrefetchKeys) -> bool:
        names = ((KEY, keys.prefix), (AGENT, keys.agent_id))
        return all(name is None or self._entities.is_cached(kind, name) for kind, name in names)

    def _hand_over(self) -> None:
        with self._lock:
            requests, self._unqueued = self._unqueued, []
        self._queue.put(requests)

    def close(self) -> None:
        """Complete waiting requests, then stop; later ones are refused, because they would never complete."""
        with self._lock:
            self._closed = True
        self._hand_over()
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (requests := self._queue.get()) is not None:
            batch = [*requests]
            stop = self._gather(batch)
            self._answer(batch)
            if stop:
                return

    def _gather(self, batch: list[tuple[PrefetchKeys, Future[None]]]) -> bool:
        while len(batch) < MAX_BATCH:
            try:
                more = self._queue.get_nowait()
            except Empty:
                return False
            if more is None:
                return True
            batch += more
        return False

    def _answer(self, batch: list[tuple[PrefetchKeys, Future[None]]]) -> None:
        failure = capture_exception(lambda: self._refresh([keys for keys, _future in batch]))
        if len(batch) > 1 and failure is not None and not isinstance(failure, StoreError):
            # A row of one request cannot be read: the others are answered on their own.
            for request in batch:
                self._answer([request])
            return
        for _keys, future in batch:
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
        notify(future for _keys, future in batch)

    def _refresh(self, requests: list[PrefetchKeys]) -> None:
        """Read all keys into the caches."""
        for _ in range(_ROUNDS):
            batch, rows = self._connection.run(lambda connection: self._read(requests, connection))
            try:
                self._apply(batch, rows)
            finally:
                # Also where a later row could not be read: an erasure is reported only once.
                if self._entities.take_erasure_flag():
                    self._on_subject_erased()
            if all(map(self._is_resolved, requests)):
                return

    def _read(self, requests: list[PrefetchKeys], connection: TimedConnection) -> tuple[PrefetchBatch, list[list[Row]]]:
        with self._lock:
            if connection is not self._last_connection:
                # It may lead to a restored backup or a standby: the caches may be ahead of it.
                self._entities.clear()
                self._state.reset_versions()
                self._last_connection = connection
            batch = self._batch_for(requests)
        return batch, batch.read(connection)

    def _is_resolved(self, keys: PrefetchKeys) -> bool:
        entities, names = self._entities, ((KEY, keys.prefix), (AGENT, keys.agent_id))
        return all(
            name is None or entities.is_cached(kind, name) or entities.is_known_missing(kind, name)
            for kind, name in names
        )

    def _batch_for(self, requests: list[PrefetchKeys]) -> PrefetchBatch:
        """Return the keys to read: cached entities need only the epoch of their organisation, others are read."""
        prefixes = {request.prefix for request in requests if request.prefix is not None}
        agents = {request.agent_id for request in requests if request.agent_id is not None}
        pairs = {pair for request in requests for pair in request.conversations}
        agents |= {agent_id for agent_id, _conversation in pairs}
        organisations = {request.organisation_id for request in requests} | {
            self._entities.owner_of(KEY, name) for name in prefixes
        }
        organisations |= {self._entities.owner_of(AGENT, name) for name in agents}
        answers = {request.idempotency_key for request in requests if request.idempotency_key is not None}
        return PrefetchBatch(
            frozenset(organisation_id for organisation_id in organisations if organisation_id is not None),
            self._uncached(KEY, prefixes),
            self._uncached(AGENT, agents),
            frozenset(
                request.agent_id
                for request in requests
                if request.needs_usage and request.agent_id and is_storable((request.agent_id,))
            ),
            frozenset(filter(is_storable, pairs)),
            frozenset(filter(is_storable, answers)),
        )

    def _uncached(self, kind: str, names: set[str]) -> frozenset[str]:
        uncached = {name for name in names if not self._entities.is_cached(kind, name)}
        for name in uncached:
            # Until a row is read; names that PostgreSQL cannot store are not queried at all.
            self._entities.cache_missing(kind, name)
        return frozenset(name for name in uncached if is_storable((name,)))

    def _apply(self, batch: PrefetchBatch, rows: list[list[Row]]) -> None:
        """Cache the rows in this order: each statement sees what was committed before it began, so a value from an
        earlier one is dropped where a later one shows that its organisation changed in between."""
        organisations, keys, agents, usages, conversations, answers = rows
        with self._lock:
            for row in organisations:
                self._update_epoch(row)
            for row in keys:
                self._update_epoch(row)
                self._entities.intern_key(sql.to_key(row[4:]))
            for row in agents:
                self._update_epoch(row)
                self._entities.intern_agent(sql.to_agent(row[4:]))
            self._put_usages(batch, usages)
            self._put_conversations(batch, conversations)
            self._put_answers(batch, answers)
            self._state.evict_old(ALL_DURABLE)

    def _update_epoch(self, row: Row) -> None:
        epoch, erasures, halted, organisation_id = row[:4]
        self._entities.invalidate_on_new_epoch(organisation_id, epoch, erasures, halted)

    def _put_usages(self, batch: PrefetchBatch, rows: list[Row]) -> None:
        usages = {row[1]: usage_of(row) for row in rows}
        for agent_id in batch.usages:
            # Agents that do not exist are not cached.
            if agent_id in usages or self._entities.is_cached(AGENT, agent_id):
                self._state.put_usage(agent_id, *usages.get(agent_id, (Usage(), 0)))

    def _put_conversations(self, batch: PrefetchBatch, rows: list[Row]) -> None:
        histories = {row[:2]: ConversationHistory(*row[2:]) for row in rows}
        for key in batch.conversations:
            if key in histories or self._entities.is_cached(AGENT, key[0]):
                self._state.put_history(key, histories.get(key, ConversationHistory()))

    def _put_answers(self, batch: PrefetchBatch, rows: list[Row]) -> None:
        answers = {row[:2]: row[2:] for row in rows}
        for key in batch.answers:
            self._answers.put(key, answers.get(key))
