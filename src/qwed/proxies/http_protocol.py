"""HTTP/1.1 protocol for uvicorn with limits on connections and on the time to send a request head.

uvicorn waits forever for a head, and accepts no connection while too many wait. Here a connection that still owes its
head is closed first: when its time is over, or when there is no room for another connection.
"""

import asyncio
from typing import Any, Literal

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 512
MAX_HEAD = 64 << 10
HEAD_SECONDS = 10.0
WRITE_SECONDS = 30.0
"""Seconds that a client may leave more than a full buffer of answers unread."""


class HttpProtocolFactory:
    """All connections of one server; uvicorn calls it to create the protocol of a new connection."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.awaiting_head: dict[HeadTimeoutProtocol, None] = {}
        """Connections that have not sent a complete head, oldest first."""

    def __call__(self, **options: Any) -> "HeadTimeoutProtocol":
        return HeadTimeoutProtocol(self, **options)


def uvicorn_config(app: Any, *, grace: int, lifespan: Literal["auto", "on"] = "auto") -> uvicorn.Config:
    """Return the configuration of a server for unauthenticated clients: bounded, silent, stopped within `grace`
    seconds."""
    return uvicorn.Config(
        app,
        ws="none",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=HttpProtocolFactory(MAX_CONNECTIONS),  # type: ignore[arg-type]  # uvicorn only calls it
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_graceful_shutdown=grace,
    )


class HeadTimeoutProtocol(H11Protocol):
    """One connection; h11 limits the size of its head."""

    def __init__(self, factory: HttpProtocolFactory, **options: Any) -> None:
        super().__init__(**options)
        self._factory = factory
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        """Start the head timeout; without room, close the connection that has waited for its head the longest."""
        super().connection_made(transport)
        self._update_head_timer()
        if len(self.connections) > self._factory.limit:
            next(iter(self._factory.awaiting_head)).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._cancel_head_timer()
        self._cancel_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser unless the connection is closing."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._update_head_timer()

    def on_response_complete(self) -> None:
        """Start the head timeout for the next request."""
        super().on_response_complete()
        self._update_head_timer()

    def pause_writing(self) -> None:
        """Close the connection if the client does not read within WRITE_SECONDS."""
        super().pause_writing()
        self._cancel_write_timer()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self.drop)

    def resume_writing(self) -> None:
        """Cancel the write timeout."""
        self._cancel_write_timer()
        super().resume_writing()

    def drop(self) -> None:
        """Abort the connection without a response."""
        self._cancel_head_timer()
        self.transport.abort()

    def _update_head_timer(self) -> None:
        if self.transport.is_closing() or not (self.cycle is None or self.cycle.response_complete):
            self._cancel_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.drop)
            self._factory.awaiting_head[self] = None

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
            del self._factory.awaiting_head[self]

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
