"""`GET /events`: the organisation's log as it grows, as server-sent events.

A stream follows the log itself. Nothing is kept for a listener but its place in it: one that is slow, or away for a
day, reads on where it was.
"""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Collection
from contextlib import suppress

from qwed.api.access import require_key
from qwed.api.http import Call, Response, refused, streamed
from qwed.kernel.answer import Problem, problem
from qwed.kernel.people.events import PAGE, TYPES, Message, messages
from qwed.kernel.request import quoted
from qwed.kernel.stages.authenticate import find_key
from qwed.store.agent import Key
from qwed.store.protocol import Store, Wanted
from qwed.waiting import LoopDriver
from qwed.words import ErrorCode

MOST = 1_024
MOST_EACH = 64
"""Streams of one organisation."""
HEARTBEAT_SECONDS = 15.0
PAUSE_SECONDS = 0.05
"""Between two times that the listeners of one organisation are woken: many commits are one page then."""
MOST_READING = 2
"""Looks at the log at a time: however many come back after a day, there is time for decisions."""
FRESH_SECONDS = 10.0
"""How long a stream waits to be told whether it may go on."""
RETRY_MS = 1_000
HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_PLACE = re.compile(r"-1|[0-9]{1,18}")
_COMMENT = b":\n"
_NEVER = float("-inf")
"""When the clock of a loop says 0, a machine has only just started."""


async def events(call: Call) -> Response:
    """What happens from now on, or since the event that the caller heard last."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    types = _types_of(call)
    if isinstance(types, Problem):
        return refused(types)
    last = _last_of(call, await call.look(call.services.store.log_size, key.organisation_id))
    if isinstance(last, Problem):
        return refused(last)
    listeners = call.node.listeners
    full = listeners.refuse(key.organisation_id)
    return refused(full) if full is not None else streamed(Following(key, last, types, listeners), *HEADERS)


def _types_of(call: Call) -> frozenset[str] | Problem:
    text = call.query.get("type")
    if text is None:
        return frozenset(TYPES)
    asked = text.split(",")
    unknown = next((name for name in asked if name not in TYPES), None)
    if unknown is not None:
        return problem(ErrorCode.BAD_OPTION, f"unknown type {quoted(unknown)}: known are {', '.join(TYPES)}")
    return frozenset(asked)


def _last_of(call: Call, size: int) -> int | Problem:
    """The index of the event before the first that is to be told."""
    text = call.header(b"last-event-id")
    if text is None:
        return size - 1
    if not _PLACE.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, "`Last-Event-ID` must be the id of an event, a whole number, or -1")
    if int(text) >= size:
        message = f"`Last-Event-ID` is {int(text)}, and the log ends at {size - 1}: leave it out to begin now"
        return problem(ErrorCode.BAD_OPTION, message)
    return int(text)


class Listeners:
    """Everyone who follows a log on this node. On the event loop, but for `rung`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.count = 0
        self.closed = False
        self._ears: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rung: set[str] = set()
        """Logs that have grown, and whose listeners are about to be woken."""
        self._lock = threading.Lock()
        self._woken: dict[str, float] = {}
        self._turns = asyncio.Semaphore(MOST_READING)
        self._reading: dict[tuple[str, int], asyncio.Future[list[Message]]] = {}

    def refuse(self, organisation_id: str) -> Problem | None:
        """Why nobody more can listen, or None."""
        if self.closed:
            return problem(ErrorCode.OVERLOADED, "the server is about to stop", retry_after=1)
        if len(self._ears.get(organisation_id, ())) >= MOST_EACH:
            message = f"{MOST_EACH} event streams of this organisation are open: close one of them"
            return problem(ErrorCode.RATE_LIMITED, message, retry_after=1)
        if self.count >= MOST:
            return problem(ErrorCode.OVERLOADED, f"{MOST} event streams are open on this server", retry_after=1)
        return None

    def enter(self, organisation_id: str) -> asyncio.Event:
        """Set whenever the log of the organisation has grown, until it is handed back with `leave`."""
        ear, loop = asyncio.Event(), asyncio.get_running_loop()
        if loop is not self._loop:
            # What was on its way in another loop does not arrive any more.
            self._loop = loop
            self._turns = asyncio.Semaphore(MOST_READING)
            self._rung.clear()
            self._woken.clear()
        self._ears.setdefault(organisation_id, set()).add(ear)
        self.count += 1
        return ear

    def leave(self, organisation_id: str, ear: asyncio.Event) -> None:
        """Listen no longer; a second time there is nothing left to do."""
        ears = self._ears.get(organisation_id, set())
        if ear in ears:
            ears.remove(ear)
            self.count -= 1
        if not ears:
            self._ears.pop(organisation_id, None)
            self._woken.pop(organisation_id, None)

    def followed(self) -> list[str]:
        """The organisations whose logs somebody follows."""
        return [*self._ears]

    def rung(self, organisations: Collection[str]) -> None:
        """These logs have grown. From any thread; does not wait, and costs next to nothing where nobody listens."""
        loop = self._loop
        heard = [name for name in organisations if name in self._ears]
        if not heard or loop is None:
            return
        with self._lock:
            new = [name for name in heard if name not in self._rung]
            self._rung.update(new)
        if new:
            # A loop that is closed has nobody left to wake.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake, new)

    def _wake(self, organisations: list[str]) -> None:
        loop = asyncio.get_running_loop()
        for name in organisations:
            early = self._woken.get(name, _NEVER) + PAUSE_SECONDS - loop.time()
            if early > 0:
                loop.call_later(early, self._ring, name)
            else:
                self._ring(name)

    def _ring(self, organisation_id: str) -> None:
        with self._lock:
            self._rung.discard(organisation_id)
        ears = self._ears.get(organisation_id)
        if ears:
            self._woken[organisation_id] = asyncio.get_running_loop().time()
            for ear in ears:
                ear.set()

    async def page(self, organisation_id: str, from_index: int) -> list[Message]:
        """The next messages; whoever asks for the same at the same time shares one look at the log."""
        place = (organisation_id, from_index)
        reading = self._reading.get(place)
        if reading is None:
            reading = self._reading[place] = asyncio.ensure_future(self._look(organisation_id, from_index))
            reading.add_done_callback(lambda over: self._read(place, over))
        # Shielded: one who leaves does not take the page away from the others.
        return await asyncio.shield(reading)

    async def _look(self, organisation_id: str, from_index: int) -> list[Message]:
        async with self._turns:
            return await asyncio.to_thread(messages, organisation_id, from_index, self.store)

    async def admit(self, key: Key) -> bool:
        """Whether the key still stands: it may have been revoked since, and by another process."""
        freshen = self.store.freshen
        ticket = None if freshen is None else freshen(Wanted(prefix=key.prefix))
        if ticket is not None:
            await LoopDriver(asyncio.get_running_loop(), FRESH_SECONDS).result(ticket)
        return find_key("", self.store, key) is not None

    def _read(self, place: tuple[str, int], over: asyncio.Future[list[Message]]) -> None:
        del self._reading[place]
        if not over.cancelled():
            over.exception()  # whoever still waits is told; where nobody does, it is nobody's

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        for ears in self._ears.values():
            for ear in ears:
                ear.set()


class Following:
    """One stream: its place in the log, and what it asks for."""

    def __init__(self, key: Key, last: int, types: frozenset[str], listeners: Listeners) -> None:
        self._key = key
        self._next = last + 1
        self._types = types
        self._listeners = listeners
        # Before the head of the answer is sent: what happens from then on is heard.
        self._ear = listeners.enter(key.organisation_id)
        self._told = self._tell()

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self._told

    async def aclose(self) -> None:
        self._listeners.leave(self._key.organisation_id, self._ear)
        await self._told.aclose()

    async def _tell(self) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        # An id alone is no event; a client that hears nothing more knows where to go on all the same.
        yield b"retry: %d\nid: %d\n\n" % (RETRY_MS, self._next - 1)
        named, spoke = self._next, loop.time()
        while not self._listeners.closed:
            self._ear.clear()
            page = await self._listeners.page(self._key.organisation_id, self._next)
            if not await self._listeners.admit(self._key):
                return
            text = self._said_of(page)
            if not text and len(page) < PAGE:
                await self._wait(spoke + HEARTBEAT_SECONDS - loop.time())
            if not text and loop.time() - spoke >= HEARTBEAT_SECONDS:
                text = _COMMENT if named == self._next else b"id: %d\n\n" % (self._next - 1)
            if text:
                yield text
                named, spoke = self._next, loop.time()

    def _said_of(self, page: list[Message]) -> bytes:
        """What is sent of a page, which is done with then."""
        if page:
            self._next = page[-1].log_index + 1
        return b"".join(message.text for message in page if not self._types.isdisjoint(message.types))

    async def _wait(self, seconds: float) -> None:
        """Until the log has grown, or somebody should hear that we are still there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ear.wait()
