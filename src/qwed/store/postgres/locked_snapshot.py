"""State that one batch is decided on: locked, read, and unchanged until the batch is over.

The isolation level is READ COMMITTED, so that each statement sees what was committed before it began. Locks are taken
by statements of their own, and later ones read what they protect: by then the previous holders have committed or rolled
back.
"""

import math
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

from qwed.store import sql
from qwed.store.attestation_chains import ChainEnds
from qwed.store.budget import NO_COST, Usage
from qwed.store.columns import select
from qwed.store.commit_logic import CommitLogic
from qwed.store.conversation import EMPTY_HISTORY, Conversation, ConversationHistory
from qwed.store.entity_cache import EntityCache
from qwed.store.postgres.cache import SharedEntityCache
from qwed.store.postgres.cache_refresh import CONVERSATIONS, ORGANISATIONS, USAGES, columns_of, usage_of
from qwed.store.postgres.connections import TimedConnection
from qwed.store.postgres.dialect import is_storable, translate
from qwed.store.postgres.lock_order import LOCK_AGENTS, LOCK_NAMES, LockSet
from qwed.store.protocol import CommitRequest, Reservation
from qwed.store.reservations import ReservationState

Row = tuple[Any, ...]
Pair = tuple[str, str]

_AGENTS = select("agents", "WHERE agent_id = ANY(%s)")
_ANSWERS = (
    "SELECT agent_id, key, expires_at FROM unnest(%s::text[], %s::text[]) AS w (agent_id, key) "
    "JOIN idempotency_keys USING (agent_id, key)"
)


class BatchState(ReservationState):
    """Counters and conversations as locked; leases are checked by the process that gave them."""

    def __init__(self, *, max_steps: int, holds: Callable[[Reservation], bool], reader: "TransactionReader") -> None:
        super().__init__(
            max_steps=max_steps,
            lease_seconds=math.inf,
            monotonic=lambda: 0.0,
            load_conversation=reader.conversation,
            load_usage=reader.usage,
        )
        self.max_steps = max_steps
        self._holds = holds

    def seed(self, agents: Mapping[str, Usage], histories: Mapping[Pair, ConversationHistory]) -> None:
        """Set the state that was read beforehand."""
        self._usages.update(agents)
        self._conversations.update((key, Conversation(history)) for key, history in histories.items())

    def holds(self, reservation: Reservation) -> bool:
        """Return True if the lease is still valid in this process."""
        return self._holds(reservation)

    def history_of(self, reservation: Reservation) -> ConversationHistory:
        """Return the committed history before the step, by any process."""
        return EMPTY_HISTORY if reservation.step.standalone else self.conversation(*reservation.key[:2]).history

    def remote_steps_of(self, reservation: Reservation) -> int:
        """Return the number of steps of the conversation that other processes have committed."""
        conversation = self.conversation(*reservation.key[:2])
        return conversation.history.steps - conversation.written - reservation.conversation.written

    def apply_commit(
        self, request: CommitRequest, after: Usage, history: ConversationHistory | None, _written: int
    ) -> None:
        """Apply a commit, for the rest of the batch."""
        self.set_counters(request.agent.agent_id, after)
        if history is not None and request.reservation is not None:
            conversation = self.conversation(*request.reservation.key[:2])
            conversation.history, conversation.written = history, conversation.written + 1


class TransactionReader:
    """Reader inside the transaction, for rows that were not read beforehand."""

    def __init__(self, connection: TimedConnection) -> None:
        self.connection = connection
        self.versions: dict[str, int] = {}
        """Versions of the counters before the batch."""

    def one(self, statement: str, values: Row) -> Row | None:
        """Return one row, or None."""
        return self.connection.execute(translate(statement), values).fetchone() if is_storable(values) else None

    def some(self, statement: str, values: Row) -> list[Row]:
        """Return every row."""
        return self.connection.execute(translate(statement), values).fetchall() if is_storable(values) else []

    def conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        """Return a conversation."""
        row = self.one(sql.SELECT_CONVERSATION, (agent_id, conversation_id))
        return Conversation(ConversationHistory() if row is None else ConversationHistory(*row))

    def usage(self, agent_id: str) -> Usage:
        """Return the counters of an agent."""
        row = self.connection.execute(USAGES, ([agent_id],)).fetchone()
        usage, self.versions[agent_id] = (Usage(), 0) if row is None else usage_of(row)
        return usage


class LockedSnapshot:
    """Snapshot that a batch is decided on."""

    def __init__(
        self,
        connection: TimedConnection,
        *,
        max_steps: int,
        max_open_approvals: int,
        holds: Callable[[Reservation], bool],
    ) -> None:
        self.reader = TransactionReader(connection)
        self.entities = EntityCache(RLock(), self.reader.one, self.reader.some)
        self.state = BatchState(max_steps=max_steps, holds=holds, reader=self.reader)
        self.logic = CommitLogic(
            entities=self.entities,
            state=self.state,
            chains=ChainEnds(self.reader.one),
            one=self.reader.one,
            leaves=lambda _organisation_id: 0,
            max_open_approvals=max_open_approvals,
        )
        """Leaf indexes start at 0: the ends of the logs are known once those are locked."""
        self._connection = connection
        self._answers: dict[Pair, float] = {}

    def lock_and_read(
        self, locks: LockSet, commits: list[CommitRequest], cache: SharedEntityCache, lock: RLock
    ) -> None:
        """Begin the transaction, take the locks and read the state, in one round trip."""
        connection, agents = self._connection, sorted(locks.agents)
        conversations = {request.reservation.key[:2] for request in commits if request.reservation is not None}
        answers = {
            (request.agent.agent_id, request.idempotency_key)
            for request in commits
            if request.idempotency_key is not None
        }
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute(LOCK_NAMES, locks.advisory_locks())
            connection.execute(LOCK_AGENTS, (agents,))
            organisations = connection.execute(ORGANISATIONS, (sorted(locks.shared),))
            usages = connection.execute(USAGES, (agents,))
            histories = connection.execute(CONVERSATIONS, columns_of(conversations))
            stored = connection.execute(_ANSWERS, columns_of(answers)) if answers else None
        usage = {row[1]: usage_of(row) for row in usages.fetchall()}
        self.reader.versions.update((agent_id, usage[agent_id][1] if agent_id in usage else 0) for agent_id in agents)
        committed = {row[:2]: ConversationHistory(*row[2:]) for row in histories.fetchall()}
        self.state.seed(
            {agent_id: usage[agent_id][0] if agent_id in usage else Usage() for agent_id in agents},
            {key: committed.get(key, EMPTY_HISTORY) for key in conversations},
        )
        self._answers = {} if stored is None else {row[:2]: row[2] for row in stored.fetchall()}
        self._seed_entities(organisations.fetchall(), agents, cache, lock)

    def _seed_entities(
        self, organisations: list[Row], agents: list[str], cache: SharedEntityCache, lock: RLock
    ) -> None:
        """Copy cached entities of organisations whose epoch is unchanged; read the others."""
        with lock:
            for epoch, _erasures, halted, organisation_id in organisations:
                self.entities.put_halted(organisation_id, halted)
                cached = cache.organisation(organisation_id)
                if cached.epoch == epoch:
                    cached.entities.copy_to(self.entities, organisation_id, agents)
        uncached = [agent_id for agent_id in agents if not self.entities.has_agent(agent_id)]
        if uncached:
            for row in self._connection.execute(_AGENTS, (uncached,)).fetchall():
                self.entities.put_agent(sql.to_agent(row))

    # Checks that are needed because other processes write as well

    def is_stale(self, request: CommitRequest) -> bool:
        """Return True if another process took the step, the budget or the key since the request began."""
        return self._is_answered(request) or self._is_over_budget(request) or self._is_overtaken(request)

    def _is_answered(self, request: CommitRequest) -> bool:
        """Return True if an answer is stored under the key. Also for refusals: the request may have read the
        conversation after the stored one."""
        if request.idempotency_key is None:
            return False
        return self._answers.get((request.agent.agent_id, request.idempotency_key), -math.inf) > request.activity.at

    def _is_over_budget(self, request: CommitRequest) -> bool:
        reservation, agent = request.reservation, request.agent
        if reservation is None or reservation.reserved is NO_COST or request.charge is NO_COST:
            return False
        usage = self.state.usage(agent.agent_id)
        usage.counters = usage.counters.at(request.activity.at)
        return usage.refuses(reservation.reserved, agent.limits) is not None

    def _is_overtaken(self, request: CommitRequest) -> bool:
        reservation = request.reservation
        if reservation is None or not request.decision.commits:
            return False
        history, step = self.state.history_of(reservation), reservation.step
        # Another process may have chosen the same number: then a new one is chosen.
        is_unique = step.auto_numbered and self.state.remote_steps_of(reservation) == reservation.remote_steps
        refusal = history.refuses_step(step.number, self.state.max_steps, auto_numbered=is_unique)
        return refusal is not None or history.refuses_loop(step) is not None

    def record_answer(self, request: CommitRequest) -> None:
        """Note a stored answer, for the rest of the batch."""
        if request.answer_to_store is not None:
            self._answers[request.agent.agent_id, request.answer_to_store.key] = request.answer_to_store.expires_at
