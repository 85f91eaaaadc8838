"""The HTTP gateway for other applications: `POST /a2a/intercept`, `GET /a2a/health` and `GET /a2a/metrics`.

Whatever is mounted in another application has that application's doors before it. Who sends is proven by `authorise`
or by nobody: without it no message is spared verification, and nobody speaks in the name of an agent that is trusted.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

import qwed
from qwed.kernel.answer import HTTP, Problem, problem
from qwed.kernel.request import quoted
from qwed.words import ErrorCode
from qwed_a2a.boundary import TrustBoundary
from qwed_a2a.desk import new_trace_id
from qwed_a2a.interceptor import A2AVerificationInterceptor
from qwed_a2a.message import AgentMessage
from qwed_a2a.strict import Unreadable, parse
from qwed_a2a.taking import take_message

Authorise = Callable[[Request], str | Awaitable[str | None] | None]
"""The id of the agent that a request is proven to come from; None where it proves nothing."""

ENVELOPE = 65_536
"""Bytes of a body beside its payload."""
_LENGTH = re.compile("[0-9]{1,19}")


class Refused(Exception):
    """A request that gets no verdict."""

    def __init__(self, found: Problem) -> None:
        super().__init__(found.message)
        self.problem = found


def router(
    interceptor: A2AVerificationInterceptor,
    *,
    authorise: Authorise | None = None,
    prefix: str = "/a2a",
    body_seconds: float = 30.0,
) -> Router:
    """An application of three routes: mount it, run it alone, or take its `routes` into your own."""
    gateway = Gateway(interceptor, authorise, body_seconds)
    return Router(
        [
            Route(f"{prefix}/intercept", gateway.intercept, methods=["POST"]),
            Route(f"{prefix}/health", gateway.health, methods=["GET"]),
            Route(f"{prefix}/metrics", gateway.metrics, methods=["GET"]),
        ]
    )


class Gateway:
    """Answers the three routes."""

    def __init__(
        self, interceptor: A2AVerificationInterceptor, authorise: Authorise | None, body_seconds: float
    ) -> None:
        self._interceptor = interceptor
        self._authorise = authorise
        self._body_seconds = body_seconds
        self._most = interceptor.config.max_payload_size_bytes + ENVELOPE

    async def intercept(self, request: Request) -> Response:
        """200 with the verdict, whatever it says; 400, 401, 413 or 503 where there is none."""
        try:
            message = await self._message(request)
            proven = await self._proves(request, message.sender_agent_id)
        except Refused as refused:
            return _refusal(refused.problem)
        # The time is ours: a sender that could choose it would choose how long its attestation is valid.
        trace_id, now = new_trace_id(), self._interceptor.now()
        verdict = await self._interceptor.intercept(message, trace_id, proven=proven, at=now)
        return JSONResponse(verdict.to_dict())

    async def health(self, _request: Request) -> Response:
        """The gateway answers, and which version it is."""
        return JSONResponse({"status": "ok", "version": qwed.__version__})

    async def metrics(self, request: Request) -> Response:
        """The numbers so far; where somebody tells who asks, only for those who prove it."""
        if self._authorise is not None and await self._shown(request) is None:
            return _refusal(problem(ErrorCode.UNKNOWN_CREDENTIAL))
        return JSONResponse(self._interceptor.metrics.snapshot())

    async def _message(self, request: Request) -> AgentMessage:
        try:
            message = take_message(parse(await _body(request, self._most, self._body_seconds)))
        except Unreadable as wrong:
            raise Refused(problem(ErrorCode.MALFORMED, str(wrong))) from None
        if isinstance(message, Problem):
            raise Refused(message)
        return message

    async def _proves(self, request: Request, sender: str) -> bool:
        shown = await self._shown(request)
        if shown == sender:
            return True
        if shown is not None or self._is_trusted(sender):
            told = f"it is not proven that {quoted(sender)} sends this"
            raise Refused(problem(ErrorCode.UNKNOWN_CREDENTIAL, told))
        return False

    async def _shown(self, request: Request) -> str | None:
        if self._authorise is None:
            return None
        shown = self._authorise(request)
        return await shown if inspect.isawaitable(shown) else shown

    def _is_trusted(self, sender: str) -> bool:
        boundary = self._interceptor.boundary
        listed = isinstance(boundary, TrustBoundary) and boundary.trusts(sender)
        return listed or sender in (self._interceptor.config.trusted_agents or ())


async def _body(request: Request, most: int, seconds: float) -> bytes:
    """The body, or Refused as soon as it is known to be too large or too slow."""
    said = request.headers.get("content-length", "0")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            _require_room(int(said) if _LENGTH.fullmatch(said) else 0, most)
            async for chunk in request.stream():
                _require_room(len(body) + len(chunk), most)
                body += chunk
    except TimeoutError:
        raise Refused(problem(ErrorCode.OVERLOADED, f"the body did not come within {seconds:g} seconds")) from None
    except ClientDisconnect:
        raise Unreadable("the body did not come whole") from None
    return bytes(body)


def _require_room(size: int, most: int) -> None:
    if size > most:
        raise Refused(problem(ErrorCode.TOO_LARGE, f"the body is larger than {most} bytes"))


def _refusal(found: Problem) -> Response:
    return JSONResponse({"error": msgspec.to_builtins(found)}, HTTP[found.code])
