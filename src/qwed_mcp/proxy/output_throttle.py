"""Throttle of a server's output, so that a server that never stops sending cannot take all processing time."""

import anyio
import anyio.lowlevel

BURST_MESSAGES = 2_000
"""Messages that are read without delay."""
MESSAGES_PER_SECOND = 500.0
"""Sustained rate of unsolicited messages; responses to our requests are not counted."""
_YIELD_INTERVAL = 16
"""Messages in a row before other tasks run: reading buffered data never waits."""
_UNIT_BITS = 16
"""Size of one unit in bits; a long message counts once per 64 KiB."""


class ReadPacer:
    """Lets other tasks run between messages, without a rate limit."""

    def __init__(self) -> None:
        self._read = 0

    async def before_read(self, size: int) -> None:  # noqa: ARG002 - the size matters to the subclass only
        """Wait until the next message may be read."""
        self._read += 1
        if self._read % _YIELD_INTERVAL == 0:
            await anyio.lowlevel.checkpoint()

    def on_message_sent(self) -> None:
        """Credit the peer for a message that it may answer."""


class OutputThrottle(ReadPacer):
    """Rate limit for unsolicited messages; nothing is lost, because the sender has to wait."""

    def __init__(self, burst: int = BURST_MESSAGES, per_second: float = MESSAGES_PER_SECOND) -> None:
        super().__init__()
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst)
        self._updated = anyio.current_time()

    async def before_read(self, size: int) -> None:
        """Wait until the next message may be read."""
        now = anyio.current_time()
        self._left = min(self._burst, self._left + (now - self._updated) * self._per_second)
        self._updated = now
        self._left -= 1 + (size >> _UNIT_BITS)
        if self._left < 0:
            await anyio.sleep(-self._left / self._per_second)
        else:
            await super().before_read(size)

    def on_message_sent(self) -> None:
        """Credit the peer for a message that it may answer."""
        self._left = min(self._burst, self._left + 1)
