"""A limit for one step inside the process: what takes longer is left undecided, and the next step is tried.

It counts processor time, so a busy machine changes no verdict. It is a signal, so it works in the main thread alone, as
that of an engine worker; elsewhere, and where the process uses that timer itself, the caller's limit is the only one.
"""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Found = TypeVar("Found")


class OutOfTime(BaseException):
    """The step took too long; no Exception, so that a library cannot mistake it for one of its own."""


_deadlines: list[float] = []


def within(seconds: float, step: Callable[..., Found], *args: Any) -> Found | None:
    """What the step returns, or None where it took longer."""
    if not _may_ring():
        return step(*args)
    end = min([time.process_time() + seconds, *_deadlines])
    depth = len(_deadlines)
    before = signal.signal(signal.SIGVTALRM, _ring) if not depth else None
    _deadlines.append(end)
    try:
        _set(end)
        return step(*args)
    except OutOfTime:
        if depth and time.process_time() >= _deadlines[depth - 1]:
            raise
        return None
    finally:
        del _deadlines[depth:]
        _set(_deadlines[-1] if _deadlines else None)
        if before is not None:
            signal.signal(signal.SIGVTALRM, before)


def stop() -> None:
    """End every limit: for whoever catches an `OutOfTime` that rang while a step was already being left."""
    if _deadlines:
        _deadlines.clear()
        _set(None)


def _may_ring() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    return bool(_deadlines) or signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


def _set(end: float | None) -> None:
    left = 0.0 if end is None else max(end - time.process_time(), 0.001)
    # It rings again every tenth of a second: a step that was about to swallow the first is told once more.
    signal.setitimer(signal.ITIMER_VIRTUAL, left, 0.1 if left else 0.0)


def _ring(_signal: int, _frame: FrameType | None) -> None:
    if _deadlines and time.process_time() >= _deadlines[-1]:
        raise OutOfTime
