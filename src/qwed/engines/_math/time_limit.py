"""Time limit for one step inside the process: a step that takes longer is left undecided, and the next one is tried.

The limit counts processor time, so a busy machine changes no verdict. It uses a signal, so it works only in the main
thread, as in an engine worker; elsewhere, or if the process already uses that timer, only the caller's limit applies.
"""

import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


class TimeLimitExceededError(BaseException):
    """The step took too long. Not an Exception, so that a library cannot catch it as one of its own."""


_deadlines: list[float] = []


def run_within(seconds: float, step: Callable[..., Result], *args: Any) -> Result | None:
    """Return the result of the step, or None if it took longer."""
    if not _can_use_timer():
        return step(*args)
    end = min([time.process_time() + seconds, *_deadlines])
    depth = len(_deadlines)
    before = signal.signal(signal.SIGVTALRM, _on_timer) if not depth else None
    _deadlines.append(end)
    try:
        _set_timer(end)
        return step(*args)
    except TimeLimitExceededError:
        if depth and time.process_time() >= _deadlines[depth - 1]:
            raise
        return None
    finally:
        del _deadlines[depth:]
        _set_timer(_deadlines[-1] if _deadlines else None)
        if before is not None:
            signal.signal(signal.SIGVTALRM, before)


def clear_limits() -> None:
    """End all limits, for a caller that catches the exception while a step is already being left."""
    if _deadlines:
        _deadlines.clear()
        _set_timer(None)


def _can_use_timer() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return False
    return bool(_deadlines) or signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


def _set_timer(end: float | None) -> None:
    left = 0.0 if end is None else max(end - time.process_time(), 0.001)
    # The timer repeats every tenth of a second, in case the step swallows the first exception.
    signal.setitimer(signal.ITIMER_VIRTUAL, left, 0.1 if left else 0.0)


def _on_timer(_signal: int, frame: FrameType | None) -> None:
    if not _deadlines or time.process_time() < _deadlines[-1]:
        return
    if not _is_in_callback(frame):
        raise TimeLimitExceededError
    _set_timer(_deadlines[-1])


def _is_in_callback(frame: FrameType | None) -> bool:
    """Return True where the interpreter would print the exception and go on: in what the garbage collector calls.

    The timer is set again, until the callback is over.
    """
    hooks = {getattr(hook, "__code__", None) for hook in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code in hooks or code.co_name == "__del__" or code.co_filename == weakref.__file__:
            return True
        frame = frame.f_back
    return False
