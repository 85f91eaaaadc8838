"""Redis pub/sub between the processes of one installation: ids only, batched, never waited for.

Messages published while Redis is down are lost. Subscribers that must not miss a change poll the store too.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import msgspec
from redis.asyncio.client import PubSub

from qwed.model.ids import new_id
from qwed.ratelimit.redis_connection import (
    HEARTBEAT_SECONDS,
    ReconnectingConnection,
    RedisConnection,
    RedisUnavailableError,
)
from qwed.ratelimit.redis_url import REPLY_TIMEOUT_SECONDS, create_pool, key_prefix

BATCH_SECONDS = 0.05
"""Shortest interval between two batches."""
MAX_IDS_PER_MESSAGE = 1_000
"""Ids of one kind in one message."""
MAX_QUEUED_IDS = 10_000
"""Ids of one kind in the queue; more are dropped."""
_PING = ("PING",)


class ClusterEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message."""

    sender: str = msgspec.field(name="by")
    """Process that sent it."""
    logs: tuple[str, ...] = ()
    """Organisations whose logs have grown."""
    waiter_keys: tuple[str, ...] = msgspec.field(default=(), name="bells")
    """Approvals and batch jobs that are done, for which a request may wait."""
    deliveries: bool = msgspec.field(default=False, name="notices")
    """True if the outbox has a new delivery."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ClusterEvent).decode


class ClusterPubSub:
    """Publishes and receives cluster events. On one event loop at a time, except `publish_...`."""

    def __init__(
        self, url: str, installation: str, on_event: Callable[[ClusterEvent], None], on_gap: Callable[[], None]
    ) -> None:
        self.sent = self.received = self.lost = 0
        """Messages; lost are those that could not be sent or parsed."""
        self._sender = new_id("process")
        self.channel = f"{key_prefix(installation)}events"
        self._on_event = on_event
        self._publisher = RedisConnection(url, "publishing events", ((_PING, _require_pong),))
        self._subscription = _Subscription(url, self.channel, self._receive, on_gap)
        self._logs: set[str] = set()
        self._waiter_keys: set[str] = set()
        self._deliveries = False
        self._scheduled = False
        self._last = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    @property
    def up(self) -> bool:
        """True while messages are sent and received."""
        return self._publisher.up and self._subscription.up

    def start(self) -> None:
        """Start on the running event loop."""
        self._loop, self._scheduled = asyncio.get_running_loop(), False
        self._publisher.start()
        self._subscription.start()

    async def close(self) -> None:
        """Stop publishing and receiving."""
        self._loop = None
        await self._publisher.close()
        await self._subscription.close()

    def publish_logs(self, organisations: Collection[str]) -> None:
        """Publish that these logs have grown. Thread-safe; does not block."""
        self._queue(self._logs, organisations)

    def publish_waiter(self, key: str) -> None:
        """Publish that this approval or batch job is done. Thread-safe; does not block."""
        self._queue(self._waiter_keys, (key,))

    def publish_delivery(self) -> None:
        """Publish that the outbox has a new delivery. Thread-safe; does not block."""
        self._deliveries = True
        self._queue(self._logs, ())

    def _queue(self, queued: set[str], ids: Collection[str]) -> None:
        loop = self._loop
        if loop is None:
            return
        with self._lock:
            if len(queued) < MAX_QUEUED_IDS:
                queued.update(ids)
            first, self._scheduled = not self._scheduled, True
        if first:
            # RuntimeError: the loop is closed, and its connection with it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._schedule_send, loop)

    def _schedule_send(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(max(0.0, self._last + BATCH_SECONDS - loop.time()), self._send, loop)

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        self._last = loop.time()
        for message in self._messages():
            try:
                self._publisher.ask(("PUBLISH", self.channel, _encode(message)), int)
            except RedisUnavailableError:
                self.lost += 1
            else:
                self.sent += 1

    def _messages(self) -> Iterator[ClusterEvent]:
        with self._lock:
            logs, waiter_keys, deliveries = sorted(self._logs), sorted(self._waiter_keys), self._deliveries
            self._logs.clear()
            self._waiter_keys.clear()
            self._deliveries = self._scheduled = False
        for log_chunk, waiter_chunk in zip_longest(_chunks(logs), _chunks(waiter_keys), fillvalue=()):
            yield ClusterEvent(self._sender, log_chunk, waiter_chunk, deliveries)
        if deliveries and not logs and not waiter_keys:
            yield ClusterEvent(self._sender, deliveries=True)

    def _receive(self, payload: bytes) -> None:
        try:
            event = _decode(payload)
        except msgspec.DecodeError:
            # Sent by another version, or by another application.
            self.lost += 1
            return
        if event.sender != self._sender:
            self.received += 1
            self._on_event(event)


def _require_pong(reply: Any) -> None:
    if reply != b"PONG":
        raise ValueError("the reply is not PONG")


def _chunks(ids: list[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(ids[at : at + MAX_IDS_PER_MESSAGE]) for at in range(0, len(ids), MAX_IDS_PER_MESSAGE))


class _Subscription(ReconnectingConnection):
    """Subscription to one channel."""

    def __init__(self, url: str, channel: str, on_payload: Callable[[bytes], None], on_gap: Callable[[], None]) -> None:
        super().__init__("receiving events")
        self._url = url
        self.channel = channel
        self._receive = on_payload
        self._on_gap = on_gap
        """Called when messages may have been missed: on disconnect and after subscribing."""

    def _on_disconnected(self, _reason: str) -> None:
        self._on_gap()

    async def _run_session(self) -> None:
        async with PubSub(create_pool(self._url)) as pubsub:
            async with asyncio.timeout(REPLY_TIMEOUT_SECONDS):
                await pubsub.subscribe(self.channel)
                await self._next_message(pubsub)
            self._mark_up()
            self._on_gap()
            while True:
                message = await self._next_message(pubsub)
                if message["type"] == "message":
                    self._receive(message["data"])

    async def _next_message(self, pubsub: PubSub) -> dict[str, Any]:
        """Return the next message; raise TimeoutError if Redis answers no heartbeat."""
        message: dict[str, Any] | None = await pubsub.get_message(timeout=HEARTBEAT_SECONDS)
        if message is None:
            await pubsub.ping()
            message = await pubsub.get_message(timeout=REPLY_TIMEOUT_SECONDS)
        if message is None:
            raise TimeoutError
        return message
