"""One webhook delivery attempt: five seconds in all, no redirects; only the status of the response is kept."""

import asyncio
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from qwed.guards.ip_ranges import Address
from qwed.http_client.dns import NameResolver
from qwed.store.protocol import Delivery
from qwed.webhooks.signature import sign
from qwed.webhooks.url_policy import ResolveName, Target, UrlRejection, parse_webhook_url, resolve

TIMEOUT_SECONDS = 5.0
"""Total time: DNS, connection, TLS, request, status line."""
DRAIN_SECONDS = 0.25
"""Time to read the rest of a response after its status, within the total time."""
DRAIN_BYTES = 8 << 10
MAX_LINE_BYTES = 1 << 10
MAX_LINES = 32
"""Lines read before the status: receivers may send interim responses (1xx) first."""
MAX_ADDRESSES = 4
"""Addresses of a host that are tried, one after the other."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")
_NOT_HTTP = "the receiver did not answer in HTTP"

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (ssl.SSLCertVerificationError, "the receiver's certificate is not valid for its host"),
    (ssl.SSLError, "the TLS connection failed"),
    (TimeoutError, "the receiver did not answer in time"),
    (ConnectionRefusedError, "the connection was refused"),
    (OSError, "the connection failed"),
    (ValueError, _NOT_HTTP),
)
"""The first match is stored; the texts of the exceptions may contain what the receiver sent."""

StreamPair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Webhook client; proxies and credentials of the environment are ignored."""

    allow_private: bool = False
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    resolve_name: ResolveName = field(default_factory=NameResolver)
    seconds: float = TIMEOUT_SECONDS

    async def send(self, delivery: Delivery, now: float) -> str | None:
        """Return None if the receiver accepted the notice, otherwise a short reason."""
        target = parse_webhook_url(delivery.url, self.allow_private)
        if isinstance(target, UrlRejection):
            return target.reason
        exchange = _Exchange(encode_request(target, delivery, int(now)))
        try:
            async with asyncio.timeout(self.seconds) as limit:
                addresses = await resolve(target.host, target.port, self.allow_private, self.resolve_name)
                if isinstance(addresses, UrlRejection):
                    return addresses.reason
                await exchange.run(await self._connect(target, addresses[:MAX_ADDRESSES]), limit)
        except (OSError, ValueError) as failure:
            # A failure after the status does not change the outcome.
            return exchange.outcome if exchange.answered else _describe_failure(failure)
        return exchange.outcome

    async def _connect(self, target: Target, addresses: Sequence[Address]) -> StreamPair:
        """Connect to the first address that accepts; each gets its share of the time."""
        share = self.seconds / len(addresses)
        for address in addresses[:-1]:
            try:
                async with asyncio.timeout(share):
                    return await self._open(target, address)
            except ssl.SSLError:
                raise
            except OSError:
                continue
        return await self._open(target, addresses[-1])

    async def _open(self, target: Target, address: Address) -> StreamPair:
        secure = target.scheme == "https"
        # An address, so that nothing is resolved again; the name is for the certificate check only.
        return await asyncio.open_connection(
            str(address),
            target.port,
            limit=MAX_LINE_BYTES,
            ssl=self.context if secure else None,
            server_hostname=target.host if secure else None,
        )


class _Exchange:
    """One request and the outcome of its response."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.answered = False
        self.outcome: str | None = _NOT_HTTP

    async def run(self, streams: StreamPair, limit: asyncio.Timeout) -> None:
        """Send the request, read the status, drain the response briefly, close."""
        reader, writer = streams
        try:
            writer.write(self._request)
            self.outcome = _outcome_of(await _read_status(reader))
            self.answered = True
            _shorten_timeout(limit)
            await _drain(reader)
        finally:
            # Not `close`, which waits half a minute for a receiver that does not complete the TLS shutdown.
            writer.transport.abort()


async def _read_status(reader: asyncio.StreamReader) -> int:
    """Return the first status that is not interim; raise ValueError if the response is not HTTP."""
    interim = False
    for _ in range(MAX_LINES):
        text = await reader.readline()
        if not text:
            raise ConnectionError("closed without a response")
        if interim:
            interim = text not in (b"\r\n", b"\n")
            continue
        match = _STATUS.fullmatch(text)
        if match is None:
            break
        if not match[1].startswith(b"1"):
            return int(match[1])
        interim = True
    raise ValueError(_NOT_HTTP)


def _outcome_of(status: int) -> str | None:
    if status in range(200, 300):
        return None
    advice = ": redirects are not followed" if status in range(300, 400) else ""
    return f"the receiver answered {status}{advice}"


def _shorten_timeout(limit: asyncio.Timeout) -> None:
    soon = asyncio.get_running_loop().time() + DRAIN_SECONDS
    limit.reschedule(min(soon, limit.when() or soon))


async def _drain(reader: asyncio.StreamReader) -> None:
    """Read the rest of a short response: closing in the middle looks like an error to the receiver."""
    remaining = DRAIN_BYTES
    while remaining > 0:
        data = await reader.read(remaining)
        if not data:
            return
        remaining -= len(data)


def _describe_failure(failure: Exception) -> str:
    return next(reason for kind, reason in _REASONS if isinstance(failure, kind))


def encode_request(target: Target, delivery: Delivery, timestamp: int) -> bytes:
    """Return the bytes of the HTTP request."""
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
