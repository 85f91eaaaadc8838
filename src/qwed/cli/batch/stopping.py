"""How a batch is stopped: between one job and the next, never between writing its answers and counting them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undivided() -> Iterator[None]:
    """Ctrl-C during the block takes effect at its end, and a second one at once: whoever reads what is written may
    have stopped reading."""
    before = signal.getsignal(signal.SIGINT)
    # Signals are handled in the main thread alone, and what ignores them has nothing to wait with.
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        if len(waiting) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        before(signal.SIGINT, None)
