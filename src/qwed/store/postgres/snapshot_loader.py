"""Snapshot loader: reads what decisions and readers need, in one round trip for all requests that wait."""

import threading
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from qwed.domain.access_lists import NO_LISTS
from qwed.domain.agent import Agent
from qwed.domain.budget import EMPTY_USAGE, Usage
from qwed.domain.conversation import EMPTY_HISTORY, ConversationHistory
from qwed.domain.snapshot import NO_CHAIN, NO_STEPS, ChainEnd, Snapshot, SnapshotKeys, StoredAnswer
from qwed.domain.usage_window import ORGANISATION, ZERO, UsageKey, amount_of, milliseconds
from qwed.futures import CallScheduler, Future, notify
from qwed.store import sql
from qwed.store.columns import COLUMNS
from qwed.store.group_commit import capture_exception
from qwed.store.postgres.cache import AGENT, KEY, SharedEntityCache
from qwed.store.postgres.commits_in_flight import CommitsInFlight
from qwed.store.postgres.connections import READ_TIMEOUTS, Connector, LazyConnection, TimedConnection
from qwed.store.postgres.dialect import is_storable
from qwed.store.postgres.locked_series import WINDOWS_OF_AGENTS
from qwed.store.protocol import RefreshKeys, StoreError
from qwed.store.reservations import Reservations
from qwed.store.usage_rows import to_series, to_total

Row = tuple[Any, ...]
Pair = tuple[str, str]
Request = tuple[SnapshotKeys | RefreshKeys, Future[Any]]

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
CHAINS = (
    "SELECT organisation_id, chain_id, length, last_attestation_id FROM unnest(%s::text[], %s::text[]) "
    "AS w (agent_id, chain_id) JOIN agents USING (agent_id) JOIN attestation_chains USING (organisation_id, chain_id)"
)
"""Chains by the agents that extend them."""


class AgentWindow(NamedTuple):
    """Value of rolling usage that a request reads, at a time in milliseconds."""

    agent_id: str
    key: UsageKey
    now: int


class ReadBatch(NamedTuple):
    """Keys to read for all waiting requests."""

    organisations: frozenset[str]
    prefixes: frozenset[str]
    agents: frozenset[str]
    usages: frozenset[str]
    conversations: frozenset[Pair]
    answers: frozenset[Pair]
    chains: frozenset[Pair]
    windows: tuple[AgentWindow, ...]

    def read(self, connection: TimedConnection) -> list[list[Row]]:
        """Return the rows of each statement, in one round trip."""
        names = zip((ORGANISATIONS, KEYS, AGENTS, USAGES), self[:4], strict=True)
        pairs = zip((CONVERSATIONS, ANSWERS, CHAINS), self[4:7], strict=True)
        statements = [
            *((statement, (sorted(keys),)) for statement, keys in names),
            *((statement, columns_of(keys)) for statement, keys in pairs),
            (WINDOWS_OF_AGENTS, agent_window_columns(self.windows)),
        ]
        with connection.pipeline():
            cursors = [connection.execute(*statement) if statement[1][0] else None for statement in statements]
        return [[] if cursor is None else cursor.fetchall() for cursor in cursors]


class LoadedRows(NamedTuple):
    """Rows that are read for each request and not cached."""

    usages: Mapping[str, tuple[Usage, int]]
    """Counters of each agent, with their version."""
    histories: Mapping[Pair, ConversationHistory]
    answers: Mapping[Pair, Row]
    chains: Mapping[Pair, ChainEnd]
    """Ends of chains by organisation and chain."""
    usage_values: Mapping[AgentWindow, Decimal]
    """Rolling usage that is not zero."""


def columns_of(pairs: Iterable[Pair]) -> tuple[list[str], list[str]]:
    """Return pairs as two columns."""
    ordered = sorted(pairs)
    return [pair[0] for pair in ordered], [pair[1] for pair in ordered]


def agent_windows_of(requests: Iterable[SnapshotKeys | RefreshKeys]) -> tuple[AgentWindow, ...]:
    """Return the values of rolling usage that the requests read."""
    windows = {
        AgentWindow(keys.agent_id, key, milliseconds(keys.now))
        for keys in requests
        if isinstance(keys, SnapshotKeys)
        for key in keys.usage
    }
    return tuple(sorted(window for window in windows if is_storable((window.agent_id, *window.key))))


def agent_window_columns(windows: Iterable[AgentWindow]) -> tuple[list[Any], ...]:
    """Return the values of WINDOWS_OF_AGENTS."""
    rows = [
        (agent_id, int(key.scope == ORGANISATION), key.tool, key.argument, key.seconds * 1000, now)
        for agent_id, key, now in windows
    ]
    return tuple([list(column) for column in zip(*rows, strict=True)]) or ([],)


def usage_of(row: Row) -> tuple[Usage, int]:
    """Return the counters and their version from a row that begins with the version."""
    return sql.to_usage(row[1:]), row[0]


class SnapshotLoader:
    """Thread with a connection of its own. Requests that arrive during a round trip are batched into the next one."""

    def __init__(
        self,
        connector: Connector,
        lock: threading.RLock,
        entities: SharedEntityCache,
        reservations: Reservations,
        in_flight: CommitsInFlight,
        on_erased: Callable[[], None],
        schedule: CallScheduler,
    ) -> None:
        self._connector = connector
        self._lock = lock
        self._entities = entities
        self._reservations = reservations
        self._in_flight = in_flight
        self._on_subject_erased = on_erased
        self._schedule = schedule
        self._connection = LazyConnection(connector, READ_TIMEOUTS)
        self._last_connection: TimedConnection | None = None
        """Connection of the last read."""
        self._unqueued: list[Request] = []
        self._queue: SimpleQueue[list[Request] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="qwed-reader", daemon=True)
        self._thread.start()

    def load(self, keys: SnapshotKeys) -> Future[Snapshot]:
        """Return a future of the snapshot, as of now or later."""
        return self._submit(keys)

    def refresh(self, keys: RefreshKeys) -> Future[None] | None:
        """Return a future that completes when the keys are cached, as of now or later; None if they are already."""
        names = ((KEY, keys.prefix), (AGENT, keys.agent_id))
        if keys.allow_stale and all(name is None or self._entities.is_cached(kind, name) for kind, name in names):
            return None
        return self._submit(keys)

    def _submit(self, keys: SnapshotKeys | RefreshKeys) -> Future[Any]:
        self._connector.require_available()
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._unqueued.append((keys, future))
            first = len(self._unqueued) == 1
        if first:
            self._schedule(self._hand_over)
        return future

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

    def _gather(self, batch: list[Request]) -> bool:
        while len(batch) < MAX_BATCH:
            try:
                more = self._queue.get_nowait()
            except Empty:
                return False
            if more is None:
                return True
            batch += more
        return False

    def _answer(self, batch: list[Request]) -> None:
        results = capture_exception(lambda: self._results([keys for keys, _future in batch]))
        if len(batch) > 1 and isinstance(results, Exception) and not isinstance(results, StoreError):
            # A row of one request cannot be read: the others are answered on their own.
            for request in batch:
                self._answer([request])
            return
        for number, (_keys, future) in enumerate(batch):
            if isinstance(results, Exception):
                future.set_exception(results)
            else:
                future.set_result(results[number])
        notify(future for _keys, future in batch)

    def _results(self, requests: list[SnapshotKeys | RefreshKeys]) -> list[Snapshot | None]:
        """Read everything, cache what rarely changes, and return the snapshots."""
        windows = agent_windows_of(requests)
        for _ in range(_ROUNDS):
            rows = self._connection.run(lambda connection: self._read(requests, windows, connection))
            try:
                loaded = self._cache(rows, windows)
            finally:
                # Also where a later row could not be read: an erasure is reported only once.
                if self._entities.take_erasure_flag():
                    self._on_subject_erased()
            if all(map(self._is_resolved, requests)):
                break
        return [self._snapshot(keys, loaded) if isinstance(keys, SnapshotKeys) else None for keys in requests]

    def _read(
        self,
        requests: list[SnapshotKeys | RefreshKeys],
        windows: tuple[AgentWindow, ...],
        connection: TimedConnection,
    ) -> list[list[Row]]:
        with self._lock:
            if connection is not self._last_connection:
                # It may lead to a standby or to a restored backup, where other values are the newest ones.
                self._entities.clear()
                self._last_connection = connection
            batch = self._batch_for(requests, windows)
        return batch.read(connection)

    def _is_resolved(self, keys: SnapshotKeys | RefreshKeys) -> bool:
        prefix = keys.key_prefix if isinstance(keys, SnapshotKeys) else keys.prefix
        entities, names = self._entities, ((KEY, prefix), (AGENT, keys.agent_id))
        return all(
            name is None or entities.is_cached(kind, name) or entities.is_known_missing(kind, name)
            for kind, name in names
        )

    def _batch_for(self, requests: list[SnapshotKeys | RefreshKeys], windows: tuple[AgentWindow, ...]) -> ReadBatch:
        """Return the keys to read: cached entities need only the epoch of their organisation, others are read."""
        prefixes, agents, organisations = set[str | None](), set[str | None](), set[str | None]()
        usages, conversations, answers, chains = set[str](), set[Pair](), set[Pair](), set[Pair]()
        for keys in requests:
            agents.add(keys.agent_id)
            organisations.add(keys.organisation_id)
            if isinstance(keys, RefreshKeys):
                prefixes.add(keys.prefix)
                continue
            prefixes.add(keys.key_prefix)
            usages.add(keys.agent_id)
            if keys.conversation_id is not None:
                conversations.add((keys.agent_id, keys.conversation_id))
                if keys.receiver_id is not None:
                    agents.add(keys.receiver_id)
                    conversations.add((keys.receiver_id, keys.conversation_id))
            if keys.idempotency_key is not None:
                answers.add((keys.agent_id, keys.idempotency_key))
            if keys.chain_id is not None:
                chains.add((keys.agent_id, keys.chain_id))
        organisations |= {self._entities.owner_of(KEY, name) for name in prefixes if name is not None}
        organisations |= {self._entities.owner_of(AGENT, name) for name in agents if name is not None}
        return ReadBatch(
            frozenset(name for name in organisations if name is not None),
            self._uncached(KEY, prefixes),
            self._uncached(AGENT, agents),
            frozenset(name for name in usages if is_storable((name,))),
            frozenset(filter(is_storable, conversations)),
            frozenset(filter(is_storable, answers)),
            frozenset(filter(is_storable, chains)),
            windows,
        )

    def _uncached(self, kind: str, names: set[str | None]) -> frozenset[str]:
        uncached = {name for name in names if name is not None and not self._entities.is_cached(kind, name)}
        for name in uncached:
            # Until a row is read; names that PostgreSQL cannot store are not queried at all.
            self._entities.cache_missing(kind, name)
        return frozenset(name for name in uncached if is_storable((name,)))

    def _cache(self, rows: list[list[Row]], windows: tuple[AgentWindow, ...]) -> LoadedRows:
        """Cache the rows in this order: each statement sees what was committed before it began, so a value from an
        earlier one is dropped where a later one shows that its organisation changed in between."""
        organisations, keys, agents, usages, conversations, answers, chains, series = rows
        with self._lock:
            for row in organisations:
                self._update_epoch(row)
            for row in keys:
                self._update_epoch(row)
                self._entities.intern_key(sql.to_key(row[4:]))
            for row in agents:
                self._update_epoch(row)
                self._entities.intern_agent(sql.to_agent(row[4:]))
        return LoadedRows(
            {row[1]: usage_of(row) for row in usages},
            {row[:2]: ConversationHistory(*row[2:]) for row in conversations},
            {row[:2]: row[2:] for row in answers},
            {row[:2]: ChainEnd(*row[2:]) for row in chains},
            {windows[row[0] - 1]: to_series(row[1:4]).value(to_total(row[4:])) for row in series},
        )

    def _update_epoch(self, row: Row) -> None:
        epoch, erasures, halted, organisation_id = row[:4]
        self._entities.invalidate_on_new_epoch(organisation_id, epoch, erasures, halted)

    def _snapshot(self, keys: SnapshotKeys, loaded: LoadedRows) -> Snapshot:
        entities = self._entities
        with self._lock:
            key = None if keys.key_prefix is None else entities.key(keys.key_prefix)
            if key is not None and key.revoked_at is not None:
                key = None
            agent = entities.agent(keys.agent_id)
            if agent is None:
                halted = keys.organisation_id is not None and entities.halted(keys.organisation_id)
                return Snapshot(key=key, halted=halted)
            return self._of_agent(keys, agent, loaded, Snapshot(key=key, agent=agent))

    def _of_agent(self, keys: SnapshotKeys, agent: Agent, loaded: LoadedRows, snapshot: Snapshot) -> Snapshot:
        agent_id, organisation_id = agent.agent_id, agent.organisation_id
        conversation_id, answer_key, receiver_id = keys.conversation_id, keys.idempotency_key, keys.receiver_id
        usage, version = loaded.usages.get(agent_id, (EMPTY_USAGE, 0))
        self._in_flight.release_committed(agent_id, version)
        history, steps, fingerprint = EMPTY_HISTORY, NO_STEPS, ""
        if conversation_id is not None:
            history = loaded.histories.get((agent_id, conversation_id), EMPTY_HISTORY)
            steps = self._reservations.steps_of(agent_id, conversation_id)
            if receiver_id is not None and self._is_colleague(receiver_id, organisation_id):
                fingerprint = loaded.histories.get((receiver_id, conversation_id), EMPTY_HISTORY).fingerprint
        answer = None if answer_key is None else loaded.answers.get((agent_id, answer_key))
        chain_key = (organisation_id, keys.chain_id or "")
        return Snapshot(
            agent=agent,
            key=snapshot.key,
            halted=self._entities.halted(organisation_id),
            tools=self._entities.tools(organisation_id),
            policies=self._entities.policies(organisation_id),
            access_lists=NO_LISTS if receiver_id is None else self._entities.access_lists(organisation_id),
            usage=usage,
            usage_values={
                key: amount_of(key, loaded.usage_values.get(AgentWindow(agent_id, key, milliseconds(keys.now)), ZERO))
                for key in keys.usage
            },
            reserved=self._reservations.cost_of(agent_id),
            history=history,
            reserved_steps=steps,
            receiver_fingerprint=fingerprint,
            stored_answer=None if answer is None or answer[3] <= keys.now else StoredAnswer(*answer[:3]),
            key_in_flight=answer_key is not None and self._reservations.is_key_in_flight(agent_id, answer_key),
            chain=loaded.chains.get(chain_key, NO_CHAIN),
        )

    def _is_colleague(self, agent_id: str, organisation_id: str) -> bool:
        """Return True if this is an agent of the same organisation."""
        agent = self._entities.agent(agent_id)
        return agent is not None and agent.organisation_id == organisation_id
