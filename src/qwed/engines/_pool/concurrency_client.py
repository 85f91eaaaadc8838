"""Client of the machine-wide concurrency limiter."""

import hashlib
import itertools
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from qwed.engines._pool.queues import EngineJob

CLAIM = struct.Struct("!BQ16s")
"""Kind, claim number and owner; the owner is a digest, so that every record has the same length."""
GRANT = struct.Struct("!Q")
FOR_AGENT, FOR_OTHERS, DROP = range(3)
PIECE = 1 << 16


class RecordReader:
    """Splits a byte stream into fixed-size records."""

    def __init__(self, record: struct.Struct) -> None:
        self._record = record
        self._bytes = b""

    def feed(self, piece: bytes) -> Iterator[tuple[Any, ...]]:
        """Return the records completed by `piece`."""
        buffered = self._bytes + piece
        whole = len(buffered) - len(buffered) % self._record.size
        self._bytes = buffered[whole:]
        return self._record.iter_unpack(buffered[:whole])


class ConcurrencyClient:
    """Sends a claim before a job starts and drops it when the job ends or is no longer needed."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._numbers = itertools.count(1)
        self._records = RecordReader(GRANT)
        self._unsent_bytes = b""

    def claim(self, job: EngineJob) -> int:
        """Request permission to run `job`; return the claim number."""
        number = next(self._numbers)
        kind = FOR_AGENT if job.for_agent else FOR_OTHERS
        self._send(CLAIM.pack(kind, number, hashlib.blake2b(job.who.encode(), digest_size=16).digest()))
        return number

    def drop(self, number: int) -> None:
        """Return a permission or withdraw a claim."""
        self._send(CLAIM.pack(DROP, number, b""))

    def _send(self, data: bytes) -> None:
        self._unsent_bytes += data
        self.flush()

    def flush(self) -> None:
        """Send buffered bytes; the limiter's process may have been paused."""
        # If the limiter is gone, this process is about to end; until then nothing is granted.
        with suppress(OSError):
            while self._unsent_bytes:
                self._unsent_bytes = self._unsent_bytes[self.channel.send(self._unsent_bytes, socket.MSG_DONTWAIT) :]

    def granted(self) -> list[int] | None:
        """Return the claims granted since the last call, or None if the limiter is gone."""
        try:
            piece = self.channel.recv(PIECE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return [number for (number,) in self._records.feed(piece)] if piece else None
