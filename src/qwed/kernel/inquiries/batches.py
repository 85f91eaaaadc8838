"""Batches: one thread that asks the engines item by item, keeps every answer, and after a restart goes on."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor
from qwed.kernel.inquiries.asking import ask_any, ask_engine
from qwed.kernel.inquiries.finding import Finding
from qwed.kernel.inquiries.jobs import MOST_OPEN, Batch, body_of, forgotten
from qwed.kernel.services import Services
from qwed.store.job import COMPLETED, FAILED, PENDING, Job, JobItem
from qwed.store.protocol import StoreError
from qwed.waiting import LoopDriver
from qwed.words import ErrorCode, Status

AT_ONCE = 8
"""Items of all jobs together: whoever asks one question finds the engines free soon."""
PATIENCE = 90.0
RETRY_SECONDS = 0.5
TRIES = 240
CLOSE_SECONDS = 2.0
_encode = msgspec.json.Encoder().encode


class Batches:
    """Started once, closed once; `begin` may be called from any thread at any time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._log = logging.getLogger("qwed.batches")
        self._loop: asyncio.AbstractEventLoop
        self._driver: LoopDriver
        self._closing = asyncio.Event()
        self._lines = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="qwed-batches", daemon=True)

    def start(self) -> None:
        """Go on with what a former process has left; a second call does nothing."""
        with self._lock:
            if self._thread.ident is None:
                # Made here: most processes never ask for a batch, and a loop holds descriptors.
                self._loop = asyncio.new_event_loop()
                self._driver = LoopDriver(self._loop, PATIENCE)
                self._thread.start()

    async def add(self, batch: Batch) -> Problem | None:
        """Keep a new job and begin with it; a Problem where the organisation has too many open ones."""
        store = self._services.store
        if store.count_open_jobs(batch.job.organisation_id) >= MOST_OPEN:
            message = f"{MOST_OPEN} jobs of this organisation are not finished"
            return problem(ErrorCode.RATE_LIMITED, message, retry_after=5)
        await store.add_job(batch.job, batch.items)
        self.start()
        self._tell(lambda: self._begin(batch.job))
        return None

    def close(self) -> None:
        """Stop soon; what was not answered is asked again after the next start."""
        if self._thread.ident is None:
            return
        self._tell(self._closing.set)
        self._thread.join(CLOSE_SECONDS)

    def _tell(self, do: Callable[[], None]) -> None:
        # A closed loop has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(do)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        for job in await asyncio.to_thread(self._services.store.open_jobs):
            self._begin(job)
        await self._closing.wait()

    def _begin(self, job: Job) -> None:
        # The first round finds what was added before the thread came up, and so may `add`.
        if job.job_id in {task.get_name() for task in self._tasks}:
            return
        task = self._loop.create_task(self._work(job), name=job.job_id)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("a batch stopped", exc_info=task.exception(), extra={"job": task.get_name()})

    async def _work(self, job: Job) -> None:
        items = await asyncio.to_thread(self._services.store.job_items, job.job_id)
        waiting = [item for item in items if item.state == PENDING]
        lines, stop = asyncio.Semaphore(job.max_parallel), asyncio.Event()
        await asyncio.gather(*(self._answer(job, item, lines, stop) for item in waiting))
        await self._kept(lambda: _finish(self._services, job.job_id))
        self._services.doorbells.ring(job.job_id)

    async def _answer(self, job: Job, item: JobItem, lines: asyncio.Semaphore, stop: asyncio.Event) -> None:
        async with lines, self._lines:
            if stop.is_set():
                return
            found = await self._ask(job, item)
            answered = _answered(item, found)
            if job.fail_fast and (isinstance(found, Problem) or found.status is not Status.VERIFIED):
                stop.set()
        await self._kept(lambda: _keep(self._services, answered))

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

    async def _kept(self, write: Callable[[], Coroutine[Any, None, None]]) -> None:
        """Written, however long the store takes to come back: an answer that is lost would be asked for again."""
        while True:
            try:
                return await self._driver.drive(write())
            except (StoreError, TimeoutError) as why:
                self._log.error("an answer could not be kept: %s", why)
                await asyncio.sleep(RETRY_SECONDS)


async def _keep(services: Services, item: JobItem) -> None:
    await services.store.finish_item(item)


async def _finish(services: Services, job_id: str) -> None:
    await services.store.finish_job(job_id, services.clock.now())


def _answered(item: JobItem, found: Finding | Problem) -> JobItem:
    query, params = forgotten(item)
    if isinstance(found, Problem):
        return item._replace(query=query, params=params, state=FAILED, error=_encode(found).decode())
    return item._replace(
        query=query, params=params, state=COMPLETED, result=_encode(found).decode(), latency_ms=found.latency_ms
    )
