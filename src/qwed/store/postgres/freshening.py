"""Before a request is walked through: what others may have changed meanwhile is read, for all who wait, in one go."""

import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from qwed.store import rows
from qwed.store.columns import COLUMNS
from qwed.store.conversation import Past
from qwed.store.postgres.dialect import keepable
from qwed.store.postgres.lines import ASKING, Line, Lines, Seat
from qwed.store.postgres.near import AGENT, ALL_IS_DURABLE, KEY, NearKnown, NearLive, NearMemories
from qwed.store.protocol import StoreError, Wanted
from qwed.store.usage import Usage
from qwed.store.writer import tried
from qwed.waiting import Soon, Ticket, announce

Row = tuple[Any, ...]
Pair = tuple[str, str]

MOST_AT_ONCE = 512
_ROUNDS = 2
"""The second for whom the first has found forgotten; whoever is still not near is looked for when they are needed."""

_STANDS = "o.epoch, o.erasures, o.halted_at IS NOT NULL"
_OF_PAIRS = "FROM unnest(%s::text[], %s::text[]) AS w (agent_id, {name}) JOIN {table} USING (agent_id, {name})"
ORGANISATIONS = f"SELECT {_STANDS}, o.organisation_id FROM organisations o WHERE o.organisation_id = ANY(%s)"  # noqa: S608 - constants


def _whose(table: str, name: str) -> str:
    """Rows with how their organisation stands: a row is never older than what is said of its organisation."""
    columns = ", ".join(f"t.{column}" for column in COLUMNS[table])
    joined = f"{table} t JOIN organisations o USING (organisation_id)"
    return f"SELECT {_STANDS}, t.organisation_id, {columns} FROM {joined} WHERE t.{name} = ANY(%s)"  # noqa: S608


KEYS, AGENTS = _whose("keys", "prefix"), _whose("agents", "agent_id")
USAGES = f"SELECT version, {', '.join(COLUMNS['usage'])} FROM usage WHERE agent_id = ANY(%s)"  # noqa: S608 - constants
CONVERSATIONS = (
    'SELECT agent_id, conversation_id, last_step, steps, fingerprint, repeats, "window" '
    + _OF_PAIRS.format(name="conversation_id", table="conversations")
)
MEMORIES = "SELECT agent_id, key, body_hash, answer, activity_id, expires_at " + _OF_PAIRS.format(
    name="key", table="memories"
)


class Needs(NamedTuple):
    """What is to be read for everybody who waits."""

    organisations: frozenset[str]
    prefixes: frozenset[str]
    agents: frozenset[str]
    usages: frozenset[str]
    conversations: frozenset[Pair]
    memories: frozenset[Pair]

    def questions(self) -> list[tuple[str, tuple[list[str], ...]]]:
        """The statements, in the order of the fields."""
        names = zip((ORGANISATIONS, KEYS, AGENTS, USAGES), self[:4], strict=True)
        pairs = zip((CONVERSATIONS, MEMORIES), self[4:], strict=True)
        return [
            *((statement, (sorted(wanted),)) for statement, wanted in names),
            *((statement, columns_of(wanted)) for statement, wanted in pairs),
        ]

    def read(self, line: Line) -> list[list[Row]]:
        """The rows, in one round trip."""
        with line.pipeline():
            cursors = [line.execute(statement, values) if values[0] else None for statement, values in self.questions()]
        return [[] if cursor is None else cursor.fetchall() for cursor in cursors]


def columns_of(pairs: Iterable[Pair]) -> tuple[list[str], list[str]]:
    """Pairs as two columns."""
    ordered = sorted(pairs)
    return [pair[0] for pair in ordered], [pair[1] for pair in ordered]


def usage_of(row: Row) -> tuple[Usage, int]:
    """The counters in a row that begins with their version."""
    return rows.to_usage(row[1:]), row[0]


class Freshening:
    """One thread with a connection of its own. Whoever waits when it has come back goes together the next time."""

    def __init__(
        self,
        lines: Lines,
        lock: threading.RLock,
        known: NearKnown,
        live: NearLive,
        memories: NearMemories,
        on_erased: Callable[[], None],
        soon: Soon,
    ) -> None:
        self._lines = lines
        self._lock = lock
        self._known = known
        self._live = live
        self._memories = memories
        self._on_erased = on_erased
        self._soon = soon
        self._seat = Seat(lines, ASKING)
        self._line: Line | None = None
        """The connection that was last read on."""
        self._turn: list[tuple[Wanted, Ticket[None]]] = []
        self._queue: SimpleQueue[list[tuple[Wanted, Ticket[None]]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="qwed-reader", daemon=True)
        self._thread.start()

    def ask(self, wanted: Wanted) -> Ticket[None] | None:
        """Completes when what is wanted is near, as it stood after this was asked."""
        if wanted.any_age and self._is_near(wanted):
            return None
        self._lines.require()
        ticket: Ticket[None] = Ticket()
        with self._lock:
            self._turn.append((wanted, ticket))
            first = len(self._turn) == 1
        if first:
            self._soon(self._hand_over)
        return ticket

    def _is_near(self, wanted: Wanted) -> bool:
        named = ((KEY, wanted.prefix), (AGENT, wanted.agent_id))
        return all(name is None or self._known.is_near(kind, name) for kind, name in named)

    def _hand_over(self) -> None:
        with self._lock:
            turn, self._turn = self._turn, []
        self._queue.put(turn)

    def close(self) -> None:
        """Answer who waits, then stop."""
        self._hand_over()
        self._queue.put(None)
        self._thread.join()
        self._seat.leave()

    def _run(self) -> None:
        while (turn := self._queue.get()) is not None:
            batch = [*turn]
            stop = self._gather(batch)
            self._answer(batch)
            if stop:
                return

    def _gather(self, batch: list[tuple[Wanted, Ticket[None]]]) -> bool:
        while len(batch) < MOST_AT_ONCE:
            try:
                more = self._queue.get_nowait()
            except Empty:
                return False
            if more is None:
                return True
            batch += more
        return False

    def _answer(self, batch: list[tuple[Wanted, Ticket[None]]]) -> None:
        failure = tried(lambda: self._freshen([wanted for wanted, _ticket in batch]))
        if len(batch) > 1 and failure is not None and not isinstance(failure, StoreError):
            # A row of one of them cannot be read, and the others are not to suffer for it.
            for each in batch:
                self._answer([each])
            return
        for _wanted, ticket in batch:
            if failure is None:
                ticket.complete(None)
            else:
                ticket.fail(failure)
        announce(ticket for _wanted, ticket in batch)

    def _freshen(self, asked: list[Wanted]) -> None:
        """Bring everything near."""
        for _ in range(_ROUNDS):
            needs, found = self._seat.ask(lambda line: self._read(asked, line))
            try:
                self._apply(needs, found)
            finally:
                # Also where a row after it could not be read: nobody is told of an erasure a second time.
                if self._known.take_erased():
                    self._on_erased()
            if all(map(self._is_near_or_nobody, asked)):
                return

    def _read(self, asked: list[Wanted], line: Line) -> tuple[Needs, list[list[Row]]]:
        with self._lock:
            if line is not self._line:
                # It may lead to a backup that took its place, or to a standby: what is in mind may be of another past.
                self._known.forget()
                self._live.doubt()
                self._line = line
            needs = self._needs(asked)
        return needs, needs.read(line)

    def _is_near_or_nobody(self, wanted: Wanted) -> bool:
        known, named = self._known, ((KEY, wanted.prefix), (AGENT, wanted.agent_id))
        return all(name is None or known.is_near(kind, name) or known.is_nobody(kind, name) for kind, name in named)

    def _needs(self, asked: list[Wanted]) -> Needs:
        """Whoever is near is as their organisation is; whoever is not, or was nobody, is looked for."""
        prefixes = {each.prefix for each in asked if each.prefix is not None}
        agents = {each.agent_id for each in asked if each.agent_id is not None}
        pairs = {pair for each in asked for pair in each.conversations}
        agents |= {agent_id for agent_id, _conversation in pairs}
        houses = {each.organisation_id for each in asked} | {self._known.home(KEY, name) for name in prefixes}
        houses |= {self._known.home(AGENT, name) for name in agents}
        memories = {each.memory for each in asked if each.memory is not None}
        return Needs(
            frozenset(house for house in houses if house is not None),
            self._strangers(KEY, prefixes),
            self._strangers(AGENT, agents),
            frozenset(each.agent_id for each in asked if each.spends and each.agent_id and keepable((each.agent_id,))),
            frozenset(filter(keepable, pairs)),
            frozenset(filter(keepable, memories)),
        )

    def _strangers(self, kind: str, names: set[str]) -> frozenset[str]:
        found = {name for name in names if not self._known.is_near(kind, name)}
        for name in found:
            # What cannot be in the tables is not looked for there.
            self._known.put_nobody(kind, name)
        return frozenset(name for name in found if keepable((name,)))

    def _apply(self, needs: Needs, found: list[list[Row]]) -> None:
        """Take over what was read, in that order: each statement sees what was committed before it began, so what an
        earlier one has found is forgotten where a later one says that its organisation was changed in between."""
        organisations, keys, agents, usages, conversations, memories = found
        with self._lock:
            for row in organisations:
                self._learn(row)
            for row in keys:
                self._learn(row)
                self._known.meet_key(rows.to_key(row[4:]))
            for row in agents:
                self._learn(row)
                self._known.meet_agent(rows.to_agent(row[4:]))
            self._put_usages(needs, usages)
            self._put_conversations(needs, conversations)
            self._put_memories(needs, memories)
            self._live.forget_old(ALL_IS_DURABLE)

    def _learn(self, row: Row) -> None:
        epoch, erasures, halted, organisation_id = row[:4]
        self._known.learn(organisation_id, epoch, erasures, halted)

    def _put_usages(self, needs: Needs, found: list[Row]) -> None:
        kept = {row[1]: usage_of(row) for row in found}
        for agent_id in needs.usages:
            # Nobody who is nobody is kept in mind.
            if agent_id in kept or self._known.is_near(AGENT, agent_id):
                self._live.put_usage(agent_id, *kept.get(agent_id, (Usage(), 0)))

    def _put_conversations(self, needs: Needs, found: list[Row]) -> None:
        kept = {row[:2]: Past(*row[2:]) for row in found}
        for place in needs.conversations:
            if place in kept or self._known.is_near(AGENT, place[0]):
                self._live.put_past(place, kept.get(place, Past()))

    def _put_memories(self, needs: Needs, found: list[Row]) -> None:
        kept = {row[:2]: row[2:] for row in found}
        for place in needs.memories:
            self._memories.put(place, kept.get(place))
