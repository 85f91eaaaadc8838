"""Notifications between processes that share a store: a change in one process wakes the waiters of the others.

They are published over Redis if there is one; otherwise each process polls the store every second. Event streams read
the log themselves, so a lost notification only delays them.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from qwed.api.handlers.event_stream import Listeners
from qwed.futures import capture_failure
from qwed.kernel.services import Services
from qwed.store.protocol import Store, StoreError
from qwed.webhooks.dispatcher import OutboxDispatcher

if TYPE_CHECKING:
    from qwed.ratelimit.redis_pubsub import ClusterEvent, ClusterPubSub

POLL_SECONDS = 1.0
POLL_SECONDS_WITH_PUBSUB = 5.0
"""Poll interval with Redis, because published messages may be lost."""


class ClusterNotifier:
    """Notifies other processes of the store. On the event loop, except `committed` and `on_delivery`."""

    def __init__(
        self, services: Services, listeners: Listeners, dispatcher: Callable[[], OutboxDispatcher | None]
    ) -> None:
        self.pubsub: ClusterPubSub | None = None
        self._services = services
        self._listeners = listeners
        self._dispatcher = dispatcher
        self._shared = False
        self._sizes: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def enable_cluster(self) -> None:
        """Poll the store for changes by other processes, and publish and receive over Redis if there is one."""
        self._shared, services = True, self._services
        if services.settings.redis_url:
            # Imported here: a server without Redis does not load its client.
            from qwed.ratelimit.redis_pubsub import ClusterPubSub

            self.pubsub = ClusterPubSub(
                services.settings.redis_url, services.installation, self.on_event, self._wake.set
            )
            services.waiters.on_notify = self.pubsub.publish_waiter

    @property
    def poll_interval(self) -> float:
        """Seconds after which a waiter has to check the store itself."""
        if not self._shared:
            return math.inf
        return POLL_SECONDS_WITH_PUBSUB if self.pubsub is not None and self.pubsub.up else POLL_SECONDS

    def committed(self, organisations: Collection[str]) -> None:
        """Notify that these logs have grown. Thread-safe; does not block."""
        self._listeners.notify(organisations)
        if self.pubsub is not None:
            self.pubsub.publish_logs(organisations)

    def on_delivery(self) -> None:
        """Notify that the outbox has a new delivery. Thread-safe; does not block."""
        self._wake_dispatcher()
        if self.pubsub is not None:
            self.pubsub.publish_delivery()

    def on_event(self, event: "ClusterEvent") -> None:
        """Wake the local waiters that an event of another process concerns."""
        self._listeners.notify(event.logs)
        for key in event.waiter_keys:
            self._services.waiters.notify_local(key)
        if event.deliveries:
            self._wake_dispatcher()

    def _wake_dispatcher(self) -> None:
        dispatcher = self._dispatcher()
        if dispatcher is not None:
            dispatcher.wake()

    def start(self) -> None:
        """Start to poll and to receive, if the store is shared."""
        if self.pubsub is not None:
            self.pubsub.start()
        if self._shared:
            self._task = asyncio.get_running_loop().create_task(self._poll_forever(), name="qwed-cluster")

    async def close(self) -> None:
        """Stop polling, publishing and receiving."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.pubsub is not None:
            await self.pubsub.close()

    async def _poll_forever(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.poll_interval):
                    await self._wake.wait()
            self._wake.clear()
            failure = await capture_failure(self._poll_logs())
            if failure is not None and not isinstance(failure, StoreError):
                logging.getLogger("qwed").error("cluster poll failed", exc_info=failure)

    async def _poll_logs(self) -> None:
        """Wake the event streams of logs that have grown since the last poll, or are new."""
        sizes = await asyncio.to_thread(_sizes_of, self._listeners.followed(), self._services.store)
        grown = [name for name, size in sizes.items() if self._sizes.get(name) != size]
        self._sizes = sizes
        self._listeners.notify(grown)


def _sizes_of(organisations: Collection[str], store: Store) -> dict[str, int]:
    return {name: store.log_size(name) for name in organisations}


def create_cluster_notifier(
    services: Services, listeners: Listeners, dispatcher: Callable[[], OutboxDispatcher | None]
) -> ClusterNotifier:
    """Return a notifier that does nothing if the store belongs to this process alone."""
    notifier = ClusterNotifier(services, listeners, dispatcher)
    if services.settings.database_url:
        notifier.enable_cluster()
    return notifier
