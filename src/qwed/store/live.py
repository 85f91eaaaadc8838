"""What the one process that owns a SQLite store keeps in memory: reservations, held budget, warm state.

Nothing here outlives the process but what a settlement wrote. The store's lock is held around every call.
"""

from collections import OrderedDict
from collections.abc import Callable

from qwed.store.agent import Agent
from qwed.store.conversation import Conversation, Step
from qwed.store.protocol import Reservation, Settlement
from qwed.store.usage import NOTHING, Charge, Usage
from qwed.words import ErrorCode

Place = tuple[str, str]

REMEMBERED_CONVERSATIONS = 20_000


class LiveState:
    """Steps in flight and the newest state of what is used."""

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
        self._conversations: OrderedDict[Place, Conversation] = OrderedDict()
        self._usages: dict[str, Usage] = {}
        self._reservations: dict[tuple[str, str, int], Reservation] = {}
        self._swept = monotonic()
        self.forgot = False

    def conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        """The committed past of a conversation, from memory or disk."""
        place = (agent_id, conversation_id)
        known = self._conversations.get(place)
        if known is None:
            known = self._conversations[place] = self._load_conversation(agent_id, conversation_id)
        else:
            self._conversations.move_to_end(place)
        return known

    def usage(self, agent_id: str) -> Usage:
        """The counters of an agent, from memory or disk."""
        known = self._usages.get(agent_id)
        if known is None:
            known = self._usages[agent_id] = self._load_usage(agent_id)
        return known

    def reserve(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        """Hold a step, or say why not."""
        now = self._monotonic()
        self._sweep(now)
        conversation = self.conversation(agent.agent_id, conversation_id)
        refusal = conversation.refuses_step(step.number, self._max_steps)
        if refusal is not None:
            return refusal
        place = (agent.agent_id, conversation_id, step.number)
        holder = self._reservations.get(place)
        if holder is not None:
            if holder.expires > now:
                return ErrorCode.REPLAY
            self.release(holder)
        conversation.reserved += 1
        reservation = Reservation(agent, conversation_id, step, now + self._lease_seconds, conversation)
        self._reservations[place] = reservation
        return reservation

    def holds(self, reservation: Reservation) -> bool:
        """Whether the lease still stands."""
        place = (reservation.agent.agent_id, reservation.conversation_id, reservation.step.number)
        return self._reservations.get(place) is reservation and reservation.expires > self._monotonic()

    def hold(self, reservation: Reservation, charge: Charge) -> None:
        """Add to what the reservation holds of the budget."""
        self.usage(reservation.agent.agent_id).hold(charge)
        reservation.held = charge if reservation.held is NOTHING else reservation.held.plus(charge)

    def release(self, reservation: Reservation) -> None:
        """Free the step and what it holds; harmless the second time."""
        place = (reservation.agent.agent_id, reservation.conversation_id, reservation.step.number)
        if self._reservations.get(place) is reservation:
            del self._reservations[place]
            reservation.conversation.reserved -= 1
        if reservation.held is not NOTHING:
            self.usage(reservation.agent.agent_id).hold(reservation.held, -1)
            reservation.held = NOTHING

    def refuses_commit(self, reservation: Reservation) -> ErrorCode | None:
        """Asked again at the moment of truth: other steps may have committed since the step was reserved."""
        if not self.holds(reservation):
            return ErrorCode.LEASE_EXPIRED
        conversation = reservation.conversation
        return conversation.refuses_step(reservation.step.number, self._max_steps) or conversation.refuses_loop(
            reservation.step
        )

    def apply(self, settlement: Settlement, now: float) -> Usage:
        """Count and advance; the caller has asked `refuses_commit` first."""
        agent = settlement.agent
        usage = self.usage(agent.agent_id)
        usage.roll(now)
        if settlement.reservation is not None:
            self.release(settlement.reservation)
            settlement.reservation.settled = True
        if settlement.charge is not NOTHING:
            usage.charge(settlement.charge, settlement.decision, agent.limits)
        return usage

    def forget_old(self, durable: int) -> None:
        """Keep memory bounded: drop the conversations longest unused whose state is on disk."""
        while len(self._conversations) > REMEMBERED_CONVERSATIONS:
            place, oldest = next(iter(self._conversations.items()))
            if oldest.written > durable or oldest.reserved:
                return
            del self._conversations[place]
            self.forgot = True

    def distrust(self) -> None:
        """A commit failed: what memory says may not be on disk, so read it again. What is held stays held."""
        self._conversations.clear()
        self.forgot = True
        for reservation in self._reservations.values():
            held = self.conversation(reservation.agent.agent_id, reservation.conversation_id)
            held.reserved += 1
            reservation.conversation = held
        before, self._usages = self._usages, {}
        for agent_id, usage in before.items():
            if usage.held_requests:
                self.usage(agent_id).take_held(usage)

    def _sweep(self, now: float) -> None:
        if now - self._swept < self._lease_seconds:
            return
        self._swept = now
        for reservation in [held for held in self._reservations.values() if held.expires <= now]:
            self.release(reservation)
