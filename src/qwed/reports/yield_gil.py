"""Cooperative yielding of the interpreter lock in long computations (P6).

CPython switches threads only every few milliseconds unless the lock is released; a decision takes less than one.
"""

import threading
import time

WORK_SECONDS = 0.001
REST_SECONDS = 0.0001


class _Mine(threading.local):
    last = 0.0


_mine = _Mine()


def yield_gil() -> None:
    """Sleep briefly if this thread has worked long enough; call it between small pieces of work."""
    if time.perf_counter() - _mine.last > WORK_SECONDS:
        time.sleep(REST_SECONDS)
        _mine.last = time.perf_counter()
