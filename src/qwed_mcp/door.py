"""What every request over HTTP passes before the protocol: its Host, its Origin, its size, its key."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

import anyio

from qwed_mcp.keys import Keys, Unreachable
from qwed_mcp.sessions import Sessions

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 2 << 20
BODY_SECONDS = 30.0
CALLER, GONE = "qwed.caller", "qwed.gone"
_MAX_KEY = 256
_SESSION, _VERSION = b"mcp-session-id", b"mcp-protocol-version"


class Refused(NamedTuple):
    """Why a request does not reach the protocol."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


_BEARER = ((b"www-authenticate", b'Bearer realm="qwed-mcp"'),)
_HOST = Refused(421, "QWED-REQ-001", "this Host is not served; use the address that was printed at the start")
_ORIGIN = Refused(403, "QWED-REQ-001", "this Origin is not allowed")
_NO_KEY = Refused(401, "QWED-AUTH-001", "send one API key, in X-API-Key or as Authorization: Bearer", _BEARER)
_WRONG_KEY = Refused(401, "QWED-AUTH-002", "this API key is unknown or revoked", _BEARER)
_TWO_LENGTHS = Refused(400, "QWED-REQ-001", "a body has a Content-Length or a Transfer-Encoding, not both")
_TOO_LARGE = Refused(413, "QWED-REQ-002", f"bodies have at most {MAX_BODY} bytes")
_TOO_SLOW = Refused(408, "QWED-REQ-001", f"the body did not come within {BODY_SECONDS:g} seconds")


class Door:
    """An ASGI application before another one; whoever passes has said who they are."""

    def __init__(self, app: App, keys: Keys, *, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._app, self._keys, self._sessions = app, keys, Sessions()
        self._hosts, self._origins = frozenset(hosts), frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self._from_elsewhere(scope) or await self._stranger(scope) or await _body(receive)
        if isinstance(body, Refused):
            await _refuse(body, send)
            return
        gone = scope[GONE] = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch, receive, gone)
            await self._in_session(scope, _replayed(body, gone), send)
            tasks.cancel_scope.cancel()

    async def _in_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller, named = scope[CALLER], (*_values(scope, _SESSION), "")[0]
        oldest = None if named else self._sessions.too_many(caller)
        if oldest is not None and _opens(scope):
            self._sessions.ended(caller, oldest)
            await self._app(_ending(scope, oldest), _nothing, _unheard)

        async def noticed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._notice(caller, named, scope["method"], message)
            await send(message)

        with self._sessions.used(caller, named):
            await self._app(scope, receive, noticed)

    def _notice(self, caller: str, named: str, method: str, message: Message) -> None:
        given = [value.decode() for key, value in message.get("headers", ()) if key.lower() == _SESSION]
        if named and (message["status"] == 404 or method == "DELETE"):
            self._sessions.ended(caller, named)
        elif given and not named and message["status"] < 400:
            self._sessions.opened(caller, given[0])

    def _from_elsewhere(self, scope: Scope) -> Refused | None:
        """A page in a browser can name any Host and cannot hide its Origin; programs have none."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _HOST
        if any(origin.lower() not in self._origins for origin in origins):
            return _ORIGIN
        # Whoever stands between may have read the other one, and seen another request.
        both = _values(scope, b"content-length") and _values(scope, b"transfer-encoding")
        return _TWO_LENGTHS if both else None

    async def _stranger(self, scope: Scope) -> Refused | None:
        key = _key_of(scope)
        if key is None:
            return _NO_KEY
        caller = await self._keys.caller(key)
        if isinstance(caller, Unreachable):
            return Refused(503, "QWED-SYS-002", caller.reason, ((b"retry-after", b"5"),))
        if caller is None:
            return _WRONG_KEY
        scope[CALLER] = caller
        scope["user"] = _user(caller)
        return None


def _user(caller: str) -> Any:
    """Who a session of the protocol belongs to: a request with another key finds no such session."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=caller, scopes=[]))


def _opens(scope: Scope) -> bool:
    """Whether the request would open a session: later versions of the protocol have none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    return scope["method"] == "POST" and all(
        version in HANDSHAKE_PROTOCOL_VERSIONS for version in _values(scope, _VERSION)
    )


def _ending(scope: Scope, session_id: str) -> Scope:
    """A request that ends a session of the same caller."""
    kept = [(key, value) for key, value in scope["headers"] if key.lower() == b"host"]
    return {**scope, "method": "DELETE", "headers": [*kept, (_SESSION, session_id.encode())]}


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_message: Message) -> None:
    pass


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _key_of(scope: Scope) -> str | None:
    """The one key that is shown; two that differ are none."""
    given = set(_values(scope, b"x-api-key"))
    for value in _values(scope, b"authorization"):
        kind, _, credential = value.partition(" ")
        given.add(credential.strip() if kind.lower() == "bearer" else "")
    key = given.pop() if len(given) == 1 else ""
    return key if 0 < len(key) <= _MAX_KEY and key.isascii() else None


async def _body(receive: Receive) -> bytes | Refused:
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                return _TOO_LARGE
            if not message.get("more_body", False):
                return bytes(body)
    return _TOO_SLOW


async def _watch(receive: Receive, gone: anyio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _replayed(body: bytes, gone: anyio.Event) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        if waiting:
            return waiting.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    return again


async def _refuse(refused: Refused, send: Send) -> None:
    body = json.dumps({"error": {"code": refused.code, "message": refused.message, "details": {}}}).encode()
    # What is left of the body is not read, so the connection cannot be used again.
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
