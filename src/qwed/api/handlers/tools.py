"""Handlers of the tool registry (spec 5.3)."""

from qwed.api.server.auth import OWNER, require_actor, require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.admin import tool_registry
from qwed.kernel.answer import Problem


async def list_tools(request: RequestContext) -> Response:
    """Return the built-in tools, overridden by the organisation's own."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    return json_response(
        {"tools": await request.run_blocking(tool_registry.tools_of, key.organisation_id, request.services)}
    )


async def put_tool(request: RequestContext) -> Response:
    """Register a tool; requires an owner."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    row = tool_registry.read_tool(request.path["name"], request.json())
    if isinstance(row, Problem):
        return error_response(row)
    stored = await request.driver.run(tool_registry.register_tool(row, actor, request.services))
    return error_response(stored) if isinstance(stored, Problem) else json_response(stored)
