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

SPARE = 8
"""Of places and bytes, one in so many is not for an organisation that holds more than half of what is held.

Where there is more than one: whoever is alone has all of it.
"""

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
        self.shares: Counter[str] = Counter()
        """Places by organisation; those of strangers under no name."""
        self.byte_shares: Counter[str] = Counter()
        self._seen: set[str] = set()
        """The organisations that have asked since the start."""
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
        if self.held_bytes + size <= self.most_bytes - self.most_bytes // SPARE:
            return True
        while self.held_bytes + size > self.most_bytes or self._crowded(size, asking):
            if not self._make_room(asking):
                self.refused["bytes"] += 1
                return False
        return True

    def _crowded(self, size: int, asking: "Hold | None") -> bool:
        who = None if asking is None else asking.who
        if who is None:
            return False
        return self._crowds(self.byte_shares[who] + size, self.held_bytes + size, self.most_bytes)

    def _crowds(self, own: int, held: int, most: int) -> bool:
        """Whether this much of somebody's own, of all that is held, takes what is kept for others."""
        return len(self._seen) > 1 and held > most - most // SPARE and own * 2 > held

    def has_place(self, who: str, asking: "Hold") -> bool:
        """Whether `who` may keep the place that `asking` has; where slow clients hold the others, they give way."""
        if who:
            self._seen.add(who)
        if self.in_flight <= self.most_requests - self.most_requests // SPARE:
            return True
        while self._crowds(self.shares[who] + 1, self.in_flight, self.most_requests):
            if not self._make_room(asking):
                self.refused["requests"] += 1
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

    __slots__ = ("_counted", "_late", "_pressure", "_size", "_task", "who")

    def __init__(self, pressure: Pressure, *, counted: bool) -> None:
        self._pressure = pressure
        self._counted = counted
        self._size = 0
        self._late = False
        self._task: asyncio.Task[object] | None = None
        self.who: str | None = None
        """The organisation that asks, once it is known."""

    def belongs_to(self, who: str) -> bool:
        """Whether `who` may have this place; it counts as theirs from now on."""
        if not self._pressure.has_place(who, self):
            return False
        self.who = who
        _add(self._pressure.shares, who, self._counted)
        return True

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more could be held."""
        return self._pressure.has_room(size, self)

    def grow(self, size: int) -> bool:
        """Hold so many bytes more, if there is room for them."""
        if not self._pressure.has_room(size, self):
            return False
        self._hold_bytes(size)
        return True

    def _hold_bytes(self, size: int) -> None:
        self._pressure.held_bytes += size
        self._size += size
        if self.who is not None:
            _add(self._pressure.byte_shares, self.who, size)

    def _hold_place(self, places: int) -> None:
        self._pressure.in_flight += places
        if self.who is not None:
            _add(self._pressure.shares, self.who, places)

    def leave(self) -> None:
        """Give back what is held; a second time there is nothing left."""
        self._hold_place(-self._counted)
        self._hold_bytes(-self._size)
        self._counted = False

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
        self._hold_place(-self._counted)
        try:
            yield True
        finally:
            # Back without asking for room: what is left is to send the answer.
            self._hold_place(self._counted)
            waiting[who] -= 1
            if not waiting[who]:
                del waiting[who]


def _add(shares: Counter[str], who: str, more: int) -> None:
    """One share more or less; who has none is not kept."""
    shares[who] += more
    if not shares[who]:
        del shares[who]
