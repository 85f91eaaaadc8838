"""Other processes on the same store: what happens there wakes those who wait here.

They tell it over a Redis where there is one; where there is none, the store is looked at every second. Who follows a
log reads it itself, so that nothing is missed: this is only about when.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from qwed.api.events import Listeners
from qwed.kernel.services import Services
from qwed.store.protocol import Store, StoreError
from qwed.waiting import failure_of
from qwed.webhooks.outbox import Postman

if TYPE_CHECKING:
    from qwed.limits.fanout import Fanout, Told

LOOK_SECONDS = 1.0
LOOK_SECONDS_WHERE_TOLD = 5.0
"""Where it is told too, because what is told may be lost."""


class Neighbours:
    """Those who share the store, if anybody does. On the event loop, but for `committed` and `noticed`."""

    def __init__(self, services: Services, listeners: Listeners, postman: Callable[[], Postman | None]) -> None:
        self.fanout: Fanout | None = None
        self._services = services
        self._listeners = listeners
        self._postman = postman
        self._shared = False
        self._sizes: dict[str, int] = {}
        self._missed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def expect(self) -> None:
        """There may be others; where there is a Redis, they are told and heard over it."""
        self._shared, services = True, self._services
        if services.settings.redis_url:
            # Imported here: a server without a Redis has nothing of it.
            from qwed.limits.fanout import Fanout

            self.fanout = Fanout(services.settings.redis_url, services.installation, self.hear, self._missed.set)
            services.doorbells.on_ring = self.fanout.tell_bell

    @property
    def pace(self) -> float:
        """How many seconds whoever waits here may go without looking for itself."""
        if not self._shared:
            return math.inf
        return LOOK_SECONDS_WHERE_TOLD if self.fanout is not None and self.fanout.up else LOOK_SECONDS

    def committed(self, organisations: Collection[str]) -> None:
        """These logs have grown here. From any thread; does not wait."""
        self._listeners.rung(organisations)
        if self.fanout is not None:
            self.fanout.tell_logs(organisations)

    def noticed(self) -> None:
        """There is something to deliver. From any thread; does not wait."""
        self._wake_postman()
        if self.fanout is not None:
            self.fanout.tell_notice()

    def hear(self, told: "Told") -> None:
        """Something happened elsewhere."""
        self._listeners.rung(told.logs)
        for what in told.bells:
            self._services.doorbells.ring_here(what)
        if told.notices:
            self._wake_postman()

    def _wake_postman(self) -> None:
        postman = self._postman()
        if postman is not None:
            postman.wake()

    def start(self) -> None:
        """Begin to hear and to look, where there is anybody else."""
        if self.fanout is not None:
            self.fanout.start()
        if self._shared:
            self._task = asyncio.get_running_loop().create_task(self._look_on(), name="qwed-neighbours")

    async def close(self) -> None:
        """Neither look, nor tell, nor hear any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.fanout is not None:
            await self.fanout.close()

    async def _look_on(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pace):
                    await self._missed.wait()
            self._missed.clear()
            failure = await failure_of(self._look())
            if failure is not None and not isinstance(failure, StoreError):
                logging.getLogger("qwed").error("could not look what others did", exc_info=failure)

    async def _look(self) -> None:
        """Wake those who follow a log that has grown since the last look, or who were not there then."""
        found = await asyncio.to_thread(_sizes_of, self._listeners.followed(), self._services.store)
        grown = [name for name, size in found.items() if self._sizes.get(name) != size]
        self._sizes = found
        self._listeners.rung(grown)


def _sizes_of(organisations: Collection[str], store: Store) -> dict[str, int]:
    return {name: store.log_size(name) for name in organisations}


def neighbours_for(services: Services, listeners: Listeners, postman: Callable[[], Postman | None]) -> Neighbours:
    """Nobody, where the store belongs to this process alone."""
    made = Neighbours(services, listeners, postman)
    if services.settings.database_url:
        made.expect()
    return made
