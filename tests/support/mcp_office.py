"""MCP server of an office, over standard streams: every tool answers that it was called."""

from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}


def _tool(name: str, description: str, **arguments: dict[str, str]) -> Tool:
    schema = {"type": "object", "properties": arguments, "required": list(arguments)}
    return Tool(name=name, description=description, input_schema=schema)


TOOLS = [
    _tool("refund", "Refunds an order", amount=_NUMBER),
    _tool("send_email", "Sends an email", to=_TEXT, body=_TEXT),
    _tool("write_file", "Writes a file", path=_TEXT, content=_TEXT),
    _tool("query", "Queries the database", sql=_TEXT),
    _tool("run_command", "Runs a command", command=_TEXT),
    _tool("deploy", "Deploys the application", environment=_TEXT),
]


async def _list(*_: Any) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS)


async def _call(_: Any, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=f"called {params.name}")])


async def _main() -> None:
    server = Server("office", on_list_tools=_list, on_call_tool=_call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_main)
