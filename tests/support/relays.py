"""Something between a client and a Redis that passes on what both say, late, piece by piece, or something else."""

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

from qwed.waiting import LoopThread

_PIECE = 65_536


def certified(file: Path, address: str = "127.0.0.1") -> ssl.SSLContext:
    """A certificate for an address that nobody has signed but itself, which is written to `file` too."""
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


class Relay:
    """Stands before a port of this machine, in a thread of its own. How it behaves may change at any time."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self.delay = 0.0
        """Seconds before each piece of an answer is passed on."""
        self.piece = _PIECE
        """Bytes of it."""
        self.instead: bytes | None = None
        """What is said in place of every piece of an answer."""
        self.connections = 0
        """How many there were."""
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
        """End it, and every connection."""
        self._thread.close(30)

    @property
    def url(self) -> str:
        """Where the Redis behind it seems to be."""
        return f"redis{'s' if self._context else ''}://127.0.0.1:{self.port}/0"

    def cut(self) -> None:
        """End every connection, in the middle of whatever it carries."""
        self._thread.tell(self._cut)

    def _cut(self) -> None:
        for each in self._open:
            each.transport.abort()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._thread.closing.wait()
        server.close()

    async def _pass_on(self, asked: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        self.connections += 1
        ends = {answers}
        try:
            with suppress(OSError):
                told, asks = await asyncio.open_connection("127.0.0.1", self._behind)
                ends.add(asks)
                self._open |= ends
                await asyncio.gather(self._forward(asked, asks), self._back(told, answers))
        finally:
            self._open -= ends
            for end in ends:
                end.transport.abort()

    async def _forward(self, asked: asyncio.StreamReader, asks: asyncio.StreamWriter) -> None:
        while said := await asked.read(_PIECE):
            asks.write(said)
        asks.close()

    async def _back(self, told: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        while said := await told.read(_PIECE):
            said = said if self.instead is None else self.instead
            for at in range(0, len(said), self.piece):
                if self.delay:
                    await asyncio.sleep(self.delay)
                answers.write(said[at : at + self.piece])
                await answers.drain()
        answers.close()
