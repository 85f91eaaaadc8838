"""DNS lookups in daemon threads.

A lookup cannot be interrupted. In an executor, a few names that never resolve would block all others and the end of the
process; so each lookup has its own daemon thread, one per name, and their number is limited.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence

MAX_LOOKUPS = 64
"""Concurrent lookups. An organisation has one webhook, so this many of them would have to be hostile."""

LookUp = Callable[[str, int], Sequence[str]]


def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of `host`, in the order the system prefers."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(key[0]) for *_, key in entries]


class NameResolver:
    """`ResolveName` for one event loop; concurrent requests for a name share one lookup."""

    def __init__(self, look_up: LookUp = look_up, max_lookups: int = MAX_LOOKUPS) -> None:
        self._look_up = look_up
        self._max_lookups = max_lookups
        self._lookups: dict[tuple[str, int], asyncio.Future[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of `host`; raise OSError if it has none or too many lookups hang."""
        key = (host, port)
        future = self._lookups.get(key)
        if future is None:
            future = self._start_lookup(key)
        # Shielded: a caller that times out must not cancel the lookup for the others.
        return await asyncio.shield(future)

    def _start_lookup(self, key: tuple[str, int]) -> asyncio.Future[Sequence[str]]:
        if len(self._lookups) >= self._max_lookups:
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        future = self._lookups[key] = loop.create_future()
        future.add_done_callback(lambda _: self._forget(key))
        threading.Thread(target=self._run_lookup, args=(loop, future, key), name="qwed-dns", daemon=True).start()
        return future

    def _forget(self, key: tuple[str, int]) -> None:
        future = self._lookups.pop(key)
        if not future.cancelled():
            # Marks the exception as retrieved: every caller may have timed out.
            future.exception()

    def _run_lookup(
        self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Sequence[str]], key: tuple[str, int]
    ) -> None:
        try:
            addresses = self._look_up(*key)
        except (OSError, UnicodeError) as error:
            _resolve_future(loop, future.set_exception, error)
        else:
            _resolve_future(loop, future.set_result, addresses)


def _resolve_future(loop: asyncio.AbstractEventLoop, setter: Callable[..., None], value: object) -> None:
    try:
        loop.call_soon_threadsafe(setter, value)
    except RuntimeError:
        # A closed loop has no waiters left.
        if not loop.is_closed():
            raise
