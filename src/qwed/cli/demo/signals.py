"""Stop signals of the demo: Ctrl-C, SIGTERM and SIGHUP, deferred during setup and cleanup."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Stop request; the first signal raises KeyboardInterrupt, later ones are only recorded."""

    def __init__(self) -> None:
        self._requested = False
        self._deferring = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle every stop signal like Ctrl-C inside the block."""
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            # A process started with `nohup` continues when its terminal closes.
            if handler is not signal.SIG_IGN or number == signal.SIGINT:
                signal.signal(number, self._stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals to the end of the block."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self._requested:
            raise KeyboardInterrupt

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        # A second signal must not interrupt the cleanup after the first.
        again, self._requested = self._requested, True
        if not again and not self._deferring:
            raise KeyboardInterrupt
