"""What a server asks back while it works, of the model, the person or the client; by default it may ask nothing."""

from typing import Any, TypeVar

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

from qwed_mcp.proxy.audience import Audience
from qwed_mcp.proxy.options import Passes
from qwed_mcp.proxy.upstream import Unanswered, Upstream

T = TypeVar("T", bound=BaseModel)

_OPTION = {
    CreateMessageRequest: ("sampling", "--allow-sampling"),
    ElicitRequest: ("elicitation", "--allow-elicitation"),
    ListRootsRequest: ("roots", "--allow-roots"),
}


class Asked:
    """Hands the questions of a server of older versions on to the client; only what is allowed has a way."""

    def __init__(self, passes: Passes, audience: Audience) -> None:
        self._audience = audience
        self.sampling = self._sampling if passes.sampling else None
        self.elicitation = self._elicitation if passes.elicitation else None
        self.roots = self._roots if passes.roots else None

    async def _sampling(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - called by name
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        request = CreateMessageRequest(params=params)
        if params.tools:
            return await self._passed_on(request, CreateMessageResultWithTools)
        return await self._passed_on(request, CreateMessageResult)

    async def _elicitation(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - called by name
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        return await self._passed_on(ElicitRequest(params=params), ElicitResult)

    async def _roots(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - called by name
    ) -> ListRootsResult | ErrorData:
        return await self._passed_on(ListRootsRequest(), ListRootsResult)

    async def _passed_on(self, request: ServerRequest, kind: type[T]) -> T | ErrorData:
        session = self._audience.session
        if session is None:
            return ErrorData(code=INVALID_REQUEST, message="no client has spoken yet")
        try:
            return await session.send_request(request, kind)
        except MCPError as error:
            return error.error


class Inputs:
    """Carries a call through, whatever the server wants to know in between."""

    def __init__(self, upstream: Upstream, passes: Passes) -> None:
        self._upstream = upstream
        self._passes = passes
        self.may_ask = passes.sampling or passes.elicitation or passes.roots
        """Whether the server may ask anything at all."""

    async def driven(
        self, ctx: Any, params: CallToolRequestParams, progress: ProgressFnT | None
    ) -> CallToolResult | InputRequiredResult:
        """The server's result; a question of it that may pass is the client's to answer."""
        result = await self._upstream.call(params, progress)
        if isinstance(result, CallToolResult):
            return result
        for request in (result.input_requests or {}).values():
            allowed, option = _OPTION[type(request)]
            if not getattr(self._passes, allowed):
                raise Unanswered(f"the server asks for {allowed}, which does not pass: {option} would let it")
        if ctx.session.can_send_request:
            raise Unanswered("the server asks in a way that this client does not know")
        return result
