"""Something on this machine that answers in place of a qwed server, in whatever way a test writes down."""

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


class Heard(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def says(status: int, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Behave:
    """Answers so, and closes the connection."""
    content = json.dumps(body).encode() if raw is None else raw
    lines = [f"HTTP/1.1 {status} So", f"content-length: {len(content)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return sends("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


def sends(data: bytes) -> Behave:
    """Sends these bytes, whatever they are."""
    return lambda line: line.sendall(data)


def hangs_up(line: socket.socket) -> None:
    """Closes the connection without a word."""


def keeps_silent(line: socket.socket) -> None:
    """Reads on and never answers, until the other side gives up."""
    while line.recv(4096):
        pass


def drips(line: socket.socket) -> None:
    """Begins an answer and goes on, a byte at a time, until the other side gives up."""
    line.sendall(b"HTTP/1.1 200 So\r\ncontent-length: 1000000\r\n\r\n")
    gone = threading.Event()
    while not gone.wait(0.01):
        line.sendall(b" ")


def drips_headers(line: socket.socket) -> None:
    """Goes on with one header for ever."""
    line.sendall(b"HTTP/1.1 200 So\r\nx: ")
    gone = threading.Event()
    while not gone.wait(0.01):
        line.sendall(b"x")


def says_soon(line: socket.socket) -> None:
    """Announces an answer for ever, and never gives it."""
    gone = threading.Event()
    while not gone.wait(0.01):
        line.sendall(b"HTTP/1.1 103 Soon\r\nlink: x\r\n\r\n")


def says_in_one_breath(*bodies: Any) -> Behave:
    """Answers with the first body, the others right behind it; then closes when another question comes."""
    contents = [json.dumps(body).encode() for body in bodies]
    data = b"".join(b"HTTP/1.1 200 So\r\ncontent-length: %d\r\n\r\n%s" % (len(each), each) for each in contents)

    def behave(line: socket.socket) -> None:
        line.sendall(data)
        line.recv(1)

    return behave


class Impostor:
    """Behaves as written, one behaviour for each request and the last from then on."""

    def __init__(self, *behaviours: Behave) -> None:
        self._behaviours = behaviours
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.heard: list[Heard] = []
        self._lines: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

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
        # Shutting down wakes the thread that waits for connections.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for line in self._lines:
            line.join()


def _read(line: socket.socket) -> Heard | None:
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
    return Heard(method, path, headers, body)


@contextmanager
def impostor(*behaviours: Behave) -> Iterator[Impostor]:
    """An impostor for the length of a test."""
    standing = Impostor(*behaviours)
    try:
        yield standing
    finally:
        standing.close()


class Encrypted(Impostor):
    """The same behind a certificate that nobody has signed but itself."""

    def __init__(self, behave: Behave, place: Path) -> None:
        self._context = _own_certificate(place)
        super().__init__(behave)

    def _taken(self, line: socket.socket) -> socket.socket:
        return self._context.wrap_socket(line, server_side=True)


def _own_certificate(place: Path) -> ssl.SSLContext:
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
def encrypted(behave: Behave, place: Path) -> Iterator[Impostor]:
    """An impostor with a certificate of its own making, for the length of a test."""
    standing = Encrypted(behave, place)
    try:
        yield standing
    finally:
        standing.close()
