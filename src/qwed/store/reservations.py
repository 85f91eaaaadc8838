"""Reservations of this process: steps, budgets and idempotency keys of requests in flight (spec 9.4).

Nothing here outlives the process: a crash releases everything. The store's lock is held around every call.
"""

from collections.abc import Callable

from qwed.domain.budget import NO_COST, RequestCost, Usage, exceeded_limit
from qwed.domain.change_parts import Conflict
from qwed.domain.conversation import ConversationHistory
from qwed.domain.snapshot import NO_STEPS, Snapshot
from qwed.domain.write_set import Reservation

ConversationKey = tuple[str, str]


class Reservations:
    """Leases of steps, with what they reserve of the budget."""

    def __init__(self, max_steps: int, lease_seconds: float, monotonic: Callable[[], float]) -> None:
        self.lease_seconds = lease_seconds
        self.monotonic = monotonic
        self._max_steps = max_steps
        self.steps: dict[ConversationKey, dict[int, Reservation]] = {}
        """Reserved steps of each conversation. Read only, as `costs` is: a lease in it may have expired."""
        self.costs: dict[str, RequestCost] = {}
        """Cost that the requests of each agent have reserved."""
        self._keys: dict[tuple[str, str], Reservation] = {}
        self._next_expiry = monotonic() + lease_seconds
        """Time before which no lease expires."""

    def __len__(self) -> int:
        return sum(map(len, self.steps.values()))

    def steps_of(self, agent_id: str, conversation_id: str) -> frozenset[int]:
        """Return the reserved steps of a conversation."""
        steps = self.steps.get((agent_id, conversation_id))
        if steps is None:
            return NO_STEPS
        now = self.monotonic()
        return frozenset(number for number, holder in steps.items() if holder.expires > now)

    def cost_of(self, agent_id: str) -> RequestCost:
        """Return the cost that the requests of an agent have reserved."""
        if agent_id not in self.costs:
            return NO_COST
        now = self.monotonic()
        if now >= self._next_expiry:
            self._release_expired(now)
        return self.costs.get(agent_id, NO_COST)

    def cost_of_others(self, reservation: Reservation) -> RequestCost:
        """Return the cost that the other requests of the agent have reserved; the lease must be valid."""
        return self.costs.get(reservation.agent_id, NO_COST).minus(reservation.charge)

    def is_key_in_flight(self, agent_id: str, key: str) -> bool:
        """Return True if a request in flight has this idempotency key."""
        holder = self._keys.get((agent_id, key))
        return holder is not None and holder.expires > self.monotonic()

    def add(
        self, reservation: Reservation, snapshot: Snapshot, usage: Usage, history: ConversationHistory
    ) -> Conflict | None:
        """Reserve, or return the conflict with what was reserved or committed since the snapshot."""
        now = self.monotonic()
        if now >= self._next_expiry:
            self._release_expired(now)
        agent_id = reservation.agent_id
        is_unchanged = usage is snapshot.usage and history is snapshot.history
        is_unchanged = is_unchanged and self.costs.get(agent_id, NO_COST) is snapshot.reserved
        if not is_unchanged and not self._fits(reservation, snapshot, usage, history):
            return Conflict.STALE
        conversation, number = (agent_id, reservation.conversation_id), reservation.step.number
        holder = self.steps.get(conversation, {}).get(number)
        if holder is not None:
            if holder.expires > now:
                return Conflict.STALE
            self.release(holder)
        if reservation.idempotency_key is not None:
            if self.is_key_in_flight(agent_id, reservation.idempotency_key):
                return Conflict.STALE
            self._keys[agent_id, reservation.idempotency_key] = reservation
        reservation.expires = now + self.lease_seconds
        self.steps.setdefault(conversation, {})[number] = reservation
        reserved = self.costs.get(agent_id)
        self.costs[agent_id] = reservation.charge if reserved is None else reserved.plus(reservation.charge)
        return None

    def _fits(self, reservation: Reservation, snapshot: Snapshot, usage: Usage, history: ConversationHistory) -> bool:
        """Return True if the step and the cost are still free; they were when the snapshot was loaded."""
        reserved = self.costs.get(reservation.agent_id, NO_COST)
        counters = usage.counters.at(reservation.reserved_at)
        agent, step = snapshot.agent, reservation.step
        if agent is None or exceeded_limit(counters, reserved, reservation.charge, agent.limits) is not None:
            return False
        max_steps = agent.steps_limit(self._max_steps)
        return history.refuses_step(step.number, max_steps, auto_numbered=step.auto_numbered) is None

    def holds(self, reservation: Reservation) -> bool:
        """Return True if the lease is still valid."""
        steps = self.steps.get((reservation.agent_id, reservation.conversation_id))
        return (
            steps is not None
            and steps.get(reservation.step.number) is reservation
            and reservation.expires > self.monotonic()
        )

    def release(self, reservation: Reservation) -> None:
        """Release the step, its budget and its idempotency key; a second call does nothing."""
        self.release_step(reservation)
        key = reservation.idempotency_key
        if key is not None and self._keys.get((reservation.agent_id, key)) is reservation:
            del self._keys[reservation.agent_id, key]

    def release_step(self, reservation: Reservation) -> None:
        """Release the step and its budget; the idempotency key is in flight until its answer is durable."""
        agent_id = reservation.agent_id
        conversation = (agent_id, reservation.conversation_id)
        steps = self.steps.get(conversation)
        if steps is None or steps.get(reservation.step.number) is not reservation:
            return
        del steps[reservation.step.number]
        if not steps:
            del self.steps[conversation]
        reserved = self.costs.get(agent_id, NO_COST)
        if reserved is reservation.charge or reserved == reservation.charge:
            self.costs.pop(agent_id, None)
        else:
            self.costs[agent_id] = reserved.minus(reservation.charge)

    def _release_expired(self, now: float) -> None:
        holders = [holder for steps in self.steps.values() for holder in steps.values()]
        for holder in holders:
            if holder.expires <= now:
                self.release(holder)
        # A lease that is added later expires later than all of these.
        left = (holder.expires for holder in holders if holder.expires > now)
        self._next_expiry = min(left, default=now + self.lease_seconds)
