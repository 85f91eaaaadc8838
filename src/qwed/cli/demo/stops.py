"""How the demo is stopped: Ctrl-C, SIGTERM and a closed terminal, once, and never between making and remembering."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stops:
    """What was asked to stop; the first signal raises KeyboardInterrupt, later ones only say it again."""

    def __init__(self) -> None:
        self._asked = False
        self._held = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Within the block every such signal is Ctrl-C."""
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            # What was started with `nohup` goes on when its terminal closes.
            if handler is not signal.SIG_IGN or number == signal.SIGINT:
                signal.signal(number, self._stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """The block is not interrupted; a signal during it takes effect at its end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._asked:
            raise KeyboardInterrupt

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        # Cleaning up after the first one must not be cut short by an impatient second.
        again, self._asked = self._asked, True
        if not again and not self._held:
            raise KeyboardInterrupt
