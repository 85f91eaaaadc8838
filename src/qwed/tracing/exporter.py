"""A thread that sends spans away. Whoever decides hands a request over and goes on: what finds no room is dropped."""

import math
import threading
import time
from collections import deque
from logging import Logger
from typing import Protocol

from qwed.tracing.collector import Refused
from qwed.tracing.spans import encoded
from qwed.tracing.trace import Finished

ROOM = 20_000
"""Spans that wait, those on their way included."""
BATCH = 512
"""Spans that are sent together, and after which none waits for more."""
PAUSE = 1.0
"""Seconds until a batch is sent that is not full, and between two tries."""
TRIES = 3
SILENCE = 60.0
"""Seconds between two lines of the log about spans that found no room."""


class Takes(Protocol):
    """Whoever takes batches."""

    def send(self, body: bytes) -> None:
        """Returns when the batch was taken; Refused where it was not."""


class Exporter(threading.Thread):
    """Sends what it is handed, in its order. `start` and `close` are called once; `put` never waits."""

    def __init__(self, collector: Takes, version: str, log: Logger, *, room: int = ROOM, pause: float = PAUSE) -> None:
        super().__init__(name="qwed-traces", daemon=True)
        self.exported = 0
        """Spans that were taken."""
        self.dropped = 0
        """Spans that found no room, or that nobody took."""
        self._collector = collector
        self._version = version
        self._log = log
        self._room = room
        self._pause = pause
        self._waiting: deque[Finished] = deque()
        self._held = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._well = True
        self._crowded_out = 0
        """Spans that found no room since that was last said."""
        self._said = -math.inf

    def put(self, request: Finished) -> None:
        """Hand a request over."""
        size = request.size
        with self._lock:
            if self._held + size > self._room or self._closing.is_set():
                self.dropped += size
                self._crowded_out += size
                return
            self._held += size
            self._waiting.append(request)
            if self._held >= BATCH:
                self._wake.set()

    def run(self) -> None:
        """Send until told to end, and then what is left."""
        while not self._closing.is_set():
            self._wake.wait(self._pause)
            self._wake.clear()
            self._send_all()
        self._send_all()

    def close(self, seconds: float) -> None:
        """Send what is left for at most so long; what is not sent then is dropped."""
        self._closing.set()
        self._wake.set()
        if self.is_alive():
            self.join(seconds)
        with self._lock:
            self.dropped += self._held
            # Whatever the thread still does, none of it counts any more.
            self._held = 0
            self._waiting.clear()

    def _send_all(self) -> None:
        while batch := self._take():
            taken = self._send(encoded(batch, self._version))
            size = sum(request.size for request in batch)
            with self._lock:
                counted = min(size, self._held)
                self._held -= counted
                self.exported += counted if taken else 0
                self.dropped += 0 if taken else counted
            self._tell_of_room(time.monotonic())

    def _take(self) -> list[Finished]:
        batch: list[Finished] = []
        size = 0
        with self._lock:
            while self._waiting and size < BATCH:
                batch.append(self._waiting.popleft())
                size += batch[-1].size
        return batch

    def _send(self, body: bytes) -> bool:
        """Whether it was taken in the end. Told to end, we try what is left once."""
        for turn in range(TRIES):
            try:
                self._collector.send(body)
            except Refused as refused:
                self._tell(refused)
                if not refused.again or turn == TRIES - 1 or self._closing.wait(self._pause):
                    return False
            else:
                self._tell(None)
                return True
        return False

    def _tell(self, trouble: Refused | None) -> None:
        """Say once that it began, and once that it is over."""
        if trouble is not None and self._well:
            self._log.warning("traces are not taken, and dropped until they are: %s", trouble)
        elif trouble is None and not self._well:
            self._log.info("traces are taken again")
        self._well = trouble is None

    def _tell_of_room(self, now: float) -> None:
        """Say, now and then, that there was none. Here, because whoever hands over does not wait for a log either."""
        if now - self._said < SILENCE:
            return
        with self._lock:
            spans, self._crowded_out = self._crowded_out, 0
        if spans:
            self._said = now
            self._log.warning("traces found no room, and were dropped", extra={"spans": spans})
