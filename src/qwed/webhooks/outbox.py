"""The postman: one thread that empties the outbox, and outlives whatever receivers and the store do to it.

Every notice is sent at least once, or given up after the last of `DELAYS`. What is known lives in the outbox alone, so
a crash at any point sends a notice again and loses none.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from qwed.store.protocol import Delivery
from qwed.waiting import LoopDriver, LoopThread, Ticket, failure_of
from qwed.webhooks.sender import Sender
from qwed.words.clock import Clock

DELAYS = (1, 5, 30, 120, 600, 1_800, *(3_600,) * 23)
"""Seconds from one attempt to the next; after the last of them, a little less than a day, a notice is given up."""
AT_ONCE = 64
AT_ONCE_EACH = 4
"""For one organisation: a receiver that never answers holds this many lines and no more."""
PAGE = 128
LARGEST_PAGE = 4_096
"""Behind a full page others may wait, whom one organisation's backlog must not hide; looked for once in a poll."""
POLL_SECONDS = 1.0
GATHER_SECONDS = 0.02
"""Between two looks at the outbox, so that a storm of notices is not a storm of queries."""
LOG_EVERY = 60
STORE_SECONDS = 30.0
CLOSE_SECONDS = 1.0


class Outbox(Protocol):
    """Where notices wait; called from the postman's thread only."""

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]:
        """At most `limit` notices whose time has come, the longest due first."""

    def delivered(self, notice_id: str, now: float) -> Ticket[None]:
        """Remove it for good."""

    def postpone(self, notice_id: str, due_at: float, error: str) -> Ticket[None]:
        """Count one more attempt; it is due again at `due_at`."""

    def give_up(self, notice_id: str, error: str) -> Ticket[None]:
        """Remove it and count it as lost."""


def delay_after(attempts: int) -> int | None:
    """Seconds to wait when the attempt after so many earlier ones has failed; None to give up."""
    return DELAYS[attempts] if attempts < len(DELAYS) else None


def chosen(page: Sequence[Delivery], running: dict[str, str]) -> list[Delivery]:
    """Which of `page` to begin now beside those `running` (notice to organisation): who has the fewest is first."""
    lines = Counter(running.values())
    ranked: list[tuple[int, Delivery]] = []
    for delivery in page:
        if delivery.notice_id not in running:
            ranked.append((lines[delivery.organisation_id], delivery))
            lines[delivery.organisation_id] += 1
    ranked.sort(key=lambda pair: pair[0])
    free = AT_ONCE - len(running)
    return [delivery for rank, delivery in ranked[:free] if rank < AT_ONCE_EACH]


class Postman:
    """Started once, closed once; `wake` may be called from any thread at any time."""

    def __init__(
        self,
        outbox: Outbox,
        sender: Sender,
        clock: Clock | None = None,
        *,
        poll_seconds: float = POLL_SECONDS,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """`leads` says whether it is this process, of all that share the outbox, that empties it."""
        self._leads = leads
        self.delivered = 0
        self.failed = 0
        """Attempts, so one notice may count many times."""
        self.given_up = 0
        self._outbox = outbox
        self._sender = sender
        self._clock = clock or Clock()
        self._poll_seconds = poll_seconds
        self._log = logging.getLogger("qwed.webhooks")
        self._running: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bell = asyncio.Event()
        self._rung = False
        self._next_look_behind = 0.0
        self._thread = LoopThread("qwed-postman", self._go_round)

    def start(self) -> None:
        """Begin with what is due."""
        self._thread.start()

    def wake(self) -> None:
        """Say that a notice was written; cheap, and many of them are one."""
        if not self._rung:
            self._rung = True
            self._thread.tell(self._bell.set)

    def close(self) -> None:
        """Stop within a second; what was not delivered stays in the outbox."""
        self._thread.tell(self._bell.set)
        self._thread.close(CLOSE_SECONDS)

    async def _go_round(self) -> None:
        closing, pause = self._thread.closing, self._thread.pause
        while not closing.is_set():
            self._bell.clear()
            self._rung = False
            failure = await failure_of(self._sweep()) if self._leads() else None
            if failure is not None:
                self._log.error("the outbox could not be read", extra={"error": repr(failure)})
            await pause(self._poll_seconds, self._bell if failure is None else closing)
            await pause(GATHER_SECONDS)

    async def _sweep(self) -> None:
        """Begin whatever is due and has a free line; at times, look behind a page that one backlog has filled."""
        largest = PAGE
        now = self._clock.monotonic()
        if now >= self._next_look_behind:
            largest = LARGEST_PAGE
            self._next_look_behind = now + self._poll_seconds
        limit = PAGE
        while len(self._running) < AT_ONCE:
            page = self._outbox.due_deliveries(self._clock.now(), limit)
            for delivery in chosen(page, self._running):
                self._begin(delivery)
            if len(page) < limit or limit >= largest:
                return
            limit = largest

    def _begin(self, delivery: Delivery) -> None:
        self._running[delivery.notice_id] = delivery.organisation_id
        task = self._thread.loop.create_task(self._deliver(delivery))
        # Kept, because the loop itself holds its tasks only weakly.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._record(delivery, await self._attempt(delivery))
        finally:
            del self._running[delivery.notice_id]
            self._bell.set()

    async def _attempt(self, delivery: Delivery) -> str | None:
        [outcome] = await asyncio.gather(self._sender.send(delivery, self._clock.now()), return_exceptions=True)
        if isinstance(outcome, BaseException):
            self._log.error("a notice could not be sent", exc_info=outcome, extra={"notice": delivery.notice_id})
            return "an error of our own"
        return outcome

    async def _record(self, delivery: Delivery, error: str | None) -> None:
        """Keep the outcome. The line stays taken until that is done: a notice whose outcome is lost is sent again."""
        keep = self._outcome(delivery, error)
        driver = LoopDriver(self._thread.loop, STORE_SECONDS)
        for tries in itertools.count():
            failure = await failure_of(driver.drive(_kept(keep)))
            if failure is None:
                return
            if tries % LOG_EVERY == 0:
                details = {"notice": delivery.notice_id, "error": repr(failure)}
                self._log.error("the outcome of a notice could not be kept", extra=details)
            await self._thread.pause(self._poll_seconds)

    def _outcome(self, delivery: Delivery, error: str | None) -> Callable[[], Ticket[None]]:
        notice_id, now = delivery.notice_id, self._clock.now()
        if error is None:
            self.delivered += 1
            return lambda: self._outbox.delivered(notice_id, now)
        self.failed += 1
        delay = delay_after(delivery.attempts)
        if delay is not None:
            return lambda: self._outbox.postpone(notice_id, now + delay, error)
        self.given_up += 1
        self._log.warning("a notice was given up", extra={"notice": notice_id, "error": error})
        return lambda: self._outbox.give_up(notice_id, error)


async def _kept(keep: Callable[[], Ticket[None]]) -> None:
    await keep()
