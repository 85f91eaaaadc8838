"""P6: a thread that computes for seconds lets the others have their turn.

Python hands the interpreter over only every few milliseconds unless it is let go of; a decision takes less than one.
"""

import threading
import time

WORK_SECONDS = 0.001
REST_SECONDS = 0.0001


class _Mine(threading.local):
    last = 0.0


_mine = _Mine()


def turn() -> None:
    """Rest for a moment, if this thread has worked long enough; to be called between small pieces of work."""
    if time.perf_counter() - _mine.last > WORK_SECONDS:
        time.sleep(REST_SECONDS)
        _mine.last = time.perf_counter()
