"""HTTP/1.1 client of the server: one deadline, bounded reads, no redirects, no retries, no cookies, no proxies."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools

MAX_HEAD_BYTES = 65_536
"""Bytes outside of a body: before it, after it, and between its chunks."""
_FRAMING_BYTES = 16
"""Framing allowed for each byte of a body, as for chunks of the smallest size."""
_MAX_BUFFERED_BYTES = 262_144
"""Unread bytes after which reading is paused."""
_IDLE_SECONDS = 4.0
"""Seconds that an idle connection is kept: servers close theirs after five, and a request must not race with that."""
_MAX_IDLE = 32
_MAX_CONNECTIONS = 256
CONNECT_SECONDS = 10.0


Headers = tuple[tuple[bytes, bytes], ...]


class HttpError(Exception):
    """The peer is not reachable, or sent no valid answer; the text does not quote it."""


class ResponseLimitError(HttpError):
    """The body is too large, or compressed."""


class ResponseHead(NamedTuple):
    """Status and headers of a response."""

    status: int
    media_type: str
    """Media type without parameters."""
    is_compressed: bool


class HttpAddress(NamedTuple):
    """Address of a server."""

    host: str
    port: int
    secure: bool
    path: str
    name: str
    """Value of the Host header."""


def parse_http_address(url: str) -> HttpAddress:
    """Return the address in a URL; raise ValueError if it has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError("an address begins with http:// or https:// and names a host")
    is_secure = parts.scheme == "https"
    query = f"?{parts.query}" if parts.query else ""
    return HttpAddress(
        parts.hostname, parts.port or (443 if is_secure else 80), is_secure, (parts.path or "/") + query, parts.netloc
    )


class _Connection(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self) -> None:
        self.ended = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._head_budget, self._head, self._complete = MAX_HEAD_BYTES, None, False
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._failed: str | None = None
        self._update: asyncio.Future[None] | None = None
        self._request_sent = self._keep_alive = False

    _head: ResponseHead | None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport  # type: ignore[assignment]  # a stream's

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        if not self._request_sent:
            # It would be taken for the answer to the next request.
            self._fail("it sent data without a request")
            return
        self._head_budget -= len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("its answer is not HTTP")
        except httptools.HttpParserUpgrade:
            self._fail("it asked for another protocol than HTTP")
        # A head and a large body may arrive together: only after parsing is it known how much of it was head.
        if self._head_budget < 0:
            self._fail("its answer has too many headers")
        self._head_budget = min(self._head_budget, MAX_HEAD_BYTES)
        self._notify()

    def connection_lost(self, error: Exception | None) -> None:
        """End the answer."""
        self.ended = True
        # An answer without a length ends where the connection does.
        if self._head is not None and error is None and b"content-length" not in self._headers:
            self._complete = self._complete or b"chunked" not in self._headers.get(b"transfer-encoding", b"").lower()
        if not self._complete:
            self._failed = self._failed or "its answer ended early"
        self._notify()

    def on_message_begin(self) -> None:
        """Refuse a second answer."""
        if self._complete:
            self._failed = "it answered twice"

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Store the head of the final response."""
        status = self._parser.get_status_code()
        if status >= 200 and not self._complete:
            media_type = self._headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
            is_compressed = self._headers.get(b"content-encoding", b"identity").strip().lower() != b"identity"
            self._head = ResponseHead(status, media_type, is_compressed)

    def on_body(self, data: bytes) -> None:
        """Buffer a chunk, and pause reading if too much is buffered."""
        self._head_budget += len(data) * (1 + _FRAMING_BYTES)
        if self._complete:
            return
        self._chunks.append(data)
        self._buffered += len(data)
        if self._buffered > _MAX_BUFFERED_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """Mark the answer as complete."""
        if self._head is None:
            self._headers = {}
        elif not self._complete:
            # The parser forgets it afterwards.
            self._complete, self._keep_alive = True, self._parser.should_keep_alive()

    async def send(self, request: bytes) -> ResponseHead:
        """Send a complete request and return the head of the response."""
        if self._transport is None or self.ended:
            raise HttpError("its connection ended early")
        self._request_sent = True
        self._transport.write(request)
        while self._head is None:
            await self._wait()
        return self._head

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        while True:
            if self._chunks:
                # Joined: a peer that sends single bytes must not cost more than another.
                data = b"".join(self._chunks)
                self._chunks.clear()
                self._buffered = 0
                if self._transport is not None and not self.ended:
                    self._transport.resume_reading()
                yield data
            elif self._complete:
                return
            else:
                await self._wait()

    def reset_for_reuse(self) -> bool:
        """Return True if another request may follow, and prepare for it."""
        if not self._complete or self.ended or self._chunks or self._failed or not self._keep_alive:
            return False
        self._reset()
        return True

    def close(self) -> None:
        """Abort the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self._failed is not None:
            raise HttpError(self._failed)
        self._update = asyncio.get_running_loop().create_future()
        await self._update

    def _notify(self) -> None:
        if self._update is not None and not self._update.done():
            self._update.set_result(None)

    def _fail(self, reason: str) -> None:
        self._failed = reason
        self.ended = True
        self.close()
        self._notify()


class HttpResponse(NamedTuple):
    """Head and body of a response."""

    head: ResponseHead
    chunks: AsyncIterator[bytes]

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body; raise HttpError if it is larger or compressed."""
        self.require_uncompressed()
        body = bytearray()
        async for chunk in self.chunks:
            body += chunk
            if len(body) > max_bytes:
                raise ResponseLimitError(f"its answer has more than {max_bytes} bytes")
        return bytes(body)

    def require_uncompressed(self) -> None:
        """Raise HttpError if the body is compressed: it could expand a thousandfold."""
        if self.head.is_compressed:
            raise ResponseLimitError("it compresses its answers although `Accept-Encoding: identity` was sent")


class ConnectionPool:
    """Pool of connections to one address."""

    def __init__(self, address: HttpAddress, tls: ssl.SSLContext | None = None) -> None:
        self.address = address
        self._idle: deque[_Connection] = deque()
        self._open, self._closed = 0, False
        self._tls = (tls or ssl.create_default_context()) if address.secure else None

    @asynccontextmanager
    async def request(self, request: bytes, seconds: float) -> AsyncIterator[HttpResponse]:
        """Send a request and yield the response; raise HttpError if there is none, TimeoutError if none begins
        within `seconds`.

        A request is never sent twice, because it may have arrived.
        """
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(seconds):
                connection = await self._acquire()
                head = await connection.send(request)
            yield HttpResponse(head, connection.body())
        finally:
            if connection is not None:
                self._release(connection)

    async def _acquire(self) -> _Connection:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if not connection.ended and now - connection.idle_since < _IDLE_SECONDS:
                return connection
            self._drop(connection)
        if self._open >= _MAX_CONNECTIONS:
            raise HttpError("too many requests to it are in progress")
        with ExitStack() as failing:
            self._open += 1
            failing.callback(self._decrement_open)
            connection = await self._connect()
            failing.pop_all()
        return connection

    def _decrement_open(self) -> None:
        self._open -= 1

    async def _connect(self) -> _Connection:
        address = self.address
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection, address.host, address.port, ssl=self._tls
                )
        except TimeoutError:
            raise HttpError("connecting to it timed out") from None
        except (OSError, ssl.SSLError) as error:
            raise HttpError(f"it is not reachable: {type(error).__name__}") from None
        return connection

    def _release(self, connection: _Connection) -> None:
        if not self._closed and connection.reset_for_reuse() and len(self._idle) < _MAX_IDLE:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._decrement_open()
        connection.close()

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released."""
        self._closed = True
        while self._idle:
            self._drop(self._idle.pop())


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context, created once: it takes longer than a request and blocks the event loop."""
    return ssl.create_default_context()


@asynccontextmanager
async def open_response(
    method: str, url: str, headers: Headers, body: bytes, seconds: float
) -> AsyncIterator[HttpResponse]:
    """Send one request on a connection of its own, and yield the response; errors are those of `ConnectionPool`."""
    pool = ConnectionPool(parse_http_address(url), _tls_context())
    try:
        async with pool.request(
            encode_request(pool.address, method, pool.address.path, headers, body), seconds
        ) as response:
            yield response
    finally:
        pool.close()


def encode_request(address: HttpAddress, method: str, path: str, headers: Headers, body: bytes) -> bytes:
    """Return the bytes of one request."""
    lines = [f"{method} {path} HTTP/1.1\r\nhost: {address.name}\r\naccept-encoding: identity\r\n".encode("latin-1")]
    lines += [b"%b: %b\r\n" % header for header in headers]
    if body or method == "POST":
        lines.append(b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body))
    return b"".join([*lines, b"\r\n", body])
