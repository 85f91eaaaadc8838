"""A verifier that takes its time, seen from an event loop."""

import asyncio
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

from tests.support.provider import raw


class Slow:
    """Answers when it is let go, if at all; `asked` is an event of the loop it is made in."""

    def __init__(self, answer: bytes | None = None) -> None:
        self.answer = answer
        self.loop, self.asked, self.let_go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.loop.call_soon_threadsafe(self.asked.set)
        self.let_go.wait()
        if self.answer is not None:
            # Whoever was cancelled may not listen any more.
            with suppress(ConnectionError):
                raw(self.answer)(handler)
