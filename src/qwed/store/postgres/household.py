"""Which of all servers does what is done once for all: whoever holds one lock, on a connection of its own. By another,
which all of them share, it is known that a server runs.

PostgreSQL takes the connection away from whoever does not use it: one that stands still leads no longer, and knows so
itself when it goes on. Should two believe it for a moment, what is done twice then is harmless, as it is after a crash.
"""

import logging
import threading
import time
from collections.abc import Callable

import psycopg

from qwed.store.postgres.lines import Line, Lines, Patience
from qwed.store.postgres.locks import join_servers, try_to_lead
from qwed.store.postgres.months import make_months
from qwed.store.protocol import StoreError
from qwed.store.writer import tried
from qwed.words.clock import HOUR

PAUSE = 1.0
LEADING = Patience(3, 1, 1, 10)
_log = logging.getLogger("qwed.store")


class Household:
    """Tries to lead, and knows whether it does."""

    def __init__(
        self, lines: Lines, now: Callable[[], float], on_beat: Callable[[], None], ask_others: Callable[[], object]
    ) -> None:
        self._lines = lines
        self._now = now
        self._on_beat = on_beat
        self._ask_others = ask_others
        """Asks something on a connection that decisions are made with: where that is lost, everybody is told."""
        self._leads = False
        self._until = 0.0
        """The end of what was last found to be so."""
        self._line: Line | None = None
        self._months_due = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qwed-household", daemon=True)
        self._look()
        self._thread.start()

    @property
    def leads(self) -> bool:
        """Whether this one does."""
        return self._leads and time.monotonic() < self._until

    def close(self) -> None:
        """Leave it to somebody else."""
        self._closing.set()
        self._thread.join()
        self._leave()

    def _run(self) -> None:
        while not self._closing.wait(PAUSE):
            self._look()
            surprise = tried(self._on_beat)
            if surprise is not None:
                _log.error("surprise at a look at the files", exc_info=surprise)

    def _look(self) -> None:
        began = time.monotonic()
        try:
            line = self._connected()
            if self._leads:
                line.execute("SELECT 1")
            else:
                self._leads = try_to_lead(line)
            self._until = began + LEADING.unused
            if self._leads:
                self._make_months(line)
        except (psycopg.Error, StoreError):
            self._leave()
            # Perhaps there was no room for this one alone, perhaps the database is away: the others know.
            tried(self._ask_others)

    def _connected(self) -> Line:
        self._lines.require()
        if self._line is None or self._line.closed:
            self._leads = False
            self._line = self._lines.open(LEADING, further=True)
            join_servers(self._line)
        return self._line

    def _leave(self) -> None:
        self._leads = False
        if self._line is not None:
            self._line.close()
            self._line = None

    def _make_months(self, line: Line) -> None:
        now = self._now()
        if now < self._months_due:
            return
        self._months_due = now + HOUR
        try:
            make_months(line, now)
        except psycopg.errors.InsufficientPrivilege as error:
            _log.warning("months are not made, and all activities lie in one table: %s", error)
