"""How a pool asks for permission to work, where several pools on one machine share one bound."""

import hashlib
import itertools
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from qwed.engines._pool.queues import Job

CLAIM = struct.Struct("!BQ16s")
"""What is wanted, the number of the claim, and whose it is: a digest, which has the same length for everybody."""
GRANT = struct.Struct("!Q")
FOR_AGENT, FOR_OTHERS, DROP = range(3)
PIECE = 1 << 16


class Records:
    """Collects records of one size from bytes as they arrive."""

    def __init__(self, record: struct.Struct) -> None:
        self._record = record
        self._bytes = b""

    def feed(self, piece: bytes) -> Iterator[tuple[Any, ...]]:
        """The records that are whole now."""
        held = self._bytes + piece
        whole = len(held) - len(held) % self._record.size
        self._bytes = held[whole:]
        return self._record.iter_unpack(held[:whole])


class Permits:
    """The pool's end: a claim for each job before it is begun, given up when the job is done or past."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._numbers = itertools.count(1)
        self._records = Records(GRANT)
        self._unsaid = b""

    def claim(self, job: Job) -> int:
        """Ask for permission to do `job`; the number under which it is granted."""
        number = next(self._numbers)
        kind = FOR_AGENT if job.for_agent else FOR_OTHERS
        self._say(CLAIM.pack(kind, number, hashlib.blake2b(job.who.encode(), digest_size=16).digest()))
        return number

    def drop(self, number: int) -> None:
        """Give the permission back, or the claim up."""
        self._say(CLAIM.pack(DROP, number, b""))

    def _say(self, words: bytes) -> None:
        self._unsaid += words
        self.flush()

    def flush(self) -> None:
        """Say what could not be said so far: whoever keeps the bound may have been stopped for a while."""
        # Where it is gone, this process is about to be; until then nothing is granted.
        with suppress(OSError):
            while self._unsaid:
                self._unsaid = self._unsaid[self.channel.send(self._unsaid, socket.MSG_DONTWAIT) :]

    def granted(self) -> list[int] | None:
        """The claims that were granted since; None when nobody grants any more."""
        try:
            piece = self.channel.recv(PIECE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return [number for (number,) in self._records.feed(piece)] if piece else None
