"""Request context, responses and the ASGI endpoint that wraps every handler."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from qwed.api.server.admission import AdmissionController, AdmissionSlot
from qwed.api.server.body import (
    ClientDisconnectedError,
    Receive,
    RequestRejectedError,
    Scope,
    accept_body,
    malformed_error,
    overloaded_error,
    parse_json,
    read_body,
)
from qwed.api.server.rate_limit import RateLimiter
from qwed.api.server.streaming import Chunks, Send, Streams
from qwed.domain.agent import Agent, Key, is_agent_id
from qwed.domain.credentials import AGENT_TOKEN, API_KEY, matches, prefix_of
from qwed.fair_executor import FairExecutor
from qwed.futures import LoopRunner
from qwed.kernel.agents.names import resolve_agent_id
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.authentication import find_key, find_token_owner
from qwed.kernel.case import Credentials
from qwed.kernel.request import quoted
from qwed.kernel.services import Services
from qwed.model import Decision, ErrorCode
from qwed.ratelimit.limit_status import LimiterError, RateLimitStatus
from qwed.store.protocol import RefreshKeys, StoreError

if TYPE_CHECKING:
    from qwed.api.handlers.event_stream import Listeners
    from qwed.api.server.cluster_events import ClusterNotifier
    from qwed.api.server.metrics import Meter, Metrics
    from qwed.api.server.worker_group import WorkerGroup
    from qwed.kernel.verification.batch_runner import BatchRunner
    from qwed.tracing.tracer import Tracer
    from qwed.witness.witness import Witness
    from qwed_a2a.service import InterceptorService

READ_THREADS, BODY_THREADS = 4, 2
"""Pool sizes. Reads and large bodies have separate pools, so a list page never waits behind a large body."""
ENVELOPE_BYTES = 1 << 16
"""Bytes allowed around the payload of an A2A message: sender, receiver, time, metadata."""
SENDER_HEADER = b"qwed-agent-id"
"""Names the agent whose token is sent, on routes whose path does not."""
JSON_HEADER = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode

Headers = tuple[tuple[bytes, bytes], ...]
T = TypeVar("T")


class AppContext:
    """State shared by all requests of one application."""

    def __init__(self, services: Services, pressure: AdmissionController, rate_limiter: RateLimiter) -> None:
        self.services = services
        self.admission = pressure
        self.rate_limiter = rate_limiter
        self.streams = Streams(services.log)
        self.read_pool = FairExecutor(READ_THREADS, "qwed-read")
        """Runs blocking reads of the store."""
        self.large_body_pool = FairExecutor(BODY_THREADS, "qwed-cpu-large")
        """Analyses large bodies, which occupy a thread for long."""
        self.medium_body_pool = FairExecutor(BODY_THREADS, "qwed-cpu-medium")
        """Analyses medium bodies, so that they do not wait for the large ones."""
        self.metrics: Metrics
        self.batches: BatchRunner
        self.listeners: Listeners
        self.cluster: ClusterNotifier
        self.witness: Witness
        self.tracer: Tracer | None = None
        self.worker_group: WorkerGroup | None = None
        """Sibling worker processes on this machine; None in a single-process server."""
        self.interceptor: InterceptorService | None = None
        """Verifies A2A messages; created by the first one."""
        self.driver: LoopRunner
        """Set by the first request, because it belongs to the running event loop."""


class Response(NamedTuple):
    """HTTP response; `code` and `answer` are read by the metrics only."""

    status: int
    body: bytes
    headers: Headers = (JSON_HEADER,)
    code: str = ""
    answer: Answer | None = None
    chunks: Chunks | None = None
    """Streamed body; replaces `body`."""
    rate_limit: RateLimitStatus | None = None
    """Sent in the X-RateLimit headers."""


BODY_KEY = "qwed.body"
"""Scope key of the body of a fast-path request."""


async def receive_disconnect() -> dict[str, Any]:
    """ASGI receive callable of a fast-path request, whose body has been read already."""
    return {"type": "http.disconnect"}


_SINGLE_VALUE_HEADERS = frozenset(
    {b"x-api-key", b"authorization", SENDER_HEADER, b"idempotency-key", b"last-event-id", b"if-match"}
)


def _reject_repeated_headers(headers: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _value in headers if name in _SINGLE_VALUE_HEADERS]
    if len(names) != len(set(names)):
        raise malformed_error("a credential, idempotency key or event id is sent in more than one header: send it once")


class ProvenCredentials:
    """Credentials of one request that are valid; a later change of their rows is found by the kernel."""

    __slots__ = ("agent", "key", "organisation_id")

    def __init__(self) -> None:
        self.key: Key | None = None
        self.agent: Agent | None = None
        """Agent whose own token was sent."""
        self.organisation_id = ""
        """Organisation of the caller; empty if unauthenticated."""


class RequestContext:
    """One HTTP request. Its body is complete when the handler is called."""

    def __init__(self, app: AppContext, scope: Scope, slot: AdmissionSlot, receive: Receive) -> None:
        self.app = app
        self.services = app.services
        self.driver = app.driver
        self.scope = scope
        self.path: Mapping[str, str] = scope.get("path_params", {})
        self.body = b""
        self.caller = ProvenCredentials()
        self.rate_limit: RateLimitStatus | None = None
        """Tightest limit of the caller; None if it is unauthenticated or unlimited."""
        self._slot = slot
        self._receive = receive
        self.is_fast_path = receive is receive_disconnect
        """True for a request that runs without a task: it may await futures of the store only."""
        self._headers = dict(scope["headers"])
        self.api_key = self.header(b"x-api-key")
        """Organisation key from X-API-Key."""
        self.agent_token = _bearer(self.header(b"authorization"))
        """Agent token from the Authorization header."""

    def refuse_repeated(self) -> None:
        """Raise RequestRejectedError if a header that must have one value is repeated."""
        if len(self._headers) != len(self.scope["headers"]):
            _reject_repeated_headers(self.scope["headers"])

    def refuse_unknown(self, allowed: tuple[str, ...]) -> None:
        """Raise RequestRejectedError if the query string has a parameter that is not listed."""
        for name in self.query:
            if name not in allowed:
                listed = f"use one of {', '.join(allowed)}" if allowed else "this route takes none"
                raise RequestRejectedError(problem(ErrorCode.BAD_OPTION, f"unknown parameter {quoted(name)}: {listed}"))

    async def refresh_cache(self, *, any_age: bool = False) -> None:
        """Refresh the cached rows of the caller and of the agent in the path."""
        if not self.services.store.is_shared:
            return
        prefix = None if self.api_key is None else prefix_of(self.api_key, API_KEY)
        agent_id = self.path.get("agent_id") or self.header(SENDER_HEADER)
        future = self.services.store.refresh(RefreshKeys(prefix=prefix, agent_id=agent_id, allow_stale=any_age))
        if future is not None:
            await (future if self.is_fast_path else self.driver.result(future))

    async def authenticate(self) -> None:
        """Prove the credentials of the headers, and count the request against each that is valid.

        Raises RequestRejectedError over a limit. A credential that is not valid is refused later, by the handler.
        """
        store = self.services.store
        if store.is_shared:
            await self.refresh_cache(any_age=True)
        if self.api_key is not None:
            key = self.caller.key = find_key(self.api_key, store)
            if key is not None:
                self.caller.organisation_id = key.organisation_id
                await self._count(key.key_id, "key")
                await self._resolve_agent_name(key.organisation_id)
        if self.agent_token is not None:
            await self.count_token(self.agent_token)

    async def count_token(self, token: str | None) -> None:
        """Prove a token, and count the request against its agent; raise RequestRejectedError over the limit."""
        if token is None or self.caller.agent is not None:
            return  # the same token in header and body is one request
        agent_id = self.path.get("agent_id") or self.header(SENDER_HEADER)
        if agent_id is not None and not is_agent_id(agent_id):
            agent_id = await self._id_by_token(token, agent_id)
        agent = self.caller.agent = find_token_owner(token, agent_id, self.services.store)
        if agent is not None:
            self.caller.organisation_id = self.caller.organisation_id or agent.organisation_id
            await self._count(agent.agent_id, "token")

    async def _resolve_agent_name(self, organisation_id: str) -> None:
        """Replace the name of an agent in the path by its id; raise RequestRejectedError if several have the name."""
        text = self.path.get("agent_id")
        if text is None or is_agent_id(text):
            return
        agent_id = await self.run_blocking(resolve_agent_id, text, organisation_id, self.services.store)
        if isinstance(agent_id, Problem):
            raise RequestRejectedError(agent_id)
        self.path = {**self.path, "agent_id": agent_id}

    async def _id_by_token(self, token: str, name: str) -> str:
        """Return the id of the agent that has this token and this name; the name itself if there is none."""
        prefix = prefix_of(token, AGENT_TOKEN)
        if prefix is None:
            return name
        agent = await self.run_blocking(self.services.store.find_agent_of_token, prefix)
        if agent is None or not matches(token, agent.token_digest) or not agent.is_called(name):
            return name
        if self.path.get("agent_id") == name:
            self.path = {**self.path, "agent_id": agent.agent_id}
        return agent.agent_id

    async def _count(self, name: str, kind: str) -> None:
        limiter, tightest = self.app.rate_limiter, self.rate_limit
        status = await limiter.count(name)
        if status is None:
            return
        if tightest is None or status.remaining < tightest.remaining or not status.allowed:
            self.rate_limit = status
        if not status.allowed:
            limiter.rejected[kind] += 1
            message = f"rate limit reached: {status.limit} requests a minute with one key or token"
            raise RequestRejectedError(problem(ErrorCode.RATE_LIMITED, message, retry_after=status.reset_seconds))

    def credentials(self, token: str | None = None) -> Credentials:
        """Return the credentials with what is proven of them; `token` replaces that of the header."""
        return Credentials(
            api_key=self.api_key,
            agent_token=self.agent_token if token is None else token,
            proven_key=self.caller.key,
            proven_agent=self.caller.agent,
        )

    def waiting(self) -> AbstractContextManager[bool]:
        """Release the admission slot during a long poll: `with request.waiting() as may_wait:`."""
        return self._slot.waiting(self.caller.organisation_id)

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def run_blocking(self, work: Callable[..., T], *args: Any) -> T:
        """Run `work` in the read pool, scheduled fairly by organisation, and return its result."""
        return await self.app.read_pool.run(self.caller.organisation_id, work, *args)

    def header(self, name: bytes) -> str | None:
        """Return the value of a header by its lower-case name, or None."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @cached_property
    def query(self) -> dict[str, str]:
        """Query parameters; raises RequestRejectedError if one is repeated."""
        pairs = parse_qsl(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        query = dict(pairs)
        if len(query) != len(pairs):
            raise malformed_error("a query parameter is repeated: send it once")
        return query

    @property
    def is_form(self) -> bool:
        """True if the body is a multipart form."""
        return (self.header(b"content-type") or "").lower().startswith("multipart/form-data")

    def json(self) -> Any:
        """Parse the body as JSON; raise RequestRejectedError if it is invalid or too large without its file."""
        return parse_json(self.body, self.services.settings.max_body_bytes)


def _bearer(header: str | None) -> str | None:
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def json_response(value: Any, status: int = 200, etag: str | None = None) -> Response:
    """Return `value` as a JSON response."""
    headers = (JSON_HEADER,) if etag is None else (JSON_HEADER, (b"etag", etag.encode()))
    return Response(status, _encode(value), headers)


def stream_response(chunks: Chunks, *headers: tuple[bytes, bytes]) -> Response:
    """Return a response that streams `chunks`."""
    return Response(200, b"", headers, chunks=chunks)


def error_response(error: Problem) -> Response:
    """Return an error outside a decision: `{error: {...}}` with the status of its code."""
    return Response(_STATUS[error.code], _encode({"error": error}), _headers(error), error.code)


def decision_response(answer: Answer) -> Response:
    """Return a decision as a response."""
    error = answer.error
    if error is None:
        return Response(answer.http, _encode(answer), (JSON_HEADER,), "", answer)
    return Response(answer.http, _encode(answer), _headers(error), error.code, answer)


def _headers(error: Problem) -> Headers:
    if error.retry_after is None:
        return (JSON_HEADER,)
    return (JSON_HEADER, (b"retry-after", str(error.retry_after).encode()))


_STATUS = {row.code: row.http for row in ErrorCode}

Handler = Callable[[RequestContext], Awaitable[Response]]
Reply = Callable[[Response], None]


INTERNAL_ERROR_STATUS = 500
CLIENT_DISCONNECTED = "disconnected"
"""Metric label used in place of a status if the client disconnected before its body was complete."""


class Endpoint:
    """Handler as an ASGI application."""

    def __init__(
        self,
        handler: Handler,
        app: Callable[[], AppContext],
        meter: "Meter",
        *,
        is_decision: bool,
        exempt: bool,
        query: tuple[str, ...] = (),
        uploads: bool = False,
        large_message: bool = False,
    ) -> None:
        self._handler = handler
        self._app = app
        self._meter = meter
        self.is_decision = is_decision
        self._exempt = exempt
        self._skips_refresh = is_decision or exempt
        """True if no cache refresh precedes the handler: decisions refresh themselves, exempt routes read nothing."""
        self._query = query
        self._uploads = uploads
        self._large_message = large_message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._serve(scope, receive, perf_counter())
        if response is None:
            return
        if response.chunks is None:
            await respond(send, response)
        else:
            await _stream(self._app().streams, response, response.chunks, scope, receive, send)

    async def answer_inline(self, scope: Scope, since: float, reply: Reply) -> None:
        """Answer a fast-path request, which is complete, without a task."""
        response: Response | None = None
        try:
            response = await self._serve(scope, receive_disconnect, since)
        finally:
            # Without a task, nothing else would send a response. The event loop logs the exception.
            reply(self._refused(problem(ErrorCode.SERVER_ERROR)) if response is None else response)

    async def _serve(self, scope: Scope, receive: Receive, since: float) -> Response | None:
        """Return the response, counted in the metrics; None if the client disconnected first."""
        app = self._app()
        slot = app.admission.enter_uncounted() if self._exempt else app.admission.enter()
        status: int | str = INTERNAL_ERROR_STATUS
        response: Response | None = None
        try:
            response = await self._answer(app, scope, receive, slot)
            status = response.status
        except ClientDisconnectedError:
            status = CLIENT_DISCONNECTED
        finally:
            # Released before the response is sent: a client that does not read it must not occupy a slot.
            if slot is not None:
                slot.leave()
            self._meter.count(status, response, perf_counter() - since)
        return response

    async def _answer(self, app: AppContext, scope: Scope, receive: Receive, slot: AdmissionSlot | None) -> Response:
        if slot is None:
            return self._refused(overloaded_error().problem)
        request = RequestContext(app, scope, slot, receive)
        try:
            request.refuse_repeated()
            if not self._exempt:
                await request.authenticate()
                await self._read(request, receive, slot)
            if scope.get("query_string"):
                request.refuse_unknown(self._query)
            handle = (
                self._handler if self._skips_refresh or not request.services.store.is_shared else self._handle_refreshed
            )
            response = await handle(request)
        except RequestRejectedError as error:
            response = self._refused(error.problem)
        except LimiterError:
            # The limiter logs the outage once, not for every request.
            response = self._refused(_dependency_down("rate limiter"))
        except (StoreError, TimeoutError) as error:
            app.services.log.error("store request failed: %s", error)
            response = self._refused(_dependency_down("store"))
        rate_limit = request.rate_limit
        return response if rate_limit is None else _with_rate_limit(response, rate_limit)

    async def _read(self, request: RequestContext, receive: Receive, slot: AdmissionSlot) -> None:
        """Read the body if the caller's organisation may occupy the slot."""
        if not slot.assign_tenant(request.caller.organisation_id):
            raise overloaded_error()
        max_bytes = self._max_body_bytes(request)
        if request.is_fast_path:
            request.body = accept_body(request.scope[BODY_KEY], max_bytes, slot)
        else:
            request.body = await read_body(request.scope, receive, max_bytes, slot)

    async def _handle_refreshed(self, request: RequestContext) -> Response:
        """Refresh the cache after the body was read, which may take long, then call the handler."""
        await request.refresh_cache()
        return await self._handler(request)

    def _max_body_bytes(self, request: RequestContext) -> int:
        """Return the largest body allowed; uploads and large messages need an authenticated caller."""
        settings = request.services.settings
        if self._large_message:
            message = settings.a2a_max_payload_bytes + ENVELOPE_BYTES
            return message if request.caller.organisation_id else min(message, settings.max_body_bytes)
        file = settings.max_upload_bytes * 4 // 3 if self._uploads and request.caller.organisation_id else 0
        return settings.max_body_bytes + file

    def _refused(self, error: Problem) -> Response:
        return (
            decision_response(Answer(decision=Decision.DENIED, error=error))
            if self.is_decision
            else error_response(error)
        )


def _dependency_down(part: str) -> Problem:
    return problem(ErrorCode.DEPENDENCY_DOWN, f"the {part} does not answer", retry_after=1)


def _with_rate_limit(response: Response, left: RateLimitStatus) -> Response:
    status, body, headers, code, answer, chunks, _ = response
    return Response(status, body, headers, code, answer, chunks, left)


def headers_of(response: Response) -> list[tuple[bytes, bytes]]:
    """Return all headers of a response except its length."""
    left = response.rate_limit
    if left is None:
        return [*response.headers]
    return [
        *response.headers,
        (b"x-ratelimit-limit", b"%d" % left.limit),
        (b"x-ratelimit-remaining", b"%d" % left.remaining),
        (b"x-ratelimit-reset", b"%d" % left.reset_seconds),
    ]


async def respond(send: Send, response: Response) -> None:
    """Send a response that is not streamed."""
    length = (b"content-length", str(len(response.body)).encode())
    await send({"type": "http.response.start", "status": response.status, "headers": [*headers_of(response), length]})
    await send({"type": "http.response.body", "body": response.body})


async def _stream(
    streams: Streams, response: Response, chunks: Chunks, scope: Scope, receive: Receive, send: Send
) -> None:
    """Send a streamed response; a HEAD request receives the head only."""
    head = {"type": "http.response.start", "status": response.status, "headers": headers_of(response)}
    if scope["method"] != "HEAD":
        await streams.send(head, chunks, receive, send)
        return
    await chunks.aclose()
    await send(head)
    await send({"type": "http.response.body", "body": b""})
