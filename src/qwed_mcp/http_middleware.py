"""ASGI middleware that checks Host, Origin, body size and API key before a request reaches MCP."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

import anyio

from qwed_mcp.auth import ApiKeys, KeyLookupFailure
from qwed_mcp.sessions import Sessions

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 2 << 20
BODY_SECONDS = 30.0
CALLER, DISCONNECTED = "qwed.caller", "qwed.disconnected"
_MAX_KEY = 256
_SESSION, _VERSION = b"mcp-session-id", b"mcp-protocol-version"


class HttpRefusal(NamedTuple):
    """HTTP error answer to a request that is not passed on."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


_BEARER = ((b"www-authenticate", b'Bearer realm="qwed-mcp"'),)
_HOST = HttpRefusal(421, "QWED-REQ-001", "this Host is not served; use the address that the server logs at its start")
_ORIGIN = HttpRefusal(403, "QWED-REQ-001", "this Origin is not allowed")
_NO_KEY = HttpRefusal(401, "QWED-AUTH-001", "send one API key, in X-API-Key or as Authorization: Bearer", _BEARER)
_WRONG_KEY = HttpRefusal(401, "QWED-AUTH-002", "this API key is unknown or revoked", _BEARER)
_TWO_LENGTHS = HttpRefusal(400, "QWED-REQ-001", "a body has a Content-Length or a Transfer-Encoding, not both")
_TOO_LARGE = HttpRefusal(413, "QWED-REQ-002", f"bodies have at most {MAX_BODY} bytes")
_TOO_SLOW = HttpRefusal(408, "QWED-REQ-001", f"the body did not arrive within {BODY_SECONDS:g} seconds")


class AdmissionMiddleware:
    """ASGI middleware; only authenticated requests reach the wrapped application."""

    def __init__(self, app: App, keys: ApiKeys, *, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._app, self._keys, self._sessions = app, keys, Sessions()
        self._hosts, self._origins = frozenset(hosts), frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self._check_origin(scope) or await self._authenticate(scope) or await _read_body(receive)
        if isinstance(body, HttpRefusal):
            await _send_refusal(body, send)
            return
        disconnected = scope[DISCONNECTED] = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch_disconnect, receive, disconnected)
            await self._call_in_session(scope, _replay_body(body, disconnected), send)
            tasks.cancel_scope.cancel()

    async def _call_in_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller, session_id = scope[CALLER], (*_header_values(scope, _SESSION), "")[0]
        oldest = None if session_id else self._sessions.session_to_evict(caller)
        if oldest is not None and _opens_session(scope):
            self._sessions.remove(caller, oldest)
            await self._app(_session_delete_request(scope, oldest), _receive_empty_body, _discard)

        async def send_and_track(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._track_session(caller, session_id, scope["method"], message)
            await send(message)

        with self._sessions.in_use(caller, session_id):
            await self._app(scope, receive, send_and_track)

    def _track_session(self, caller: str, session_id: str, method: str, message: Message) -> None:
        new_ids = [value.decode() for key, value in message.get("headers", ()) if key.lower() == _SESSION]
        if session_id and (message["status"] == 404 or method == "DELETE"):
            self._sessions.remove(caller, session_id)
        elif new_ids and not session_id and message["status"] < 400:
            self._sessions.add(caller, new_ids[0])

    def _check_origin(self, scope: Scope) -> HttpRefusal | None:
        """Refuse a request with a wrong Host or a foreign Origin.

        A page in a browser can set any Host but cannot hide its Origin; other programs send none.
        """
        hosts, origins = _header_values(scope, b"host"), _header_values(scope, b"origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _HOST
        if any(origin.lower() not in self._origins for origin in origins):
            return _ORIGIN
        # An intermediary may have used the other one and seen a different request (request smuggling).
        both = _header_values(scope, b"content-length") and _header_values(scope, b"transfer-encoding")
        return _TWO_LENGTHS if both else None

    async def _authenticate(self, scope: Scope) -> HttpRefusal | None:
        key = _api_key_of(scope)
        if key is None:
            return _NO_KEY
        caller = await self._keys.caller(key)
        if isinstance(caller, KeyLookupFailure):
            return HttpRefusal(503, "QWED-SYS-002", caller.reason, ((b"retry-after", b"5"),))
        if caller is None:
            return _WRONG_KEY
        scope[CALLER] = caller
        scope["user"] = _session_owner(caller)
        return None


def _session_owner(caller: str) -> Any:
    """Return the owner of an MCP session: a request with another key finds no such session."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=caller, scopes=[]))


def _opens_session(scope: Scope) -> bool:
    """Return True if the request would open a session; later protocol versions have none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    return scope["method"] == "POST" and all(
        version in HANDSHAKE_PROTOCOL_VERSIONS for version in _header_values(scope, _VERSION)
    )


def _session_delete_request(scope: Scope, session_id: str) -> Scope:
    """Return the scope of a request that ends a session of the same caller."""
    host_headers = [(key, value) for key, value in scope["headers"] if key.lower() == b"host"]
    return {**scope, "method": "DELETE", "headers": [*host_headers, (_SESSION, session_id.encode())]}


async def _receive_empty_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard(_message: Message) -> None:
    pass


def _header_values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _api_key_of(scope: Scope) -> str | None:
    """Return the key of the request, or None if there is none or two different ones."""
    credentials = set(_header_values(scope, b"x-api-key"))
    for value in _header_values(scope, b"authorization"):
        kind, _, credential = value.partition(" ")
        credentials.add(credential.strip() if kind.lower() == "bearer" else "")
    key = credentials.pop() if len(credentials) == 1 else ""
    return key if 0 < len(key) <= _MAX_KEY and key.isascii() else None


async def _read_body(receive: Receive) -> bytes | HttpRefusal:
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


async def _watch_disconnect(receive: Receive, disconnected: anyio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    disconnected.set()


def _replay_body(body: bytes, disconnected: anyio.Event) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await disconnected.wait()
        return {"type": "http.disconnect"}

    return receive


async def _send_refusal(refusal: HttpRefusal, send: Send) -> None:
    body = json.dumps({"error": {"code": refusal.code, "message": refusal.message, "details": {}}}).encode()
    # The rest of the body is not read, so the connection cannot be reused.
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
