"""HTTP gateway for other applications: `POST /a2a/intercept`, `GET /a2a/health` and `GET /a2a/metrics`.

The application that mounts it does its own admission. Only `authorise` proves who sends: without it no message skips
verification, and no caller can send as a trusted agent.
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
from qwed.model import ErrorCode
from qwed_a2a.intercept_request import parse_message
from qwed_a2a.interceptor import A2AVerificationInterceptor
from qwed_a2a.message import AgentMessage
from qwed_a2a.service import new_trace_id
from qwed_a2a.strict_schema import StrictSchemaError, parse
from qwed_a2a.trust_boundary import TrustBoundary

Authorise = Callable[[Request], str | Awaitable[str | None] | None]
"""Returns the id of the agent that the request is proven to come from, or None."""

ENVELOPE_BYTES = 65_536
"""Size of a body without its payload."""
_LENGTH = re.compile("[0-9]{1,19}")


class GatewayError(Exception):
    """Request that gets no verdict."""

    def __init__(self, cause: Problem) -> None:
        super().__init__(cause.message)
        self.problem = cause


def router(
    interceptor: A2AVerificationInterceptor,
    *,
    authorise: Authorise | None = None,
    prefix: str = "/a2a",
    body_seconds: float = 30.0,
) -> Router:
    """Return an application with three routes: mount it, run it alone, or add its `routes` to your own."""
    gateway = Gateway(interceptor, authorise, body_seconds)
    return Router(
        [
            Route(f"{prefix}/intercept", gateway.intercept, methods=["POST"]),
            Route(f"{prefix}/health", gateway.health, methods=["GET"]),
            Route(f"{prefix}/metrics", gateway.metrics, methods=["GET"]),
        ]
    )


class Gateway:
    """Handlers of the three routes."""

    def __init__(
        self, interceptor: A2AVerificationInterceptor, authorise: Authorise | None, body_seconds: float
    ) -> None:
        self._interceptor = interceptor
        self._authorise = authorise
        self._body_seconds = body_seconds
        self._most = interceptor.config.max_payload_size_bytes + ENVELOPE_BYTES

    async def intercept(self, request: Request) -> Response:
        """Return 200 with the verdict, whatever its status, or 400, 401, 413 or 503 if there is none."""
        try:
            message = await self._message(request)
            proven = await self._is_proven(request, message.sender_agent_id)
        except GatewayError as error:
            return _error_response(error.problem)
        # The gateway's time: a sender that could choose it would choose how long its attestation is valid.
        trace_id, now = new_trace_id(), self._interceptor.now()
        verdict = await self._interceptor.intercept(message, trace_id, proven=proven, at=now)
        return JSONResponse(verdict.to_dict())

    async def health(self, _request: Request) -> Response:
        """Return the status and the version."""
        return JSONResponse({"status": "ok", "version": qwed.__version__})

    async def metrics(self, request: Request) -> Response:
        """Return the counters; with `authorise`, only to authenticated callers."""
        if self._authorise is not None and await self._authenticate(request) is None:
            return _error_response(problem(ErrorCode.UNKNOWN_CREDENTIAL))
        return JSONResponse(self._interceptor.metrics.snapshot())

    async def _message(self, request: Request) -> AgentMessage:
        try:
            message = parse_message(parse(await _read_body(request, self._most, self._body_seconds)))
        except StrictSchemaError as error:
            raise _refused(ErrorCode.MALFORMED, str(error)) from None
        if isinstance(message, Problem):
            raise GatewayError(message)
        return message

    async def _is_proven(self, request: Request, sender: str) -> bool:
        agent_id = await self._authenticate(request)
        if agent_id != sender and (agent_id is not None or self._is_trusted(sender)):
            raise _refused(ErrorCode.UNKNOWN_CREDENTIAL, f"it is not proven that {quoted(sender)} sends this")
        return agent_id == sender

    async def _authenticate(self, request: Request) -> str | None:
        if self._authorise is None:
            return None
        agent_id = self._authorise(request)
        return await agent_id if inspect.isawaitable(agent_id) else agent_id

    def _is_trusted(self, sender: str) -> bool:
        boundary = self._interceptor.boundary
        listed = isinstance(boundary, TrustBoundary) and boundary.trusts(sender)
        return listed or sender in (self._interceptor.config.trusted_agents or ())


async def _read_body(request: Request, most: int, seconds: float) -> bytes:
    """Return the body; raise GatewayError as soon as it is known to be too large or too slow."""
    length = request.headers.get("content-length", "0")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            _require_room(int(length) if _LENGTH.fullmatch(length) else 0, most)
            async for chunk in request.stream():
                _require_room(len(body) + len(chunk), most)
                body += chunk
    except TimeoutError:
        raise _refused(ErrorCode.OVERLOADED, f"the body did not arrive within {seconds:g} seconds") from None
    except ClientDisconnect:
        raise StrictSchemaError("the body is incomplete") from None
    return bytes(body)


def _require_room(size: int, most: int) -> None:
    if size > most:
        raise _refused(ErrorCode.TOO_LARGE, f"the body is larger than {most} bytes")


def _refused(code: ErrorCode, message: str) -> GatewayError:
    return GatewayError(problem(code, message))


def _error_response(cause: Problem) -> Response:
    return JSONResponse({"error": msgspec.to_builtins(cause)}, HTTP[cause.code])
