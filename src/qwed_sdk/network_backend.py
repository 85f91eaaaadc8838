"""httpcore network backend with a deadline for the whole request.

httpx restarts its timeout with every byte that arrives, and hands bytes that follow a response to the next request.
This backend enforces one deadline for each request, and does not reuse a connection that sent more than its response.
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

_WRITE_BYTES = 4096
"""Bytes of one write; the deadline is checked between two writes."""


_HEADER_END = b"\r\n\r\n"


class RequestDeadline:
    """Deadline of one request, and whether any of it was sent."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.sent = False

    def left(self, error: type[httpcore.TimeoutException], most: float | None) -> float:
        """Return the remaining seconds, at most `most`; raise the error if none remain."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise error("the deadline has passed")
        return left if most is None else min(left, most)


_current_deadline: ContextVar[RequestDeadline] = ContextVar("request_deadline")


@contextmanager
def request_deadline(seconds: float) -> Iterator[RequestDeadline]:
    """Set the deadline of the request that this thread or task sends."""
    deadline = RequestDeadline(seconds)
    token = _current_deadline.set(deadline)
    try:
        yield deadline
    finally:
        _current_deadline.reset(token)


class _ByteCounter:
    """Counter of received bytes, which detects bytes after the end of a response."""

    def __init__(self) -> None:
        self._begin()
        self.surplus = False

    def _begin(self) -> None:
        self._has_response = False
        self._head = bytearray()
        self._received = 0

    def on_write(self) -> None:
        """Start counting anew if a response was read since the last write; mark the request as sent."""
        if self._has_response:
            self._begin()
        _current_deadline.get().sent = True

    def on_read(self, data: bytes) -> bytes:
        """Count bytes of the response, and return them."""
        self._has_response = True
        self._received += len(data)
        if not self._head.endswith(_HEADER_END):
            self._head += data
            end = self._head.find(_HEADER_END, max(0, len(self._head) - len(data) - len(_HEADER_END)))
            del self._head[end + len(_HEADER_END) if end >= 0 else len(self._head) :]
        return data

    def on_end(self, length: int) -> None:
        """Set `surplus` if more arrived than headers and a body of this length: chunk framing or a second response."""
        self.surplus = self._received != len(self._head) + length


class DeadlineStream(httpcore.NetworkStream):
    """Connection of the sync client; every read and write respects the request's deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self.counter = _ByteCounter()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read bytes before the deadline."""
        return self.counter.on_read(
            self._stream.read(max_bytes, _current_deadline.get().left(httpcore.ReadTimeout, timeout))
        )

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes before the deadline."""
        self.counter.on_write()
        for start in range(0, len(buffer), _WRITE_BYTES):
            piece = bytes(buffer[start : start + _WRITE_BYTES])
            self._stream.write(piece, _current_deadline.get().left(httpcore.WriteTimeout, timeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> "DeadlineStream":
        """Return the same connection with TLS."""
        left = _current_deadline.get().left(httpcore.ConnectTimeout, timeout)
        return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        """Return information about the socket; a surplus counts as readable, so that httpcore does not reuse the
        connection."""
        return True if info == "is_readable" and self.counter.surplus else self._stream.get_extra_info(info)


def _resolve(host: str, seconds: float) -> list[str]:
    """Return the addresses of a host. The lookup runs in a thread, because getaddrinfo has no timeout."""
    lookup: Future[list[Any]] = Future()

    def resolve() -> None:
        try:
            lookup.set_result(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            lookup.set_exception(httpcore.ConnectError(str(error)))

    Thread(target=resolve, daemon=True).start()
    try:
        return list(dict.fromkeys(row[4][0] for row in lookup.result(seconds)))
    except TimeoutError:
        raise httpcore.ConnectTimeout("the host name was not resolved in time") from None


class _DeadlineBackend(httpcore.NetworkBackend):
    def __init__(self, below: httpcore.NetworkBackend) -> None:
        self._below = below

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> DeadlineStream:
        deadline = _current_deadline.get()
        last_error = httpcore.ConnectError(f"`{host}` has no address")
        for address in _resolve(host, deadline.left(httpcore.ConnectTimeout, timeout)):
            left = deadline.left(httpcore.ConnectTimeout, timeout)
            try:
                return DeadlineStream(self._below.connect_tcp(address, port, left, local_address, socket_options))
            except httpcore.ConnectError as error:
                last_error = error
        raise last_error


class AsyncCountingStream(httpcore.AsyncNetworkStream):
    """Connection of the async client; its caller enforces the deadline."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self.counter = _ByteCounter()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's name
        """Read bytes."""
        return self.counter.on_read(await self._stream.read(max_bytes, timeout))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's name
        """Write all bytes."""
        self.counter.on_write()
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
    ) -> "AsyncCountingStream":
        """Return the same connection with TLS."""
        return AsyncCountingStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return information about the socket; a surplus counts as readable, so that httpcore does not reuse the
        connection."""
        return True if info == "is_readable" and self.counter.surplus else self._stream.get_extra_info(info)


class _AsyncCountingBackend(httpcore.AsyncNetworkBackend):
    def __init__(self, below: httpcore.AsyncNetworkBackend) -> None:
        self._below = below

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncCountingStream:
        return AsyncCountingStream(await self._below.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._below.sleep(seconds)


def use_deadline_backend(client: httpx.Client) -> httpx.Client:
    """Make all pools of the client, those of proxies included, use this backend; return the client."""
    for pool in _connection_pools(client):
        pool._network_backend = _DeadlineBackend(pool._network_backend)
    return client


def use_async_backend(client: httpx.AsyncClient) -> httpx.AsyncClient:
    """Make all pools of the async client, those of proxies included, use this backend; return the client."""
    for pool in _connection_pools(client):
        pool._network_backend = _AsyncCountingBackend(pool._network_backend)
    return client


def _connection_pools(client: Any) -> list[Any]:
    # httpx has no public way to set the backend and still use the proxies of the environment.
    transports = [client._transport, *(transport for transport in client._mounts.values() if transport is not None)]
    return [transport._pool for transport in transports]
