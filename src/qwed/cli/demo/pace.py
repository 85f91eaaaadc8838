"""How fast the demo is told: with pauses that any key ends to a person at a terminal, without any to everybody else."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Pace:
    """Pauses, and keys as they are pressed."""

    def __init__(self, *, paced: bool, asks: bool = False) -> None:
        self._paced = paced
        self._keys = _keyboard() if paced or asks else None

    @property
    def paced(self) -> bool:
        """Whether there are pauses at all."""
        return self._paced

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within the block a key counts when it is pressed, and is not shown."""
        if self._keys is None:
            yield
            return
        before = termios.tcgetattr(self._keys)
        tty.setcbreak(self._keys)
        try:
            yield
        finally:
            # A terminal that was closed meanwhile has nothing to be put back.
            with suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSADRAIN, before)

    def wait(self, seconds: float) -> None:
        """Pause, until a key is pressed at most."""
        if not self._paced:
            return
        if self._keys is None:
            time.sleep(seconds)
        elif select.select([self._keys], [], [], seconds)[0]:
            os.read(self._keys, 1)

    def key(self) -> str:
        """The next key; nothing where none will come."""
        return "" if self._keys is None else os.read(self._keys, 1).decode(errors="replace")

    def forget(self) -> None:
        """Keys that were pressed until now count no more: they were meant for a pause."""
        if self._keys is not None:
            termios.tcflush(self._keys, termios.TCIFLUSH)


def _keyboard() -> int | None:
    """The terminal to read keys from; None where there is none, or it belongs to another job at the moment."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    keys = sys.stdin.fileno()
    try:
        return keys if os.tcgetpgrp(keys) == os.getpgrp() else None
    except OSError:
        return None
