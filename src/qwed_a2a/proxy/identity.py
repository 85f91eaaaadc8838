"""Identities of the proxy: two registered agents, one for each side, and the backend that uses them."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qwed.model.defaults import DEFAULT_URL
from qwed.proxies.agent_identity import (
    SERVER_VARIABLES,
    AgentRegistration,
    PrintLine,
    registration_errors,
    uses_server,
)
from qwed.proxies.local_backend import open_proxy_gate
from qwed_a2a.proxy.backend import MessageBackend
from qwed_a2a.proxy.card_registry import RELEASE_TOOL
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.errors import QWEDConnectionError, QWEDError, UsageError

if TYPE_CHECKING:
    from qwed_a2a.proxy.remote_backend import RemoteMessageBackend

CLIENT_FILE, UPSTREAM_FILE = "client.json", "upstream.json"
_ONE_AGENT_NAMED = (
    "QWED_AGENT_ID and QWED_AGENT_TOKEN name one agent, but a proxy has two: set QWED_API_KEY, and it registers both"
)
_OWNER_KEY_WARNING = (
    "QWED_API_KEY is an owner's key: use a member's key; until then senders that name themselves without a token "
    "are refused"
)


async def open_backend(
    options: A2AProxyOptions, directory: Path, stack: AsyncExitStack, print_line: PrintLine
) -> MessageBackend:
    """Return the backend, closed when the stack is left; raise UsageError if there is none.

    Other options make other agents.
    """
    name = f"a2a-{options.name}"
    agents = (
        AgentRegistration(directory / CLIENT_FILE, _fields(options, f"{name}-client", []), print_line),
        AgentRegistration(directory / UPSTREAM_FILE, _fields(options, name, [RELEASE_TOOL]), print_line),
    )
    if not uses_server(os.environ):
        return await _open_local_backend(agents, directory, options.name, stack)
    backend = await _open_remote_backend(agents, stack)
    if backend.has_owner_key:
        print_line(_OWNER_KEY_WARNING)
    return backend


def _fields(options: A2AProxyOptions, name: str, tools: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "type": options.type,
        "principal_id": options.principal_id,
        "framework": "a2a",
        "permissions": {"allowed_tools": tools},
    }


async def _open_remote_backend(
    agents: tuple[AgentRegistration, AgentRegistration], stack: AsyncExitStack
) -> "RemoteMessageBackend":
    from qwed_a2a.proxy.remote_backend import RemoteMessageBackend

    variables = {name: os.environ.get(name, "").strip() for name in SERVER_VARIABLES}
    if variables["QWED_AGENT_ID"] or variables["QWED_AGENT_TOKEN"]:
        raise UsageError(_ONE_AGENT_NAMED)
    base_url, api_key = variables["QWED_BASE_URL"] or DEFAULT_URL, variables["QWED_API_KEY"] or None
    with registration_errors(base_url):
        async with QWEDAsyncClient(api_key, base_url) as client:
            first, second = [
                await agent.ensure_at_server(client, base_url, may_register=bool(api_key)) for agent in agents
            ]
        backend = RemoteMessageBackend(base_url, first, second, api_key)
    stack.push_async_callback(backend.close)
    try:
        await backend.learn_role()
    except QWEDConnectionError:
        pass  # It is determined later; until then every message is refused.
    except QWEDError as error:
        raise UsageError(f"QWED_API_KEY cannot be used at {backend.location}: {error.message}") from None
    return backend


async def _open_local_backend(
    agents: tuple[AgentRegistration, AgentRegistration], directory: Path, name: str, stack: AsyncExitStack
) -> MessageBackend:
    from qwed_a2a.proxy.local_backend import LocalMessageBackend, ensure_member_key

    gate = open_proxy_gate(directory, name)
    try:
        client, upstream = (agent.ensure_in_gate(gate) for agent in agents)
        member_key = await ensure_member_key(gate, directory)
    except UsageError:
        gate.close()
        raise
    backend = LocalMessageBackend(gate, directory, client, upstream, member_key)
    stack.push_async_callback(backend.close)
    return backend
