"""Lifecycle of one proxy: backends, agent card, HTTP server."""

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
from qwed.proxies.agent_identity import PrintLine
from qwed.proxies.http_protocol import uvicorn_config
from qwed.proxies.process_hardening import disable_memory_dumps
from qwed.proxies.state_directory import ensure_state_directory
from qwed.settings import SettingsError, settings_from
from qwed_a2a.proxy.app import proxy_app
from qwed_a2a.proxy.backend import MessageBackend
from qwed_a2a.proxy.card_registry import PROTOCOL, CardRegistry
from qwed_a2a.proxy.identity import open_backend
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_sdk.errors import UsageError

KEY_DIRECTORY = "signing"
_GRACE_SECONDS = 1
"""Seconds for open requests at shutdown."""
_SWITCH_SECONDS = 0.0005
_SILENCED_LOGGERS = ("a2a", "httpx", "httpcore", "uvicorn")


class ProxySummary(NamedTuple):
    """Addresses and agents of a started proxy."""

    url: str
    upstream: str
    client: str
    agent: str
    decides: str


Greet = Callable[[ProxySummary], None]


def run_proxy(
    options: A2AProxyOptions, listener: socket.socket, hosts: tuple[str, ...], print_line: PrintLine, greet: Greet
) -> None:
    """Run the proxy until it is stopped; raise UsageError if it cannot start.

    `greet` is called once clients are served.
    """
    disable_memory_dumps()
    # A decision passes between threads, and the default switch interval is longer than a decision takes.
    sys.setswitchinterval(_SWITCH_SECONDS)
    for name in _SILENCED_LOGGERS:
        # Their log lines would contain message content.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    asyncio.run(_serve(options, listener, hosts, print_line, greet))


async def _serve(
    options: A2AProxyOptions, listener: socket.socket, hosts: tuple[str, ...], print_line: PrintLine, greet: Greet
) -> None:
    async with AsyncExitStack() as stack:
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        starting = asyncio.create_task(_start(options, stack, print_line))
        stopped = asyncio.create_task(ended.wait())
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return
        stopped.cancel()
        backend, cards = starting.result()
        app = proxy_app(backend, cards, options, hosts=hosts, max_payload_bytes=_max_payload_bytes())
        server = _Server(uvicorn_config(app, grace=_GRACE_SECONDS, lifespan="on"), ended)
        greet(_summary(options, backend))
        await server.serve(sockets=[listener])


async def _start(
    options: A2AProxyOptions, stack: AsyncExitStack, print_line: PrintLine
) -> tuple[MessageBackend, CardRegistry]:
    state_directory = ensure_state_directory(PROTOCOL, options.name)
    try:
        keyring = open_keyring(state_directory / KEY_DIRECTORY)
    except (KeyringError, OSError) as error:
        raise UsageError(f"the key that signs cards cannot be used: {error}") from None
    backend = await open_backend(options, state_directory, stack, print_line)
    cards = CardRegistry(options, state_directory, keyring, backend, print_line, backend.verdict_keyring)
    stack.push_async_callback(cards.close)
    await cards.start()
    return backend, cards


def _max_payload_bytes() -> int:
    """Return the largest payload that this process accepts; the backend may accept less."""
    try:
        return settings_from().a2a_max_payload_bytes
    except SettingsError as error:
        raise UsageError(str(error)) from None


def _summary(options: A2AProxyOptions, backend: MessageBackend) -> ProxySummary:
    return ProxySummary(
        options.public_url, options.upstream, backend.client.agent_id, backend.upstream.agent_id, backend.location
    )


class _Server(uvicorn.Server):
    """Server that stops on an event instead of on its own signals, so that the backends are closed after it."""

    def __init__(self, config: uvicorn.Config, ended: asyncio.Event) -> None:
        super().__init__(config)
        self._ended = ended

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Return True to stop."""
        self.should_exit = self.should_exit or self._ended.is_set()
        return await super().on_tick(counter)
