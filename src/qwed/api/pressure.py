"""P6: how many requests are answered at once, how much of their bodies is held, how long a client is waited for.

Everything here runs on the event loop, so nothing is locked. Whoever waits for its client is on a list; when there is
no room, the one that has kept us waiting longest gives way to the one that is here now.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

CLIENT_SECONDS = 30.0
"""How long a client may take to send its body."""
GRACE_SECONDS = 1.0
"""How long a client may take while others find no room."""
MOST_WAITING = 1_024
MOST_WAITING_EACH = 256
"""Long-polls of one organisation."""
_TICK = 1.0

REASONS = ("requests", "bytes", "slow_client")
"""Of what there was too much; `slow_client` were sent away, to make room or because their time was over."""

T = TypeVar("T")


class Late(Exception):
    """The client did not do its part in time, or had to give way."""


class Pressure:
    """What is in flight now, and how much may be."""

    def __init__(self, most_requests: int, most_bytes: int, monotonic: Callable[[], float]) -> None:
        self.most_requests = most_requests
        self.most_bytes = most_bytes
        self.monotonic = monotonic
        self.in_flight = 0
        self.held_bytes = 0
        self.waiting: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._on_client: dict[Hold, float] = {}
        self._ticking = False

    def enter(self) -> "Hold | None":
        """A place among those being answered, or None."""
        if self.in_flight >= self.most_requests and not self._make_room():
            self.refused["requests"] += 1
            return None
        self.in_flight += 1
        return Hold(self, counted=True)

    def pass_by(self) -> "Hold":
        """A place beside the others, for the few routes that are always answered."""
        return Hold(self, counted=False)

    def has_room(self, size: int, asking: "Hold | None" = None) -> bool:
        """Whether so many bytes more can be held; where slow clients hold them, they give way."""
        while self.held_bytes + size > self.most_bytes:
            if not self._make_room(asking):
                self.refused["bytes"] += 1
                return False
        return True

    def _make_room(self, asking: "Hold | None" = None) -> bool:
        slowest = next(iter(self._on_client), None)
        if slowest is None or slowest is asking:
            return False
        if self.monotonic() - self._on_client[slowest] < GRACE_SECONDS:
            return False
        self._send_away(slowest)
        return True

    def watch(self, hold: "Hold") -> None:
        """From now on `hold` waits for its client."""
        self._on_client[hold] = self.monotonic()
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_later(_TICK, self.tick)

    def unwatch(self, hold: "Hold") -> None:
        """The client has done its part."""
        self._on_client.pop(hold, None)

    def tick(self) -> None:
        """Send away whoever has been waited for too long. One timer for all: one for each would cost more than this."""
        latest = self.monotonic() - CLIENT_SECONDS
        for hold in [hold for hold, since in self._on_client.items() if since <= latest]:
            self._send_away(hold)
        self._ticking = bool(self._on_client)
        if self._ticking:
            asyncio.get_running_loop().call_later(_TICK, self.tick)

    def _send_away(self, hold: "Hold") -> None:
        self.refused["slow_client"] += 1
        self.unwatch(hold)
        hold.interrupt()


class Hold:
    """What one request holds; `leave` gives all of it back, whatever has happened."""

    __slots__ = ("_counted", "_late", "_pressure", "_size", "_task")

    def __init__(self, pressure: Pressure, *, counted: bool) -> None:
        self._pressure = pressure
        self._counted = counted
        self._size = 0
        self._late = False
        self._task: asyncio.Task[object] | None = None

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more could be held."""
        return self._pressure.has_room(size, self)

    def grow(self, size: int) -> bool:
        """Hold so many bytes more, if there is room for them."""
        if not self._pressure.has_room(size, self):
            return False
        self._pressure.held_bytes += size
        self._size += size
        return True

    def leave(self) -> None:
        """Give back what is held; a second time there is nothing left."""
        self._pressure.in_flight -= self._counted
        self._pressure.held_bytes -= self._size
        self._counted, self._size = False, 0

    async def patiently(self, client: Awaitable[T]) -> T:
        """What the client does, if it does it in time; Late if not."""
        if self._task is None:
            self._task = asyncio.current_task()
        self._pressure.watch(self)
        try:
            return await client
        except asyncio.CancelledError:
            if not self._late or self._task is None:
                raise
            self._task.uncancel()
            self._late = False
            raise Late from None
        finally:
            self._pressure.unwatch(self)

    def interrupt(self) -> None:
        """End `patiently` with Late, and leave."""
        self.leave()
        if self._task is not None:
            self._late = True
            self._task.cancel()

    @contextmanager
    def waiting(self, who: str) -> Iterator[bool]:
        """Whether `who` may wait here; while it does, its place is somebody else's."""
        waiting = self._pressure.waiting
        if waiting.total() >= MOST_WAITING or waiting[who] >= MOST_WAITING_EACH:
            yield False
            return
        waiting[who] += 1
        self._pressure.in_flight -= self._counted
        try:
            yield True
        finally:
            # Back without asking for room: what is left is to send the answer.
            self._pressure.in_flight += self._counted
            waiting[who] -= 1
            if not waiting[who]:
                del waiting[who]
