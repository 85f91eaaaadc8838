"""Local webhook receivers: correct, broken and hostile ones, with their own certificate authority."""

import asyncio
import atexit
import datetime
import ipaddress
import socket
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

LOOPBACK = "127.0.0.1"
LOOPBACK_6 = "::1"
PATIENCE = 60.0
"""Timeout that only a failing test reaches."""

_GONE = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)


class ReceivedNotice(NamedTuple):
    """One received request."""

    line: str
    headers: httpx.Headers
    body: bytes


class ReceiverConnection(NamedTuple):
    """Connection that a behaviour answers on."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    """Number of earlier requests."""

    async def say(self, text: str) -> None:
        self.writer.write(text.encode())
        await self.writer.drain()


Behaviour = Callable[[ReceiverConnection], Awaitable[None]]


def answering(*statuses: int) -> Behaviour:
    """Answer with these statuses, one for each request, and the last one from then on."""

    async def answer(line: ReceiverConnection) -> None:
        status = statuses[min(line.number, len(statuses) - 1)]
        await line.say(f"HTTP/1.1 {status} So\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")

    return answer


def redirecting(status: int, place: str) -> Behaviour:
    async def answer(line: ReceiverConnection) -> None:
        await line.say(f"HTTP/1.1 {status} Elsewhere\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n")

    return answer


def saying(*texts: str) -> Behaviour:
    """Send this text and close the connection."""

    async def answer(line: ReceiverConnection) -> None:
        for text in texts:
            await line.say(text)

    return answer


async def silent(line: ReceiverConnection) -> None:
    """Never answer; wait until the client closes."""
    await line.reader.read()


def saying_then_silent(text: str) -> Behaviour:
    async def answer(line: ReceiverConnection) -> None:
        await line.say(text)
        await silent(line)

    return answer


def endless(start: str, more: str) -> Behaviour:
    """Send `start`, then `more` until the client closes."""

    async def answer(line: ReceiverConnection) -> None:
        await line.say(start)
        while not line.writer.transport.is_closing():
            await line.say(more)
            # Otherwise a closed connection is never noticed: an empty buffer makes `drain` return at once.
            await asyncio.sleep(0)

    return answer


def dripping(text: str, seconds: float) -> Behaviour:
    """Send one character at a time."""

    async def answer(line: ReceiverConnection) -> None:
        for character in text:
            await line.say(character)
            await asyncio.sleep(seconds)

    return answer


class WebhookReceiver:
    """Receiver that listens from construction; `close` ends it and every connection."""

    def __init__(
        self,
        behaviour: Behaviour,
        context: ssl.SSLContext | None = None,
        host: str = LOOPBACK,
        *,
        greeting: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port
        self._greeting = greeting
        self.heard: SimpleQueue[ReceivedNotice] = SimpleQueue()
        self.connections = 0
        self._behaviour = behaviour
        self._requests = 0
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._listens = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._thread.start()
        assert self._listens.wait(PATIENCE)

    def url(self, path: str = "/notices", host: str | None = None, scheme: str = "https") -> str:
        name = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"{scheme}://{name}:{self.port}{path}"

    def next(self) -> ReceivedNotice:
        """Wait for the next request and return it."""
        return self.heard.get(timeout=PATIENCE)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            # A receiver fails on purpose; the test is about the reaction of the sender.
            self._loop.set_exception_handler(lambda _loop, _context: None)
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, self.host, self.port, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        await self._stop.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            writer.write(self._greeting.encode())
            heard = await _read(reader)
            number, self._requests = self._requests, self._requests + 1
            self.heard.put(heard)
            await self._behaviour(ReceiverConnection(reader, writer, number))
            writer.close()
            await writer.wait_closed()
        except _GONE:
            return
        finally:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> ReceivedNotice:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
    line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = httpx.Headers(dict(text.split(": ", 1) for text in rest))
    assert len(headers) == len(rest)
    return ReceivedNotice(line, headers, await reader.readexactly(int(headers["content-length"])))


@contextmanager
def unaccepted_port() -> Iterator[int]:
    """Yield a port whose connections are accepted by the kernel only: not even TLS starts. On ::1 it is refused."""
    with socket.create_server((LOOPBACK, unused_port())) as listening:
        yield listening.getsockname()[1]


def unused_port() -> int:
    """Return a port without a listener on either loopback address.

    It stays reserved until this process ends: no other test can listen on it, except by naming it.
    """
    while True:
        with ExitStack() as failing:
            sockets = [failing.enter_context(socket.socket(family)) for family in (socket.AF_INET, socket.AF_INET6)]
            for reserved in sockets:
                reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sockets[0].bind((LOOPBACK, 0))
            port: int = sockets[0].getsockname()[1]
            try:
                sockets[1].bind((LOOPBACK_6, port))
            except OSError:
                continue
            atexit.register(failing.pop_all().close)
            return port


class LocalCertificateAuthority:
    """Certificate authority that only `client_context` trusts."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority of the tests")])
        self._certificate = (
            self._start(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def client_context(self) -> ssl.SSLContext:
        """Return a client context that trusts this authority alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=_pem(self._certificate).decode())
        return context

    def server_context(self, names: Sequence[str], *, days: int = 1) -> ssl.SSLContext:
        """Return a server context for these names and addresses; negative days make it expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a receiver")])
        certificate = (
            self._start(subject, key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "both.pem"
            file.write_bytes(private + _pem(certificate))
            context.load_cert_chain(file)
        return context

    def _start(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 1) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=10))
            .not_valid_after(now + datetime.timedelta(days=days))
        )


def _general(name: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
