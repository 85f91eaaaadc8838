"""HTTP/1.1 to the agent behind the proxy: few bytes read at a time, nothing followed, nothing tried twice."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools

MOST_HEAD = 65_536
"""Bytes that are no body: what comes before one, after it, and between its pieces."""
_FRAME = 16
"""As many of them belong to a byte of a body that comes in the smallest of pieces."""
_MUCH = 262_144
"""Bytes that wait for somebody to take them; more are not read from the agent."""
_IDLE = 4.0
"""Seconds that a connection is kept unused: agents end theirs after five, and a message must not meet that."""
_MOST_IDLE = 32
_MOST = 256
CONNECTING = 10.0


class Broken(Exception):
    """The agent could not be reached, or its answer is none; the words are our own."""


class Head(NamedTuple):
    """What comes before a body."""

    status: int
    kind: str
    """The media type, without parameters."""
    packed: bool


class Place(NamedTuple):
    """Where an agent listens."""

    host: str
    port: int
    secure: bool
    path: str
    name: str
    """As `Host` spells it."""


def place_of(url: str) -> Place:
    """The place that an address names; ValueError where it names none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError("an agent's address begins with http:// or https:// and names a host")
    secure = parts.scheme == "https"
    query = f"?{parts.query}" if parts.query else ""
    return Place(
        parts.hostname, parts.port or (443 if secure else 80), secure, (parts.path or "/") + query, parts.netloc
    )


class _Link(asyncio.Protocol):
    """One connection, with one request at a time on it."""

    def __init__(self) -> None:
        self.ended = False
        self.rested = 0.0
        self._transport: asyncio.Transport | None = None
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._spare, self._head, self._over = MOST_HEAD, None, False
        self._chunks: list[bytes] = []
        self._waiting = 0
        self._failed: str | None = None
        self._news: asyncio.Future[None] | None = None
        self._asked = self._kept = False

    _head: Head | None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = transport  # type: ignore[assignment]  # a stream's

    def data_received(self, data: bytes) -> None:
        """More has come."""
        if not self._asked:
            # It would be taken for the answer to whatever is asked next.
            self._fail("it spoke unasked")
            return
        self._spare -= len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("its answer is not HTTP")
        except httptools.HttpParserUpgrade:
            self._fail("it would like to speak something else than HTTP")
        # Read as one, a head and a large body are one piece: how much of it is which is known now and not before.
        if self._spare < 0:
            self._fail("its answer has too many headers")
        self._spare = min(self._spare, MOST_HEAD)
        self._tell()

    def connection_lost(self, error: Exception | None) -> None:
        """It is over."""
        self.ended = True
        # An answer without a length ends where the connection does.
        if self._head is not None and error is None and b"content-length" not in self._headers:
            self._over = self._over or b"chunked" not in self._headers.get(b"transfer-encoding", b"").lower()
        if not self._over:
            self._failed = self._failed or "its answer broke off"
        self._tell()

    def on_message_begin(self) -> None:
        """Told by the parser."""
        if self._over:
            self._failed = "it answered twice"

    def on_header(self, name: bytes, value: bytes) -> None:
        """Told by the parser."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Told by the parser."""
        status = self._parser.get_status_code()
        if status >= 200 and not self._over:
            kind = self._headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")
            packed = self._headers.get(b"content-encoding", b"identity").strip().lower() != b"identity"
            self._head = Head(status, kind, packed)

    def on_body(self, data: bytes) -> None:
        """Told by the parser."""
        self._spare += len(data) * (1 + _FRAME)
        if self._over:
            return
        self._chunks.append(data)
        self._waiting += len(data)
        if self._waiting > _MUCH and self._transport is not None:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """Told by the parser."""
        if self._head is None:
            self._headers = {}
        elif not self._over:
            # Afterwards it no longer knows.
            self._over, self._kept = True, self._parser.should_keep_alive()

    async def ask(self, request: bytes) -> Head:
        """Send a whole request, and wait for what comes before the body."""
        if self._transport is None or self.ended:
            raise Broken("its connection broke off")
        self._asked = True
        self._transport.write(request)
        while self._head is None:
            await self._wait()
        return self._head

    async def body(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        while True:
            if self._chunks:
                # All of it as one: an agent that sends a byte at a time must not cost more than one that does not.
                data = b"".join(self._chunks)
                self._chunks.clear()
                self._waiting = 0
                if self._transport is not None and not self.ended:
                    self._transport.resume_reading()
                yield data
            elif self._over:
                return
            else:
                await self._wait()

    def reusable(self) -> bool:
        """Whether another request may follow; it is ready for one then."""
        if not self._over or self.ended or self._chunks or self._failed or not self._kept:
            return False
        self._begin()
        return True

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self._failed is not None:
            raise Broken(self._failed)
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _fail(self, why: str) -> None:
        self._failed = why
        self.ended = True
        self.close()
        self._tell()


class Answer(NamedTuple):
    """What an agent answers."""

    head: Head
    chunks: AsyncIterator[bytes]


class Lines:
    """Connections to one place, kept for the next request."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._idle: deque[_Link] = deque()
        self._open, self._closed = 0, False
        self._tls = ssl.create_default_context() if place.secure else None

    @asynccontextmanager
    async def asked(self, request: bytes, seconds: float) -> AsyncIterator[Answer]:
        """The answer to a request; Broken where there is none, TimeoutError where none begins within `seconds`.

        Never sent twice: it may have arrived.
        """
        link: _Link | None = None
        try:
            async with asyncio.timeout(seconds):
                link = await self._free()
                head = await link.ask(request)
            yield Answer(head, link.body())
        finally:
            if link is not None:
                self._put_back(link)

    async def _free(self) -> _Link:
        now = asyncio.get_running_loop().time()
        while self._idle:
            link = self._idle.pop()
            if not link.ended and now - link.rested < _IDLE:
                return link
            self._drop(link)
        if self._open >= _MOST:
            raise Broken("too many requests are under way to it")
        with ExitStack() as failing:
            self._open += 1
            failing.callback(self._count_less)
            link = await self._connected()
            failing.pop_all()
        return link

    def _count_less(self) -> None:
        self._open -= 1

    async def _connected(self) -> _Link:
        where = self.place
        try:
            async with asyncio.timeout(CONNECTING):
                _, link = await asyncio.get_running_loop().create_connection(
                    _Link, where.host, where.port, ssl=self._tls
                )
        except TimeoutError:
            raise Broken("it could not be reached in time") from None
        except (OSError, ssl.SSLError) as error:
            raise Broken(f"it could not be reached: {type(error).__name__}") from None
        return link

    def _put_back(self, link: _Link) -> None:
        if not self._closed and link.reusable() and len(self._idle) < _MOST_IDLE:
            link.rested = asyncio.get_running_loop().time()
            self._idle.append(link)
        else:
            self._drop(link)

    def _drop(self, link: _Link) -> None:
        self._count_less()
        link.close()

    def close(self) -> None:
        """Hang up everywhere, also where somebody still speaks once that is over."""
        self._closed = True
        while self._idle:
            self._drop(self._idle.pop())


def request_bytes(place: Place, verb: str, path: str, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> bytes:
    """One request, whole."""
    lines = [f"{verb} {path} HTTP/1.1\r\nhost: {place.name}\r\naccept-encoding: identity\r\n".encode("latin-1")]
    lines += [b"%b: %b\r\n" % header for header in headers]
    if body or verb == "POST":
        lines.append(b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body))
    return b"".join([*lines, b"\r\n", body])
