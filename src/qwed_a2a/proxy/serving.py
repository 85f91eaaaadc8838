"""One proxy from its start to its end: who decides, the agent's card, and the clients."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import NamedTuple

import uvicorn

from qwed.ledger.keyring import KeyringError, open_keyring
from qwed.proxies.connection import config_of
from qwed.proxies.guard import unreadable
from qwed.proxies.identity import Say
from qwed.proxies.place import directory
from qwed.settings import SettingsError, settings_from
from qwed_a2a.proxy.app import proxy_app
from qwed_a2a.proxy.book import PROTOCOL, CardBook
from qwed_a2a.proxy.identity import Stand, stand_for
from qwed_a2a.proxy.kernel import Kernel
from qwed_a2a.proxy.options import Options
from qwed_sdk.hook.call import Unusable

KEYS = "signing"
_GRACE = 1
"""Seconds for what is under way when somebody asks us to end."""
_SWITCH_SECONDS = 0.0005
_NOISY = ("a2a", "httpx", "httpcore", "uvicorn")


class Standing(NamedTuple):
    """Where a proxy listens, before whom, as which agents, and who decides."""

    url: str
    upstream: str
    client: str
    agent: str
    decides: str


Greet = Callable[[Standing], None]


def run(options: Options, listening: socket.socket, hosts: tuple[str, ...], say: Say, greet: Greet) -> None:
    """Stand before the agent until somebody asks to stop; Unusable where that cannot begin.

    `greet` is told once clients are answered.
    """
    unreadable()
    # A decision is handed from thread to thread, and the usual turn is longer than it takes.
    sys.setswitchinterval(_SWITCH_SECONDS)
    for name in _NOISY:
        # Their lines would hold what a request said.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    asyncio.run(_serve(options, listening, hosts, say, greet))


async def _serve(options: Options, listening: socket.socket, hosts: tuple[str, ...], say: Say, greet: Greet) -> None:
    async with AsyncExitStack() as stack:
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        begun = asyncio.create_task(_begun(options, stack, say))
        stopped = asyncio.create_task(ended.wait())
        await asyncio.wait({begun, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not begun.done():
            begun.cancel()
            await asyncio.wait({begun})
            return
        stopped.cancel()
        stand, book = begun.result()
        app = proxy_app(stand.kernel, book, options, hosts=hosts, largest=_largest())
        server = _Server(config_of(app, grace=_GRACE, lifespan="on"), ended)
        greet(_standing(options, stand.kernel))
        await server.serve(sockets=[listening])


async def _begun(options: Options, stack: AsyncExitStack, say: Say) -> tuple[Stand, CardBook]:
    place = directory(PROTOCOL, options.name)
    try:
        keyring = open_keyring(place / KEYS)
    except (KeyringError, OSError) as error:
        raise Unusable(f"the key that signs cards cannot be used: {error}") from None
    stand = await stand_for(options, place, stack, say)
    book = CardBook(options, place, keyring, stand.releasing, say, stand.keyring)
    stack.push_async_callback(book.close)
    await book.start()
    return stand, book


def _largest() -> int:
    """The largest payload that may pass, of which whoever decides has the last word."""
    try:
        return settings_from().a2a_max_payload_bytes
    except SettingsError as error:
        raise Unusable(str(error)) from None


def _standing(options: Options, kernel: Kernel) -> Standing:
    return Standing(
        options.public_url, options.upstream, kernel.client.agent_id, kernel.upstream.agent_id, kernel.place
    )


class _Server(uvicorn.Server):
    """Ends when it is told so, and not by signals of its own: what is held has to be given back after it."""

    def __init__(self, config: uvicorn.Config, ended: asyncio.Event) -> None:
        super().__init__(config)
        self._ended = ended

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to us."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop."""
        self.should_exit = self.should_exit or self._ended.is_set()
        return await super().on_tick(counter)
