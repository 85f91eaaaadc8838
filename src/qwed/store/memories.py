"""Stored answers, and the idempotency keys whose answers are still being found."""

from threading import RLock
from typing import Any

from qwed.store.archive import Archive
from qwed.store.protocol import KeyClaim, Remembered
from qwed.words.clock import Clock

Row = tuple[Any, ...]

SELECT_MEMORY = "SELECT body_hash, answer, activity_id FROM memories WHERE agent_id = ? AND key = ? AND expires_at > ?"


class MemoryTable(Archive):
    """The part of a store that gives the same answer to the same request."""

    _lock: RLock
    _clock: Clock
    _lease_seconds: float
    _keys_in_flight: dict[tuple[str, str], float]

    def claim_key(self, agent_id: str, key: str, body_hash: str, now: float) -> KeyClaim:
        """The stored answer; or the key is this request's, until it is settled or released."""
        place = (agent_id, key)
        with self._lock:
            if self._keys_in_flight.get(place, 0.0) > self._clock.monotonic():
                return KeyClaim(refusal="a request with this key is still being decided: ask again when it is answered")
            row = self._memory(agent_id, key, now)
            if row is None:
                self._keys_in_flight[place] = self._clock.monotonic() + self._lease_seconds
                return KeyClaim()
        if row[0] != body_hash:
            return KeyClaim(refusal="this key was used with another request: use a new key for a new request")
        return KeyClaim(remembered=Remembered(row[1], row[2]))

    def release_key(self, agent_id: str, key: str) -> None:
        """The key is nobody's any more."""
        with self._lock:
            self._keys_in_flight.pop((agent_id, key), None)

    def _memory(self, agent_id: str, key: str, now: float) -> Row | None:
        """What the body hashed to, the answer and its activity, where that is stored and not over."""
        return self._one(SELECT_MEMORY, (agent_id, key, now))
