"""A real agent of the official package whose cards are whatever a test makes of them."""

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
from qwed.proxies.kernel import Kernel
from qwed_a2a.proxy.book import CardBook
from qwed_a2a.proxy.options import Options
from tests.support.a2a_agents import Scripted, card_of, listening, served

PUBLIC = "https://agents.example.com/clerk"


class Changing:
    """An agent; `card` and `extended` are what it shows from now on."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.first = card_of(base)
        self.first.capabilities.extended_agent_card = True
        self.card = self.first
        self.extended = self.first

    def changed(self, **members: Any) -> AgentCard:
        """Its first card with other members."""
        made = AgentCard()
        made.CopyFrom(self.first)
        for name, value in members.items():
            setattr(made, name, value)
        return made

    def app(self) -> Starlette:
        async def now(_card: AgentCard) -> AgentCard:
            return self.card

        async def extended(_card: AgentCard, _context: Any) -> AgentCard:
            return self.extended

        handler = DefaultRequestHandler(
            agent_executor=Scripted(),
            task_store=InMemoryTaskStore(),
            agent_card=self.first,
            extended_agent_card=self.first,
            extended_card_modifier=extended,
        )
        return Starlette(
            routes=[
                *create_agent_card_routes(self.first, card_modifier=now),
                *create_jsonrpc_routes(handler, "/rpc"),
                *create_rest_routes(handler, path_prefix="/rest"),
            ]
        )


@contextmanager
def changing() -> Iterator[Changing]:
    """The agent, served."""
    with listening() as (on, base):
        agent = Changing(base)
        with served(agent.app(), on):
            yield agent


class Opened:
    """A book of cards, to be used from a test that does not await."""

    def __init__(self, portal: BlockingPortal, book: CardBook, said: list[str]) -> None:
        self._portal, self._book, self.said = portal, book, said
        self.refusal, self.jwks, self.upstream = book.refusal, book.jwks, book.upstream

    def card(self) -> AgentCard:
        return self._portal.call(self._book.card)

    def extended(self) -> AgentCard | str:
        return self._portal.call(self._book.extended, {})


@contextmanager
def opened(
    upstream: str,
    place: Path,
    kernel: Callable[[], Kernel],
    keyring: Keyring | None = None,
    closes: bool = True,
    **options: Any,
) -> Iterator[Opened]:
    """A book that looks at the agent's card all the time."""
    said: list[str] = []
    place.mkdir(exist_ok=True)
    told = Options(
        **{"name": "clerk", "upstream": upstream, "public_url": PUBLIC, "principal_id": "ops", "recheck": 0.02}
        | options
    )
    with start_blocking_portal() as portal:

        async def made() -> tuple[CardBook, Kernel]:
            asked = kernel()
            return CardBook(told, place, keyring or fresh_keyring(), asked, said.append), asked

        book, asked = portal.call(made)
        try:
            portal.call(book.start)
            yield Opened(portal, book, said)
        finally:
            portal.call(book.close)
            if closes:
                portal.call(asked.close)
