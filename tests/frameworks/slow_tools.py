"""Slow verifier for tests of event loops."""

import asyncio
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

from tests.support.chat_completions_server import answer_bytes


class SlowVerifier:
    """Verifier that answers after `released` is set, if at all; `requested` is an event of the running loop."""

    def __init__(self, answer: bytes | None = None) -> None:
        self.answer = answer
        self.loop, self.requested, self.released = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.loop.call_soon_threadsafe(self.requested.set)
        self.released.wait()
        if self.answer is not None:
            # A cancelled client may have closed the connection.
            with suppress(ConnectionError):
                answer_bytes(self.answer)(handler)
