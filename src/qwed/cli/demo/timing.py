"""Pauses of the demo: on a terminal, any key ends one; elsewhere there are none."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Pacer:
    """Pauses and single key presses."""

    def __init__(self, *, paced: bool, asks: bool = False) -> None:
        self._paced = paced
        self._keys = _keyboard() if paced or asks else None

    @property
    def paced(self) -> bool:
        """True if there are pauses."""
        return self._paced

    @contextmanager
    def reading_keys(self) -> Iterator[None]:
        """Read single keys without echo inside the block."""
        if self._keys is None:
            yield
            return
        before = termios.tcgetattr(self._keys)
        tty.setcbreak(self._keys)
        try:
            yield
        finally:
            # The terminal may have been closed meanwhile.
            with suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSADRAIN, before)

    def wait(self, seconds: float) -> None:
        """Pause until the time is over or a key is pressed."""
        if not self._paced:
            return
        if self._keys is None:
            time.sleep(seconds)
        elif select.select([self._keys], [], [], seconds)[0]:
            os.read(self._keys, 1)

    def key(self) -> str:
        """Return the next key; empty if there is no keyboard."""
        return "" if self._keys is None else os.read(self._keys, 1).decode(errors="replace")

    def discard_keys(self) -> None:
        """Discard keys pressed so far: they were meant for a pause."""
        if self._keys is not None:
            termios.tcflush(self._keys, termios.TCIFLUSH)


def _keyboard() -> int | None:
    """Return the terminal to read keys from, or None if there is none or this is a background job."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    keys = sys.stdin.fileno()
    try:
        return keys if os.tcgetpgrp(keys) == os.getpgrp() else None
    except OSError:
        return None
