"""Decisions that are asked for in a few words are answered in a few words: no task, no ASGI, one write.

Everything that bounds a request holds here as there; only the way to it is shorter. What is long, comes slowly, waits
behind another request or asks for anything unusual goes the way of every other request.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from qwed.api.connection import BoundedProtocol, Connections
from qwed.api.http import JSON, Reply, Response
from qwed.api.stretches import SHORT

Decide = Callable[[str, list[tuple[bytes, bytes]], bytes, float, Reply], None]
"""The hot route: takes the agent's id, the headers, the body, when the head was there, and whom to tell."""
MOMENT = 0.05
"""Seconds: who sends a head and a short body sends them one after the other; who does not is waited for elsewhere."""
_BEFORE, _AFTER = b"/agents/", b"/verify"
_ALLOWANCE = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n"


class StraightConnections(Connections):
    """All connections of one server whose decisions are made by `decide`."""

    def __init__(self, most: int, decide: Decide) -> None:
        super().__init__(most)
        self.decide = decide
        self.halfway: dict[StraightProtocol, None] = {}
        """Those that owe us the rest of a short body."""
        self._known: tuple[list[tuple[bytes, bytes]], dict[int, bytes]] = ([], {})

    def __call__(self, **given: Any) -> BoundedProtocol:
        return StraightProtocol(self, **given)

    def expect(self, line: "StraightProtocol") -> None:
        """Wait a moment for the rest of a body."""
        if not self.halfway:
            line.loop.call_later(MOMENT, self._hurry)
        self.halfway[line] = None

    def _hurry(self) -> None:
        waiting, self.halfway = self.halfway, {}
        for line in waiting:
            line.go_the_long_way()

    def head(self, status: int, default: list[tuple[bytes, bytes]]) -> bytes:
        """How every answer in JSON begins that has this status, while these are the default headers."""
        of, known = self._known
        if of is not default:
            # uvicorn makes new ones every second.
            of, known = self._known = default, {}
        head = known.get(status)
        if head is None:
            head = known[status] = STATUS_LINE[status] + _lines((*default, JSON))
        return head


def _lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class _Nobody:
    """An event that nobody waits for."""

    def set(self) -> None:
        """Tell nobody."""


_NOBODY = _Nobody()


class Whole:
    """A request that came whole, in the place of uvicorn's cycle of one."""

    __slots__ = ("_line", "_over", "disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, line: "StraightProtocol", *, keep_alive: bool) -> None:
        self._line = line
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False
        self.message_event = _NOBODY
        self._over: asyncio.Event | None = None

    async def over(self) -> None:
        """Returns when there is an answer."""
        if not self.response_complete:
            self._over = asyncio.Event()
            await self._over.wait()

    def reply(self, response: Response) -> None:
        """Send the answer, if there is still somebody to take it."""
        self.response_complete = True
        if self._over is not None:
            self._over.set()
        if not self.disconnected:
            self._line.send_whole(response, keep_alive=self.keep_alive)


class StraightProtocol(BoundedProtocol):
    """One connection. A request for the hot route waits for its end before anybody is told of it, if that is near."""

    def __init__(self, all_of_them: StraightConnections, **given: Any) -> None:
        super().__init__(all_of_them, **given)
        self._decide = all_of_them.decide
        self._head_of = all_of_them.head
        self._expect = all_of_them.expect
        self._asked = ""
        """The agent that a request is about whose end is waited for."""
        self._shown: list[tuple[bytes, bytes]] = []
        """Its headers."""
        self._body = b""
        self._since = 0.0
        self._hot_url, self._agent_id = b"", ""

    def is_free(self) -> bool:
        """Whether no request is under way."""
        return not self._asked and super().is_free()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._asked:
            self._expect(self)

    def connection_lost(self, exc: Exception | None) -> None:
        # Where it is counted among those who have left.
        self.go_the_long_way()
        super().connection_lost(exc)
        if isinstance(self._answering, Whole) and not self._answering.response_complete:
            # It has no task, and now no connection either; a server that stops waits for both.
            task = self.loop.create_task(self._answering.over())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def shutdown(self) -> None:
        """The server stops, but not before it has answered."""
        self.go_the_long_way()
        super().shutdown()

    def hand_on(self) -> None:
        """The head is here: hand the request to the application, or let it wait for its end."""
        if self._may_go_straight():
            self._asked, self._shown, self._body = self._agent_id, self.headers, b""
            self._since = perf_counter()
        else:
            super().hand_on()

    def _may_go_straight(self) -> bool:
        if self.url != self._hot_url and not self._is_hot(self.url):
            return False
        if self.parser.get_method() != b"POST" or self.expect_100_continue:
            return False
        # An answer that nobody takes is waited for by its task, and the next request with it.
        return self.is_free() and not self.flow.write_paused

    def _is_hot(self, url: bytes) -> bool:
        agent_id = url[len(_BEFORE) : -len(_AFTER)]
        if url != _BEFORE + agent_id + _AFTER or not agent_id.replace(b"_", b"").isalnum():
            return False
        self._hot_url, self._agent_id = url, agent_id.decode()
        return True

    def on_body(self, body: bytes) -> None:
        if not self._asked:
            super().on_body(body)
            return
        self._beside = 0
        self._body += body
        if len(self._body) > SHORT:
            self.go_the_long_way()

    def on_message_complete(self) -> None:
        if not self._asked or self._upgrading:
            super().on_message_complete()
            return
        agent_id, self._asked, self._in_body = self._asked, "", False
        keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
        whole = Whole(self, keep_alive=keep_alive)
        # The newest request, and the one that is being answered: another may come to wait behind it.
        self.cycle = self._answering = whole  # type: ignore[assignment]  # as much of one as is asked for
        self._decide(agent_id, self._shown, self._body, self._since, whole.reply)

    def go_the_long_way(self) -> None:
        """Tell the application what it would have been told by now, if a request waits for its end."""
        if not self._asked:
            return
        self._asked = ""
        super().hand_on()
        if self._body:
            super().on_body(self._body)

    def send_whole(self, response: Response, *, keep_alive: bool) -> None:
        """Write an answer as uvicorn would, and be ready for the next request."""
        default, left, body = self.server_state.default_headers, response.allowance, response.body
        if response.headers == (JSON,):
            head = self._head_of(response.status, default)
        else:
            head = STATUS_LINE[response.status] + _lines((*default, *response.headers))
        if left is not None:
            head += _ALLOWANCE % left[:3]
        end = b"content-length: %d\r\n\r\n" if keep_alive else b"content-length: %d\r\nconnection: close\r\n\r\n"
        self.together.write_whole(head + end % len(body) + body)
        if not keep_alive:
            self.transport.close()
        self.on_response_complete()
