"""The connections below the HTTP client: each ends with the time of its request, none is used again with a surplus.

The HTTP client counts its seconds anew for every byte that comes, and gives whatever follows an answer to the next
question. Here the seconds are those of the whole request, and a connection that said more than its answer is left.
"""

import socket
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import Any

import httpcore
import httpx

_PIECE = 4096
"""Bytes written at once: between two pieces the time is looked at."""


_END = b"\r\n\r\n"


class Errand:
    """One request on its way: until when it may take, and whether any of it has left."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.sent = False

    def left(self, error: type[httpcore.TimeoutException], most: float | None) -> float:
        """The seconds that remain, `most` at most; the error where none do."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise error("no time is left")
        return left if most is None else min(left, most)


_present: ContextVar[Errand] = ContextVar("errand")


@contextmanager
def errand(seconds: float) -> Iterator[Errand]:
    """The request that this thread or task is about to make."""
    begun = Errand(seconds)
    token = _present.set(begun)
    try:
        yield begun
    finally:
        _present.reset(token)


class _Count:
    """How many bytes came since the question, and how many of them are the answer."""

    def __init__(self) -> None:
        self._begin()
        self.surplus = False

    def _begin(self) -> None:
        self._answering = False
        self._head = bytearray()
        self._came = 0

    def asks(self) -> None:
        """A question leaves: what comes from now on answers it."""
        if self._answering:
            self._begin()
        _present.get().sent = True

    def comes(self, data: bytes) -> bytes:
        """Some of the answer."""
        self._answering = True
        self._came += len(data)
        if not self._head.endswith(_END):
            self._head += data
            end = self._head.find(_END, max(0, len(self._head) - len(data) - len(_END)))
            del self._head[end + len(_END) if end >= 0 else len(self._head) :]
        return data

    def ended(self, length: int) -> None:
        """The answer is over, its body of this length: a chunk's frame or a second answer makes it a surplus."""
        self.surplus = self._came != len(self._head) + length


class Line(httpcore.NetworkStream):
    """A connection of the client that blocks."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self.count = _Count()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes, in what is left of the request's time."""
        return self.count.comes(self._stream.read(max_bytes, _present.get().left(httpcore.ReadTimeout, timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send them all, in what is left of the request's time."""
        self.count.asks()
        for start in range(0, len(buffer), _PIECE):
            piece = bytes(buffer[start : start + _PIECE])
            self._stream.write(piece, _present.get().left(httpcore.WriteTimeout, timeout))

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> "Line":
        """The same connection, encrypted."""
        left = _present.get().left(httpcore.ConnectTimeout, timeout)
        return Line(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        """What the connection below says; one with a surplus has more to be read, so it is not used again."""
        return True if info == "is_readable" and self.count.surplus else self._stream.get_extra_info(info)


def _addresses(host: str, seconds: float) -> list[str]:
    """Where the host is. The system looks a name up for as long as it likes, so that is done beside us."""
    found: Future[list[Any]] = Future()

    def look() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.set_exception(httpcore.ConnectError(str(error)))

    Thread(target=look, daemon=True).start()
    try:
        return list(dict.fromkeys(row[4][0] for row in found.result(seconds)))
    except TimeoutError:
        raise httpcore.ConnectTimeout("the name of the host was not found in time") from None


class _Dial(httpcore.NetworkBackend):
    def __init__(self, below: httpcore.NetworkBackend) -> None:
        self._below = below

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Line:
        present = _present.get()
        failed = httpcore.ConnectError(f"`{host}` has no address")
        for address in _addresses(host, present.left(httpcore.ConnectTimeout, timeout)):
            left = present.left(httpcore.ConnectTimeout, timeout)
            try:
                return Line(self._below.connect_tcp(address, port, left, local_address, socket_options))
            except httpcore.ConnectError as error:
                failed = error
        raise failed


class AsyncLine(httpcore.AsyncNetworkStream):
    """A connection of the client that awaits; its time is kept by whoever awaits it."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self.count = _Count()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's name
        """Some bytes."""
        return self.count.comes(await self._stream.read(max_bytes, timeout))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's name
        """Send them all."""
        self.count.asks()
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Hang up."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> "AsyncLine":
        """The same connection, encrypted."""
        return AsyncLine(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """What the connection below says; one with a surplus has more to be read, so it is not used again."""
        return True if info == "is_readable" and self.count.surplus else self._stream.get_extra_info(info)


class _AsyncDial(httpcore.AsyncNetworkBackend):
    def __init__(self, below: httpcore.AsyncNetworkBackend) -> None:
        self._below = below

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncLine:
        return AsyncLine(await self._below.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._below.sleep(seconds)


def strung(client: httpx.Client) -> httpx.Client:
    """The client, its connections ours, through a proxy too."""
    for pool in _pools(client):
        pool._network_backend = _Dial(pool._network_backend)
    return client


def async_strung(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """The same for the client that awaits."""
    for pool in _pools(client):
        pool._network_backend = _AsyncDial(pool._network_backend)
    return client


def _pools(client: Any) -> list[Any]:
    # No public name reaches them while the client still reads the environment's proxies.
    transports = [client._transport, *(each for each in client._mounts.values() if each is not None)]
    return [each._pool for each in transports]
