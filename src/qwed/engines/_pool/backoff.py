"""Delays of the pool's thread: restart backoff and a batching delay for replies."""

import select
import socket
import time
from collections.abc import Iterable

FIRST_PAUSE = 0.05
MAX_PAUSE = 5.0
BATCHING_MS = 4
"""Milliseconds in which replies accumulate while a worker has several requests."""


class Backoff:
    """Exponential backoff before another process is started."""

    def __init__(self) -> None:
        self.until = 0.0
        self._next = FIRST_PAUSE

    def failed(self) -> None:
        """Record a failed start."""
        self.until = time.monotonic() + self._next
        self._next = min(2 * self._next, MAX_PAUSE)

    def worked(self) -> None:
        """Record a successful start."""
        self._next = FIRST_PAUSE


def batching_delay(ends: Iterable[socket.socket]) -> None:
    """Wait for replies to accumulate, or until one of the `ends` becomes readable."""
    # `select.select` would reject descriptors above 1023.
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    poll.poll(BATCHING_MS)
