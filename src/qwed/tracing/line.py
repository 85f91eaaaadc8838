"""A connection with one time for all that passes over it: the timeout of a socket is for each read and write anew."""

import io
import socket
import ssl
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST = 1 << 17
"""Bytes that are heard."""
ADDRESSES = 4
"""How many of a host's addresses are tried, one after the other."""


class EndlessAnswer(OSError):
    """More was said than is listened to."""


class Line:
    """What http.client takes for a socket; everything but looking up the name ends within the seconds."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, seconds: float) -> None:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:ADDRESSES]
        self._until = time.monotonic() + seconds
        self._left = MOST
        self.socket = _dialled(places, seconds / len(places))
        if context is not None:
            self._secure(context, host)

    def sendall(self, data: bytes) -> None:
        """Send it whole; TimeoutError where that takes too long."""
        unsent = memoryview(data)
        while unsent:
            self._hurry()
            unsent = unsent[self.socket.send(unsent) :]

    def hear(self, into: "WriteableBuffer") -> int:
        """How many bytes came, none at the end; TimeoutError or EndlessAnswer where there is none."""
        self._hurry()
        heard = self.socket.recv_into(into)
        self._left -= heard
        if self._left < 0:
            raise EndlessAnswer
        return heard

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What is heard, to be read."""
        return io.BufferedReader(_Heard(self))

    def close(self) -> None:
        """Nothing: http.client hangs up when it knows that an answer is the last, and reads it then."""

    def _secure(self, context: ssl.SSLContext, host: str) -> None:
        try:
            self._hurry()
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        except (OSError, ValueError):
            self.socket.close()
            raise

    def _hurry(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)


class _Heard(io.RawIOBase):
    def __init__(self, line: Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        return self._line.hear(buffer)


def _dialled(places: Sequence[tuple[Any, ...]], share: float) -> socket.socket:
    """A connection to the first of these that takes one; each has its share of the time."""
    for place in places[:-1]:
        try:
            return _dial(place, share)
        except OSError:
            continue
    return _dial(places[-1], share)


def _dial(place: tuple[Any, ...], seconds: float) -> socket.socket:
    family, kind, protocol, _name, address = place
    made = socket.socket(family, kind, protocol)
    try:
        made.settimeout(seconds)
        made.connect(address)
        # The head and the body are two writes; the second would wait for the first to be acknowledged.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        made.close()
        raise
    return made
