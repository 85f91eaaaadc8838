"""Tools through the proxy: those that passed are listed, and each call is decided before it reaches the server."""

from typing import Any

import anyio
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)

from qwed.proxies.releases import Releases
from qwed_mcp.command import PROGRAM, say
from qwed_mcp.definitions.held import Held
from qwed_mcp.proxy.answers import failed, passed, refused
from qwed_mcp.proxy.asking import Asker, Proposed, Tell
from qwed_mcp.proxy.audience import Audience
from qwed_mcp.proxy.catalogue import Catalogue
from qwed_mcp.proxy.effects import effects_of
from qwed_mcp.proxy.front import Plain
from qwed_mcp.proxy.input import Inputs
from qwed_mcp.proxy.naming import whole_name
from qwed_mcp.proxy.outcomes import Outcomes
from qwed_mcp.proxy.upstream import Unanswered, Upstream
from qwed_sdk.calls.checks import Permit, Refusal

Ctx = ServerRequestContext[Any, Any]
_SHOWN = 128


class Relay:
    """Answers `tools/list` and `tools/call` of one client."""

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        catalogue: Catalogue,
        releases: Releases[Held],
        asker: Asker,
        audience: Audience,
        inputs: Inputs,
        outcomes: Outcomes,
    ) -> None:
        self._name = name
        self._upstream = upstream
        self._catalogue = catalogue
        self._releases = releases
        self._asker = asker
        self._audience = audience
        self._inputs = inputs
        self._outcomes = outcomes

    async def list_tools(self, ctx: Ctx, params: PaginatedRequestParams | None) -> ListToolsResult:
        """All tools that passed, on one page."""
        self._audience.met(ctx)
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "there is one page: list without a cursor")
        try:
            return ListToolsResult(tools=list(await self._catalogue.tools()))
        except Unanswered as error:
            raise MCPError(_NO_ANSWER, str(error)) from None

    async def call_tool(self, ctx: Ctx, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """The server's result, or why the call did not reach it."""
        self._audience.met(ctx)
        return await self.decided(ctx, params)

    async def decided(self, ctx: Ctx | Plain, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """The same for a client that was met before."""
        whole, arguments = whole_name(self._name, params.name), params.arguments or {}
        try:
            tool = await self._found(params, whole)
            if isinstance(tool, Refusal):
                return refused(tool)
            call = Proposed(whole, arguments, effects_of(tool))
            permit = await self._asker.before(call, _telling(ctx))
            if isinstance(permit, Refusal):
                return refused(permit)
            now = await self._catalogue.find(params.name)
            if now is not tool and now != tool:
                self._outcomes.add(permit, None)
                return refused(Refusal(whole, "its definition changed while it was decided: list the tools anew"))
        except Unanswered as error:
            return failed(f"DENIED: {error}")
        return await self._sent(ctx, params, permit)

    async def _found(self, params: CallToolRequestParams, whole: str) -> Tool | Refusal:
        if params.task is not None:
            return Refusal(whole, "calls as tasks do not pass: make the call without `task`")
        if not self._inputs.answers(params):
            return Refusal(whole, "answers pass only to what the server asked about this very call")
        found = await self._catalogue.find(params.name)
        if isinstance(found, Tool):
            return found
        # The kernel is not asked, so this is the only trace of it.
        say(f"{PROGRAM}: a call of `{whole[:_SHOWN]}` is refused: {'it is held' if found else 'there is no such tool'}")
        if isinstance(found, Held):
            return self._releases.refusal(found, whole)
        return Refusal(whole, "the server lists no tool of this name")

    async def _sent(
        self, ctx: Ctx | Plain, params: CallToolRequestParams, permit: Permit
    ) -> CallToolResult | InputRequiredResult:
        """Pass the call on, with what was verified and nothing else: what stands in `_meta` nobody has looked at."""
        onward = CallToolRequestParams(
            name=params.name,
            arguments=permit.arguments,
            input_responses=params.input_responses,
            request_state=params.request_state,
        )
        outcome: CallToolResult | InputRequiredResult | None = None
        try:
            outcome = await self._inputs.driven(ctx, onward, _progress(ctx))
            self._inputs.remember(params, outcome)
        except Unanswered as error:
            return failed(f"the call was permitted, and failed: {error}", {"qwed/action_id": permit.action_id})
        finally:
            # Told also where the client cancelled or the server answered with an error of its own.
            self._outcomes.add(permit, outcome)
        return passed(outcome, permit) if isinstance(outcome, CallToolResult) else outcome


_NO_ANSWER = -32000


def _progress(ctx: Ctx | Plain) -> ProgressFnT | None:
    if isinstance(ctx, Plain) or ctx.meta is None or ctx.meta.get("progress_token") is None:
        return None
    return ctx.session.report_progress


def _telling(ctx: Ctx | Plain) -> Tell | None:
    report = _progress(ctx)
    if report is None:
        return None
    begun = anyio.current_time()

    async def tell(message: str) -> None:
        # Far below any progress of the server's own, which must not seem to go back.
        await report(min((anyio.current_time() - begun) * 1e-6, 1e-3), None, message)

    return tell
