"""The MCP server `qwed-verification`: two tools, each call answered at the desk."""

from collections import OrderedDict
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
from qwed_mcp import texts
from qwed_mcp.desk import Desk, answered
from qwed_mcp.door import GONE
from qwed_mcp.jobs import Bounds, Jobs
from qwed_mcp.sandbox.outcome import Chosen
from qwed_mcp.security.gateway import RiskBasedExecutionGateway
from qwed_mcp.settings import McpSettings
from qwed_mcp.tools import TOOLS
from qwed_mcp.turns import SECONDS, Turns

NAME = "qwed-verification"
MAX_REMEMBERED = 256
"""Requests whose background job their client can still cancel."""
_INSTRUCTIONS = (
    "Verify before you claim: write a short Python script with sympy, z3, decimal or the QWED packages, run it with "
    "execute_python_code, and report what it printed. The verify_* tools of v0.1.x are gone."
)

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], str]


@dataclass(kw_only=True)
class Kept:
    """What a server holds beside its settings; tests put their own in its place."""

    seconds: float = SECONDS
    bounds: Bounds = field(default_factory=Bounds)
    gateway: RiskBasedExecutionGateway | None = None


def build(settings: McpSettings, chosen: Chosen, caller_of: CallerOf, kept: Kept | None = None) -> Server[Desk]:
    """The server; `caller_of` says whose a request is, and jobs live as long as its lifespan."""
    held = kept or Kept()
    placed: OrderedDict[tuple[str, str], str] = OrderedDict()

    @asynccontextmanager
    async def lifespan(_server: Server[Desk]) -> AsyncIterator[Desk]:
        gateway = held.gateway or RiskBasedExecutionGateway(settings)
        jobs = Jobs(chosen, settings.background_seconds, bounds=held.bounds)
        desk = Desk(gateway, chosen, jobs, Turns(seconds=held.seconds))
        try:
            yield desk
        finally:
            await desk.close()

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS))

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        desk: Desk = context.lifespan_context
        caller = caller_of(context)
        result = await _unless_gone(context, partial(desk.answer, caller, params.name, params.arguments))
        job_id = (result.meta or {}).get("qwed/job_id")
        # Over HTTP the ids of requests are not one client's own: there a posted cancellation says nothing.
        if isinstance(job_id, str) and context.request is None:
            placed[caller, str(context.request_id)] = job_id
            while len(placed) > MAX_REMEMBERED:
                placed.popitem(last=False)
        return result

    async def cancelled(context: Context, params: CancelledNotificationParams) -> None:
        caller = caller_of(context)
        job_id = placed.get((caller, str(params.request_id)))
        if job_id is not None and context.request is None:
            context.lifespan_context.cancel(caller, job_id)

    server: Server[Desk] = Server(
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


async def _unless_gone(context: Context, answer: Callable[[], Awaitable[CallToolResult]]) -> CallToolResult:
    """The answer; over HTTP a client that left has cancelled its request, whatever its version of the protocol."""
    gone = None if context.request is None else context.request.scope.get(GONE)
    if gone is None:
        return await answer()
    results = [answered(texts.CANCELLED, well=False)]

    async def leave(scope: anyio.CancelScope) -> None:
        await gone.wait()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave, tasks.cancel_scope)
        results.append(await answer())
        tasks.cancel_scope.cancel()
    return results[-1]
