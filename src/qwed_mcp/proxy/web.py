"""A server behind the proxy that is spoken to over HTTP: what it answers is bounded."""

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from qwed_mcp.proxy.lines import LONGEST_LINE

CONNECTING = 30.0
log = logging.getLogger(__name__)
_UNREACHED = 503
_EVENTS = "text/event-stream"
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")


def client(headers: Mapping[str, str], timeout: float) -> "Client":
    """Speaks to the server, hears no message longer than is said, and nothing that grows on the way."""
    # What is packed can be a thousand times as large once it is read.
    sent = {**headers, "Accept-Encoding": "identity"}
    limits = httpx2.Timeout(CONNECTING, read=max(timeout, 300.0))
    return Client(headers=sent, timeout=limits, event_hooks={"response": [_bound]})


class Client(httpx2.AsyncClient):
    """Answers itself where the server cannot be reached: a connection that fails is the end of one call, not of us."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """What the server answers, or that nobody does."""
        try:
            return await super().send(request, **options)
        except httpx2.TransportError as error:
            log.warning("the server could not be reached: %s", error or type(error).__name__)
            return httpx2.Response(_UNREACHED, request=request)


async def _bound(response: httpx2.Response) -> None:
    """Cut off what is too long, packed or torn: half a message is none, and that is told; an error here ends us."""
    packed = response.headers.get("content-encoding", "").strip().lower() not in ("", "identity")
    events = response.headers.get("content-type", "").strip().lower().startswith(_EVENTS)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, events, 0 if packed else LONGEST_LINE)
    if packed:
        log.warning("the server packs its answers, which it was asked not to: they are not read")
        del response.headers["content-encoding"]


class _Bounded(httpx2.AsyncByteStream):
    """The same bytes, of one message no more than is said."""

    def __init__(self, stream: httpx2.AsyncByteStream, events: bool, longest: int) -> None:
        self._stream = stream
        self._events = events
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held, last = 0, b""
        try:
            async for chunk in self._stream:
                held += len(chunk)
                if held > self._longest:
                    log.warning("an answer is not read further: more than %s bytes in one message", self._longest)
                    return
                yield chunk
                if self._events and any(blank in last + chunk for blank in _BLANK_LINES):
                    held = 0
                last = chunk[-3:]
        except httpx2.TransportError as error:
            log.warning("an answer of the server broke off: %s", error or type(error).__name__)

    async def aclose(self) -> None:
        """Hear no more of it."""
        await self._stream.aclose()
