"""One batch, one transaction, three round trips: what it needs, the ends of its logs, everything it writes."""

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, NamedTuple

import msgspec
import psycopg

from qwed.store import parts
from qwed.store.chains import Chains
from qwed.store.deciding import Decided, Made
from qwed.store.log import Integration, Sequencer
from qwed.store.parts import Conflict
from qwed.store.postgres.batch import LOCK_LOGS, WRITE_BATCH, Log, batch_values, border_of
from qwed.store.postgres.dialect import translated
from qwed.store.postgres.ground import Ground
from qwed.store.postgres.holding import holding
from qwed.store.postgres.lines import Line
from qwed.store.postgres.near import NearKnown, NearLive
from qwed.store.protocol import MOVED, Change, Settlement
from qwed.store.writer import Write
from qwed.waiting import Ticket
from qwed.words import ErrorCode

Row = tuple[Any, ...]
Statement = tuple[str, Row]

_LEAF = 6
_LEAVES_THE_EPOCH = (
    parts.AgentStands,
    parts.OrganisationStands,
    parts.Executed,
    parts.AttestationRevoked,
)
"""Parts that nobody keeps in mind."""


def run(line: Line, statements: Iterable[Statement]) -> None:
    """Say these, as PostgreSQL reads them."""
    for statement, values in statements:
        line.execute(translated(statement), values)


class Asked(msgspec.Struct, eq=False):
    """Something that waits to be written: a decision, a change, or plain statements."""

    ticket: Ticket[Any] = msgspec.field(default_factory=Ticket)
    settlement: Settlement | None = None
    change: Change | None = None
    statements: tuple[Statement, ...] = ()
    alone: bool = False
    """Whether it is a transaction of its own."""

    @property
    def size(self) -> int:
        """Roughly how many characters it brings."""
        about = self.settlement or self.change
        return 0 if about is None else len(about.activity.leaf) + len(about.activity.payload)


class Outcome(msgspec.Struct, eq=False):
    """What became of one of them."""

    asked: Asked
    result: Any = None
    """What its ticket comes to: a place in the log, a refusal, a conflict, or that the ground has moved."""
    failure: BaseException | None = None
    decided: Decided | Made | None = None
    """What is written."""


class Near(NamedTuple):
    """What this server has in mind."""

    lock: RLock
    known: NearKnown
    live: NearLive
    chains: Chains

    def expect(self, asked: Asked, number: int, done: int) -> None:
        """What follows from it is reckoned with as soon as it is asked for: the next one need not wait for it."""
        with self.lock:
            if asked.settlement is not None and asked.settlement.link is not None:
                self.chains.put(asked.settlement.agent.organisation_id, asked.settlement.link, number, done)
            for part in _resolved(asked):
                self.live.free(part)

    def let_go(self, outcome: Outcome) -> None:
        """It was answered: what was reckoned with is so, or is not."""
        with self.lock:
            settlement = outcome.asked.settlement
            if settlement is not None and settlement.link is not None and outcome.decided is None:
                self.chains.drop(settlement.agent.organisation_id, settlement.link.chain_id)
            for part in _resolved(outcome.asked):
                self.live.hold_again(part)


def _resolved(asked: Asked) -> Iterable[parts.ApprovalResolved]:
    if asked.change is not None:
        for part in asked.change.parts:
            if isinstance(part, parts.ApprovalResolved):
                yield part


class Terms(NamedTuple):
    """What a decision must keep to."""

    max_steps: int
    max_open_approvals: int


class Transaction:
    """One attempt at a batch on one connection."""

    def __init__(self, line: Line, batch: list[Asked], near: Near, terms: Terms, sequencer: Sequencer) -> None:
        self._line = line
        self._near = near
        self._sequencer = sequencer
        self._settlements = [each.settlement for each in batch if each.settlement is not None]
        self._changes = [each.change for each in batch if each.change is not None]
        self.outcomes = [Outcome(each) for each in batch]
        self.statements: list[Statement] = [statement for each in batch for statement in each.statements]
        """What is written before anything else: subjects, whose keys the leaves of this batch were sealed with."""
        self.grown: Integration | None = None
        self.commits = False
        """Whether COMMIT was sent: from then on only the database knows whether it is written."""
        self._ground = Ground(line, holds=self._holds, **terms._asdict())

    def _holds(self, reservation: Any) -> bool:
        with self._near.lock:
            return self._near.live.holds(reservation)

    def run(self, decide: Callable[[Callable[[], Any]], Any]) -> None:
        """All of it or nothing. `decide` calls what it is given, and gives what that raises in place of a result."""
        held = holding(self._settlements, self._changes)
        self._ground.take(held, self._settlements, self._near.known, self._near.lock)
        for outcome in self.outcomes:
            self._decide(outcome, decide)
        writes = self._writes()
        if not writes and not self.statements:
            self._line.execute("ROLLBACK")
            return
        grown = self.grown = self._integrate(writes)
        values = batch_values(writes, grown)
        self._promise()
        self.commits = True
        with self._line.pipeline():
            run(self._line, [*self.statements, *(statement for write in writes for statement in write.statements)])
            self._line.execute(WRITE_BATCH, values)
            self._line.execute("COMMIT")

    def _decide(self, outcome: Outcome, decide: Callable[[Callable[[], Any]], Any]) -> None:
        settlement, change = outcome.asked.settlement, outcome.asked.change
        if settlement is not None:
            found = decide(lambda: self._settled(settlement))
        elif change is not None:
            found = decide(lambda: self._changed(change))
        else:
            return
        if isinstance(found, psycopg.Error):
            # Nothing more can be said in this transaction.
            raise found
        if isinstance(found, Exception):
            outcome.failure = found
        elif isinstance(found, Decided | Made):
            outcome.decided = found
        else:
            outcome.result = found

    def _settled(self, settlement: Settlement) -> Any:
        if self._ground.has_moved(settlement):
            return MOVED
        decided = self._ground.deciding.settle(settlement)
        if isinstance(decided, Decided):
            self._ground.deciding.accept(settlement, decided, 1, 0)
            self._ground.remember(settlement)
        return decided

    def _changed(self, change: Change) -> Any:
        made = self._ground.deciding.change(change, 1, 0)
        if isinstance(made, Made):
            self._ground.deciding.accept_change(change, made, 1, 0)
        return made

    def _writes(self) -> list[Write]:
        return [outcome.decided.write for outcome in self.outcomes if outcome.decided is not None]

    def _integrate(self, writes: list[Write]) -> Integration:
        """Put the leaves at the ends of their logs, whose rows are held from here on."""
        houses = sorted({row[0] for write in writes for row in write.activities})
        logs = {house: Log(house, 0) for house in houses}
        logs |= {row[0]: Log(*row) for row in self._line.execute(LOCK_LOGS, (houses,)).fetchall()}
        for write in writes:
            write.activities = tuple((row[0], logs[row[0]].size + row[1], *row[2:]) for row in write.activities)
            if write.activities:
                write.result = write.result._replace(log_index=write.activities[0][1])
        leaves = [(row[0], row[1], row[_LEAF]) for write in writes for row in write.activities]
        return self._sequencer.integrate(leaves, border_of(logs))

    def _promise(self) -> None:
        with self._near.lock:
            for settlement, _decided in self._decisions():
                if settlement.reservation is not None:
                    version = self._version(settlement.agent.agent_id)
                    self._near.live.promise(settlement.agent.agent_id, version, settlement.reservation)

    def _version(self, agent_id: str) -> int:
        """Of the counters as this batch leaves them."""
        return self._ground.reading.versions[agent_id] + 1

    def _decisions(self) -> Iterable[tuple[Settlement, Decided]]:
        for outcome in self.outcomes:
            if outcome.asked.settlement is not None and isinstance(outcome.decided, Decided):
                yield outcome.asked.settlement, outcome.decided

    def keep(self) -> None:
        """It is written: take over what it changed, and say where everything stands."""
        live = self._near.live
        with self._near.lock:
            for settlement, decided in self._decisions():
                live.keep(settlement, decided.after, decided.past, self._version(settlement.agent.agent_id))
            self._keep_changes()
        for outcome in self.outcomes:
            if outcome.decided is not None and self.grown is not None:
                write = outcome.decided.write
                house, index, *_ = write.activities[0]
                outcome.result = write.result._replace(placed=self.grown.place(house, index))

    def _keep_changes(self) -> None:
        for outcome in self.outcomes:
            change = outcome.asked.change
            if change is not None and isinstance(outcome.decided, Made) and outcome.decided.after is not None:
                after = outcome.decided.after
                self._near.live.put_usage(change.agent_id, after, self._version(change.agent_id))

    def settle_mind(self) -> None:
        """Whether it is written or not: what it showed to be otherwise than it was in mind is not in mind any more."""
        with self._near.lock:
            self._near.live.break_promises()
            for outcome in self.outcomes:
                for house in _houses(outcome):
                    self._near.known.forget_house(house)

    @property
    def tells(self) -> bool:
        """Whether it brings a notice."""
        return any(write.tells for write in self._writes())

    @property
    def witness(self) -> tuple[str, str] | None:
        """The log and the id of the first leaf: where that is, all of it is."""
        for write in self._writes():
            for row in write.activities:
                return row[0], row[2]
        return None


def _houses(outcome: Outcome) -> Iterable[str]:
    """The organisations that are not as they were in mind."""
    settlement, change = outcome.asked.settlement, outcome.asked.change
    if settlement is not None:
        fallen = isinstance(outcome.decided, Decided) and bool(outcome.decided.fallout)
        if fallen or isinstance(outcome.result, ErrorCode):
            yield settlement.agent.organisation_id
    elif change is not None:
        raises = any(not isinstance(part, _LEAVES_THE_EPOCH) for part in change.parts)
        if raises or isinstance(outcome.result, Conflict):
            yield change.organisation_id
