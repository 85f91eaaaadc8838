"""A real server on this machine that speaks the chat-completions protocol, honestly or not."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Provider:
    """Where it listens, and every request it heard."""

    base_url: str
    heard: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over, so that an answer that never comes ends."""

    @property
    def said(self) -> str:
        """The last text that was to be translated."""
        content: str = self.heard[-1]["messages"][-1]["content"]
        return content


def saying(proposal: Any) -> Answer:
    """Answers with this proposal as the model's message; a text is sent as it is."""
    content = proposal if isinstance(proposal, str) else json.dumps(proposal)
    return raw(json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode())


def raw(body: bytes, status: int = 200, **headers: str) -> Answer:
    """Answers with these bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Gives each of these answers once, one after the other."""
    left = iter(answers)
    return lambda handler: next(left)(handler)


@contextmanager
def providing(answer: Answer) -> Iterator[Provider]:
    """A provider that gives this answer to everyone."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            provider.heard.append(json.loads(body) | {"path": self.path})
            provider.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        provider = Provider(f"http://127.0.0.1:{listening.server_port}/v1")
        listening.provider = provider  # type: ignore[attr-defined]
        # It looks for its end this often; with the library's half a second each test would wait that long.
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.released.set()
            listening.shutdown()
            thread.join()
