"""One call over HTTP: its caller counted, its body read within limits, its answer sent. The same for every route."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from qwed.api.beside import Beside
from qwed.api.body import Gone, Receive, Refused, Scope, malformed, overloaded, parse_json, read_body, take_body
from qwed.api.pressure import Hold, Pressure
from qwed.api.streaming import Chunks, Send, Streams
from qwed.api.windows import Caller, Windows
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.limits.allowance import Allowance, LimiterError
from qwed.store.credentials import API_KEY, prefix_of
from qwed.store.protocol import StoreError, Wanted
from qwed.waiting import LoopDriver
from qwed.words import Decision, ErrorCode

if TYPE_CHECKING:
    from qwed.api.crew import Crew
    from qwed.api.events import Listeners
    from qwed.api.metrics import Meter, Metrics
    from qwed.api.neighbours import Neighbours
    from qwed.kernel.inquiries.batches import Batches
    from qwed.tracing.tracer import Tracer
    from qwed.witness.witness import Witness
    from qwed_a2a.desk import Desk

LOOKING, WALKING = 4, 2
"""Threads for each: apart, because a page of a list must not wait for a megabyte that is looked through."""
ENVELOPE = 1 << 16
"""Bytes of a message between agents that are not its payload: who sends to whom, when, and its metadata."""
SENDER_HEADER = b"qwed-agent-id"
"""Whose token is shown, where the path does not say it."""
JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode

Headers = tuple[tuple[bytes, bytes], ...]
T = TypeVar("T")


class Node:
    """What every call of one application shares."""

    def __init__(self, services: Services, pressure: Pressure, windows: Windows) -> None:
        self.services = services
        self.pressure = pressure
        self.windows = windows
        self.streams = Streams(services.log)
        self.looking = Beside(LOOKING, "qwed-look")
        """For whoever looks at what is kept."""
        self.walking = Beside(WALKING, "qwed-walk")
        """For walks over much text, which keep a thread busy for long."""
        self.strolling = Beside(WALKING, "qwed-stroll")
        """For shorter ones, which must not wait for those."""
        self.metrics: Metrics
        self.batches: Batches
        self.listeners: Listeners
        self.neighbours: Neighbours
        self.witness: Witness
        self.tracer: Tracer | None = None
        self.crew: Crew | None = None
        """The other workers on this machine, where there are any."""
        self.desk: Desk | None = None
        """Who judges messages between agents; there from the first one on."""
        self.driver: LoopDriver
        """Set when the first call arrives, because it belongs to the loop that runs then."""


class Response(NamedTuple):
    """What goes back; `code` and `answer` are for the metrics."""

    status: int
    body: bytes
    headers: Headers = (JSON,)
    code: str = ""
    answer: Answer | None = None
    chunks: Chunks | None = None
    """In place of a body: what is sent piece by piece."""
    allowance: Allowance | None = None
    """What is left of the caller's window, which stands in headers of its own."""


BODY = "qwed.body"
"""Where the scope of a request that came whole holds its body."""


async def nothing_more() -> dict[str, Any]:
    """What such a request receives."""
    return {"type": "http.disconnect"}


_ONCE = frozenset({b"x-api-key", b"authorization", SENDER_HEADER, b"idempotency-key", b"last-event-id"})


def _refuse_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _value in headers if name in _ONCE]
    if len(names) != len(set(names)):
        raise malformed("a credential, a key or a place in the log stands in more than one header: send it once")


_NOTHING_LEFT = Allowance(0, 0, 1, allowed=False)


class Call:
    """A request. Its body is there when the handler is called."""

    def __init__(self, node: Node, scope: Scope, hold: Hold, receive: Receive) -> None:
        self.node = node
        self.services = node.services
        self.driver = node.driver
        self.scope = scope
        self.path: Mapping[str, str] = scope.get("path_params", {})
        self.body = b""
        self.caller = Caller()
        self._hold = hold
        self._receive = receive
        self.errand = receive is nothing_more
        """Whether its request came whole: then it has no task, and waits for tickets alone."""
        self._headers = dict(scope["headers"])
        self.api_key = self.header(b"x-api-key")
        """The organisation key the caller shows."""
        self.agent_token = _bearer(self.header(b"authorization"))
        """The agent token the caller shows in a header."""

    def refuse_repeated(self) -> None:
        """Refused where a credential, or whatever else has one value, stands in more than one header."""
        if len(self._headers) != len(self.scope["headers"]):
            _refuse_repeated(self.scope["headers"])

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Refused where the query string has a parameter that is none of these."""
        for name in self.query:
            if name not in known:
                listed = f"known are {', '.join(known)}" if known else "this route has none"
                raise Refused(problem(ErrorCode.BAD_OPTION, f"unknown parameter {quoted(name)}: {listed}"))

    async def freshen(self, *, any_age: bool = False) -> None:
        """Make near what others may have changed of the caller, and of the agent in the path."""
        freshen = self.services.store.freshen
        if freshen is None:
            return
        prefix = None if self.api_key is None else prefix_of(self.api_key, API_KEY)
        agent_id = self.path.get("agent_id") or self.header(SENDER_HEADER)
        ticket = freshen(Wanted(prefix=prefix, agent_id=agent_id, any_age=any_age))
        if ticket is not None:
            await (ticket if self.errand else self.driver.result(ticket))

    async def count_caller(self) -> None:
        """Count the request in the windows of the key and the token it shows; Refused where one is full."""
        key, token = self.api_key, self.agent_token
        if self.services.store.freshen is not None:
            await self.freshen(any_age=True)
        if key is not None and not await self.node.windows.count_key(self.caller, key):
            raise self._limited()
        if token is not None:
            await self.count_token(token)

    async def count_token(self, token: str | None) -> None:
        """Count the request in the window of the agent in the path, if `token` is its own; Refused if that is full."""
        agent_id = self.path.get("agent_id") or self.header(SENDER_HEADER)
        if token is not None and not await self.node.windows.count_token(self.caller, token, agent_id):
            raise self._limited()

    def _limited(self) -> Refused:
        limit, _left, seconds, _allowed = self.caller.allowance or _NOTHING_LEFT
        message = f"rate limit reached: {limit} requests a minute with one key or token"
        return Refused(problem(ErrorCode.RATE_LIMITED, message, retry_after=seconds))

    def waiting(self) -> AbstractContextManager[bool]:
        """`with call.waiting() as may_wait:` gives this call's place to another while it waits, if it may."""
        return self._hold.waiting(self.caller.organisation_id)

    async def hung_up(self) -> None:
        """Returns when the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def look(self, look: Callable[..., T], *given: Any) -> T:
        """What `look` finds, in a thread, when it is the turn of the caller's organisation."""
        return await self.node.looking.run(self.caller.organisation_id, look, *given)

    def header(self, name: bytes) -> str | None:
        """One header by its lower-case name; the last one wins, as no header of ours may repeat."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @cached_property
    def query(self) -> dict[str, str]:
        """The query string; Refused where a parameter stands in it twice."""
        pairs = parse_qsl(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        query = dict(pairs)
        if len(query) != len(pairs):
            raise malformed("a parameter stands twice in the query: give it once")
        return query

    @property
    def is_form(self) -> bool:
        """Whether the body is a form with a file."""
        return (self.header(b"content-type") or "").lower().startswith("multipart/form-data")

    def json(self) -> Any:
        """The body as a JSON value; Refused if it is none, or if something else than a file is large in it."""
        return parse_json(self.body, self.services.settings.max_body_bytes)


def _bearer(header: str | None) -> str | None:
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def ok(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(status, _encode(value))


def streamed(chunks: Chunks, *headers: tuple[bytes, bytes]) -> Response:
    """Bytes that come piece by piece, under headers that say what they are."""
    return Response(200, b"", headers, chunks=chunks)


def refused(found: Problem) -> Response:
    """An error outside a decision: `{error: {...}}` with the status of its code."""
    return Response(_STATUS[found.code], _encode({"error": found}), _headers(found), found.code)


def decided(answer: Answer) -> Response:
    """A decision, whatever it says."""
    found = answer.error
    if found is None:
        return Response(answer.http, _encode(answer), (JSON,), "", answer)
    return Response(answer.http, _encode(answer), _headers(found), found.code, answer)


def _headers(found: Problem) -> Headers:
    if found.retry_after is None:
        return (JSON,)
    return (JSON, (b"retry-after", str(found.retry_after).encode()))


_STATUS = {row.code: row.http for row in ErrorCode}

Handler = Callable[[Call], Awaitable[Response]]
Reply = Callable[[Response], None]


SURPRISE = 500
GONE = "gone"
"""In place of a status, where the client left before its body was whole."""


class Endpoint:
    """A handler as an ASGI application."""

    def __init__(
        self,
        handler: Handler,
        node: Callable[[], Node],
        meter: "Meter",
        *,
        decides: bool,
        always: bool,
        query: tuple[str, ...] = (),
        uploads: bool = False,
        carries: bool = False,
    ) -> None:
        self._handler = handler
        self._node = node
        self._meter = meter
        self.decides = decides
        self._always = always
        self._by_itself = decides or always
        """Whether nothing is made near for it: a decision does that by itself, and the others look at nothing."""
        self._query = query
        self._uploads = uploads
        self._carries = carries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, node = perf_counter(), self._node()
        hold = node.pressure.pass_by() if self._always else node.pressure.enter()
        status: int | str = SURPRISE
        response: Response | None = None
        try:
            response = await self._answer(node, scope, receive, hold)
            status = response.status
        except Gone:
            status = GONE
        finally:
            # Before it is sent: a client that does not take its answer keeps nobody else waiting.
            if hold is not None:
                hold.leave()
            self._meter.count(status, response, perf_counter() - started)
        if response is None:
            return
        if response.chunks is None:
            await respond(send, response)
        else:
            await _stream(node.streams, response, response.chunks, scope, receive, send)

    async def straight(self, scope: Scope, since: float, reply: Reply) -> None:
        """Answer a request that came whole: an errand, which waits for tickets alone."""
        node = self._node()
        hold = node.pressure.enter()
        response: Response | None = None
        try:
            response = await self._answer(node, scope, nothing_more, hold)
        finally:
            if hold is not None:
                hold.leave()
            # Nobody else would answer: what was surprised here is told to the log by the loop.
            reply(self._refused(problem(ErrorCode.SURPRISE)) if response is None else response)
            self._meter.count(SURPRISE if response is None else response.status, response, perf_counter() - since)

    async def _answer(self, node: Node, scope: Scope, receive: Receive, hold: Hold | None) -> Response:
        if hold is None:
            return self._refused(overloaded().problem)
        call = Call(node, scope, hold, receive)
        try:
            call.refuse_repeated()
            if not self._always:
                await call.count_caller()
                await self._read(call, receive, hold)
            if scope.get("query_string"):
                call.refuse_unknown(self._query)
            handle = self._handler if self._by_itself or call.services.store.freshen is None else self._freshened
            response = await handle(call)
        except Refused as error:
            response = self._refused(error.problem)
        except LimiterError:
            # Said once by the limiter itself, and not again for every request.
            response = self._refused(_down("rate limiter"))
        except (StoreError, TimeoutError) as error:
            node.services.log.error("dependency failed: %s", error)
            response = self._refused(_down("store"))
        allowance = call.caller.allowance
        return response if allowance is None else _with_allowance(response, allowance)

    async def _read(self, call: Call, receive: Receive, hold: Hold) -> None:
        """Take the body, if its caller may have another one under way."""
        if not hold.belongs_to(call.caller.organisation_id):
            raise overloaded()
        most = self._most(call)
        if call.errand:
            call.body = take_body(call.scope[BODY], most, hold)
        else:
            call.body = await read_body(call.scope, receive, most, hold)

    async def _freshened(self, call: Call) -> Response:
        """Once the body is there, which may have taken its time."""
        await call.freshen()
        return await self._handler(call)

    def _most(self, call: Call) -> int:
        """The largest body: a file, four thirds of its size in base64, or a large message only from someone we know."""
        settings = call.services.settings
        if self._carries:
            message = settings.a2a_max_payload_bytes + ENVELOPE
            return message if call.caller.organisation_id else min(message, settings.max_body_bytes)
        file = settings.max_upload_bytes * 4 // 3 if self._uploads and call.caller.organisation_id else 0
        return settings.max_body_bytes + file

    def _refused(self, found: Problem) -> Response:
        return decided(Answer(decision=Decision.DENIED, error=found)) if self.decides else refused(found)


def _down(part: str) -> Problem:
    return problem(ErrorCode.DEPENDENCY_DOWN, f"the {part} does not answer", retry_after=1)


def _with_allowance(response: Response, left: Allowance) -> Response:
    status, body, headers, code, answer, chunks, _ = response
    return Response(status, body, headers, code, answer, chunks, left)


def headers_of(response: Response) -> list[tuple[bytes, bytes]]:
    """All headers of a response, its length apart."""
    left = response.allowance
    if left is None:
        return [*response.headers]
    return [
        *response.headers,
        (b"x-ratelimit-limit", b"%d" % left.limit),
        (b"x-ratelimit-remaining", b"%d" % left.remaining),
        (b"x-ratelimit-reset", b"%d" % left.reset_seconds),
    ]


async def respond(send: Send, response: Response) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(response.body)).encode())
    await send({"type": "http.response.start", "status": response.status, "headers": [*headers_of(response), length]})
    await send({"type": "http.response.body", "body": response.body})


async def _stream(
    streams: Streams, response: Response, chunks: Chunks, scope: Scope, receive: Receive, send: Send
) -> None:
    """Send a response without a length; of one that was asked for with HEAD, the head alone."""
    head = {"type": "http.response.start", "status": response.status, "headers": headers_of(response)}
    if scope["method"] != "HEAD":
        await streams.send(head, chunks, receive, send)
        return
    await chunks.aclose()
    await send(head)
    await send({"type": "http.response.body", "body": b""})
