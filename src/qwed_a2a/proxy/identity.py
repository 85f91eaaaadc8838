"""Identities of the proxy: two registered agents, one for each side, and the backends that use them."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qwed.ledger.keyring import Keyring
from qwed.model.defaults import DEFAULT_URL
from qwed.proxies.agent_identity import AgentRegistration, PrintLine, uses_server
from qwed.proxies.backend import DecisionBackend
from qwed.proxies.local_backend import LocalBackend, open_proxy_gate
from qwed.proxies.remote_backend import RemoteBackend
from qwed_a2a.proxy.backend import MessageBackend, Peer
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


class ProxyContext(NamedTuple):
    """Backend for verdicts on messages, and backend for the release of cards."""

    backend: MessageBackend
    release_backend: DecisionBackend
    keyring: Keyring | None = None
    """Keys that sign verdicts, if that happens in this process."""


class PeerRegistrations(NamedTuple):
    """Registrations of the agent for clients without credentials, and of the agent behind the proxy."""

    client: AgentRegistration
    upstream: AgentRegistration


def peer_registrations(options: A2AProxyOptions, directory: Path, print_line: PrintLine) -> PeerRegistrations:
    """Return the registrations of both agents; other options make other agents."""
    name = f"a2a-{options.name}"
    return PeerRegistrations(
        AgentRegistration(directory / CLIENT_FILE, _fields(options, f"{name}-client", []), print_line),
        AgentRegistration(directory / UPSTREAM_FILE, _fields(options, name, [RELEASE_TOOL]), print_line),
    )


def _fields(options: A2AProxyOptions, name: str, tools: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "type": options.type,
        "principal_id": options.principal_id,
        "framework": "a2a",
        "permissions": {"allowed_tools": tools},
    }


async def open_context(
    options: A2AProxyOptions, directory: Path, stack: AsyncExitStack, print_line: PrintLine
) -> ProxyContext:
    """Return the backends, closed when the stack is left; raise UsageError if there are none."""
    registrations = peer_registrations(options, directory, print_line)
    if uses_server(os.environ):
        return await _open_remote_context(registrations, stack, print_line)
    return await _open_local_context(registrations, directory, options.name, stack)


async def _open_remote_context(
    registrations: PeerRegistrations, stack: AsyncExitStack, print_line: PrintLine
) -> ProxyContext:
    from qwed_a2a.proxy.remote_backend import RemoteMessageBackend

    variables = {name: os.environ.get(name, "").strip() for name in ("QWED_BASE_URL", "QWED_API_KEY")}
    if any(os.environ.get(name, "").strip() for name in ("QWED_AGENT_ID", "QWED_AGENT_TOKEN")):
        raise UsageError(_ONE_AGENT_NAMED)
    base_url, api_key = variables["QWED_BASE_URL"] or DEFAULT_URL, variables["QWED_API_KEY"] or None
    try:
        async with QWEDAsyncClient(api_key, base_url) as client:
            first = await registrations.client.ensure_at_server(client, base_url, may_register=api_key is not None)
            second = await registrations.upstream.ensure_at_server(client, base_url, may_register=api_key is not None)
        backend = RemoteMessageBackend(base_url, Peer(*first), Peer(*second), api_key)
    except ValueError as error:
        raise UsageError(f"the server cannot be asked: {error}") from None
    except QWEDError as error:
        raise UsageError(f"no agent could be registered at {base_url}: {error.message}") from None
    stack.push_async_callback(backend.close)
    await _learn_role(backend)
    if backend.has_owner_key:
        print_line(_OWNER_KEY_WARNING)
    releasing = RemoteBackend(second, base_url)
    stack.push_async_callback(releasing.close)
    return ProxyContext(backend, releasing)


async def _learn_role(backend: "RemoteMessageBackend") -> None:
    try:
        await backend.learn_role()
    except QWEDConnectionError:
        return  # It is determined later; until then every message is refused.
    except QWEDError as error:
        raise UsageError(f"QWED_API_KEY cannot be used at {backend.location}: {error.message}") from None


async def _open_local_context(
    registrations: PeerRegistrations, directory: Path, name: str, stack: AsyncExitStack
) -> ProxyContext:
    from qwed_a2a.proxy.local_backend import LocalMessageBackend, ensure_member_key

    gate = open_proxy_gate(directory, name)
    try:
        client, upstream = registrations.client.ensure_in_gate(gate), registrations.upstream.ensure_in_gate(gate)
        agent = gate.services.store.find_agent(client.agent_id)
        api_key = await ensure_member_key(gate, directory, "" if agent is None else agent.organisation_id)
    except UsageError:
        gate.close()
        raise
    backend = LocalMessageBackend(gate, directory, Peer(*client), Peer(*upstream), api_key)
    stack.push_async_callback(backend.close)
    return ProxyContext(backend, LocalBackend(gate, upstream, directory), gate.services.signer.keyring)
