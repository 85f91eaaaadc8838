"""The pool's one thread: it starts, feeds, times, kills and replaces the worker processes."""

import math
import selectors
import threading
import time
from typing import Any

from qwed.engines._pool.messages import DIED, TIMEOUT, undecided, verdict_of
from qwed.engines._pool.pauses import Pause, breathe
from qwed.engines._pool.permits import Permits
from qwed.engines._pool.queues import SMALL, Job, Queues
from qwed.engines._pool.workers import ENDING_SECONDS, PATIENT_SECONDS, Lost, Worker, Zygote
from qwed.engines.table import EngineRow
from qwed.waiting import Ticket, announce
from qwed.words import Verdict


class Manager:
    """Keeps `size` workers alive and gives each a job at a time, or a few small ones of one agent."""

    def __init__(
        self,
        rows: tuple[EngineRow, ...],
        size: int,
        memory_mb: int,
        queues: Queues,
        permits: Permits | None = None,
    ) -> None:
        self._permits = permits
        self.warm_after = math.inf
        """After so many seconds in which nothing was asked, what nobody has asked for is loaded too."""
        self.ready = threading.Event()
        self.processes: tuple[int, ...] = ()
        self._rows = rows
        self._known = frozenset(row.name for row in rows)
        self._together = {row.name: row.together for row in rows}
        self._size = size
        self._memory_mb = memory_mb
        self._queues = queues
        self._zygote: Zygote | None = None
        self._workers: list[Worker] = []
        self._pause = Pause()
        self._settled: list[Ticket[Any]] = []
        self._able: frozenset[str] = frozenset()
        """The engines that every worker without a job has."""
        self._fatal: set[str] = set()
        """The engines whose loading a zygote did not survive."""
        self._renewing = False
        self._asked = time.monotonic()

    def run(self) -> None:
        """Serve until the queues are shut; then, and after any surprise, nobody is left waiting and no process."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._queues.bell, selectors.EVENT_READ, lambda _: self._queues.hush())
        if (permits := self._permits) is not None:
            self._selector.register(permits.channel, selectors.EVENT_READ, lambda _: self._on_permits(permits))
        try:
            while self._queues.taking:
                self._turn()
        finally:
            self._end()

    def _turn(self) -> None:
        self._breathe()
        for key, events in self._selector.select(self._patience()):
            key.data(events)
        self._expire(time.monotonic())
        self._refill(time.monotonic())
        self._dispatch()
        if self._permits is not None:
            self._permits.flush()
        self._tell()

    def _breathe(self) -> None:
        """While a worker has several questions before it, let answers gather: they are read and told together.

        A question that a worker is free for ends it, and so does the answer of one that has nothing else to do.
        """
        if any(len(worker.jobs) > 1 for worker in self._workers):
            last = [worker.channel for worker in self._workers if len(worker.jobs) == 1]
            breathe((self._queues.bell, *last, *([self._permits.channel] if self._permits else ())))

    def _patience(self) -> float | None:
        """How long nothing needs doing; None until something happens."""
        moments = [min(worker.deadline, worker.impatient) for worker in self._workers]
        moments.append(self._leisure())
        if self._zygote is not None:
            moments.append(self._zygote.deadline)
        now = time.monotonic()
        if self._pause.until > now or self._lacks_processes():
            moments.append(self._pause.until)
        wait = self._queues.next_deadline(min(moments, default=math.inf)) - now
        return max(0.0, wait) if wait < threading.TIMEOUT_MAX else None

    def _expire(self, now: float) -> None:
        for worker in self._workers:
            if worker.impatient <= now:
                self._queues.give_back(worker.take_back(1))
        late = [worker for worker in self._workers if worker.deadline <= now]
        # A zygote that was asked for a worker and gives none is stuck.
        stuck = any(not worker.jobs for worker in late)
        for worker in late:
            if worker.jobs and worker.begun:
                self._lose(worker, TIMEOUT)
            elif worker.jobs:
                self._done(worker, undecided(worker.jobs[0].engine, TIMEOUT))
        if self._zygote is not None and (stuck or self._zygote.deadline <= now):
            self._lose_zygote(self._zygote)
        for job in self._queues.late(now):
            self._settle(job, undecided(job.engine, TIMEOUT))

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
        zygote = self._zygote = Zygote(self._rows, self._memory_mb, now, self._able)
        self._selector.register(zygote.control, selectors.EVENT_READ, lambda _: self._on_zygote(zygote))
        self._list()

    def _start_worker(self, zygote: Zygote, now: float) -> None:
        worker = Worker(zygote.fork(), now)
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, lambda events: self._on_worker(worker, events))

    def _load(self, now: float) -> None:
        """Have what is asked for loaded, and its workers forked; at leisure, what may be asked for."""
        zygote = self._zygote
        if zygote is None or not zygote.ready:
            return
        wanted = self._lacking()
        if now >= self._leisure():
            wanted = self._unasked()
        missing = [engine for engine in wanted if engine not in zygote.loaded]
        if missing:
            zygote.load(missing[0], now)
        elif wanted:
            self._renew(zygote)

    def _lacking(self) -> list[str]:
        """The engines that something waits for and no worker has."""
        if self._able == self._known:
            return []
        return [engine for engine in self._queues.engines() if engine not in self._able]

    def _unasked(self) -> list[str]:
        """The engines that could be loaded though nobody waits for them."""
        return [row.name for row in self._rows if row.name not in self._able and row.name not in self._fatal]

    def _leisure(self) -> float:
        """When to load what nobody has asked for."""
        if self.warm_after == math.inf or self._zygote is None or not self._zygote.ready:
            return math.inf
        return self._asked + self.warm_after if self._unasked() and not self._lacking() else math.inf

    def _renew(self, zygote: Zygote) -> None:
        """Replace every worker by one that has all that is loaded; those that work, when they have done it."""
        self._able = zygote.loaded
        self._renewing = True
        for worker in list(self._workers):
            worker.stale = True
            if not worker.jobs:
                self._remove(worker)

    def _lacks_processes(self) -> bool:
        """Whether there is somebody to start."""
        return self._zygote is None or (self._zygote.ready and len(self._workers) < self._size)

    def _on_zygote(self, zygote: Zygote) -> None:
        try:
            zygote.listen()
        except Lost:
            self._lose_zygote(zygote)

    def _lose_zygote(self, zygote: Zygote) -> None:
        """Its workers end with it; the next one loads at once what this one had loaded."""
        self._zygote, self._renewing = None, False
        self._fatal |= zygote.loading
        self._able = zygote.loaded
        self._selector.unregister(zygote.control)
        zygote.end(patience=0)
        self._pause.failed()
        for worker in [worker for worker in self._workers if not worker.jobs]:
            self._remove(worker)
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
        for reply in worker.hear():
            self._pause.worked()
            if reply.declined:
                # It will say so of all that follow.
                self._queues.give_back(worker.take_back(0))
            self._done(worker, verdict_of(reply, worker.jobs[0].engine))
            broken = reply.verdict is None and not reply.declined
            if reply.retire or broken or (worker.stale and not worker.jobs):
                self._remove(worker)
                return

    def _meet(self, worker: Worker) -> None:
        worker.meet()
        if worker.pid:
            self._renewing = False
            self._selector.register(worker.handle, selectors.EVENT_READ, lambda _: self._on_exit(worker))
            self._list()

    def _lose(self, worker: Worker, why: str) -> None:
        self._renewing = False
        if worker.jobs and worker.begun:
            # Only the one it worked on has to do with it.
            self._done(worker, undecided(worker.jobs[0].engine, why))
        else:
            self._pause.failed()
            if worker.jobs:
                # It had ended before it saw them, and they are then another worker's.
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
        self._list()

    def _list(self) -> None:
        workers = [worker.pid for worker in self._workers if worker.pid]
        self.processes = (*([self._zygote.pid] if self._zygote else []), *workers)
        if len(workers) == self._size:
            self.ready.set()
        elif not workers and not self._renewing:
            self.ready.clear()

    def _dispatch(self) -> None:
        while handed := self._hand_out():
            self._asked = time.monotonic()
            if self._permits is None:
                self._begin(handed)
                continue
            for worker in handed:
                worker.claim = self._permits.claim(worker.jobs[0])

    def _hand_out(self) -> list[Worker]:
        """The workers that were given a job."""
        handed: list[Worker] = []
        while True:
            idle = [worker for worker in self._workers if worker.idle]
            busy = [worker.jobs[0] for worker in self._workers if worker.jobs]
            job = self._queues.take(len(idle), {each.who for each in busy if each.for_agent}, self._able)
            if job is None:
                return handed
            idle[0].give(job)
            handed.append(idle[0])

    def _begin(self, workers: list[Worker]) -> None:
        now = time.monotonic()
        riding = workers
        while riding:
            riding = [worker for worker in riding if self._give_more(worker, now)]
        for worker in workers:
            worker.begin(now)
            worker.jobs[0].ticket.begun = now
            try:
                self._send(worker)
            except Lost:
                self._lose(worker, DIED)

    def _give_more(self, worker: Worker, now: float) -> bool:
        """Whether there was one more for it of those that no other worker is free for."""
        first = worker.jobs[0]
        if len(first.payload) > SMALL:
            return False
        # The more wait for a turn, the shorter it is.
        room = self._together[first.engine] // (len(worker.jobs) + 1)
        more = self._queues.take_beside(first, room, now + PATIENT_SECONDS)
        if more is not None:
            worker.give(more)
        return more is not None

    def _on_permits(self, permits: Permits) -> None:
        granted = permits.granted()
        if granted is None:
            self._selector.unregister(permits.channel)
            return
        claims = {worker.claim: worker for worker in self._workers if worker.jobs}
        # What was given up meanwhile is also free again.
        self._begin([claims[claim] for claim in granted if claim in claims])

    def _done(self, worker: Worker, verdict: Verdict) -> None:
        """The worker is done with the job it worked on, and whoever waited for that is told."""
        job = worker.done()
        if job is not None:
            self._settle(job, verdict)
        if worker.jobs:
            worker.jobs[0].ticket.begun = time.monotonic()
        else:
            self._free(worker)

    def _free(self, worker: Worker) -> None:
        """The worker has nothing to do any more; what it had not begun is another's."""
        self._queues.give_back(worker.take_back(0))
        if self._permits is not None and worker.claim:
            self._permits.drop(worker.claim)
        worker.rest()

    def _settle(self, job: Job, verdict: Verdict) -> None:
        self._settled += job.ticket.settle(verdict, time.monotonic())

    def _tell(self) -> None:
        settled, self._settled = self._settled, []
        announce(settled)

    def _end(self) -> None:
        for worker in self._workers:
            worker.kill()
        begun = [job for worker in self._workers for job in worker.take_back(0)]
        for job in (*self._queues.close(), *begun):
            self._settle(job, undecided(job.engine, DIED))
        self._tell()
        self._selector.close()
        if self._zygote is not None:
            self._zygote.end()
        for worker in self._workers:
            worker.wait_gone(ENDING_SECONDS)
            worker.close()
        self._zygote, self._workers = None, []
        if self._permits is not None:
            self._permits.channel.close()
        self._list()
