"""State that SQLite decides on: the newest counters, conversations and chains, in memory, ahead of the disk.

One process owns the database, so this state is always current. A failed write drops it, and it is read again.
"""

from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal

from qwed.domain.access_lists import NO_LISTS
from qwed.domain.budget import EMPTY_USAGE, NO_COST, Usage
from qwed.domain.conversation import EMPTY_HISTORY, ConversationHistory
from qwed.domain.snapshot import NO_CHAIN, ChainEnd, Snapshot
from qwed.domain.transition import CommitLimits, CurrentState, Transition
from qwed.domain.usage_window import Series, SeriesKey, Use
from qwed.domain.write_set import DecisionEffects
from qwed.store import sql
from qwed.store.entity_cache import EntityCache, ReadOne
from qwed.store.reservations import ConversationKey, Reservations
from qwed.store.series_cache import SeriesCache
from qwed.store.usage_rows import SELECT_HOLDS, to_uses

MAX_CACHED_CONVERSATIONS = 20_000
MAX_CACHED_CHAINS = 10_000


class MemoryState:
    """Implements `LockedState`. The store's lock is held around every call."""

    def __init__(
        self,
        entities: EntityCache,
        reservations: Reservations,
        one: ReadOne,
        some: Callable[[str, sql.Row], list[sql.Row]],
        leaves: Callable[[str], int],
        limits: CommitLimits,
    ) -> None:
        self._limits = limits
        self._entities = entities
        self._reservations = reservations
        self._one = one
        self._some = some
        self._durable = 0
        """Number of the last write that is known to be durable."""
        self._leaves = leaves
        self.has_all_rows = False
        """True while the database began empty and nothing was evicted: what is not in memory does not exist."""
        self.usages: dict[str, Usage] = {}
        self.usage_series = SeriesCache(one, some)
        self.histories: OrderedDict[ConversationKey, tuple[ConversationHistory, int]] = OrderedDict()
        """Histories by agent and conversation, each with the number of the write that carries it."""
        self._chains: dict[tuple[str, str], tuple[ChainEnd, int]] = {}
        self.next_indexes: dict[str, int] = {}
        """Index of the next leaf of each log, after all submitted writes."""

    def clear(self) -> None:
        """Drop everything after a failed write; reservations stay."""
        self.has_all_rows = False
        self.usages.clear()
        self.usage_series.clear()
        self.histories.clear()
        self._chains.clear()
        self.next_indexes.clear()

    def usage(self, agent_id: str) -> Usage:
        """Return the counters of an agent."""
        usage = self.usages.get(agent_id)
        if usage is None:
            row = self._one(sql.SELECT_USAGE, (agent_id,))
            usage = self.usages[agent_id] = EMPTY_USAGE if row is None else sql.to_usage(row)
        return usage

    def series(self, key: SeriesKey) -> Series:
        """Return the state of a series of rolling usage."""
        return self.usage_series.series(key)

    def total_before(self, key: SeriesKey, begin: int) -> Decimal | None:
        """Return the total of a series before the first use after `begin`, or None without one."""
        return self.usage_series.total_before(key, begin)

    def held_uses(self, approval_id: str) -> tuple[Use, ...]:
        """Return what an approval holds; it is durable, because its id was read from the database."""
        return to_uses(self._some(SELECT_HOLDS, (approval_id,)))

    def history(self, agent_id: str, conversation_id: str) -> ConversationHistory:
        """Return the committed steps of a conversation."""
        key = (agent_id, conversation_id)
        cached = self.histories.get(key)
        if cached is not None:
            self.histories.move_to_end(key)
            return cached[0]
        row = None if self.has_all_rows else self._one(sql.SELECT_CONVERSATION, key)
        history = EMPTY_HISTORY if row is None else ConversationHistory(*row)
        self.histories[key] = history, 0
        if len(self.histories) > MAX_CACHED_CONVERSATIONS:
            self._evict()
        return history

    def chain_end(self, organisation_id: str, chain_id: str) -> ChainEnd:
        """Return the end of a chain of attestations."""
        cached = self._chains.get((organisation_id, chain_id))
        if cached is not None:
            return cached[0]
        row = self._one(sql.SELECT_CHAIN, (organisation_id, chain_id))
        return NO_CHAIN if row is None else ChainEnd(*row)

    def current(self, effects: DecisionEffects) -> CurrentState:
        """Return what a decision is checked against."""
        agent_id, organisation_id, reservation = effects.agent.agent_id, effects.agent.organisation_id, None
        history, is_held, is_reserved, reserved = EMPTY_HISTORY, True, True, NO_COST
        if effects.decision.commits and effects.reservation is not None:
            reservation = effects.reservation
            cached = self.histories.get((agent_id, reservation.conversation_id))
            if cached is not None:
                history = cached[0]
            elif not reservation.step.standalone:
                history = self.history(agent_id, reservation.conversation_id)
            is_held = self._reservations.holds(reservation)
            is_reserved = effects.charge == reservation.charge
            if is_held and not is_reserved:
                reserved = self._reservations.cost_of_others(reservation)
        halted = self._entities.halted_organisations.get(organisation_id)
        policies = self._entities.policy_sets.get(organisation_id)
        snapshot = Snapshot(
            agent=self._entities.agents.get(agent_id) or self._entities.agent(agent_id),
            halted=self._entities.halted(organisation_id) if halted is None else halted,
            policies=self._entities.policies(organisation_id) if policies is None else policies,
            access_lists=NO_LISTS if effects.pair is None else self._entities.access_lists(organisation_id),
            usage=self.usages.get(agent_id) or self.usage(agent_id),
            reserved=reserved,
            history=history,
            chain=NO_CHAIN if effects.link is None else self.chain_end(organisation_id, effects.link.chain_id),
        )
        return CurrentState(snapshot, self._limits, is_held, is_reserved)

    def next_index(self, organisation_id: str) -> int:
        """Return the index of the next leaf of a log."""
        index = self.next_indexes.get(organisation_id)
        return self._leaves(organisation_id) if index is None else index

    def apply(self, effects: DecisionEffects, after: Transition, write: int, durable: int) -> None:
        """Apply a decision that was submitted as this write. It cannot fail, so memory is never ahead of the writer."""
        self.usages[effects.agent.agent_id] = after.usage
        self._durable = durable
        if after.series:
            self.usage_series.apply(after.series, write, durable)
        reservation = effects.reservation
        if reservation is not None:
            if after.history is not None:
                key = (reservation.agent_id, reservation.conversation_id)
                self.histories[key] = after.history, write
                if len(self.histories) > MAX_CACHED_CONVERSATIONS:
                    self._evict()
            self._reservations.release_step(reservation)
        if effects.link is not None:
            if len(self._chains) >= MAX_CACHED_CHAINS:
                self._chains = {key: end for key, end in self._chains.items() if end[1] > durable}
            end = ChainEnd(effects.link.links + 1, effects.link.attestation_id)
            self._chains[effects.agent.organisation_id, effects.link.chain_id] = end, write

    def _evict(self) -> None:
        """Evict the least recently used conversations that are durable, to bound memory."""
        while len(self.histories) > MAX_CACHED_CONVERSATIONS:
            key, (history, write) = next(iter(self.histories.items()))
            if write > self._durable:
                return
            del self.histories[key]
            self.has_all_rows = self.has_all_rows and history is EMPTY_HISTORY
