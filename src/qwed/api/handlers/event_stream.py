"""`GET /events`: the organisation's log as server-sent events.

A stream reads the log itself, so the only state of a listener is its position: a slow or reconnecting client continues
where it was.
"""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Collection
from contextlib import suppress
from typing import Annotated

from msgspec import Meta

from qwed.api.server.auth import require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, stream_response
from qwed.domain.agent import Key
from qwed.futures import LoopRunner
from qwed.kernel.admin.events import PAGE, TYPES, EventMessage, messages_from
from qwed.kernel.answer import Problem, problem
from qwed.kernel.authentication import is_valid
from qwed.kernel.operations.operation import E, operation
from qwed.kernel.request_schema import RequestStruct, quoted
from qwed.model import ErrorCode
from qwed.model.endpoints import Endpoint
from qwed.store.protocol import RefreshKeys, Store

MAX_STREAMS = 1_024
MAX_STREAMS_PER_ORGANISATION = 64
HEARTBEAT_SECONDS = 15.0
WAKE_INTERVAL_SECONDS = 0.05
"""Shortest interval between two wake-ups of an organisation's listeners, so that many commits make one page."""
MAX_CONCURRENT_READS = 2
"""Concurrent reads of the log, so that many reconnecting clients leave time for decisions."""
REFRESH_TIMEOUT_SECONDS = 10.0
"""Timeout of the check that the stream's key is still valid."""
RETRY_MS = 1_000
HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_EVENT_ID = re.compile(r"-1|[0-9]{1,18}")
_COMMENT = b":\n"
_NEVER = float("-inf")
"""Not 0: the clock of an event loop may start at 0."""


class EventsRequest(RequestStruct):
    """Types of events to follow."""

    type: (
        Annotated[
            str,
            Meta(
                description=f"Return only events of these types, separated by commas: {', '.join(TYPES)}.",
                extra_json_schema={"pattern": f"^({'|'.join(TYPES)})(,({'|'.join(TYPES)}))*$"},
            ),
        ]
        | None
    ) = None


@operation(
    Endpoint.EVENTS,
    "Stream events of the log",
    request=EventsRequest,
    response=str,
    errors=(E.BAD_OPTION, E.RATE_LIMITED, E.OVERLOADED),
    media="text/event-stream",
)
async def events(request: RequestContext) -> Response:
    """Stream the events from now on, or after `Last-Event-ID`."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    types = _requested_types(request)
    if isinstance(types, Problem):
        return error_response(types)
    last = _last_event_id(request, await request.run_blocking(request.services.store.log_size, key.organisation_id))
    if isinstance(last, Problem):
        return error_response(last)
    listeners = request.app.listeners
    refusal = listeners.refuse(key.organisation_id)
    return (
        error_response(refusal)
        if refusal is not None
        else stream_response(EventStream(key, last, types, listeners), *HEADERS)
    )


def _requested_types(request: RequestContext) -> frozenset[str] | Problem:
    text = request.query.get("type")
    if text is None:
        return frozenset(TYPES)
    requested = text.split(",")
    unknown = next((name for name in requested if name not in TYPES), None)
    if unknown is not None:
        return problem(ErrorCode.BAD_OPTION, f"unknown type {quoted(unknown)}: use {', '.join(TYPES)}")
    return frozenset(requested)


def _last_event_id(request: RequestContext, size: int) -> int | Problem:
    """Return the index of the event before the first one to send."""
    text = request.header(b"last-event-id")
    if text is None:
        return size - 1
    if not _EVENT_ID.fullmatch(text):
        return problem(ErrorCode.BAD_OPTION, "`Last-Event-ID` must be the id of an event, a whole number, or -1")
    if int(text) >= size:
        message = f"`Last-Event-ID` is {int(text)}, and the log ends at {size - 1}: omit it to start now"
        return problem(ErrorCode.BAD_OPTION, message)
    return int(text)


class Listeners:
    """Event streams of this process. On the event loop, except `notify`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.count = 0
        self.closed = False
        self._events: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: set[str] = set()
        """Organisations whose listeners are about to be woken."""
        self._lock = threading.Lock()
        self._woken_at: dict[str, float] = {}
        self._read_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._reads: dict[tuple[str, int], asyncio.Future[list[EventMessage]]] = {}

    def refuse(self, organisation_id: str) -> Problem | None:
        """Return the reason why no further stream may open, or None."""
        if self.closed:
            return problem(ErrorCode.OVERLOADED, "the server is stopping", retry_after=1)
        if len(self._events.get(organisation_id, ())) >= MAX_STREAMS_PER_ORGANISATION:
            message = f"{MAX_STREAMS_PER_ORGANISATION} event streams of this organisation are open: close one of them"
            return problem(ErrorCode.RATE_LIMITED, message, retry_after=1)
        if self.count >= MAX_STREAMS:
            return problem(ErrorCode.OVERLOADED, f"{MAX_STREAMS} event streams are open on this server", retry_after=1)
        return None

    def enter(self, organisation_id: str) -> asyncio.Event:
        """Return an event that is set whenever the organisation's log has grown, until `leave` is called."""
        event, loop = asyncio.Event(), asyncio.get_running_loop()
        if loop is not self._loop:
            # Wake-ups scheduled on another loop never run.
            self._loop = loop
            self._read_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)
            self._pending.clear()
            self._woken_at.clear()
        self._events.setdefault(organisation_id, set()).add(event)
        self.count += 1
        return event

    def leave(self, organisation_id: str, event: asyncio.Event) -> None:
        """Remove a listener; repeated calls do nothing."""
        events = self._events.get(organisation_id, set())
        if event in events:
            events.remove(event)
            self.count -= 1
        if not events:
            self._events.pop(organisation_id, None)
            self._woken_at.pop(organisation_id, None)

    def followed(self) -> list[str]:
        """Return the organisations that have listeners."""
        return [*self._events]

    def notify(self, organisations: Collection[str]) -> None:
        """Wake the listeners of these logs. Thread-safe; does not block, and is cheap without listeners."""
        loop = self._loop
        followed = [name for name in organisations if name in self._events]
        if not followed or loop is None:
            return
        with self._lock:
            new = [name for name in followed if name not in self._pending]
            self._pending.update(new)
        if new:
            # RuntimeError: the loop is closed, and its streams with it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake, new)

    def _wake(self, organisations: list[str]) -> None:
        loop = asyncio.get_running_loop()
        for name in organisations:
            delay = self._woken_at.get(name, _NEVER) + WAKE_INTERVAL_SECONDS - loop.time()
            if delay > 0:
                loop.call_later(delay, self._wake_now, name)
            else:
                self._wake_now(name)

    def _wake_now(self, organisation_id: str) -> None:
        with self._lock:
            self._pending.discard(organisation_id)
        events = self._events.get(organisation_id)
        if events:
            self._woken_at[organisation_id] = asyncio.get_running_loop().time()
            for event in events:
                event.set()

    async def page(self, organisation_id: str, from_index: int) -> list[EventMessage]:
        """Return the next messages; concurrent requests for the same page share one read."""
        position = (organisation_id, from_index)
        reading = self._reads.get(position)
        if reading is None:
            reading = self._reads[position] = asyncio.ensure_future(self._read_page(organisation_id, from_index))
            reading.add_done_callback(lambda future: self._forget_read(position, future))
        # Shielded: a client that disconnects must not cancel the read for the others.
        return await asyncio.shield(reading)

    async def _read_page(self, organisation_id: str, from_index: int) -> list[EventMessage]:
        async with self._read_slots:
            return await asyncio.to_thread(messages_from, organisation_id, from_index, self.store)

    async def admit(self, key: Key) -> bool:
        """Return True if the key is still valid: another process may have revoked it."""
        refresh = self.store.refresh(RefreshKeys(prefix=key.prefix))
        if refresh is not None:
            await LoopRunner(asyncio.get_running_loop(), REFRESH_TIMEOUT_SECONDS).result(refresh)
        return is_valid(key, self.store)

    def _forget_read(self, position: tuple[str, int], future: asyncio.Future[list[EventMessage]]) -> None:
        del self._reads[position]
        if not future.cancelled():
            future.exception()  # marks it as retrieved, in case every client has disconnected

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        for events in self._events.values():
            for event in events:
                event.set()


class EventStream:
    """One stream: its position in the log and the types it sends."""

    def __init__(self, key: Key, last: int, types: frozenset[str], listeners: Listeners) -> None:
        self._key = key
        self._next = last + 1
        self._types = types
        self._listeners = listeners
        # Registered before the response head is sent, so that no later event is missed.
        self._event = listeners.enter(key.organisation_id)
        self._chunks = self._generate()

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self._chunks

    async def aclose(self) -> None:
        self._listeners.leave(self._key.organisation_id, self._event)
        await self._chunks.aclose()

    async def _generate(self) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        # An id without data dispatches no event, but tells the client where to resume.
        yield b"retry: %d\nid: %d\n\n" % (RETRY_MS, self._next - 1)
        sent_id, sent_at = self._next, loop.time()
        while not self._listeners.closed:
            self._event.clear()
            page = await self._listeners.page(self._key.organisation_id, self._next)
            if not await self._listeners.admit(self._key):
                return
            text = self._render(page)
            if not text and len(page) < PAGE:
                await self._wait(sent_at + HEARTBEAT_SECONDS - loop.time())
            if not text and loop.time() - sent_at >= HEARTBEAT_SECONDS:
                text = _COMMENT if sent_id == self._next else b"id: %d\n\n" % (self._next - 1)
            if text:
                yield text
                sent_id, sent_at = self._next, loop.time()

    def _render(self, page: list[EventMessage]) -> bytes:
        """Return the bytes of a page and advance the position past it."""
        if page:
            self._next = page[-1].log_index + 1
        return b"".join(message.text for message in page if not self._types.isdisjoint(message.types))

    async def _wait(self, seconds: float) -> None:
        """Wait until the log has grown or a heartbeat is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
