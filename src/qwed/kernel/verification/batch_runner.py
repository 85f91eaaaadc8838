"""Batch runner: one thread that verifies items one by one, stores every answer, and resumes after a restart.

Where several processes share the store, the leader works on all batches. The others only store new jobs; if the leader
ends, the next leader continues.
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

from qwed.fair_semaphore import FairSemaphore
from qwed.futures import LoopRunner, LoopThread
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.services import Services
from qwed.kernel.verification.batch_jobs import (
    MAX_OPEN_JOBS,
    Batch,
    body_of,
    is_verified,
    items_of,
    redacted_input,
    seal_item,
)
from qwed.kernel.verification.response import VerificationResult
from qwed.kernel.verification.service import verify_detected, verify_with_engine
from qwed.model import ErrorCode
from qwed.store.batch_job import COMPLETED, FAILED, PENDING, SKIPPED, BatchJob, JobItem
from qwed.store.protocol import StoreError

MAX_CONCURRENT_ITEMS = 8
"""Items of all jobs together, if there are as many workers; organisations take turns."""
MAX_CONCURRENT_JOBS = 5
"""Jobs of one organisation that are processed at once."""
WAIT_SECONDS = 90.0
RETRY_SECONDS = 0.5
POLL_SECONDS = 1.0
"""Seconds between two searches for jobs of other processes."""
MAX_ATTEMPTS = 240
CLOSE_SECONDS = 2.0
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class BatchRunner:
    """Started once, closed once; `add` may be called from any thread at any time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._log = logging.getLogger("qwed.batches")
        self._runner: LoopRunner
        self._slots = FairSemaphore(_concurrency(services.settings.engine_workers))
        self._job_slots: dict[str, asyncio.Semaphore] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._adding: Counter[str] = Counter()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = LoopThread("qwed-batches", self._serve)

    def start(self) -> None:
        """Start the thread, which resumes unfinished jobs; a second call does nothing."""
        with self._lock:
            if not self._thread.started and not self._closed:
                self._thread.start()

    async def add(self, batch: Batch) -> Problem | None:
        """Store a new job and start it; a Problem if the organisation has too many open jobs."""
        organisation_id = batch.job.organisation_id
        if not self._admit(organisation_id):
            message = f"{MAX_OPEN_JOBS} jobs of this organisation are not finished"
            return problem(ErrorCode.RATE_LIMITED, message, retry_after=5)
        try:
            items = [seal_item(batch.job, item, self._services) for item in batch.items]
            await self._services.store.add_job(batch.job, items)
        finally:
            with self._lock:
                self._adding[organisation_id] -= 1
        self.start()
        if self._services.store.is_leader():
            self._thread.call_soon(lambda: self._begin(batch.job))
        return None

    def _admit(self, organisation_id: str) -> bool:
        # Jobs that are being stored count too, so that concurrent requests cannot exceed the limit.
        with self._lock:
            open_jobs = self._services.store.count_open_jobs(organisation_id) + self._adding[organisation_id]
            self._adding[organisation_id] += open_jobs < MAX_OPEN_JOBS
            return open_jobs < MAX_OPEN_JOBS

    def close(self) -> None:
        """Stop the thread; unanswered items are processed after the next start."""
        with self._lock:
            self._closed = True
        self._thread.close(CLOSE_SECONDS)

    async def _serve(self) -> None:
        self._runner = LoopRunner(self._thread.loop, WAIT_SECONDS)
        resuming = self._thread.loop.create_task(self._resume())
        await self._thread.closing.wait()
        resuming.cancel()

    async def _resume(self) -> None:
        """Start all open jobs; with a shared store repeatedly, and only while this process is the leader."""
        single_process = not self._services.store.is_shared
        while True:
            if self._services.store.is_leader():
                for job in await self._read_store(self._services.store.open_jobs):
                    self._begin(job)
            else:
                for task in self._tasks:
                    task.cancel()
            if single_process:
                return
            await asyncio.sleep(POLL_SECONDS)

    def _begin(self, job: BatchJob) -> None:
        # A job added before the thread started is found by both `_resume` and `add`.
        if job.job_id in {task.get_name() for task in self._tasks}:
            return
        task = self._thread.loop.create_task(self._work(job), name=job.job_id)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("batch failed", exc_info=task.exception(), extra={"job": task.get_name()})

    async def _work(self, job: BatchJob) -> None:
        # Further jobs are not read before they start, so that their items stay in the store.
        async with self._job_slots.setdefault(job.organisation_id, asyncio.Semaphore(MAX_CONCURRENT_JOBS)):
            items = await self._read_store(lambda: items_of(job, self._services))
            pending = [item for item in items if item.state == PENDING]
            stop = asyncio.Event()
            if _has_ended(job, items, self._services.clock.now()):
                stop.set()
            await self._answer_all(job, pending, stop)
            await self._write_store(lambda: _finish(self._services, job.job_id))
        self._services.waiters.notify(job.job_id)

    async def _answer_all(self, job: BatchJob, pending: Sequence[JobItem], stop: asyncio.Event) -> None:
        """Answer, fail or skip every item: an unexpected failure of one item must not keep the job open."""
        parallel = asyncio.Semaphore(job.max_parallel)
        answers = (self._answer(job, item, parallel, stop) for item in pending)
        for item, outcome in zip(pending, await asyncio.gather(*answers, return_exceptions=True), strict=True):
            if isinstance(outcome, BaseException):
                self._log.error("batch item failed", exc_info=outcome, extra={"job": job.job_id})
                failed = _answered_item(item, problem(ErrorCode.SERVER_ERROR))
                await self._write_store(partial(_store_item, self._services, job, failed))

    async def _answer(self, job: BatchJob, item: JobItem, parallel: asyncio.Semaphore, stop: asyncio.Event) -> None:
        result_item = _skipped_item(item)
        async with parallel, self._slots.slot(job.organisation_id):
            if not stop.is_set():
                result_item = _answered_item(item, await self._ask(job, item))
                if job.fail_fast and not is_verified(result_item):
                    stop.set()
        await self._write_store(lambda: _store_item(self._services, job, result_item))

    async def _ask(self, job: BatchJob, item: JobItem) -> VerificationResult | Problem:
        """Return the answer; retried while all engine workers are busy."""
        actor = Actor(job.requested_by, job.organisation_id, job.role)
        params = None if item.params is None else msgspec.json.decode(item.params)
        body = body_of({"query": item.query, "type": item.type, "params": params})
        for _ in range(MAX_ATTEMPTS):
            coro = (
                verify_detected(body, actor, self._services)
                if item.type is None
                else verify_with_engine(item.type, body, actor, self._services)
            )
            result = await self._runner.run(coro)
            if not isinstance(result, Problem) or result.code != ErrorCode.ENGINE_UNAVAILABLE.code:
                return result
            await asyncio.sleep(RETRY_SECONDS)
        return result

    async def _read_store(self, read: Callable[[], T]) -> T:
        """Return the result of `read`, retried while the store is unavailable."""
        while True:
            try:
                return await asyncio.to_thread(read)
            except StoreError as error:
                self._log.error("batch read failed; retrying: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _write_store(self, write: Callable[[], Coroutine[Any, None, None]]) -> None:
        """Run `write` until the store accepts it: a lost answer would be computed again."""
        while True:
            try:
                return await self._runner.run(write())
            except (StoreError, TimeoutError) as error:
                self._log.error("batch answer write failed; retrying: %s", error)
                await asyncio.sleep(RETRY_SECONDS)


def _concurrency(workers: int) -> int:
    """Return the number of workers available for batches; one stays free for single requests."""
    return max(1, min(MAX_CONCURRENT_ITEMS, (workers or os.cpu_count() or 1) - 1))


def _has_ended(job: BatchJob, items: Sequence[JobItem], now: float) -> bool:
    """Return True if the job is expired, or failed fast in an earlier process."""
    answered = (item for item in items if item.state != PENDING)
    return job.expires_at <= now or (job.fail_fast and not all(is_verified(item) for item in answered))


async def _store_item(services: Services, job: BatchJob, item: JobItem) -> None:
    await services.store.finish_item(seal_item(job, item, services))


async def _finish(services: Services, job_id: str) -> None:
    await services.store.finish_job(job_id, services.clock.now())


def _skipped_item(item: JobItem) -> JobItem:
    query, params = redacted_input(item)
    return item._replace(query=query, params=params, state=SKIPPED)


def _answered_item(item: JobItem, result: VerificationResult | Problem) -> JobItem:
    query, params = redacted_input(item)
    if isinstance(result, Problem):
        return item._replace(query=query, params=params, state=FAILED, error=_encode(result).decode())
    return item._replace(
        query=query, params=params, state=COMPLETED, result=_encode(result).decode(), latency_ms=result.latency_ms
    )
