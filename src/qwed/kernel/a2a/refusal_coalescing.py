"""Coalesces repeated refusals of a pair over its rate: one leaf per minute, the others are only counted.

Every other result for a message has a leaf of its own. A flood of refusals would otherwise fill the disk.
"""

from threading import Lock
from typing import NamedTuple

from qwed.kernel.a2a.message import MessageResult, MessageVerdict
from qwed.model.lru_cache import LruCache

MAX_PAIRS = 10_000
MINUTE = 60.0

AgentPair = tuple[str, str, str]
"""Organisation, sender and receiver."""


class _LoggedRefusal(NamedTuple):
    activity_id: str
    log_index: int
    at: float


class RefusalCoalescer:
    """Recent refusals over the rate. Safe to use from any thread."""

    def __init__(self) -> None:
        self._logged: LruCache[tuple[AgentPair, str], _LoggedRefusal] = LruCache(MAX_PAIRS)
        self._counts: LruCache[AgentPair, int] = LruCache(MAX_PAIRS)
        self._lock = Lock()

    def coalesce(self, pair: AgentPair, reason: str, verdict: MessageVerdict, now: float) -> MessageResult | None:
        """Count one more refusal and return the result that stands for it; None if this minute has no leaf yet."""
        with self._lock:
            logged = self._logged.get((pair, reason))
            if logged is None or not 0 <= now - logged.at < MINUTE:
                return None
            self._counts[pair] = self._counts.get(pair, 0) + 1
            return MessageResult(verdict, *logged)

    def take_count(self, pair: AgentPair) -> int:
        """Return the number of refusals without a leaf and reset it; the next leaf of the pair states it."""
        if not self._counts:
            return 0
        with self._lock:
            return self._counts.pop(pair, 0)

    def record(self, pair: AgentPair, reason: str, result: MessageResult) -> None:
        """Record a durable refusal, which stands for others of the same minute and reason."""
        with self._lock:
            self._logged[pair, reason] = _LoggedRefusal(result.activity_id, result.log_index, result.at)
