"""Reservations of steps and budget, and cached conversations and counters of one process.

Nothing here outlives the process; a commit writes what must. The store's lock is held around every call.
"""

from collections import OrderedDict
from collections.abc import Callable

from qwed.model import ErrorCode
from qwed.store.agent import Agent
from qwed.store.budget import NO_COST, LimitExceeded, RequestCost, Usage
from qwed.store.conversation import Conversation, ConversationHistory, ConversationStep
from qwed.store.protocol import CommitRequest, Reservation

ConversationKey = tuple[str, str]

MAX_CACHED_CONVERSATIONS = 20_000


class ReservationState:
    """Steps in flight, and the newest state of conversations and counters."""

    def __init__(
        self,
        *,
        max_steps: int,
        lease_seconds: float,
        monotonic: Callable[[], float],
        load_conversation: Callable[[str, str], Conversation],
        load_usage: Callable[[str], Usage],
    ) -> None:
        self._max_steps = max_steps
        self._lease_seconds = lease_seconds
        self._monotonic = monotonic
        self._load_conversation = load_conversation
        self._load_usage = load_usage
        self._conversations: OrderedDict[ConversationKey, Conversation] = OrderedDict()
        self._usages: dict[str, Usage] = {}
        self._reservations: dict[tuple[str, str, int], Reservation] = {}
        self._last_sweep = monotonic()
        self.has_evicted = False
        self._stale = False

    def conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        """Return a conversation, from the cache or the database."""
        key = (agent_id, conversation_id)
        conversation = self._conversations.get(key)
        if conversation is None:
            conversation = self._conversations[key] = self._load_conversation(agent_id, conversation_id)
        else:
            self._conversations.move_to_end(key)
        return conversation

    def last_fingerprint(self, agent_id: str, conversation_id: str) -> str:
        """Return the fingerprint of the last committed step of a conversation."""
        if self._stale:
            self._refresh()
        return self.conversation(agent_id, conversation_id).history.fingerprint

    def usage(self, agent_id: str) -> Usage:
        """Return the counters of an agent, from the cache or the database."""
        if self._stale:
            self._refresh()
        usage = self._usages.get(agent_id)
        if usage is None:
            usage = self._usages[agent_id] = self._load_usage(agent_id)
        return usage

    def reserve(self, agent: Agent, conversation_id: str, step: ConversationStep) -> Reservation | ErrorCode:
        """Reserve a step, or return the reason to refuse it."""
        if self._stale:
            self._refresh()
        now = self._monotonic()
        if now - self._last_sweep >= self._lease_seconds:
            self._sweep(now)
        conversation = Conversation() if step.standalone else self.conversation(agent.agent_id, conversation_id)
        if step.auto_numbered:
            step = step._replace(number=self._free_step(agent.agent_id, conversation_id, conversation.history, now))
        refusal = conversation.history.refuses_step(step.number, self._max_steps)
        if refusal is not None:
            return refusal
        key = (agent.agent_id, conversation_id, step.number)
        holder = self._reservations.get(key)
        if holder is not None:
            if holder.expires > now:
                return ErrorCode.REPLAY
            self.release(holder)
        conversation.reserved += 1
        reservation = Reservation(agent, key, step, now + self._lease_seconds, conversation)
        self._reservations[key] = reservation
        return reservation

    def _free_step(self, agent_id: str, conversation_id: str, history: ConversationHistory, now: float) -> int:
        """Return the next step number that is neither committed nor reserved."""
        number = history.last_step + 1
        while number <= self._max_steps:
            holder = self._reservations.get((agent_id, conversation_id, number))
            if holder is None or holder.expires <= now:
                break
            number += 1
        return number

    def holds(self, reservation: Reservation) -> bool:
        """Return True if the lease is still valid."""
        return self._reservations.get(reservation.key) is reservation and reservation.expires > self._monotonic()

    def reserve_budget(self, reservation: Reservation, charge: RequestCost, now: float) -> LimitExceeded | None:
        """Reserve a cost for the reservation, or return the limit it would exceed."""
        usage = self.usage(reservation.agent.agent_id)
        usage.counters = usage.counters.at(now)
        exceeded = usage.refuses(charge, reservation.agent.limits)
        if exceeded is None:
            usage.reserved = usage.reserved.plus(charge)
            reservation.reserved = charge if reservation.reserved is NO_COST else reservation.reserved.plus(charge)
        return exceeded

    def release(self, reservation: Reservation) -> None:
        """Release the step and its budget; a second call does nothing."""
        if self._reservations.get(reservation.key) is reservation:
            del self._reservations[reservation.key]
            reservation.conversation.reserved -= 1
        if reservation.reserved is not NO_COST:
            # Not `usage()`: a release must never read the database.
            usage = self._usages[reservation.agent.agent_id]
            usage.reserved = usage.reserved.minus(reservation.reserved)
            reservation.reserved = NO_COST

    def history_of(self, reservation: Reservation) -> ConversationHistory:
        """Return the committed history before the reserved step."""
        return reservation.conversation.history

    def refuses_commit(self, reservation: Reservation) -> ErrorCode | None:
        """Return the reason to refuse the commit, or None; other steps may have committed since the reservation."""
        if self._stale:
            self._refresh()
        if not self.holds(reservation):
            return ErrorCode.LEASE_EXPIRED
        history, step = self.history_of(reservation), reservation.step
        refusal = history.refuses_step(step.number, self._max_steps, auto_numbered=step.auto_numbered)
        return refusal or history.refuses_loop(step)

    def set_counters(self, agent_id: str, after: Usage) -> None:
        """Set the counters that were submitted for writing; reserved budget stays reserved."""
        usage = self._usages[agent_id]
        usage.counters, usage.behaviour, usage.evidence = after.counters, after.behaviour, after.evidence

    def apply_commit(
        self, request: CommitRequest, after: Usage, history: ConversationHistory | None, written: int
    ) -> None:
        """Apply a commit that was submitted for writing. It cannot fail, so memory is never ahead of the writer."""
        self.set_counters(request.agent.agent_id, after)
        reservation = request.reservation
        if reservation is None:
            return
        self.release(reservation)
        reservation.committed = True
        if history is not None:
            reservation.conversation.history = history
            reservation.conversation.written = written

    def evict_old(self, durable: int) -> None:
        """Evict the least recently used conversations that are durable, to bound memory."""
        while len(self._conversations) > MAX_CACHED_CONVERSATIONS:
            key, oldest = next(iter(self._conversations.items()))
            if oldest.written > durable or oldest.reserved:
                return
            del self._conversations[key]
            self.has_evicted = True

    def invalidate(self) -> None:
        """Mark the state as stale after a failed write; it is read again before its next use."""
        self.has_evicted = self._stale = True

    def _refresh(self) -> None:
        """Read stale state again; reservations stay. If the database cannot be read, nothing changes."""
        keys = {reservation.key[:2] for reservation in self._reservations.values()}
        conversations = {key: self._load_conversation(*key) for key in keys}
        usages = {agent_id: self._load_usage(agent_id) for agent_id in self._usages}
        for reservation in self._reservations.values():
            reservation.conversation = conversations[reservation.key[:2]]
            reservation.conversation.reserved += 1
        for agent_id, usage in usages.items():
            usage.reserved = self._usages[agent_id].reserved
        self._conversations, self._usages, self._stale = OrderedDict(conversations), usages, False

    def _sweep(self, now: float) -> None:
        self._last_sweep = now
        for reservation in [expired for expired in self._reservations.values() if expired.expires <= now]:
            self.release(reservation)
