"""As whom a proxy asks: the agent its environment names, or one it registers once and keeps."""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from qwed.gate import GateError
from qwed.words.home import DEFAULT_URL
from qwed_mcp.command import PROGRAM, say
from qwed_mcp.proxy.kernel import Identity, Kernel
from qwed_mcp.proxy.naming import whole_name
from qwed_mcp.proxy.options import Options
from qwed_mcp.proxy.place import read_object, write_object
from qwed_sdk.errors import QWEDAuthError, QWEDError, QWEDNotFoundError
from qwed_sdk.hook.call import Unusable

FILE = "agent.json"
RELEASE = "release_tool_definition"
_SERVER = ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN")


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


def is_served(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a server; else the proxy decides with a Gate of its own."""
    return any(environment.get(name, "").strip() for name in _SERVER)


async def kernel_for(options: Options, place: Path, stack: AsyncExitStack) -> Kernel:
    """The kernel that decides, given back when the stack is left; Unusable where there is none to ask."""
    kernel = await _served(options, place) if is_served(os.environ) else _alone(options, place)
    stack.push_async_callback(kernel.close)
    return kernel


async def _served(options: Options, place: Path) -> Kernel:
    from qwed_mcp.proxy.remote import Remote

    named = {name: os.environ.get(name, "").strip() for name in _SERVER}
    base_url = named["QWED_BASE_URL"] or DEFAULT_URL
    try:
        if named["QWED_AGENT_ID"] and named["QWED_AGENT_TOKEN"]:
            return Remote(Identity(named["QWED_AGENT_ID"], named["QWED_AGENT_TOKEN"]), base_url)
        if named["QWED_AGENT_ID"] or named["QWED_AGENT_TOKEN"]:
            raise Unusable("QWED_AGENT_ID and QWED_AGENT_TOKEN belong together: set both, or neither")
        if not named["QWED_API_KEY"]:
            raise Unusable("set QWED_AGENT_ID and QWED_AGENT_TOKEN, or QWED_API_KEY to register an agent with")
        return Remote(await _registered_at(base_url, named["QWED_API_KEY"], options, place), base_url)
    except ValueError as error:
        raise Unusable(f"the server cannot be asked: {error}") from None
    except QWEDError as error:
        raise Unusable(f"no agent could be registered at {base_url}: {error.message}") from None


async def _registered_at(base_url: str, api_key: str, options: Options, place: Path) -> Identity:
    from qwed_sdk.client import QWEDAsyncClient

    fields = fields_of(options)
    kept = _kept(place, base_url, fields)
    async with QWEDAsyncClient(api_key, base_url) as client:
        if kept is not None and await _is_known(client, kept):
            return kept
        agent = await client.register_agent(**fields)
    return _keep(place, base_url, fields, Identity(agent.agent_id, str(agent.agent_token)))


async def _is_known(client: Any, kept: Identity) -> bool:
    """Whether the server still knows the agent; where it does not say, each call will hear it."""
    try:
        await client.get_agent(kept.agent_id, kept.agent_token)
    except (QWEDAuthError, QWEDNotFoundError):
        return False
    except QWEDError as error:
        say(f"{PROGRAM}: {error.message}: until the server answers, every call is refused")
    return True


def _alone(options: Options, place: Path) -> Kernel:
    from qwed_mcp.proxy.own import Own, opened

    gate = opened(place, options.name)
    fields = fields_of(options)
    kept = _kept(place, "", fields)
    try:
        if kept is None or gate.services.store.find_agent(kept.agent_id) is None:
            agent = gate.register_agent(**fields)
            kept = _keep(place, "", fields, Identity(agent.agent_id, agent.agent_token))
        return Own(gate, kept, place)
    except (GateError, Unusable) as error:
        gate.close()
        raise Unusable(f"no agent could be registered: {error}") from None


def _kept(place: Path, base_url: str, fields: dict[str, Any]) -> Identity | None:
    """The agent that was registered with these very words."""
    found = read_object(place / FILE) or {}
    agent_id, token = found.get("agent_id"), found.get("agent_token")
    if (found.get("base_url"), found.get("fields")) != (base_url, fields):
        return None
    return Identity(agent_id, token) if isinstance(agent_id, str) and isinstance(token, str) else None


def _keep(place: Path, base_url: str, fields: dict[str, Any], identity: Identity) -> Identity:
    again = " anew, because its options or its server changed" if (place / FILE).exists() else ""
    write_object(place / FILE, {"base_url": base_url, "fields": fields, **identity._asdict()})
    say(f"{PROGRAM}: registered the agent {identity.agent_id} (`{fields['name']}`){again}")
    return identity
