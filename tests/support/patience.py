"""Waiting for what comes about elsewhere and tells nobody: looked at seldom enough not to take its time away."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_FIRST, _LONGEST = 0.001, 0.02


def until(holds: Callable[[], T | None], seconds: float = 120) -> T:
    """What a look finds, once it finds something."""
    ends, tick, pause = time.monotonic() + seconds, threading.Event(), _FIRST
    while time.monotonic() < ends:
        found = holds()
        if found:
            return found
        tick.wait(pause)
        pause = min(2 * pause, _LONGEST)
    raise AssertionError("it did not come about")
