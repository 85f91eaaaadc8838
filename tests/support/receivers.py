"""Real receivers of webhooks on this machine: honest ones, broken ones and hostile ones, with a CA of their own."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

LOOPBACK = "127.0.0.1"
LOOPBACK_6 = "::1"
PATIENCE = 60.0
"""Longer than anything here takes; only a test that fails waits for it."""

_GONE = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)


class Heard(NamedTuple):
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


class Line(NamedTuple):
    """The connection a behaviour answers on."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    """How many requests came before this one."""

    async def say(self, text: str) -> None:
        self.writer.write(text.encode())
        await self.writer.drain()


Behaviour = Callable[[Line], Awaitable[None]]


def answering(*statuses: int) -> Behaviour:
    """Answers with these, one for each request; the last one from then on."""

    async def answer(line: Line) -> None:
        status = statuses[min(line.number, len(statuses) - 1)]
        await line.say(f"HTTP/1.1 {status} So\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")

    return answer


def redirecting(status: int, place: str) -> Behaviour:
    async def answer(line: Line) -> None:
        await line.say(f"HTTP/1.1 {status} Elsewhere\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n")

    return answer


def saying(*texts: str) -> Behaviour:
    """Says this and hangs up."""

    async def answer(line: Line) -> None:
        for text in texts:
            await line.say(text)

    return answer


async def silent(line: Line) -> None:
    """Never answers: waits until the other side is gone."""
    await line.reader.read()


def saying_then_silent(text: str) -> Behaviour:
    async def answer(line: Line) -> None:
        await line.say(text)
        await silent(line)

    return answer


def endless(start: str, more: str) -> Behaviour:
    """Says `start`, then `more` for as long as anybody listens."""

    async def answer(line: Line) -> None:
        await line.say(start)
        while not line.writer.transport.is_closing():
            await line.say(more)
            # Otherwise a line that is gone is never noticed: an empty buffer makes `drain` return at once.
            await asyncio.sleep(0)

    return answer


def dripping(text: str, seconds: float) -> Behaviour:
    """A character at a time."""

    async def answer(line: Line) -> None:
        for character in text:
            await line.say(character)
            await asyncio.sleep(seconds)

    return answer


class Receiver:
    """Listens from the moment it is made; `close` ends it and every connection it has."""

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
        self.heard: SimpleQueue[Heard] = SimpleQueue()
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

    def next(self) -> Heard:
        """The next request, waited for."""
        return self.heard.get(timeout=PATIENCE)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            # A receiver that is told to fail fails loudly; what counts is how the sender takes it.
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
            await self._behaviour(Line(reader, writer, number))
            writer.close()
            await writer.wait_closed()
        except _GONE:
            return
        finally:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
    line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = dict(text.split(": ", 1) for text in rest)
    assert len(headers) == len(rest)
    return Heard(line, headers, await reader.readexactly(int(headers["content-length"])))


@contextmanager
def deaf() -> Iterator[int]:
    """A port on which connections are taken by the system and never by a program: not even TLS begins."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        yield listening.getsockname()[1]


def dead_port() -> int:
    """A port nobody listens on."""
    with deaf() as port:
        return port


class Authority:
    """A certificate authority nobody knows but whoever asks for `trusting`."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority of the tests")])
        self._certificate = (
            self._start(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def trusting(self) -> ssl.SSLContext:
        """What a client uses that knows this authority and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=_pem(self._certificate).decode())
        return context

    def serving(self, names: Sequence[str], *, days: int = 1) -> ssl.SSLContext:
        """What a server uses whose certificate is for these names and addresses; with negative days it is over."""
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
