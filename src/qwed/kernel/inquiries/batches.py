"""Batches: one thread that asks the engines item by item, keeps every answer, and after a restart goes on.

Where several processes share the store, one of them works on all batches: whoever leads. The others keep what they are
sent, and should it end, the next one goes on.
"""

import asyncio
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor
from qwed.kernel.inquiries.asking import ask_any, ask_engine
from qwed.kernel.inquiries.finding import Finding
from qwed.kernel.inquiries.jobs import MOST_OPEN, Batch, body_of, forgotten, is_verified, items_of, sealed_item
from qwed.kernel.inquiries.turns import Turns
from qwed.kernel.services import Services
from qwed.store.job import COMPLETED, FAILED, PENDING, SKIPPED, Job, JobItem
from qwed.store.protocol import StoreError
from qwed.waiting import LoopDriver, LoopThread
from qwed.words import ErrorCode

AT_ONCE = 8
"""Items of all jobs together, where there are so many workers; each organisation with a job has its turn."""
JOBS_AT_ONCE = 5
"""Jobs of one organisation that are worked on."""
PATIENCE = 90.0
RETRY_SECONDS = 0.5
LOOK_SECONDS = 1.0
"""Between two looks for what other processes were sent."""
TRIES = 240
CLOSE_SECONDS = 2.0
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class Batches:
    """Started once, closed once; `add` may be called from any thread at any time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._log = logging.getLogger("qwed.batches")
        self._driver: LoopDriver
        self._turns = Turns(_at_once(services.settings.engine_workers))
        self._desks: dict[str, asyncio.Semaphore] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._adding: Counter[str] = Counter()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = LoopThread("qwed-batches", self._serve)

    def start(self) -> None:
        """Go on with what a former process has left; a second call does nothing."""
        with self._lock:
            if not self._thread.started and not self._closed:
                self._thread.start()

    async def add(self, batch: Batch) -> Problem | None:
        """Keep a new job and begin with it; a Problem where the organisation has too many open ones."""
        organisation_id = batch.job.organisation_id
        if not self._admit(organisation_id):
            message = f"{MOST_OPEN} jobs of this organisation are not finished"
            return problem(ErrorCode.RATE_LIMITED, message, retry_after=5)
        try:
            items = [sealed_item(batch.job, item, self._services) for item in batch.items]
            await self._services.store.add_job(batch.job, items)
        finally:
            with self._lock:
                self._adding[organisation_id] -= 1
        self.start()
        if self._services.store.leads():
            self._thread.tell(lambda: self._begin(batch.job))
        return None

    def _admit(self, organisation_id: str) -> bool:
        # Those on their way to the store count too: whoever sends many at once has no more than others.
        with self._lock:
            found = self._services.store.count_open_jobs(organisation_id) + self._adding[organisation_id]
            self._adding[organisation_id] += found < MOST_OPEN
            return found < MOST_OPEN

    def close(self) -> None:
        """Stop soon; what was not answered is asked again after the next start."""
        with self._lock:
            self._closed = True
        self._thread.close(CLOSE_SECONDS)

    async def _serve(self) -> None:
        self._driver = LoopDriver(self._thread.loop, PATIENCE)
        resuming = self._thread.loop.create_task(self._resume())
        await self._thread.closing.wait()
        resuming.cancel()

    async def _resume(self) -> None:
        """Begin with what is open; where others share the store, again and again, and as long as this one leads."""
        alone = self._services.store.freshen is None
        while True:
            if self._services.store.leads():
                for job in await self._looked_up(self._services.store.open_jobs):
                    self._begin(job)
            else:
                for task in self._tasks:
                    task.cancel()
            if alone:
                return
            await asyncio.sleep(LOOK_SECONDS)

    def _begin(self, job: Job) -> None:
        # The first round finds what was added before the thread came up, and so may `add`.
        if job.job_id in {task.get_name() for task in self._tasks}:
            return
        task = self._thread.loop.create_task(self._work(job), name=job.job_id)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("a batch stopped", exc_info=task.exception(), extra={"job": task.get_name()})

    async def _work(self, job: Job) -> None:
        # The others are not even read yet: what they hold stays in the store meanwhile.
        async with self._desks.setdefault(job.organisation_id, asyncio.Semaphore(JOBS_AT_ONCE)):
            items = await self._looked_up(lambda: items_of(job, self._services))
            waiting = [item for item in items if item.state == PENDING]
            stop = asyncio.Event()
            if _is_over(job, items, self._services.clock.now()):
                stop.set()
            await self._answer_all(job, waiting, stop)
            await self._kept(lambda: _finish(self._services, job.job_id))
        self._services.doorbells.ring(job.job_id)

    async def _answer_all(self, job: Job, waiting: Sequence[JobItem], stop: asyncio.Event) -> None:
        """Every item is answered, failed or skipped: a surprise with one of them is no reason to stay open for ever."""
        lines = asyncio.Semaphore(job.max_parallel)
        answers = (self._answer(job, item, lines, stop) for item in waiting)
        for item, came in zip(waiting, await asyncio.gather(*answers, return_exceptions=True), strict=True):
            if isinstance(came, BaseException):
                self._log.error("an item could not be asked", exc_info=came, extra={"job": job.job_id})
                failed = _answered(item, problem(ErrorCode.SURPRISE))
                await self._kept(partial(_keep, self._services, job, failed))

    async def _answer(self, job: Job, item: JobItem, lines: asyncio.Semaphore, stop: asyncio.Event) -> None:
        answered = _skipped(item)
        async with lines, self._turns.turn(job.organisation_id):
            if not stop.is_set():
                answered = _answered(item, await self._ask(job, item))
                if job.fail_fast and not is_verified(answered):
                    stop.set()
        await self._kept(lambda: _keep(self._services, job, answered))

    async def _ask(self, job: Job, item: JobItem) -> Finding | Problem:
        """The answer; while every engine worker is taken, it is asked again."""
        actor = Actor(job.asked_by, job.organisation_id, job.role)
        params = None if item.params is None else msgspec.json.decode(item.params)
        body = body_of({"query": item.query, "type": item.type, "params": params})
        for _ in range(TRIES):
            walk = (
                ask_any(body, actor, self._services)
                if item.type is None
                else ask_engine(item.type, body, actor, self._services)
            )
            found = await self._driver.drive(walk)
            if not isinstance(found, Problem) or found.code != ErrorCode.ENGINE_UNAVAILABLE.code:
                return found
            await asyncio.sleep(RETRY_SECONDS)
        return found

    async def _looked_up(self, look: Callable[[], T]) -> T:
        """What the store says, as soon as it says something."""
        while True:
            try:
                return await asyncio.to_thread(look)
            except StoreError as why:
                self._log.error("a batch could not be read: %s", why)
                await asyncio.sleep(RETRY_SECONDS)

    async def _kept(self, write: Callable[[], Coroutine[Any, None, None]]) -> None:
        """Written, however long the store takes to come back: an answer that is lost would be asked for again."""
        while True:
            try:
                return await self._driver.drive(write())
            except (StoreError, TimeoutError) as why:
                self._log.error("an answer could not be kept: %s", why)
                await asyncio.sleep(RETRY_SECONDS)


def _at_once(workers: int) -> int:
    """As many as there are workers for questions of this kind: who asks one alone finds no batch in line before it."""
    return max(1, min(AT_ONCE, (workers or os.cpu_count() or 1) - 1))


def _is_over(job: Job, items: Sequence[JobItem], now: float) -> bool:
    """Whether nothing more is asked: its time is past, or what ends it was found by a former process."""
    answered = (item for item in items if item.state != PENDING)
    return job.expires_at <= now or (job.fail_fast and not all(is_verified(item) for item in answered))


async def _keep(services: Services, job: Job, item: JobItem) -> None:
    await services.store.finish_item(sealed_item(job, item, services))


async def _finish(services: Services, job_id: str) -> None:
    await services.store.finish_job(job_id, services.clock.now())


def _skipped(item: JobItem) -> JobItem:
    query, params = forgotten(item)
    return item._replace(query=query, params=params, state=SKIPPED)


def _answered(item: JobItem, found: Finding | Problem) -> JobItem:
    query, params = forgotten(item)
    if isinstance(found, Problem):
        return item._replace(query=query, params=params, state=FAILED, error=_encode(found).decode())
    return item._replace(
        query=query, params=params, state=COMPLETED, result=_encode(found).decode(), latency_ms=found.latency_ms
    )
