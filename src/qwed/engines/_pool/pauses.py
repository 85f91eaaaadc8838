"""When the pool's thread waits though it could go on: before it starts a process again, and for answers to gather."""

import select
import socket
import time
from collections.abc import Iterable

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
BREATH_MS = 4
"""Milliseconds in which answers gather, while a worker has several questions before it."""


class Pause:
    """How long to wait before starting another process: longer with each one that failed by itself."""

    def __init__(self) -> None:
        self.until = 0.0
        self._next = FIRST_PAUSE

    def failed(self) -> None:
        """One did."""
        self.until = time.monotonic() + self._next
        self._next = min(2 * self._next, LONGEST_PAUSE)

    def worked(self) -> None:
        """One did not."""
        self._next = FIRST_PAUSE


def breathe(ends: Iterable[socket.socket]) -> None:
    """Let answers gather, until one of the `ends` has something to say that does not wait."""
    # Not `select.select`, which takes no descriptor above 1023.
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    poll.poll(BREATH_MS)
