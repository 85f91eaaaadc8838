"""Fast path for POST /agents/{id}/verify: bodies up to 16 KiB bypass ASGI, without a task and with one write.

All limits of the regular path apply. A request that is large, slow, pipelined or unusual in any way falls back to
ASGI.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from qwed.api.server.endpoint import JSON_HEADER, Reply, Response
from qwed.api.server.http_protocol import BoundedProtocol, Connections
from qwed.api.server.offload import MAX_INLINE_BYTES
from qwed.domain.agent import is_agent_id

Decide = Callable[[str, list[tuple[bytes, bytes]], bytes, float, Reply], None]
"""Callback of the route: agent id, headers, body, time of the head, and where to send the response."""
BODY_WAIT_SECONDS = 0.05
"""Wait for the rest of a short body; a client that takes longer falls back to ASGI."""
_PATH_PREFIX, _PATH_SUFFIX = b"/agents/", b"/verify"
_RATE_LIMIT_HEADERS = b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n"


class FastPathConnections(Connections):
    """Factory of the connections of one server; `decide` answers their verify requests."""

    def __init__(self, most: int, decide: Decide) -> None:
        super().__init__(most)
        self.decide = decide
        self.awaiting_body: dict[FastPathProtocol, None] = {}
        """Connections that wait for the rest of a short body."""
        self._encoded_heads: tuple[list[tuple[bytes, bytes]], dict[int, bytes]] = ([], {})

    def __call__(self, **kwargs: Any) -> BoundedProtocol:
        return FastPathProtocol(self, **kwargs)

    def await_body(self, protocol: "FastPathProtocol") -> None:
        """Wait up to BODY_WAIT_SECONDS for the rest of a body."""
        if not self.awaiting_body:
            protocol.loop.call_later(BODY_WAIT_SECONDS, self._fall_back_all)
        self.awaiting_body[protocol] = None

    def _fall_back_all(self) -> None:
        waiting, self.awaiting_body = self.awaiting_body, {}
        for protocol in waiting:
            protocol.fall_back_to_asgi()

    def head(self, status: int, default: list[tuple[bytes, bytes]]) -> bytes:
        """Return the encoded head of a JSON response with this status, cached while the default headers last."""
        cached_for, heads = self._encoded_heads
        if cached_for is not default:
            # uvicorn replaces the default headers every second.
            cached_for, heads = self._encoded_heads = default, {}
        head = heads.get(status)
        if head is None:
            head = heads[status] = STATUS_LINE[status] + _header_lines((*default, JSON_HEADER))
        return head


def _header_lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class _NullEvent:
    """Event without waiters."""

    def set(self) -> None:
        """Do nothing."""


_NULL_EVENT = _NullEvent()


class CompleteRequest:
    """Complete request, in place of uvicorn's RequestResponseCycle."""

    __slots__ = ("_completed", "_protocol", "disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, protocol: "FastPathProtocol", *, keep_alive: bool) -> None:
        self._protocol = protocol
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False
        self.message_event = _NULL_EVENT
        self._completed: asyncio.Event | None = None

    async def wait_completed(self) -> None:
        """Return when there is a response."""
        if not self.response_complete:
            self._completed = asyncio.Event()
            await self._completed.wait()

    def reply(self, response: Response) -> None:
        """Send the response if the client is still connected."""
        self.response_complete = True
        if self._completed is not None:
            self._completed.set()
        if not self.disconnected:
            self._protocol.send_response(response, keep_alive=self.keep_alive)


class FastPathProtocol(BoundedProtocol):
    """Connection that holds a fast-path request back until its body is complete."""

    def __init__(self, connections: FastPathConnections, **kwargs: Any) -> None:
        super().__init__(connections, **kwargs)
        self._decide = connections.decide
        self._encode_head = connections.head
        self._await_body = connections.await_body
        self._pending_agent_id = ""
        """Agent of the request whose body is incomplete."""
        self._pending_headers: list[tuple[bytes, bytes]] = []
        self._body = b""
        self._head_at = 0.0
        self._fast_path_url, self._agent_id = b"", ""

    def is_free(self) -> bool:
        """Return True if no request is in progress."""
        return not self._pending_agent_id and super().is_free()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._pending_agent_id:
            self._await_body(self)

    def connection_lost(self, exc: Exception | None) -> None:
        # The regular path counts it as disconnected.
        self.fall_back_to_asgi()
        super().connection_lost(exc)
        if isinstance(self._current_cycle, CompleteRequest) and not self._current_cycle.response_complete:
            # Without a connection this request needs a task: a server that stops waits for connections and tasks only.
            task = self.loop.create_task(self._current_cycle.wait_completed())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def shutdown(self) -> None:
        """Close gracefully after the request in progress was answered."""
        self.fall_back_to_asgi()
        super().shutdown()

    def dispatch(self) -> None:
        """Pass a request to the application, or hold it back until its body is complete."""
        if self._can_use_fast_path():
            self._pending_agent_id, self._pending_headers, self._body = self._agent_id, self.headers, b""
            self._head_at = perf_counter()
        else:
            super().dispatch()

    def _can_use_fast_path(self) -> bool:
        if self.url != self._fast_path_url and not self._matches_fast_path(self.url):
            return False
        if self.parser.get_method() != b"POST" or self.expect_100_continue:
            return False
        # While the client does not read, a task must wait for it, and the next request behind it.
        return self.is_free() and not self.flow.write_paused

    def _matches_fast_path(self, url: bytes) -> bool:
        if not url.startswith(_PATH_PREFIX) or not url.endswith(_PATH_SUFFIX) or not url.isascii():
            return False
        agent_id = url[len(_PATH_PREFIX) : -len(_PATH_SUFFIX)].decode()
        # A name in place of an id has to be looked up, for which a task may wait.
        if not is_agent_id(agent_id):
            return False
        self._fast_path_url, self._agent_id = url, agent_id
        return True

    def on_body(self, body: bytes) -> None:
        if not self._pending_agent_id:
            super().on_body(body)
            return
        self._overhead_bytes = 0
        self._body += body
        if len(self._body) > MAX_INLINE_BYTES:
            self.fall_back_to_asgi()

    def on_message_complete(self) -> None:
        if not self._pending_agent_id or self._upgrade_requested:
            super().on_message_complete()
            return
        agent_id, self._pending_agent_id, self._parsing_body = self._pending_agent_id, "", False
        keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
        whole = CompleteRequest(self, keep_alive=keep_alive)
        # It is the newest request and the one being answered; another may be pipelined behind it.
        self.cycle = self._current_cycle = whole  # type: ignore[assignment]  # as much of one as is asked for
        self._decide(agent_id, self._pending_headers, self._body, self._head_at, whole.reply)

    def fall_back_to_asgi(self) -> None:
        """Pass a request that was held back to the application."""
        if not self._pending_agent_id:
            return
        self._pending_agent_id = ""
        super().dispatch()
        if self._body:
            super().on_body(self._body)

    def send_response(self, response: Response, *, keep_alive: bool) -> None:
        """Write a response as uvicorn would, and be ready for the next request."""
        default, left, body = self.server_state.default_headers, response.rate_limit, response.body
        if response.headers == (JSON_HEADER,):
            head = self._encode_head(response.status, default)
        else:
            head = STATUS_LINE[response.status] + _header_lines((*default, *response.headers))
        if left is not None:
            head += _RATE_LIMIT_HEADERS % left[:3]
        end = b"content-length: %d\r\n\r\n" if keep_alive else b"content-length: %d\r\nconnection: close\r\n\r\n"
        self.coalescing.write_now(head + end % len(body) + body)
        if not keep_alive:
            self.transport.close()
        self.on_response_complete()
