"""Client for the agent behind the proxy, in the binding that its card names; its answers are bounded."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from qwed.fair_executor import FairExecutor
from qwed.http_client.pool import ConnectionPool, Headers, HttpError, HttpResponse, encode_request, parse_http_address
from qwed_a2a import strict_schema
from qwed_a2a.proxy import sse
from qwed_a2a.proxy.errors import ERROR_BY_CODE, CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import A2AStruct, JsonRpcResponse, StreamResponse
from qwed_a2a.proxy.methods import A2AMethod
from qwed_a2a.proxy.parsing_pool import new_parsing_pool

RPC, REST = "JSONRPC", "HTTP+JSON"
_EVENT_STREAM = "text/event-stream"
_UPSTREAM_OWNER = "the agent behind the proxy"
"""Owner of the agent's answers in the parsing pool; no client has this name."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class UpstreamLimits:
    """Limits on time and size for an agent."""

    seconds: float = 60.0
    """For an answer, and between two events of a stream."""
    stream_seconds: float = 3_600.0
    answer_bytes: int = 4_194_304
    """For one answer, or one event."""
    stream_bytes: int = 67_108_864
    verdict_seconds: float = 30.0
    """For a verdict of the backend; without one the message is refused."""


class UpstreamEndpoint(NamedTuple):
    """URL and binding of the agent."""

    url: str
    binding: str
    tenant: str = ""
    """Tenant to use if the client names none."""


class UpstreamAgent:
    """Client of the agent; it raises CallRefusedError, whose text does not quote the agent."""

    def __init__(
        self,
        endpoint: UpstreamEndpoint,
        limits: UpstreamLimits,
        extra_headers: Headers = (),
        parsing_pool: FairExecutor | None = None,
    ) -> None:
        self.limits = limits
        self._parsing_pool = parsing_pool or new_parsing_pool()
        self._pool = ConnectionPool(parse_http_address(endpoint.url))
        self._encode = _ENCODERS[endpoint.binding]
        self._decode = _DECODERS[endpoint.binding]
        self._extra_headers, self._tenant = extra_headers, endpoint.tenant

    async def call(self, method: A2AMethod, params: A2AStruct, headers: Headers) -> Any:
        """Return the agent's answer."""
        try:
            async with asyncio.timeout(self.limits.seconds), self._send(method, params, headers) as answer:
                body = await answer.read(self.limits.answer_bytes)
            return await self._read(body, answer, method.value.result_type)
        except HttpError as error:
            raise _upstream_failed(str(error)) from None
        except TimeoutError:
            raise _upstream_timeout(self.limits.seconds) from None

    async def stream(
        self, method: A2AMethod, params: A2AStruct, headers: Headers
    ) -> AsyncGenerator[StreamResponse, None]:
        """Yield the agent's answers."""
        limits = self.limits
        try:
            async with self._send(method, params, headers) as answer:
                async for data in _iterate_bodies(answer, limits):
                    yield await self._read(data, answer, StreamResponse)
        except HttpError as error:
            raise _upstream_failed(str(error)) from None
        except TimeoutError:
            raise _upstream_timeout(limits.seconds) from None

    @asynccontextmanager
    async def _send(self, method: A2AMethod, params: A2AStruct, headers: Headers) -> AsyncIterator[HttpResponse]:
        if self._tenant and not getattr(params, "tenant", ""):
            params = replace(params, tenant=self._tenant)
        http_method, path, body = self._encode(method, params)
        address = self._pool.address
        accept = (b"accept", b"text/event-stream" if method.value.streams else b"application/json")
        operator_names = {name for name, _ in self._extra_headers}
        # A header that the operator sets is never sent with the client's value too.
        client_headers = (header for header in headers if header[0] not in operator_names)
        all_headers = ((b"a2a-version", b"1.0"), accept, *self._extra_headers, *client_headers)
        request = encode_request(address, http_method, _join_path(address.path, path), all_headers, body)
        async with self._pool.request(request, self.limits.seconds) as answer:
            answer.require_uncompressed()
            yield answer

    async def _read(self, body: bytes, answer: HttpResponse, kind: type[A2AStruct]) -> Any:
        return await self._parsing_pool.run(
            _UPSTREAM_OWNER, _parse_answer, body, answer, self._decode, kind, size=len(body)
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def _encode_rpc(method: A2AMethod, params: A2AStruct) -> tuple[str, str, bytes]:
    return "POST", "", _encode({"jsonrpc": "2.0", "id": 1, "method": method.value.rpc, "params": params})


def _encode_rest(method: A2AMethod, params: A2AStruct) -> tuple[str, str, bytes]:
    row = method.value
    members: dict[str, Any] = msgspec.to_builtins(params)
    tenant = members.pop("tenant", "")
    path = row.path
    if "{id}" in path:
        path = path.replace("{id}", quote(members.pop("id"), safe=""))
    prefix = f"/{quote(tenant, safe='')}" if tenant else ""
    if row.http_method == "POST":
        return "POST", prefix + path, _encode(params)
    query = urlencode({name: _query_value(value) for name, value in members.items()})
    return row.http_method, f"{prefix}{path}?{query}" if query else prefix + path, b""


def _query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _join_path(base: str, path: str) -> str:
    return base.rstrip("/") + path if path else base


def _decode_rpc(value: Any, status: int) -> Any:
    if status != 200:
        raise HttpError(f"it answered with HTTP status {status}")
    reply = strict_schema.convert_lenient(value, JsonRpcResponse)
    if reply.error:
        raise _agent_error(ERROR_BY_CODE.get(reply.error.code))
    return reply.result


def _decode_rest(value: Any, status: int) -> Any:
    if status == 200 and not (isinstance(value, dict) and "error" in value):
        return value
    raise (
        _agent_error(_ERROR_BY_REASON.get(_error_reason(value)))
        if _error_reason(value)
        else HttpError(f"it answered with HTTP status {status}")
    )


_ERROR_BY_REASON = {kind.name: kind for kind in ErrorKind}


def _error_reason(value: Any) -> str:
    error = value.get("error") if isinstance(value, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    reasons = [
        detail["reason"]
        for detail in details or ()
        if isinstance(detail, dict) and isinstance(detail.get("reason"), str)
    ]
    return reasons[0] if reasons else ""


_Decoder = Callable[[Any, int], Any]
_ENCODERS: dict[str, Callable[[A2AMethod, A2AStruct], tuple[str, str, bytes]]] = {RPC: _encode_rpc, REST: _encode_rest}
_DECODERS: dict[str, _Decoder] = {RPC: _decode_rpc, REST: _decode_rest}


async def _iterate_bodies(answer: HttpResponse, limits: UpstreamLimits) -> AsyncIterator[bytes]:
    chunks = _limited_chunks(answer.chunks, limits)
    if answer.head.media_type == _EVENT_STREAM:
        async for data in sse.read_events(chunks, limits.answer_bytes):
            yield data
    else:
        # An error before the first event arrives as a plain answer.
        yield await HttpResponse(answer.head, chunks).read(limits.answer_bytes)


async def _limited_chunks(chunks: AsyncIterator[bytes], limits: UpstreamLimits) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    left, ends = limits.stream_bytes, clock() + limits.stream_seconds
    while True:
        # Not around the yield: the timeout must not end the consumer's work.
        async with asyncio.timeout(min(limits.seconds, ends - clock())):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        left -= len(chunk)
        if left < 0:
            raise HttpError(f"its stream has more than {limits.stream_bytes} bytes")
        yield chunk


def _parse_answer(body: bytes, answer: HttpResponse, decode: _Decoder, kind: type[A2AStruct]) -> Any:
    try:
        return strict_schema.convert_lenient(decode(strict_schema.parse(body), answer.head.status), kind)
    except strict_schema.StrictSchemaError:
        # The answer is not quoted: it was not verified.
        status = answer.head.status
        raise HttpError(
            "its answer is not A2A 1.0" if status == 200 else f"it answered with HTTP status {status}"
        ) from None


def _agent_error(kind: ErrorKind | None) -> CallRefusedError:
    """Return the agent's error: its kind is forwarded, its text is not."""
    error_kind = kind or ErrorKind.INTERNAL_ERROR
    return CallRefusedError(error_kind, f"the agent answered: {error_kind.value.meaning}", {"source": "upstream"})


def _upstream_failed(reason: str) -> CallRefusedError:
    return CallRefusedError(
        ErrorKind.INVALID_AGENT_RESPONSE, f"the agent did not answer: {reason}", {"source": "upstream"}, http=502
    )


def _upstream_timeout(seconds: float) -> CallRefusedError:
    message = f"the agent did not answer within {seconds:g} seconds"
    return CallRefusedError(ErrorKind.INVALID_AGENT_RESPONSE, message, {"source": "upstream"}, http=504)
