"""The shared store: any number of processes and machines decide over one PostgreSQL. DESIGN 6.

A request is walked through on what is near (`near.py`), which was made fresh for it (`freshening.py`). What it comes to
is decided under locks (`holding.py`), on what PostgreSQL says then (`ground.py`), together with whatever else waits
(`writing.py`, `transaction.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from qwed.store import rows
from qwed.store.archive import LARGEST_PAGE
from qwed.store.chains import Chains
from qwed.store.columns import insert
from qwed.store.either import EitherStore
from qwed.store.log import Sequencer
from qwed.store.merit import NO_MERIT, Merit
from qwed.store.parts import Conflict
from qwed.store.postgres.bringing import bring_up_to_start
from qwed.store.postgres.dialect import keepable, translated
from qwed.store.postgres.freshening import Freshening
from qwed.store.postgres.household import Household
from qwed.store.postgres.lines import ASKING, BROWSING, Line, Lines, Patience, Pool, Seat
from qwed.store.postgres.near import NearKnown, NearLive, NearMemories
from qwed.store.postgres.pairs import Pairs
from qwed.store.postgres.transaction import Asked, Near, Terms
from qwed.store.postgres.writing import Writing
from qwed.store.protocol import (
    Change,
    Kept,
    KeptApproval,
    Moved,
    Settled,
    Settlement,
    StoreError,
    Subject,
    Unreachable,
    Wanted,
)
from qwed.store.usage import NOTHING_SPENT, Spent
from qwed.waiting import Ticket
from qwed.words import ErrorCode
from qwed.words.clock import Clock

Row = tuple[Any, ...]

_MIGRATING = Patience(600, 60, 60)
_LINES_ASKING = _LINES_BROWSING = 4
_AT_ONCE = 16
"""Rows of a page that the server is asked for together."""
_LOOK_SECONDS = 1.0
"""Others ask for approvals as well, so what has run out is looked for as often."""


class PostgresStore(EitherStore):
    """Implements `Store`."""

    in_memory = False
    scrubbed = True
    """What was deleted is PostgreSQL's to clear away: it keeps no file that we could write over."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        sequencer: Sequencer,
        max_steps: int = 50,
        lease_seconds: float = 30,
        max_open_approvals: int = 1_000,
    ) -> None:
        super().__init__(clock, lease_seconds)
        self._next_look = 0.0
        self._known: NearKnown = NearKnown(self._lock, self._one, self._some, clock.monotonic)
        self._live: NearLive = NearLive(
            max_steps=max_steps,
            lease_seconds=lease_seconds,
            monotonic=clock.monotonic,
            load_conversation=self._load_conversation,
            load_usage=self._load_usage,
        )
        self._memories = NearMemories()
        self._chains = Chains(self._one)
        self._open(url, sequencer, Terms(max_steps, max_open_approvals))

    def _open(self, url: str, sequencer: Sequencer, terms: Terms) -> None:
        self._lines = Lines(url)
        self._bring_up(Seat(self._lines, _MIGRATING))
        self._asking = Pool(self._lines, ASKING, _LINES_ASKING)
        self._browsing = Pool(self._lines, BROWSING, _LINES_BROWSING)
        self._pairs = Pairs(self._load_bucket, self._asking)
        self._household = Household(
            self._lines,
            self._clock.now,
            lambda: self.on_beat(),
            lambda: self._asking.ask(lambda line: line.execute("SELECT 1")),
        )
        self._freshening = Freshening(
            self._lines, self._lock, self._known, self._live, self._memories, lambda: self.on_erased(), self._handing
        )
        self.freshen: Callable[[Wanted], Ticket[None] | None] | None = self._freshening.ask
        self._writing = Writing(
            self._lines,
            Near(self._lock, self._known, self._live, self._chains),
            terms,
            sequencer,
            self._committed,
            lambda: self.on_distrust(),
            self._handing,
            self.commits,
        )

    @staticmethod
    def _bring_up(seat: Seat) -> None:
        try:
            seat.ask(bring_up_to_start, "could not be brought to this version")
        except Unreachable:
            raise
        except StoreError as error:
            raise Unreachable(f"the database in PostgreSQL {error}") from error
        finally:
            seat.leave()

    def _handing(self, do: Callable[[], None]) -> None:
        self.soon(do)

    def up(self) -> bool:
        """Whether PostgreSQL has answered whoever asked it last."""
        return not self._lines.away

    def leads(self) -> bool:
        """Whether this process does what is done once for all."""
        return self._household.leads

    def mark(self, name: str, value: str) -> str:
        """What was first said under a name, by us or before us."""

        def say(line: Line) -> Row | None:
            line.execute("INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, value))
            return line.execute("SELECT value FROM meta WHERE name = %s", (name,)).fetchone()

        row = self._asking.ask(say, "could not be written to")
        return value if row is None else str(row[0])

    def close(self) -> None:
        """Write what is queued, and hang up."""
        self._writing.close()
        self._freshening.close()
        self._household.close()
        self._asking.close()
        self._browsing.close()
        self._lines.close()

    # Deciding

    def _memory(self, agent_id: str, key: str, now: float) -> Row | None:
        asked, row = self._memories.take((agent_id, key), now)
        return row if asked else super()._memory(agent_id, key, now)

    def settle(self, settlement: Settlement) -> Ticket[Settled | ErrorCode | Moved] | ErrorCode:
        """Decided when its turn has come."""
        if settlement.decision.commits and settlement.reservation is None:
            raise ValueError("a decision that commits needs a reserved step")
        if settlement.approval is not None:
            self._next_look = min(self._next_look, settlement.approval.expires_at)
        return self._writing.submit(Asked(settlement=settlement))

    def change(self, change: Change) -> Ticket[Kept | Conflict] | Conflict:
        """Decided when its turn has come."""
        self._next_look = 0.0
        return self._writing.submit(Asked(change=change))

    def take_token(self, organisation_id: str, pair: str, per_minute: int, now: float) -> float:
        """0.0 where the pair may send one more message, which is counted; else the seconds until it may."""
        return self._pairs.take((organisation_id, pair), per_minute, now)

    # Looking

    def durable(self) -> Ticket[None]:
        """Completes when everything submitted so far is written, or was refused."""
        return self._write()

    def merit(self, agent_id: str) -> Merit:
        """What speaks for an agent at its present level."""
        row = self._one(rows.SELECT_USAGE, (agent_id,))
        return NO_MERIT if row is None else rows.to_usage(row).merit

    def spent(self, agent_id: str, now: float) -> Spent:
        """The counters of an agent."""
        row = self._one(rows.SELECT_USAGE, (agent_id,))
        return (NOTHING_SPENT if row is None else rows.to_usage(row).spent).at(now)

    def expired_approvals(self, now: float, limit: int) -> Sequence[KeptApproval]:
        """What has run out, for whoever keeps house."""
        if now < self._next_look or not self.leads():
            return ()
        found = self._some(rows.SELECT_EXPIRED, (now, limit))
        self._next_look = now if found else self._look_after(now)
        return self._still_open(found)

    def _look_after(self, now: float) -> float:
        """When to look again: when the next one runs out, or when another may have been asked for elsewhere."""
        row = self._one(rows.SELECT_NEXT_EXPIRY, (now,))
        soon = now + _LOOK_SECONDS
        return soon if row is None or row[0] is None else min(soon, row[0])

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[KeptApproval]:
        """What has run out of one agent's."""
        return self._still_open(self._some(rows.SELECT_EXPIRED_OF, (agent_id, now)))

    def _still_open(self, found: list[Row]) -> list[KeptApproval]:
        """Without those that somebody is about to settle."""
        approvals = [KeptApproval(*row) for row in found]
        return [approval for approval in approvals if not self._live.is_freed(approval.approval_id)]

    def scrub(self) -> bool:
        """Nothing lies in files of ours."""
        return True

    # The database

    def add_subject(self, subject: Subject) -> Ticket[None]:
        """Keep a new subject, with whatever is written after it or before."""
        return self._writing.submit(Asked(statements=((insert("subjects"), tuple(subject)),)))

    def _write(self, *statements: tuple[str, Row]) -> Ticket[None]:
        return self._writing.submit(Asked(statements=statements, alone=bool(statements)))

    def _one(self, statement: str, values: Row) -> Row | None:
        if not keepable(values):
            return None
        return self._asking.ask(lambda line: line.execute(translated(statement), values).fetchone())

    def _some(self, statement: str, values: Row) -> list[Row]:
        return self._every(self._asking, statement, values)

    def _all(self, statement: str, values: Row) -> list[Row]:
        return self._every(self._browsing, statement, values)

    def _every(self, pool: Pool, statement: str, values: Row) -> list[Row]:
        if not keepable(values):
            return []
        return pool.ask(lambda line: line.execute(translated(statement), values).fetchall())

    def _page(self, statement: str, values: Row, payload: int) -> list[Row]:
        if not keepable(values):
            return []
        return self._browsing.ask(lambda line: _leafed(line, translated(statement), values, payload))


def _leafed(line: Line, statement: str, values: Row, payload: int) -> list[Row]:
    found: list[Row] = []
    left = LARGEST_PAGE
    with line.cursor() as cursor:
        for row in cursor.stream(statement, values, size=_AT_ONCE):
            found.append(row)
            left -= len(row[payload])
            if left < 0:
                break
    return found
