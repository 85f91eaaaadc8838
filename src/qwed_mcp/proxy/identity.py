"""Agent identity of the MCP proxy: named by the environment, or registered once and stored."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from qwed.model.defaults import DEFAULT_URL
from qwed.proxies.agent_identity import SERVER_VARIABLES, AgentRegistration, registration_errors, uses_server
from qwed.proxies.backend import DecisionBackend, Identity
from qwed_mcp.proxy.proxy_options import McpProxyOptions
from qwed_mcp.proxy.server_name import qualified_tool_name
from qwed_mcp.terminal import PROGRAM, echo
from qwed_sdk.errors import UsageError

PROTOCOL = "mcp"
AGENT_FILE = "agent.json"
RELEASE_TOOL = "release_tool_definition"


def registration_fields(options: McpProxyOptions) -> dict[str, Any]:
    """Return the fields that the agent is registered with."""
    fields = options.registration
    lists = {"allowed_paths": fields.allowed_paths, "allowed_domains": fields.allowed_domains}
    lists |= {"allowed_tables": fields.allowed_tables}
    return {
        "name": f"mcp-{options.name}",
        "type": fields.type,
        "principal_id": fields.principal_id,
        "framework": "mcp",
        "permissions": {
            "allowed_tools": [qualified_tool_name(options.name, "*"), RELEASE_TOOL],
            **{name: list(entries) for name, entries in lists.items() if entries},
        },
    }


async def open_backend(options: McpProxyOptions, directory: Path, stack: AsyncExitStack) -> DecisionBackend:
    """Open the decision backend, closed with the stack; raise UsageError if there is none."""
    agent_registration = AgentRegistration(
        directory / AGENT_FILE, registration_fields(options), lambda line: echo(f"{PROGRAM}: {line}")
    )
    backend = (
        await _open_remote_backend(agent_registration)
        if uses_server(os.environ)
        else _open_local_backend(agent_registration, directory, options.name)
    )
    stack.push_async_callback(backend.close)
    return backend


async def _open_remote_backend(agent_registration: AgentRegistration) -> DecisionBackend:
    from qwed.proxies.remote_backend import RemoteBackend
    from qwed_sdk.client import QWEDAsyncClient

    variables = {name: os.environ.get(name, "").strip() for name in SERVER_VARIABLES}
    base_url = variables["QWED_BASE_URL"] or DEFAULT_URL
    with registration_errors(base_url):
        if variables["QWED_AGENT_ID"] and variables["QWED_AGENT_TOKEN"]:
            return RemoteBackend(Identity(variables["QWED_AGENT_ID"], variables["QWED_AGENT_TOKEN"]), base_url)
        if variables["QWED_AGENT_ID"] or variables["QWED_AGENT_TOKEN"]:
            raise UsageError("QWED_AGENT_ID and QWED_AGENT_TOKEN belong together: set both, or neither")
        if not variables["QWED_API_KEY"]:
            raise UsageError("set QWED_AGENT_ID and QWED_AGENT_TOKEN, or QWED_API_KEY to register an agent with")
        async with QWEDAsyncClient(variables["QWED_API_KEY"], base_url) as client:
            return RemoteBackend(await agent_registration.ensure_at_server(client, base_url), base_url)


def _open_local_backend(agent_registration: AgentRegistration, directory: Path, name: str) -> DecisionBackend:
    from qwed.proxies.local_backend import LocalBackend, open_proxy_gate

    gate = open_proxy_gate(directory, name)
    try:
        return LocalBackend(gate, agent_registration.ensure_in_gate(gate), directory)
    except UsageError:
        gate.close()
        raise
