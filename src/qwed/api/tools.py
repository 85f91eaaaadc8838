"""Spec 5.3: the tool registry."""

from qwed.api.access import OWNER, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem
from qwed.kernel.people import registry


async def list_tools(call: Call) -> Response:
    """The built-in tools with the organisation's own over them."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    return ok({"tools": await call.look(registry.tools_of, key.organisation_id, call.services)})


async def put_tool(call: Call) -> Response:
    """Describe a tool, and thereby make it known; the owner's alone."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    row = registry.read_tool(call.path["name"], call.json())
    if isinstance(row, Problem):
        return refused(row)
    kept = await call.driver.drive(registry.describe(row, actor, call.services))
    return refused(kept) if isinstance(kept, Problem) else ok(kept)
