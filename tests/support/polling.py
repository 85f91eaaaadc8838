"""Polling for a condition, seldom enough not to slow the work that it waits for."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_FIRST, _LONGEST = 0.001, 0.02


def until(holds: Callable[[], T | None], seconds: float = 120) -> T:
    """Return the first truthy result of the function."""
    ends, tick, pause = time.monotonic() + seconds, threading.Event(), _FIRST
    while time.monotonic() < ends:
        result = holds()
        if result:
            return result
        tick.wait(pause)
        pause = min(2 * pause, _LONGEST)
    raise AssertionError("it did not come about")
