"""What happened in one process, told to the others over a Redis: ids alone, gathered for a moment, never waited for.

What is told while the Redis is away is lost. Whoever must not miss it looks for itself too, only later.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import msgspec

from qwed.limits.address import ANSWER_SECONDS, prefix_of
from qwed.limits.line import BEAT_SECONDS, Away, Kept, Line
from qwed.words.ids import new_id

GATHER_SECONDS = 0.05
"""Between two messages."""
MOST_AT_ONCE = 1_000
"""Ids of a kind in one message."""
MOST_WAITING = 10_000
"""Ids of a kind that are gathered; more are not told."""
_PING = ("PING",)


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message."""

    by: str
    """The process that tells it."""
    logs: tuple[str, ...] = ()
    """Organisations whose logs have grown."""
    bells: tuple[str, ...] = ()
    """What somebody may be waiting for, and has happened."""
    notices: bool = False
    """Whether there is something new to deliver."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Told).decode


class Fanout:
    """Tells the other processes, and hears what they tell. On one event loop at a time, but for `tell_...`."""

    def __init__(self, url: str, installation: str, hear: Callable[[Told], None], on_gap: Callable[[], None]) -> None:
        self.told = self.heard = self.lost = 0
        """Messages; lost are those that could not be sent or read."""
        self._by = new_id("process")
        self._channel = f"{prefix_of(installation)}events"
        self._hear = hear
        self._line = Line(url, "telling events", ((_PING, _require_pong),))
        self._ear = _Ear(url, self._channel, self._take, on_gap)
        self._logs: set[str] = set()
        self._bells: set[str] = set()
        self._notices = False
        self._gathering = False
        self._last = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    @property
    def up(self) -> bool:
        """Whether what is told arrives, as far as is known."""
        return self._line.up and self._ear.up

    def start(self) -> None:
        """Begin on the loop that runs."""
        self._loop, self._gathering = asyncio.get_running_loop(), False
        self._line.start()
        self._ear.start()

    async def close(self) -> None:
        """Hear and tell nothing more."""
        self._loop = None
        await self._line.close()
        await self._ear.close()

    def tell_logs(self, organisations: Collection[str]) -> None:
        """These logs have grown. From any thread; does not wait."""
        self._gather(self._logs, organisations)

    def tell_bell(self, what: str) -> None:
        """This has happened. From any thread; does not wait."""
        self._gather(self._bells, (what,))

    def tell_notice(self) -> None:
        """There is something to deliver. From any thread; does not wait."""
        self._notices = True
        self._gather(self._logs, ())

    def _gather(self, waiting: set[str], ids: Collection[str]) -> None:
        loop = self._loop
        if loop is None:
            return
        with self._lock:
            if len(waiting) < MOST_WAITING:
                waiting.update(ids)
            first, self._gathering = not self._gathering, True
        if first:
            # A loop that is closed has nobody left to tell.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._send_soon, loop)

    def _send_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(max(0.0, self._last + GATHER_SECONDS - loop.time()), self._send, loop)

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        self._last = loop.time()
        for message in self._messages():
            try:
                self._line.ask(("PUBLISH", self._channel, _encode(message)), int)
            except Away:
                self.lost += 1
            else:
                self.told += 1

    def _messages(self) -> Iterator[Told]:
        with self._lock:
            logs, bells, notices = sorted(self._logs), sorted(self._bells), self._notices
            self._logs.clear()
            self._bells.clear()
            self._notices = self._gathering = False
        for some_logs, some_bells in zip_longest(_some(logs), _some(bells), fillvalue=()):
            yield Told(self._by, some_logs, some_bells, notices)
        if notices and not logs and not bells:
            yield Told(self._by, notices=True)

    def _take(self, payload: bytes) -> None:
        try:
            told = _decode(payload)
        except msgspec.DecodeError:
            # Of another version, or of somebody who has no business here.
            self.lost += 1
            return
        if told.by != self._by:
            self.heard += 1
            self._hear(told)


def _require_pong(answer: Any) -> None:
    if answer != b"PONG":
        raise ValueError("no answer to a ping")


def _some(ids: list[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(ids[at : at + MOST_AT_ONCE]) for at in range(0, len(ids), MOST_AT_ONCE))


class _Ear(Kept):
    """Everything that is said on one channel."""

    def __init__(self, url: str, channel: str, take: Callable[[bytes], None], on_gap: Callable[[], None]) -> None:
        super().__init__(url, "hearing events")
        self._channel = channel
        self._take = take
        self._on_gap = on_gap
        """Called where it begins not to hear, and where it hears again: something may have been said in between."""

    def _ended(self, _trouble: str) -> None:
        self._on_gap()

    async def _talk(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS) as patience:
            await self._connect()
            await self._connection.send_command("SUBSCRIBE", self._channel)
            if (await self._heard())[0] != b"subscribe":
                raise ValueError("no subscription")
            self._is_up()
            self._on_gap()
            async with asyncio.TaskGroup() as talking:
                talking.create_task(self._listen(patience))
                talking.create_task(self._beat_on())

    async def _heard(self) -> list[Any]:
        said = await self._connection.read_response()
        if not isinstance(said, list) or len(said) < 2:
            raise ValueError("nothing that is said to a subscriber")
        return said

    async def _listen(self, patience: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        while True:
            # What is heard last may be the answer to the beat.
            if not patience.expired():
                patience.reschedule(loop.time() + BEAT_SECONDS + ANSWER_SECONDS)
            kind, *said = await self._heard()
            if kind == b"message" and isinstance(said[-1], bytes):
                self._take(said[-1])

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._connection.send_command(*_PING)
