"""As whom the MCP proxy asks: the agent its environment names, or one it registers once and keeps."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from qwed.proxies.identity import SERVER, Papers, is_served
from qwed.proxies.kernel import Identity, Kernel
from qwed.words.home import DEFAULT_URL
from qwed_mcp.command import PROGRAM, say
from qwed_mcp.proxy.naming import whole_name
from qwed_mcp.proxy.options import Options
from qwed_sdk.errors import QWEDError
from qwed_sdk.hook.call import Unusable

PROTOCOL = "mcp"
FILE = "agent.json"
RELEASE = "release_tool_definition"


def fields_of(options: Options) -> dict[str, Any]:
    """What the agent is registered with."""
    told = options.registered
    lists = {"allowed_paths": told.allowed_paths, "allowed_domains": told.allowed_domains}
    lists |= {"allowed_tables": told.allowed_tables}
    return {
        "name": f"mcp-{options.name}",
        "type": told.type,
        "principal_id": told.principal_id,
        "framework": "mcp",
        "permissions": {
            "allowed_tools": [whole_name(options.name, "*"), RELEASE],
            **{name: list(entries) for name, entries in lists.items() if entries},
        },
    }


async def kernel_for(options: Options, place: Path, stack: AsyncExitStack) -> Kernel:
    """The kernel that decides, given back when the stack is left; Unusable where there is none to ask."""
    papers = Papers(place / FILE, fields_of(options), lambda line: say(f"{PROGRAM}: {line}"))
    kernel = await _served(papers) if is_served(os.environ) else _alone(papers, place, options.name)
    stack.push_async_callback(kernel.close)
    return kernel


async def _served(papers: Papers) -> Kernel:
    from qwed.proxies.remote import Remote
    from qwed_sdk.client import QWEDAsyncClient

    named = {name: os.environ.get(name, "").strip() for name in SERVER}
    base_url = named["QWED_BASE_URL"] or DEFAULT_URL
    try:
        if named["QWED_AGENT_ID"] and named["QWED_AGENT_TOKEN"]:
            return Remote(Identity(named["QWED_AGENT_ID"], named["QWED_AGENT_TOKEN"]), base_url)
        if named["QWED_AGENT_ID"] or named["QWED_AGENT_TOKEN"]:
            raise Unusable("QWED_AGENT_ID and QWED_AGENT_TOKEN belong together: set both, or neither")
        if not named["QWED_API_KEY"]:
            raise Unusable("set QWED_AGENT_ID and QWED_AGENT_TOKEN, or QWED_API_KEY to register an agent with")
        async with QWEDAsyncClient(named["QWED_API_KEY"], base_url) as client:
            return Remote(await papers.shown_to(client, base_url), base_url)
    except ValueError as error:
        raise Unusable(f"the server cannot be asked: {error}") from None
    except QWEDError as error:
        raise Unusable(f"no agent could be registered at {base_url}: {error.message}") from None


def _alone(papers: Papers, place: Path, name: str) -> Kernel:
    from qwed.proxies.own import Own, opened

    gate = opened(place, name)
    try:
        return Own(gate, papers.shown_in(gate), place)
    except Unusable:
        gate.close()
        raise
