"""P6 around a request: how long and how large its head may be, how long its answer may be left, how many there are.

uvicorn waits for ever for a head and keeps all of it. Here whoever has not sent one is the first to go: when its time
is over, or when there is no room for another connection.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from qwed.api.http import Response, refused
from qwed.kernel.answer import problem
from qwed.words import ErrorCode

HEAD_SECONDS = 30.0
"""From the connection, or from the first byte after an answer, to the end of the next head."""
MOST_HEAD_BYTES = 65_536
"""Beyond the piece in which it begins, which may hold the end of something else.

As many may stand around a body that comes in chunks: between two of them, and after the last.
"""
AHEAD_BYTES = 4_096
"""Of more than that, so much is read at a time, and no more while a request waits behind another.

A request that waits takes a hundred times the bytes it came in.
"""
ANSWER_SECONDS = 30.0
"""How long a client may leave more than a buffer full of answers untaken."""
_TICK = 1.0
LAST_SECONDS = 2.0
"""The same while the server stops: it waits for those who read, not for those who do not."""


_FOR_UPGRADES = frozenset({b"upgrade", b"http2-settings"})


def _without_upgrade(headers: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """The lines of a head without what asks for another protocol."""
    for name, value in headers:
        if name == b"connection":
            kept = [word for word in value.split(b",") if word.strip().lower() not in _FOR_UPGRADES]
            yield b"connection: " + b",".join(kept)
        elif name not in _FOR_UPGRADES:
            yield b"%b: %b" % (name, value)


class Connections:
    """All connections of one server; calling it makes the protocol of a new one, as uvicorn asks for it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.headless: dict[BoundedProtocol, None] = {}
        """Those that owe us a head, in the order in which they began to."""
        self.resting: dict[BoundedProtocol, float] = {}
        """Those that have been answered and may ask again, and until when; in that order."""
        self._ticking = False

    def __call__(self, **given: Any) -> "BoundedProtocol":
        return BoundedProtocol(self, **given)

    def rest(self, line: "BoundedProtocol") -> None:
        """From now on `line` is idle."""
        loop = line.loop
        self.resting[line] = loop.time() + line.timeout_keep_alive
        if not self._ticking:
            self._ticking = True
            loop.call_later(_TICK, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what has been idle too long. One timer for all: one after each answer would cost more than this."""
        now = loop.time()
        for line in [line for line, until in self.resting.items() if until <= now]:
            del self.resting[line]
            line.timeout_keep_alive_handler()
        self._ticking = bool(self.resting)
        if self._ticking:
            loop.call_later(_TICK, self._tick, loop)


class Together:
    """A transport that holds what is written until the next write or the end of the turn.

    uvicorn writes the head of an answer and then its body; so they are one call to the system and one packet, and wake
    the client once.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write what is held together with this, or hold this."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held + data)
        elif data:
            self._held = data
            self._loop.call_soon(self._let_go)

    def write_whole(self, data: bytes) -> None:
        """Write all of an answer now."""
        held, self._held = self._held, b""
        self._transport.write(held + data if held else data)

    def close(self) -> None:
        """Write what is held, then close."""
        self._let_go()
        self._transport.close()

    def _let_go(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)


class Flow(FlowControl):
    """uvicorn's, which goes on reading whenever a body is asked for; here not while a request waits behind another."""

    def __init__(self, transport: asyncio.Transport, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Read on, if nobody waits."""
        if not self._pipeline:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """One connection whose heads are bounded."""

    def __init__(self, all_of_them: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = all_of_them
        self._beside = 0
        """Bytes since the head began, or since the last of the body."""
        self._in_head = self._in_body = False
        self._ahead = b""
        """What was sent and is not read yet: there is some of it only while a request waits behind another."""
        self._deadline: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None
        self._upgrading = False
        """Whether a head asks for another protocol, and is about to be read again."""
        self._last_word: Response | None = None
        """What is still to be said to a client that we cannot follow any more."""
        self._stopping = False
        self.together: Together

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        self.together = Together(transport, self.loop)
        super().connection_made(self.together)  # type: ignore[arg-type]  # one, by delegation
        self.flow = Flow(transport, self.pipeline)
        if len(self.connections) > self._all.most:
            # Itself, where everybody else has a request under way.
            next(iter(self._all.headless), self).drop()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        self._answers_are_taken()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        # uvicorn tells the newest request that the client has left; where that one waits behind another, so must we.
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self._ahead or len(data) > AHEAD_BYTES:
            self._ahead += data
            self._read_ahead()
        else:
            self._read(data)

    def _read_ahead(self) -> None:
        """Read what is here until a request waits behind another."""
        at, here = 0, self._ahead
        while at < len(here) and not self.pipeline:
            self._read(here[at : at + AHEAD_BYTES])
            at += AHEAD_BYTES
        self._ahead = here[at:]

    def _read(self, data: bytes) -> None:
        if self._last_word is not None or self.transport.is_closing():
            return
        self._beside += len(data)
        self._feed(data)
        if self._beside > MOST_HEAD_BYTES and (self._in_head or self._in_body):
            what = "the head" if self._in_head else "what stands around the body"
            self._refuse(refused(problem(ErrorCode.TOO_LARGE, f"{what} is larger than {MOST_HEAD_BYTES} bytes")))
        elif self._in_head or self.is_free():
            self._expect_head()

    def is_free(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._beside = 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_is_here()
        if self.parser.should_upgrade():
            self._upgrading = True
            return
        self.hand_on()
        self._in_body = True
        # What comes after a body is told like a header and is none: a credential there is nobody's.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._beside = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._upgrading:
            self._in_body = False
            super().on_message_complete()

    def _feed(self, data: bytes) -> None:
        """Have it parsed: as uvicorn does, but for upgrades, and without a line in the log for each that is broken."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._read_again(data[upgrade.args[0] :])

    def _read_again(self, rest: bytes) -> None:
        """Read a head that asks for another protocol as if it did not, which everybody may (RFC 9110, 7.8).

        The parser skips the body of such a request, and would take it for the next one.
        """
        self._upgrading = False
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self.send_400_response("This is no proxy.")
            return
        head = [b"%b %b HTTP/%b" % (method, self.url, version), *_without_upgrade(self.headers), b"\r\n"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(head) + rest)

    def hand_on(self) -> None:
        """The head is here: hand the request to the application."""
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.drop)
            self._all.headless[self] = None

    def _head_is_here(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            del self._all.headless[self]

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """The server stops: from now on a client has less time to take what it was answered."""
        super().shutdown()
        self._stopping = True
        self._expect_reading()

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            self._read_ahead()
        elif self._last_word is not None:
            self._say(self._last_word)
        else:
            # As uvicorn does it, but for its timer.
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            self._all.rest(self)
        if self._stopping:
            self._expect_reading()

    def _unset_keepalive_if_required(self) -> None:
        self._all.resting.pop(self, None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._expect_reading()

    def _expect_reading(self) -> None:
        """Give a client its time from now on, where it has something to take before we can go on or end."""
        self._answers_are_taken()
        if self.flow.write_paused or (self._stopping and self.transport.is_closing()):
            self._untaken = self.loop.call_later(LAST_SECONDS if self._stopping else ANSWER_SECONDS, self.drop)

    def _answers_are_taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None

    def drop(self) -> None:
        """End the connection without a word."""
        self._head_is_here()
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """In place of uvicorn's plain text."""
        self._refuse(refused(problem(ErrorCode.MALFORMED, msg.rstrip(".").lower())))

    def _refuse(self, response: Response) -> None:
        """Read no further; say this when it is its turn, and close."""
        if self._in_body and self.is_free():
            # Its request was refused before, and is answered once.
            self.transport.close()
            return
        others = bool(self.pipeline) if self._in_body else not self.is_free()
        if self._in_body and self.pipeline:
            # The newest of those who wait is the one that this is said to.
            self.pipeline.popleft()
        self._in_head = self._in_body = False
        self._last_word = response
        if others:
            self._head_is_here()
        else:
            self._say(response)

    def _say(self, response: Response) -> None:
        head = [(b"connection", b"close"), (b"content-length", b"%d" % len(response.body)), *response.headers]
        lines = b"".join(b"%s: %s\r\n" % header for header in head)
        self.transport.write(STATUS_LINE[response.status] + lines + b"\r\n" + response.body)
        self.transport.close()
