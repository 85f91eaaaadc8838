"""Connections to one PostgreSQL. Each answers within its time or is given up; nobody waits for a database that is away.

Whoever finds out first that it is away says so, and from then on everybody is refused at once, until somebody who tries
in the background has reached it again.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.abc import PQGen

from qwed.store.postgres.dialect import adapt
from qwed.store.postgres.opening import FAITHFULLY, Unreachable, one_line, read_address
from qwed.store.protocol import StoreError

Row = tuple[Any, ...]
RV = TypeVar("RV")
T = TypeVar("T")

CONNECT_SECONDS = 2
"""As few as libpq takes."""
_PAUSE = 0.1
_LONGEST_PAUSE = 0.5
_MARGIN = 1.0
"""So much longer we wait than the server is told to: where it lives, it ends a statement by itself."""
_INTERVAL = 0.1


class Patience(NamedTuple):
    """How long one connection may take, in seconds: for a statement, for a lock, and doing nothing in a transaction.

    And doing nothing at all, where it is not to be had for ever.
    """

    statement: float
    lock: float
    idle: float
    unused: float = 0.0


ASKING = Patience(3, 1, 1)
"""A row that a decision waits for."""
BROWSING = Patience(30, 1, 5)
"""A page of history, or a sum."""
WRITING = Patience(10, 3, 3)
"""A batch. One that is held up in the middle of it holds up whoever comes after: a process that stands still loses its
connection before that hurts."""


class Line(psycopg.Connection[Row]):
    """A connection that waits no longer than it was told to; what takes longer has no connection any more."""

    seconds = 60.0
    late = False
    """Whether it was given up because nobody answered."""

    def wait(self, gen: PQGen[RV], interval: float = _INTERVAL, timeout: float | None = None) -> RV:
        """Wait for the server, but not for ever."""
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        finally:
            if time.monotonic() - began >= self.seconds:
                # What it still has to say would be taken for the answer to the next question.
                self.late = True
                self.pgconn.finish()


class Lines:
    """Opens connections, and knows whether the database is there."""

    def __init__(self, url: str) -> None:
        self._known = read_address(url)
        self._lock = threading.Lock()
        self._away = ""
        self._closed = threading.Event()
        self.times_lost = 0
        """What was opened before the last time is not to be trusted."""

    @property
    def away(self) -> bool:
        """Whether nobody should try."""
        return bool(self._away)

    def require(self) -> None:
        """StoreError where the database is known to be away."""
        if self._away:
            raise StoreError(self._away)

    def open(self, patience: Patience, *, further: bool = False) -> Line:
        """A new connection; StoreError where there is none. Of a `further` one that says nothing about the others."""
        try:
            return self.reach(patience)
        except psycopg.Error as error:
            if not further:
                self.lost(error)
            raise Unreachable(f"PostgreSQL cannot be reached: {one_line(error)}") from None

    def reach(self, patience: Patience) -> Line:
        """A new connection, though the database may be known to be away; psycopg.Error where it is."""
        settings: dict[str, Any] = {
            "application_name": "qwed",
            # Not a standby, nor what was one's database before another took over.
            "target_session_attrs": "read-write",
            "connect_timeout": CONNECT_SECONDS,
            "keepalives": 1,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 2,
            "tcp_user_timeout": 5_000,
            **self._known,
        }
        try:
            line = Line.connect(**settings, autocommit=True)
        except OSError as error:
            # Where a process has no descriptor left, psycopg says it as Python does.
            raise psycopg.OperationalError(str(error)) from error
        line.seconds = patience.statement + _MARGIN
        adapt(line)
        try:
            line.execute(_SETTINGS, [f"{round(seconds * 1000)}ms" for seconds in patience])
        except psycopg.Error:
            line.close()
            raise
        return line

    def lost(self, error: BaseException) -> None:
        """Nobody answers: let nobody else try, but for one who goes on trying."""
        with self._lock:
            if self._away or self._closed.is_set():
                return
            self._away = f"PostgreSQL is away: {told(error)}"
            self.times_lost += 1
            threading.Thread(target=self._look, name="qwed-postgres", daemon=True).start()

    def _look(self) -> None:
        pause = _PAUSE
        while not self._closed.wait(pause):
            try:
                self.reach(ASKING).close()
            except psycopg.Error:
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self._away = ""
                return

    def close(self) -> None:
        """Try no more."""
        self._closed.set()


_SETTINGS = f"""
    SELECT {FAITHFULLY},
        set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),
        set_config('idle_in_transaction_session_timeout', %s, false), set_config('idle_session_timeout', %s, false),
        set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
        set_config('tcp_keepalives_count', '3', false),
        set_config('synchronous_commit',
            CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
            ELSE current_setting('synchronous_commit') END, false)
"""
"""What was decided is on disk before it is said, whatever the server is used to. And for whom nobody hears of any more,
such as a machine without power, no connection is kept."""


def told(error: BaseException) -> str:
    """The first line of what PostgreSQL says; what follows it may quote rows."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class Seat:
    """One connection that is opened when it is needed, and opened anew where it was lost while nobody used it."""

    def __init__(self, lines: Lines, patience: Patience) -> None:
        self._lines = lines
        self._patience = patience
        self._line: Line | None = None
        self._since = -1

    def line(self) -> Line:
        """The connection; StoreError where there is none."""
        self._lines.require()
        if self._line is None or self._line.closed or self._since != self._lines.times_lost:
            self.leave()
            since = self._lines.times_lost
            self._line = self._lines.open(self._patience, further=self._since < 0)
            self._since = since
        return self._line

    def leave(self) -> None:
        """Hang up."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def ask(self, do: Callable[[Line], T], tried: str = "could not read") -> T:
        """What `do` finds. It may be done twice: what was lost while nobody used it says nothing about the database."""
        used_before = self._line is not None
        line = self.line()
        try:
            return do(line)
        except psycopg.Error as error:
            lost = line.closed
            self.leave()
            if lost and used_before and not line.late:
                return self.ask(do, tried)
            if lost:
                self._lines.lost(error)
            raise StoreError(f"{tried}: {told(error)}") from error


class Pool:
    """Some connections for whoever asks."""

    def __init__(self, lines: Lines, patience: Patience, most: int) -> None:
        self._lines = lines
        self._patience = patience
        self._places = threading.BoundedSemaphore(most)
        self._free = [Seat(lines, patience) for _ in range(most)]
        self._closed = False

    def ask(self, do: Callable[[Line], T], tried: str = "could not read") -> T:
        """What `do` finds on a connection that is its own meanwhile; it may be done twice."""
        self._lines.require()
        if not self._places.acquire(timeout=self._patience.statement):
            raise StoreError(f"{tried}: every connection is in use")
        seat = self._free.pop()
        try:
            if self._closed:
                raise StoreError("the store is closed")
            return seat.ask(do, tried)
        finally:
            if self._closed:
                seat.leave()
            self._free.append(seat)
            self._places.release()

    def close(self) -> None:
        """Hang up; who is in the middle of something does so when it is over."""
        self._closed = True
        for seat in tuple(self._free):
            seat.leave()
