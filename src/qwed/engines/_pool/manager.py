"""Thread of the pool: starts, feeds, times, kills and replaces worker processes."""

import math
import selectors
import threading
import time
from dataclasses import replace
from typing import Any

from qwed.engines._pool.backoff import Backoff, batching_delay
from qwed.engines._pool.concurrency_client import ConcurrencyClient
from qwed.engines._pool.messages import DIED, TIMEOUT, inconclusive_verdict, verdict_of
from qwed.engines._pool.process_handles import BATCH_SECONDS, ENDING_SECONDS, Worker, WorkerLostError, Zygote
from qwed.engines._pool.queues import SMALL, EngineJob, Queues
from qwed.engines.registry import EngineRow
from qwed.futures import Future, notify
from qwed.model import Verdict


class Manager:
    """Keeps `size` workers alive and gives each one job, or a few small ones of one owner."""

    def __init__(
        self,
        rows: tuple[EngineRow, ...],
        size: int,
        memory_mb: int,
        queues: Queues,
        permits: ConcurrencyClient | None = None,
    ) -> None:
        self._permits = permits
        self.warm_after = math.inf
        """Seconds without requests after which unused engines are loaded too."""
        self.ready = threading.Event()
        self.processes: tuple[int, ...] = ()
        self._rows = rows
        self._known = frozenset(row.name for row in rows)
        self._batch_sizes = {row.name: row.batch_size for row in rows}
        self._size = size
        self._memory_mb = memory_mb
        self._queues = queues
        self._zygote: Zygote | None = None
        self._workers: list[Worker] = []
        self._pause = Backoff()
        self._resolved: list[Future[Any]] = []
        self._loaded_engines: frozenset[str] = frozenset()
        """Engines that every idle worker has loaded."""
        self._fatal: set[str] = set()
        """Engines during whose loading a zygote died."""
        self._replacing = False
        self._last_request = time.monotonic()

    def run(self) -> None:
        """Serve until the queues are shut; on any exit resolve all waiters and end all processes."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._queues.wakeup, selectors.EVENT_READ, lambda _: self._queues.drain_wakeup())
        if (permits := self._permits) is not None:
            self._selector.register(permits.channel, selectors.EVENT_READ, lambda _: self._on_permits(permits))
        try:
            while self._queues.taking:
                self._run_once()
        finally:
            self._end()

    def _run_once(self) -> None:
        self._coalesce_replies()
        for key, events in self._selector.select(self._select_timeout()):
            key.data(events)
        self._expire(time.monotonic())
        self._refill(time.monotonic())
        self._dispatch()
        if self._permits is not None:
            self._permits.flush()
        self._notify()

    def _coalesce_replies(self) -> None:
        """Let replies accumulate while a worker has several requests, to read and deliver them together.

        A request for which a worker is free interrupts the delay, and so does the reply of a worker with nothing else
        to do.
        """
        if any(len(worker.jobs) > 1 for worker in self._workers):
            last = [worker.channel for worker in self._workers if len(worker.jobs) == 1]
            batching_delay((self._queues.wakeup, *last, *([self._permits.channel] if self._permits else ())))

    def _select_timeout(self) -> float | None:
        """Return the seconds until the next timed action, or None if there is none."""
        moments = [min(worker.deadline, worker.batch_deadline) for worker in self._workers]
        moments.append(self._warm_time())
        if self._zygote is not None:
            moments.append(self._zygote.deadline)
        now = time.monotonic()
        if self._pause.until > now or self._lacks_processes():
            moments.append(self._pause.until)
        wait = self._queues.next_deadline(min(moments, default=math.inf)) - now
        return max(0.0, wait) if wait < threading.TIMEOUT_MAX else None

    def _expire(self, now: float) -> None:
        for worker in self._workers:
            if worker.batch_deadline <= now:
                self._queues.give_back(worker.take_back(1))
        late = [worker for worker in self._workers if worker.deadline <= now]
        # A zygote that does not deliver a requested worker is stuck.
        stuck = any(not worker.jobs for worker in late)
        for worker in late:
            if worker.jobs and worker.begun:
                self._lose(worker, TIMEOUT)
            elif worker.jobs:
                self._done(worker, inconclusive_verdict(worker.jobs[0].engine, TIMEOUT))
        if self._zygote is not None and (stuck or self._zygote.deadline <= now):
            self._on_zygote_lost(self._zygote)
        for job in self._queues.late(now):
            self._resolve(job, inconclusive_verdict(job.engine, TIMEOUT))

    def _refill(self, now: float) -> None:
        if now < self._pause.until:
            return
        try:
            if self._zygote is None:
                self._start_zygote(now)
            self._load(now)
            while self._zygote is not None and self._zygote.ready and len(self._workers) < self._size:
                self._start_worker(self._zygote, now)
        except OSError:
            self._pause.failed()

    def _start_zygote(self, now: float) -> None:
        # A pool that was started for one request answers it sooner if nothing is run in advance.
        rows = self._rows if self.warm_after < math.inf else tuple(replace(row, warm=()) for row in self._rows)
        zygote = self._zygote = Zygote(rows, self._memory_mb, now, self._loaded_engines)
        self._selector.register(zygote.control, selectors.EVENT_READ, lambda _: self._on_zygote(zygote))
        self._update_processes()

    def _start_worker(self, zygote: Zygote, now: float) -> None:
        worker = Worker(zygote.fork(), now)
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, lambda events: self._on_worker(worker, events))

    def _load(self, now: float) -> None:
        """Load requested engines and fork workers with them; when idle, load the others."""
        zygote = self._zygote
        if zygote is None or not zygote.ready:
            return
        needed = self._missing_engines()
        if now >= self._warm_time():
            needed = self._unloaded_engines()
        missing = [engine for engine in needed if engine not in zygote.loaded]
        if missing:
            zygote.load(missing[0], now)
        elif needed:
            self._replace_workers(zygote)

    def _missing_engines(self) -> list[str]:
        """Return the engines that a job waits for and no worker has."""
        if self._loaded_engines == self._known:
            return []
        return [engine for engine in self._queues.engines() if engine not in self._loaded_engines]

    def _unloaded_engines(self) -> list[str]:
        """Return the engines that could be loaded in advance."""
        return [row.name for row in self._rows if row.name not in self._loaded_engines and row.name not in self._fatal]

    def _warm_time(self) -> float:
        """Return the time at which to load engines in advance."""
        if self.warm_after == math.inf or self._zygote is None or not self._zygote.ready:
            return math.inf
        return (
            self._last_request + self.warm_after
            if self._unloaded_engines() and not self._missing_engines()
            else math.inf
        )

    def _replace_workers(self, zygote: Zygote) -> None:
        """Replace every worker by one with all loaded engines; busy workers after their job."""
        self._loaded_engines = zygote.loaded
        self._replacing = True
        for worker in list(self._workers):
            worker.stale = True
            if not worker.jobs:
                self._remove(worker)

    def _lacks_processes(self) -> bool:
        """Return True if a process has to be started."""
        return self._zygote is None or (self._zygote.ready and len(self._workers) < self._size)

    def _on_zygote(self, zygote: Zygote) -> None:
        try:
            zygote.listen()
        except WorkerLostError:
            self._on_zygote_lost(zygote)

    def _on_zygote_lost(self, zygote: Zygote) -> None:
        """Drop the zygote and its idle workers; the next zygote loads the same engines at once."""
        self._zygote, self._replacing = None, False
        self._fatal |= zygote.loading
        self._loaded_engines = zygote.loaded
        self._selector.unregister(zygote.control)
        zygote.end(patience=0)
        self._pause.failed()
        for worker in [worker for worker in self._workers if not worker.jobs]:
            self._remove(worker)
        self._update_processes()

    def _on_worker(self, worker: Worker, events: int) -> None:
        # An earlier event of this iteration may have removed the worker.
        if worker not in self._workers:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._send(worker)
            if events & selectors.EVENT_READ:
                self._hear(worker)
        except WorkerLostError:
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
            self._on_hello(worker)
            return
        for reply in worker.hear():
            self._pause.worked()
            if reply.declined:
                # It declines all following jobs too.
                self._queues.give_back(worker.take_back(0))
            self._done(worker, verdict_of(reply, worker.jobs[0].engine))
            broken = reply.verdict is None and not reply.declined
            if reply.retire or broken or (worker.stale and not worker.jobs):
                self._remove(worker)
                return

    def _on_hello(self, worker: Worker) -> None:
        worker.receive_hello()
        if worker.pid:
            self._replacing = False
            self._selector.register(worker.handle, selectors.EVENT_READ, lambda _: self._on_exit(worker))
            self._update_processes()

    def _lose(self, worker: Worker, why: str) -> None:
        self._replacing = False
        if worker.jobs and worker.begun:
            # Only the job it was working on can be the cause.
            self._done(worker, inconclusive_verdict(worker.jobs[0].engine, why))
        else:
            self._pause.failed()
            if worker.jobs:
                # It ended before it received them, so they go to another worker.
                first, *others = worker.take_back(0)
                self._queues.give_back(others)
                self._queues.put_back(first)
        self._remove(worker)

    def _remove(self, worker: Worker) -> None:
        self._free(worker)
        self._workers.remove(worker)
        self._selector.unregister(worker.channel)
        if worker.pid:
            self._selector.unregister(worker.handle)
        worker.kill()
        worker.close()
        self._update_processes()

    def _update_processes(self) -> None:
        workers = [worker.pid for worker in self._workers if worker.pid]
        self.processes = (*([self._zygote.pid] if self._zygote else []), *workers)
        if len(workers) == self._size:
            self.ready.set()
        elif not workers and not self._replacing:
            self.ready.clear()

    def _dispatch(self) -> None:
        while assigned := self._assign_jobs():
            self._last_request = time.monotonic()
            if self._permits is None:
                self._begin(assigned)
                continue
            for worker in assigned:
                worker.claim = self._permits.claim(worker.jobs[0])

    def _assign_jobs(self) -> list[Worker]:
        """Assign jobs to idle workers and return these workers."""
        assigned: list[Worker] = []
        while True:
            idle = [worker for worker in self._workers if worker.idle]
            busy = [worker.jobs[0] for worker in self._workers if worker.jobs]
            job = self._queues.take(
                len(idle), {busy_job.who for busy_job in busy if busy_job.for_agent}, self._loaded_engines
            )
            if job is None:
                return assigned
            idle[0].give(job)
            assigned.append(idle[0])

    def _begin(self, workers: list[Worker]) -> None:
        now = time.monotonic()
        extendable = workers
        while extendable:
            extendable = [worker for worker in extendable if self._extend_batch(worker, now)]
        for worker in workers:
            worker.begin(now)
            worker.jobs[0].ticket.begun = now
            try:
                self._send(worker)
            except WorkerLostError:
                self._lose(worker, DIED)

    def _extend_batch(self, worker: Worker, now: float) -> bool:
        """Add one more job to the worker's batch; return False if none may be added."""
        first = worker.jobs[0]
        if len(first.payload) > SMALL:
            return False
        # The more owners wait, the smaller the batch.
        free_slots = self._batch_sizes[first.engine] // (len(worker.jobs) + 1)
        extra = self._queues.take_for_batch(first, free_slots, now + BATCH_SECONDS)
        if extra is not None:
            worker.give(extra)
        return extra is not None

    def _on_permits(self, permits: ConcurrencyClient) -> None:
        granted = permits.granted()
        if granted is None:
            self._selector.unregister(permits.channel)
            return
        claims = {worker.claim: worker for worker in self._workers if worker.jobs}
        # A claim withdrawn in the meantime is already released.
        self._begin([claims[claim] for claim in granted if claim in claims])

    def _done(self, worker: Worker, verdict: Verdict) -> None:
        """Resolve the job that the worker finished."""
        job = worker.done()
        if job is not None:
            self._resolve(job, verdict)
        if worker.jobs:
            worker.jobs[0].ticket.begun = time.monotonic()
        else:
            self._free(worker)

    def _free(self, worker: Worker) -> None:
        """Mark the worker idle and requeue the jobs it has not started."""
        self._queues.give_back(worker.take_back(0))
        if self._permits is not None and worker.claim:
            self._permits.drop(worker.claim)
        worker.rest()

    def _resolve(self, job: EngineJob, verdict: Verdict) -> None:
        self._resolved += job.ticket.settle(verdict, time.monotonic())

    def _notify(self) -> None:
        settled, self._resolved = self._resolved, []
        notify(settled)

    def _end(self) -> None:
        for worker in self._workers:
            worker.kill()
        begun = [job for worker in self._workers for job in worker.take_back(0)]
        for job in (*self._queues.close(), *begun):
            self._resolve(job, inconclusive_verdict(job.engine, DIED))
        self._notify()
        self._selector.close()
        if self._zygote is not None:
            self._zygote.end()
        for worker in self._workers:
            worker.wait_gone(ENDING_SECONDS)
            worker.close()
        self._zygote, self._workers = None, []
        if self._permits is not None:
            self._permits.channel.close()
        self._update_processes()
