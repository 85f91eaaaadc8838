"""As whom the proxy asks: two agents that it registers once and keeps, one for each side of it."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qwed.ledger.keyring import Keyring
from qwed.proxies import kernel as proxies
from qwed.proxies.identity import Papers, Say, is_served
from qwed.proxies.own import Own as Asks
from qwed.proxies.own import opened
from qwed.proxies.remote import Remote as AsksServer
from qwed.words.home import DEFAULT_URL
from qwed_a2a.proxy.book import RELEASE
from qwed_a2a.proxy.kernel import Kernel, Party
from qwed_a2a.proxy.options import Options
from qwed_sdk.client import QWEDAsyncClient
from qwed_sdk.errors import QWEDConnectionError, QWEDError
from qwed_sdk.hook.call import Unusable

if TYPE_CHECKING:
    from qwed_a2a.proxy.remote import Remote

CLIENT_FILE, UPSTREAM_FILE = "client.json", "upstream.json"
_TWO = "QWED_AGENT_ID and QWED_AGENT_TOKEN name one agent, and a proxy has two: set QWED_API_KEY, and it registers them"
_OWNERS = (
    "QWED_API_KEY is an owner's key: a member's is enough, and senders that name themselves without a token are "
    "refused as long as the proxy has more"
)


class Stand(NamedTuple):
    """Who gives verdicts on messages, and who is asked for what a person has to release."""

    kernel: Kernel
    releasing: proxies.Kernel
    keyring: Keyring | None = None
    """What verdicts are signed with, where that is done here."""


class Sides(NamedTuple):
    """The papers of the agent for clients that show nothing, and of the one behind the proxy."""

    client: Papers
    upstream: Papers


def papers_of(options: Options, place: Path, say: Say) -> Sides:
    """What the two are registered with; other words make other agents."""
    name = f"a2a-{options.name}"
    return Sides(
        Papers(place / CLIENT_FILE, _fields(options, f"{name}-client", []), say),
        Papers(place / UPSTREAM_FILE, _fields(options, name, [RELEASE]), say),
    )


def _fields(options: Options, name: str, tools: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "type": options.type,
        "principal_id": options.principal_id,
        "framework": "a2a",
        "permissions": {"allowed_tools": tools},
    }


async def stand_for(options: Options, place: Path, stack: AsyncExitStack, say: Say) -> Stand:
    """Whoever decides, given back when the stack is left; Unusable where there is nobody to ask."""
    sides = papers_of(options, place, say)
    if is_served(os.environ):
        return await _served(sides, stack, say)
    return await _alone(sides, place, options.name, stack)


async def _served(sides: Sides, stack: AsyncExitStack, say: Say) -> Stand:
    from qwed_a2a.proxy.remote import Remote

    named = {name: os.environ.get(name, "").strip() for name in ("QWED_BASE_URL", "QWED_API_KEY")}
    if any(os.environ.get(name, "").strip() for name in ("QWED_AGENT_ID", "QWED_AGENT_TOKEN")):
        raise Unusable(_TWO)
    base_url, api_key = named["QWED_BASE_URL"] or DEFAULT_URL, named["QWED_API_KEY"] or None
    try:
        async with QWEDAsyncClient(api_key, base_url) as client:
            first = await sides.client.shown_to(client, base_url, may_register=api_key is not None)
            second = await sides.upstream.shown_to(client, base_url, may_register=api_key is not None)
        kernel = Remote(base_url, Party(*first), Party(*second), api_key)
    except ValueError as error:
        raise Unusable(f"the server cannot be asked: {error}") from None
    except QWEDError as error:
        raise Unusable(f"no agent could be registered at {base_url}: {error.message}") from None
    stack.push_async_callback(kernel.close)
    await _learn_role(kernel)
    if kernel.may_prove_anybody:
        say(_OWNERS)
    releasing = AsksServer(second, base_url)
    stack.push_async_callback(releasing.close)
    return Stand(kernel, releasing)


async def _learn_role(kernel: "Remote") -> None:
    try:
        await kernel.learn_role()
    except QWEDConnectionError:
        return  # Learnt when it is needed; until then every message is refused anyhow.
    except QWEDError as error:
        raise Unusable(f"QWED_API_KEY cannot be used at {kernel.place}: {error.message}") from None


async def _alone(sides: Sides, place: Path, name: str, stack: AsyncExitStack) -> Stand:
    from qwed_a2a.proxy.own import Own, member_key

    gate = opened(place, name)
    try:
        first, second = sides.client.shown_in(gate), sides.upstream.shown_in(gate)
        agent = gate.services.store.find_agent(first.agent_id)
        member = await member_key(gate, place, "" if agent is None else agent.organisation_id)
    except Unusable:
        gate.close()
        raise
    kernel = Own(gate, place, Party(*first), Party(*second), member)
    stack.push_async_callback(kernel.close)
    return Stand(kernel, Asks(gate, second, place), gate.services.signer.keyring)
