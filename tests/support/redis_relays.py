"""Relay between a client and Redis that delays, splits or replaces the answers."""

import asyncio
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from qwed.futures import LoopThread

_PIECE = 65_536


def create_self_signed(file: Path, address: str = "127.0.0.1") -> ssl.SSLContext:
    """Return a context with a self-signed certificate for an address; also write it to `file`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a relay")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


class RedisRelay:
    """Relay in front of a local port, in its own thread; its behaviour can be changed at any time."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self.delay = 0.0
        """Seconds before each piece of an answer is forwarded."""
        self.piece = _PIECE
        """Size of a piece in bytes."""
        self.instead: bytes | None = None
        """Bytes sent in place of every piece of an answer."""
        self.connections = 0
        """Number of connections so far."""
        self.port = 0
        self._behind = port
        self._context = context
        self._open: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._thread = LoopThread("relay", self._serve)
        self._thread.start()
        self._ready.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the relay and close every connection."""
        self._thread.close(30)

    @property
    def url(self) -> str:
        """URL of the Redis through the relay."""
        return f"redis{'s' if self._context else ''}://127.0.0.1:{self.port}/0"

    def cut(self) -> None:
        """Close every connection, in the middle of any message."""
        self._thread.call_soon(self._cut)

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._thread.closing.wait()
        server.close()

    async def _pass_on(self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        ends = {client_writer}
        try:
            with suppress(OSError):
                redis_reader, asks = await asyncio.open_connection("127.0.0.1", self._behind)
                ends.add(asks)
                self._open |= ends
                await asyncio.gather(self._forward(client_reader, asks), self._back(redis_reader, client_writer))
        finally:
            self._open -= ends
            for end in ends:
                end.transport.abort()

    async def _forward(self, client_reader: asyncio.StreamReader, asks: asyncio.StreamWriter) -> None:
        while data := await client_reader.read(_PIECE):
            asks.write(data)
        asks.close()

    async def _back(self, redis_reader: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        while data := await redis_reader.read(_PIECE):
            data = data if self.instead is None else self.instead
            for at in range(0, len(data), self.piece):
                if self.delay:
                    await asyncio.sleep(self.delay)
                answers.write(data[at : at + self.piece])
                await answers.drain()
        answers.close()
