"""Admission control: limits on concurrent requests, on body bytes in memory and on slow clients (P6).

Everything here runs on the event loop, so nothing is locked. Slots that wait for their client are listed in order;
without free capacity, the client that has been waited for longest is evicted.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

CLIENT_SECONDS = 30.0
"""Time a client has to send its body."""
GRACE_SECONDS = 1.0
"""Time a client has to send its body while other requests find no capacity."""
MAX_LONG_POLLS = 1_024
MAX_LONG_POLLS_PER_ORGANISATION = 256
TICK_SECONDS = 1.0

RESERVED_SHARE = 8
"""One in so many slots and bytes is refused to an organisation that uses more than half of what is in use.

Applies if more than one organisation is active; a single one may use everything.
"""

REASONS = ("requests", "bytes", "slow_client")
"""Reasons for shedding load; `slow_client` counts evicted clients, to free capacity or after a timeout."""

T = TypeVar("T")


class ClientTimeoutError(Exception):
    """The client did not send its body in time, or was evicted to free capacity."""


class AdmissionController:
    """Requests and body bytes in flight, and their limits."""

    def __init__(self, most_requests: int, most_bytes: int, monotonic: Callable[[], float]) -> None:
        self.max_requests = most_requests
        self.max_bytes = most_bytes
        self.monotonic = monotonic
        self.in_flight = 0
        self.held_bytes = 0
        self.waiting: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.slots_by_organisation: Counter[str] = Counter()
        """Unauthenticated requests count under the empty name."""
        self.bytes_by_organisation: Counter[str] = Counter()
        self._seen: set[str] = set()
        """Organisations that sent a request since the start."""
        self.waiting_on_client: dict[AdmissionSlot, float] = {}
        self._ticking = False

    def enter(self) -> "AdmissionSlot | None":
        """Return a slot for a new request, or None if there is no capacity."""
        if self.in_flight >= self.max_requests and not self._evict_slow_client():
            self.rejected["requests"] += 1
            return None
        self.in_flight += 1
        return AdmissionSlot(self, counted=True)

    def enter_uncounted(self) -> "AdmissionSlot":
        """Return a slot that is not counted, for the routes exempt from load shedding."""
        return AdmissionSlot(self, counted=False)

    def can_hold(self, size: int, requester: "AdmissionSlot | None" = None) -> bool:
        """Return True if so many more bytes fit in memory, after evicting slow clients if necessary."""
        if self.held_bytes + size <= self.max_bytes - self.max_bytes // RESERVED_SHARE:
            return True
        while self.held_bytes + size > self.max_bytes or self._exceeds_byte_share(size, requester):
            if not self._evict_slow_client(requester):
                self.rejected["bytes"] += 1
                return False
        return True

    def _exceeds_byte_share(self, size: int, requester: "AdmissionSlot | None") -> bool:
        organisation_id = None if requester is None else requester.organisation_id
        if organisation_id is None:
            return False
        return self._exceeds_fair_share(
            self.bytes_by_organisation[organisation_id] + size, self.held_bytes + size, self.max_bytes
        )

    def _exceeds_fair_share(self, own: int, used: int, limit: int) -> bool:
        """Return True if this usage takes capacity that is reserved for other organisations."""
        return len(self._seen) > 1 and used > limit - limit // RESERVED_SHARE and own * 2 > used

    def can_keep_slot(self, organisation_id: str, requester: "AdmissionSlot") -> bool:
        """Return True if the organisation may keep the slot, after evicting slow clients if necessary."""
        if organisation_id:
            self._seen.add(organisation_id)
        if self.in_flight <= self.max_requests - self.max_requests // RESERVED_SHARE:
            return True
        while self._exceeds_fair_share(
            self.slots_by_organisation[organisation_id] + 1, self.in_flight, self.max_requests
        ):
            if not self._evict_slow_client(requester):
                self.rejected["requests"] += 1
                return False
        return True

    def _evict_slow_client(self, requester: "AdmissionSlot | None" = None) -> bool:
        slowest = next(iter(self.waiting_on_client), None)
        if slowest is None or slowest is requester:
            return False
        if self.monotonic() - self.waiting_on_client[slowest] < GRACE_SECONDS:
            return False
        self._evict(slowest)
        return True

    def watch(self, slot: "AdmissionSlot") -> None:
        """Start the client timeout of `slot`."""
        self.waiting_on_client[slot] = self.monotonic()
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_later(TICK_SECONDS, self.tick)

    def unwatch(self, slot: "AdmissionSlot") -> None:
        """Stop the client timeout of `slot`."""
        self.waiting_on_client.pop(slot, None)

    def tick(self) -> None:
        """Evict the clients whose time is over. One timer for all costs less than one for each."""
        latest = self.monotonic() - CLIENT_SECONDS
        for slot in [slot for slot, since in self.waiting_on_client.items() if since <= latest]:
            self._evict(slot)
        self._ticking = bool(self.waiting_on_client)
        if self._ticking:
            asyncio.get_running_loop().call_later(TICK_SECONDS, self.tick)

    def _evict(self, slot: "AdmissionSlot") -> None:
        self.rejected["slow_client"] += 1
        self.unwatch(slot)
        slot.interrupt()


class AdmissionSlot:
    """Capacity used by one request; `leave` returns all of it."""

    __slots__ = ("_controller", "_counted", "_late", "_size", "_task", "organisation_id")

    def __init__(self, controller: AdmissionController, *, counted: bool) -> None:
        self._controller = controller
        self._counted = counted
        self._size = 0
        self._late = False
        self._task: asyncio.Task[object] | None = None
        self.organisation_id: str | None = None
        """Organisation of the caller, once it is authenticated."""

    def assign_tenant(self, organisation_id: str) -> bool:
        """Assign the slot to an organisation; return False if that exceeds its fair share."""
        if not self._controller.can_keep_slot(organisation_id, self):
            return False
        self.organisation_id = organisation_id
        _add_share(self._controller.slots_by_organisation, organisation_id, self._counted)
        return True

    def can_hold(self, size: int) -> bool:
        """Return True if so many more bytes fit in memory."""
        return self._controller.can_hold(size, self)

    def grow(self, size: int) -> bool:
        """Reserve so many more bytes; return False if they do not fit."""
        if not self._controller.can_hold(size, self):
            return False
        self._add_bytes(size)
        return True

    def _add_bytes(self, size: int) -> None:
        self._controller.held_bytes += size
        self._size += size
        if self.organisation_id is not None:
            _add_share(self._controller.bytes_by_organisation, self.organisation_id, size)

    def _add_slots(self, places: int) -> None:
        self._controller.in_flight += places
        if self.organisation_id is not None:
            _add_share(self._controller.slots_by_organisation, self.organisation_id, places)

    def leave(self) -> None:
        """Return all capacity. Calling it again does nothing."""
        self._add_slots(-self._counted)
        self._add_bytes(-self._size)
        self._counted = False

    async def with_client_timeout(self, client: Awaitable[T]) -> T:
        """Await `client`; raise ClientTimeoutError if it takes too long or is evicted."""
        if self._task is None:
            self._task = asyncio.current_task()
        self._controller.watch(self)
        try:
            return await client
        except asyncio.CancelledError:
            if not self._late or self._task is None:
                raise
            self._task.uncancel()
            self._late = False
            raise ClientTimeoutError from None
        finally:
            self._controller.unwatch(self)

    def interrupt(self) -> None:
        """Leave, and end `with_client_timeout` with ClientTimeoutError."""
        self.leave()
        if self._task is not None:
            self._late = True
            self._task.cancel()

    @contextmanager
    def waiting(self, organisation_id: str) -> Iterator[bool]:
        """Release the slot while the organisation waits in a long poll; yield False if it has too many."""
        waiting = self._controller.waiting
        if waiting.total() >= MAX_LONG_POLLS or waiting[organisation_id] >= MAX_LONG_POLLS_PER_ORGANISATION:
            yield False
            return
        waiting[organisation_id] += 1
        self._add_slots(-self._counted)
        try:
            yield True
        finally:
            # Taken back without a capacity check: only the response is left to send.
            self._add_slots(self._counted)
            waiting[organisation_id] -= 1
            if not waiting[organisation_id]:
                del waiting[organisation_id]


def _add_share(shares: Counter[str], organisation_id: str, more: int) -> None:
    """Add `more` to the counter and drop it at zero."""
    shares[organisation_id] += more
    if not shares[organisation_id]:
        del shares[organisation_id]
