"""HTTP load generator: keep-alive connections on one selector, one request in flight each."""

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Load(NamedTuple):
    """Result of one run."""

    per_second: float
    p50_ms: float
    p99_ms: float


class _Connection:
    def __init__(self, host: str, port: int, requests: Iterator[bytes]) -> None:
        self.requests = requests
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.sent_at = 0.0

    def send(self) -> None:
        request = next(self.requests)
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def finished(self) -> bytes | None:
        """Return the body once it is complete."""
        self.received += self.socket.recv(65536)
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return None
        start = head.lower().index(b"content-length:") + 15
        length = int(head[start:].split(b"\r\n", 1)[0])
        if len(body) < length:
            return None
        self.received = b""
        return body


def drive(
    host: str,
    port: int,
    streams: list[Iterator[bytes]],
    *,
    count: int,
    expect: bytes,
    keep: Callable[[bytes], object] | None = None,
) -> Load:
    """Send `count` requests over one connection per stream; raise RuntimeError for an answer without `expect`.

    With `keep`, every answer is passed to it.
    """
    selector = selectors.DefaultSelector()
    opened = [_Connection(host, port, stream) for stream in streams]
    for connection in opened:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    begun = time.perf_counter()
    for connection in opened:
        connection.send()
    waits = _wait(selector, count, len(opened), expect, keep)
    took = time.perf_counter() - begun
    for connection in opened:
        connection.socket.close()
    waits.sort()
    return Load(count / took, waits[len(waits) // 2] * 1e3, waits[int(len(waits) * 0.99)] * 1e3)


def _wait(
    selector: selectors.BaseSelector, count: int, sent: int, expect: bytes, keep: Callable[[bytes], object] | None
) -> list[float]:
    waits: list[float] = []
    while len(waits) < count:
        for key, _ in selector.select():
            connection: _Connection = key.data
            body = connection.finished()
            if body is None:
                continue
            waits.append(time.perf_counter() - connection.sent_at)
            if expect not in body:
                raise RuntimeError(f"unexpected answer: {body[:500]!r}")
            if keep is not None:
                keep(body)
            if sent < count:
                connection.send()
                sent += 1
    return waits


def post(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """Return one HTTP/1.1 request as bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: bench", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
