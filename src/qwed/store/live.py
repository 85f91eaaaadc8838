"""What the one process that owns a SQLite store keeps in memory: reservations, held budget, warm state.

Nothing here outlives the process but what a settlement wrote. The store's lock is held around every call.
"""

from collections import OrderedDict
from collections.abc import Callable

from qwed.store.agent import Agent
from qwed.store.conversation import Conversation, Past, Step
from qwed.store.protocol import Reservation, Settlement
from qwed.store.usage import NOTHING, Charge, Exceeded, Usage
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

    def last_said(self, agent_id: str, conversation_id: str) -> str:
        """The fingerprint of the last step that was committed in a conversation."""
        if self._stale:
            self._refresh()
        return self.conversation(agent_id, conversation_id).past.fingerprint

    def usage(self, agent_id: str) -> Usage:
        """The counters of an agent, from memory or disk."""
        if self._stale:
            self._refresh()
        known = self._usages.get(agent_id)
        if known is None:
            known = self._usages[agent_id] = self._load_usage(agent_id)
        return known

    def reserve(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        """Hold a step, or say why not."""
        if self._stale:
            self._refresh()
        now = self._monotonic()
        if now - self._swept >= self._lease_seconds:
            self._sweep(now)
        conversation = Conversation() if step.alone else self.conversation(agent.agent_id, conversation_id)
        if step.allotted:
            step = step._replace(number=self._free_step(agent.agent_id, conversation_id, conversation.past, now))
        refusal = conversation.past.refuses_step(step.number, self._max_steps)
        if refusal is not None:
            return refusal
        place = (agent.agent_id, conversation_id, step.number)
        holder = self._reservations.get(place)
        if holder is not None:
            if holder.expires > now:
                return ErrorCode.REPLAY
            self.release(holder)
        conversation.reserved += 1
        reservation = Reservation(agent, place, step, now + self._lease_seconds, conversation)
        self._reservations[place] = reservation
        return reservation

    def _free_step(self, agent_id: str, conversation_id: str, past: Past, now: float) -> int:
        """The next step that is neither committed nor held by anybody."""
        number = past.last_step + 1
        while number <= self._max_steps:
            holder = self._reservations.get((agent_id, conversation_id, number))
            if holder is None or holder.expires <= now:
                break
            number += 1
        return number

    def holds(self, reservation: Reservation) -> bool:
        """Whether the lease still stands."""
        return self._reservations.get(reservation.place) is reservation and reservation.expires > self._monotonic()

    def hold(self, reservation: Reservation, charge: Charge, now: float) -> Exceeded | None:
        """Set a charge aside for the reservation, or say which limit it would pass."""
        usage = self.usage(reservation.agent.agent_id)
        usage.spent = usage.spent.at(now)
        exceeded = usage.refuses(charge, reservation.agent.limits)
        if exceeded is None:
            usage.held = usage.held.plus(charge)
            reservation.held = charge if reservation.held is NOTHING else reservation.held.plus(charge)
        return exceeded

    def release(self, reservation: Reservation) -> None:
        """Free the step and what it holds; harmless the second time."""
        if self._reservations.get(reservation.place) is reservation:
            del self._reservations[reservation.place]
            reservation.conversation.reserved -= 1
        if reservation.held is not NOTHING:
            # Not `usage()`: giving back must never need the disk.
            usage = self._usages[reservation.agent.agent_id]
            usage.held = usage.held.minus(reservation.held)
            reservation.held = NOTHING

    def past(self, reservation: Reservation) -> Past:
        """What was committed before the step that is held."""
        return reservation.conversation.past

    def refuses_commit(self, reservation: Reservation) -> ErrorCode | None:
        """Asked again at the moment of truth: other steps may have committed since the step was reserved."""
        if self._stale:
            self._refresh()
        if not self.holds(reservation):
            return ErrorCode.LEASE_EXPIRED
        past, step = self.past(reservation), reservation.step
        refusal = past.refuses_step(step.number, self._max_steps, allotted=step.allotted)
        return refusal or past.refuses_loop(step)

    def take_over(self, agent_id: str, after: Usage) -> None:
        """The counters as they were submitted to be written; what is held stays held."""
        usage = self._usages[agent_id]
        usage.spent, usage.conduct, usage.merit = after.spent, after.conduct, after.merit

    def accept(self, settlement: Settlement, after: Usage, past: Past | None, written: int) -> None:
        """Take over what was submitted to be written. Nothing here can fail, so memory is never ahead of the writer."""
        self.take_over(settlement.agent.agent_id, after)
        reservation = settlement.reservation
        if reservation is None:
            return
        self.release(reservation)
        reservation.settled = True
        if past is not None:
            reservation.conversation.past = past
            reservation.conversation.written = written

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
        places = {held.place[:2] for held in self._reservations.values()}
        conversations = {place: self._load_conversation(*place) for place in places}
        usages = {agent_id: self._load_usage(agent_id) for agent_id in self._usages}
        for reservation in self._reservations.values():
            reservation.conversation = conversations[reservation.place[:2]]
            reservation.conversation.reserved += 1
        for agent_id, usage in usages.items():
            usage.held = self._usages[agent_id].held
        self._conversations, self._usages, self._stale = OrderedDict(conversations), usages, False

    def _sweep(self, now: float) -> None:
        self._swept = now
        for reservation in [held for held in self._reservations.values() if held.expires <= now]:
            self.release(reservation)
