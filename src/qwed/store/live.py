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
        self._stale = False

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
        self._refresh()
        known = self._usages.get(agent_id)
        if known is None:
            known = self._usages[agent_id] = self._load_usage(agent_id)
        return known

    def reserve(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        """Hold a step, or say why not."""
        self._refresh()
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
            # Not `usage()`: giving back must never need the disk.
            self._usages[reservation.agent.agent_id].hold(reservation.held, -1)
            reservation.held = NOTHING

    def refuses_commit(self, reservation: Reservation) -> ErrorCode | None:
        """Asked again at the moment of truth: other steps may have committed since the step was reserved."""
        self._refresh()
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

    def undo(self, settlement: Settlement) -> Callable[[], None]:
        """Puts counters and conversation back as they are now; for a settlement that fails half-way."""
        usage, reservation = self.usage(settlement.agent.agent_id), settlement.reservation
        spent = usage.spent()
        past = None if reservation is None else reservation.conversation.past()

        def put_back() -> None:
            usage.restore(spent)
            if reservation is not None and past is not None:
                reservation.conversation.restore(past)
                reservation.settled = False

        return put_back

    def forget_old(self, durable: int) -> None:
        """Keep memory bounded: drop the conversations longest unused whose state is on disk."""
        while len(self._conversations) > REMEMBERED_CONVERSATIONS:
            place, oldest = next(iter(self._conversations.items()))
            if oldest.written > durable or oldest.reserved:
                return
            del self._conversations[place]
            self.forgot = True

    def distrust(self) -> None:
        """A commit failed: what memory says may not be on disk. It is read again before it is next believed."""
        self.forgot = self._stale = True

    def _refresh(self) -> None:
        """Read again what is distrusted; what is held stays held. If the disk cannot be read, nothing changes."""
        if not self._stale:
            return
        places = {(held.agent.agent_id, held.conversation_id) for held in self._reservations.values()}
        conversations = {place: self._load_conversation(*place) for place in places}
        usages = {agent_id: self._load_usage(agent_id) for agent_id in self._usages}
        for reservation in self._reservations.values():
            reservation.conversation = conversations[reservation.agent.agent_id, reservation.conversation_id]
            reservation.conversation.reserved += 1
        for agent_id, usage in usages.items():
            usage.take_held(self._usages[agent_id])
        self._conversations, self._usages, self._stale = OrderedDict(conversations), usages, False

    def _sweep(self, now: float) -> None:
        if now - self._swept < self._lease_seconds:
            return
        self._swept = now
        for reservation in [held for held in self._reservations.values() if held.expires <= now]:
            self.release(reservation)
