"""Long polls: who waits for which action to be settled."""

from collections.abc import Callable
from threading import Lock

from qwed.waiting import Ticket, announce, done


class Doorbells:
    """Tickets by what they wait for. Safe to use from any thread."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Ticket[None]]] = {}
        self._closing = False
        self._lock = Lock()
        self.on_ring: Callable[[str], None] = _nobody
        """Called with what was rung for here, from any thread; must not wait."""

    def wait(self, what: str) -> Ticket[None]:
        """A ticket that completes when the bell rings; hand it back with `leave`."""
        ticket: Ticket[None] = Ticket()
        with self._lock:
            if self._closing:
                return done(None)
            self._waiting.setdefault(what, set()).add(ticket)
        return ticket

    def leave(self, what: str, ticket: Ticket[None]) -> None:
        """Wait no longer."""
        with self._lock:
            waiting = self._waiting.get(what, set())
            waiting.discard(ticket)
            if not waiting:
                self._waiting.pop(what, None)

    def ring_all(self) -> None:
        """Wake everyone, and whoever comes after them: the house is closing, and nobody should wait for it."""
        with self._lock:
            self._closing = True
            waiting = [*self._waiting]
        for what in waiting:
            self.ring_here(what)

    def ring(self, what: str) -> None:
        """Wake everyone who waits for it, and say so."""
        self.ring_here(what)
        self.on_ring(what)

    def ring_here(self, what: str) -> None:
        """Wake everyone who waits for it in this process."""
        with self._lock:
            waiting = self._waiting.pop(what, set())
        for ticket in waiting:
            ticket.complete(None)
        announce(waiting)


def _nobody(_what: str) -> None:
    """Nobody else is told."""
