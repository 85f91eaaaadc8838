"""Waiters of long polls, by the id of the action or job they wait for."""

from collections.abc import Callable
from threading import Lock

from qwed.futures import Future, completed, notify


class Waiters:
    """Registry of waiting futures. Safe to use from any thread."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Future[None]]] = {}
        self._closing = False
        self._lock = Lock()
        self.on_notify: Callable[[str], None] = _ignore
        """Called with each notified id, from any thread, to inform other processes; must not block."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def wait(self, key: str) -> Future[None]:
        """Return a future that is done at the next notification; give it back with `leave`."""
        future: Future[None] = Future()
        with self._lock:
            if self._closing:
                return completed(None)
            self._waiting.setdefault(key, set()).add(future)
        return future

    def leave(self, key: str, future: Future[None]) -> None:
        """Remove a waiter."""
        with self._lock:
            waiting = self._waiting.get(key, set())
            waiting.discard(future)
            if not waiting:
                self._waiting.pop(key, None)

    def close(self) -> None:
        """Wake all waiters, present and future: the process is shutting down."""
        with self._lock:
            self._closing = True
            waiting = [*self._waiting]
        for key in waiting:
            self.notify_local(key)

    def notify(self, key: str) -> None:
        """Wake the waiters of this id here, and inform other processes."""
        self.notify_local(key)
        self.on_notify(key)

    def notify_local(self, key: str) -> None:
        """Wake the waiters of this id in this process."""
        with self._lock:
            waiting = self._waiting.pop(key, set())
        for future in waiting:
            future.set_result(None)
        notify(waiting)


def _ignore(_key: str) -> None:
    """Inform no other process."""
