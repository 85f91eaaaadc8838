"""Length-prefixed frames on a stream socket: four bytes of length, then the payload."""

import socket
import struct
from collections.abc import Iterator

MAX_ANSWER = 4 << 20
MAX_REQUEST = 24 << 20
"""Larger than an upload of 10 MiB in base64 plus the rest of the request."""
MAX_ASK = MAX_REQUEST - 2
"""Maximum size of one request inside the list that is sent."""

_LENGTH = struct.Struct("!I")


class FrameError(ValueError):
    """The bytes are not a frame, or the frame is too long."""


def pack(payload: bytes, limit: int) -> bytes:
    """Return the frame of `payload`; raise FrameError above `limit`."""
    if len(payload) > limit:
        raise FrameError(f"{len(payload)} bytes are more than the limit of {limit}")
    return _LENGTH.pack(len(payload)) + payload


def receive(channel: socket.socket, limit: int) -> bytes | None:
    """Block for the next payload; return None if the peer has closed."""
    head = _exactly(channel, _LENGTH.size)
    if head is None:
        return None
    return _exactly(channel, _checked_length(head, limit))


def _exactly(channel: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        piece = channel.recv(min(count - len(parts), 1 << 20))
        if not piece:
            return None
        parts += piece
    return bytes(parts)


def _checked_length(head: bytes | bytearray, limit: int) -> int:
    length: int = _LENGTH.unpack_from(head)[0]
    if length > limit:
        raise FrameError(f"a frame of {length} bytes is more than the limit of {limit}")
    return length


class FrameReader:
    """Splits a byte stream into frames."""

    __slots__ = ("_bytes", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the payloads completed by `piece`; raise FrameError after them if the next one is too long."""
        self._bytes += piece
        while len(self._bytes) >= _LENGTH.size:
            end = _LENGTH.size + _checked_length(self._bytes, self._limit)
            if len(self._bytes) < end:
                return
            payload = bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
            yield payload

    @property
    def empty(self) -> bool:
        """True if no partial frame is buffered."""
        return not self._bytes
