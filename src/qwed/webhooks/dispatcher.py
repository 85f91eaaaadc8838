"""Outbox dispatcher: one thread that delivers webhook notices and survives failures of receivers and of the store.

Every notice is delivered at least once, or given up after the last of `DELAYS`. All state is in the outbox, so a crash
may repeat a notice but never loses one.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from qwed.futures import Future, LoopRunner, LoopThread, capture_failure
from qwed.model.clock import Clock
from qwed.store.protocol import Delivery
from qwed.webhooks.sender import Sender

DELAYS = (1, 5, 30, 120, 600, 1_800, *(3_600,) * 23)
"""Seconds between attempts; after the last one, a little less than a day, the notice is given up."""
MAX_CONCURRENT = 64
MAX_CONCURRENT_PER_ORGANISATION = 4
"""Limits the connections that one hanging receiver can occupy."""
PAGE = 128
LARGEST_PAGE = 4_096
"""Read once per poll, so that the backlog of one organisation does not hide notices of others."""
POLL_SECONDS = 1.0
BATCH_SECONDS = 0.02
"""Shortest interval between two reads of the outbox."""
LOG_EVERY = 60
STORE_SECONDS = 30.0
CLOSE_SECONDS = 1.0


class Outbox(Protocol):
    """Store of undelivered notices; called from the dispatcher's thread only."""

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]:
        """Return at most `limit` due notices, the longest due first."""

    def delivered(self, notice_id: str, now: float) -> Future[None]:
        """Remove a delivered notice."""

    def postpone(self, notice_id: str, due_at: float, error: str) -> Future[None]:
        """Count an attempt and set the next one to `due_at`."""

    def give_up(self, notice_id: str, error: str) -> Future[None]:
        """Remove a notice and count it as lost."""


def delay_after(attempts: int) -> int | None:
    """Return the seconds until the next attempt after so many attempts; None to give up."""
    return DELAYS[attempts] if attempts < len(DELAYS) else None


def select_deliveries(page: Sequence[Delivery], running: dict[str, str]) -> list[Delivery]:
    """Select the deliveries of `page` to start next to those `running` (notice to organisation), fewest per
    organisation first."""
    lines = Counter(running.values())
    ranked: list[tuple[int, Delivery]] = []
    for delivery in page:
        if delivery.notice_id not in running:
            ranked.append((lines[delivery.organisation_id], delivery))
            lines[delivery.organisation_id] += 1
    ranked.sort(key=lambda pair: pair[0])
    free = MAX_CONCURRENT - len(running)
    return [delivery for rank, delivery in ranked[:free] if rank < MAX_CONCURRENT_PER_ORGANISATION]


class OutboxDispatcher:
    """Delivers due notices. Started and closed once; `wake` is thread-safe."""

    def __init__(
        self,
        outbox: Outbox,
        sender: Sender,
        clock: Clock | None = None,
        *,
        poll_seconds: float = POLL_SECONDS,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_leader` returns True if this process, of all that share the outbox, delivers."""
        self._is_leader = is_leader
        self.delivered = 0
        self.failed = 0
        """Failed attempts; one notice may count several times."""
        self.given_up = 0
        self._outbox = outbox
        self._sender = sender
        self._clock = clock or Clock()
        self._poll_seconds = poll_seconds
        self._log = logging.getLogger("qwed.webhooks")
        self._running: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake_event = asyncio.Event()
        self._wake_pending = False
        self._next_large_page = 0.0
        self._thread = LoopThread("qwed-webhooks", self._dispatch_forever)

    def start(self) -> None:
        """Start with what is due."""
        self._thread.start()

    def wake(self) -> None:
        """Signal that a notice was written; cheap, and repeated calls are coalesced."""
        if not self._wake_pending:
            self._wake_pending = True
            self._thread.call_soon(self._wake_event.set)

    def close(self) -> None:
        """Stop within a second; undelivered notices stay in the outbox."""
        self._thread.call_soon(self._wake_event.set)
        self._thread.close(CLOSE_SECONDS)

    async def _dispatch_forever(self) -> None:
        closing, pause = self._thread.closing, self._thread.pause
        while not closing.is_set():
            self._wake_event.clear()
            self._wake_pending = False
            failure = await capture_failure(self._sweep()) if self._is_leader() else None
            if failure is not None:
                self._log.error("webhook outbox read failed", extra={"error": repr(failure)})
            await pause(self._poll_seconds, self._wake_event if failure is None else closing)
            await pause(BATCH_SECONDS)

    async def _sweep(self) -> None:
        """Start due deliveries while there is capacity; once per poll, look behind a page filled by one backlog."""
        page_limit = PAGE
        now = self._clock.monotonic()
        if now >= self._next_large_page:
            page_limit = LARGEST_PAGE
            self._next_large_page = now + self._poll_seconds
        limit = PAGE
        while len(self._running) < MAX_CONCURRENT:
            page = self._outbox.due_deliveries(self._clock.now(), limit)
            for delivery in select_deliveries(page, self._running):
                self._begin(delivery)
            if len(page) < limit or limit >= page_limit:
                return
            limit = page_limit

    def _begin(self, delivery: Delivery) -> None:
        self._running[delivery.notice_id] = delivery.organisation_id
        task = self._thread.loop.create_task(self._deliver(delivery))
        # The event loop holds tasks by weak references only.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._record(delivery, await self._attempt(delivery))
        finally:
            del self._running[delivery.notice_id]
            self._wake_event.set()

    async def _attempt(self, delivery: Delivery) -> str | None:
        [outcome] = await asyncio.gather(self._sender.send(delivery, self._clock.now()), return_exceptions=True)
        if isinstance(outcome, BaseException):
            self._log.error(
                "webhook delivery failed unexpectedly", exc_info=outcome, extra={"notice": delivery.notice_id}
            )
            return "internal error of the sender"
        return outcome

    async def _record(self, delivery: Delivery, error: str | None) -> None:
        """Store the outcome. The slot stays taken until then: a notice with a lost outcome is sent again."""
        store = self._outcome(delivery, error)
        driver = LoopRunner(self._thread.loop, STORE_SECONDS)
        for tries in itertools.count():
            failure = await capture_failure(driver.run(_store_outcome(store)))
            if failure is None:
                return
            if tries % LOG_EVERY == 0:
                details = {"notice": delivery.notice_id, "error": repr(failure)}
                self._log.error("webhook outcome write failed; retrying", extra=details)
            await self._thread.pause(self._poll_seconds)

    def _outcome(self, delivery: Delivery, error: str | None) -> Callable[[], Future[None]]:
        notice_id, now = delivery.notice_id, self._clock.now()
        if error is None:
            self.delivered += 1
            return lambda: self._outbox.delivered(notice_id, now)
        self.failed += 1
        delay = delay_after(delivery.attempts)
        if delay is not None:
            return lambda: self._outbox.postpone(notice_id, now + delay, error)
        self.given_up += 1
        self._log.warning("webhook delivery given up", extra={"notice": notice_id, "error": error})
        return lambda: self._outbox.give_up(notice_id, error)


async def _store_outcome(store: Callable[[], Future[None]]) -> None:
    await store()
