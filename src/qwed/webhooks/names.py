"""Looking names up without ever waiting for a thread.

A lookup cannot be interrupted. In an executor a few names that never answer would hold up all others, and the end of
the process too; so each runs in a daemon thread, one for a name at a time, and there is a most.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence

MOST = 64
"""Lookups at the same time. One organisation has one webhook, so this is how many of them must be hostile."""

LookUp = Callable[[str, int], Sequence[str]]


def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses the system knows for `host`, in the order it prefers."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(place[0]) for *_, place in found]


class Names:
    """A `ResolveName` for one event loop; whoever asks for a name that is being looked up shares the answer."""

    def __init__(self, look_up: LookUp = look_up, most: int = MOST) -> None:
        self._look_up = look_up
        self._most = most
        self._running: dict[tuple[str, int], asyncio.Future[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host`; OSError where it has none, or where too many lookups hang already."""
        place = (host, port)
        answer = self._running.get(place)
        if answer is None:
            answer = self._begin(place)
        # Shielded: whoever gives up first must not take the answer from the others.
        return await asyncio.shield(answer)

    def _begin(self, place: tuple[str, int]) -> asyncio.Future[Sequence[str]]:
        if len(self._running) >= self._most:
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        answer = self._running[place] = loop.create_future()
        answer.add_done_callback(lambda _: self._forget(place))
        threading.Thread(target=self._ask, args=(loop, answer, place), name="qwed-names", daemon=True).start()
        return answer

    def _forget(self, place: tuple[str, int]) -> None:
        answer = self._running.pop(place)
        if not answer.cancelled():
            # Read here, because everyone who asked may have given up, and that is no surprise to report.
            answer.exception()

    def _ask(
        self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Sequence[str]], place: tuple[str, int]
    ) -> None:
        try:
            addresses = self._look_up(*place)
        except (OSError, UnicodeError) as error:
            _hand_over(loop, answer.set_exception, error)
        else:
            _hand_over(loop, answer.set_result, addresses)


def _hand_over(loop: asyncio.AbstractEventLoop, give: Callable[..., None], what: object) -> None:
    try:
        loop.call_soon_threadsafe(give, what)
    except RuntimeError:
        # A closed loop has nobody left who waits.
        if not loop.is_closed():
            raise
