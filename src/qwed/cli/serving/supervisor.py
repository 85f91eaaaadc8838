"""`qwed serve --workers N`: starts the workers, replaces one that ends, passes on that they are to stop."""

import logging
import math
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from qwed.api.crew import Manned
from qwed.api.slates import Slate
from qwed.cli.serving.orders import Orders, Ready
from qwed.cli.serving.process import on_stop
from qwed.engines.bound import Bound

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before a worker that ended is started again: twice as long after each that did not last."""
LASTED = 10.0
"""Seconds after which a worker has lasted."""
TRIES = 5
"""Starts in a row that may fail while no worker is up."""
GRACE = 40.0
"""Seconds that the workers have to stop, theirs for whoever is being answered among them."""

Greet = Callable[[str | None], None]


class Place(NamedTuple):
    """Where the workers listen, and how many engine workers the machine and each of them has."""

    host: str
    port: int
    engines: int
    engines_each: int


class _Worker:
    """One place among the workers, and the process that has it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.handle = -1
        self.line: socket.socket | None = None
        self.up = False
        self.begun = 0.0
        self.failures = 0
        self.due = 0.0
        """When to start it, while there is no process."""


class Supervisor:
    """Keeps `size` workers running. `command` is what a worker is, without its orders."""

    def __init__(
        self, size: int, place: Place, command: Sequence[str], environment: Mapping[str, str], greet: Greet
    ) -> None:
        self._place = place
        self._command = tuple(command)
        self._environment = dict(environment)
        self._greet = greet
        self._workers = [_Worker(number) for number in range(size)]
        self._slates = [Slate.new() for _ in range(size + 1)]
        self._bound = Bound(place.engines)
        self._selector = selectors.DefaultSelector()
        self._log = logging.getLogger("qwed")
        self._owner_key: str | None = None
        self._greeted = False
        self._failed = 0
        """Starts in a row that failed while no worker was up."""
        self._told: list[int] = []
        self._code: int | None = None
        """With which code it ends; None while it runs."""
        self._ends = math.inf

    def run(self) -> int:
        """Serve until told to stop, or until no worker can be started: the exit code."""
        bell = self._ring_on_signals()
        self._selector.register(bell, selectors.EVENT_READ, lambda: bell.recv(4096))
        with bell, self._selector:
            while self._code is None or any(worker.process for worker in self._workers):
                for key, _events in self._selector.select(self._patience()):
                    key.data()
                self._turn(time.monotonic())
        return self._code

    def _ring_on_signals(self) -> socket.socket:
        bell, hammer = socket.socketpair()
        for end in (bell, hammer):
            end.setblocking(False)
        # The wakeup descriptor stays open as long as the process.
        signal.set_wakeup_fd(hammer.detach(), warn_on_full_buffer=False)
        on_stop(lambda number, _frame: self._told.append(number))
        return bell

    def _patience(self) -> float | None:
        """How long nothing needs doing; None until something happens."""
        moments = [self._ends] if self._code is not None else [worker.due for worker in self._startable()]
        soonest = min(moments, default=math.inf)
        return None if soonest == math.inf else max(0.0, soonest - time.monotonic())

    def _startable(self) -> list[_Worker]:
        """Those without a process; but the first one alone until it was up once: it makes what all of them need."""
        waiting = self._workers if self._greeted or self._workers[0].up else self._workers[:1]
        return [worker for worker in waiting if worker.process is None]

    def _turn(self, now: float) -> None:
        if self._told:
            self._told.clear()
            self._stop(0, now)
        if self._code is None:
            for worker in self._startable():
                if worker.due <= now:
                    self._start(worker, now)
        elif now >= self._ends:
            self._signal(signal.SIGKILL)
            self._ends = math.inf

    def _start(self, worker: _Worker, now: float) -> None:
        worker.begun = now
        try:
            self._begin(worker)
        except OSError as error:
            # The machine has no room for another process, say; the others go on.
            reason = {"worker": worker.number, "reason": error.strerror}
            self._log.error("a worker cannot be started", extra=reason)
            self._lost(worker, 1, was_up=False)
            self._tell()

    def _begin(self, worker: _Worker) -> None:
        mine, theirs = socket.socketpair()
        asking, asked = self._bound.admit()
        # Before anything can fail: where nobody has the other end, it is heard to be closed.
        self._selector.register(asking, selectors.EVENT_READ, lambda: self._on_claims(asking))
        with theirs, asked:
            process, handle = self._spawn(worker.number, theirs.fileno(), asked.fileno())
        mine.setblocking(False)
        worker.process, worker.handle, worker.line, worker.up = process, handle, mine, False
        self._selector.register(mine, selectors.EVENT_READ, lambda: self._on_line(worker))
        self._selector.register(handle, selectors.EVENT_READ, lambda: self._on_exit(worker))

    def _spawn(self, number: int, line: int, bound: int) -> tuple[subprocess.Popen[bytes], int]:
        """The process and its handle, or neither."""
        slates = [slate.descriptor for slate in self._slates]
        orders = Orders(
            path=[os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)],
            number=number,
            supervisor=os.getpid(),
            host=self._place.host,
            port=self._place.port,
            line=line,
            bound=bound,
            engine_workers=self._place.engines_each,
            slates=slates,
        )
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own program
            [*self._command, orders.written()], env=self._environment, pass_fds=[line, bound, *slates]
        )
        try:
            return process, os.pidfd_open(process.pid)
        except OSError:
            process.kill()
            process.wait()
            raise

    def _on_claims(self, asking: socket.socket) -> None:
        if not self._bound.hear(asking):
            self._selector.unregister(asking)

    def _on_line(self, worker: _Worker) -> None:
        if worker.line is None:
            return
        try:
            said = worker.line.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self._hang_up(worker)
        if said:
            self._owner_key = self._owner_key or msgspec.json.decode(said, type=Ready).owner_key
            worker.up, self._failed = True, 0
            self._tell()

    def _hang_up(self, worker: _Worker) -> None:
        if worker.line is not None:
            self._selector.unregister(worker.line)
            worker.line.close()
            worker.line = None

    def _on_exit(self, worker: _Worker) -> None:
        if worker.process is None:
            return
        # What it said before it ended is still to be heard.
        self._on_line(worker)
        code = worker.process.wait()
        self._selector.unregister(worker.handle)
        os.close(worker.handle)
        was_up, worker.up, worker.process = worker.up, False, None
        if self._code is None:
            self._lost(worker, code, was_up=was_up)
        self._tell()

    def _lost(self, worker: _Worker, code: int, *, was_up: bool) -> None:
        """Start it again in a while; where none has ever been up, or none can be any more, end."""
        now = time.monotonic()
        lasted = was_up and now - worker.begun >= LASTED
        worker.failures = 0 if lasted else worker.failures + 1
        worker.due = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(worker.failures, 10))
        nobody = not any(each.up for each in self._workers)
        # What failed beside a worker that was up says nothing of that one's own next start.
        if nobody and not was_up:
            self._failed += 1
        if nobody and not self._greeted:
            # It has said why, as a single server would.
            self._stop(code if code > 0 else 1, now)
            return
        self._log.warning("a worker ended", extra={"worker": worker.number, "code": code})
        if nobody and self._failed >= TRIES:
            self._log.error("no worker can be started any more: the reason is above", extra={"starts": self._failed})
            self._stop(1, now)

    def _tell(self) -> None:
        """Say how many are up; the first time that none is still to come, greet."""
        up = [worker for worker in self._workers if worker.up]
        self._slates[0].write(msgspec.json.encode(Manned(len(up), len(self._workers))))
        tried = all(worker.up or worker.failures for worker in self._workers)
        if up and tried and not self._greeted and self._code is None:
            self._greeted = True
            self._greet(self._owner_key)

    def _stop(self, code: int, now: float) -> None:
        """Have every worker stop; asked twice, it is still once."""
        if self._code is None:
            self._code, self._ends = code, now + GRACE
            self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.process is not None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(worker.handle, number)
