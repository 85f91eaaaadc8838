"""The embedded store: SQLite in one directory, owned by one process. DESIGN 6."""

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qwed.store import rows
from qwed.store.agent import Agent, Key
from qwed.store.archive import LARGEST_PAGE
from qwed.store.buckets import Buckets
from qwed.store.chains import ChainTable, End
from qwed.store.changes import Desk, accept, refuse
from qwed.store.conduct import PENALTY, Conduct, Mark, Offence
from qwed.store.conversation import Conversation, Past, Step
from qwed.store.jobs import JobTable
from qwed.store.known import Known
from qwed.store.live import LiveState
from qwed.store.log import LogTable, Sequencer, integrate_backlog, nobody_listens
from qwed.store.merit import Merit
from qwed.store.messages import MessageTable
from qwed.store.migrate import migrate
from qwed.store.outbox import OutboxTable
from qwed.store.parts import AgentChanged, ApprovalResolved, Conflict, Webhook
from qwed.store.place import FILE_NAME, LOCK_NAME, StillThere, Telling, connect, own
from qwed.store.protocol import (
    Change,
    Kept,
    KeptApproval,
    KeyClaim,
    Remembered,
    Reservation,
    Settled,
    Settlement,
    StoreError,
)
from qwed.store.subjects import SubjectTable
from qwed.store.usage import NOTHING, Charge, Exceeded, Spent, Usage
from qwed.store.writer import ClosedWriter, GroupWriter, InlineWriter, Write
from qwed.store.writes import add_change, tally_row, write_of
from qwed.waiting import Soon, Ticket, announce, at_once
from qwed.words import Decision, ErrorCode, Trust
from qwed.words.clock import Clock

MEMORY = ":memory:"
NEVER = float("inf")
_SOON = 1.0
_READING, _APART = Telling("could not read"), Telling("could not run apart")


class SqliteStore(OutboxTable, JobTable, LogTable, SubjectTable, MessageTable, ChainTable):
    """Implements `Store`. Hot state lives in memory and is written with each decision: see `LiveState` and `Known`."""

    def __init__(
        self,
        place: Path | str,
        *,
        clock: Clock,
        sequencer: Sequencer,
        max_steps: int = 50,
        lease_seconds: float = 30,
        max_open_approvals: int = 1_000,
    ) -> None:
        self._clock = clock
        self._max_open_approvals = max_open_approvals
        self.on_notice: Callable[[], None] = _nobody
        """Called from the writing thread once a notice is durable; must not wait."""
        self.on_commit: Callable[[Collection[str]], None] = nobody_listens
        self.on_distrust: Callable[[], None] = _nobody
        self.soon: Soon = at_once
        self._sequencer = sequencer
        self.in_memory = place == MEMORY
        self._lock = threading.RLock()
        self._lock_file: int | None = None
        self._live = LiveState(
            max_steps=max_steps,
            lease_seconds=lease_seconds,
            monotonic=clock.monotonic,
            load_conversation=self._load_conversation,
            load_usage=self._load_usage,
        )
        self._next_index: dict[str, int] = {}
        self._submitted = 0
        self._next_expiry = 0.0
        self._keys_in_flight: dict[tuple[str, str], float] = {}
        self._chains: dict[tuple[str, str], End] = {}
        self._lease_seconds = lease_seconds
        self._known = Known(self._lock, self._one, self._some)
        self._buckets = Buckets(self._load_bucket)
        # Last: nobody could give the directory back for a store that was never made.
        self._open(place)

    def _open(self, place: Path | str) -> None:
        self._writer: GroupWriter | InlineWriter | ClosedWriter
        self._fresh = False
        self._file: Path | None = None
        self._browse_lock: threading.Lock | threading.RLock
        if place == MEMORY:
            self._reader = self._browser = connect(MEMORY)
            self._browse_lock = self._lock
            migrate(self._reader)
            self._writer = InlineWriter(self._reader, self._sequencer, self._committed)
            self._fresh = True
            return
        directory = Path(place)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = own(directory / LOCK_NAME)
        with ExitStack() as failing:
            failing.callback(self._give_back_directory)
            with Telling("could not be opened"):
                self._open_file(directory / FILE_NAME)
            failing.pop_all()

    def _open_file(self, file: Path) -> None:
        self._file = file
        writing = connect(str(file))
        os.chmod(file, 0o600)
        migrate(writing)
        integrate_backlog(writing, self._sequencer)
        # Two readers, because a long page of history must not hold up a decision that reads one row.
        self._reader, self._browser = connect(str(file)), connect(str(file))
        self._browse_lock = threading.Lock()
        self._still_there = StillThere(file).check
        self._writer = GroupWriter(
            writing, self._sequencer, self._distrust, self._still_there, self._committed, lambda do: self.soon(do)
        )

    def _committed(self, organisations: Collection[str], notices: bool) -> None:
        if organisations:
            self.on_commit(organisations)
        if notices:
            self.on_notice()

    def close(self) -> None:
        """Write what is queued and give the directory back."""
        with self._lock:
            writer, self._writer = self._writer, ClosedWriter(self._writer.drain)
            self._file = None
        with self._browse_lock:
            self._browser.close()
        # Under its lock: closing a connection that another thread reads from ends the process.
        with self._lock:
            self._reader.close()
        writer.close()
        self._give_back_directory()

    def _give_back_directory(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    # Who there is

    def add_organisation(self, organisation_id: str, name: str, now: float, owner: Key) -> Ticket[None]:
        return self._write(
            (rows.INSERT_ORGANISATION, (organisation_id, name, now)),
            (rows.INSERT_KEY, rows.of_key(owner)),
        )

    def first_organisation(self) -> str | None:
        row = self._one("SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1", ())
        return None if row is None else str(row[0])

    def find_key(self, prefix: str) -> Key | None:
        known = self._known.key(prefix)
        return None if known is None or known.revoked_at is not None else known

    def list_keys(self, organisation_id: str) -> Sequence[Key]:
        return self._known.keys(organisation_id)

    def find_agent(self, agent_id: str) -> Agent | None:
        return self._known.agent(agent_id)

    def list_agents(self, organisation_id: str, limit: int, after: str) -> Sequence[Agent]:
        found = self._all(
            rows.SELECT_AGENTS,
            (organisation_id, after, limit),
        )
        return [rows.to_agent(row) for row in found]

    def halted(self, organisation_id: str) -> bool:
        return self._known.halted(organisation_id)

    def tool_rows(self, organisation_id: str) -> dict[str, bytes]:
        return self._known.tools(organisation_id)

    def webhook(self, organisation_id: str) -> Webhook | None:
        return self._known.webhook(organisation_id)

    # Deciding

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim:
        place = (agent_id, key)
        with self._lock:
            if self._keys_in_flight.get(place, 0.0) > self._clock.monotonic():
                return KeyClaim(refusal="a request with this key is still being decided: ask again when it is answered")
            row = self._one(
                "SELECT body_hash, answer, activity_id FROM memories WHERE agent_id = ? AND key = ? AND expires_at > ?",
                (agent_id, key, now),
            )
            if row is None:
                self._keys_in_flight[place] = self._clock.monotonic() + self._lease_seconds
                return KeyClaim()
        if row[0] != body_hash:
            return KeyClaim(refusal="this key was used with another request: use a new key for a new request")
        return KeyClaim(remembered=Remembered(row[1], row[2]))

    def release_key(self, agent_id: str, key: str) -> None:
        with self._lock:
            self._keys_in_flight.pop((agent_id, key), None)

    def reserve_step(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        with self._lock:
            self._live.forget_old(self._writer.written)
            return self._live.reserve(agent, conversation_id, step)

    def hold(self, reservation: Reservation, charge: Charge, now: float) -> Exceeded | None:
        with self._lock:
            return self._live.hold(reservation, charge, now)

    def release(self, reservation: Reservation) -> None:
        with self._lock:
            self._live.release(reservation)

    def settle(self, settlement: Settlement) -> Ticket[Settled] | ErrorCode:
        agent, decision = settlement.agent, settlement.decision
        with self._lock:
            past = None
            if decision.commits:
                refusal = self._refuse_commit(settlement) or self._refuse_link(settlement)
                if refusal is not None:
                    return refusal
                past = _past_after(settlement)
            after, fallout = self._after(settlement)
            settled = Settled(self._next(agent.organisation_id), after.spent)
            write = write_of(settlement, settled, past)
            write.usage = (agent.agent_id, *after.spent, *after.conduct, *after.merit)
            for place, change in enumerate(fallout, settled.log_index + 1):
                add_change(write, change, place)
            ticket = self._submit(write, settlement.activity.at)
            if settlement.approval is not None:
                self._next_expiry = min(self._next_expiry, settlement.approval.expires_at)
            if settlement.link is not None:
                self._put_link(agent.organisation_id, settlement.link, self._submitted, self._writer.written)
            self._live.accept(settlement, after, past, self._submitted)
            for change in fallout:
                accept(change.parts, self._desk())
            return ticket

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
        reservation, agent = settlement.reservation, settlement.agent
        if reservation is None:
            raise ValueError("a decision that commits needs a reserved step")
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

    def change(self, change: Change) -> Ticket[Kept] | Conflict:
        with self._lock:
            conflict = refuse(change.parts, self._desk())
            if conflict is not None:
                return conflict
            index = self._next(change.organisation_id)
            write = Write(result=Kept(index))
            add_change(write, change, index)
            if change.beside is not None:
                add_change(write, change.beside, self._next(change.beside.organisation_id))
            after = self._usage_after(change)
            if after is not None:
                write.usage = (change.agent_id, *after.spent, *after.conduct, *after.merit)
                write.tally = tally_row(change.agent_id, Decision.PENDING, change.activity, actions=0)
            ticket = self._submit(write, change.activity.at)
            accept(change.parts, self._desk())
            self._next_expiry = 0.0  # it may have brought an approval; changes are rare, so looking again is cheap
            if after is not None:
                self._live.take_over(change.agent_id, after)
            return ticket

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

    def _submit(self, write: Write, now: float) -> Ticket[Any]:
        write.statements += self._buckets.statements(self._submitted + 1, self._writer.written, now)
        ticket = self._writer.submit(write)
        self._submitted += 1
        for organisation_id, index, *_ in write.activities:
            self._next_index[organisation_id] = index + 1
        return ticket

    def _desk(self) -> Desk:
        return Desk(self._known, self._one, self._submitted, self._writer.written)

    def _next(self, organisation_id: str) -> int:
        index = self._next_index.get(organisation_id)
        return self.leaves(organisation_id) if index is None else index

    # Looking

    def durable(self) -> Ticket[None]:
        """Completes when everything submitted so far is on disk, and fails if it is not."""
        return self._write()

    def merit(self, agent_id: str) -> Merit:
        """What speaks for an agent at its present level."""
        with self._lock:
            return self._live.usage(agent_id).merit

    def spent(self, agent_id: str, now: float) -> Spent:
        with self._lock:
            return self._live.usage(agent_id).spent.at(now)

    def expired_approvals(self, now: float, limit: int) -> Sequence[KeptApproval]:
        if now < self._next_expiry:
            return ()
        with self._lock:
            found = [KeptApproval(*row) for row in self._some(rows.SELECT_EXPIRED, (now, limit))]
            # Not before they are settled: whoever was handed them may fail to do it.
            self._next_expiry = now if found else self._expiry_after(now)
            return [approval for approval in found if not self._known.taken(approval.approval_id)]

    def expired_approvals_of(self, agent_id: str, now: float) -> Sequence[KeptApproval]:
        with self._lock:
            if self._live.usage(agent_id).spent.open_approvals == 0 and not self._known.elevating(agent_id):
                return ()
            found = [KeptApproval(*row) for row in self._some(rows.SELECT_EXPIRED_OF, (agent_id, now))]
            return [approval for approval in found if not self._known.taken(approval.approval_id)]

    def _expiry_after(self, now: float) -> float:
        """When to look again: when the next one runs out, or soon where the table does not show everything yet."""
        if self._writer.written < self._submitted:
            return now + _SOON
        row = self._one(rows.SELECT_NEXT_EXPIRY, (now,))
        return NEVER if row is None or row[0] is None else float(row[0])

    # The database

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        with self._lock:
            self._submitted += 1
            return self._writer.submit(Write(statements=statements))

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._lock:
            self._writer.flush()
            with _READING:
                row: tuple[Any, ...] | None = self._reader.execute(statement, values).fetchone()
            return row

    def _some(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """A few rows, read beside the decisions: never behind a long page of history."""
        with self._lock:
            self._writer.flush()
            with _READING:
                return self._reader.execute(statement, values).fetchall()

    def _page(self, statement: str, values: tuple[Any, ...], payload: int) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        left = LARGEST_PAGE
        with self._browse_lock:
            self._writer.flush()
            with _READING, closing(self._browser.execute(statement, values)) as cursor:
                for row in cursor:
                    found.append(row)
                    left -= len(row[payload])
                    if left < 0:
                        break
        return found

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._browse_lock:
            self._writer.flush()
            with _READING:
                return self._browser.execute(statement, values).fetchall()

    def _apart(self, statement: str, busy_ms: int) -> tuple[Any, ...]:
        if self._file is None:
            return (0,)
        # Never a new file in place of one that was taken away.
        place = f"file:{quote(str(self._file))}?mode=rw"
        with _APART:
            # Nor another one: what is committed and still in our log would be written there, and the log removed.
            self._still_there()
            with closing(sqlite3.connect(place, uri=True, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
                row: tuple[Any, ...] = connection.execute(statement).fetchone()
        return row

    def _load_conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        if self._fresh and not self._live.forgot:
            return Conversation()  # what began empty and never forgot anything knows every conversation there is
        row = self._one(rows.SELECT_CONVERSATION, (agent_id, conversation_id))
        return Conversation(Past(*row) if row is not None else Past())

    def _load_usage(self, agent_id: str) -> Usage:
        row = self._one(rows.SELECT_USAGE, (agent_id,))
        return Usage() if row is None else Usage(Spent(*row[1:-7]), Conduct(*row[-7:-4]), Merit(*row[-4:]))

    def _distrust(self) -> None:
        """A commit failed. Whatever was queued behind it was decided on state that never became durable."""
        with self._lock:
            failure = StoreError("an earlier write failed")
            behind = self._writer.drain()
            for write in behind:
                write.ticket.fail(failure)
            announce(write.ticket for write in behind)
            self._next_index.clear()
            self._chains.clear()
            self._buckets.distrust(self._writer.written)
            self._next_expiry = 0.0
            # Nothing is on its way any more.
            self._submitted = self._writer.written
            self._known.forget()
            self._live.distrust()
            self.on_distrust()


def _nobody() -> None:
    """Nobody waits for notices."""


def _past_after(settlement: Settlement) -> Past | None:
    reservation = settlement.reservation
    if reservation is None or reservation.step.alone:
        return None
    return reservation.conversation.past.after(reservation.step, settlement.decision)
