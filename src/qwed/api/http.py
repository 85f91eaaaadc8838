"""One call over HTTP: its caller counted, its body read within limits, its answer sent. The same for every route."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from qwed.api.pressure import Hold, Late, Pressure
from qwed.api.windows import Caller, Windows
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.limits.allowance import Allowance, LimiterError
from qwed.store.protocol import StoreError
from qwed.waiting import LoopDriver
from qwed.words import Decision, ErrorCode
from qwed.words.canonical import MAX_DEPTH

if TYPE_CHECKING:
    from qwed.api.metrics import Meter, Metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode

Headers = tuple[tuple[bytes, bytes], ...]


class Node:
    """What every call of one application shares."""

    def __init__(self, services: Services, pressure: Pressure, windows: Windows) -> None:
        self.services = services
        self.pressure = pressure
        self.windows = windows
        self.metrics: Metrics
        self.driver: LoopDriver
        """Set when the first call arrives, because it belongs to the loop that runs then."""


class Response(NamedTuple):
    """What goes back; the last two are for the metrics."""

    status: int
    body: bytes
    headers: Headers = (_JSON,)
    code: str = ""
    answer: Answer | None = None


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


_NOTHING_LEFT = Allowance(0, 0, 1, allowed=False)


class Gone(Exception):
    """The client left before its body was whole; raised and caught inside this file."""


class Call:
    """A request. Its body is there when the handler is called."""

    def __init__(self, node: Node, scope: Scope, hold: Hold) -> None:
        self.node = node
        self.services = node.services
        self.driver = node.driver
        self.scope = scope
        self.path: Mapping[str, str] = scope.get("path_params", {})
        self.body = b""
        self.caller = Caller()
        self._hold = hold
        self._headers = dict(scope["headers"])

    def refuse_repeated(self) -> None:
        """Refused where a credential stands in more than one header."""
        if len(self._headers) != len(self.scope["headers"]):
            _refuse_repeated(self.scope["headers"])

    async def count_caller(self) -> None:
        """Count the request in the windows of the key and the token it shows; Refused where one is full."""
        key, token = self.api_key, self.agent_token
        if key is not None and not await self.node.windows.count_key(self.caller, key):
            raise self._limited()
        if token is not None:
            await self.count_token(token)

    async def count_token(self, token: str | None) -> None:
        """Count the request in the window of the agent in the path, if `token` is its own; Refused if that is full."""
        agent_id = self.path.get("agent_id")
        if token is not None and not await self.node.windows.count_token(self.caller, token, agent_id):
            raise self._limited()

    def _limited(self) -> Refused:
        limit, _left, seconds, _allowed = self.caller.allowance or _NOTHING_LEFT
        message = f"rate limit reached: {limit} requests a minute with one key or token"
        return Refused(problem(ErrorCode.RATE_LIMITED, message, retry_after=seconds))

    def waiting(self) -> AbstractContextManager[bool]:
        """`with call.waiting() as may_wait:` gives this call's place to another while it waits, if it may."""
        return self._hold.waiting(self.caller.name)

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
    return Response(_STATUS[found.code], _encode({"error": found}), _headers(found), found.code)


def decided(answer: Answer) -> Response:
    """A decision, whatever it says."""
    found = answer.error
    if found is None:
        return Response(answer.http, _encode(answer), (_JSON,), "", answer)
    return Response(answer.http, _encode(answer), _headers(found), found.code, answer)


def _headers(found: Problem) -> Headers:
    if found.retry_after is None:
        return (_JSON,)
    return (_JSON, (b"retry-after", str(found.retry_after).encode()))


_STATUS = {row.code: row.http for row in ErrorCode}

Handler = Callable[[Call], Awaitable[Response]]


SURPRISE = 500
GONE = "gone"
"""In place of a status, where the client left before it had its answer."""


class Endpoint:
    """A handler as an ASGI application."""

    def __init__(
        self, handler: Handler, node: Callable[[], Node], meter: "Meter", *, decides: bool, always: bool
    ) -> None:
        self._handler = handler
        self._node = node
        self._meter = meter
        self._decides = decides
        self._always = always

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, node = perf_counter(), self._node()
        hold = node.pressure.pass_by() if self._always else node.pressure.enter()
        status: int | str = SURPRISE
        response: Response | None = None
        try:
            response = await self._answer(node, scope, receive, hold)
            await (hold or node.pressure.pass_by()).patiently(respond(send, response))
            status = response.status
        except (Gone, Late):
            status = GONE
        finally:
            if hold is not None:
                hold.leave()
            self._meter.count(status, response, perf_counter() - started)

    async def _answer(self, node: Node, scope: Scope, receive: Receive, hold: Hold | None) -> Response:
        if hold is None:
            return self._refused(_overloaded().problem)
        call = Call(node, scope, hold)
        try:
            call.refuse_repeated()
            if not self._always:
                await call.count_caller()
                call.body = await read_body(scope, receive, node.services.settings.max_body_bytes, hold)
            response = await self._handler(call)
        except Refused as error:
            response = self._refused(error.problem)
        except (StoreError, LimiterError, TimeoutError) as error:
            node.services.log.error("dependency failed: %s", error)
            part = "rate limiter" if isinstance(error, LimiterError) else "store"
            response = self._refused(problem(ErrorCode.DEPENDENCY_DOWN, f"the {part} does not answer", retry_after=1))
        allowance = call.caller.allowance
        return response if allowance is None else _with_allowance(response, allowance)

    def _refused(self, found: Problem) -> Response:
        return decided(Answer(decision=Decision.DENIED, error=found)) if self._decides else refused(found)


def _with_allowance(response: Response, left: Allowance) -> Response:
    told = (
        (b"x-ratelimit-limit", b"%d" % left.limit),
        (b"x-ratelimit-remaining", b"%d" % left.remaining),
        (b"x-ratelimit-reset", b"%d" % left.reset_seconds),
    )
    return response._replace(headers=response.headers + told)


async def respond(send: Send, response: Response) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(response.body)).encode())
    await send({"type": "http.response.start", "status": response.status, "headers": [*response.headers, length]})
    await send({"type": "http.response.body", "body": response.body})


async def read_body(scope: Scope, receive: Receive, most: int, hold: Hold) -> bytes:
    """The body, or Refused as soon as it is known to be too large, too slow or one too many."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            _require_room(int(value), most, hold)
    try:
        return await hold.patiently(_read(receive, most, hold))
    except Late:
        raise _too_slow() from None


def _require_room(size: int, most: int, hold: Hold) -> None:
    if size > most:
        raise _too_large(most)
    if not hold.has_room(size):
        raise _overloaded()


async def _read(receive: Receive, most: int, hold: Hold) -> bytes:
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if not hold.grow(len(chunk)):
            raise _overloaded()
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _overloaded() -> Refused:
    return Refused(problem(ErrorCode.OVERLOADED, retry_after=1))


def _too_slow() -> Refused:
    return Refused(problem(ErrorCode.OVERLOADED, "the body did not arrive in time", retry_after=1))


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
