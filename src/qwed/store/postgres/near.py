"""What one of many servers has in mind of what all of them share. Nothing that must be right depends on it.

Whatever it says was true at some moment since the request began that looks at it: each begins by asking PostgreSQL how
things stand (`freshening.py`), and is asked again when it is written (`ground.py`).
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Any

from qwed.store import rows
from qwed.store.agent import Agent, Key
from qwed.store.boundary import Boundary
from qwed.store.conversation import Conversation, Past, Step
from qwed.store.known import Known, ReadAll, ReadOne
from qwed.store.live import LiveState, Place
from qwed.store.parts import ApprovalResolved, Webhook
from qwed.store.protocol import Reservation, Settlement
from qwed.store.usage import NOTHING, Charge, Usage
from qwed.words import ErrorCode

Row = tuple[Any, ...]

AGENT, KEY = "agent", "key"
MOST_NOBODIES = 10_000
MOST_MEMORIES = 1_000
ALL_IS_DURABLE = 2**62
"""What is in mind was written before it came there."""
UNSURE = -1
"""In place of how many steps others have taken, where nobody can say: as many it never is."""
_NOBODY_SECONDS = 1.0


class House:
    """One organisation as it is known, and of which epoch: what is known is as new as that, or newer."""

    __slots__ = ("epoch", "known")

    def __init__(self, known: Known) -> None:
        self.known = known
        self.epoch = -1


class NearKnown(Known):
    """Who there is, house by house: one whose epoch was raised is forgotten as a whole.

    The lock is held while something is read that is not known yet: so nothing that was read before a house was
    forgotten is remembered after it.
    """

    def __init__(self, lock: RLock, one: ReadOne, every: ReadAll, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._erasures: dict[str, int] = {}
        """How many were erased of each organisation when it was last looked at; never forgotten with it, because what
        is in mind about them, and elsewhere in this process, is not."""
        self._somebody_was_erased = False
        super().__init__(lock, one, every)

    def forget(self) -> None:
        """Know nothing any more."""
        super().forget()
        self._houses: dict[str, House] = {}
        self._homes: dict[tuple[str, str], str] = {}
        """Whose an agent or a key is, for ever."""
        self._nobodies: OrderedDict[tuple[str, str], float] = OrderedDict()
        """Names of nobody, and when that was found out: it does not hold for long."""

    def house(self, organisation_id: str) -> House:
        """What is known of one organisation."""
        found = self._houses.get(organisation_id)
        if found is None:
            with self._lock:
                made = House(Known(self._lock, self._one, self._every))
                found = self._houses.setdefault(organisation_id, made)
        return found

    def forget_house(self, organisation_id: str) -> None:
        """Something of it was changed."""
        self._houses.pop(organisation_id, None)
        self._nobodies.clear()

    def learn(self, organisation_id: str, epoch: int, erasures: int, halted: bool) -> None:
        """How an organisation stands: what was in mind of another epoch is forgotten."""
        before = self._houses.get(organisation_id)
        if before is not None and before.epoch == epoch:
            return
        self.forget_house(organisation_id)
        house = self.house(organisation_id)
        house.epoch = epoch
        house.known.put_halted(organisation_id, halted)
        seen, self._erasures[organisation_id] = self._erasures.get(organisation_id, 0), erasures
        self._somebody_was_erased |= seen != erasures

    def take_erased(self) -> bool:
        """Whether somebody was erased, as far as was learnt since this was asked last."""
        with self._lock:
            erased, self._somebody_was_erased = self._somebody_was_erased, False
        return erased

    # Agents and keys, which say by themselves whose they are

    def home(self, kind: str, name: str) -> str | None:
        """The organisation of an agent or a key, where it is known."""
        return self._homes.get((kind, name))

    def is_near(self, kind: str, name: str) -> bool:
        """Whether the agent or the key is in mind."""
        home = self._homes.get((kind, name))
        house = None if home is None else self._houses.get(home)
        if house is None:
            return False
        return house.known.has_agent(name) if kind == AGENT else house.known.has_key(name)

    def is_nobody(self, kind: str, name: str) -> bool:
        """Whether nobody of that name was there a moment ago."""
        found = self._nobodies.get((kind, name))
        return found is not None and self._monotonic() - found < _NOBODY_SECONDS

    def put_nobody(self, kind: str, name: str) -> None:
        """Nobody of that name is there."""
        self._nobodies[kind, name] = self._monotonic()
        self._nobodies.move_to_end((kind, name))
        if len(self._nobodies) > MOST_NOBODIES:
            self._nobodies.popitem(last=False)

    def agent(self, agent_id: str) -> Agent | None:
        """The agent as it stands."""
        home = self._homes.get((AGENT, agent_id))
        if home is not None:
            return self.house(home).known.agent(agent_id)
        with self._lock:
            row = self._stranger(AGENT, agent_id, rows.SELECT_AGENT)
            return None if row is None else self.meet_agent(rows.to_agent(row))

    def meet_agent(self, agent: Agent) -> Agent:
        """An agent as it was read; the very same that is in mind, where there is one."""
        self._homes[AGENT, agent.agent_id] = agent.organisation_id
        return self.house(agent.organisation_id).known.meet_agent(agent)

    def key(self, prefix: str) -> Key | None:
        """The key behind a public prefix, revoked or not."""
        home = self._homes.get((KEY, prefix))
        if home is not None:
            return self.house(home).known.key(prefix)
        with self._lock:
            row = self._stranger(KEY, prefix, rows.SELECT_KEY)
            return None if row is None else self.meet_key(rows.to_key(row))

    def meet_key(self, key: Key) -> Key:
        """A key as it was read; the very same that is in mind, where there is one."""
        self._homes[KEY, key.prefix] = key.organisation_id
        return self.house(key.organisation_id).known.meet_key(key)

    def _stranger(self, kind: str, name: str, statement: str) -> Row | None:
        """The row of somebody whose home is not known; the lock is held until they are met (see above)."""
        if self.is_nobody(kind, name):
            return None
        row = self._one(statement, (name,))
        if row is None:
            self.put_nobody(kind, name)
        return row

    # Organisations

    def halted(self, organisation_id: str) -> bool:
        """Whether the kill switch is thrown."""
        return self.house(organisation_id).known.halted(organisation_id)

    def keys(self, organisation_id: str) -> list[Key]:
        """Every key of an organisation, oldest first."""
        return self.house(organisation_id).known.keys(organisation_id)

    def tools(self, organisation_id: str) -> dict[str, bytes]:
        """The organisation's own rows of the registry."""
        return self.house(organisation_id).known.tools(organisation_id)

    def boundary(self, organisation_id: str) -> Boundary:
        """Who may not send messages to whom, and who is trusted."""
        return self.house(organisation_id).known.boundary(organisation_id)

    def webhook(self, organisation_id: str) -> Webhook | None:
        """Where the organisation wants to be told."""
        return self.house(organisation_id).known.webhook(organisation_id)


class NearMemories:
    """Stored answers that requests have asked for and not yet looked at: each is looked at once."""

    def __init__(self) -> None:
        self._asked: OrderedDict[Place, Row | None] = OrderedDict()

    def put(self, place: Place, row: Row | None) -> None:
        """What is stored for an agent under a key: what the body hashed to, the answer, its activity, its end."""
        self._asked[place] = row
        self._asked.move_to_end(place)
        if len(self._asked) > MOST_MEMORIES:
            self._asked.popitem(last=False)

    def take(self, place: Place, now: float) -> tuple[bool, Row | None]:
        """Whether it was asked for, and what is stored and not over."""
        if place not in self._asked:
            return False, None
        row = self._asked.pop(place)
        return True, None if row is None or row[3] <= now else row[:3]


class NearLive(LiveState):
    """Steps and budget that requests of this server hold, over what all servers have committed.

    Of two states of one row the newer one is believed, whichever was heard of first: a conversation says by its steps
    how new it is, counters by their version. Of a conversation, `written` counts the steps that this server committed.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._versions: dict[str, int] = {}
        self._promised: dict[str, list[tuple[int, Reservation]]] = {}
        self._freed: dict[str, tuple[Usage, Charge]] = {}
        self._doubted: set[Place] = set()
        """Conversations in use that may be ahead of what is kept: see `doubt`."""

    def reserve(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        """Hold a step, and know how many were taken elsewhere by then."""
        self.forget_old(ALL_IS_DURABLE)
        held = super().reserve(agent, conversation_id, step)
        if isinstance(held, Reservation) and step.allotted:
            here = held.conversation
            held.foreign = UNSURE if self._is_promised(held) else here.past.steps - here.written
        return held

    def _is_promised(self, held: Reservation) -> bool:
        """Whether a step of its conversation is about to be ours: what was read may count it, `written` does not."""
        promised = self._promised.get(held.agent.agent_id, ())
        return any(each.place[:2] == held.place[:2] for _version, each in promised)

    def put_usage(self, agent_id: str, read: Usage, version: int) -> None:
        """Counters as they were read or written; what is held stays held, but for what they contain already."""
        for promised, reservation in self._promised.get(agent_id, ()):
            if promised <= version:
                self._settle(reservation)
        known = self._usages.setdefault(agent_id, read)
        if version >= self._versions.get(agent_id, 0):
            self._versions[agent_id] = version
            known.spent, known.conduct, known.merit = read.spent, read.conduct, read.merit

    def doubt(self) -> None:
        """What was read may be of another past: whatever is read next is believed, be it older."""
        self._versions.clear()
        for place in [place for place, known in self._conversations.items() if not known.reserved]:
            del self._conversations[place]
        for known in self._conversations.values():
            known.written = 0
        self._doubted = set(self._conversations)

    def put_past(self, place: Place, past: Past) -> None:
        """A conversation as it was read or written."""
        known = self._conversations.get(place)
        if known is None:
            self._conversations[place] = Conversation(past)
        elif past.steps >= known.past.steps or place in self._doubted:
            self._doubted.discard(place)
            known.past = past

    def promise(self, agent_id: str, version: int, reservation: Reservation) -> None:
        """With this version of its counters a step is about to be committed: whoever reads them sees it in them."""
        self._promised.setdefault(agent_id, []).append((version, reservation))

    def break_promises(self) -> None:
        """What was about to be committed is, or will not be."""
        self._promised.clear()

    def free(self, part: ApprovalResolved) -> None:
        """What an approval holds is about to be free: nobody is refused because of it meanwhile."""
        if part.approval_id in self._freed:
            return
        charge = Charge(cost=part.cost, tokens=part.tokens, high_risk_calls=part.high_risk_calls)
        if part.kind != "action" or part.state == "approved":
            charge = NOTHING
        usage = self.usage(part.agent_id)
        usage.held = usage.held.minus(charge)
        self._freed[part.approval_id] = usage, charge

    def is_freed(self, approval_id: str) -> bool:
        """Whether somebody has said so."""
        return approval_id in self._freed

    def hold_again(self, part: ApprovalResolved) -> None:
        """It is free by now, or not: either way the counters say so."""
        usage, charge = self._freed.pop(part.approval_id, (None, NOTHING))
        if usage is not None:
            usage.held = usage.held.plus(charge)

    def keep(self, settlement: Settlement, after: Usage, past: Past | None, version: int) -> None:
        """Take over what was committed."""
        reservation = settlement.reservation
        if reservation is not None:
            self._settle(reservation)
            if past is not None:
                reservation.conversation.written += 1
                self.put_past(reservation.place[:2], past)
        self.put_usage(settlement.agent.agent_id, after, version)

    def _settle(self, reservation: Reservation) -> None:
        self.release(reservation)
        reservation.settled = True
