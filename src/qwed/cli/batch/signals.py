"""Deferred Ctrl-C: a batch stops between jobs, never between writing results and counting them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block; a second one takes effect at once, because a blocked reader may stall the
    block."""
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread handles signals, and an ignored signal needs no deferral.
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def defer(number: int, frame: FrameType | None) -> None:
        pending.append(number)
        if len(pending) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, defer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        before(signal.SIGINT, None)
