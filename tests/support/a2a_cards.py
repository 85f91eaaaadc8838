"""Real agent of the official package whose card can change, and a registry that watches it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCard
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.applications import Starlette

from qwed.ledger.keyring import Keyring, fresh_keyring
from qwed.proxies.backend import DecisionBackend
from qwed_a2a.proxy.card_registry import CardRegistry
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from tests.support.a2a_agents import ScriptedAgent, listening_socket, make_card, serve_app

PUBLIC = "https://agents.example.com/clerk"


class CardAgent:
    """Agent that shows `card` and `extended`."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.first = make_card(base)
        self.first.capabilities.extended_agent_card = True
        self.card = self.first
        self.extended = self.first

    def changed(self, **members: Any) -> AgentCard:
        """Return its first card with other members."""
        card = AgentCard()
        card.CopyFrom(self.first)
        for name, value in members.items():
            setattr(card, name, value)
        return card

    def app(self) -> Starlette:
        async def current(_card: AgentCard) -> AgentCard:
            return self.card

        async def extended(_card: AgentCard, _context: Any) -> AgentCard:
            return self.extended

        handler = DefaultRequestHandler(
            agent_executor=ScriptedAgent(),
            task_store=InMemoryTaskStore(),
            agent_card=self.first,
            extended_agent_card=self.first,
            extended_card_modifier=extended,
        )
        return Starlette(
            routes=[
                *create_agent_card_routes(self.first, card_modifier=current),
                *create_jsonrpc_routes(handler, "/rpc"),
                *create_rest_routes(handler, path_prefix="/rest"),
            ]
        )


@contextmanager
def card_agent() -> Iterator[CardAgent]:
    """Serve the agent."""
    with listening_socket() as (on, base):
        agent = CardAgent(base)
        with serve_app(agent.app(), on):
            yield agent


class RegistryHandle:
    """Card registry for synchronous tests."""

    def __init__(self, portal: BlockingPortal, registry: CardRegistry, lines: list[str]) -> None:
        self._portal, self._registry, self.lines = portal, registry, lines
        self.refusal, self.jwks, self.upstream = registry.refusal, registry.jwks, registry.upstream

    def card(self) -> AgentCard:
        return self._portal.call(self._registry.card)

    def extended(self) -> AgentCard | str:
        return self._portal.call(self._registry.extended, {})


@contextmanager
def open_registry(
    upstream: str,
    directory: Path,
    make_backend: Callable[[], DecisionBackend],
    keyring: Keyring | None = None,
    closes: bool = True,
    **options: Any,
) -> Iterator[RegistryHandle]:
    """Yield a registry that checks the agent's card continuously."""
    lines: list[str] = []
    directory.mkdir(exist_ok=True)
    proxy_options = A2AProxyOptions(
        **{"name": "clerk", "upstream": upstream, "public_url": PUBLIC, "principal_id": "ops", "recheck": 0.02}
        | options
    )
    with start_blocking_portal() as portal:

        async def create() -> tuple[CardRegistry, DecisionBackend]:
            backend = make_backend()
            return CardRegistry(proxy_options, directory, keyring or fresh_keyring(), backend, lines.append), backend

        registry, backend = portal.call(create)
        try:
            portal.call(registry.start)
            yield RegistryHandle(portal, registry, lines)
        finally:
            portal.call(registry.close)
            if closes:
                portal.call(backend.close)
