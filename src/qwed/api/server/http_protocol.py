"""HTTP protocol with limits on head size, connection count, idle time and unread responses (P6).

uvicorn waits for a request head for ever and buffers all of it. Here the connections without a complete head are
dropped first: after a timeout, or when another connection needs the place.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from qwed.api.server.endpoint import Response, error_response
from qwed.kernel.answer import problem
from qwed.model import ErrorCode

HEAD_SECONDS = 30.0
"""From the connection, or from the first byte after a response, to the end of the next head."""
MAX_HEAD_BYTES = 65_536
"""Head bytes allowed beyond the read in which the head begins.

The same number is allowed for chunk framing and trailers: between two parts of a body, and after the last.
"""
READ_AHEAD_BYTES = 4_096
"""Bytes parsed at a time, and none while a request waits behind another one.

A pipelined request takes a hundred times the memory of its bytes.
"""
WRITE_TIMEOUT_SECONDS = 30.0
"""Time a client may leave a full write buffer unread."""
TICK_SECONDS = 1.0
SHUTDOWN_WRITE_TIMEOUT_SECONDS = 2.0
"""The same while the server stops, so that clients that do not read cannot delay it."""


_UPGRADE_TOKENS = frozenset({b"upgrade", b"http2-settings"})


def _without_upgrade(headers: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Yield the header lines without those that request another protocol."""
    for name, value in headers:
        if name == b"connection":
            tokens = [word for word in value.split(b",") if word.strip().lower() not in _UPGRADE_TOKENS]
            yield b"connection: " + b",".join(tokens)
        elif name not in _UPGRADE_TOKENS:
            yield b"%b: %b" % (name, value)


class Connections:
    """All connections of one server, and the protocol factory that uvicorn calls."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.awaiting_head: dict[BoundedProtocol, None] = {}
        """Connections without a complete head, oldest first."""
        self.idle: dict[BoundedProtocol, float] = {}
        """Keep-alive connections and when they expire, in that order."""
        self._ticking = False

    def __call__(self, **kwargs: Any) -> "BoundedProtocol":
        return BoundedProtocol(self, **kwargs)

    def mark_idle(self, protocol: "BoundedProtocol") -> None:
        """Start the keep-alive timeout of `protocol`."""
        loop = protocol.loop
        self.idle[protocol] = loop.time() + protocol.timeout_keep_alive
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK_SECONDS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that were idle too long. One timer for all costs less than one after each response."""
        now = loop.time()
        for protocol in [protocol for protocol, until in self.idle.items() if until <= now]:
            del self.idle[protocol]
            protocol.timeout_keep_alive_handler()
        self._ticking = bool(self.idle)
        if self._ticking:
            loop.call_later(TICK_SECONDS, self._tick, loop)


class CoalescingTransport:
    """Transport that buffers a write until the next one or the end of the tick.

    uvicorn writes the head and the body of a response separately; this sends them in one system call and one packet.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._buffer = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write the buffer together with `data`, or buffer `data`."""
        if self._buffer:
            buffered, self._buffer = self._buffer, b""
            self._transport.write(buffered + data)
        elif data:
            self._buffer = data
            self._loop.call_soon(self._flush)

    def write_now(self, data: bytes) -> None:
        """Write the buffer and `data` at once."""
        buffered, self._buffer = self._buffer, b""
        self._transport.write(buffered + data if buffered else data)

    def close(self) -> None:
        """Write the buffer, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        buffered, self._buffer = self._buffer, b""
        if buffered and not self._transport.is_closing():
            self._transport.write(buffered)


class PipelineFlowControl(FlowControl):
    """Flow control that does not resume reading while a pipelined request waits."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Resume reading if no pipelined request waits."""
        if not self._pipeline:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """HTTP connection with bounded heads and timeouts."""

    def __init__(self, connections: Connections, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._connections = connections
        self._overhead_bytes = 0
        """Bytes since the head began, or since the last bytes of the body."""
        self._parsing_head = self._parsing_body = False
        self._read_ahead_buffer = b""
        """Received bytes that are not parsed yet, because a pipelined request waits."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._current_cycle: RequestResponseCycle | None = None
        self._upgrade_requested = False
        """True while a head that requests another protocol is parsed again."""
        self._pending_error: Response | None = None
        """Error response to send before closing a connection that cannot be parsed further."""
        self._stopping = False
        self.coalescing: CoalescingTransport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        self.coalescing = CoalescingTransport(transport, self.loop)
        super().connection_made(self.coalescing)  # type: ignore[arg-type]  # one, by delegation
        self.flow = PipelineFlowControl(transport, self.pipeline)
        if len(self.connections) > self._connections.most:
            # Drops itself if every other connection has a request in progress.
            next(iter(self._connections.awaiting_head), self).drop()
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_write_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        # uvicorn notifies the newest request only; the one being answered must learn of the disconnect too.
        if self._current_cycle is not None and not self._current_cycle.response_complete:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self._read_ahead_buffer or len(data) > READ_AHEAD_BYTES:
            self._read_ahead_buffer += data
            self._read_ahead()
        else:
            self._read(data)

    def _read_ahead(self) -> None:
        """Parse received bytes until a pipelined request waits."""
        at, here = 0, self._read_ahead_buffer
        while at < len(here) and not self.pipeline:
            self._read(here[at : at + READ_AHEAD_BYTES])
            at += READ_AHEAD_BYTES
        self._read_ahead_buffer = here[at:]

    def _read(self, data: bytes) -> None:
        if self._pending_error is not None or self.transport.is_closing():
            return
        self._overhead_bytes += len(data)
        self._feed(data)
        if self._overhead_bytes > MAX_HEAD_BYTES and (self._parsing_head or self._parsing_body):
            what = "the head" if self._parsing_head else "the chunk framing of the body"
            self._reject(error_response(problem(ErrorCode.TOO_LARGE, f"{what} is larger than {MAX_HEAD_BYTES} bytes")))
        elif self._parsing_head or self.is_free():
            self._start_head_timer()

    def is_free(self) -> bool:
        """Return True if no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._parsing_head = True
        self._overhead_bytes = 0

    def on_headers_complete(self) -> None:
        self._parsing_head = False
        self._stop_head_timer()
        if self.parser.should_upgrade():
            self._upgrade_requested = True
            return
        self.dispatch()
        self._parsing_body = True
        # The parser reports trailers like headers: a credential in a trailer must be ignored.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._overhead_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._upgrade_requested:
            self._parsing_body = False
            super().on_message_complete()

    def _feed(self, data: bytes) -> None:
        """Parse `data` like uvicorn, but ignore upgrades and do not log invalid requests."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._reparse_without_upgrade(data[upgrade.args[0] :])

    def _reparse_without_upgrade(self, rest: bytes) -> None:
        """Parse a head that requests another protocol as if it did not (RFC 9110, 7.8).

        The parser skips the body of such a request and would take it for the next request.
        """
        self._upgrade_requested = False
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self.send_400_response("This server is not a proxy.")
            return
        head = [b"%b %b HTTP/%b" % (method, self.url, version), *_without_upgrade(self.headers), b"\r\n"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(head) + rest)

    def dispatch(self) -> None:
        """Pass a request whose head is complete to the application."""
        super().on_headers_complete()

    def _start_head_timer(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.drop)
            self._connections.awaiting_head[self] = None

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
            del self._connections.awaiting_head[self]

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """Close gracefully; from now on the client has less time to read its response."""
        super().shutdown()
        self._stopping = True
        self._restart_write_timer()

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            self._read_ahead()
        elif self._pending_error is not None:
            self._write_error(self._pending_error)
        else:
            # Like uvicorn, without a timer for each connection.
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            self._connections.mark_idle(self)
        if self._stopping:
            self._restart_write_timer()

    def _unset_keepalive_if_required(self) -> None:
        self._connections.idle.pop(self, None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._restart_write_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._restart_write_timer()

    def _restart_write_timer(self) -> None:
        """Restart the write timeout if the client has to read before the connection can continue or end."""
        self._stop_write_timer()
        if self.flow.write_paused or (self._stopping and self.transport.is_closing()):
            self._write_timer = self.loop.call_later(
                SHUTDOWN_WRITE_TIMEOUT_SECONDS if self._stopping else WRITE_TIMEOUT_SECONDS, self.drop
            )

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def drop(self) -> None:
        """Abort the connection."""
        self._stop_head_timer()
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Send a JSON error in place of uvicorn's plain text."""
        self._reject(error_response(problem(ErrorCode.MALFORMED, msg.rstrip(".").lower())))

    def _reject(self, response: Response) -> None:
        """Stop parsing, send the error when it is its turn, then close."""
        if self._parsing_body and self.is_free():
            # Its request was rejected before; it gets one response.
            self.transport.close()
            return
        others = bool(self.pipeline) if self._parsing_body else not self.is_free()
        if self._parsing_body and self.pipeline:
            # The error answers the newest of the pipelined requests.
            self.pipeline.popleft()
        self._parsing_head = self._parsing_body = False
        self._pending_error = response
        if others:
            self._stop_head_timer()
        else:
            self._write_error(response)

    def _write_error(self, response: Response) -> None:
        head = [(b"connection", b"close"), (b"content-length", b"%d" % len(response.body)), *response.headers]
        lines = b"".join(b"%s: %s\r\n" % header for header in head)
        self.transport.write(STATUS_LINE[response.status] + lines + b"\r\n" + response.body)
        self.transport.close()


class Server(uvicorn.Server):
    """uvicorn server that ends long polls and streams before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, release_waiters: Callable[[], None]) -> None:
        super().__init__(config)
        self._release_waiters = release_waiters

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish requests in progress and accept no new ones."""
        self._release_waiters()
        await super().shutdown(sockets)
