"""Local server of the chat-completions protocol with scripted, also hostile, answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class ChatServer:
    """URL of the server, and every request it received."""

    base_url: str
    heard: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the test, so that an answer that never comes ends."""

    @property
    def said(self) -> str:
        """Return the last text to translate."""
        content: str = self.heard[-1]["messages"][-1]["content"]
        return content


def answer_proposal(proposal: Any) -> Answer:
    """Answer with this proposal as the model's message; a string is sent unchanged."""
    content = proposal if isinstance(proposal, str) else json.dumps(proposal)
    return answer_bytes(json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode())


def answer_bytes(body: bytes, status: int = 200, **headers: str) -> Answer:
    """Answer with these bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def answer_in_turn(*answers: Answer) -> Answer:
    """Give each of these answers once, in order."""
    left = iter(answers)
    return lambda handler: next(left)(handler)


@contextmanager
def chat_server(answer: Answer) -> Iterator[ChatServer]:
    """Run a server that gives this answer to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            provider.heard.append(json.loads(body) | {"path": self.path})
            provider.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        provider = ChatServer(f"http://127.0.0.1:{listening.server_port}/v1")
        listening.provider = provider  # type: ignore[attr-defined]
        # The default poll interval of half a second would delay the end of each test by that much.
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.released.set()
            listening.shutdown()
            thread.join()
