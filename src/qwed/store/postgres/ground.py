"""How things stand for one batch: locked, read, and changed by nobody else before the batch is over.

READ COMMITTED, so that each statement sees what was committed before it began. Locks are taken by statements of their
own, and what they protect is read by later ones: by then whoever held them before has committed or given up.
"""

import math
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

from qwed.store import rows
from qwed.store.chains import Chains
from qwed.store.columns import select
from qwed.store.conversation import NO_PAST, Conversation, Past
from qwed.store.deciding import Deciding
from qwed.store.known import Known
from qwed.store.live import LiveState
from qwed.store.postgres.dialect import keepable, translated
from qwed.store.postgres.freshening import CONVERSATIONS, ORGANISATIONS, USAGES, columns_of, usage_of
from qwed.store.postgres.holding import LOCK_AGENTS, LOCK_NAMES, Holding
from qwed.store.postgres.lines import Line
from qwed.store.postgres.near import NearKnown
from qwed.store.protocol import Reservation, Settlement
from qwed.store.usage import NOTHING, Usage

Row = tuple[Any, ...]
Pair = tuple[str, str]

_AGENTS = select("agents", "WHERE agent_id = ANY(%s)")
_MEMORIES = (
    "SELECT agent_id, key, expires_at FROM unnest(%s::text[], %s::text[]) AS w (agent_id, key) "
    "JOIN memories USING (agent_id, key)"
)


class FreshLive(LiveState):
    """Counters and conversations as they stand; who holds a step is the affair of the server that is asked."""

    def __init__(self, *, max_steps: int, holds: Callable[[Reservation], bool], read: "Reading") -> None:
        super().__init__(
            max_steps=max_steps,
            lease_seconds=math.inf,
            monotonic=lambda: 0.0,
            load_conversation=read.conversation,
            load_usage=read.usage,
        )
        self.max_steps = max_steps
        self._holds = holds

    def seed(self, agents: Mapping[str, Usage], pasts: Mapping[Pair, Past]) -> None:
        """What was read beforehand."""
        self._usages.update(agents)
        self._conversations.update((place, Conversation(past)) for place, past in pasts.items())

    def holds(self, reservation: Reservation) -> bool:
        """Whether the lease still stands: asked of whoever gave it away."""
        return self._holds(reservation)

    def past(self, reservation: Reservation) -> Past:
        """What was committed before the step, whoever did."""
        return NO_PAST if reservation.step.alone else self.conversation(*reservation.place[:2]).past

    def foreign(self, reservation: Reservation) -> int:
        """How many steps of the conversation other servers have committed."""
        here = self.conversation(*reservation.place[:2])
        return here.past.steps - here.written - reservation.conversation.written

    def accept(self, settlement: Settlement, after: Usage, past: Past | None, _written: int) -> None:
        """What the rest of the batch is decided on."""
        self.take_over(settlement.agent.agent_id, after)
        if past is not None and settlement.reservation is not None:
            here = self.conversation(*settlement.reservation.place[:2])
            here.past, here.written = past, here.written + 1


class Reading:
    """Reads inside the transaction: what was not thought of beforehand is read when it is asked for."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.versions: dict[str, int] = {}
        """Of the counters, before the batch."""

    def one(self, statement: str, values: Row) -> Row | None:
        """One row."""
        return self.line.execute(translated(statement), values).fetchone() if keepable(values) else None

    def some(self, statement: str, values: Row) -> list[Row]:
        """Every row."""
        return self.line.execute(translated(statement), values).fetchall() if keepable(values) else []

    def conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        """A conversation."""
        row = self.one(rows.SELECT_CONVERSATION, (agent_id, conversation_id))
        return Conversation(Past() if row is None else Past(*row))

    def usage(self, agent_id: str) -> Usage:
        """The counters of an agent."""
        found = self.line.execute(USAGES, ([agent_id],)).fetchone()
        usage, self.versions[agent_id] = (Usage(), 0) if found is None else usage_of(found)
        return usage


class Ground:
    """What a batch is decided on."""

    def __init__(
        self, line: Line, *, max_steps: int, max_open_approvals: int, holds: Callable[[Reservation], bool]
    ) -> None:
        self.reading = Reading(line)
        self.known = Known(RLock(), self.reading.one, self.reading.some)
        self.live = FreshLive(max_steps=max_steps, holds=holds, read=self.reading)
        self.deciding = Deciding(
            known=self.known,
            live=self.live,
            chains=Chains(self.reading.one),
            one=self.reading.one,
            leaves=lambda _organisation_id: 0,
            max_open_approvals=max_open_approvals,
        )
        """Leaves are numbered from nought: where their logs end is known once those are locked."""
        self._line = line
        self._memories: dict[Pair, float] = {}

    def take(self, held: Holding, settlements: list[Settlement], near: NearKnown, lock: RLock) -> None:
        """Begin the transaction, lock what it needs and read what it is decided on, in one round trip."""
        line, agents = self._line, sorted(held.agents)
        places = {each.reservation.place[:2] for each in settlements if each.reservation is not None}
        answers = {(each.agent.agent_id, each.key) for each in settlements if each.key is not None}
        with line.pipeline():
            line.execute("BEGIN")
            line.execute(LOCK_NAMES, held.names())
            line.execute(LOCK_AGENTS, (agents,))
            houses = line.execute(ORGANISATIONS, (sorted(held.shared),))
            usages = line.execute(USAGES, (agents,))
            pasts = line.execute(CONVERSATIONS, columns_of(places))
            memories = line.execute(_MEMORIES, columns_of(answers)) if answers else None
        kept = {row[1]: usage_of(row) for row in usages.fetchall()}
        self.reading.versions.update((agent_id, kept[agent_id][1] if agent_id in kept else 0) for agent_id in agents)
        committed = {row[:2]: Past(*row[2:]) for row in pasts.fetchall()}
        self.live.seed(
            {agent_id: kept[agent_id][0] if agent_id in kept else Usage() for agent_id in agents},
            {place: committed.get(place, NO_PAST) for place in places},
        )
        self._memories = {} if memories is None else {row[:2]: row[2] for row in memories.fetchall()}
        self._seed_known(houses.fetchall(), agents, near, lock)

    def _seed_known(self, houses: list[Row], agents: list[str], near: NearKnown, lock: RLock) -> None:
        """Of an organisation whose epoch is the one in mind, everything in mind is as it stands."""
        with lock:
            for epoch, _erasures, halted, organisation_id in houses:
                self.known.put_halted(organisation_id, halted)
                house = near.house(organisation_id)
                if house.epoch == epoch:
                    house.known.lend(self.known, organisation_id, agents)
        strange = [agent_id for agent_id in agents if not self.known.has_agent(agent_id)]
        if strange:
            for row in self._line.execute(_AGENTS, (strange,)).fetchall():
                self.known.put_agent(rows.to_agent(row))

    # What else must be true here, where others write as well

    def has_moved(self, settlement: Settlement) -> bool:
        """Whether others took the step, the budget or the key since the walk began."""
        return self._answered(settlement) or self._overspent(settlement) or self._overtaken(settlement)

    def _answered(self, settlement: Settlement) -> bool:
        """Also where it is refused: of the conversation it may have seen what was stored under the same key."""
        if settlement.key is None:
            return False
        return self._memories.get((settlement.agent.agent_id, settlement.key), -math.inf) > settlement.activity.at

    def _overspent(self, settlement: Settlement) -> bool:
        reservation, agent = settlement.reservation, settlement.agent
        if reservation is None or reservation.held is NOTHING or settlement.charge is NOTHING:
            return False
        usage = self.live.usage(agent.agent_id)
        usage.spent = usage.spent.at(settlement.activity.at)
        return usage.refuses(reservation.held, agent.limits) is not None

    def _overtaken(self, settlement: Settlement) -> bool:
        reservation = settlement.reservation
        if reservation is None or not settlement.decision.commits:
            return False
        past, step = self.live.past(reservation), reservation.step
        # A number that may have been allotted elsewhere as well is nobody's: another one is allotted then.
        own = step.allotted and self.live.foreign(reservation) == reservation.foreign
        refusal = past.refuses_step(step.number, self.live.max_steps, allotted=own)
        return refusal is not None or past.refuses_loop(step) is not None

    def remember(self, settlement: Settlement) -> None:
        """What the rest of the batch must not answer a second time."""
        if settlement.memory is not None:
            self._memories[settlement.agent.agent_id, settlement.memory.key] = settlement.memory.expires_at
