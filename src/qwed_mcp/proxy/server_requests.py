"""Requests from the server to the client (sampling, elicitation, roots); none is allowed by default."""

from typing import Any, NamedTuple, TypeVar

from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ServerRequest,
)
from pydantic import BaseModel

from qwed.model import CanonicalJsonError, sha256_of
from qwed.model.lru_cache import LruCache
from qwed_mcp.proxy.client_notifier import ClientNotifier
from qwed_mcp.proxy.proxy_options import PassthroughPolicy
from qwed_mcp.proxy.upstream import UnansweredRequestError, Upstream

T = TypeVar("T", bound=BaseModel)

_REQUEST_OPTIONS = {
    CreateMessageRequest: ("sampling", "--allow-sampling"),
    ElicitRequest: ("elicitation", "--allow-elicitation"),
    ListRootsRequest: ("roots", "--allow-roots"),
}


class ServerRequestForwarder:
    """Forwards allowed requests of a server with an older protocol version to the client."""

    def __init__(self, policy: PassthroughPolicy, notifier: ClientNotifier) -> None:
        self._notifier = notifier
        self.sampling = self._sampling if policy.sampling else None
        self.elicitation = self._elicitation if policy.elicitation else None
        self.roots = self._roots if policy.roots else None

    async def _sampling(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - called by name
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        request = CreateMessageRequest(params=params)
        if params.tools:
            return await self._forward(request, CreateMessageResultWithTools)
        return await self._forward(request, CreateMessageResult)

    async def _elicitation(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - called by name
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        return await self._forward(ElicitRequest(params=params), ElicitResult)

    async def _roots(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - called by name
    ) -> ListRootsResult | ErrorData:
        return await self._forward(ListRootsRequest(), ListRootsResult)

    async def _forward(self, request: ServerRequest, kind: type[T]) -> T | ErrorData:
        session = self._notifier.session
        if session is None:
            return ErrorData(code=INVALID_REQUEST, message="no client is connected yet")
        try:
            return await session.send_request(request, kind)
        except MCPError as error:
            return error.error


_MAX_OPEN = 100


class _OpenRequest(NamedTuple):
    state: str | None
    names: frozenset[str]


def _call_digest(params: CallToolRequestParams) -> str:
    try:
        return sha256_of([params.name, params.arguments or {}])
    except CanonicalJsonError:
        return ""


class InputRequests:
    """Calls the server and tracks the input it requests from the client (newer protocol versions)."""

    def __init__(self, upstream: Upstream, policy: PassthroughPolicy) -> None:
        self._upstream = upstream
        self._policy = policy
        self._open: LruCache[str, _OpenRequest] = LruCache(_MAX_OPEN)

    def is_expected(self, params: CallToolRequestParams) -> bool:
        """Return True if the input responses of a call answer what the server requested about this call."""
        if params.input_responses is None and params.request_state is None:
            return True
        open_request = self._open.get(_call_digest(params))
        names = frozenset(params.input_responses or ())
        return open_request is not None and params.request_state == open_request.state and names <= open_request.names

    def remember(self, params: CallToolRequestParams, outcome: CallToolResult | InputRequiredResult) -> None:
        """Remember the input that the server requests, and forget the earlier request of the same call."""
        if self._open:
            self._open.pop(_call_digest(params), None)
        if isinstance(outcome, InputRequiredResult):
            self._open[_call_digest(params)] = _OpenRequest(
                outcome.request_state, frozenset(outcome.input_requests or ())
            )

    async def call(
        self, ctx: Any, params: CallToolRequestParams, progress: ProgressFnT | None
    ) -> CallToolResult | InputRequiredResult:
        """Return the server's result; an allowed request for input is passed on to the client."""
        result = await self._upstream.call(params, progress)
        if isinstance(result, CallToolResult):
            return result
        for request in (result.input_requests or {}).values():
            allowed, option = _REQUEST_OPTIONS[type(request)]
            if not getattr(self._policy, allowed):
                raise UnansweredRequestError(f"the server requests {allowed}, which is not allowed: add {option}")
        if ctx.session.can_send_request:
            raise UnansweredRequestError("the server requests input in a way that this client does not support")
        return result
