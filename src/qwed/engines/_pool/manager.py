"""The pool's one thread: it starts, feeds, times, kills and replaces the worker processes."""

import selectors
import threading
import time
from typing import Any

from qwed.engines._pool.messages import DIED, TIMEOUT, undecided, verdict_of
from qwed.engines._pool.queues import Job, Queues
from qwed.engines._pool.workers import ENDING_SECONDS, Lost, Worker, Zygote
from qwed.engines.table import EngineRow
from qwed.waiting import Ticket, announce
from qwed.words import Verdict

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0


class _Pause:
    """How long to wait before starting another process: longer with each one that failed by itself."""

    def __init__(self) -> None:
        self.until = 0.0
        self._next = FIRST_PAUSE

    def failed(self) -> None:
        self.until = time.monotonic() + self._next
        self._next = min(2 * self._next, LONGEST_PAUSE)

    def worked(self) -> None:
        self._next = FIRST_PAUSE


class Manager:
    """Keeps `size` workers alive and gives each a job at a time."""

    def __init__(self, rows: tuple[EngineRow, ...], size: int, memory_mb: int, queues: Queues) -> None:
        self.ready = threading.Event()
        self.processes: tuple[int, ...] = ()
        self._rows = rows
        self._size = size
        self._memory_mb = memory_mb
        self._queues = queues
        self._zygote: Zygote | None = None
        self._workers: list[Worker] = []
        self._pause = _Pause()
        self._settled: list[Ticket[Any]] = []

    def run(self) -> None:
        """Serve until the queues are shut; then, and after any surprise, nobody is left waiting and no process."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._queues.bell, selectors.EVENT_READ, lambda _: self._queues.hush())
        try:
            while self._queues.taking:
                self._turn()
        finally:
            self._end()

    def _turn(self) -> None:
        for key, events in self._selector.select(self._patience()):
            key.data(events)
        self._expire(time.monotonic())
        self._refill(time.monotonic())
        self._dispatch()
        self._tell()

    def _patience(self) -> float | None:
        """How long nothing needs doing; None until something happens."""
        moments = [worker.deadline for worker in self._workers]
        moments.append(self._queues.next_deadline())
        if self._zygote is None or (self._zygote.ready and len(self._workers) < self._size):
            moments.append(self._pause.until)
        if self._zygote is not None:
            moments.append(self._zygote.deadline)
        wait = min(moments) - time.monotonic()
        return max(0.0, wait) if wait < threading.TIMEOUT_MAX else None

    def _expire(self, now: float) -> None:
        for worker in [worker for worker in self._workers if worker.deadline <= now]:
            if worker.job is None and self._zygote is not None:
                # A zygote that was asked for a worker and gives none is stuck.
                self._lose_zygote(self._zygote)
            self._lose(worker, TIMEOUT)
        if self._zygote is not None and self._zygote.deadline <= now:
            self._lose_zygote(self._zygote)
        for job in self._queues.late(now):
            self._settle(job, undecided(job.engine, TIMEOUT))

    def _refill(self, now: float) -> None:
        if now < self._pause.until:
            return
        try:
            if self._zygote is None:
                self._start_zygote(now)
            while self._zygote is not None and self._zygote.ready and len(self._workers) < self._size:
                self._start_worker(self._zygote, now)
        except OSError:
            self._pause.failed()

    def _start_zygote(self, now: float) -> None:
        zygote = self._zygote = Zygote(self._rows, self._memory_mb, now)
        self._selector.register(zygote.control, selectors.EVENT_READ, lambda _: self._on_zygote(zygote))
        self._list()

    def _start_worker(self, zygote: Zygote, now: float) -> None:
        worker = Worker(zygote.fork(), now)
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, lambda events: self._on_worker(worker, events))

    def _on_zygote(self, zygote: Zygote) -> None:
        try:
            zygote.listen()
        except Lost:
            self._lose_zygote(zygote)

    def _lose_zygote(self, zygote: Zygote) -> None:
        """Its workers end with it, and are noticed one by one."""
        self._zygote = None
        self._selector.unregister(zygote.control)
        zygote.end(patience=0)
        self._pause.failed()
        self._list()

    def _on_worker(self, worker: Worker, events: int) -> None:
        # One turn's events may hold more of a worker that an earlier one of them removed.
        if worker not in self._workers:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._send(worker)
            if events & selectors.EVENT_READ:
                self._hear(worker)
        except Lost:
            self._lose(worker, DIED)

    def _on_exit(self, worker: Worker) -> None:
        # What it said before it ended is still to be read.
        self._on_worker(worker, selectors.EVENT_READ)
        if worker in self._workers:
            self._lose(worker, DIED)

    def _send(self, worker: Worker) -> None:
        worker.send()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.sending else 0)
        key = self._selector.get_key(worker.channel)
        if key.events != events:
            self._selector.modify(worker.channel, events, key.data)

    def _hear(self, worker: Worker) -> None:
        if worker.pid == 0:
            self._meet(worker)
            return
        reply = worker.hear()
        if reply is None or worker.job is None:
            return
        self._settle(worker.job, verdict_of(reply, worker.job.engine))
        worker.rest()
        self._pause.worked()
        if reply.retire or reply.verdict is None:
            self._remove(worker)

    def _meet(self, worker: Worker) -> None:
        worker.meet()
        if worker.pid:
            self._selector.register(worker.handle, selectors.EVENT_READ, lambda _: self._on_exit(worker))
            self._list()

    def _lose(self, worker: Worker, why: str) -> None:
        if worker.job is None:
            self._pause.failed()
        else:
            self._settle(worker.job, undecided(worker.job.engine, why))
        self._remove(worker)

    def _remove(self, worker: Worker) -> None:
        self._workers.remove(worker)
        self._selector.unregister(worker.channel)
        if worker.pid:
            self._selector.unregister(worker.handle)
        worker.kill()
        worker.close()
        self._list()

    def _list(self) -> None:
        workers = [worker.pid for worker in self._workers if worker.pid]
        self.processes = (*([self._zygote.pid] if self._zygote else []), *workers)
        if len(workers) == self._size:
            self.ready.set()
        elif not workers:
            self.ready.clear()

    def _dispatch(self) -> None:
        while True:
            idle = [worker for worker in self._workers if worker.idle]
            served = {each.job.who for each in self._workers if each.job is not None and each.job.for_agent}
            job = self._queues.take(len(idle), served)
            if job is None:
                return
            self._hand(idle[0], job)

    def _hand(self, worker: Worker, job: Job) -> None:
        try:
            worker.give(job)
            self._send(worker)
        except Lost:
            # It had ended before it saw the job, which is then another worker's.
            worker.rest()
            self._queues.put_back(job)
            self._lose(worker, DIED)

    def _settle(self, job: Job, verdict: Verdict) -> None:
        job.ticket.complete(verdict)
        self._settled.append(job.ticket)

    def _tell(self) -> None:
        settled, self._settled = self._settled, []
        announce(settled)

    def _end(self) -> None:
        for worker in self._workers:
            worker.kill()
        for job in (*self._queues.close(), *(worker.job for worker in self._workers if worker.job is not None)):
            self._settle(job, undecided(job.engine, DIED))
        self._tell()
        self._selector.close()
        if self._zygote is not None:
            self._zygote.end()
        for worker in self._workers:
            worker.wait_gone(ENDING_SECONDS)
            worker.close()
        self._zygote, self._workers = None, []
        self._list()
