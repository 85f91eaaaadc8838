"""Machine-wide limit on running engine workers, kept by the supervisor process.

Each server has its own pool, which asks here over a socket before one of its workers starts. The rules of one pool
apply across all: an owner with a slot leaves the last free one to owners without, and owners take turns. When a server
is killed, its socket closes and its slots are released.
"""

import math
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from qwed.engines._pool.concurrency_client import CLAIM, DROP, FOR_AGENT, GRANT, PIECE, RecordReader
from qwed.engines._pool.queues import pick_next
from qwed.engines.pool import MAX_SECONDS
from qwed.fair_queue import FairQueue

_MARGIN = 10.0


class EngineShare(NamedTuple):
    """A server's socket to the limiter and its number of engine workers."""

    bound: socket.socket
    workers: int


@dataclass(eq=False, kw_only=True, slots=True)
class _Claim:
    """A request of one server for a slot."""

    server: socket.socket
    number: int
    who: str
    for_agent: bool
    ends: float = math.inf
    """Time at which the slot is released in any case; no job takes that long."""


class _Server:
    """Connection state of one server."""

    def __init__(self) -> None:
        self.records = RecordReader(CLAIM)
        self.claims: dict[int, _Claim] = {}


class GlobalLimiter:
    """Distributes `size` slots among servers. Used by one thread."""

    def __init__(self, size: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._monotonic = monotonic
        self._servers: dict[socket.socket, _Server] = {}
        self._agent: FairQueue[_Claim] = FairQueue()
        self._other: FairQueue[_Claim] = FairQueue()
        self._working: set[_Claim] = set()

    def admit(self) -> tuple[socket.socket, socket.socket]:
        """Return our end of a new server's socket, to be watched for reading, and the server's end."""
        mine, theirs = socket.socketpair()
        self._servers[mine] = _Server()
        return mine, theirs

    def hear(self, channel: socket.socket) -> bool:
        """Handle a server's messages and grant free slots; return False if the server is gone."""
        server = self._servers[channel]
        try:
            piece = channel.recv(PIECE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            piece = b""
        for kind, number, who in server.records.feed(piece):
            if kind == DROP:
                self._drop(server.claims.pop(number, None))
            else:
                claim = _Claim(server=channel, number=number, who=who.hex(), for_agent=kind == FOR_AGENT)
                server.claims[number] = claim
                self._queue_of(claim).put(claim.who, claim)
        if not piece:
            self._leave(channel)
        self._grant()
        return bool(piece)

    def _queue_of(self, claim: _Claim) -> FairQueue[_Claim]:
        return self._agent if claim.for_agent else self._other

    def _drop(self, claim: _Claim | None) -> None:
        if claim is not None and claim.ends == math.inf:
            self._queue_of(claim).remove(claim.who, claim)
        elif claim is not None:
            self._working.discard(claim)

    def _leave(self, channel: socket.socket) -> None:
        for claim in self._servers.pop(channel).claims.values():
            self._drop(claim)
        channel.close()

    def _grant(self) -> None:
        while (claim := self._next()) is not None:
            self._queue_of(claim).take(claim.who, claim)
            claim.ends = self._monotonic() + MAX_SECONDS + _MARGIN
            self._working.add(claim)
            # If the server has just ended, its socket closes next and releases the slot.
            with suppress(OSError):
                claim.server.send(GRANT.pack(claim.number), socket.MSG_DONTWAIT)

    def _next(self) -> _Claim | None:
        if len(self._working) == self._size:
            # Drop claims of a server that was suspended.
            now = self._monotonic()
            self._working = {claim for claim in self._working if claim.ends > now}
        free = self._size - len(self._working)
        served = {claim.who for claim in self._working if claim.for_agent}
        return pick_next(_first_claims(self._agent), _first_claims(self._other), free, served)


def _first_claims(queue: FairQueue[_Claim]) -> list[_Claim]:
    return [next(iter(queue.items_of(who))) for who in queue.owners]
