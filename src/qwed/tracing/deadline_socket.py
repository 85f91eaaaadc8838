"""Socket with one deadline for the whole exchange; an ordinary timeout restarts with each read and write."""

import io
import socket
import ssl
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_RESPONSE_BYTES = 1 << 17
MAX_ADDRESSES = 4
"""Addresses of a host that are tried, one after the other."""


class ResponseTooLargeError(OSError):
    """The peer sent more than MAX_RESPONSE_BYTES."""


class DeadlineSocket:
    """Socket for http.client; everything except the DNS lookup ends within `seconds`."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, seconds: float) -> None:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:MAX_ADDRESSES]
        self._deadline = time.monotonic() + seconds
        self._remaining = MAX_RESPONSE_BYTES
        self.socket = _connect_first(addresses, seconds / len(addresses))
        if context is not None:
            self._wrap_tls(context, host)

    def sendall(self, data: bytes) -> None:
        """Send all data; raise TimeoutError after the deadline."""
        unsent = memoryview(data)
        while unsent:
            self._apply_deadline()
            unsent = unsent[self.socket.send(unsent) :]

    def receive_into(self, into: "WriteableBuffer") -> int:
        """Return the number of bytes received, 0 at the end; raise TimeoutError or ResponseTooLargeError."""
        self._apply_deadline()
        count = self.socket.recv_into(into)
        self._remaining -= count
        if self._remaining < 0:
            raise ResponseTooLargeError
        return count

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a reader of the received bytes."""
        return io.BufferedReader(_SocketReader(self))

    def close(self) -> None:
        """Do nothing: http.client closes the socket before it has read the last response."""

    def _wrap_tls(self, context: ssl.SSLContext, host: str) -> None:
        try:
            self._apply_deadline()
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        except (OSError, ValueError):
            self.socket.close()
            raise

    def _apply_deadline(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)


class _SocketReader(io.RawIOBase):
    def __init__(self, sock: DeadlineSocket) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        return self._sock.receive_into(buffer)


def _connect_first(addresses: Sequence[tuple[Any, ...]], seconds: float) -> socket.socket:
    """Connect to the first address that accepts; each gets its share of the time."""
    for address_info in addresses[:-1]:
        try:
            return _connect(address_info, seconds)
        except OSError:
            continue
    return _connect(addresses[-1], seconds)


def _connect(address_info: tuple[Any, ...], seconds: float) -> socket.socket:
    family, kind, protocol, _name, address = address_info
    sock = socket.socket(family, kind, protocol)
    try:
        sock.settimeout(seconds)
        sock.connect(address)
        # Head and body are two writes; without this, the second waits for the acknowledgement of the first.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        sock.close()
        raise
    return sock
