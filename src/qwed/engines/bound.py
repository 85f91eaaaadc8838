"""Design 8: one bound for all engine workers of a machine, kept by the process that starts its servers.

Each server has a pool of its own, which asks here, over a socket, before one of its workers begins. The rules are those
of one pool, over all of them: whoever has a place leaves the last free one to whoever has none, and each has its turn.
A server that is killed has its socket closed by the system, and with that its places are free.
"""

import math
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from qwed.engines._pool.permits import CLAIM, DROP, FOR_AGENT, GRANT, PIECE, Records
from qwed.engines._pool.queues import next_turn
from qwed.engines.pool import LONGEST_SECONDS
from qwed.rota import Rota

_MARGIN = 10.0


class Seat(NamedTuple):
    """What one server of several has: its end of what `admit` gave, and how many engine workers it keeps."""

    bound: socket.socket
    workers: int


@dataclass(eq=False, kw_only=True, slots=True)
class _Claim:
    """One job of one server that wants a place."""

    server: socket.socket
    number: int
    who: str
    for_agent: bool
    ends: float = math.inf
    """When its place is free again, whatever is said of it: no job takes so long."""


class _Server:
    """What one server says, and what it has asked for."""

    def __init__(self) -> None:
        self.records = Records(CLAIM)
        self.claims: dict[int, _Claim] = {}


class Bound:
    """Gives out `size` places among servers. Used by one thread."""

    def __init__(self, size: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._monotonic = monotonic
        self._servers: dict[socket.socket, _Server] = {}
        self._agent: Rota[_Claim] = Rota()
        self._other: Rota[_Claim] = Rota()
        self._working: set[_Claim] = set()

    def admit(self) -> tuple[socket.socket, socket.socket]:
        """Our end of a new server's socket, to be heard whenever it is readable, and the server's."""
        mine, theirs = socket.socketpair()
        self._servers[mine] = _Server()
        return mine, theirs

    def hear(self, channel: socket.socket) -> bool:
        """Take what a server says, and give out what is free; False once it is gone, and its places with it."""
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
                self._line_of(claim).put(claim.who, claim)
        if not piece:
            self._leave(channel)
        self._grant()
        return bool(piece)

    def _line_of(self, claim: _Claim) -> Rota[_Claim]:
        return self._agent if claim.for_agent else self._other

    def _drop(self, claim: _Claim | None) -> None:
        if claim is not None and claim.ends == math.inf:
            self._line_of(claim).remove(claim.who, claim)
        elif claim is not None:
            self._working.discard(claim)

    def _leave(self, channel: socket.socket) -> None:
        for claim in self._servers.pop(channel).claims.values():
            self._drop(claim)
        channel.close()

    def _grant(self) -> None:
        while (claim := self._next()) is not None:
            self._line_of(claim).served(claim.who, claim)
            claim.ends = self._monotonic() + LONGEST_SECONDS + _MARGIN
            self._working.add(claim)
            # Of a server that has just ended we hear in a moment, and its places are free again.
            with suppress(OSError):
                claim.server.send(GRANT.pack(claim.number), socket.MSG_DONTWAIT)

    def _next(self) -> _Claim | None:
        if len(self._working) == self._size:
            # Of a server that was stopped in the middle.
            now = self._monotonic()
            self._working = {claim for claim in self._working if claim.ends > now}
        free = self._size - len(self._working)
        served = {claim.who for claim in self._working if claim.for_agent}
        return next_turn(_firsts(self._agent), _firsts(self._other), free, served)


def _firsts(line: Rota[_Claim]) -> list[_Claim]:
    return [next(iter(line.of(who))) for who in line.waiting]
