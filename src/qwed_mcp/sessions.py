"""Open MCP sessions of each caller over HTTP.

Clients often leave without ending their session. A caller who opens one too many loses the least recently used one.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from qwed.model.lru_cache import LruCache

MAX_PER_CALLER = 64
MAX_CALLERS = 1_024


class Sessions:
    """Registry of open sessions; it is used on the event loop only, so it needs no lock."""

    def __init__(self, max_per_caller: int = MAX_PER_CALLER) -> None:
        self._max_per_caller = max_per_caller
        self._by_caller: LruCache[str, OrderedDict[str, int]] = LruCache(MAX_CALLERS)
        """Session ids of each caller with their number of running requests, least recently used first."""

    def add(self, caller: str, session_id: str) -> None:
        """Remember a session of the caller."""
        sessions = self._by_caller[caller] = self._sessions_of(caller)
        sessions[session_id] = 0

    def remove(self, caller: str, session_id: str) -> None:
        """Forget a session of the caller."""
        self._sessions_of(caller).pop(session_id, None)

    def session_to_evict(self, caller: str) -> str | None:
        """Return the session to end before the caller opens another, preferring one without running requests."""
        sessions = self._sessions_of(caller)
        if len(sessions) < self._max_per_caller:
            return None
        return next((session_id for session_id, running in sessions.items() if not running), next(iter(sessions)))

    @contextmanager
    def in_use(self, caller: str, session_id: str) -> Iterator[None]:
        """Count a request of the session while it is answered."""
        sessions = self._sessions_of(caller)
        self._count(sessions, session_id, 1)
        try:
            yield
        finally:
            self._count(sessions, session_id, -1)

    def _sessions_of(self, caller: str) -> OrderedDict[str, int]:
        return self._by_caller.get(caller, OrderedDict())

    @staticmethod
    def _count(sessions: OrderedDict[str, int], session_id: str, by: int) -> None:
        if session_id in sessions:
            sessions[session_id] += by
            sessions.move_to_end(session_id)
