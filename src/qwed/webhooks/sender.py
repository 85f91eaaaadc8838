"""One attempt to hand over one notice: five seconds in all, no redirects, nothing of the answer kept but its status."""

import asyncio
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from qwed.guards.ranges import Address
from qwed.store.protocol import Delivery
from qwed.webhooks.address import Refused, ResolveName, Target, read_url, resolve
from qwed.webhooks.names import Names
from qwed.webhooks.signature import sign

SECONDS = 5.0
"""For everything: name, connection, TLS, request, status line."""
FAREWELL_SECONDS = 0.25
"""How long a receiver that has answered may finish its sentence, within the time for everything."""
FAREWELL_BYTES = 8 << 10
LINE_BYTES = 1 << 10
LINES = 32
"""How much is read before the status: receivers may send interim answers (1xx) first."""
ADDRESSES = 4
"""How many of a host's addresses are tried, one after the other."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")
_NOT_HTTP = "the receiver did not answer in HTTP"

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (ssl.SSLCertVerificationError, "the receiver's certificate is not valid for its host"),
    (ssl.SSLError, "the TLS connection failed"),
    (TimeoutError, "there was no answer in time"),
    (ConnectionRefusedError, "the connection was refused"),
    (OSError, "the connection failed"),
    (ValueError, _NOT_HTTP),
)
"""The first that fits is what is kept; the texts of the exceptions may hold what the receiver said."""

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, kw_only=True)
class Sender:
    """How notices are sent; proxies and credentials of the environment are never looked at."""

    allow_private: bool = False
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    resolve_name: ResolveName = field(default_factory=Names)
    seconds: float = SECONDS

    async def send(self, delivery: Delivery, now: float) -> str | None:
        """None when the receiver has accepted the notice, else a short reason why not."""
        target = read_url(delivery.url, self.allow_private)
        if isinstance(target, Refused):
            return target.why
        exchange = _Exchange(request_for(target, delivery, int(now)))
        try:
            async with asyncio.timeout(self.seconds) as limit:
                addresses = await resolve(target.host, target.port, self.allow_private, self.resolve_name)
                if isinstance(addresses, Refused):
                    return addresses.why
                await exchange.over(await self._connect(target, addresses[:ADDRESSES]), limit)
        except (OSError, ValueError) as failure:
            # A receiver that fails after its status has still answered.
            return exchange.outcome if exchange.heard else _reason_for(failure)
        return exchange.outcome

    async def _connect(self, target: Target, addresses: Sequence[Address]) -> Line:
        """A connection to the first of these addresses that takes one; each has its share of the time."""
        share = self.seconds / len(addresses)
        for address in addresses[:-1]:
            try:
                async with asyncio.timeout(share):
                    return await self._dial(target, address)
            except ssl.SSLError:
                raise
            except OSError:
                continue
        return await self._dial(target, addresses[-1])

    async def _dial(self, target: Target, address: Address) -> Line:
        secure = target.scheme == "https"
        # An address, so nothing is looked up again; the name is only what the certificate must say.
        return await asyncio.open_connection(
            str(address),
            target.port,
            limit=LINE_BYTES,
            ssl=self.context if secure else None,
            server_hostname=target.host if secure else None,
        )


class _Exchange:
    """One request, and what was heard of the answer."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.heard = False
        self.outcome: str | None = _NOT_HTTP

    async def over(self, line: Line, limit: asyncio.Timeout) -> None:
        """Send, read the status, let the receiver finish for a moment, hang up."""
        reader, writer = line
        try:
            writer.write(self._request)
            self.outcome = _outcome_of(await _status(reader))
            self.heard = True
            _shorten(limit)
            await _farewell(reader)
        finally:
            # Not `close`, which waits half a minute for a receiver that never says goodbye.
            writer.transport.abort()


async def _status(reader: asyncio.StreamReader) -> int:
    """The first status that is no interim one; ValueError where the answer is not HTTP."""
    interim = False
    for _ in range(LINES):
        text = await reader.readline()
        if not text:
            raise ConnectionError("closed without an answer")
        if interim:
            interim = text not in (b"\r\n", b"\n")
            continue
        found = _STATUS.fullmatch(text)
        if found is None:
            break
        if not found[1].startswith(b"1"):
            return int(found[1])
        interim = True
    raise ValueError(_NOT_HTTP)


def _outcome_of(status: int) -> str | None:
    if status in range(200, 300):
        return None
    advice = ": redirects are not followed" if status in range(300, 400) else ""
    return f"the receiver answered {status}{advice}"


def _shorten(limit: asyncio.Timeout) -> None:
    soon = asyncio.get_running_loop().time() + FAREWELL_SECONDS
    limit.reschedule(min(soon, limit.when() or soon))


async def _farewell(reader: asyncio.StreamReader) -> None:
    """Read the rest of a short answer: hanging up in the middle of it looks like an error to the receiver."""
    left = FAREWELL_BYTES
    while left > 0:
        heard = await reader.read(left)
        if not heard:
            return
        left -= len(heard)


def _reason_for(failure: Exception) -> str:
    return next(reason for kind, reason in _REASONS if isinstance(failure, kind))


def request_for(target: Target, delivery: Delivery, timestamp: int) -> bytes:
    """The request as it goes over the wire."""
    body = delivery.body.encode()
    headers = {
        "host": target.authority,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        "user-agent": "qwed",
        "qwed-event": delivery.event,
        "qwed-notice": delivery.notice_id,
    }
    if delivery.secret:
        headers["qwed-signature"] = sign(delivery.secret, timestamp, body)
    lines = [f"POST {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body
