"""Supervisor of `qwed serve --workers N`: starts, restarts and stops the workers."""

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

from qwed.api.server.shared_memory import SharedCell
from qwed.api.server.worker_group import WorkerCount
from qwed.cli.multiprocess.process import install_stop_handler
from qwed.cli.multiprocess.worker_args import WorkerArgs, WorkerReady
from qwed.engines.global_concurrency import GlobalLimiter

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before a worker is restarted; doubled after each worker that ended early."""
LASTED = 10.0
"""Seconds after which a worker counts as stable."""
TRIES = 5
"""Failed starts in a row, with no worker up, before the supervisor gives up."""
GRACE = 40.0
"""Seconds the workers have to stop, including their own time for open requests."""

ReadyCallback = Callable[[str | None], None]


class WorkerLayout(NamedTuple):
    """Listen address and number of engine processes, in total and per worker."""

    host: str
    port: int
    engines: int
    engines_per_worker: int


class _Worker:
    """Worker slot and the process that has it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.handle = -1
        self.ready_socket: socket.socket | None = None
        self.up = False
        self.begun = 0.0
        self.failures = 0
        self.due = 0.0
        """Time of the next start while there is no process."""


class Supervisor:
    """Keeps `size` workers running; `command` starts a worker, without its arguments."""

    def __init__(
        self,
        size: int,
        layout: WorkerLayout,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_ready: ReadyCallback,
    ) -> None:
        self._layout = layout
        self._command = tuple(command)
        self._environment = dict(environment)
        self._on_ready = on_ready
        self._workers = [_Worker(number) for number in range(size)]
        self._cells = [SharedCell.new() for _ in range(size + 1)]
        self._limiter = GlobalLimiter(layout.engines)
        self._selector = selectors.DefaultSelector()
        self._log = logging.getLogger("qwed")
        self._owner_key: str | None = None
        self._announced = False
        self._failed = 0
        """Failed starts in a row while no worker was up."""
        self._stop_signals: list[int] = []
        self._code: int | None = None
        """Exit code; None while running."""
        self._kill_at = math.inf

    def run(self) -> int:
        """Run until stopped, or until no worker can be started, and return the exit code."""
        wakeup = self._install_wakeup()
        self._selector.register(wakeup, selectors.EVENT_READ, lambda: wakeup.recv(4096))
        with wakeup, self._selector:
            while self._code is None or any(worker.process for worker in self._workers):
                for key, _events in self._selector.select(self._wait_seconds()):
                    key.data()
                self._step(time.monotonic())
        return self._code

    def _install_wakeup(self) -> socket.socket:
        wakeup, signal_end = socket.socketpair()
        for end in (wakeup, signal_end):
            end.setblocking(False)
        # The wakeup descriptor stays open as long as the process.
        signal.set_wakeup_fd(signal_end.detach(), warn_on_full_buffer=False)
        install_stop_handler(lambda number, _frame: self._stop_signals.append(number))
        return wakeup

    def _wait_seconds(self) -> float | None:
        """Return the seconds until the next scheduled step, or None if there is none."""
        times = [self._kill_at] if self._code is not None else [worker.due for worker in self._startable()]
        soonest = min(times, default=math.inf)
        return None if soonest == math.inf else max(0.0, soonest - time.monotonic())

    def _startable(self) -> list[_Worker]:
        """Return the workers without a process; only the first one until it was up once, because it creates the shared
        state."""
        waiting = self._workers if self._announced or self._workers[0].up else self._workers[:1]
        return [worker for worker in waiting if worker.process is None]

    def _step(self, now: float) -> None:
        if self._stop_signals:
            self._stop_signals.clear()
            self._stop(0, now)
        if self._code is None:
            for worker in self._startable():
                if worker.due <= now:
                    self._start(worker, now)
        elif now >= self._kill_at:
            self._signal(signal.SIGKILL)
            self._kill_at = math.inf

    def _start(self, worker: _Worker, now: float) -> None:
        worker.begun = now
        try:
            self._launch(worker)
        except OSError as error:
            # For example no memory for another process; the other workers continue.
            reason = {"worker": worker.number, "reason": error.strerror}
            self._log.error("worker start failed", extra=reason)
            self._on_loss(worker, 1, was_up=False)
            self._publish_count()

    def _launch(self, worker: _Worker) -> None:
        mine, theirs = socket.socketpair()
        limiter_end, worker_end = self._limiter.admit()
        # Registered before anything can fail: if the start fails, the closed other end is noticed and cleaned up.
        self._selector.register(limiter_end, selectors.EVENT_READ, lambda: self._on_limiter_request(limiter_end))
        with theirs, worker_end:
            process, handle = self._spawn(worker.number, theirs.fileno(), worker_end.fileno())
        mine.setblocking(False)
        worker.process, worker.handle, worker.ready_socket, worker.up = process, handle, mine, False
        self._selector.register(mine, selectors.EVENT_READ, lambda: self._on_ready_message(worker))
        self._selector.register(handle, selectors.EVENT_READ, lambda: self._on_exit(worker))

    def _spawn(self, number: int, ready_fd: int, limiter_fd: int) -> tuple[subprocess.Popen[bytes], int]:
        """Start the worker process and return it with its pidfd."""
        cell_fds = [cell.descriptor for cell in self._cells]
        arguments = WorkerArgs(
            path=[os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)],
            number=number,
            supervisor=os.getpid(),
            host=self._layout.host,
            port=self._layout.port,
            ready_fd=ready_fd,
            limiter_fd=limiter_fd,
            engine_workers=self._layout.engines_per_worker,
            cell_fds=cell_fds,
        )
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own program
            [*self._command, arguments.encode()], env=self._environment, pass_fds=[ready_fd, limiter_fd, *cell_fds]
        )
        try:
            return process, os.pidfd_open(process.pid)
        except OSError:
            process.kill()
            process.wait()
            raise

    def _on_limiter_request(self, limiter_end: socket.socket) -> None:
        if not self._limiter.hear(limiter_end):
            self._selector.unregister(limiter_end)

    def _on_ready_message(self, worker: _Worker) -> None:
        if worker.ready_socket is None:
            return
        try:
            message = worker.ready_socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        self._close_ready_socket(worker)
        if message:
            self._owner_key = self._owner_key or msgspec.json.decode(message, type=WorkerReady).owner_key
            worker.up, self._failed = True, 0
            self._publish_count()

    def _close_ready_socket(self, worker: _Worker) -> None:
        if worker.ready_socket is not None:
            self._selector.unregister(worker.ready_socket)
            worker.ready_socket.close()
            worker.ready_socket = None

    def _on_exit(self, worker: _Worker) -> None:
        if worker.process is None:
            return
        # Its last message may still be unread.
        self._on_ready_message(worker)
        code = worker.process.wait()
        self._selector.unregister(worker.handle)
        os.close(worker.handle)
        was_up, worker.up, worker.process = worker.up, False, None
        if self._code is None:
            self._on_loss(worker, code, was_up=was_up)
        self._publish_count()

    def _on_loss(self, worker: _Worker, code: int, *, was_up: bool) -> None:
        """Schedule a restart; stop if no worker has ever been up or none can be started."""
        now = time.monotonic()
        lasted = was_up and now - worker.begun >= LASTED
        worker.failures = 0 if lasted else worker.failures + 1
        worker.due = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(worker.failures, 10))
        none_up = not any(other.up for other in self._workers)
        # A failed start while another worker was up says nothing about that worker's own restart.
        if none_up and not was_up:
            self._failed += 1
        if none_up and not self._announced:
            # The worker has already printed the reason.
            self._stop(code if code > 0 else 1, now)
            return
        self._log.warning("worker exited", extra={"worker": worker.number, "code": code})
        if none_up and self._failed >= TRIES:
            self._log.error(
                "worker start failed repeatedly; the server stops: see the errors above", extra={"starts": self._failed}
            )
            self._stop(1, now)

    def _publish_count(self) -> None:
        """Publish the number of workers that are up; call `on_ready` once when all starts were tried."""
        up = [worker for worker in self._workers if worker.up]
        self._cells[0].write(msgspec.json.encode(WorkerCount(len(up), len(self._workers))))
        tried = all(worker.up or worker.failures for worker in self._workers)
        if up and tried and not self._announced and self._code is None:
            self._announced = True
            self._on_ready(self._owner_key)

    def _stop(self, code: int, now: float) -> None:
        """Stop every worker; a second call does nothing."""
        if self._code is None:
            self._code, self._kill_at = code, now + GRACE
            self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.process is not None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(worker.handle, number)
