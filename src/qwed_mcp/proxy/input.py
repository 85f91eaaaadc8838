"""What a server asks back while it works, of the model, the person or the client; by default it may ask nothing."""

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

from qwed.words import NotCanonical, sha256_of
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


_MOST_OPEN = 100


class _Question(NamedTuple):
    state: str | None
    names: frozenset[str]


def _call_of(params: CallToolRequestParams) -> str:
    try:
        return sha256_of([params.name, params.arguments or {}])
    except NotCanonical:
        return ""


class Inputs:
    """Carries a call through, whatever the server wants to know in between."""

    def __init__(self, upstream: Upstream, passes: Passes) -> None:
        self._upstream = upstream
        self._passes = passes
        self._open: dict[str, _Question] = {}

    def answers(self, params: CallToolRequestParams) -> bool:
        """Whether all it has beside its arguments answers what the server asked about this very call."""
        if params.input_responses is None and params.request_state is None:
            return True
        found = self._open.get(_call_of(params))
        given = frozenset(params.input_responses or ())
        return found is not None and params.request_state == found.state and given <= found.names

    def remember(self, params: CallToolRequestParams, outcome: CallToolResult | InputRequiredResult) -> None:
        """Keep what the server asks the client, so that it can be answered; what it asked before is answered now."""
        if self._open:
            self._open.pop(_call_of(params), None)
        if isinstance(outcome, InputRequiredResult):
            self._open[_call_of(params)] = _Question(outcome.request_state, frozenset(outcome.input_requests or ()))
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]

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
