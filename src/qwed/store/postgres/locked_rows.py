"""State that one batch is decided on: locked, read, and unchanged until the batch is over.

The isolation level is READ COMMITTED, so that each statement sees what was committed before it began. Locks are taken
by statements of their own, and later ones read what they protect: by then the previous holders have committed or rolled
back.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from threading import RLock
from typing import Any

from qwed.domain.access_lists import NO_LISTS
from qwed.domain.budget import EMPTY_USAGE, Usage
from qwed.domain.conversation import EMPTY_HISTORY, ConversationHistory
from qwed.domain.policy_set import NO_POLICIES
from qwed.domain.snapshot import NO_CHAIN, ChainEnd, Snapshot
from qwed.domain.transition import CommitLimits, CurrentState, Transition
from qwed.domain.usage_window import Series, SeriesKey, Use
from qwed.domain.write_set import DecisionEffects, Reservation
from qwed.store import sql
from qwed.store.columns import select
from qwed.store.entity_cache import EntityCache
from qwed.store.postgres.cache import SharedEntityCache
from qwed.store.postgres.connections import TimedConnection
from qwed.store.postgres.dialect import is_storable, translate
from qwed.store.postgres.lock_order import LOCK_AGENTS, LOCK_NAMES, LockSet
from qwed.store.postgres.locked_series import WINDOWS, LockedSeries, Window, window_columns
from qwed.store.postgres.snapshot_loader import CONVERSATIONS, ORGANISATIONS, USAGES, columns_of, usage_of
from qwed.store.usage_rows import SELECT_HOLDS, to_uses

Row = tuple[Any, ...]
Pair = tuple[str, str]

_AGENTS = select("agents", "WHERE agent_id = ANY(%s)")
_ANSWERS = (
    "SELECT agent_id, key, expires_at FROM unnest(%s::text[], %s::text[]) AS w (agent_id, key) "
    "JOIN idempotency_keys USING (agent_id, key)"
)


class LockedRows:
    """Implements `LockedState` of `commit_plan.py`; leases are checked by the process that gave them."""

    def __init__(self, connection: TimedConnection, limits: CommitLimits, holds: Callable[[Reservation], bool]) -> None:
        self._limits = limits
        self._holds = holds
        self.entities = EntityCache(RLock(), self.one, self.some)
        self.versions: dict[str, int] = {}
        """Versions of the counters before the batch."""
        self.usages: dict[str, Usage] = {}
        self.usage_series = LockedSeries(self.one)
        self._histories: dict[Pair, ConversationHistory] = {}
        self._chains: dict[Pair, ChainEnd] = {}
        self._answers: dict[Pair, float] = {}
        self.next_indexes: dict[str, int] = {}
        self._connection = connection

    def lock_and_read(
        self,
        locks: LockSet,
        decisions: list[DecisionEffects],
        windows: frozenset[Window],
        cache: SharedEntityCache,
        lock: RLock,
    ) -> None:
        """Begin the transaction, take the locks and read the state, in one round trip."""
        connection, agents = self._connection, sorted(locks.agents)
        reservations = [effects.reservation for effects in decisions if effects.reservation is not None]
        conversations = {(reservation.agent_id, reservation.conversation_id) for reservation in reservations}
        answers = {
            (effects.agent.agent_id, effects.idempotency_key)
            for effects in decisions
            if effects.idempotency_key is not None
        }
        storable = [window for window in windows if is_storable(window.series)]
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute(LOCK_NAMES, locks.advisory_locks())
            connection.execute(LOCK_AGENTS, (agents,))
            organisations = connection.execute(ORGANISATIONS, (sorted(locks.shared),))
            usages = connection.execute(USAGES, (agents,))
            histories = connection.execute(CONVERSATIONS, columns_of(conversations))
            stored = connection.execute(_ANSWERS, columns_of(answers)) if answers else None
            series = connection.execute(WINDOWS, window_columns(storable)) if storable else None
        self.usages = dict.fromkeys(agents, EMPTY_USAGE)
        self.versions = dict.fromkeys(agents, 0)
        for row in usages.fetchall():
            self.usages[row[1]], self.versions[row[1]] = usage_of(row)
        self._histories = dict.fromkeys(conversations, EMPTY_HISTORY)
        self._histories |= {row[:2]: ConversationHistory(*row[2:]) for row in histories.fetchall()}
        self._answers = {} if stored is None else {row[:2]: row[2] for row in stored.fetchall()}
        self.usage_series.put(windows, [] if series is None else series.fetchall())
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

    def one(self, statement: str, values: Row) -> Row | None:
        """Return one row, read inside the transaction, or None."""
        return self._connection.execute(translate(statement), values).fetchone() if is_storable(values) else None

    def some(self, statement: str, values: Row) -> list[Row]:
        """Return every row, read inside the transaction."""
        return self._connection.execute(translate(statement), values).fetchall() if is_storable(values) else []

    def usage(self, agent_id: str) -> Usage:
        """Return the counters of an agent."""
        if agent_id not in self.usages:
            row = self._connection.execute(USAGES, ([agent_id],)).fetchone()
            self.usages[agent_id], self.versions[agent_id] = (EMPTY_USAGE, 0) if row is None else usage_of(row)
        return self.usages[agent_id]

    def series(self, key: SeriesKey) -> Series:
        """Return the state of a series of rolling usage."""
        return self.usage_series.series(key)

    def total_before(self, key: SeriesKey, begin: int) -> Decimal | None:
        """Return the total of a series before the first use after `begin`, or None without one."""
        return self.usage_series.total_before(key, begin)

    def held_uses(self, approval_id: str) -> tuple[Use, ...]:
        """Return what an open approval holds."""
        return to_uses(self.some(SELECT_HOLDS, (approval_id,)))

    def current(self, effects: DecisionEffects) -> CurrentState:
        """Return what a decision is checked against. What other processes have reserved is checked when they commit."""
        agent, reservation = effects.agent, effects.reservation
        is_plain = reservation is None or reservation.step.standalone
        snapshot = Snapshot(
            agent=self.entities.agent(agent.agent_id),
            halted=self.entities.halted(agent.organisation_id),
            policies=NO_POLICIES if effects.policies is None else self.entities.policies(agent.organisation_id),
            access_lists=NO_LISTS if effects.pair is None else self.entities.access_lists(agent.organisation_id),
            usage=self.usage(agent.agent_id),
            history=EMPTY_HISTORY if reservation is None or is_plain else self._history(reservation),
            chain=NO_CHAIN if effects.link is None else self._chain_end(agent.organisation_id, effects.link.chain_id),
        )
        is_held = reservation is not None and effects.decision.commits and self._holds(reservation)
        return CurrentState(snapshot, self._limits, is_held)

    def _history(self, reservation: Reservation) -> ConversationHistory:
        """Return the committed steps of a conversation, of any process."""
        key = (reservation.agent_id, reservation.conversation_id)
        history = self._histories.get(key)
        if history is None:
            row = self.one(sql.SELECT_CONVERSATION, key)
            history = EMPTY_HISTORY if row is None else ConversationHistory(*row)
        return history

    def _chain_end(self, organisation_id: str, chain_id: str) -> ChainEnd:
        """Return the end of a chain of attestations."""
        end = self._chains.get((organisation_id, chain_id))
        if end is None:
            row = self.one(sql.SELECT_CHAIN, (organisation_id, chain_id))
            end = NO_CHAIN if row is None else ChainEnd(*row)
        return end

    def is_answered(self, effects: DecisionEffects, at: float) -> bool:
        """Return True if an answer is stored under the key. Also for refusals: the request may have read the
        conversation after the stored one."""
        if effects.idempotency_key is None:
            return False
        return self._answers.get((effects.agent.agent_id, effects.idempotency_key), -math.inf) > at

    def next_index(self, organisation_id: str) -> int:
        """Return the position of the next leaf in this batch: the end of the log is known once it is locked."""
        return self.next_indexes.get(organisation_id, 0)

    def apply(self, effects: DecisionEffects, after: Transition) -> None:
        """Apply a decision, for the rest of the batch."""
        agent, reservation, answer = effects.agent, effects.reservation, effects.answer_to_store
        self.usages[agent.agent_id] = after.usage
        if after.history is not None and reservation is not None:
            self._histories[reservation.agent_id, reservation.conversation_id] = after.history
        if effects.link is not None:
            key = (agent.organisation_id, effects.link.chain_id)
            self._chains[key] = ChainEnd(effects.link.links + 1, effects.link.attestation_id)
        if answer is not None:
            self._answers[agent.agent_id, answer.key] = answer.expires_at
