"""MCP server `qwed-verification` with two tools."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    CancelledNotificationParams,
    ListToolsResult,
    PaginatedRequestParams,
)

import qwed
from qwed.model.lru_cache import LruCache
from qwed_mcp import response_texts
from qwed_mcp.dispatcher import ToolDispatcher, tool_result
from qwed_mcp.http_middleware import DISCONNECTED
from qwed_mcp.jobs import BackgroundJobs, JobQuotas
from qwed_mcp.run_queue import RUN_SECONDS, RunQueue
from qwed_mcp.sandbox.job import SandboxProvider
from qwed_mcp.security.gateway import RiskBasedExecutionGateway
from qwed_mcp.settings import McpSettings
from qwed_mcp.tools import TOOLS

NAME = "qwed-verification"
MAX_CANCELLABLE = 256
"""Number of requests whose background job the client can still cancel."""
_INSTRUCTIONS = (
    "Verify before you claim: write a short Python script with sympy, z3, decimal or the QWED packages, run it with "
    "execute_python_code, and report what it printed. The verify_* tools of v0.1.x are gone."
)

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], str]


@dataclass(kw_only=True)
class ServerOptions:
    """Limits and gateway of a server, which tests replace."""

    seconds: float = RUN_SECONDS
    quotas: JobQuotas = field(default_factory=JobQuotas)
    gateway: RiskBasedExecutionGateway | None = None


def build_server(
    settings: McpSettings, sandboxes: SandboxProvider, caller_of: CallerOf, overrides: ServerOptions | None = None
) -> Server[ToolDispatcher]:
    """Build the server; `caller_of` names the caller of a request, and jobs live as long as the lifespan."""
    options = overrides or ServerOptions()
    cancellable_jobs: LruCache[tuple[str, str], str] = LruCache(MAX_CANCELLABLE)

    @asynccontextmanager
    async def lifespan(_server: Server[ToolDispatcher]) -> AsyncIterator[ToolDispatcher]:
        gateway = options.gateway or RiskBasedExecutionGateway(settings)
        jobs = BackgroundJobs(sandboxes, settings.background_seconds, quotas=options.quotas)
        dispatcher = ToolDispatcher(gateway, sandboxes, jobs, RunQueue(seconds=options.seconds))
        try:
            yield dispatcher
        finally:
            await dispatcher.close()

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS))

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        dispatcher: ToolDispatcher = context.lifespan_context
        caller = caller_of(context)
        result = await _answer_while_connected(
            context, partial(dispatcher.answer, caller, params.name, params.arguments)
        )
        job_id = (result.meta or {}).get("qwed/job_id")
        # Over HTTP several clients may use the same request id, so a posted cancellation is ignored there.
        if isinstance(job_id, str) and context.request is None:
            cancellable_jobs[caller, str(context.request_id)] = job_id
        return result

    async def cancelled(context: Context, params: CancelledNotificationParams) -> None:
        caller = caller_of(context)
        job_id = cancellable_jobs.get((caller, str(params.request_id)))
        if job_id is not None and context.request is None:
            context.lifespan_context.cancel(caller, job_id)

    server: Server[ToolDispatcher] = Server(
        NAME,
        version=qwed.__version__,
        title="QWED verification",
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        get_tool_input_schema=lambda _name: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.add_notification_handler("notifications/cancelled", CancelledNotificationParams, cancelled)
    return server


async def _answer_while_connected(context: Context, answer: Callable[[], Awaitable[CallToolResult]]) -> CallToolResult:
    """Return the answer, and cancel the call if its HTTP client disconnects.

    Over HTTP a disconnect is a cancellation in every protocol version.
    """
    disconnected = None if context.request is None else context.request.scope.get(DISCONNECTED)
    if disconnected is None:
        return await answer()
    results = [tool_result(response_texts.CANCELLED, success=False)]

    async def leave(scope: anyio.CancelScope) -> None:
        await disconnected.wait()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave, tasks.cancel_scope)
        results.append(await answer())
        tasks.cancel_scope.cancel()
    return results[-1]
