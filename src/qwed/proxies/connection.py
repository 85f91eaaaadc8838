"""What a connection over HTTP may take before it has said who it is: room for a head, and a while to send it.

uvicorn waits for ever for a head, and lets nobody in while too many wait. Here whoever owes us one is the first to go:
when its time is over, or when there is no room for another connection.
"""

import asyncio
from typing import Any, Literal

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 512
MAX_HEAD = 64 << 10
HEAD_SECONDS = 10.0
ANSWER_SECONDS = 30.0
"""How long a client may leave more than a buffer full of answers untaken."""


class Connections:
    """All connections of one server; calling it makes the protocol of a new one, as uvicorn asks for it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.headless: dict[Connection, None] = {}
        """Those that owe us a head, in the order in which they began to."""

    def __call__(self, **given: Any) -> "Connection":
        return Connection(self, **given)


def config_of(app: Any, *, grace: int, lifespan: Literal["auto", "on"] = "auto") -> uvicorn.Config:
    """How an application is served that strangers may call: bounded, silent, and ended within `grace` seconds."""
    return uvicorn.Config(
        app,
        ws="none",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=Connections(MAX_CONNECTIONS),  # type: ignore[arg-type]  # it is called for a protocol, no more
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_graceful_shutdown=grace,
    )


class Connection(H11Protocol):
    """One connection; how large a head may be is a bound of h11."""

    def __init__(self, all_of_them: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = all_of_them
        self._late: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        """Somebody is there; where there is no room, whoever has said nothing for longest goes."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > self._all.most:
            next(iter(self._all.headless)).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._head_is_here()
        self._answers_are_taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A piece of what they say."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._look()

    def on_response_complete(self) -> None:
        """They were answered, and may ask again."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """They do not take what they are told."""
        super().pause_writing()
        self._answers_are_taken()
        self._untaken = self.loop.call_later(ANSWER_SECONDS, self.drop)

    def resume_writing(self) -> None:
        """They do."""
        self._answers_are_taken()
        super().resume_writing()

    def drop(self) -> None:
        """End the connection without a word."""
        self._head_is_here()
        self.transport.abort()

    def _look(self) -> None:
        if self.transport.is_closing() or not (self.cycle is None or self.cycle.response_complete):
            self._head_is_here()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.drop)
            self._all.headless[self] = None

    def _head_is_here(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
            del self._all.headless[self]

    def _answers_are_taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None
