"""The agent behind the proxy, spoken to in the binding that its card names; what it answers is bounded."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from qwed_a2a import strict
from qwed_a2a.proxy import sse
from qwed_a2a.proxy.beside import Beside
from qwed_a2a.proxy.faults import BY_CODE, Fault, Refused
from qwed_a2a.proxy.line import Answer, Broken, Lines, place_of, request_bytes
from qwed_a2a.proxy.terms import Event, Reply, Said
from qwed_a2a.proxy.verbs import Verb

RPC, REST = "JSONRPC", "HTTP+JSON"
Headers = tuple[tuple[bytes, bytes], ...]
_EVENTS = "text/event-stream"
_AGENT = "the agent behind the proxy"
"""In whose turn its answers are read; no client is called so."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What an agent may take and give."""

    seconds: float = 60.0
    """For an answer, and between two events of a stream."""
    stream_seconds: float = 3_600.0
    answer_bytes: int = 4_194_304
    """Of one answer, or one event."""
    stream_bytes: int = 67_108_864
    verdict_seconds: float = 30.0
    """For the kernel to say something; nothing is a refusal."""


class Endpoint(NamedTuple):
    """Where, and in which binding."""

    url: str
    binding: str
    tenant: str = ""
    """What is named to the agent where the client names none."""


class Upstream:
    """Asks the agent; Refused says what was wrong with it, in no word of its own."""

    def __init__(self, endpoint: Endpoint, bounds: Bounds, more: Headers = (), beside: Beside | None = None) -> None:
        self.bounds = bounds
        self._beside = beside or Beside()
        self._lines = Lines(place_of(endpoint.url))
        self._spelt = _SPELT[endpoint.binding]
        self._opened = _OPENED[endpoint.binding]
        self._more, self._tenant = more, endpoint.tenant

    async def call(self, verb: Verb, params: Said, headers: Headers) -> Any:
        """What it answers."""
        try:
            async with asyncio.timeout(self.bounds.seconds), self._asked(verb, params, headers) as answer:
                body = await _whole(answer, self.bounds.answer_bytes)
            return await self._read(body, answer, verb.value.brings)
        except Broken as error:
            raise _unusable(str(error)) from None
        except TimeoutError:
            raise _late(self.bounds.seconds) from None

    async def stream(self, verb: Verb, params: Said, headers: Headers) -> AsyncGenerator[Event, None]:
        """What it says, one after another."""
        bounds = self.bounds
        try:
            async with self._asked(verb, params, headers) as answer:
                async for data in _each(answer, bounds):
                    yield await self._read(data, answer, Event)
        except Broken as error:
            raise _unusable(str(error)) from None
        except TimeoutError:
            raise _late(bounds.seconds) from None

    @asynccontextmanager
    async def _asked(self, verb: Verb, params: Said, headers: Headers) -> AsyncIterator[Answer]:
        if self._tenant and not getattr(params, "tenant", ""):
            params = replace(params, tenant=self._tenant)
        method, path, body = self._spelt(verb, params)
        place = self._lines.place
        accept = (b"accept", b"text/event-stream" if verb.value.streams else b"application/json")
        ours = {name for name, _ in self._more}
        # Where the operator names a header, a client's never stands beside it.
        theirs = (header for header in headers if header[0] not in ours)
        sent = ((b"a2a-version", b"1.0"), accept, *self._more, *theirs)
        request = request_bytes(place, method, _below(place.path, path), sent, body)
        async with self._lines.asked(request, self.bounds.seconds) as answer:
            if answer.head.packed:
                raise Broken("it packs its answers, which it was asked not to")
            yield answer

    async def _read(self, body: bytes, answer: Answer, kind: type[Said]) -> Any:
        return await self._beside.run(_AGENT, len(body), _checked, body, answer, self._opened, kind)

    def close(self) -> None:
        """Hang up."""
        self._lines.close()


def _as_rpc(verb: Verb, params: Said) -> tuple[str, str, bytes]:
    return "POST", "", _encode({"jsonrpc": "2.0", "id": 1, "method": verb.value.rpc, "params": params})


def _as_rest(verb: Verb, params: Said) -> tuple[str, str, bytes]:
    row = verb.value
    told: dict[str, Any] = msgspec.to_builtins(params)
    tenant = told.pop("tenant", "")
    path = row.path
    if "{id}" in path:
        path = path.replace("{id}", quote(told.pop("id"), safe=""))
    before = f"/{quote(tenant, safe='')}" if tenant else ""
    if row.http == "POST":
        return "POST", before + path, _encode(params)
    query = urlencode({name: _plain(value) for name, value in told.items()})
    return row.http, f"{before}{path}?{query}" if query else before + path, b""


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _below(base: str, path: str) -> str:
    return base.rstrip("/") + path if path else base


def _from_rpc(value: Any, status: int) -> Any:
    if status != 200:
        raise Broken(f"it answered with HTTP status {status}")
    reply = strict.accepted(value, Reply)
    if reply.error:
        raise _its_own(BY_CODE.get(reply.error.code))
    return reply.result


def _from_rest(value: Any, status: int) -> Any:
    if status == 200 and not (isinstance(value, dict) and "error" in value):
        return value
    raise _its_own(_REASONS.get(_reason(value))) if _reason(value) else Broken(f"it answered with HTTP status {status}")


_REASONS = {fault.name: fault for fault in Fault}


def _reason(value: Any) -> str:
    error = value.get("error") if isinstance(value, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    found = [each["reason"] for each in details or () if isinstance(each, dict) and isinstance(each.get("reason"), str)]
    return found[0] if found else ""


_Opened = Callable[[Any, int], Any]
_SPELT: dict[str, Callable[[Verb, Said], tuple[str, str, bytes]]] = {RPC: _as_rpc, REST: _as_rest}
_OPENED: dict[str, _Opened] = {RPC: _from_rpc, REST: _from_rest}


async def _whole(answer: Answer, most: int) -> bytes:
    body = bytearray()
    async for chunk in answer.chunks:
        body += chunk
        if len(body) > most:
            raise Broken(f"its answer has more than {most} bytes")
    return bytes(body)


async def _each(answer: Answer, bounds: Bounds) -> AsyncIterator[bytes]:
    chunks = _patiently(answer.chunks, bounds)
    if answer.head.kind == _EVENTS:
        async for data in sse.events(chunks, bounds.answer_bytes):
            yield data
    else:
        # An error before the first event comes as a plain answer.
        yield await _whole(Answer(answer.head, chunks), bounds.answer_bytes)


async def _patiently(chunks: AsyncIterator[bytes], bounds: Bounds) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    left, ends = bounds.stream_bytes, clock() + bounds.stream_seconds
    while True:
        # Not around the yield: what happens there is not ours to end.
        async with asyncio.timeout(min(bounds.seconds, ends - clock())):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        left -= len(chunk)
        if left < 0:
            raise Broken(f"its stream has more than {bounds.stream_bytes} bytes")
        yield chunk


def _checked(body: bytes, answer: Answer, opened: _Opened, kind: type[Said]) -> Any:
    try:
        return strict.accepted(opened(strict.parse(body), answer.head.status), kind)
    except strict.Unreadable:
        # What it says instead is not repeated: nobody has looked at it.
        status = answer.head.status
        raise Broken(
            "its answer is not A2A 1.0" if status == 200 else f"it answered with HTTP status {status}"
        ) from None


def _its_own(fault: Fault | None) -> Refused:
    """An error of the agent: which one it is passes, what it says of it does not."""
    found = fault or Fault.INTERNAL_ERROR
    return Refused(found, f"the agent answered: {found.value.meaning}", {"source": "upstream"})


def _unusable(why: str) -> Refused:
    return Refused(Fault.INVALID_AGENT_RESPONSE, f"the agent did not answer: {why}", {"source": "upstream"}, http=502)


def _late(seconds: float) -> Refused:
    said = f"the agent did not answer within {seconds:g} seconds"
    return Refused(Fault.INVALID_AGENT_RESPONSE, said, {"source": "upstream"}, http=504)
