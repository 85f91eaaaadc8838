"""HTTP client for a server behind the proxy, with a limit on the size of its answers."""

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from qwed_mcp.proxy.framing import MAX_MESSAGE_BYTES

CONNECT_SECONDS = 30.0
log = logging.getLogger(__name__)
_SERVICE_UNAVAILABLE = 503
_EVENT_STREAM = "text/event-stream"
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")


def bounded_http_client(headers: Mapping[str, str], timeout: float) -> "BoundedHttpClient":
    """Return an HTTP client that limits each message and refuses compressed answers."""
    # A compressed body can expand a thousandfold.
    request_headers = {**headers, "Accept-Encoding": "identity"}
    limits = httpx2.Timeout(CONNECT_SECONDS, read=max(timeout, 300.0))
    return BoundedHttpClient(headers=request_headers, timeout=limits, event_hooks={"response": [_bound_response]})


class BoundedHttpClient(httpx2.AsyncClient):
    """HTTP client that answers 503 when the server cannot be reached, so that only one call fails."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the server's answer, or 503 if there is none."""
        try:
            return await super().send(request, **options)
        except httpx2.TransportError as error:
            log.warning("mcp proxy server unreachable: %s", error or type(error).__name__)
            return httpx2.Response(_SERVICE_UNAVAILABLE, request=request)


async def _bound_response(response: httpx2.Response) -> None:
    """Truncate an oversized or compressed body, which is logged; an exception here would end the proxy."""
    compressed = response.headers.get("content-encoding", "").strip().lower() not in ("", "identity")
    events = response.headers.get("content-type", "").strip().lower().startswith(_EVENT_STREAM)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedStream(response.stream, events, 0 if compressed else MAX_MESSAGE_BYTES)
    if compressed:
        log.warning("mcp proxy answer refused: the server compressed it despite `Accept-Encoding: identity`")
        del response.headers["content-encoding"]


class _BoundedStream(httpx2.AsyncByteStream):
    """Byte stream with a size limit per message."""

    def __init__(self, stream: httpx2.AsyncByteStream, events: bool, max_bytes: int) -> None:
        self._stream = stream
        self._events = events
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, last = 0, b""
        try:
            async for chunk in self._stream:
                size += len(chunk)
                if size > self._max_bytes:
                    log.warning("mcp proxy answer truncated: more than %s bytes in one message", self._max_bytes)
                    return
                yield chunk
                if self._events and any(blank in last + chunk for blank in _BLANK_LINES):
                    size = 0
                last = chunk[-3:]
        except httpx2.TransportError as error:
            log.warning("mcp proxy answer truncated, connection failed: %s", error or type(error).__name__)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
