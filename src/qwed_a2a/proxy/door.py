"""What every request passes first: the name it calls us by, where it comes from, what it brings, who it says it is."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.kernel import Party

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = dict[bytes, list[bytes]]
BODY_SECONDS = 30.0
_USUAL = {"http": 80, "https": 443}
_SENT_ON = (
    b"authorization",
    b"x-api-key",
    b"api-key",
    b"x-goog-api-key",
    b"a2a-extensions",
    b"traceparent",
    b"tracestate",
)
"""Of the client's headers the agent sees these: what it may need to know its caller, and nothing of ours."""
_SPELT = {
    b"a2a-extensions": re.compile(rb"[A-Za-z0-9:/?#@!$&*+,;=._~% -]{0,4096}"),
    b"traceparent": re.compile(rb"[0-9a-f]{2}(?:-[0-9a-f]{1,64}){3}"),
    b"tracestate": re.compile(rb"[A-Za-z0-9_*/@=:,;.+ -]{0,512}"),
}
"""Of what is no credential nobody looks at anything else: addresses and marks, of which no program could be spelt."""
_ID, _TOKEN = b"qwed-agent-id", b"qwed-agent-token"
_LONGEST_TOKEN = 256
_ENDS_A_LINE = frozenset(b"\r\n\0")


class Door:
    """Lets in whoever calls the proxy by its name."""

    def __init__(self, public_url: str, names: Iterable[str]) -> None:
        parts = urlsplit(public_url)
        self._base = parts.path.rstrip("/")
        self._origin = f"{parts.scheme}://{parts.netloc}".lower().encode()
        found = {parts.netloc.lower(), *(name.lower() for name in names)}
        if parts.hostname and (parts.port or _USUAL.get(parts.scheme)) == _USUAL.get(parts.scheme):
            # On its usual port a Host may name it or not.
            found |= {parts.hostname, f"{parts.hostname}:{_USUAL[parts.scheme]}"}
        self._hosts = frozenset(name.encode("latin-1") for name in found)

    def below(self, path: str) -> str:
        """The path below our address; whoever stands before us may have taken the rest away already."""
        found = path.removeprefix(self._base) if path == self._base or path.startswith(f"{self._base}/") else path
        return found or "/"

    def admitted(self, scope: Scope) -> Headers:
        """The headers of a request that may come in; Refused where it may not."""
        headers: Headers = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refused(Fault.INVALID_REQUEST, "this Host is not served: use the address in the card", http=421)
        # A page in a browser cannot hide its Origin; programs have none.
        if any(origin.lower() != self._origin for origin in headers.get(b"origin", [])):
            raise Refused(Fault.INVALID_REQUEST, "this Origin is not allowed", http=403)
        # Whoever stands between may have read the other one, and seen another request.
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise Refused(
                Fault.INVALID_REQUEST, "a body has a Content-Length or a Transfer-Encoding, not both", http=400
            )
        return headers


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The body; Refused as soon as it is known to be too large or too slow."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or len(value) > 19 or int(value) > most):
            raise _too_large(most)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _read(receive, most)
    except TimeoutError:
        raise Refused(Fault.INVALID_REQUEST, "the body did not come in time", http=408) from None


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(Fault.INVALID_REQUEST, "the client left")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> Refused:
    said = f"the body has more than {most} bytes: send less"
    return Refused(Fault.INVALID_REQUEST, said, {"verdict": "blocked", "reason": said}, http=413)


def sender_of(headers: Headers, default: Party) -> Party:
    """Who sends, and what proves it."""
    name, token = _single(headers, _ID), _single(headers, _TOKEN)
    if name is None and token is None:
        return default
    if not name:
        raise Refused(Fault.INVALID_REQUEST, "`QWED-Agent-Token` proves an agent: name it in `QWED-Agent-Id`", http=400)
    if token is not None and len(token) > _LONGEST_TOKEN:
        raise Refused(Fault.INVALID_REQUEST, "`QWED-Agent-Token` is not an agent's token", http=401)
    return Party(name, token)


def sent_on(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """What of the client's headers the agent may see."""
    found = tuple((name, value) for name in _SENT_ON for value in headers.get(name, ()))
    if any(set(value) & _ENDS_A_LINE for _, value in found):
        raise Refused(Fault.INVALID_REQUEST, "a header stands on one line", http=400)
    for name, value in found:
        if name in _SPELT and _SPELT[name].fullmatch(value) is None:
            raise Refused(Fault.INVALID_REQUEST, f"`{name.decode()}` is not spelt as it should be", http=400)
    return found


def version_of(headers: Headers) -> str:
    """The version of the protocol that a client speaks; nothing where it says nothing."""
    return _single(headers, b"a2a-version") or ""


def _single(headers: Headers, name: bytes) -> str | None:
    values = headers.get(name, [])
    if len(values) > 1:
        raise Refused(Fault.INVALID_REQUEST, f"`{name.decode()}` stands twice", http=400)
    return values[0].decode("latin-1").strip() if values else None
