"""Scripted server that answers in place of a qwed server."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

Behave = Callable[[socket.socket], None]


class FakeServerRequest(NamedTuple):
    """One received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def respond_with(status: int, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Behave:
    """Answer with this response, and close the connection."""
    content = json.dumps(body).encode() if raw is None else raw
    lines = [f"HTTP/1.1 {status} So", f"content-length: {len(content)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return send_bytes("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


def respond_always(status: int, body: Any) -> Behave:
    """Answer every request of the connection with this response."""
    content = json.dumps(body).encode()
    data = f"HTTP/1.1 {status} So\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content

    def behave(line: socket.socket) -> None:
        line.sendall(data)
        while _read(line) is not None:
            line.sendall(data)

    return behave


def send_bytes(data: bytes) -> Behave:
    """Send these raw bytes."""
    return lambda line: line.sendall(data)


def close_connection(line: socket.socket) -> None:
    """Close the connection without an answer."""


def never_respond(line: socket.socket) -> None:
    """Keep reading and never answer, until the client gives up."""
    while line.recv(4096):
        pass


def drip_body(line: socket.socket) -> None:
    """Start an answer and send it one byte at a time, until the client gives up."""
    line.sendall(b"HTTP/1.1 200 So\r\ncontent-length: 1000000\r\n\r\n")
    gone = threading.Event()
    while not gone.wait(0.01):
        line.sendall(b" ")


def drip_headers(line: socket.socket) -> None:
    """Send one header without end."""
    line.sendall(b"HTTP/1.1 200 So\r\nx: ")
    gone = threading.Event()
    while not gone.wait(0.01):
        line.sendall(b"x")


def send_interim_responses(line: socket.socket) -> None:
    """Send 1xx responses for ever, and never the final one."""
    gone = threading.Event()
    while not gone.wait(0.01):
        line.sendall(b"HTTP/1.1 103 Soon\r\nlink: x\r\n\r\n")


def respond_back_to_back(*bodies: Any) -> Behave:
    """Answer with the first body and send the others right after it; close at the next request."""
    contents = [json.dumps(body).encode() for body in bodies]
    data = b"".join(b"HTTP/1.1 200 So\r\ncontent-length: %d\r\n\r\n%s" % (len(each), each) for each in contents)

    def behave(line: socket.socket) -> None:
        line.sendall(data)
        line.recv(1)

    return behave


class FakeServer:
    """Server that runs one behaviour per request, and the last one from then on."""

    def __init__(self, *behaviours: Behave) -> None:
        self._behaviours = behaviours
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.heard: list[FakeServerRequest] = []
        self._lines: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def connections(self) -> int:
        """How many connections it has accepted."""
        return len(self._lines)

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._answer, args=(line,))
            self._lines.append(thread)
            thread.start()

    def _taken(self, line: socket.socket) -> socket.socket:
        return line

    def _answer(self, accepted: socket.socket) -> None:
        with accepted, suppress(OSError), self._taken(accepted) as line:
            heard = _read(line)
            if heard is None:
                return
            self.heard.append(heard)
            self._behaviours[min(len(self.heard), len(self._behaviours)) - 1](line)

    def close(self) -> None:
        # Shutdown wakes the thread blocked in accept.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for line in self._lines:
            line.join()


def _read(line: socket.socket) -> FakeServerRequest | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = line.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += line.recv(65536)
    method, path, _ = first.split(" ")
    return FakeServerRequest(method, path, headers, body)


@contextmanager
def fake_server(*behaviours: Behave) -> Iterator[FakeServer]:
    """Run a fake server for the duration of a test."""
    standing = FakeServer(*behaviours)
    try:
        yield standing
    finally:
        standing.close()


class TlsFakeServer(FakeServer):
    """Fake server with a self-signed certificate."""

    def __init__(self, behave: Behave, place: Path) -> None:
        self._context = _self_signed_context(place)
        super().__init__(behave)

    def _taken(self, line: socket.socket) -> socket.socket:
        return self._context.wrap_socket(line, server_side=True)


def _self_signed_context(place: Path) -> ssl.SSLContext:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    certificate = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = place / "own.pem"
    file.write_bytes(private + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@contextmanager
def tls_fake_server(behave: Behave, place: Path) -> Iterator[FakeServer]:
    """Run a fake server with a self-signed certificate for the duration of a test."""
    standing = TlsFakeServer(behave, place)
    try:
        yield standing
    finally:
        standing.close()
