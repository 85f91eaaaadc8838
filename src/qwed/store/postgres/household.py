"""Which of all servers does what is done once for all: whoever holds one lock, on a connection of its own.

Should it be lost without a word, two may believe it for a moment: what is done twice then is harmless, as it is after
a crash.
"""

import logging
import threading
from collections.abc import Callable

import psycopg

from qwed.store.postgres.lines import ASKING, Line, Lines
from qwed.store.postgres.locks import try_to_lead
from qwed.store.postgres.months import make_months
from qwed.store.protocol import StoreError
from qwed.store.writer import tried
from qwed.words.clock import HOUR

PAUSE = 1.0
_log = logging.getLogger("qwed.store")


class Household:
    """Tries to lead, and knows whether it does."""

    def __init__(self, lines: Lines, now: Callable[[], float], on_beat: Callable[[], None]) -> None:
        self._lines = lines
        self._now = now
        self._on_beat = on_beat
        self.leads = False
        self._line: Line | None = None
        self._months_due = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qwed-household", daemon=True)
        self._look()
        self._thread.start()

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
        try:
            line = self._connected()
            if self.leads:
                line.execute("SELECT 1")
            else:
                self.leads = try_to_lead(line)
            if self.leads:
                self._make_months(line)
        except (psycopg.Error, StoreError):
            self._leave()

    def _connected(self) -> Line:
        self._lines.require()
        if self._line is None or self._line.closed:
            self.leads = False
            self._line = self._lines.open(ASKING)
        return self._line

    def _leave(self) -> None:
        self.leads = False
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
