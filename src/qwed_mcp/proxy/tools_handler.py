"""Handlers of tools/list and tools/call: screened tools are listed, and each call is authorized first."""

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
    ToolAnnotations,
)

from qwed.model import EffectKind
from qwed.proxies.quarantine import ReleaseRequests
from qwed_mcp.proxy.authorizer import Authorizer, ProposedCall, ReportStatus
from qwed_mcp.proxy.client_notifier import ClientNotifier
from qwed_mcp.proxy.execution_log import ExecutionLog
from qwed_mcp.proxy.results import error_result, refusal_result, with_action_id
from qwed_mcp.proxy.server_name import qualified_tool_name
from qwed_mcp.proxy.server_requests import InputRequests
from qwed_mcp.proxy.tool_catalog import ToolCatalog
from qwed_mcp.proxy.upstream import UnansweredRequestError, Upstream
from qwed_mcp.terminal import PROGRAM, echo
from qwed_mcp.tool_pinning.quarantined import QuarantinedTool
from qwed_sdk.permits import Permit, Refusal

Ctx = ServerRequestContext[Any, Any]
_MAX_LOGGED_NAME = 128
_HINTED_EFFECTS = {"destructive_hint": EffectKind.DELETE, "open_world_hint": EffectKind.NETWORK}
"""Effects by annotation; `read_only_hint` is left out, because a malicious server would set it."""


class ToolsHandler:
    """Answers `tools/list` and `tools/call` of one client."""

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        catalog: ToolCatalog,
        releases: ReleaseRequests[QuarantinedTool],
        authorizer: Authorizer,
        notifier: ClientNotifier,
        inputs: InputRequests,
        executions: ExecutionLog,
    ) -> None:
        self._name = name
        self._upstream = upstream
        self._catalog = catalog
        self._releases = releases
        self._authorizer = authorizer
        self._notifier = notifier
        self._inputs = inputs
        self._executions = executions

    async def list_tools(self, ctx: Ctx, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return all tools that passed the screening, on one page."""
        self._notifier.session = ctx.session
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "there is one page: list without a cursor")
        try:
            return ListToolsResult(tools=list(await self._catalog.tools()))
        except UnansweredRequestError as error:
            raise MCPError(_UPSTREAM_ERROR, str(error)) from None

    async def call_tool(self, ctx: Ctx, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Return the server's result, or the reason the call was refused."""
        self._notifier.session = ctx.session
        qualified, arguments = qualified_tool_name(self._name, params.name), params.arguments or {}
        try:
            tool = await self._find_tool(params, qualified)
            if isinstance(tool, Refusal):
                return refusal_result(tool)
            call = ProposedCall(qualified, arguments, hinted_effects(tool))
            permit = await self._authorizer.authorize(call, _status_reporter(ctx))
            if isinstance(permit, Refusal):
                return refusal_result(permit)
            current = await self._catalog.find(params.name)
            if current is not tool and current != tool:
                self._executions.add(permit, None)
                return refusal_result(
                    Refusal(qualified, "its definition changed during the decision: list the tools again")
                )
        except UnansweredRequestError as error:
            return error_result(f"DENIED: {error}")
        return await self._forward(ctx, params, permit)

    async def _find_tool(self, params: CallToolRequestParams, qualified: str) -> Tool | Refusal:
        if params.task is not None:
            return Refusal(qualified, "task-augmented calls are not supported: make the call without `task`")
        if not self._inputs.is_expected(params):
            return Refusal(qualified, "input responses are accepted only for what the server requested about this call")
        tool = await self._catalog.find(params.name)
        if isinstance(tool, Tool):
            return tool
        # The kernel is not asked, so this line is the only record of the refusal.
        reason = "its definition is held" if tool else "there is no such tool"
        echo(f"{PROGRAM}: call of `{qualified[:_MAX_LOGGED_NAME]}` refused: {reason}")
        if isinstance(tool, QuarantinedTool):
            return self._releases.refusal(tool, qualified)
        return Refusal(qualified, "the server lists no tool with this name")

    async def _forward(
        self, ctx: Ctx, params: CallToolRequestParams, permit: Permit
    ) -> CallToolResult | InputRequiredResult:
        """Forward the call with the verified arguments only; `_meta` was not verified and is dropped."""
        forwarded = CallToolRequestParams(
            name=params.name,
            arguments=permit.arguments,
            input_responses=params.input_responses,
            request_state=params.request_state,
        )
        outcome: CallToolResult | InputRequiredResult | None = None
        try:
            outcome = await self._inputs.call(ctx, forwarded, _progress_callback(ctx))
            self._inputs.remember(params, outcome)
        except UnansweredRequestError as error:
            return error_result(f"the call was permitted but failed: {error}", {"qwed/action_id": permit.action_id})
        finally:
            # Logged too when the client cancelled or the server answered with its own error.
            self._executions.add(permit, outcome)
        return with_action_id(outcome, permit) if isinstance(outcome, CallToolResult) else outcome


_UPSTREAM_ERROR = -32000


def _progress_callback(ctx: Ctx) -> ProgressFnT | None:
    if ctx.meta is None or ctx.meta.get("progress_token") is None:
        return None
    return ctx.session.report_progress


def _status_reporter(ctx: Ctx) -> ReportStatus | None:
    report = _progress_callback(ctx)
    if report is None:
        return None
    started = anyio.current_time()

    async def report_status(message: str) -> None:
        # Far below any progress that the server reports, because progress must not go backwards.
        await report(min((anyio.current_time() - started) * 1e-6, 1e-3), None, message)

    return report_status


def hinted_effects(tool: Tool) -> tuple[str, ...]:
    """Return the effects that a tool's annotations declare; a hint never removes an effect."""
    annotations = tool.annotations or ToolAnnotations()
    return tuple(str(kind) for hint, kind in _HINTED_EFFECTS.items() if getattr(annotations, hint) is True)
