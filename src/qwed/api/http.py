"""One call over HTTP: its body read within limits, its answer sent. The same for every route."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.store.protocol import StoreError
from qwed.waiting import LoopDriver
from qwed.words import Decision, ErrorCode
from qwed.words.canonical import MAX_DEPTH

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode
_BODY_SECONDS = 30.0


class Response(NamedTuple):
    """What goes back."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = (_JSON,)


_ONCE = frozenset({b"x-api-key", b"authorization", b"idempotency-key"})


def _refuse_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _value in headers if name in _ONCE]
    if len(names) != len(set(names)):
        raise _malformed("a credential or key stands in more than one header: send it once")


class Refused(Exception):
    """The bytes of a request are no request; raised and caught inside this file."""

    def __init__(self, found: Problem) -> None:
        super().__init__(found.message)
        self.problem = found


class Call:
    """A request whose body has been read."""

    def __init__(self, services: Services, driver: LoopDriver, scope: Scope, body: bytes) -> None:
        self.services = services
        self.driver = driver
        self.scope = scope
        self.path: Mapping[str, str] = scope.get("path_params", {})
        self.body = body
        self._headers = dict(scope["headers"])
        if len(self._headers) != len(scope["headers"]):
            _refuse_repeated(scope["headers"])

    def header(self, name: bytes) -> str | None:
        """One header by its lower-case name; the last one wins, as no header of ours may repeat."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @cached_property
    def query(self) -> dict[str, str]:
        """The query string."""
        return dict(parse_qsl(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))

    def json(self) -> Any:
        """The body as a JSON value; Refused if it is none."""
        return parse_json(self.body)

    @property
    def api_key(self) -> str | None:
        """The organisation key the caller shows."""
        return self.header(b"x-api-key")

    @property
    def agent_token(self) -> str | None:
        """The agent token the caller shows in a header."""
        scheme, _, token = (self.header(b"authorization") or "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else None


def ok(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(status, _encode(value))


def refused(found: Problem) -> Response:
    """An error outside a decision: `{error: {...}}` with the status of its code."""
    return Response(_STATUS[found.code], _encode({"error": found}), _headers(found))


def decided(answer: Answer) -> Response:
    """A decision, whatever it says."""
    return Response(answer.http, _encode(answer), (_JSON,) if answer.error is None else _headers(answer.error))


def _headers(found: Problem) -> tuple[tuple[bytes, bytes], ...]:
    if found.retry_after is None:
        return (_JSON,)
    return (_JSON, (b"retry-after", str(found.retry_after).encode()))


_STATUS = {row.code: row.http for row in ErrorCode}

Handler = Callable[[Call], Awaitable[Response]]


class Endpoint:
    """A handler as an ASGI application."""

    def __init__(
        self,
        handler: Handler,
        services: Callable[[], Services],
        driver: Callable[[], LoopDriver],
        *,
        decides: bool = False,
    ) -> None:
        self._handler = handler
        self._decides = decides
        self._services = services
        self._driver = driver

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services()
        try:
            body = await read_body(scope, receive, services.settings.max_body_bytes)
            response = await self._handler(Call(services, self._driver(), scope, body))
        except Refused as error:
            found = error.problem
            response = decided(Answer(decision=Decision.DENIED, error=found)) if self._decides else refused(found)
        except (StoreError, TimeoutError) as error:
            services.log.error("store failed: %s", error)
            response = refused(problem(ErrorCode.DEPENDENCY_DOWN, "the store does not answer", retry_after=1))
        await respond(send, response)


async def respond(send: Send, response: Response) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(response.body)).encode())
    await send({"type": "http.response.start", "status": response.status, "headers": [*response.headers, length]})
    await send({"type": "http.response.body", "body": response.body})


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The body, or Refused as soon as it is known to be too large."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > most:
            raise _too_large(most)
    message = await receive()
    if not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        return body
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await _read_rest(message.get("body", b""), receive, most)
    except TimeoutError:
        raise _malformed("the body did not arrive in time") from None


async def _read_rest(first: bytes, receive: Receive, most: int) -> bytes:
    chunks, size, more = [first], len(first), True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
        if size > most:
            raise _too_large(most)
    return b"".join(chunks)


def _too_large(most: int) -> Refused:
    return Refused(problem(ErrorCode.TOO_LARGE, f"the body is larger than {most} bytes"))


def parse_json(body: bytes) -> Any:
    """The JSON value in `body`: UTF-8, no duplicate keys, not nested too deep; Refused says what is wrong."""
    try:
        value = _decode(body.decode())
    except UnicodeDecodeError:
        raise _malformed("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"the body is not JSON: {error.msg.lower()} at position {error.pos}") from None
    except RecursionError:
        raise _malformed(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    except ValueError:
        raise _malformed("the JSON holds a number with too many digits") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise _malformed(f"the JSON is nested deeper than {MAX_DEPTH}")
    if b"\\u" in body:
        _refuse_half_surrogates(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _value in pairs).most_common(1)[0][0]
        raise _malformed(f"the key {quoted(twice)} stands twice in one object")
    return members


_decode = json.JSONDecoder(object_pairs_hook=_unique).decode


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, dict | list):
            deepest = max(deepest, depth)
            waiting.extend((child, depth + 1) for child in (item.values() if isinstance(item, dict) else item))
    return deepest


def _refuse_half_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _malformed("the JSON holds half of a surrogate pair") from None


def _malformed(message: str) -> Refused:
    return Refused(problem(ErrorCode.MALFORMED, message))
