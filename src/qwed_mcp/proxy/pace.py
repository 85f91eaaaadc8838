"""How much a server may say: without a bound, one that never stops would have the whole of the proxy's time."""

import anyio
import anyio.lowlevel

BURST = 2_000
"""Messages that are read at once."""
EACH_SECOND = 500.0
"""And for as long as it likes; what it is told itself is not counted against it."""
_TURN = 16
"""Messages in a row before somebody else has a turn: reading what is there already waits for nothing."""
_PIECE_BITS = 16
"""A long message counts as many, one for each 64 KiB."""


class Turns:
    """Lets others have their turn; whoever speaks may say as much as it likes."""

    def __init__(self) -> None:
        self._read = 0

    async def before(self, size: int) -> None:  # noqa: ARG002 - that of a message, as below
        """Wait until the next message may be read."""
        self._read += 1
        if self._read % _TURN == 0:
            await anyio.lowlevel.checkpoint()

    def spoken_to(self) -> None:
        """It was told something, and may answer."""


class Pace(Turns):
    """Slows down whoever says too much unasked: nothing is lost, and it is kept waiting itself."""

    def __init__(self, burst: int = BURST, each_second: float = EACH_SECOND) -> None:
        super().__init__()
        self._burst = burst
        self._each_second = each_second
        self._left = float(burst)
        self._seen = anyio.current_time()

    async def before(self, size: int) -> None:
        """Wait until the next message may be read."""
        now = anyio.current_time()
        self._left = min(self._burst, self._left + (now - self._seen) * self._each_second)
        self._seen = now
        self._left -= 1 + (size >> _PIECE_BITS)
        if self._left < 0:
            await anyio.sleep(-self._left / self._each_second)
        else:
            await super().before(size)

    def spoken_to(self) -> None:
        """It was told something, and may answer."""
        self._left = min(self._burst, self._left + 1)
