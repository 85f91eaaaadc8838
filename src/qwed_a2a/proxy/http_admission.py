"""Admission of HTTP requests: Host, Origin, body size, sender, and headers that are forwarded."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from qwed.proxies.backend import Identity
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = dict[bytes, list[bytes]]
BODY_SECONDS = 30.0
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORWARDED = (
    b"authorization",
    b"x-api-key",
    b"api-key",
    b"x-goog-api-key",
    b"a2a-extensions",
    b"traceparent",
    b"tracestate",
)
"""Client headers that the agent gets: what it may need to authenticate its caller, and nothing of ours."""
_HEADER_FORMATS = {
    b"a2a-extensions": re.compile(rb"[A-Za-z0-9:/?#@!$&*+,;=._~% -]{0,4096}"),
    b"traceparent": re.compile(rb"[0-9a-f]{2}(?:-[0-9a-f]{1,64}){3}"),
    b"tracestate": re.compile(rb"[A-Za-z0-9_*/@=:,;.+ -]{0,512}"),
}
"""Allowed formats of headers that are not credentials. No guard checks them, so no program may fit into them."""
_ID, _TOKEN = b"qwed-agent-id", b"qwed-agent-token"
_MAX_TOKEN_LENGTH = 256
_LINE_BREAKS = frozenset(b"\r\n\0")


class HostCheck:
    """Check that a request uses one of the proxy's names."""

    def __init__(self, public_url: str, names: Iterable[str]) -> None:
        parts = urlsplit(public_url)
        self._base = parts.path.rstrip("/")
        self._origin = f"{parts.scheme}://{parts.netloc}".lower().encode()
        hosts = {parts.netloc.lower(), *(name.lower() for name in names)}
        if parts.hostname and (parts.port or _DEFAULT_PORTS.get(parts.scheme)) == _DEFAULT_PORTS.get(parts.scheme):
            # On the default port the Host header may omit it.
            hosts |= {parts.hostname, f"{parts.hostname}:{_DEFAULT_PORTS[parts.scheme]}"}
        self._hosts = frozenset(name.encode("latin-1") for name in hosts)

    def relative_path(self, path: str) -> str:
        """Return the path below the public address; a reverse proxy may have removed the prefix already."""
        relative = path.removeprefix(self._base) if path == self._base or path.startswith(f"{self._base}/") else path
        return relative or "/"

    def admit(self, scope: Scope) -> Headers:
        """Return the headers of a request; raise CallRefusedError if it is not admitted."""
        headers: Headers = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise CallRefusedError(
                ErrorKind.INVALID_REQUEST, "this Host is not served: use the address in the card", http=421
            )
        # A browser always sends the Origin of its page; programs send none.
        if any(origin.lower() != self._origin for origin in headers.get(b"origin", [])):
            raise CallRefusedError(ErrorKind.INVALID_REQUEST, "this Origin is not allowed", http=403)
        # A reverse proxy may have used the other header, and seen another request.
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise CallRefusedError(
                ErrorKind.INVALID_REQUEST, "a body has a Content-Length or a Transfer-Encoding, not both", http=400
            )
        return headers


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """Return the body; raise CallRefusedError as soon as it is known to be too large or too slow."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or len(value) > 19 or int(value) > most):
            raise _too_large(most)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _read(receive, most)
    except TimeoutError:
        raise CallRefusedError(ErrorKind.INVALID_REQUEST, "the body did not arrive in time", http=408) from None


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallRefusedError(ErrorKind.INVALID_REQUEST, "the client disconnected")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> CallRefusedError:
    message = f"the body has more than {most} bytes: send less"
    return CallRefusedError(ErrorKind.INVALID_REQUEST, message, {"verdict": "blocked", "reason": message}, http=413)


def sender_of(headers: Headers, default: Identity) -> Identity:
    """Return the sender and its token."""
    name, token = _single_header(headers, _ID), _single_header(headers, _TOKEN)
    if name is None and token is None:
        return default
    if not name:
        raise CallRefusedError(
            ErrorKind.INVALID_REQUEST, "`QWED-Agent-Token` proves an agent: name it in `QWED-Agent-Id`", http=400
        )
    if token is not None and len(token) > _MAX_TOKEN_LENGTH:
        raise CallRefusedError(ErrorKind.INVALID_REQUEST, "`QWED-Agent-Token` is not an agent's token", http=401)
    return Identity(name, token)


def forwarded_headers(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """Return the client headers that the agent may get."""
    forwarded = tuple((name, value) for name in _FORWARDED for value in headers.get(name, ()))
    if any(set(value) & _LINE_BREAKS for _, value in forwarded):
        raise CallRefusedError(ErrorKind.INVALID_REQUEST, "a header must be on one line", http=400)
    for name, value in forwarded:
        if name in _HEADER_FORMATS and _HEADER_FORMATS[name].fullmatch(value) is None:
            raise CallRefusedError(ErrorKind.INVALID_REQUEST, f"`{name.decode()}` has an invalid format", http=400)
    return forwarded


def version_of(headers: Headers) -> str:
    """Return the protocol version of the client, or an empty string."""
    return _single_header(headers, b"a2a-version") or ""


def _single_header(headers: Headers, name: bytes) -> str | None:
    values = headers.get(name, [])
    if len(values) > 1:
        raise CallRefusedError(ErrorKind.INVALID_REQUEST, f"`{name.decode()}` appears twice", http=400)
    return values[0].decode("latin-1").strip() if values else None
