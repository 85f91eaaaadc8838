"""What a settlement or a change comes to, given everything as it stands: whether it is refused, and else its rows.

The same for every store. SQLite, whose one process knows everything first, has one of these for ever; PostgreSQL, which
is asked by many, makes one for each batch, over what it has locked and read for it. Nothing is taken over before
`accept`: whoever decides may still fail to write.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from qwed.store.agent import Agent
from qwed.store.chains import Chains
from qwed.store.changes import Desk, accept, refuse
from qwed.store.conduct import PENALTY, Mark, Offence
from qwed.store.conversation import Past
from qwed.store.known import Known, ReadOne
from qwed.store.live import LiveState
from qwed.store.merit import Merit
from qwed.store.parts import AgentChanged, ApprovalResolved, Conflict
from qwed.store.protocol import Change, Kept, Reservation, Settled, Settlement
from qwed.store.usage import NOTHING, Usage
from qwed.store.writer import Write
from qwed.store.writes import add_change, tally_row, write_of
from qwed.words import Decision, ErrorCode, Trust


class Decided(NamedTuple):
    """What a settlement comes to: its rows, and what is to be taken over with them."""

    write: Write
    after: Usage
    past: Past | None
    fallout: tuple[Change, ...]


class Made(NamedTuple):
    """What a change comes to: its rows, and the counters after it where it touches them."""

    write: Write
    after: Usage | None


class Deciding:
    """Decides over what is known and live. Whoever owns both sees to it that nobody else changes them meanwhile."""

    def __init__(
        self,
        *,
        known: Known,
        live: LiveState,
        chains: Chains,
        one: ReadOne,
        leaves: Callable[[str], int],
        max_open_approvals: int,
    ) -> None:
        self._known = known
        self._live = live
        self._chains = chains
        self._one = one
        self._leaves = leaves
        self._max_open_approvals = max_open_approvals
        self._next_index: dict[str, int] = {}

    def next(self, organisation_id: str) -> int:
        """Where the next leaf of a log stands."""
        index = self._next_index.get(organisation_id)
        return self._leaves(organisation_id) if index is None else index

    def forget(self) -> None:
        """What was accepted was not written: believe the tables again."""
        self._next_index.clear()
        self._chains.forget()

    # Decisions

    def settle(self, settlement: Settlement) -> Decided | ErrorCode:
        """What one decision writes, or why it cannot stand."""
        agent, past = settlement.agent, None
        if settlement.decision.commits:
            refusal = self._refuse_commit(settlement) or self._chains.refuses(settlement)
            if refusal is not None:
                return refusal
            past = self._past_after(settlement)
        after, fallout = self._after(settlement)
        settled = Settled(self.next(agent.organisation_id), after.spent)
        write = write_of(settlement, settled, past)
        write.usage = (agent.agent_id, *after.spent, *after.conduct, *after.merit)
        for place, change in enumerate(fallout, settled.log_index + 1):
            add_change(write, change, place)
        return Decided(write, after, past, fallout)

    def accept(self, settlement: Settlement, decided: Decided, submitted: int, durable: int) -> None:
        """Take over what is written with this number."""
        self._grow(decided.write)
        if settlement.link is not None:
            self._chains.put(settlement.agent.organisation_id, settlement.link, submitted, durable)
        self._live.accept(settlement, decided.after, decided.past, submitted)
        for change in decided.fallout:
            accept(change.parts, Desk(self._known, self._one, submitted, durable))

    def _grow(self, write: Write) -> None:
        for organisation_id, index, *_ in write.activities:
            self._next_index[organisation_id] = index + 1

    def _past_after(self, settlement: Settlement) -> Past | None:
        reservation = settlement.reservation
        if reservation is None or reservation.step.alone:
            return None
        return self._live.past(reservation).after(reservation.step, settlement.decision)

    def _after(self, settlement: Settlement) -> tuple[Usage, tuple[Change, ...]]:
        """The counters once the decision counts, and the trust it costs."""
        agent, at = settlement.agent, settlement.activity.at
        usage = self._live.usage(agent.agent_id)
        spent = usage.spent.at(at)
        if settlement.charge is not NOTHING:
            spent = spent.plus(settlement.charge, settlement.decision, agent.limits)
        if settlement.mark is Mark.NONE:
            return Usage(spent, usage.conduct, usage.merit), ()
        conduct, offences = usage.conduct.after(settlement.mark, at)
        fallout = self._degrade(settlement, offences) if offences else ()
        # A new level begins a new record.
        merit = Merit(since=at) if fallout else usage.merit.after(settlement.mark, settlement.activity.attested)
        return Usage(spent, conduct, merit), fallout

    def _refuse_commit(self, settlement: Settlement) -> ErrorCode | None:
        """Asked at the moment of truth: what was true when the walk began may not be true any more."""
        agent, reservation = settlement.agent, _reserved(settlement)
        current = self._known.agent(agent.agent_id)
        if current is None or not self._known.is_active(current):
            return ErrorCode.AGENT_SUSPENDED
        if current is not agent and current != agent:
            return ErrorCode.AGENT_CHANGED
        if settlement.pair is not None and self._known.boundary(agent.organisation_id).refuses(*settlement.pair):
            return ErrorCode.MESSAGE_BLOCKED
        if settlement.approval is not None and self._too_many_wait(agent):
            return ErrorCode.APPROVALS_FULL
        return self._live.refuses_commit(reservation)

    def _too_many_wait(self, agent: Agent) -> bool:
        return self._live.usage(agent.agent_id).spent.open_approvals >= self._max_open_approvals

    def _degrade(self, settlement: Settlement, offences: Sequence[Offence]) -> tuple[Change, ...]:
        """Spec 8.3: the changes that the offences bring, each from where the one before it left the agent."""
        current = self._known.agent(settlement.agent.agent_id)
        changes: list[Change] = []
        for offence in offences:
            if current is None or settlement.degrade is None or current.trust is Trust.UNTRUSTED:
                break
            after = replace(current, trust=Trust(max(current.trust - PENALTY[offence], 0)))
            change = settlement.degrade(current, after, offence)
            changes.append(change)
            current = after
        return tuple(changes)

    # Changes

    def change(self, change: Change, submitted: int, durable: int) -> Made | Conflict:
        """What one change writes, or why it cannot be made."""
        conflict = refuse(change.parts, Desk(self._known, self._one, submitted, durable))
        if conflict is not None:
            return conflict
        index = self.next(change.organisation_id)
        write = Write(result=Kept(index))
        add_change(write, change, index)
        if change.beside is not None:
            add_change(write, change.beside, self.next(change.beside.organisation_id))
        after = self._usage_after(change)
        if after is not None:
            write.usage = (change.agent_id, *after.spent, *after.conduct, *after.merit)
            write.tally = tally_row(change.agent_id, Decision.PENDING, change.activity, actions=0)
        return Made(write, after)

    def accept_change(self, change: Change, made: Made, submitted: int, durable: int) -> None:
        """Take over what is written with this number."""
        self._grow(made.write)
        accept(change.parts, Desk(self._known, self._one, submitted, durable))
        if made.after is not None:
            self._live.take_over(change.agent_id, made.after)

    def _usage_after(self, change: Change) -> Usage | None:
        """The counters once this is settled: what an action held is used or free, a new level begins a new record."""
        after = None
        for part in change.parts:
            if isinstance(part, ApprovalResolved) and part.kind == "action":
                usage = after or self._live.usage(part.agent_id)
                held = (part.cost, part.tokens, part.high_risk_calls)
                spent = usage.spent.at(part.at).resolved(*held, used=part.state == "approved")
                after = Usage(spent, usage.conduct, usage.merit.settled(part.state))
            elif isinstance(part, AgentChanged) and part.before.trust is not part.after.trust:
                usage = after or self._live.usage(part.after.agent_id)
                after = Usage(usage.spent, usage.conduct, Merit(since=change.activity.at))
        return after


def _reserved(settlement: Settlement) -> Reservation:
    if settlement.reservation is None:
        raise ValueError("a decision that commits needs a reserved step")
    return settlement.reservation
